"""A process that makes runs for another: reads jobs as lines of JSON, answers with lines of JSON.

Started as ``python -m tailcut.backends.worker DIRECTORY`` with a job per line on standard input::

    {"run": {...}, "capture": {"points": ["h0"]}, "wait": false}

and lines on standard output: ``{"now_ps": …, "packet_hops": …}`` while it runs, then one of ``{"done": …}`` with an
`Outcome` or ``{"failed": …, "full": …, "traceback": …}`` with a reason, whether the disk is full, and where it was in
the code. It ends when its input does, when nobody listens any more, and on SIGTERM after removing what it had begun.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from tailcut.backends import Capture
from tailcut.plan import PlannedRun
from tailcut.results import room
from tailcut.results.store import State, Store


class Outcome:
    """What became of a job."""

    MADE = "made"
    FOUND = "found"
    BUSY = "busy"


def main() -> None:
    """Work until there is nothing more to do."""
    signal.signal(signal.SIGTERM, _stop)
    lines = _protocol_stream()
    store = Store(Path(sys.argv[1]))

    def tell(message: dict[str, Any]) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    try:
        for line in sys.stdin:
            job = json.loads(line)
            try:
                capture = Capture(**job["capture"]) if job["capture"] else None
                outcome = work(store, job["run"], capture, wait=job["wait"], tell=tell)
            except (Exception, MemoryError) as error:  # noqa: BLE001 - whatever a run dies of, the sweep goes on and says so
                where = traceback.format_exc()
                tell({"failed": f"{type(error).__name__}: {error}", "full": room.is_full(error), "traceback": where})
            else:
                tell({"done": outcome})
    except BrokenPipeError:
        os._exit(1)


def work(
    store: Store,
    run: PlannedRun,
    capture: Capture | None,
    *,
    wait: bool,
    tell: Callable[[dict[str, Any]], None],
) -> str:
    """Make one run unless it is there or another process is making it."""
    from tailcut.backends.sim import make

    with store.claim(run["id"], wait=wait) as ours:
        if not ours:
            return Outcome.BUSY
        if store.state(run["id"]) is State.COMPLETE and (capture is None or capture.is_in(store.about(run["id"]))):
            return Outcome.FOUND
        make(
            run,
            store,
            lambda now_ps, hops, _flows: tell({"now_ps": now_ps, "packet_hops": hops}),
            capture,
        )
        return Outcome.MADE


def _protocol_stream() -> Any:
    """Standard output for messages alone: whatever else prints goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(143)


if __name__ == "__main__":
    main()
