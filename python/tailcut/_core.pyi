from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict

import numpy as np

__all__ = ["ExperimentError", "check_capture", "describe", "load", "run", "schema", "workload"]

class _Column(TypedDict):
    values: np.ndarray[tuple[int], np.dtype[Any]]
    valid: np.ndarray[tuple[int], np.dtype[np.bool_]] | None
    categories: list[str] | None

class _Series(TypedDict):
    name: str
    time_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    value: np.ndarray[tuple[int], np.dtype[np.float64]]
    truncated: bool

class _Captured(TypedDict):
    packets: int
    left_out: int

class _Outcome(TypedDict):
    flows: dict[str, _Column]
    tiers: dict[str, _Column]
    further: dict[str, dict[str, _Column]]
    counters: dict[str, int]
    series: list[_Series]
    facts: dict[str, float]
    captured: _Captured | None

class ExperimentError(ValueError):
    code: str
    message: str
    file: str
    line: int | None
    column: int | None
    key: str
    expected: str | None
    hint: str | None
    rendered: str
    errors: list[dict[str, Any]]

def load(path: str | PathLike[str], overrides: Sequence[tuple[str, str]] = ...) -> str: ...
def run(
    plan_run_json: str,
    on_progress: Callable[[int, int, int], object] | None = None,
    capture: str | None = None,
) -> _Outcome: ...
def check_capture(plan_run_json: str, spec: str) -> None: ...
def schema() -> str: ...
def describe() -> str: ...
def workload(
    name_or_path: str, unit: str = "bytes"
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]: ...
