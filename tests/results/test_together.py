"""Several directories of results read as one."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tailcut
from support import made_up
from tailcut import cli
from tailcut.plan import Axis, Plan
from tailcut.result import Result
from tailcut.results import Store, derived


def loads(*values: float) -> list[Axis]:
    return [{"key": "traffic.load", "values": [*values]}]


def changed(plan: Plan, **sections: dict[str, Any]) -> Plan:
    """The plan with other values in the configuration of its runs."""
    for run in plan["runs"]:
        for section, values in sections.items():
            run["config"][section] = {**run["config"].get(section, {}), **values}
        run["id"] = hashlib.sha256(json.dumps([run["config"], run["seed"]]).encode()).hexdigest()
    return plan


def filled(directory: Path, plan: Plan, took_us: float = 100.0) -> Path:
    """Results of a plan whose two flows take as long in every run, and twice as long."""
    store = Store.create(directory, plan)
    for run in plan["runs"]:
        if not store.path(run["id"]).exists():
            made_up.put(store, run, made_up.flows([took_us, 2 * took_us]))
    return directory


def means(result: Result) -> pl.DataFrame:
    return result.summary().filter(grouping="all", statistic="mean")


def test_points_and_seeds_of_all_directories_are_joined_and_common_runs_count_once(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=loads(0.2, 0.4), seeds=[1, 2]))
    other = filled(tmp_path / "b", made_up.plan(sweep=loads(0.6, 0.4), seeds=[2, 3]))
    both = tailcut.open_results(one, other)
    assert both.plan["sweep"] == loads(0.2, 0.4, 0.6)
    assert both.plan["seeds"] == [1, 2, 3]
    assert means(both).filter(scheme="TCP").select("traffic.load", "n_seeds", "n_flows").rows() == [
        (0.2, 2, 4), (0.4, 3, 6), (0.6, 2, 4),
    ]  # fmt: skip
    assert both.missing_runs == []


def test_schemes_of_one_directory_are_compared_with_the_baseline_of_another(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(schemes=["TCP"], sweep=[]))
    other = filled(tmp_path / "b", made_up.plan(schemes=["RepFlow"], sweep=[]), took_us=50.0)
    assert means(tailcut.open_results(one, other)).select("scheme", "change").rows() == [
        ("TCP", None), ("RepFlow", -0.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sections", "axis", "values"),
    [
        ({"topology": {"rate": "10Gbps"}}, "topology.rate", ["1Gbps", "10Gbps"]),
        ({"topology": {"rate": "10Gbps", "k": 8}}, "results", ["a", "b"]),
        ({"traffic": {"hot": {"share": 0.1}}}, "results", ["a", "b"]),
        ({"scheme": {"queue": {"kind": "red"}}}, "results", ["a", "b"]),
    ],
)
def test_the_differing_key_or_else_the_directory_becomes_an_axis(
    tmp_path: Path, sections: dict[str, Any], axis: str, values: list[str]
) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=[]))
    other = filled(tmp_path / "b", changed(made_up.plan(sweep=[]), **sections), took_us=50.0)
    both = tailcut.open_results(one, other)
    assert both.plan["sweep"] == [{"key": axis, "values": values}]
    assert means(both)["value_us"].to_list() == [150.0, 150.0, 75.0, 75.0]
    assert means(both)["change"].drop_nulls().to_list() == [0.0, 0.0]


def test_an_axis_swept_in_one_directory_has_its_fixed_value_in_the_other(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=loads(0.2, 0.4)))
    other = filled(tmp_path / "b", made_up.plan(sweep=[]), took_us=50.0)
    assert tailcut.open_results(one, other).plan["sweep"] == loads(0.2, 0.4, 0.5)


def test_rows_of_the_model_are_taken_from_each_directory(tmp_path: Path) -> None:
    plans = [made_up.plan(sweep=[]), changed(made_up.plan(sweep=[]), topology={"rate": "10Gbps"})]
    for name, plan in zip("ab", plans, strict=True):
        store = Store.open(filled(tmp_path / name, plan))
        store.put_summary("model", Result(store).summary().with_columns(backend=pl.lit("model")), plan)
    rows = means(tailcut.open_results(tmp_path / "a", tmp_path / "b")).filter(backend="model")
    assert rows.select("topology.rate", "scheme").rows() == [
        ("1Gbps", "TCP"), ("1Gbps", "RepFlow"), ("10Gbps", "TCP"), ("10Gbps", "RepFlow"),
    ]  # fmt: skip


def test_results_that_measure_differently_are_refused(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=[]))
    other = filled(tmp_path / "b", made_up.plan(sweep=[], clock="sender"))
    with pytest.raises(tailcut.StoreError, match=r"measure\.clock = sender") as refused:
        tailcut.open_results(one, other)
    assert refused.value.code == "TC-S014"


@pytest.mark.parametrize(("called", "code"), [("{}", "TC-S011"), ("{}-lab-1", "TC-S015")])
def test_one_run_with_two_outcomes_is_refused(tmp_path: Path, called: str, code: str) -> None:
    plan = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
    run = plan["runs"][0]
    for name, took_us in (("a", 1.0), ("b", 2.0)):
        store = Store.create(tmp_path / name, plan)
        made_up.put(store, {**run, "id": called.format(run["id"])}, made_up.flows([took_us]))
    with pytest.raises(tailcut.StoreError) as refused:
        tailcut.open_results(tmp_path / "a", tmp_path / "b")
    assert refused.value.code == code


def test_a_run_damaged_in_one_directory_is_read_from_the_other(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=[]))
    other = Path(shutil.copytree(one, tmp_path / "b"))
    next(one.glob("runs/*/flows.parquet")).write_bytes(b"cut")
    assert tailcut.open_results(one, other).missing_runs == []


def test_a_directory_given_twice_counts_once(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=[]))
    assert means(tailcut.open_results(one, one)).equals(means(tailcut.open_results(one)))


def test_derived_files_stay_in_each_directory_and_joint_files_have_their_own_names(tmp_path: Path) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=loads(0.2), seeds=[1]))
    other = filled(tmp_path / "b", made_up.plan(sweep=loads(0.4), seeds=[1]))
    written = tailcut.open_results(one, other).write_summary()
    assert written == one / "summary-with-b.parquet"
    assert [len([*part.glob(f"derived/{derived.TIMES}*")]) for part in (one, other)] == [2, 2]


def test_the_command_line_takes_several_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = filled(tmp_path / "a", made_up.plan(sweep=loads(0.2), seeds=[1]))
    other = filled(tmp_path / "b", made_up.plan(sweep=loads(0.4), seeds=[1]))
    shown = json.loads(CliRunner().invoke(cli.app, ["summary", str(one), str(other), "--json"]).stdout)
    assert {row["traffic.load"] for row in shown} == {0.2, 0.4}
    monkeypatch.setattr("tailcut.report.write", lambda result, path, *_: [path])
    page = CliRunner().invoke(cli.app, ["report", str(one), str(other)])
    assert page.stdout.split() == [str(one / "report-with-b.html")]
