"""Worker processes of this machine and what they are told: one run at a time each, longest first."""

import contextlib
import queue
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tailcut.backends import Options, Progress, tell_started
from tailcut.backends.failures import Failures
from tailcut.backends.worker import Outcome
from tailcut.backends.worker_process import MessageQueue, WorkerProcess
from tailcut.plan import PlannedRun, label
from tailcut.results import machine
from tailcut.results.store import Store

WORKER_BYTES = 150_000_000  # the interpreter with Polars, before any run
MEMORY_SHARE = 0.8  # of what is available; runs beyond it wait for others to end
WAIT_SECONDS = 0.5  # Windows lets Ctrl-C in only between waits


def threads_of(cores: int, busy: int, beginning: int) -> int:
    """Returns how many threads each of so many runs that begin now may have, beside ``busy`` of so many cores."""
    return max(1, (cores - busy) // beginning)


@dataclass
class _Worker:
    child: WorkerProcess
    run: PlannedRun | None = None
    threads: int = 1  # of its run, at most
    deadline: float = float("inf")  # of its run, on the monotonic clock


@dataclass
class Pool:
    """Makes runs with as many workers as there are cores for their threads, or as asked for.

    With ``threads="auto"`` each core has a run as long as there are enough; the last runs get the cores that are idle.
    """

    store: Store
    progress: Progress
    options: Options
    _waiting: deque[PlannedRun] = field(default_factory=deque)
    _elsewhere: deque[PlannedRun] = field(default_factory=deque)
    _workers: list[_Worker] = field(default_factory=list)
    _said: MessageQueue = field(default_factory=queue.SimpleQueue)
    _speaking: int = 0
    _failures: Failures = field(init=False)
    _memory: float = float("inf")
    _idle_cores: int = 1

    def make(self, runs: Sequence[PlannedRun]) -> None:
        """Make ``runs`` in the order given.

        Raises:
            RunError: some failed; the others are in the store.
            KeyboardInterrupt: interrupted; what had finished is in the store.
        """
        self._failures = Failures(self.store, self.progress, self.options.capture)
        self._waiting.extend(runs)
        available = machine.available_memory()
        self._memory = float("inf") if available is None else available * MEMORY_SHARE
        try:
            self._look_for_idle_cores()
            threads = 1 if self.options.threads == "auto" else self.options.threads
            workers = self.options.jobs or max(1, machine.cores() // threads)
            for _ in range(min(workers, len(runs))):
                self._start()
            self._assign()
            while self._speaking and not (self._failures.has_failed and self.options.fail_fast):
                with contextlib.suppress(queue.Empty):
                    child, message = self._said.get(timeout=WAIT_SECONDS)
                    self._read(next(worker for worker in self._workers if worker.child is child), message)
                self._stop_hung()
                self._look_for_idle_cores()
                self._assign()
        finally:
            self._stop()
        self._failures.raise_if_any(len(runs))

    def _start(self) -> None:
        self._workers.append(_Worker(WorkerProcess(self.store.directory, self._said)))
        self._speaking += 1

    def _assign(self) -> None:
        """Give each idle worker a run, as far as memory and disk allow; what other processes are making comes last."""
        for worker in self._workers:
            if worker.run is not None or not worker.child.open:
                continue
            source = self._waiting or self._elsewhere
            if not source:
                worker.child.finish()
                continue
            busy = [other.run for other in self._workers if other.run is not None]
            needed = sum(WORKER_BYTES + run["facts"]["estimated_memory_bytes"] for run in [*busy, source[0]])
            if busy and needed > self._memory:
                continue
            if not self._failures.has_room([*busy, source[0]]):
                if not busy:
                    self._stop_beginning()
                    worker.child.finish()
                continue
            self._begin(worker, source.popleft(), wait=source is self._elsewhere)

    def _stop_beginning(self) -> None:
        self._waiting.clear()
        self._elsewhere.clear()

    def _begin(self, worker: _Worker, run: PlannedRun, *, wait: bool) -> None:
        worker.threads = self._threads()
        worker.run = run
        tell_started(self.progress, run)
        worker.deadline = float("inf") if wait else self._deadline()  # a run that is waited for has not begun
        auto = self.options.threads == "auto"
        worker.child.send(run, self.options.capture, wait=wait, threads=worker.threads, auto=auto)

    def _threads(self) -> int:
        """Returns how many threads a run may have that begins now, and is no longer among those that wait."""
        if self.options.threads != "auto":
            return self.options.threads
        idle = sum(worker.run is None and worker.child.open for worker in self._workers)
        return threads_of(self._idle_cores, self._busy(), min(idle, 1 + len(self._waiting) + len(self._elsewhere)))

    def _busy(self) -> int:
        """Returns how many threads the runs under way have at most."""
        return sum(worker.threads for worker in self._workers if worker.run is not None)

    def _look_for_idle_cores(self) -> None:
        """Note the cores that no other program wants, before workers start and where a run is to begin."""
        begins = not self._workers or any(worker.run is None for worker in self._workers)
        if self.options.threads == "auto" and begins and (self._waiting or self._elsewhere):
            self._idle_cores = machine.idle_cores(self._busy())

    def _deadline(self) -> float:
        """Returns the deadline of a run that begins now."""
        limit = self.options.limit_seconds
        return float("inf") if limit is None else time.monotonic() + limit

    def _stop_hung(self) -> None:
        """Give up runs that have taken too long; their end is heard as that of any worker."""
        for worker in self._workers:
            if worker.run is not None and worker.deadline <= time.monotonic():
                self._failures.fail(worker.run, f"it took longer than the limit of {self.options.limit_seconds:g} s")
                worker.run = None
                worker.child.kill()
                if self._waiting or self._elsewhere:
                    self._start()

    def _read(self, worker: _Worker, message: dict[str, Any] | None) -> None:
        if message is not None:
            self._heard(worker, message)
            return
        self._speaking -= 1
        if self._lost(worker) and (self._waiting or self._elsewhere):
            self._start()

    def _heard(self, worker: _Worker, message: dict[str, Any]) -> None:
        run = worker.run
        if run is None:
            return  # it was given up
        if "begun" in message:
            worker.deadline = self._deadline()
            return
        if "now_ps" in message:
            self.progress.advanced(run["id"], message["now_ps"], message["packet_hops"])
            return
        if "one_thread" in message:
            self.progress.note(f"{label(run)}: on one thread, since {message['one_thread']}")
            return
        worker.run = None
        if "failed" in message:
            self._failures.fail(run, message["failed"], message["traceback"])
            if message["full"]:
                self._failures.was_full(label(run))
                self._stop_beginning()
        elif message["done"] == Outcome.BUSY:
            self.progress.note(f"{label(run)}: another process is making it")
            self._elsewhere.append(run)
        else:
            self.progress.finished(run["id"])

    def _lost(self, worker: _Worker) -> bool:
        """A worker has closed its output: it had nothing more to do, or it died in the middle of a run (then True)."""
        how = worker.child.wait_for_exit()
        if worker.run is None:
            return False
        self._failures.fail(worker.run, f"the worker process ended with {how}")
        worker.run = None
        return True

    def _stop(self) -> None:
        """End every worker, gently first; each removes what it had begun."""
        for worker in self._workers:
            worker.child.ask_to_stop()
        for worker in self._workers:
            worker.child.stop()
        self.store.clear_leftovers()
