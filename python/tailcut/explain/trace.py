"""What decided on single flows: the lines of the simulator's trace points, from a run made again."""

import json
from collections.abc import Callable, Sequence

from tailcut import _core
from tailcut.errors import ExplainError
from tailcut.plan import Plan, label, unique_runs
from tailcut.traces import read_table


def trace(plan: Plan, flows: Sequence[int], write: Callable[[str], object]) -> None:
    """Simulate every run of a plan and hand `write` the trace lines of these flows; nothing is stored.

    Where the plan has several runs, a line names each before its own.

    Raises:
        ExplainError: TC-X003: a run has no such flow, or cannot be simulated; TC-X007: this build has no trace points.
    """
    if not _core.TRACES:
        raise ExplainError(
            "TC-X007",
            "this build has no trace points: builds made for speed leave them out",
            "make build, in a checkout, compiles one that has them",
        )
    runs = unique_runs(plan).values()
    for run in runs:
        if len(runs) > 1:
            write(f"{label(run)}:")
        try:
            _core.trace(json.dumps(run), list(flows), write, read_table)
        except ValueError as error:
            raise ExplainError("TC-X003", f"{label(run)}: {error}") from None
