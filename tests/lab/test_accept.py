"""The judgement of `make lab-accept` on made-up runs; no kernel is needed."""

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.kernels import planned
from support.lab import bench, measured
from tailcut import _core

CONGESTED = Path(__file__).parents[2] / "experiments/lab/one-congested-path.toml"


@pytest.fixture(scope="module")
def accept() -> ModuleType:
    return bench("lab_accept")


TIMERS = ("one timer in a hundred is 0.12 ms late", "one timer in a hundred is 0.80 ms late")


def made(accept: ModuleType, name: str, run: dict[str, Any], unfaithful: list[str], late_ns: int) -> Any:
    """A run in which each flow is late by so much."""
    demand = json.loads(_core.demand(json.dumps(run)))
    flows = measured(demand, 1.0)
    for flow in flows["flows"]:
        flow["fct_ns"] += late_ns + 1
    lateness = {"counts": [90, 9, 1], "longest_ns": 25_000}
    alone = {"late_ns": [5_000, 7_000, 6_000], "allowed_ns": 300_000}
    facts = {
        "starts": lateness,
        "released": lateness,
        "pressure": 0.25,
        "stolen": None,
        "before": alone,
        "after": alone,
    }
    done = {"measured": flows, "unfaithful": unfaithful, "facts": facts, "frames": 1234, "repnet": None}
    return accept.Carried(name, run, done, demand["flows"])


def test_one_run_in_ten_may_be_unfaithful(experiment: Path, accept: ModuleType) -> None:
    run = planned(experiment)
    good, bad = (made(accept, "any", run, unfaithful, 0) for unfaithful in ([], ["it was late"]))
    assert accept.judge([good] * 9 + [bad]).wrong == []
    assert accept.judge([good] * 8 + [bad] * 2).wrong == ["2 of 10 runs are not faithful; one in ten may be"]


def test_lone_flows_are_held_to_the_closed_form_where_runs_are_faithful(experiment: Path, accept: ModuleType) -> None:
    run = planned(experiment)

    def wrong(late_us: int) -> str:
        return "; ".join(accept.judge([made(accept, "lone flows", run, [], 1_000 * late_us)]).wrong)

    assert wrong(290) == ""
    assert "take the closed form" in wrong(310)
    assert "none of them is early" in wrong(-10)
    unfaithful = made(accept, "lone flows", run, ["it was late"], 10**9)
    assert len(accept.judge([unfaithful]).wrong) == 1


def test_packets_are_held_to_the_closed_form_where_runs_are_faithful(experiment: Path, accept: ModuleType) -> None:
    run = made(accept, "lone flows", planned(experiment), [], 0)

    def wrong(counts: list[int]) -> list[str]:
        run.done["facts"]["released"] = {"counts": counts, "longest_ns": 0}
        return [what for what in accept.judge([run]).wrong if "packets across" in what]

    assert wrong([0] * 9 + [99] + [0] * 19 + [1]) == []  # up to 100 us, and one up to 300
    assert len(wrong([0] * 10 + [99])) == 1
    assert len(wrong([98] + [0] * 29 + [2])) == 1


def test_flows_alone_over_every_topology_take_the_closed_form_and_one_constant(
    accept: ModuleType, tmp_path: Path
) -> None:
    lone = bench("lab_lone")
    plans = [(f"alone over {name}", run) for name in lone.TOPOLOGIES for run in lone.planned(name, tmp_path)]

    def late(by_us: dict[str, int]) -> list[Any]:
        return [made(accept, name, run, [], 1_000 * by_us.get(name, 50)) for name, run in plans]

    even, slow, far = late({}), late(dict.fromkeys(dict(plans), 2_500)), late({"alone over star": 1_050})
    early = made(accept, *plans[0], ["it was late"], -10_000)
    shutil.rmtree(tmp_path)  # The files that plans read are gone when they are judged.
    assert accept.judge(even).wrong == []
    rows = [row for row in accept.further_tables(even) if row.startswith("| star")]
    assert [row.split(" | ")[1] for row in rows] == ["1", "1,460", "14,600", "100,000", "1,000,000"]
    assert all(row.endswith("| 50 | +0.00 % |") for row in rows)
    assert "2,500 us for the connection" in accept.judge(slow).wrong[-1]
    # A millisecond is more than 3 % of what a packet takes through two hops, though not of what
    # many do.
    assert "farthest: 1 B over star" in "; ".join(accept.judge(far).wrong)
    # Where runs are not faithful no flow may be early all the same.
    assert "are early" in "; ".join(accept.judge([*even, early]).wrong)


def test_the_driver_table_compares_each_driver_with_node_net(accept: ModuleType, tmp_path: Path) -> None:
    drivers = bench("lab_drivers")
    runs = [
        made(accept, f"driver: {name}", drivers.planned(name, tmp_path), [], 100_000 * number)
        for number, name in enumerate(drivers.DRIVERS)
    ]
    table = accept.further_tables(runs)
    assert len(table) == 2 + 3 * len(drivers.DRIVERS) + 1
    ideal_ms = runs[0].demand[0]["ideal_ps"] / 1e9
    assert table[2] == f"| 1,000 | repnet-bench, TCP | 0.00 | +0.00 | {ideal_ms:.2f} | +0.00 |"
    assert table[5].startswith("| 1,000 | sockets | 0.00 | +0.00 |")
    assert table[5].endswith("| +0.30 |")
    assert all(row in accept.report(runs, accept.judge(runs), TIMERS) for row in table)
    # Beside no faithful run of `net` nothing can be held against it.
    runs[0].done["unfaithful"].append("it was late")
    assert accept.further_tables(runs) == []


def test_a_check_without_a_faithful_run_is_reported_as_not_checked(experiment: Path, accept: ModuleType) -> None:
    run = planned(experiment)
    unfaithful, faithful = (made(accept, "driver: net", run, reasons, 0) for reasons in (["it was late"], []))
    others = [made(accept, "any", run, [], 0)] * 18
    found = accept.judge([unfaithful, *others])
    assert found.wrong == ["driver: net was not checked"]
    assert "- **Not checked**: driver: net, of which no run was faithful" in found.lines
    assert accept.judge([unfaithful, faithful, *others]).wrong == []


@pytest.mark.parametrize(("verdicts", "runs"), [([[]], 1), ([["late"], []], 2), ([["late"], ["late"]], 2)])
def test_a_run_that_a_check_needs_is_repeated_once_if_unfaithful(
    experiment: Path, accept: ModuleType, monkeypatch: pytest.MonkeyPatch, verdicts: list[list[str]], runs: int
) -> None:
    run, left = planned(experiment), list(verdicts)
    monkeypatch.setattr(accept, "carry", lambda name, of, _program: made(accept, name, of, left.pop(0), 0))
    assert len(accept.carry_until_faithful("driver: net", run)) == runs


def test_mice_meet_a_congested_path_as_often_as_they_should(accept: ModuleType) -> None:
    name = "one congested path: TCP"
    run = planned(CONGESTED, **{"horizon.arrivals": '"3s"'})
    assert run["scheme"] == "TCP"
    some = made(accept, name, run, [], 0)
    mice = [flow for flow in some.done["measured"]["flows"] if flow["index"] > 1]
    for flow in mice[::3]:
        flow["fct_ns"] = 10**8
    assert accept.judge([some]).wrong == []
    for flow in mice:
        flow["fct_ns"] = 10**8
    assert "meet the long flows" in accept.judge([some]).wrong[0]


def test_a_run_is_a_row_and_the_table_stands_between_its_marks(experiment: Path, accept: ModuleType) -> None:
    run = made(accept, "any", planned(experiment), [], 0)
    assert accept.row(run) == "| any | 1,234 | 20 | 20 | 6, 6 | 25 % | – | faithful |"
    found = accept.judge([run])
    text = accept.report([run], found, TIMERS)
    assert text.splitlines()[2] == accept.row(run)
    assert all(late in text for late in TIMERS)
    page = accept.PAGE.read_text()
    once = accept.into_page(page, text)
    assert text in once
    assert accept.into_page(once, text) == once


def test_a_failure_is_noted_beside_the_evidence_which_stays(experiment: Path, accept: ModuleType) -> None:
    run = planned(experiment)
    good, bad = (made(accept, "any", run, unfaithful, 0) for unfaithful in ([], ["it was late"]))
    before = accept.noted(accept.PAGE.read_text(), [good], accept.judge([good]), TIMERS)
    failed = accept.noted(before, [bad], accept.judge([bad]), TIMERS)
    begin, end = accept.FAILED
    line = failed.split(begin)[1].split(end)[0]
    assert "1 of 1 runs are not faithful" in line
    assert accept.row(bad) in line
    assert failed.replace(line, "") == before.replace(before.split(begin)[1].split(end)[0], "")
    again = accept.noted(failed, [good], accept.judge([good]), TIMERS)
    assert line in again
