"""The figures: what they draw of a table, and that every kind of experiment gives some."""

from dataclasses import replace
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import vl_convert
from altair.utils import schemapi
from hypothesis import given
from hypothesis import strategies as st

from support import synthetic
from tailcut.report import export
from tailcut.report.figures import Data, Figure, draw, jobs, series, tradeoff
from tailcut.report.figures.base import log_ticks, scale_of, significant, unit_for
from tailcut.report.figures.fct import size_label
from tailcut.report.study import Study
from tailcut.report.theme import theme_for

LOADS = (("traffic.load", (0.3, 0.7)),)


def figures(study: Study, *, interactive: bool = True) -> dict[str, Figure]:
    theme = theme_for(study.schemes, study.baseline, interactive=interactive)
    return {figure.name: figure for _, figure in draw(study, Data.of(study), theme)}


def drawn(figure: Figure, panel: str) -> tuple[dict[str, Any], list[pl.DataFrame]]:
    """A panel's specification, and the tables that it draws."""
    pool = export.DrawingPool()
    chart = next(p.chart for p in figure.panels if p.name == panel)
    return export.specification(chart, pool), list(pool.tables.values())


def marks(spec: dict[str, Any]) -> list[str]:
    return [layer["mark"]["type"] for layer in spec["layer"]]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    result = synthetic.build(tmp_path_factory.mktemp("store"), synthetic.Shape(sweep=LOADS, seeds=(1, 2, 3), flows=400))
    return Study.of(synthetic.with_model(result))


@pytest.fixture(scope="module")
def page(study: Study) -> dict[str, Figure]:
    return figures(study)


# --- completion times, slowdown, change -----------------------------------------------------------


def test_a_panel_draws_the_summary_in_its_unit_with_intervals(study: Study, page: dict[str, Figure]) -> None:
    _, (rows,) = drawn(page["fct"], "fct-short-p99")
    row = rows.filter(backend="sim", scheme="RepFlow", point="0.7").row(0, named=True)
    cell = study.summary.filter(
        pl.col("backend") == "sim", pl.col("scheme") == "RepFlow", pl.col("traffic.load") == 0.7,
        pl.col("grouping") == "class", pl.col("class") == "short", pl.col("statistic") == "p99",
    ).row(0, named=True)  # fmt: skip
    assert row["value"] == pytest.approx(cell["value_us"] / 1000, rel=1e-4)
    assert row["low"] == pytest.approx(cell["ci_low"] / 1000, rel=1e-4)
    assert row["high"] == pytest.approx(cell["ci_high"] / 1000, rel=1e-4)
    assert row["said"] == f"{significant(cell['value_us'] / 1000)} ms"
    assert row["seeds"] == 3


def test_the_model_is_dashed_and_has_no_band(page: dict[str, Figure]) -> None:
    spec, (rows,) = drawn(page["fct"], "fct-short-mean")
    dash = next(layer["encoding"]["strokeDash"]["scale"] for layer in spec["layer"] if layer["mark"]["type"] == "line")
    assert dict(zip(dash["domain"], dash["range"], strict=True)) == {"simulated": [1, 0], "model": [7, 4]}
    assert rows.filter(backend="model")["low"].null_count() == rows.filter(backend="model").height > 0
    assert marks(spec) == ["area", "line", "point"]


def test_empty_cells_of_the_model_are_named_with_their_reason(page: dict[str, Figure]) -> None:
    assert page["fct"].gaps == ["any class of RepSYN, model (the analysis does not cover RepSYN)"]


def test_one_seed_draws_no_band(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=LOADS, seeds=(1,), flows=100)))
    spec, _ = drawn(figures(of)["fct"], "fct-short-mean")
    assert marks(spec) == ["line", "point"]


def test_changes_leave_the_baseline_out_and_draw_the_line_of_no_change(page: dict[str, Figure]) -> None:
    spec, tables = drawn(page["change"], "change-short-p99")
    assert marks(spec)[0] == "rule"
    rows = next(table for table in tables if "scheme" in table.columns)
    assert set(rows["scheme"]) == {"RepFlow", "RepSYN"}
    low, high = spec["layer"][2]["encoding"]["y"]["scale"]["domain"]
    assert low < 0 < high


def test_an_experiment_without_a_sweep_is_drawn_as_bars(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2), flows=100)))
    spec, _ = drawn(figures(of)["fct"], "fct-short-p99")
    assert marks(spec) == ["bar", "rule", "text"]


def test_an_axis_of_names_is_drawn_as_points_side_by_side(tmp_path: Path) -> None:
    sweep = (("transport.recovery", ("newreno", "sack-prr")),)
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=sweep, seeds=(1, 2), flows=100)))
    spec, _ = drawn(figures(of)["fct"], "fct-short-p99")
    assert marks(spec) == ["rule", "point"]
    assert "xOffset" in spec["layer"][0]["encoding"]


def test_points_of_names_stand_in_the_order_of_the_plan_by_their_labels(tmp_path: Path) -> None:
    sweep = (("queue.limit", ("100packets", "25packets")),)
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=sweep, seeds=(1, 2), flows=50)))
    spec, (rows,) = drawn(figures(of)["fct"], "fct-short-p99")
    assert spec["layer"][0]["encoding"]["x"]["sort"] == ["100 packets", "25 packets"]
    assert set(rows["point"]) == {"100 packets", "25 packets"}


def test_a_single_scheme_has_no_change_and_says_so(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(schemes=("TCP",), sweep=LOADS, seeds=(1,), flows=100)))
    change = figures(of)["change"]
    assert not change.panels
    assert change.note == "There is only one scheme, or no baseline, so there is no change to show."


def test_a_class_without_a_value_is_not_drawn_and_is_named_with_the_reason(
    tmp_path: Path,
) -> None:
    result = synthetic.build(tmp_path, synthetic.Shape(sweep=(), seeds=(1, 2), flows=100, unfinished=1.0))
    result.plan["measure"]["unfinished"] = "exclude"
    fct = figures(Study.of(result))["fct"]
    assert [panel.name for panel in fct.panels] == ["fct-short-mean", "fct-short-p99"]
    assert len(fct.gaps) == 1
    assert "long flows of TCP, RepFlow, RepSYN, simulated (none of its" in fct.gaps[0]


def test_marks_that_unfinished_flows_make_lower_bounds_are_hollow(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=LOADS, seeds=(1, 2), flows=200, unfinished=0.2)))
    spec, (rows,) = drawn(figures(of)["fct"], "fct-long-mean")
    assert rows["bound"].all()
    assert rows["said"].str.starts_with("at least ").all()
    assert spec["layer"][-1]["encoding"]["fillOpacity"]["condition"] == {"test": "datum.bound", "value": 0}


def test_the_change_against_a_lower_bound_is_hollow_and_at_most_that(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=LOADS, seeds=(1, 2), flows=100)))
    late = pl.when(pl.col("class") == "long").then(pl.lit("at most"))
    change = figures(replace(of, summary=of.summary.with_columns(change_bound=late)))["change"]
    _, found = drawn(change, "change-long-mean")
    rows = next(table for table in found if "scheme" in table.columns)
    assert rows["bound"].all()
    assert rows["said"].str.starts_with("at most ").all()
    assert "at most if the baseline's is" in change.caption


def test_size_groups_are_named_in_words_and_in_order(page: dict[str, Figure]) -> None:
    spec, _ = drawn(page["size"], "size-mean")
    labels = spec["layer"][0]["encoding"]["x"]["sort"]
    assert labels == ["≤ 10 KB", "10 to 100 KB", "100 KB to 1 MB", "> 1 MB"]


@pytest.mark.parametrize(
    ("interval", "label"),
    [
        ("(0,10KB]", "≤ 10 KB"),
        ("(10KB,100KB]", "10 to 100 KB"),
        ("(100KB,1MB]", "100 KB to 1 MB"),
        (">10MB", "> 10 MB"),
    ],
)
def test_size_group_labels_are_spelled_out(interval: str, label: str) -> None:
    assert size_label(interval) == label


# --- links ----------------------------------------------------------------------------------------


def test_a_lossless_network_has_no_panel_of_drops_and_says_so(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(sweep=LOADS, seeds=(1,), flows=50, lossless=True)))
    links = figures(of)["links"]
    assert [panel.name for panel in links.panels] == ["links-utilisation"]
    assert "No packet was dropped anywhere." in links.lead


FOUR = ("TCP", "RepFlow", "RepSYN", "DCTCP")


def test_from_four_schemes_on_an_overview_figure_comes_first(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(schemes=FOUR, sweep=LOADS, seeds=(1, 2), flows=100)))
    page = figures(of)
    assert next(iter(page)) == "glance"
    assert [panel.name for panel in page["glance"].panels] == ["glance-plane", "glance-matrix"]
    spec, _ = drawn(page["glance"], "glance-matrix")
    columns = spec["layer"][0]["encoding"]["x"]["sort"]
    assert columns == ["short|p99", "short|mean", "long|mean", "long|p99", "packets|sent", "changes|in"]


def test_a_change_of_almost_100_percent_fits_into_the_overview(tmp_path: Path) -> None:
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(schemes=FOUR, sweep=(), seeds=(1,), flows=50)))
    almost = pl.when(pl.col("scheme") == "DCTCP").then(-0.999976).otherwise("change")
    figure = figures(replace(of, summary=of.summary.with_columns(change=almost)))["glance"]
    _, (*_, plane) = drawn(figure, "glance-plane")
    assert plane.filter(scheme="DCTCP").select("x", "y").row(0) == (2.4e-5, 2.4e-5)


def test_few_schemes_get_no_overview_figure(page: dict[str, Figure]) -> None:
    assert page["glance"].panels == []


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_labels_keep_their_distance_and_their_order(values: list[float]) -> None:
    gap = 0.05
    placed = tradeoff.apart(values, gap)
    order = sorted(range(len(values)), key=values.__getitem__)
    levels = [log10(placed[i]) for i in order]
    assert all(upper - lower > gap * 0.999 for lower, upper in pairwise(levels))
    if all(log10(values[b] / values[a]) > gap for a, b in pairwise(order)):
        assert placed == pytest.approx(values)


def test_many_schemes_have_numbers_instead_of_bars(tmp_path: Path) -> None:
    many = tuple(f"S{i}" for i in range(7))
    of = Study.of(synthetic.build(tmp_path, synthetic.Shape(schemes=many, sweep=(), seeds=(1,), flows=20)))
    links = figures(of)["links"]
    assert [panel.name for panel in links.panels] == ["links-mean", "links-busiest", "links-dropped"]
    spec, _ = drawn(links, "links-mean")
    assert marks(spec) == ["rect", "text"]


def test_time_series_of_one_quantity_share_their_scale_and_rates_come_first(study: Study) -> None:
    rows = pl.DataFrame(
        {
            "name": ["link a>b queue_packets", "flow 1 rate_bps", "flow 2 rate_bps"],
            "quantity": ["queue_packets", "rate_bps", "rate_bps"],
            "value": [7.0, 2e8, 8e8],
            "backend": "sim", "scheme": "TCP", "cell": "", "point": "", "seed": 1, "ms": 0.5,
        }
    )  # fmt: skip
    figure = series.over_time(study, rows, theme_for(study.schemes, study.baseline, interactive=False))
    assert [panel.title for panel in figure.panels] == ["flow 1: rate", "flow 2: rate", "link a>b: queue"]
    scales = [drawn(figure, panel.name)[0]["encoding"]["y"]["scale"]["domain"] for panel in figure.panels]
    assert scales[0] == scales[1] == [0, pytest.approx(840)]


def test_jobs_lead_unless_they_are_trains_of_pings() -> None:
    row = {"grouping": "job", "class": "shuffle", "value_us": 5.0}
    assert jobs.are_the_question(pl.DataFrame([row]))
    assert not jobs.are_the_question(pl.DataFrame([row | {"class": "pings"}]))


# --- page and file --------------------------------------------------------------------------------


def test_on_the_page_marks_obey_the_signals_and_in_a_file_they_stand_alone(
    study: Study, page: dict[str, Figure]
) -> None:
    on_page, _ = drawn(page["cdf"], "cdf-short")
    filters = [t["filter"] for t in on_page["layer"][0]["transform"]]
    assert any("hidden" in f for f in filters)
    assert "datum.point === point" in filters
    in_file, _ = drawn(figures(study, interactive=False)["cdf"], "cdf-short")
    assert "hidden" not in str(in_file)
    assert "params" not in in_file


def test_every_caption_states_clock_and_load(page: dict[str, Figure]) -> None:
    for name in ("fct", "change", "cdf", "slowdown", "size"):
        caption = page[name].caption
        assert "receiver's clock" in caption
        assert "capacity of all host links" in caption
    assert "closed form" in page["slowdown"].caption


def test_figures_that_are_not_drawn_any_more_are_removed_and_nothing_else(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "KINDS", ())
    (tmp_path / "captions.md").write_text("# Before\n\n## links\n\nLinks.\n", "utf-8")
    for name in ("links.svg", "links.png", "mine.svg"):
        (tmp_path / name).touch()
    theme = theme_for(study.schemes, study.baseline, interactive=False)
    export.write(study, Data.of_summary(study), theme, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captions.md", "mine.svg"]


def test_a_file_repeats_figures_of_one_point_for_the_first_middle_and_last_point() -> None:
    assert export.points_shown(["0.1", "0.2"]) == ["0.1", "0.2"]
    assert export.points_shown([f"0.{i}" for i in range(1, 9)]) == ["0.1", "0.5", "0.8"]


@pytest.mark.parametrize("interactive", [True, False], ids=["page", "file"])
def test_every_chart_keeps_the_schema_of_vega_lite(study: Study, *, interactive: bool) -> None:
    for figure in figures(study, interactive=interactive).values():
        for panel in figure.panels:
            assert panel.chart.to_dict(validate=True)["$schema"], panel.name


@pytest.mark.parametrize("interactive", [True, False], ids=["page", "file"])
def test_no_chart_has_altair_look_through_its_schema(
    study: Study, monkeypatch: pytest.MonkeyPatch, *, interactive: bool
) -> None:
    def look(cls: type, dct: object, /, **_: object) -> None:
        pytest.fail(f"{dct} is given as itself: give the channel's class, alt.{cls.__name__}")

    monkeypatch.setattr(schemapi.SchemaBase, "from_dict", classmethod(look))
    assert figures(study, interactive=interactive)


def test_a_drawing_is_valid_for_vega_lite(study: Study) -> None:
    theme = theme_for(study.schemes, study.baseline, interactive=False)
    for figure, spec in export.sheets(study, Data.of(study), theme):
        svg = vl_convert.vegalite_to_svg(spec, vl_version=export.VEGA_LITE, allowed_base_urls=[], show_warnings=True)
        assert "#0072b2" in svg, figure.name


# --- axes -----------------------------------------------------------------------------------------


def rows(*values: float, high: float | None = None) -> pl.DataFrame:
    column = pl.Series("value", values, dtype=pl.Float64)
    return column.to_frame().with_columns(low=pl.lit(None, pl.Float64), high=pl.lit(high, pl.Float64))


def test_values_within_a_factor_of_twenty_get_an_axis_from_zero() -> None:
    scale = scale_of(rows(1.0, 19.0))
    assert not scale.log
    assert scale.domain[0] == 0


def test_values_that_span_more_get_a_logarithmic_axis_that_holds_them() -> None:
    scale = scale_of(rows(1.0, 21.0))
    assert scale.log
    assert 0 < scale.domain[0] < 1 < 21 < scale.domain[1]


def test_an_interval_may_widen_an_axis_by_half_and_no_more() -> None:
    assert scale_of(rows(10.0, high=12.0)).domain[1] == pytest.approx(12 * 1.06)
    assert scale_of(rows(10.0, high=500.0)).domain[1] == pytest.approx(15 * 1.06)


def test_ticks_of_a_logarithmic_axis_are_round_and_few() -> None:
    assert log_ticks(0.9, 60) == [1, 2, 5, 10, 20, 50]
    assert log_ticks(0.5, 20_000) == [1, 10, 100, 1000, 10_000]


@pytest.mark.parametrize(("times", "unit"), [([3.0, 900.0], "µs"), ([2000.0, 40_000.0], "ms"), ([3e6, 9e6], "s")])
def test_times_are_shown_in_the_unit_that_suits_most_of_them(times: list[float], unit: str) -> None:
    assert unit_for(pl.Series(times))[0] == unit


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234.6, "1,235"), (0.012345, "0.0123"), (-3.14159, "−3.14"), (99.96, "100.0"), (None, "–")],
)
def test_numbers_have_three_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text
