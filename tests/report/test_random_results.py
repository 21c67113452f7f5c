"""Whatever a result set is like, nothing dies of it and nothing that is shown contradicts its flow tables."""

import io
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from support import random_results
from tailcut.explain import selection
from tailcut.report import export, page, words
from tailcut.report.figures import Data
from tailcut.report.study import Study
from tailcut.report.theme import theme_for
from tailcut.result import Result
from tailcut.results import statistics
from tailcut.results.samples import COMPLETION_COLUMNS
from tailcut.results.summary import axes_schema
from tailcut.results.tables import for_spreadsheets
from tailcut.terminal.table import full_table, summary_table

SETS, SHOWN_EVERY, DRAWN_EVERY = 50, 20, 100
"""Sets per batch; every 20th is also printed, and every 100th drawn as page and figures."""
BATCHES = [*range(4), *(pytest.param(number, marks=pytest.mark.soak) for number in range(4, 40))]
LARGE = [pytest.param(number, marks=pytest.mark.soak) for number in range(0, 300, 25)]


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out waiting for the disk: no power fails here."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def counted(result: Result) -> dict[tuple[Any, ...], list[int]]:
    """The times in ns of the flows that count, by scheme, point and class, read from the flow tables."""
    measure = result.plan["measure"]
    clock, _ = COMPLETION_COLUMNS[measure["clock"]]
    found: dict[tuple[Any, ...], list[int]] = {}
    for *place, time, start in result.flows.select(
        "scheme", *axes_schema(result.plan), "class", clock, "start_ns"
    ).iter_rows():
        counts = 10**16 - start if time is None and measure["unfinished"] == "censored" else time
        if counts is not None:
            found.setdefault(tuple(place), []).append(counts)
    return {place: sorted(times) for place, times in found.items()}


def check_summary(result: Result) -> None:
    """Holds values to the flow tables, changes to values, and intervals to both."""
    axes = [*axes_schema(result.plan)]
    flows = counted(result)
    rows = {}
    for row in result.summary().filter(grouping="class").iter_rows(named=True):
        at = (row["scheme"], *(row[axis] for axis in axes), row["class"])
        rows[*at, row["statistic"]] = row
        times = flows.get(at)
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
    for (_, *where), row in rows.items():
        of_some_seeds = "of" in (row["change_note"] or "").partition(" seeds")[0]
        if row["change"] is not None and not of_some_seeds:
            base = rows[result.plan["baseline"], *where]["value_us"]
            assert row["change"] == pytest.approx(row["value_us"] / base - 1)


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


def check_drawn(result: Result) -> None:
    """Draws the page and every figure, and finds flows to explain."""
    study = Study.of(result)
    data = Data.of(study)
    html = page.render(study, data, theme_for(study.schemes, study.baseline, interactive=True))
    assert ">nan<" not in html.lower()
    assert "NaN" not in html.partition('id="charts"')[0][:200_000]
    for _, spec in export.sheets(study, data, theme_for(study.schemes, study.baseline, interactive=False)):
        assert export.svg(spec).startswith("<svg")
    assert selection.select_runs(result).runs


@pytest.mark.parametrize("batch", BATCHES)
def test_numbers_on_the_page_equal_those_of_the_flow_tables(batch: int, tmp_path: Path) -> None:
    for number in range(SETS * batch, SETS * (batch + 1)):
        result = random_results.build(tmp_path / str(number), number, small=True)
        check_summary(result)
        if number % SHOWN_EVERY == 0:
            check_shown(result)
        if number % DRAWN_EVERY == 0:
            check_drawn(result)


@pytest.mark.parametrize("first", LARGE)
def test_numbers_on_the_page_of_a_large_result_set_equal_those_of_the_flow_tables(first: int, tmp_path: Path) -> None:
    for number in range(first, first + 25):
        result = random_results.build(tmp_path / str(number), number)
        check_summary(result)
        check_shown(result)
        if number % 8 == 0:
            check_drawn(result)
