"""The tables behind the figures."""

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import synthetic
from tailcut.plan import PlannedRun
from tailcut.report import captions, tables
from tailcut.report.figures import distribution
from tailcut.report.study import Study
from tailcut.results import bounds

LOADS = (("traffic.load", (0.3, 0.7)),)


def study(directory: Path, shape: synthetic.Shape, *, series: bool = False) -> Study:
    return Study.of(synthetic.build(directory, shape, series=series))


@pytest.fixture(scope="module")
def two_loads(tmp_path_factory: pytest.TempPathFactory) -> Study:
    shape = synthetic.Shape(sweep=LOADS, seeds=(1, 2), flows=2000, unfinished=0.1)
    return study(tmp_path_factory.mktemp("store"), shape)


# --- which points a curve keeps -------------------------------------------------------------------


@given(st.integers(1, 3_000_000))
def test_a_curve_keeps_few_points_in_order_with_both_ends(count: int) -> None:
    ranks = tables.kept_ranks(count)
    assert len(ranks) <= tables.BODY_POINTS + tables.TAIL_POINTS + tables.EXACT_POINTS
    assert (np.diff(ranks) > 0).all()
    assert ranks[0] == 1
    assert ranks[-1] == count


@given(st.integers(1000, 3_000_000))
def test_a_curve_keeps_every_one_of_the_slowest(count: int) -> None:
    slowest = range(count - tables.EXACT_POINTS + 1, count + 1)
    assert set(slowest) <= set(tables.kept_ranks(count).tolist())


@given(st.integers(1000, 3_000_000), st.floats(0.001, 0.5))
def test_a_kept_point_is_near_every_exceedance_of_the_tail(count: int, exceedance: float) -> None:
    above = count - tables.kept_ranks(count) + 1
    wanted = max(exceedance * count, 1)
    assert (np.abs(above - wanted) <= 0.05 * wanted + 1).any()


def test_all_points_are_kept_while_they_are_few() -> None:
    assert tables.kept_ranks(250).tolist() == list(range(1, 251))


# --- distributions --------------------------------------------------------------------------------


def test_a_distribution_pools_the_seeds_and_counts_unfinished_flows_as_slower_than_all(two_loads: Study) -> None:
    table = tables.distributions(two_loads)
    runs = [r for r in two_loads.runs if r.planned["scheme"] == "TCP" and r.planned["point"] == {"traffic.load": 0.7}]
    flows = pl.concat([pl.read_parquet(r.directory / "flows.parquet") for r in runs]).filter(pl.col("class") == "long")
    finished = flows["fct_ns"].drop_nulls()
    curve = table.filter(scheme="TCP", point="0.7", **{"class": "long"})
    assert curve["unfinished"].unique().to_list() == [flows.height - len(finished)]
    assert curve["at_most"].max() == pytest.approx(len(finished) / flows.height)
    assert curve["at_least"].min() == pytest.approx((flows.height - len(finished) + 1) / flows.height)
    for row in curve.iter_rows(named=True):
        slower = int((finished / 1000 >= row["fct_us"]).sum()) + flows.height - len(finished)
        assert row["at_least"] == pytest.approx(slower / flows.height)


def test_percentiles_below_a_distribution_are_nearest_ranks_of_all_flows(tmp_path: Path) -> None:
    of = study(tmp_path, synthetic.Shape(schemes=("TCP",), sweep=(), seeds=(1,), flows=3_000, all_short=True))
    times = np.sort(pl.read_parquet(of.runs[0].directory / "flows.parquet")["fct_ns"].to_numpy() / 1000)
    row = distribution.quantiles(tables.distributions(of)).row(0, named=True)
    assert (row["p50 (us)"], row["p95 (us)"], row["p99_9 (us)"]) == (times[1_499], times[2_849], times[2_996])


def test_a_percentile_that_unfinished_flows_reach_is_empty(tmp_path: Path) -> None:
    shape = synthetic.Shape(schemes=("TCP",), sweep=(), seeds=(1,), flows=500, unfinished=0.2)
    table = distribution.quantiles(tables.distributions(study(tmp_path, shape)))
    row = table.filter(pl.col("class") == "long").row(0, named=True)
    assert row["p75 (us)"] is not None
    assert row["p90 (us)"] is None


def test_a_class_of_which_no_flow_finished_has_no_curve(tmp_path: Path) -> None:
    table = tables.distributions(study(tmp_path, synthetic.Shape(sweep=(), seeds=(1,), flows=50, unfinished=1.0)))
    assert table["class"].unique().to_list() == ["short"]


def test_the_clock_of_the_plan_times_the_flows(tmp_path: Path) -> None:
    of = study(tmp_path, synthetic.Shape(sweep=(), seeds=(1,), flows=50))
    by_receiver = tables.distributions(of)
    of.plan["measure"]["clock"] = "sender"
    by_sender = tables.distributions(of)
    later = by_sender["fct_us"] - by_receiver["fct_us"]
    assert later.to_list() == pytest.approx([synthetic.BASE_RTT_NS / 2000] * len(later))


# --- curves ---------------------------------------------------------------------------------------


def test_curves_carry_the_labels_of_their_points_and_changes_in_percent(two_loads: Study) -> None:
    table = tables.curves(two_loads)
    assert set(table["point"]) == {"0.3", "0.7"}
    assert set(table["x"]) == {0.3, 0.7}
    assert set(table["cell"]) == {""}
    raw = two_loads.summary["change"].drop_nulls()
    assert table["change"].drop_nulls().to_list() == pytest.approx((raw * 100).to_list())


def test_a_second_axis_becomes_cells_and_the_load_stays_on_the_horizontal_axis(tmp_path: Path) -> None:
    sweep = (("queue.limit", ("25packets", "100packets")), ("traffic.load", (0.3, 0.6)))
    of = study(tmp_path, synthetic.Shape(sweep=sweep, seeds=(1,), flows=20))
    assert of.x is not None
    assert of.x.key == "traffic.load"
    assert of.cells == ("limit 25 packets", "limit 100 packets")
    assert set(tables.curves(of)["cell"]) == set(of.cells)


def test_the_load_of_a_part_of_a_mix_is_the_horizontal_axis_and_no_fixed_load(two_loads: Study) -> None:
    plan = copy.deepcopy(two_loads.plan)
    plan["sweep"] = [{"key": "queue.weight", "values": [1, 2]}, {"key": "traffic.parts.1.load", "values": [0.3, 0.6]}]
    plan["runs"][0]["config"]["traffic"] = {"kind": "mix", "parts": [{"kind": "incast"}, {"load": 0.3}]}
    of = replace(two_loads, plan=plan)
    assert [axis.key for axis in of.axes] == ["traffic.parts.1.load", "queue.weight"]
    assert captions.load(of) == captions.LOADS["host-links"]


def test_an_axis_with_a_single_value_is_no_axis(tmp_path: Path) -> None:
    of = study(tmp_path, synthetic.Shape(sweep=(("traffic.load", (0.4,)),), seeds=(1,), flows=20))
    assert of.x is None
    assert set(tables.curves(of)["point"]) == {""}


# --- links ----------------------------------------------------------------------------------------


def test_links_give_percent_of_the_window_and_of_the_packets_that_came(two_loads: Study) -> None:
    row = tables.links(two_loads).filter(scheme="TCP", point="0.7", stage="core up").row(0, named=True)
    runs = [r for r in two_loads.runs if r.planned["scheme"] == "TCP" and r.planned["point"] == {"traffic.load": 0.7}]
    tiers = pl.concat([pl.read_parquet(r.directory / "tiers.parquet") for r in runs]).filter(
        tier="core", direction="up"
    )
    assert row["mean"] == pytest.approx(tiers["mean_utilisation"].mean() * 100)  # type: ignore[operator]
    assert row["busiest"] == pytest.approx(tiers["max_utilisation"].mean() * 100)  # type: ignore[operator]
    drops, packets = int(tiers["drops"].sum()), int(tiers["packets"].sum())
    assert row["drops"] == drops
    assert row["dropped"] == pytest.approx(100 * drops / (packets + drops))
    assert row["seeds"] == 2


def test_stages_follow_a_packet_up_and_down(two_loads: Study) -> None:
    expected = ["host up", "aggregation up", "core up", "core down", "aggregation down", "host down"]
    assert tables.stages(tables.links(two_loads)) == expected


# --- unfinished flows and time series -------------------------------------------------------------


def test_unfinished_flows_are_a_share_of_all(two_loads: Study) -> None:
    table = tables.unfinished(tables.curves(two_loads))
    row = table.filter(scheme="RepFlow", point="0.3", **{"class": "long"}).row(0, named=True)
    assert row["percent"] == pytest.approx(100 * row["unfinished"] / row["flows"])
    assert 5 < row["percent"] < 15


@given(st.lists(st.floats(-1e6, 1e6), min_size=30, max_size=300))
def test_a_thinned_series_keeps_its_extremes_and_its_order(values: list[float]) -> None:
    samples = pl.DataFrame({"name": "s", "time_ns": range(len(values)), "value": values})
    thin = tables.thinned(samples, 20)
    assert thin.height <= 22
    assert thin["value"].min() == min(values)
    assert thin["value"].max() == max(values)
    assert thin["time_ns"].is_sorted()


def test_series_are_those_of_the_first_point(tmp_path: Path) -> None:
    table = tables.series(study(tmp_path, synthetic.Shape(sweep=LOADS, seeds=(4,), flows=10), series=True))
    assert set(table["point"]) == {"0.3"}
    assert set(table["seed"]) == {4}
    assert set(table["quantity"]) == {"cwnd_bytes", "queue_packets"}
    assert set(table["scheme"]) == {"TCP", "RepFlow", "RepSYN"}


# --- throughput -----------------------------------------------------------------------------------


def with_throughput(of: Study, flows: int) -> pl.DataFrame:
    """Gives every run of the study a throughput table of this many flows, drawn at random; all of them together."""
    rng = np.random.default_rng(1)
    tables = []
    for run in of.runs:
        speed = rng.exponential(1e8, flows)
        data = pl.DataFrame({"throughput_bps": speed, "ideal_bps": speed / rng.uniform(0.5, 1, flows)})
        data = data.with_columns(ideal_bps=pl.when(pl.int_range(pl.len()) % 3 > 0).then("ideal_bps"))
        data.write_parquet(run.directory / "throughput.parquet")
        tables.append(data.with_columns(scheme=pl.lit(run.planned["scheme"])))
    return pl.concat(tables)


def test_a_curve_of_throughput_keeps_few_points_and_every_one_of_the_slowest(tmp_path: Path) -> None:
    of = study(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2), flows=10))
    everything = with_throughput(of, 20_000).filter(scheme="TCP")["throughput_bps"].sort() / 1e6
    curve = tables.throughput(of).filter(scheme="TCP")
    assert curve.height == curve["drawn"][0] <= tables.BODY_POINTS + tables.TAIL_POINTS + tables.EXACT_POINTS
    assert curve["flows"].unique().to_list() == [40_000]
    assert curve["mbps"][: tables.EXACT_POINTS].to_list() == everything[: tables.EXACT_POINTS].to_list()
    assert curve["mbps"][-1] == everything[-1]
    for speed, at_most in curve.select("mbps", "at_most").iter_rows():
        assert at_most == pytest.approx((everything <= speed).sum() / 40_000)


def test_the_numbers_of_throughput_are_those_of_all_flows_and_not_of_the_points_drawn(tmp_path: Path) -> None:
    of = study(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2), flows=10))
    everything = with_throughput(of, 2_000).filter(scheme="TCP")
    mbps = everything["throughput_bps"] / 1e6
    ideal = everything["throughput_bps"] / everything["ideal_bps"] * 100
    row = tables.throughput(of).filter(scheme="TCP").row(0, named=True)
    assert row["mean"] == pytest.approx(mbps.mean())
    assert row["deviation"] == pytest.approx(mbps.std())
    ascending, shares = (column.drop_nulls().sort().to_list() for column in (mbps, ideal))
    assert [row["p25"], row["p50"], row["p75"]] == [ascending[ceil(len(ascending) * q) - 1] for q in (0.25, 0.5, 0.75)]
    assert row["ideal_mean"] == pytest.approx(ideal.mean())
    assert [row["ideal_p25"], row["ideal_p75"]] == [shares[ceil(len(shares) * q) - 1] for q in (0.25, 0.75)]


def test_a_quartile_is_a_value_by_nearest_rank_as_percentiles_of_times_are() -> None:
    of = pl.DataFrame({"mbps": [4.0, 1.0, 3.0, 2.0]})
    found = of.select(**{f"p{q}": tables.nearest_rank(pl.col("mbps"), Fraction(q, 100)) for q in (25, 50, 75)})
    assert found.row(0) == (1, 2, 3)


# --- what no finished flow stands behind, and what schemes change ---------------------------------


def cell(table: pl.DataFrame, scheme: str, name: str, statistic: str) -> dict[str, object]:
    rows = table.filter(pl.col("scheme") == scheme, pl.col("class") == name, pl.col("statistic") == statistic)
    return rows.row(0, named=True)


def test_a_percentile_without_a_finished_flow_behind_it_is_empty(tmp_path: Path) -> None:
    of = study(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2), flows=100, unfinished=1.0))
    long = cell(tables.curves(of), "RepFlow", "long", "p99")
    assert (long["value_us"], long["normalised"], long["change"]) == (None, None, None)
    assert str(long["reason"]).startswith("none of its ")
    short = cell(tables.curves(of), "RepFlow", "short", "p99")
    assert short["value_us"] is not None
    assert short["change"] is not None


@pytest.mark.parametrize(
    ("unfinished", "bound", "mark"),
    [
        ({"RepFlow"}, "at least", "≥ "),
        ({"TCP"}, "at most", "≤ "),
        ({"TCP", "RepFlow"}, "roughly", "~ "),
        (set(), None, ""),
    ],
)
def test_a_change_of_or_against_a_lower_bound_is_marked_as_a_bound(
    tmp_path: Path, unfinished: set[str], bound: str | None, mark: str
) -> None:
    of = study(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2), flows=100))
    long = (pl.col("scheme") == "RepFlow") & (pl.col("class") == "long")
    own, base = (name in unfinished for name in ("RepFlow", "TCP"))
    summary = of.summary.with_columns(change_bound=pl.when(long).then(pl.lit(bounds.of_change(own, base), pl.String)))
    curves = tables.curves(replace(of, summary=summary))
    assert cell(curves, "RepFlow", "long", "p99")["change_bound"] == bound
    assert cell(curves, "RepFlow", "short", "p99")["change_bound"] is None
    said = str(cell(tables.changes(of, curves), "RepFlow", "long", "p99")["said"])
    assert said.removeprefix(mark)[0] in "+−±"


def test_changes_are_those_of_the_summary(two_loads: Study) -> None:
    curves = tables.curves(two_loads)
    row = cell(tables.changes(two_loads, curves).filter(point="0.7"), "RepFlow", "short", "p99")
    of_summary = cell(curves.filter(point="0.7"), "RepFlow", "short", "p99")
    assert row["change"] == pytest.approx(of_summary["change"], rel=1e-3)
    assert row["low"] == pytest.approx(of_summary["change_ci_low"], rel=1e-3)
    assert row["high"] == pytest.approx(of_summary["change_ci_high"], rel=1e-3)
    assert str(row["said"]).endswith("*") == bool(of_summary["significant"])


def test_changes_count_the_packets_that_every_flow_sends(two_loads: Study) -> None:
    row = cell(tables.changes(two_loads, tables.curves(two_loads)).filter(point="0.3"), "RepFlow", "packets", "sent")
    sent = {
        scheme: sum(
            int(pl.read_parquet(run.directory / "flows.parquet")["data_packets"].sum())
            for run in two_loads.runs
            if run.planned["scheme"] == scheme and run.planned["point"] == {"traffic.load": 0.3}
        )
        for scheme in ("TCP", "RepFlow")
    }
    assert row["change"] == pytest.approx((sent["RepFlow"] / sent["TCP"] - 1) * 100, rel=1e-3)


def test_packets_are_counted_over_the_seeds_of_which_both_have_runs(tmp_path: Path) -> None:
    def packets(directory: str, there: Callable[[PlannedRun], bool]) -> object:
        shape = synthetic.Shape(sweep=(), seeds=(1, 2), flows=200)
        of = Study.of(synthetic.build(tmp_path / directory, shape, keep=there))
        return cell(tables.changes(of, tables.curves(of)), "RepFlow", "packets", "sent")["change"]

    of_one = packets("one", lambda run: run["seed"] == 1)
    assert packets("unfinished", lambda run: (run["scheme"], run["seed"]) != ("RepFlow", 2)) == of_one


@pytest.mark.parametrize(
    ("changed", "asks"),
    [({"replicate": {}}, "hosts"), ({"balance": {}}, "switches"), ({"transport": {}, "queue": {}}, "both"), ({}, "–")],
)
def test_the_changed_side_follows_from_the_sections_that_differ(
    two_loads: Study, changed: dict[str, object], asks: str
) -> None:
    plan = copy.deepcopy(two_loads.plan)
    base = next(run["config"]["scheme"] for run in plan["runs"] if run["scheme"] == "TCP")
    for run in plan["runs"]:
        if run["scheme"] == "RepFlow":
            run["config"]["scheme"] = base | changed
    assert replace(two_loads, plan=plan).changed_side("RepFlow") == asks
