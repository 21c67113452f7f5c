"""A process that makes the lab stutter: again and again it stops the lab's processes, or its fabric only, for a while.

As root it has the highest priority: on a busy machine it would otherwise wait for a processor while the fabric runs.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, cast

from support.kernels import MARK
from tailcut.lab.process import COMMAND

FABRIC_STILL_SECONDS, ALL_STILL_SECONDS = 0.05, 0.005
GOES_ON_SECONDS = 0.001
LOOKS_EVERY_SECONDS = 0.002


class Stutter:
    """The process as a test controls it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def begin(self, fabric: int) -> None:
        """Makes this fabric stutter from now on."""
        # The number 0 would stop the whole process group of the tests.
        assert fabric > 0
        self._say(f"fabric {fabric}")

    def begin_with_the_next_run(self) -> None:
        """Makes all processes of this process's next run stutter, from its first instant on."""
        self._say(f"of {os.getpid()}")

    def end(self) -> None:
        """Ends the stutter."""
        self._process.terminate()
        self._process.wait()

    def _say(self, line: str) -> None:
        to = cast("IO[str]", self._process.stdin)
        to.write(line + "\n")
        to.flush()


@contextmanager
def stuttering() -> Iterator[Stutter]:
    """Starts the process, which lasts as long as the block."""
    # Without the token of the test, by which the processes of its runs are found.
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    with subprocess.Popen(
        [sys.executable, "-m", "support.stutter"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        stutter = Stutter(process)
        try:
            assert cast("IO[str]", process.stdout).readline() == "ready\n"
            yield stutter
        finally:
            stutter.end()


def run_of(caller: int) -> int:
    """Waits for the process that ``caller`` starts for a run; returns it. The run's others are in its group."""
    while True:
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # processes come and go
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == caller and COMMAND[-1].encode() in (place / "cmdline").read_bytes().split(b"\0"):
                    return int(place.name)
        time.sleep(LOOKS_EVERY_SECONDS)


def stutter(tell: Callable[[int], None], still_seconds: float) -> None:
    """Stops and continues processes by ``tell`` until they have ended or this process is terminated."""
    with suppress(ProcessLookupError):
        try:
            while True:
                tell(signal.SIGSTOP)
                time.sleep(still_seconds)
                tell(signal.SIGCONT)
                # Busy-wait: on a busy machine a sleep would end late, and the lab run all that
                # time.
                goes_on_until = time.monotonic() + GOES_ON_SECONDS
                while time.monotonic() < goes_on_until:
                    pass
        finally:
            tell(signal.SIGCONT)


def main() -> None:
    """Reads one line, ``fabric PID`` or ``of PID``, and makes that fabric, or the next run of that process, stutter."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(os.SCHED_FIFO)))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    what, _, number = sys.stdin.readline().partition(" ")
    if what == "fabric":
        stutter(partial(os.kill, int(number)), FABRIC_STILL_SECONDS)
    elif what == "of":
        stutter(partial(os.killpg, run_of(int(number))), ALL_STILL_SECONDS)


if __name__ == "__main__":
    main()
