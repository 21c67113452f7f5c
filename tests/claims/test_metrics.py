"""The numbers of claims from tables, against numbers by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut.claims import evaluate, metrics
from tailcut.claims.document import Measure, Population
from tailcut.claims.metrics import Part

MS = 1_000_000


def values(*of_seeds: list[float]) -> dict[int, Part]:
    return {seed: Part(np.sort(np.array(part, dtype=np.float64))) for seed, part in enumerate(of_seeds, 1)}


def shares(*of_seeds: tuple[float, float]) -> dict[int, Part]:
    return {seed: Part(None, above, below) for seed, (above, below) in enumerate(of_seeds, 1)}


def asked(statistic: str = "mean", limit: float = 0.0) -> Measure:
    return Measure("fct", statistic, limit)


@pytest.mark.parametrize(
    ("statistic", "limit", "expected"),
    [("mean", 0, 2.5), ("p50", 0, 2.0), ("max", 0, 4.0), ("sd", 0, np.sqrt(1.25)), ("share_at_most", 3, 0.75),
     ("share_above", 3, 0.25)],
)  # fmt: skip
def test_statistics_are_of_all_seeds_together(statistic: str, limit: float, expected: float) -> None:
    found = metrics.value(values([1, 4], [3, 2]), asked(statistic, limit))
    assert found is not None
    assert found.value == pytest.approx(expected)


def test_a_share_sums_over_seeds_before_dividing() -> None:
    found = metrics.value(shares((1, 10), (9, 90)), asked("share"))
    assert found is not None
    assert (found.value, found.low, found.high) == (0.1, 0.1, 0.1)


def test_a_change_is_the_quotient_of_the_two_numbers_less_one() -> None:
    found = metrics.change(values([4, 4], [4, 6]), values([2, 2], [2, 3]), asked())
    assert found is not None
    assert found.value == pytest.approx(-0.5)
    assert found.low == found.high == pytest.approx(-0.5)


def test_a_change_is_over_the_seeds_that_both_have() -> None:
    found = metrics.change(values([4], [4], [100]), values([2], [3]), asked())
    assert found is not None
    assert found.value == pytest.approx(2.5 / 4 - 1)


def test_one_seed_has_no_interval() -> None:
    found = metrics.change(values([4, 5]), values([2, 3]), asked())
    assert found is not None
    assert (found.low, found.high) == (None, None)


def test_the_number_of_flows_beyond_a_percentile_is_reported() -> None:
    found = metrics.value(values([*range(1, 501)], [*range(1, 501)]), asked("p99"))
    assert found is not None
    assert found.beyond == 10


def test_an_empty_population_has_no_number() -> None:
    assert metrics.value(values([]), asked()) is None
    assert metrics.change(shares((0, 0)), shares((1, 2)), asked("share")) is None


def test_a_contrast_is_the_difference_of_two_changes() -> None:
    first = values([10], [10], [10]), values([5], [5], [5])
    last = values([10], [10], [10]), values([8], [8], [8])
    found = metrics.contrast(first, last, asked())
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((-0.3, -0.3, -0.3))


# --- of runs --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> tailcut.Result:
    folder = tmp_path_factory.mktemp("claims")
    experiment = tailcut.load(experiments.tiny(folder, "[measure]\nsegments = true\nthroughput = true\n"))
    return tailcut.run(experiment, out=folder / "results")


def number(result: tailcut.Result, measure: Measure, scheme: str = "TCP") -> Any:
    runs = evaluate.OfRuns(result, "sim")._made[f'["{scheme}",{{}}]']  # noqa: SLF001 - as claims look it up
    return metrics.value(metrics.parts(runs, measure, result.plan["measure"]), measure)


def test_completion_times_are_those_of_the_summary(result: tailcut.Result) -> None:
    row = result.summary().filter(scheme="TCP", statistic="p99", grouping="all").row(0, named=True)
    found = number(result, Measure("fct", "p99"))
    assert (found.value, found.low, found.high) == pytest.approx(
        (row["value_us"] / 1000, row["ci_low"] / 1000, row["ci_high"] / 1000)
    )
    assert number(result, Measure("slowdown", "p99")).value == pytest.approx(row["normalised"])


def test_a_clock_from_the_connection_leaves_the_handshake_out(result: tailcut.Result) -> None:
    flows = result.flows.filter(scheme="TCP")
    expected = (flows["fct_ns"] - flows["connect_ns"]).mean() / MS  # type: ignore[operator]
    assert number(result, Measure("fct", clock="connect")).value == pytest.approx(expected)


def test_populations_leave_flows_out(result: tailcut.Result) -> None:
    flows = result.flows.filter(scheme="TCP")
    between_pods = flows.filter(flows["src"] // 4 != flows["dst"] // 4)
    of_one = flows.filter((flows["src"] == 3) | (flows["dst"] == 3))
    for population, rows in ((Population(pod_hosts=4), between_pods), (Population(touching=(3,)), of_one)):
        found = number(result, Measure("fct", population=population))
        assert found.value == pytest.approx(rows["fct_ns"].mean() / MS)  # type: ignore[operator]


def test_the_quickest_of_two_flows_of_neighbouring_sizes_is_taken() -> None:
    flows = pl.DataFrame(
        {"id": [0, 1, 2, 3, 4], "bytes": [50, 10, 40, 20, 90], "normalised_fct": [2.0, 3.0, None, 1.5, 1.0]}
    )
    assert metrics.quickest(flows, 2)["id"].to_list() == [3, 0]
    assert metrics.quickest(flows, 5)["id"].to_list() == [4]


def test_the_quickest_of_two_independent_flows_is_quicker_than_one(result: tailcut.Result) -> None:
    of_seeds = result.flows.filter(scheme="TCP").partition_by("seed")
    sorted_by_size = [flows.sort("bytes", "id")["normalised_fct"].to_numpy() for flows in of_seeds]
    quickest = [times[: len(times) // 2 * 2].reshape(-1, 2).min(axis=1) for times in sorted_by_size]
    found = number(result, Measure("slowdown", population=Population(quickest_of=2)))
    assert found.value == pytest.approx(np.concatenate(quickest).mean())


def test_retransmissions_are_a_share_of_first_transmissions(result: tailcut.Result) -> None:
    flows = result.flows.filter(scheme="TCP")
    again, sent = (int(flows[name].sum()) for name in ("retransmissions", "data_packets"))
    assert number(result, Measure("retransmitted", "share")).value == pytest.approx(again / (sent - again))


def test_every_metric_of_the_vocabulary_is_computed() -> None:
    from tailcut.claims.document import METRICS

    assert metrics.COMPUTE.keys() == METRICS.keys()


def test_a_table_that_a_run_does_not_have_gives_no_number(result: tailcut.Result) -> None:
    assert number(result, Measure("series", name="none")) is None
    assert number(result, Measure("job_time")) is None
    assert Path(result.directory).exists()
