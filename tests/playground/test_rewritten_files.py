"""The page writes the file of an experiment anew from its plan: without the defaults, it asks for the same runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import experiments, playground
from support.skipping import missing
from tailcut import _core

EXPERIMENTS = experiments.shipped()


def first_point(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan without what a sweep adds: the page has no sweeps."""
    return {**plan, "runs": [run for run in plan["runs"] if run["point"] == plan["runs"][0]["point"]]}


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, dict[str, Any], str]]:
    """Every experiment that comes along: its file, its plan, and what the page makes of it."""
    if reason := playground.no_scripts():
        missing(reason, "make playground")
    components = tmp_path_factory.mktemp("page") / "components.json"
    components.write_text(_core.describe())
    plans = [first_point(json.loads(_core.load(str(path), [("seeds", "2")]))) for path in EXPERIMENTS]
    command = ["node", str(playground.NODE.with_name("rewrite.mjs")), str(components)]
    lines = "".join(json.dumps(plan) + "\n" for plan in plans)
    made = subprocess.run(command, input=lines, text=True, capture_output=True, check=True).stdout.splitlines()
    return list(zip(EXPERIMENTS, plans, map(json.loads, made), strict=True))


def test_every_experiment_asks_for_the_same_runs(rewritten: list[tuple[Path, dict[str, Any], str]]) -> None:
    for path, plan, text in rewritten:
        again = json.loads(_core.loads("rewritten.toml", text, str(path.parent)))
        assert [run["id"] for run in again["runs"]] == [run["id"] for run in plan["runs"]], path
        assert [run["scheme"] for run in again["runs"]] == [run["scheme"] for run in plan["runs"]], path
        same = ("title", "baseline", "schemes", "measure", "model", "seeds")
        assert {key: again[key] for key in same} == {key: plan[key] for key in same}, path
        assert again["question"].split() == plan["question"].split(), path
