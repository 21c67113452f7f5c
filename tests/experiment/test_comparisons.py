"""The experiments that are no paper's: each runs here at a smaller scale, and together they leave no component out."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from tailcut import _core
from tailcut.report.figures import Data, draw
from tailcut.report.study import Study
from tailcut.report.theme import theme_for

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "experiments").glob("*.toml"))
SHORT = {"horizon.arrivals": "20ms", "horizon.drain": "100ms"}
SMALLER: dict[str, dict[str, str]] = {
    "balance": {"traffic.share": "0.5"},
    "bbr": {"traffic.sizes": "200KB", "horizon.drain": "3s"},
    "compare": {"topology.k": "4", "traffic.load": "0.6"},
    "detection": {"topology.k": "4"},
    "dumbbell": {"horizon.arrivals": "200ms", "horizon.drain": "3s"},
    "incast": {"traffic.sizes": "20KB"},
    "incast-background": {"traffic.parts.1.load": "0.3"},
    "jobs": {"traffic.parts.0.workers": "8"},
    "multipath": {"horizon.arrivals": "120ms"},
    "quickstart": {"topology.k": "4"},
    "trace": {"horizon.arrivals": "1s"},
}
"""Overrides that make an experiment smaller, beyond a shorter horizon and a single seed."""
FURTHER = {
    "balance": {"glance", "throughput", "segments"},
    "compare": {"glance", "throughput"},
    "detection": {"glance"},
    "jobs": {"glance", "jobs"},
}
"""The figures that an experiment is about, beyond those that every page has."""


@cache
def plan(name: str) -> dict[str, Any]:
    return dict(tailcut.load(ROOT / "experiments" / f"{name}.toml").plan)


def parts(value: Any) -> list[dict[str, Any]]:
    """Every table within a value, itself included."""
    if isinstance(value, dict):
        return [value, *(found for inner in value.values() for found in parts(inner))]
    return [found for inner in value for found in parts(inner)] if isinstance(value, list) else []


def kinds(configurations: list[Any]) -> set[str]:
    return {table["kind"] for configuration in configurations for table in parts(configuration) if "kind" in table}


def known(*groups: str) -> set[str]:
    return {one["name"] for one in json.loads(_core.describe()) if one["group"] in groups}


def everywhere() -> list[Any]:
    """The configurations of all experiments, those of the papers included, with their defaults."""
    files = experiments.shipped()
    return [run["config"] for file in files for run in tailcut.load(file, seeds=1).plan["runs"]]


def test_compare_has_every_scheme() -> None:
    schemes = kinds([run["config"]["scheme"] for run in plan("compare")["runs"]])
    groups = ("queue", "balance", "transport", "transport.congestion", "transport.reordering", "replicate")
    mixtures = {"by-tier"}  # it combines what is compared; "mixed" is the name of an entropy policy as well
    assert known(*groups) - schemes == mixtures


def test_compare_covers_failures_and_both_kinds_of_marks() -> None:
    configurations = [run["config"] for run in plan("compare")["runs"]]
    assert {c["faults"]["active"] for c in configurations} == {False, True}
    assert all(c["faults"]["incidents"] for c in configurations)
    transports = [c["scheme"]["transport"] for c in configurations]
    assert {t.get("ecn") for t in transports if t["kind"] == "tcp"} == {False, True}


def test_compare_takes_a_few_minutes_on_one_core() -> None:
    runs = {run["id"]: run["facts"]["estimated_seconds"] for run in plan("compare")["runs"]}
    assert sum(runs.values()) < 300


def test_every_component_has_an_experiment() -> None:
    groups = ("topology", "queue", "balance", "transport", "transport.congestion", "transport.reordering",
              "replicate", "traffic")  # fmt: skip
    configurations = everywhere()
    assert known(*groups) - kinds(configurations) == {"node-link"}
    tinyflows = [c["scheme"]["balance"] for c in configurations if c["scheme"]["balance"]["kind"] == "tinyflow"]
    words = json.loads(_core.schema())
    for parameter, choice in (("detect", "Detect"), ("reroute", "Reroute")):
        assert {one["const"] for one in words["$defs"][choice]["oneOf"]} == {t[parameter] for t in tinyflows}


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs_at_a_smaller_scale_and_its_page_has_its_figures(name: str, tmp_path: Path) -> None:
    small = tailcut.load(ROOT / "experiments" / f"{name}.toml", set=SHORT | SMALLER.get(name, {}), seeds=1)
    result = tailcut.run(small, out=tmp_path / "results", jobs=1)
    assert not result.missing_runs
    ends = ("delivered", "dropped", "lost_on_links", "in_flight")
    assert (result.runs["sent"] == sum(result.runs[end] for end in ends)).all()
    study = Study.of(result)
    theme = theme_for(study.schemes, study.baseline, interactive=True)
    drawn = {figure.name for _, figure in draw(study, Data.of(study), theme) if figure.panels}
    assert FURTHER.get(name, set()) | {"fct", "slowdown", "links"} <= drawn
