"""Whatever a result set is like, nothing dies of it and nothing that is shown contradicts its flow tables."""

import io
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from support import random_results
from tailcut.explain import places
from tailcut.report import export, page, words
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.results import Result, statistics
from tailcut.results.samples import CLOCKS
from tailcut.results.summary import axes_schema
from tailcut.results.tables import for_spreadsheets
from tailcut.terminal.table import full_table, summary_table

BATCH = 25
BATCHES = [pytest.param(number, marks=pytest.mark.soak) for number in range(12)]


def counted(result: Result, row: dict[str, object]) -> list[int]:
    """The times in ns of the flows that a row of the summary is of, read from the flow tables."""
    clock, _ = CLOCKS[result.plan["measure"]["clock"]]
    axes = [*axes_schema(result.plan)]
    there = (pl.col(name).eq_missing(pl.lit(row[name])) for name in ("scheme", *axes))
    flows = result.flows.filter(*there)
    if row["grouping"] != "all":
        flows = flows.filter(pl.col(str(row["grouping"])) == row["class"])
    times = pl.col(clock)
    if result.plan["measure"]["unfinished"] == "censored":
        times = times.fill_null(10**16 - pl.col("start_ns"))
    return flows.select(times.drop_nulls().sort()).to_series().to_list()


def check_summary(result: Result) -> None:
    """Holds values to the flow tables, changes to values, and intervals to both."""
    summary = result.summary()
    axes = [*axes_schema(result.plan)]
    values = {}
    for row in summary.filter(grouping="class").iter_rows(named=True):
        place = (row["scheme"], *(row[axis] for axis in axes), row["class"], row["statistic"])
        values[place] = row["value_us"]
        times = counted(result, row)
        if not times:
            assert row["value_us"] is None
            continue
        if row["statistic"] == "mean":
            assert row["value_us"] == pytest.approx(sum(times) / len(times) / 1000)
        else:
            fraction = statistics.PERCENTILES[row["statistic"]]
            assert row["value_us"] == times[math.ceil(fraction * len(times)) - 1] / 1000
        for low, value, high in (("ci_low", "value_us", "ci_high"), ("change_ci_low", "change", "change_ci_high")):
            if row[low] is not None:
                assert row[low] <= row[value] <= row[high] < math.inf
    for place, value in values.items():
        row = summary.row(
            by_predicate=pl.all_horizontal(
                pl.col(name).eq_missing(pl.lit(part))
                for name, part in zip(("scheme", *axes, "class", "statistic"), place, strict=True)
            )
            & (pl.col("grouping") == "class"),
            named=True,
        )
        if row["change"] is None or "of" in (row["change_note"] or "").partition(" seeds")[0]:
            continue
        base = values[result.plan["baseline"], *place[1:]]
        assert row["change"] == pytest.approx(value / base - 1)


def check_shown(result: Result) -> None:
    """Holds labels to points, distributions to flow tables, and CSV to what a spreadsheet may be given."""
    study = Study.of(result)
    data = Data.of(study)
    points = {str(run["point"]) for run in result.plan["runs"]}
    assert data.curves.select("cell", "point").n_unique() == len(points)
    assert data.curves.height == result.summary().height
    if data.distributions.height:
        rows = data.distributions.unique(["scheme", "cell", "point", "class"])
        assert rows["flows"].sum() <= result.flows.height
    for said in (words.headline(study, data.curves, data.throughput), *words.cautions(study, data.curves)):
        assert "nan" not in said.lower().split()
    console = Console(width=120, file=io.StringIO())
    console.print(summary_table(result.plan, result.summary(), result.totals()))
    console.print(full_table(result.plan, result.summary()))
    read = pl.read_csv(io.StringIO(for_spreadsheets(result.summary()).write_csv()), infer_schema=False)
    assert read.height == result.summary().height
    assert not read["scheme"].str.contains(r"^[=+\-@]").any()


@pytest.mark.parametrize("batch", BATCHES)
def test_what_is_shown_of_any_result_set_is_what_its_flow_tables_say(batch: int, tmp_path: Path) -> None:
    for number in range(BATCH * batch, BATCH * (batch + 1)):
        result = random_results.build(tmp_path / str(number), number)
        check_summary(result)
        check_shown(result)


@pytest.mark.parametrize("batch", [pytest.param(n, marks=pytest.mark.soak) for n in range(4)])
def test_any_result_set_has_a_page_figures_and_flows_to_explain(batch: int, tmp_path: Path) -> None:
    for number in np.arange(8) + 8 * batch:
        result = random_results.build(tmp_path / str(number), int(number))
        study = Study.of(result)
        data = Data.of(study)
        html = page.render(study, data, theme_for(study.schemes, study.baseline, interactive=True))
        assert ">nan<" not in html.lower()
        assert "NaN" not in html.partition('id="charts"')[0][:200_000]
        for _, spec in export.sheets(study, data, theme_for(study.schemes, study.baseline, interactive=False)):
            assert export.svg(spec).startswith("<svg")
        place = places.find_place(result)
        assert place.runs
