from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypedDict

import numpy as np

__all__ = [
    "COMPILER",
    "PROFILE",
    "RESULTS",
    "TRACES",
    "ExperimentError",
    "check_capture",
    "claims",
    "demand",
    "describe",
    "explain",
    "explain_job",
    "lab_check",
    "lab_fabrics",
    "lab_probe",
    "lab_rows",
    "lab_run",
    "load",
    "loads",
    "run",
    "schema",
    "scorecard",
    "shipped",
    "tabulate",
    "trace",
    "workload",
]

COMPILER: str
PROFILE: str
RESULTS: int
TRACES: bool

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
    threads: int
    one_thread: str | None
    thread_times: list[list[float]]

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

# Of a Parquet file: (content, wanted columns) -> (name, kind of cells, cells) of each column.
_ReadTable: TypeAlias = Callable[[bytes, Sequence[str]], Sequence[tuple[str, str, list[Any] | None]]]

def load(
    path: str | PathLike[str],
    overrides: Sequence[tuple[str, str]] = ...,
    read_table: _ReadTable | None = None,
    variant: str | None = None,
) -> str: ...
def loads(
    name: str,
    text: str,
    directory: str | PathLike[str],
    overrides: Sequence[tuple[str, str]] = ...,
    read_table: _ReadTable | None = None,
    variant: str | None = None,
) -> str: ...
def run(
    plan_run_json: str,
    on_progress: Callable[[int, int, int], object] | None = None,
    capture: str | None = None,
    read_table: _ReadTable | None = None,
    threads: int = 1,
    auto: bool = False,
) -> _Outcome: ...
def explain(plan_run_json: str, flows: list[int], most_packets: int, read_table: _ReadTable | None = None) -> str: ...
def explain_job(plan_run_json: str, job: int, read_table: _ReadTable | None = None) -> str: ...
def trace(
    plan_run_json: str, flows: list[int], write: Callable[[str], object], read_table: _ReadTable | None = None
) -> None: ...
def demand(plan_run_json: str, read_table: _ReadTable | None = None) -> str: ...
def tabulate(plan_run_json: str, measured_json: str, read_table: _ReadTable | None = None) -> _Outcome: ...
def check_capture(plan_run_json: str, spec: str) -> None: ...
def lab_check(plan_run_json: str, by_repnet: bool, fabric: str, programs: str | None) -> str: ...
def lab_fabrics() -> str: ...
def lab_run(asked: str) -> None: ...
def lab_probe(programs: str | None, timers: bool) -> str: ...
def lab_rows() -> str: ...
def schema() -> str: ...
def describe() -> str: ...
def workload(
    name_or_path: str, unit: str = "bytes"
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]: ...
def claims() -> list[tuple[str, str]]: ...
def scorecard() -> str: ...
def shipped() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]: ...
