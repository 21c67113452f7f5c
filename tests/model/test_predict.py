import pytest

from tailcut.model import PAPER_SHORT_BYTE_SHARE, FlowSizes, ModelInput, predict


def answers(given: ModelInput) -> dict[tuple[str, str], float | None]:
    return {(s.size_class, s.name): s.normalised_fct for s in predict(given)}


def gains(sizes: FlowSizes, statistic: str) -> list[int]:
    """By how many percent RepFlow cuts a statistic of short flows, at loads 0.1 to 0.8."""
    found = []
    for tenths in range(1, 9):
        tcp = answers(ModelInput(tenths / 10, sizes, False, PAPER_SHORT_BYTE_SHARE))["short", statistic]
        repflow = answers(ModelInput(tenths / 10, sizes, True, PAPER_SHORT_BYTE_SHARE))["short", statistic]
        assert tcp is not None
        assert repflow is not None
        found.append(round(100 * (1 - repflow / tcp)))
    return found


def test_the_rounded_windows_of_table_ii_move_every_statistic_by_half_a_percent(
    web_search: FlowSizes,
) -> None:
    for tenths in range(1, 9):
        for replicated in (False, True):
            exact = answers(ModelInput(tenths / 10, web_search, replicated, 0.05))
            rounded = answers(ModelInput(tenths / 10, web_search, replicated, 0.05, 68.0, 12.0, 44.0))
            for cell, value in exact.items():
                assert rounded[cell] == pytest.approx(value, rel=5e-3)


def test_figure_4_the_gain_in_the_mean(web_search: FlowSizes) -> None:
    assert gains(web_search, "mean") == [14, 24, 31, 35, 38, 40, 39, 35]


def test_figure_6_the_gain_in_the_99th_percentile(web_search: FlowSizes) -> None:
    assert gains(web_search, "p99") == [42, 54, 58, 57, 55, 52, 47, 39]


@pytest.mark.parametrize("statistic", ["mean", "p99"])
def test_figures_5_and_7_long_flows_barely_move(web_search: FlowSizes, statistic: str) -> None:
    for tenths in range(1, 8):
        tcp = answers(ModelInput(tenths / 10, web_search, False, PAPER_SHORT_BYTE_SHARE))["long", statistic]
        repflow = answers(ModelInput(tenths / 10, web_search, True, PAPER_SHORT_BYTE_SHARE))["long", statistic]
        assert tcp is not None
        assert repflow is not None
        assert 1.0 < repflow / tcp < 1.13


def test_the_papers_epsilon_is_five_times_the_tables(web_search: FlowSizes) -> None:
    assert web_search.short_byte_share(68.0) == pytest.approx(0.0105, abs=5e-5)


def test_an_overload_by_the_copies_leaves_all_cells_empty_and_says_why(web_search: FlowSizes) -> None:
    overloaded = predict(ModelInput(0.97, web_search, True, 0.05))
    assert all(s.normalised_fct is None for s in overloaded)
    assert all(s.reason is not None and "1.02" in s.reason for s in overloaded)
    assert all(s.reason is None for s in predict(ModelInput(0.97, web_search, False, 0.05)))


def test_a_workload_without_long_flows_has_no_answer_for_them() -> None:
    short_only = predict(ModelInput(0.5, FlowSizes((10.0, 60.0), (0.0, 1.0)), False, 1.0))
    reasons = {s.size_class: s.reason for s in short_only}
    assert reasons == {"short": None, "long": "the workload has no long flows"}


def test_a_workload_without_short_flows_has_no_answer_for_them() -> None:
    long_only = predict(ModelInput(0.5, FlowSizes((100.0, 600.0), (0.0, 1.0)), False, 0.0))
    reasons = {s.size_class: s.reason for s in long_only}
    assert reasons == {"short": "the workload has no short flows", "long": None}


@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("size", [40.0, 400.0])
def test_with_flows_of_one_size_the_time_is_the_size_times_the_normalised_time(size: float, replicated: bool) -> None:
    for statistic in predict(ModelInput(0.5, FlowSizes((size,), (1.0,)), replicated, 0.05)):
        if statistic.reason is None:
            assert statistic.normalised_fct is not None
            assert statistic.fct == pytest.approx(size * statistic.normalised_fct)


def test_an_idle_network_leaves_the_transmission_time(web_search: FlowSizes) -> None:
    short_mean = web_search.partial_expectation(lambda x: x, up_to=68) / web_search.cdf(68)
    answer = predict(ModelInput(0.0, web_search, False, 0.05, short_limit=68))[0]
    assert (answer.size_class, answer.name) == ("short", "mean")
    assert answer.fct == pytest.approx(short_mean)
