"""Results that are odd in one way each: the page, its figures and tables, and CSV say so and do not die."""

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from support import made_up
from tailcut import cli
from tailcut.plan import Axis
from tailcut.report import page
from tailcut.report.figures import Data, draw
from tailcut.report.study import Study
from tailcut.report.theme import Theme
from tailcut.result import Result
from tailcut.results import Store
from tailcut.results.tables import encode, schema

CLOSE = (0.3, 0.30000000000000004, 0.3000001)


def loads(*values: float) -> list[Axis]:
    return [{"key": "traffic.load", "values": [*values]}]


def test_a_point_without_flows_has_dashes_for_shares(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=loads(0.1, 0.5), seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    for run, times in zip(plan["runs"], ([], [100.0, 200.0]), strict=True):
        made_up.put(store, run, made_up.flows(times))
    study = Study.of(Result(store))
    totals = page.totals(study)
    empty, full = (dict(zip(totals.columns, page.cells(row, [(c, c) for c in totals.columns]), strict=True))
                   for row in totals.iter_rows(named=True))  # fmt: skip
    assert [empty[name][0] for name in ("retransmitted (%)", "timeouts per 1,000 flows")] == ["–", "–"]
    assert full["retransmitted (%)"][0] == "0"
    assert [*draw(study, Data.of(study), Theme(study.schemes))]


def test_a_figure_whose_every_value_is_above_its_cut_off_says_so(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    (run,) = plan["runs"]
    store = Store.create(tmp_path / "results", plan)
    table = made_up.flows([100.0])
    rows = pl.DataFrame({"quantity": ["timeouts per flow"], "value": [99], "count": [1]}, schema=schema("segments"))
    with store.claim(run["id"]):
        files: dict[str, bytes | Path] = {"flows.parquet": encode("flows", table, run)}
        files["segments.parquet"] = encode("segments", rows, run)
        store.put(run["id"], files, made_up.about(table))
    study = Study.of(Result(store))
    drawn = {figure.name: figure for _, figure in draw(study, Data.of(study), Theme(study.schemes))}
    assert "timeouts per flow: up to 99" in str(drawn["segments"].note)


def test_points_equal_to_six_digits_stay_separate_and_keep_their_flows(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=loads(*CLOSE), seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    for place, run in enumerate(plan["runs"], start=1):
        made_up.put(store, run, made_up.flows([100.0 * place] * place))
    study = Study.of(Result(store))
    assert study.points == ("0.3", "0.30000000000000004", "0.3000001")
    mean = Data.of(study).curves.filter(grouping="all", statistic="mean")
    assert mean.select("point", "n_flows", "value_us").rows() == [
        (point, place, 100.0 * place) for place, point in enumerate(study.points, start=1)
    ]


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "-2+3", "+x", "\tx", "\rx"])
def test_a_cell_that_a_spreadsheet_takes_for_a_formula_is_quoted_in_csv(tmp_path: Path, name: str) -> None:
    plan = made_up.plan(schemes=[name, "TCP"], sweep=[], seeds=[1])
    store = Store.create(tmp_path / "results", plan)
    made_up.put(store, plan["runs"][0], made_up.flows([100.0]))
    shown = CliRunner().invoke(cli.app, ["summary", "--csv", str(store.directory)])
    read = pl.read_csv(shown.stdout.encode(), infer_schema=False)
    assert set(read["scheme"]) == {f"'{name}", "TCP"}
