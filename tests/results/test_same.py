"""Schemes that carry every flow in the same nanosecond are named so, and knobs that cannot act are told beforehand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import made_up
from tailcut.plan import Plan
from tailcut.result import Result
from tailcut.results import Store, same

LOADS = {"key": "traffic.load", "values": [0.2, 0.4]}


def result(directory: Path, plan: Plan, times: Mapping[Any, Sequence[float | None]]) -> Result:
    """Results in which each scheme, at each load with each seed, took these times in us."""
    store = Store.create(directory, plan)
    for run in plan["runs"]:
        run["config"]["scheme"]["transport"]["name"] = run["scheme"]
        run["id"] = f"{len(store.runs()):064x}"
        table = made_up.flows(times[run["scheme"], run["point"].get("traffic.load"), run["seed"]])
        made_up.put(store, run, table)
    return Result(store, plan)


def test_schemes_whose_flows_all_take_the_same_time_are_named_in_one_sentence(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["A", "B", "C", "D"], sweep=[], seeds=[1, 2])
    times = {(name, None, seed): [1.0, 2.0, None] for name in "ABCD" for seed in (1, 2)}
    times["D", None, 2] = [1.0, 2.001, None]
    found = result(tmp_path / "results", plan, times).same
    assert found == ["B and C equal A flow by flow: their difference (transport.name) had no effect."]


def test_a_nanosecond_in_one_flow_of_one_seed_is_a_difference(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["A", "B"], sweep=[], seeds=[1, 2])
    times = {(name, None, seed): [1.0, 2.0] for name in "AB" for seed in (1, 2)}
    times["B", None, 2] = [1.001, 2.0]
    assert result(tmp_path / "results", plan, times).same == []


def test_where_schemes_are_equal_at_some_points_only_these_are_named(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["A", "B"], sweep=[LOADS], seeds=[1])  # type: ignore[list-item]
    times = {("A", 0.2, 1): [5.0], ("B", 0.2, 1): [5.0], ("A", 0.4, 1): [5.0], ("B", 0.4, 1): [6.0]}
    (said,) = result(tmp_path / "results", plan, times).same
    assert said.startswith("B equals A flow by flow at load 0.2: ")


def test_unfinished_flows_equal_only_unfinished_flows(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["A", "B", "C"], sweep=[], seeds=[1])
    times: dict[Any, list[float | None]] = {("A", None, 1): [None], ("B", None, 1): [None], ("C", None, 1): [0.0]}
    (said,) = result(tmp_path / "results", plan, times).same
    assert said.startswith("B equals A")


def test_a_run_that_points_and_schemes_share_is_one_row_of_runs(tmp_path: Path) -> None:
    plan = made_up.plan(schemes=["A", "B"], sweep=[LOADS], seeds=[1])  # type: ignore[list-item]
    of_a = [run for run in plan["runs"] if run["scheme"] == "A"]
    for run in of_a:
        run["id"] = of_a[0]["id"]
    store = Store.create(tmp_path / "results", plan)
    for run in {run["id"]: run for run in plan["runs"]}.values():
        made_up.put(store, run, made_up.flows([1.0]))
    found = Result(store, plan)
    assert found.runs["id"].to_list() == list(dict.fromkeys(run["id"] for run in plan["runs"]))
    assert found.totals().height == 4, "each scheme at each point has totals"


# --- beforehand -----------------------------------------------------------------------------------

STAR = """
title = "One path"
seeds = 1
[topology]
kind = "star"
hosts = 4
[traffic]
kind = "poisson"
load = 0.5
[horizon]
arrivals = "20ms"
"""
BALANCERS = """
[schemes.ECMP]
[schemes.Spray]
balance = { kind = "spray" }
[schemes.Turns]
balance = { kind = "round-robin" }
"""
PATHS = STAR.replace('"star"\nhosts = 4', '"leaf-spine"')


def foreseen(text: str, **options: Any) -> list[str]:
    return same.foreseen(tailcut.loads(text, **options).plan)


def test_balancers_on_a_single_path_are_reported_beforehand() -> None:
    assert foreseen(STAR + BALANCERS) == ["Spray and Turns will equal ECMP flow by flow: there is one path."]
    assert foreseen(PATHS + BALANCERS) == [], "two spines"


def test_a_failure_may_leave_several_paths() -> None:
    fails = '[faults]\nincidents = [{ kind = "link-down", link = "s0>h0", at = "1us", until = "2us" }]\n'
    assert foreseen(STAR + fails + BALANCERS) == []


def test_balancers_that_differ_in_something_else_are_not_called_equal() -> None:
    more = BALANCERS + 'transport = { mss = "500B" }\n'
    assert foreseen(STAR + more) == ["Spray will equal ECMP flow by flow: there is one path."]


def test_schemes_of_one_configuration_are_named() -> None:
    (said,) = foreseen(PATHS + "[schemes.A]\n[schemes.B]\n")
    assert said == "B will equal A flow by flow: they are the same configuration."


@pytest.mark.parametrize(("limit", "told"), [("50packets", True), ("500packets", False)])
def test_a_threshold_above_the_queue_is_never_reached(limit: str, told: bool) -> None:
    plan = tailcut.loads(PATHS + '[queue]\nkind = "ecn"\nlimit = "500packets"\nthreshold = "60packets"\n').plan
    for run in plan["runs"]:
        run["config"]["scheme"]["queue"]["limit"] = limit
    said = [one for one in same.foreseen(plan) if "never reached" in one]
    assert (
        said == ["queue.threshold = 60packets of default is above queue.limit = 50packets: it is never reached."] * told
    )


def test_an_axis_without_effect_on_a_scheme_is_reported() -> None:
    text = (
        PATHS
        + '[schemes.Plain]\nqueue = { kind = "drop-tail" }\n'
        + '[schemes.Marks]\nqueue = { kind = "ecn" }\n'
        + '[sweep]\n"schemes.Marks.queue.threshold" = ["10packets", "20packets"]\n'
    )
    assert foreseen(text) == [
        "schemes.Marks.queue.threshold changes nothing for Plain: one run stands for all of its values."
    ]


GIVEN = """
[traffic]
kind = "trace"
flows = [{ src = 0, dst = 1, bytes = "50KB" }, { src = 1, dst = 0, bytes = "5KB" }]
"""


def given(topology: str, seeds: str = "3") -> list[str]:
    """Sentences on seeds that are foreseen of a trace under two schemes."""
    schemes = '[schemes.Fixed]\nbalance = { kind = "ecmp", salt = "fixed" }\n[schemes.Drawn]\n'
    text = f'title = "a trace"\nseeds = {seeds}\n[topology]\n{topology}\n{GIVEN}\n{schemes}'
    return [said for said in foreseen(text) if said.startswith("Seeds")]


def test_seeds_without_effect_are_reported_beforehand() -> None:
    (said,) = given('kind = "star"\nhosts = 2')
    assert said.startswith("Seeds change nothing: the flows are given, and nothing else is drawn.")


def test_schemes_that_draw_no_random_numbers_are_named() -> None:
    (said,) = given('kind = "parallel-paths"\nhosts_per_side = 1\npaths = 2')
    assert said.startswith("Seeds change nothing of Fixed: ")


def test_a_single_seed_gets_no_warning() -> None:
    assert given('kind = "star"\nhosts = 2', seeds="1") == []


def test_flows_drawn_from_the_seed_get_no_warning() -> None:
    assert [said for said in foreseen(STAR + BALANCERS, set={"seeds": 2}) if said.startswith("Seeds")] == []
