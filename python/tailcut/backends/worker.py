"""A process that makes runs for another: reads jobs as lines of JSON, answers with lines of JSON.

Started as ``python -m tailcut.backends.worker DIRECTORY`` with a job per line on standard input::

    {"run": {...}, "capture": {"points": ["h0"]}, "wait": false, "threads": 2, "auto": false}

(with ``auto``, as many of these threads as pay) and lines on standard output: ``{"begun": true}`` once another process
that had the run, and was waited for, has left it, ``{"now_ps": …, "packet_hops": …}`` while it runs,
``{"one_thread": …}`` where one thread simulated it and more were asked for, with the reason, then one of
``{"done": …}`` with an `Outcome` or ``{"failed": …, "full": …, "traceback": …}`` with a reason, whether the disk is
full, and where it was in the code. It ends when its input does, when nobody listens any more, and on SIGTERM after
removing what it had begun, as soon as that can be done in order.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from tailcut.backends import Capture
from tailcut.plan import PlannedRun
from tailcut.results import disk_space
from tailcut.results.store import State, Store


class Outcome:
    """The outcome of a job."""

    MADE = "made"
    FOUND = "found"
    BUSY = "busy"


class Termination:
    """SIGTERM, which ends the process where nothing is half done.

    An exception that comes from nowhere in the middle of an import, or of native code that calls Python back, leaves
    classes half made, and panics. So it is raised while the process waits, and where a run tells how far it is.
    """

    def __init__(self) -> None:
        self._asked = False
        self._waits = False

    def listen(self) -> None:
        """Take the process's SIGTERM over."""
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked = True
        if self._waits:
            self.check()

    def check(self) -> None:
        """Raise SystemExit if the process has been asked to end."""
        if self._asked:
            raise SystemExit(143)

    @contextmanager
    def at_any_moment(self) -> Iterator[None]:
        """Let SystemExit be raised anywhere inside: for what only waits."""
        self._waits = True
        try:
            self.check()
            yield
        finally:
            self._waits = False


def main() -> None:
    """Work until there is nothing more to do."""
    termination = Termination()
    termination.listen()
    lines = _protocol_stream()
    store = Store(Path(sys.argv[1]))

    def tell(message: dict[str, Any]) -> None:
        termination.check()
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    def next_job() -> str:
        with termination.at_any_moment():
            return sys.stdin.readline()

    try:
        for line in iter(next_job, ""):
            job = json.loads(line)
            try:
                capture = Capture(**job["capture"]) if job["capture"] else None
                waiting = termination.at_any_moment()
                outcome = work(
                    store,
                    job["run"],
                    capture,
                    wait=job["wait"],
                    tell=tell,
                    waiting=waiting,
                    threads=job["threads"],
                    auto=job["auto"],
                )
            except (Exception, MemoryError) as error:  # noqa: BLE001 - whatever a run dies of, the sweep goes on and says so
                where = traceback.format_exc()
                tell(
                    {
                        "failed": f"{type(error).__name__}: {error}",
                        "full": disk_space.is_full(error),
                        "traceback": where,
                    }
                )
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
    waiting: AbstractContextManager[None] | None = None,
    threads: int = 1,
    auto: bool = False,
) -> str:
    """Make one run unless it is there or another process is making it, which is waited for in ``waiting``."""
    from tailcut.backends.sim import make

    with ExitStack() as held:
        with waiting or nullcontext():
            ours = held.enter_context(store.claim(run["id"], wait=wait))
        if not ours:
            return Outcome.BUSY
        if wait:
            tell({"begun": True})
        if store.state(run["id"]) is State.COMPLETE and (capture is None or capture.is_in(store.run_record(run["id"]))):
            return Outcome.FOUND
        one_thread = make(
            run,
            store,
            lambda now_ps, hops, _flows: tell({"now_ps": now_ps, "packet_hops": hops}),
            capture,
            threads,
            auto=auto,
        )
        if one_thread is not None:
            tell({"one_thread": one_thread})
        return Outcome.MADE


def _protocol_stream() -> Any:
    """Standard output for messages alone: whatever else prints goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


if __name__ == "__main__":
    main()
