import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import made_up
from tailcut.plan import Plan
from tailcut.result import Result
from tailcut.results import Store, statistics, summary_schema, tables
from tailcut.results.summary import of_run

Times = Sequence[float | None]


def results(tmp_path: Path, plan: Plan, tables: dict[tuple[str, int], pl.DataFrame]) -> Result:
    store = Store.create(tmp_path / "results", plan)
    for run in plan["runs"]:
        if (table := tables.get((run["scheme"], run["seed"]))) is not None:
            made_up.put(store, run, table)
    return Result(store)


def cell(summary: pl.DataFrame, **where: Any) -> dict[str, Any]:
    return summary.row(by_predicate=pl.all_horizontal(pl.col(k) == v for k, v in where.items()), named=True)


SHORT_MEAN = {"class": "short", "statistic": "mean"}


def test_statistics_are_taken_per_class_and_per_size_group() -> None:
    table = made_up.flows([100, 300, 5_000], sizes=[5_000, 50_000, 2_000_000])
    rows = of_run(table, made_up.MEASURE, end_ns=10**9).filter(pl.col("statistic") == "mean")
    assert rows.select("grouping", "class", "value_us").rows() == [
        ("all", "all", 1800.0),
        ("class", "short", 200.0),
        ("class", "long", 5000.0),
        ("size_group", "(0, 10KB]", 100.0),
        ("size_group", "(10KB, 100KB]", 300.0),
        ("size_group", "(1MB, inf)", 5000.0),
    ]


def test_size_groups_are_listed_from_the_smallest_up_whichever_a_run_has_flows_of(tmp_path: Path) -> None:
    def of_groups(*names: str) -> pl.DataFrame:
        return made_up.flows([100.0] * len(names)).with_columns(size_group=pl.Series(names))

    plan = made_up.plan(sweep=[], seeds=[1])
    first = of_groups("(0,10KB]", "(100KB,1MB]", ">10MB")
    second = of_groups("(10KB,100KB]", "(1MB,10MB]")
    summary = results(tmp_path, plan, {("TCP", 1): first, ("RepFlow", 1): second}).summary()
    groups = summary.filter(grouping="size_group")["class"].unique(maintain_order=True).to_list()
    assert groups == ["(0,10KB]", "(10KB,100KB]", "(100KB,1MB]", "(1MB,10MB]", ">10MB"]


def attributed(fct_us: Sequence[float | None]) -> pl.DataFrame:
    """Flows that wait for a timer half of their time, and for nothing else but the wire."""
    half = pl.col("fct_ns") // 2
    return made_up.flows(fct_us).with_columns(part_timeout_ns=half, part_transmission_ns=pl.col("fct_ns") - half)


def test_parts_have_their_mean_over_all_flows_and_over_the_slowest() -> None:
    table = attributed([*range(2, 2002, 2), 9_000, None])
    rows = of_run(table, made_up.MEASURE, end_ns=10**9).filter(pl.col("grouping") == "part of short")
    timers = rows.filter(pl.col("class") == "timeout").select("statistic", "value_us", "n_flows", "n_unfinished")
    # The slowest 1 % of 1,001 flows are eleven: the longest, and ten from 1,982 us to 2,000 us.
    slowest = (9_000 + sum(range(1_982, 2_002, 2))) / 2 / 11
    mean = (9_000 + sum(range(2, 2002, 2))) / 2 / 1_001
    assert timers.rows() == [("mean", pytest.approx(mean), 1_001, 1), ("slowest", pytest.approx(slowest), 11, 1)]
    assert rows["class"].unique(maintain_order=True).to_list() == ["timeout", "transmission"]
    assert of_run(made_up.flows([100]), made_up.MEASURE, 10**9)["grouping"].str.starts_with("part").any() is False


def test_parts_are_in_the_summary_and_have_no_change(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[])
    tables = {(scheme, seed): attributed([100.0 * seed, 300]) for scheme in ("TCP", "RepFlow") for seed in (1, 2)}
    summary = results(tmp_path, plan, tables).summary()
    of = {"scheme": "RepFlow", "grouping": "part of all", "class": "timeout"}
    mean, slowest = (cell(summary, **of, statistic=statistic) for statistic in ("mean", "slowest"))
    assert (mean["value_us"], mean["change"], mean["n_seeds"], mean["reason"]) == (112.5, None, 2, None)
    assert (slowest["value_us"], slowest["reason"]) == (None, "there are not 10 flows among the slowest 1 %")


@pytest.mark.parametrize(("clock", "normalised"), [("receiver", 200 / 100), ("sender", 210 / 110)])
def test_a_time_is_normalised_by_the_best_possible_on_its_own_clock(clock: str, normalised: float) -> None:
    rows = of_run(made_up.flows([200.0]), made_up.MEASURE | {"clock": clock}, 10**9)
    assert rows.filter(pl.col("grouping") == "all")["normalised"].to_list() == pytest.approx([normalised] * 4)


def test_the_clock_of_the_plan_decides_which_completion_time_counts() -> None:
    measure = made_up.MEASURE | {"clock": "sender"}
    row = cell(of_run(made_up.flows([100]), measure, end_ns=10**9), **SHORT_MEAN)
    assert row["value_us"] == 110.0
    assert row["normalised"] == 1.0


def test_censored_flows_count_with_the_time_they_had_and_mark_the_value_as_a_lower_bound() -> None:
    table = made_up.flows([100, None], start_us=400)
    row = cell(of_run(table, made_up.MEASURE | {"unfinished": "censored"}, end_ns=1_000_000), **SHORT_MEAN)
    assert row["value_us"] == (100 + 600) / 2
    assert (row["lower_bound"], row["n_flows"], row["n_unfinished"]) == (True, 2, 1)


def test_excluded_flows_are_left_out_and_still_counted() -> None:
    row = cell(of_run(made_up.flows([100, None]), made_up.MEASURE | {"unfinished": "exclude"}, 10**9), **SHORT_MEAN)
    assert row["value_us"] == 100
    assert (row["lower_bound"], row["n_flows"], row["n_unfinished"]) == (False, 2, 1)


@pytest.mark.parametrize(("by", "mean", "unfinished"), [("599us", 100.0, 3), ("600us", 150.0, 2), ("700us", 200.0, 1)])
def test_flows_that_finish_after_the_given_time_of_the_run_are_left_out(by: str, mean: float, unfinished: int) -> None:
    table = made_up.flows([100, 200, 300, None], start_us=400)
    row = cell(of_run(table, made_up.MEASURE | {"unfinished": {"by": by}}, end_ns=1_000_000), **SHORT_MEAN)
    assert row["value_us"] == mean
    assert (row["lower_bound"], row["n_flows"], row["n_unfinished"]) == (False, 4, unfinished)


@given(st.lists(st.integers(1, 900), min_size=1, max_size=50), st.lists(st.integers(0, 900), max_size=10), st.data())
def test_a_censored_statistic_not_marked_as_a_bound_is_what_waiting_longer_would_give(
    finished: list[int], starts: list[int], data: st.DataObject
) -> None:
    """Flows open at the end finish later; only marked statistics may change, and they only grow."""
    end_us = 1000
    later = [end_us - start + data.draw(st.integers(0, 5000)) for start in starts]

    def statistics(open_fct: Times, end: int) -> list[dict[str, Any]]:
        done = made_up.flows(finished)
        rest = made_up.flows(open_fct).with_columns(
            start_ns=pl.Series([start * 1000 for start in starts], dtype=pl.Int64)
        )
        return of_run(pl.concat([done, rest]), made_up.MEASURE, end * 1000).filter(pl.col("class") == "all").to_dicts()

    for before, after in zip(statistics([None] * len(starts), end_us), statistics(later, 10_000), strict=True):
        assert after["value_us"] >= before["value_us"] - 1e-9
        if not before["lower_bound"]:
            assert after["value_us"] == before["value_us"]


def test_values_are_of_the_flows_of_all_seeds_with_an_interval(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2])
    result = results(tmp_path, plan, {("TCP", 1): made_up.flows([100, 100, 100]), ("TCP", 2): made_up.flows([300])})
    row = cell(result.summary(), **SHORT_MEAN)
    assert row["value_us"] == 150
    # Of the logarithm: t(0.975, 1) = 12.706, and with two seeds the jackknife's error is half of
    # ln(300 / 100).
    factor = math.exp(12.7062 * math.log(3) / 2)
    assert row["ci_low"] == pytest.approx(150 / factor, rel=1e-4)
    assert row["ci_high"] == pytest.approx(150 * factor, rel=1e-4)
    assert (row["n_seeds"], row["n_flows"], row["reason"]) == (2, 4, None)


def test_one_seed_leaves_the_interval_empty_with_the_reason(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    row = cell(results(tmp_path, plan, {("TCP", 1): made_up.flows([100])}).summary(), **SHORT_MEAN)
    assert (row["value_us"], row["ci_low"], row["ci_high"]) == (100, None, None)
    assert row["reason"] == "one seed gives no interval; ask for more with --seeds"


def test_seeds_that_make_no_difference_leave_the_interval_empty_with_the_reason(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2])
    same = {("TCP", seed): made_up.flows([100]) for seed in (1, 2)}
    row = cell(results(tmp_path, plan, same).summary(), **SHORT_MEAN)
    assert (row["value_us"], row["ci_low"], row["ci_high"], row["n_seeds"]) == (100, None, None, 2)
    assert row["reason"] == "all seeds gave the same value"


def test_a_class_without_flows_is_an_empty_cell_with_the_reason(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    result = results(tmp_path, plan, {("TCP", 1): made_up.flows([100])})
    row = cell(result.summary(), **{"class": "long", "statistic": "p99"})
    assert (row["value_us"], row["reason"]) == (None, "there are no such flows")


def test_a_class_in_which_nothing_finished_is_an_empty_cell_with_the_reason(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1], unfinished="exclude")
    result = results(tmp_path, plan, {("TCP", 1): made_up.flows([None, None])})
    row = cell(result.summary(), **SHORT_MEAN)
    assert (row["value_us"], row["n_unfinished"], row["reason"]) == (None, 2, "none of its 2 flows finished")


def test_a_cell_with_missing_runs_has_a_row_that_says_so(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP", "RepFlow"], sweep=[], seeds=[1])
    result = results(tmp_path, plan, {("TCP", 1): made_up.flows([100])})
    row = cell(result.summary(), scheme="RepFlow", **SHORT_MEAN)
    assert (row["value_us"], row["n_seeds"], row["reason"]) == (None, 0, "no run of this cell has finished")


def test_a_change_is_computed_from_the_two_shown_values(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[], seeds=[1, 2, 3])
    times = {"TCP": ([10, 1_000], [20, 30], [5]), "RepFlow": ([100, 500], [40, 30], [50])}
    tables = {(scheme, seed + 1): made_up.flows(of[seed]) for scheme, of in times.items() for seed in range(3)}
    summary = results(tmp_path, plan, tables).summary()
    for statistic in statistics.STATISTICS:
        base, ours = (
            cell(summary, scheme=scheme, statistic=statistic, **{"class": "short"}) for scheme in ("TCP", "RepFlow")
        )
        assert ours["change"] == pytest.approx(ours["value_us"] / base["value_us"] - 1)
    assert (base["change"], base["change_note"], base["significant"]) == (None, None, None)


def test_changes_are_paired_by_seed(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[], seeds=[1, 2])
    tables = {
        ("TCP", 1): made_up.flows([100]),
        ("TCP", 2): made_up.flows([1000]),
        ("RepFlow", 1): made_up.flows([50]),
        ("RepFlow", 2): made_up.flows([500]),
    }
    row = cell(results(tmp_path, plan, tables).summary(), scheme="RepFlow", **SHORT_MEAN)
    # Values differ tenfold between seeds, the change does not.
    assert (row["change"], row["change_ci_low"], row["change_note"]) == (-0.5, None, "all seeds gave the same change")


def test_changes_use_only_the_seeds_that_both_schemes_have(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[], seeds=[1, 2])
    tables = {
        ("TCP", 1): made_up.flows([100]),
        ("RepFlow", 1): made_up.flows([80]),
        ("RepFlow", 2): made_up.flows([500]),
    }
    row = cell(results(tmp_path, plan, tables).summary(), scheme="RepFlow", **SHORT_MEAN)
    assert row["change"] == pytest.approx(-0.2)
    assert row["change_ci_low"] is None
    assert (row["change_seeds"], row["n_seeds"], row["change_note"]) == (1, 2, "over 1 of 2 seeds")


@pytest.mark.parametrize(
    ("base", "ours", "bound"),
    [
        ([100.0, 200.0], [50.0, None], "at least"),
        ([100.0, None], [50.0, 60.0], "at most"),
        ([100.0, None], [50.0, None], "roughly"),
        ([100.0, 200.0], [50.0, 60.0], None),
    ],
)
def test_the_change_of_or_against_a_lower_bound_is_a_bound(
    base: Times, ours: Times, bound: str | None, tmp_path: Path
) -> None:
    tables = {("TCP", 1): made_up.flows(base), ("RepFlow", 1): made_up.flows(ours)}
    row = cell(results(tmp_path, made_up.plan(sweep=[], seeds=[1]), tables).summary(), scheme="RepFlow", **SHORT_MEAN)
    assert row["change_bound"] == bound


def test_without_finished_flows_of_one_scheme_there_is_no_change(tmp_path: Path) -> None:
    tables = {("TCP", 1): made_up.flows([100]), ("RepFlow", 1): made_up.flows([None])}
    summary = results(tmp_path, made_up.plan(sweep=[], seeds=[1]), tables).summary()
    assert summary["change"].null_count() == summary.height


def test_a_slowdown_that_unfinished_flows_may_raise_is_a_bound_of_its_own(tmp_path: Path) -> None:
    """The open flow's time is beyond all others, and its slowdown below them."""
    done = made_up.flows([1_000.0] * 100).with_columns(
        ideal_fct_ns=pl.Series([10**6 // (2 + i) for i in range(100)], dtype=pl.Int64)
    )
    late = made_up.flows([None]).with_columns(
        ideal_fct_ns=pl.lit(8_000_000, pl.Int64), start_ns=pl.lit(10**9 - 10**7, pl.Int64)
    )
    rows = of_run(pl.concat([done, late]), made_up.MEASURE, 10**9).filter(grouping="all")
    assert dict(rows.select("statistic", "lower_bound").rows()) == {
        "mean": True, "p50": False, "p99": False, "p99_9": True
    }  # fmt: skip
    assert rows["normalised_lower_bound"].to_list() == [True] * 4


def test_every_scheme_point_class_and_statistic_has_exactly_one_row(tmp_path: Path) -> None:
    plan = made_up.plan(seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    for run in plan["runs"]:
        made_up.put(store, run, made_up.flows([100, 200], sizes=[1_000, 1_000_000]))
    summary = Result(store).summary()
    key = ["backend", "scheme", "traffic.load", "class", "statistic"]
    assert summary.select(key).is_duplicated().sum() == 0
    assert summary.height == 2 * 2 * (3 + 2) * 4
    assert dict(summary.schema) == summary_schema(plan)


def test_schemes_with_the_same_configuration_share_their_runs(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP", "Same"], sweep=[], seeds=[1])
    plan["runs"][1] = {**plan["runs"][0], "scheme": "Same"}
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100]))
    summary = Result(store).summary()
    assert cell(summary, scheme="TCP", **SHORT_MEAN)["value_us"] == 100
    assert cell(summary, scheme="Same", **SHORT_MEAN)["change"] == 0


def test_axes_that_are_not_numbers_become_text(tmp_path: Path) -> None:
    plan = made_up.plan(
        schemes=["TCP"], sweep=[{"key": "queue.limit", "values": ["25packets", "100packets"]}], seeds=[1]
    )
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100]))
    row = cell(Result(store).summary(), **{"queue.limit": "25packets"}, **SHORT_MEAN)
    assert row["value_us"] == 100


def test_another_backends_rows_stand_beside_the_simulators(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100]))
    model = Result(store).summary().with_columns(backend=pl.lit("model"), value_us=pl.lit(7.0))
    store.put_summary("model", model, plan)
    assert cell(Result(store).summary(), backend="sim", **SHORT_MEAN)["value_us"] == 100
    assert cell(Result(store).summary(), backend="model", **SHORT_MEAN)["value_us"] == 7


def test_another_backends_rows_answer_the_question_that_they_were_computed_for(tmp_path: Path) -> None:
    asked = made_up.plan(sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", asked)
    store.put_summary("model", Result(store).summary().with_columns(backend=pl.lit("model")), asked)
    assert "model" in store.summaries(made_up.plan(sweep=[], seeds=[1, 2]))
    assert "model" not in store.summaries(made_up.plan(seeds=[1]))


def _of_another_workload(plan: Plan) -> None:
    """Changes the contents of the plan's workload file, not its path."""
    for run in plan["runs"]:
        run["files"] = [{"path": "sizes.cdf", "resolved": "/sizes.cdf", "sha256": "1"}]


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(baseline="RepFlow"),
        lambda plan: plan.update(model={"short_byte_share": 0.1}),
        lambda plan: plan.update(version="0.2.0"),
        _of_another_workload,
    ],
    ids=["baseline", "model", "version", "workload"],
)
def test_rows_that_were_computed_from_something_else_answer_nothing(
    change: Callable[[Plan], None], tmp_path: Path
) -> None:
    asked = made_up.plan(sweep=[], seeds=[1])
    for run in asked["runs"]:
        run["files"] = [{"path": "sizes.cdf", "resolved": "/sizes.cdf", "sha256": "0"}]
    store = Store.create(tmp_path / "results", asked)
    store.put_summary("model", Result(store).summary().with_columns(backend=pl.lit("model")), asked)
    other = copy.deepcopy(asked)
    change(other)
    assert "model" in store.summaries(asked)
    assert "model" not in store.summaries(other)


def test_rows_for_another_question_leave_those_for_the_first_alone(tmp_path: Path) -> None:
    asked, other = made_up.plan(sweep=[], seeds=[1]), made_up.plan(seeds=[1])
    store = Store.create(tmp_path / "results", asked)
    for value, plan in enumerate((asked, other)):
        rows = Result(store, plan).summary().filter(backend="sim")
        store.put_summary("model", rows.with_columns(backend=pl.lit("model"), value_us=pl.lit(float(value))), plan)
    assert store.summaries(asked)["model"]["value_us"].unique().to_list() == [0.0]
    assert store.summaries(other)["model"]["value_us"].unique().to_list() == [1.0]


def test_totals_add_counts_and_average_loads_over_seeds(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2])
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100]), offered_load=0.4)
    made_up.put(store, plan["runs"][1], made_up.flows([100, None]), offered_load=0.6)
    (row,) = Result(store).totals().to_dicts()
    assert (row["flows"], row["unfinished_flows"], row["dropped"], row["n_seeds"]) == (3, 1, 6, 2)
    assert row["offered_load"] == pytest.approx(0.5)
    assert (row["offered_bytes"], row["finished_bytes"]) == (60_000, 40_000)


def test_without_runs_every_table_has_its_columns_and_no_rows(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[{"key": "queue.limit", "values": ["25packets", "100packets"]}])
    of_none = Result(Store.create(tmp_path / "none", plan))
    labels = {"scheme": pl.String, "queue.limit": pl.String, "seed": pl.UInt64}
    for name in ("flows", "jobs", "segments", "throughput", "tiers", "series"):
        table = getattr(of_none, name)
        assert table.height == 0
        assert dict(table.schema) == labels | tables.schema(name)
    assert of_none.flows.filter(pl.col("bytes") > 100_000, pl.col("queue.limit") == "25packets").is_empty()


def test_without_runs_the_tables_of_runs_are_those_of_some_runs_without_rows(tmp_path: Path) -> None:
    plan = made_up.plan()
    store = Store.create(tmp_path / "results", plan)
    of_none = Result(store)
    made_up.put(store, plan["runs"][0], made_up.flows([100]))
    of_one = Result(store)
    assert of_none.runs.equals(of_one.runs.clear())
    assert of_none.totals().equals(of_one.totals().clear())


def test_a_table_that_no_run_has_has_its_columns(tmp_path: Path) -> None:
    plan = made_up.plan(sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100]))
    assert dict(Result(store).jobs.schema) == {"scheme": pl.String, "seed": pl.UInt64} | tables.schema("jobs")


def test_totals_know_losses_on_links_and_what_became_of_elephants(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP", "TinyFlow"], sweep=[])
    store = Store.create(tmp_path / "results", plan)
    for run in plan["runs"]:
        found: dict[str, Any] = {}
        if run["scheme"] == "TinyFlow":
            found = {"elephants_found": 3, "elephants_missed": 1}
        made_up.put(store, run, made_up.flows([100]), lost_on_links=5, needless_retransmissions=2, **found)
    tcp, tinyflow = Result(store).totals().to_dicts()
    assert (tcp["lost_on_links"], tcp["needless_retransmissions"]) == (10, 4)
    assert (tinyflow["elephants_found"], tinyflow["elephants_missed"]) == (6, 2)
    assert tcp["elephants_found"] is None, "nobody looks for elephants"
