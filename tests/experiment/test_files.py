"""The experiments of this repository are right, by the schema that editors use and by the loader."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support import experiments
from tailcut import _core
from tailcut.traces import schema

ROOT = Path(__file__).parents[2]
EXPERIMENTS = experiments.shipped()
SCHEMA = json.loads((ROOT / "schema" / "experiment.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_checked_in_schema_is_the_generated_one() -> None:
    assert schema.schema() == SCHEMA, "make build && .venv/bin/tailcut schema > schema/experiment.schema.json"


@pytest.mark.parametrize(
    "more",
    [
        {"hosts": "hosts.csv", "window": ["1s", "2s"], "origin": "first", "scale": 0.5},
        {"hosts": {"10.0.0.1": "h3"}, "window": ["2024-05-01T12:00:00Z", "2024-05-02"], "origin": "2024-05-01"},
    ],
)
def test_the_schema_knows_what_a_trace_takes(more: dict[str, Any]) -> None:
    VALIDATOR.validate(
        {"title": "t", "topology": {"kind": "star"}, "traffic": {"kind": "trace", "file": "flows.csv", **more}}
    )


@pytest.mark.parametrize("wrong", [{"window": ["1s"]}, {"scale": 0}, {"origin": 3}, {"hosts": ["h1"]}, {"widnow": []}])
def test_the_schema_refuses_what_a_trace_does_not_take(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(
            {"title": "t", "topology": {"kind": "star"}, "traffic": {"kind": "trace", "file": "flows.csv", **wrong}}
        )


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_validates_against_the_schema(path: Path) -> None:
    VALIDATOR.validate(read(path))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_loads(path: Path) -> None:
    plan = json.loads(_core.load(str(path)))
    assert plan["runs"]
    assert plan["question"], "an experiment asks a question"


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_names_the_schema_for_editors(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith("#:schema ")
    assert (path.parent / first.removeprefix("#:schema ")).resolve() == ROOT / "schema" / "experiment.schema.json"


def test_a_plan_can_be_run() -> None:
    overrides = [("topology.k", "4"), ("horizon.arrivals", "1ms"), ("seeds", "1"), ("traffic.load", "0.5")]
    plan = json.loads(_core.load(str(ROOT / "experiments" / "quickstart.toml"), overrides))
    told: list[tuple[int, int, int]] = []
    made = _core.run(json.dumps(plan["runs"][0]), lambda *progress: told.append(progress))
    flows = made["flows"]
    assert len(flows["id"]["values"]) == plan["runs"][0]["facts"]["flows"]
    assert flows["class"]["categories"] == ["short", "long"]
    assert made["counters"]["sent"] == sum(made["counters"][end] for end in ("delivered", "dropped", "in_flight"))


def test_an_exception_of_the_progress_callback_stops_the_run_and_is_passed_on() -> None:
    overrides = [("seeds", "1"), ("traffic.load", "0.8")]
    plan = json.loads(_core.load(str(ROOT / "experiments" / "quickstart.toml"), overrides))

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.run(json.dumps(plan["runs"][0]), stop)


def test_a_plan_whose_run_was_edited_is_refused() -> None:
    plan = json.loads(_core.load(str(ROOT / "experiments" / "quickstart.toml"), [("seeds", "1")]))
    run = plan["runs"][0]
    run["config"]["horizon"]["drain"] = "7s"
    with pytest.raises(ValueError, match="plan again"):
        _core.run(json.dumps(run))


WRONG = {
    "text for a number": {"topology": {"kind": "fat-tree", "k": "4"}},
    "no such kind": {"topology": {"kind": "fattree"}},
    "no such key": {"topology": {"kind": "fat-tree", "kk": 4}},
    "no unit": {"horizon": {"arrivals": 1}},
    "no such section": {"quueue": {}},
    "a scheme with traffic": {"schemes": {"A": {"traffic": {"load": 0.1}}}},
    "an empty sweep": {"sweep": {"traffic.load": []}},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_the_schema_marks_what_the_loader_refuses(change: dict[str, Any], tmp_path: Path) -> None:
    right = {"title": "t", "topology": {"kind": "fat-tree"}, "traffic": {"kind": "poisson"}}
    VALIDATOR.validate(right)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(right | change)


@pytest.mark.parametrize(
    "scheme",
    [
        {"like": "A"},
        {"transport": {"min_rto": "1ms"}},
        {"replicate": {"copies": 3}},
        {"replicate": {"kind": "repsyn", "copies": 3}},
        {"queue": {"limit": "36KB"}},
    ],
)
def test_the_schema_lets_schemes_change_parts(scheme: dict[str, Any]) -> None:
    base = {"title": "t", "topology": {"kind": "fat-tree"}, "traffic": {"kind": "poisson"}}
    VALIDATOR.validate(base | {"schemes": {"A": {}, "B": scheme}})


def test_an_error_carries_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('title = "t"\n[topology]\nkk = 4\n[traffic]\n')
    with pytest.raises(_core.ExperimentError) as raised:
        _core.load(str(path))
    error = raised.value
    assert (error.code, error.line, error.column, error.key) == ("TC-E010", 3, 1, "topology.kk")
    assert error.hint == "did you mean `k`?"
    assert error.file == str(path)
    assert "kk = 4" in error.rendered
    assert str(error) == error.rendered


def test_workloads_come_as_arrays() -> None:
    size, probability = _core.workload("web-search")
    assert len(size) == len(probability)
    assert probability[-1] == 1.0
    with pytest.raises(_core.ExperimentError, match="did you mean"):
        _core.workload("websearch")
