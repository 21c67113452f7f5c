"""The process that a run of the lab lives in, as its caller sees it."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import IO, Any, cast

from tailcut.lab import fabrics, programs
from tailcut.lab.worker import PROBE, PROBE_TIMERS

COMMAND = (sys.executable, "-P", "-m", "tailcut.lab.worker")  # -P: a json.py in the user's directory is none of ours
LONGEST_SECONDS = 1e9  # of a timer, whose end must be a time that the system has; longer limits are none
PATIENCE_SECONDS = 300.0  # for what is not a run; a process that ends is noticed at once

ENDED = "the lab's process ended before the run did"


class LabError(Exception):
    """A run of the lab failed."""


class _EndedError(Exception):
    """The worker process ended before it received its request."""


@contextmanager
def _inside(line: str, seconds: float | None) -> Iterator[Iterator[str]]:
    """The answers of such a process; it is killed when the block is left, and all that it has started with it."""
    with subprocess.Popen(  # noqa: S603 - this interpreter, and nothing of the caller's
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        process_group=0,  # Ctrl-C is for the caller, who ends it
    ) as child:
        timer = Timer(seconds, child.kill) if seconds is not None and seconds <= LONGEST_SECONDS else None
        try:
            if timer is not None:
                timer.start()
            to, answers = cast("IO[str]", child.stdin), cast("IO[str]", child.stdout)
            try:
                to.write(line + "\n")
                to.flush()
            except BrokenPipeError:
                raise _EndedError from None
            # A line that was cut off is of a process that has gone.
            yield (answer for answer in answers if answer.endswith("\n"))
        finally:
            if timer is not None:
                timer.cancel()
            child.kill()


def run(
    planned: str,
    on_progress: Callable[[int, int], None],
    limit_seconds: float | None,
    program: Sequence[str] | None = None,
    guests: Sequence[Mapping[str, Any]] = (),
    capture: Mapping[str, Any] | None = None,
    fabric: str = fabrics.ENGINE,
) -> dict[str, Any]:
    """Carry out a run.

    Args:
        planned: a run of a plan, as JSON on one line.
        on_progress: told now and then how far it is: nanoseconds from its beginning, and flows that are over.
        limit_seconds: how long it may take; none for any time.
        program: how `repnet-bench` is started, if it is to carry the flows.
        guests: programs that run on hosts beside the flows: ``host``, and ``command`` with its arguments.
        capture: what of the frames of hosts to write: ``file``, and ``spec`` as `tailcut.backends.Capture` has it.
        fabric: what lies between the hosts, a name of `tailcut.lab.fabrics`.

    Raises:
        LabError: it failed; says why.
    """
    besides = {
        "program": program,
        "guests": guests,
        "capture": capture,
        "fabric": fabric,
        "programs": programs.directory(),
    }
    asked = f'{{"run": {planned}, {json.dumps(besides)[1:]}'
    began = time.monotonic()
    so_far = "the run had not begun"
    try:
        with _inside(asked, limit_seconds) as answers:
            for answer in answers:
                told = json.loads(answer)
                if "now" in told:
                    now_ns, over = told["now"]
                    so_far = f"it was at {now_ns / 1e9:.3g} s, and {over} flows had ended"
                    on_progress(now_ns, over)
                elif "failed" in told:
                    raise LabError(told["failed"])
                elif "done" in told:
                    done: dict[str, Any] = told["done"]
                    return done
    except _EndedError:
        pass
    if limit_seconds is not None and time.monotonic() - began >= limit_seconds:
        raise LabError(f"it took longer than the limit of {limit_seconds:g} s: {so_far}")
    raise LabError(ENDED)


def probe(*, timers: bool) -> list[dict[str, Any]]:
    """Returns the capabilities of this kernel: ``name``, ``offered``, and what was ``found``.

    Args:
        timers: also how late the machine's own timers are, which takes most of a second.

    Raises:
        LabError: nothing could be tried.
    """
    with contextlib.suppress(_EndedError), _inside(PROBE_TIMERS if timers else PROBE, PATIENCE_SECONDS) as answers:
        for answer in answers:
            found: list[dict[str, Any]] = json.loads(answer)
            return found
    raise LabError("the lab's process ended before it had probed anything")
