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
from pathlib import Path
from typing import Any, TypeAlias

from tailcut.backends import Capture
from tailcut.plan import PlannedRun

STOP_SECONDS = 10.0
KILLED = 9

# One thread each: the runs are the parallelism, and the order of rows is nobody's guess.
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

Said: TypeAlias = "queue.SimpleQueue[tuple[Child, dict[str, Any] | None]]"
"""Who said what, in its order; none once a child has closed its output."""


class Child:
    """One worker process (`tailcut.backends.worker`) that puts runs into one store."""

    def __init__(self, directory: Path, said: Said) -> None:
        self._said = said
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
        self._ear = threading.Thread(target=self._hear, daemon=True)
        self._ear.start()

    def _hear(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - opened with a pipe
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # half a line is what a killed one leaves
                self._said.put((self, json.loads(line)))
        self._said.put((self, None))

    def send(self, run: PlannedRun, capture: Capture | None, *, wait: bool) -> None:
        """Tell it to make a run; if it has died, it says nothing more."""
        job = {"run": run, "capture": capture.spec if capture else None, "wait": wait}
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

    def ended(self) -> str:
        """Wait for its end; how it ended, in words that follow "the worker process ended with"."""
        code = self._process.wait()
        self._close()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
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
