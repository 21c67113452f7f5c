"""Worker processes and what they are told: one run at a time each, longest first.

Workers are fresh interpreters (not forks, and without importing the caller's ``__main__``), in a process group of their
own: Ctrl-C reaches the parent alone, which then stops them in order.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tailcut.backends import Options, Progress
from tailcut.backends.worker import Outcome
from tailcut.errors import RunError
from tailcut.plan import PlannedRun, label
from tailcut.results import machine
from tailcut.results.store import Store
from tailcut.units import time_ps

WORKER_BYTES = 150_000_000  # the interpreter with Polars, before any run
MEMORY_SHARE = 0.8  # of what is available; runs beyond it wait for others to end
STOP_SECONDS = 10.0


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    run: PlannedRun | None = None
    partial: bytes = b""

    @property
    def descriptor(self) -> int:
        assert self.process.stdout is not None  # noqa: S101 - opened with a pipe
        return self.process.stdout.fileno()

    def send(self, job: dict[str, Any]) -> None:
        assert self.process.stdin is not None  # noqa: S101 - opened with a pipe
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()


@dataclass
class Pool:
    """Makes runs with as many workers as there are cores, or as asked for."""

    store: Store
    progress: Progress
    options: Options
    _waiting: deque[PlannedRun] = field(default_factory=deque)
    _elsewhere: deque[PlannedRun] = field(default_factory=deque)
    _workers: list[_Worker] = field(default_factory=list)
    _failures: dict[str, str] = field(default_factory=dict)
    _memory: float = float("inf")

    def make(self, runs: Sequence[PlannedRun]) -> None:
        """Make ``runs`` in the order given.

        Raises:
            RunError: some failed; the others are in the store.
            KeyboardInterrupt: interrupted; what had finished is in the store.
        """
        self._waiting.extend(runs)
        available = machine.available_memory()
        self._memory = float("inf") if available is None else available * MEMORY_SHARE
        try:
            with selectors.DefaultSelector() as selector:
                for _ in range(min(self.options.jobs or machine.cores(), len(runs))):
                    self._start(selector)
                self._assign()
                while selector.get_map():
                    for key, _ in selector.select():
                        self._read(key.data, selector)
                    self._assign()
        finally:
            self._stop()
        if self._failures:
            raise RunError(
                "TC-R001",
                "\n".join([f"{len(self._failures)} of {len(runs)} runs failed:", *self._failures.values()]),
                "the other runs are kept; the same command makes what is missing",
            )

    def _start(self, selector: selectors.BaseSelector) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "tailcut.backends.worker", str(self.store.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # One thread each: the runs are the parallelism, and the order of rows is nobody's guess.
            env={
                **os.environ,
                "POLARS_MAX_THREADS": "1",
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
            process_group=0,
        )
        worker = _Worker(process)
        self._workers.append(worker)
        selector.register(worker.descriptor, selectors.EVENT_READ, worker)

    def _assign(self) -> None:
        """Give each idle worker a run, as far as memory allows; what other processes are making comes last."""
        for worker in self._workers:
            if worker.run is not None or worker.process.stdin is None or worker.process.stdin.closed:
                continue
            queue = self._waiting or self._elsewhere
            if not queue:
                worker.process.stdin.close()
                continue
            busy = [other.run for other in self._workers if other.run is not None]
            needed = sum(WORKER_BYTES + run["facts"]["estimated_memory_bytes"] for run in [*busy, queue[0]])
            if busy and needed > self._memory:
                continue
            self._begin(worker, queue.popleft(), wait=queue is self._elsewhere)

    def _begin(self, worker: _Worker, run: PlannedRun, *, wait: bool) -> None:
        worker.run = run
        horizon = run["config"]["horizon"]
        self.progress.started(
            run["id"],
            label(run),
            time_ps(horizon["arrivals"]) + time_ps(horizon["drain"]),
            run["facts"]["expected_packet_hops"],
        )
        with contextlib.suppress(BrokenPipeError):  # it has died; reading from it says so
            worker.send(
                {"run": run, "capture": self.options.capture.spec if self.options.capture else None, "wait": wait}
            )

    def _read(self, worker: _Worker, selector: selectors.BaseSelector) -> None:
        received = os.read(worker.descriptor, 1 << 16)
        if not received:
            selector.unregister(worker.descriptor)
            if self._lost(worker) and (self._waiting or self._elsewhere):
                self._start(selector)
            return
        *lines, worker.partial = (worker.partial + received).split(b"\n")
        for line in lines:
            self._heard(worker, json.loads(line))

    def _heard(self, worker: _Worker, message: dict[str, Any]) -> None:
        run = worker.run
        assert run is not None  # noqa: S101 - workers speak of the job that they have
        if "now_ps" in message:
            self.progress.advanced(run["id"], message["now_ps"], message["packet_hops"])
            return
        worker.run = None
        if "failed" in message:
            self._fail(run, message["failed"])
        elif message["done"] == Outcome.BUSY:
            self.progress.note(f"{label(run)}: another process is making it")
            self._elsewhere.append(run)
        else:
            self.progress.finished(run["id"])

    def _lost(self, worker: _Worker) -> bool:
        """A worker has closed its output: it had nothing more to do, or it died in the middle of a run (then True)."""
        code = worker.process.wait()
        _close(worker.process)
        if worker.run is None:
            return False
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        why = " (out of memory? try --jobs 1)" if code == -signal.SIGKILL else ""
        self._fail(worker.run, f"the worker process ended with {how}{why}")
        worker.run = None
        return True

    def _fail(self, run: PlannedRun, reason: str) -> None:
        self._failures[run["id"]] = f"  {label(run)}: {reason}"
        self.progress.failed(run["id"], reason)

    def _stop(self) -> None:
        """End every worker, gently first; each removes what it had begun."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.terminate()
        for worker in self._workers:
            try:
                worker.process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            _close(worker.process)
        self.store.clear_leftovers()


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
