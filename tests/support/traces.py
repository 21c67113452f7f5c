"""Experiments with one trace, and their flows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tailcut
from tailcut import _core
from tailcut.plan import Plan
from tailcut.traces import read_table

STAR = '[topology]\nkind = "star"\nhosts = 16\n'
ARRIVALS = '[horizon]\narrivals = "1s"\n'


class Flow(NamedTuple):
    """A flow as the simulator carries it."""

    id: int
    src: int
    dst: int
    bytes: int
    start_ns: int


def experiment(
    directory: Path,
    content: str | bytes,
    more: str = "",
    *,
    name: str = "flows.csv",
    topology: str = STAR,
    rest: str = ARRIVALS,
) -> Path:
    """Writes a trace and an experiment that names it; ``more`` are further keys of the traffic."""
    (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    path = directory / "trace.toml"
    path.write_text(
        f'title = "t"\n{topology}[traffic]\nkind = "trace"\nfile = "{name}"\n{more}\n{rest}', encoding="utf-8"
    )
    return path


def flows(plan: Plan, run: int = 0) -> list[Flow]:
    """Returns the simulator's flows of a run."""
    demand = json.loads(_core.demand(json.dumps(plan["runs"][run]), read_table))
    return [Flow(one["id"], one["src"], one["dst"], one["bytes"], one["start_ps"] // 1000) for one in demand["flows"]]


def read(directory: Path, content: str | bytes, more: str = "", **others: Any) -> list[Flow]:
    """Returns the flows of a trace."""
    return flows(tailcut.load(experiment(directory, content, more, **others)).plan)


def refusal(path: Path, overrides: Mapping[str, str] | None = None) -> tailcut.ExperimentError:
    """Loads an invalid experiment; returns the error."""
    try:
        tailcut.load(path, set=overrides)
    except tailcut.ExperimentError as error:
        return error
    raise AssertionError("it loads")
