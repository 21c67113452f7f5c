"""A process of this machine that makes runs: started, told a job, heard, stopped.

It is a fresh interpreter (not a fork, and without importing the caller's ``__main__``), in a process group of its own:
Ctrl-C reaches the caller alone, which then stops its children in order.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import IO, Any, TypeAlias

from tailcut.backends import Capture
from tailcut.plan import PlannedRun

STOP_SECONDS = 10.0
KILLED = 9

# One thread each: the runs are the parallelism, and the order of rows is nobody's guess.
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

MessageQueue: TypeAlias = "queue.SimpleQueue[tuple[WorkerProcess, dict[str, Any] | None]]"
"""Messages of children in order of arrival; None for the end of a child's output."""


class WorkerProcess:
    """A worker process (`tailcut.backends.worker`) that puts runs into one store.

    The process ends with this object at the latest, so that a thread that ends without a word leaves none behind.
    """

    def __init__(self, directory: Path, said: MessageQueue) -> None:
        self._process = subprocess.Popen(
            # -P: a random.py in the user's directory is none of ours.
            [sys.executable, "-P", "-m", "tailcut.backends.worker", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
            process_group=0,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
        )
        # A thread listens: not every system can wait for several pipes.
        assert self._process.stdout is not None  # noqa: S101 - opened with a pipe
        self._ear = threading.Thread(target=_hear, args=(self._process.stdout, weakref.ref(self), said), daemon=True)
        self._ear.start()
        weakref.finalize(self, _end, self._process, os.getpid()).atexit = False  # then its input ends, and so does it

    def send(
        self, run: PlannedRun, capture: Capture | None, *, wait: bool, threads: int = 1, auto: bool = False
    ) -> None:
        """Tell it to make a run; if it has died, it says nothing more."""
        points = capture.spec if capture else None
        job = {"run": run, "capture": points, "wait": wait, "threads": threads, "auto": auto}
        assert self._process.stdin is not None  # noqa: S101 - opened with a pipe
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def open(self) -> bool:
        """Whether it still takes jobs."""
        return self._process.stdin is not None and not self._process.stdin.closed

    def finish(self) -> None:
        """No more jobs: it ends by itself."""
        assert self._process.stdin is not None  # noqa: S101 - opened with a pipe
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def wait_for_exit(self) -> str:
        """Wait for its end; how it ended, in words that follow "the worker process ended with"."""
        code = self._process.wait()
        self._close()
        how = f"signal {_name(-code)}" if code < 0 else f"exit code {code}"
        return f"{how} (out of memory? try --jobs 1)" if code == -KILLED else how

    def ask_to_stop(self) -> None:
        """Ask it to end and to remove what it had begun."""
        if self._process.poll() is None:
            self._process.terminate()

    def stop(self) -> None:
        """End it, gently first."""
        self.ask_to_stop()
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._ear.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _hear(stdout: IO[bytes], child: "weakref.ref[WorkerProcess]", said: MessageQueue) -> None:
    """Passes on what a child says, for as long as somebody holds the child."""

    def put(message: dict[str, Any] | None) -> None:
        there = child()
        if there is not None:
            said.put((there, message))

    with stdout:
        for line in stdout:
            if line.endswith(b"\n"):  # half a line is what a killed one leaves
                put(json.loads(line))
    put(None)


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Ends a process that nobody holds any more; a fork of its owner leaves it alone."""
    if os.getpid() != owner or process.returncode is not None:
        return
    process.kill()
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _name(number: int) -> str:
    """A signal's name; its number where it has none, as most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
