"""Runs made by somebody else: an executor of Python's, or a cluster.

A farm carries out jobs. What is missing is handed to it a few jobs at a time; what comes back is checked before it is
written. The simulator does not know of it, and a farm does not know what a run is.
"""

import contextlib
import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tailcut.backends import Options, Progress, tell_started
from tailcut.backends.failures import Failures
from tailcut.backends.remote import Answer, Job, carry_out, made_by
from tailcut.backends.worker import Outcome
from tailcut.errors import ClusterError, StoreError
from tailcut.plan import PlannedRun, label
from tailcut.results import disk_space
from tailcut.results.store import Store

AHEAD = 2  # jobs handed over for each that can be under way, so that nobody waits for the head
PIECE_BYTES = 8_000_000
MOST_ATTEMPTS = 25  # at a run whose worker was lost
WITH_JOB_BYTES = 1_000_000  # files up to this size go with each job that needs them, larger ones once to each worker
WATCH_SECONDS = 1.0  # between looks at which workers there are

Done = Callable[["Attempt"], None]


@dataclass
class Attempt:
    """A job handed to a farm, and its outcome."""

    job: Job
    answer: Answer | None = None
    error: BaseException | None = None
    where: str | None = None  # the worker that has what is kept


class Farm(Protocol):
    """A set of workers that carry out jobs."""

    @property
    def dashboard(self) -> str | None:
        """The address of a page that shows the workers; none without one."""

    def check(self, runs: Sequence[PlannedRun]) -> None:
        """Checks that the workers can make these runs.

        Raises:
            ClusterError: they cannot, and why.
        """

    @property
    def can_call_workers(self) -> bool:
        """Whether a worker can be called, for what is too large to come with a job or an answer."""

    @property
    def tells(self) -> bool:
        """Whether workers report the start and the progress of a job."""

    def workers(self) -> Mapping[str, int]:
        """Returns the current workers: jobs at a time by address."""

    def submit(self, job: Job, done: Done) -> None:
        """Submits a job; ``done`` is called once, from any thread."""

    def is_worker_loss(self, error: BaseException) -> bool:
        """Returns whether an error means a lost worker, so that the job deserves another attempt."""

    def take_refusals(self) -> list[str]:
        """Returns and clears the reasons for which new workers were refused, a line each."""

    def exclude_worker(self, attempt: Attempt) -> bool:
        """Excludes the worker of an attempt; returns whether others are left."""

    def listen(self, topic: str, heard: Callable[[str, dict[str, Any]], None]) -> None:
        """Call ``heard`` with a run's identifier and what is told of it, from any thread.

        That is ``{"worker": …}`` when its job begins, and ``{"now_ps": …, "packet_hops": …}`` from then on.
        """

    def kept(self, attempt: Attempt) -> dict[str, int]:
        """The files that a worker keeps for us, and their sizes."""

    def read_chunk(self, attempt: Attempt, name: str, offset: int, size: int) -> bytes:
        """Some bytes of one of them."""

    def forget(self, attempt: Attempt) -> None:
        """Forgets results that have been taken."""

    def write_chunk(self, attempt: Attempt, digest: str, token: str, offset: int, content: bytes) -> None:
        """Put some bytes of a file where the worker needs it (see `tailcut.backends.remote.supply`)."""

    def cancel(self) -> None:
        """Carry out nothing more."""


@dataclass
class ExecutorFarm:
    """Any `concurrent.futures.Executor`: a process pool, an MPI pool, Dask's `Client.get_executor()`."""

    executor: Executor
    _under_way: set["Future[Answer]"] = field(default_factory=set)
    dashboard: str | None = None
    tells: bool = False
    can_call_workers: bool = False

    def check(self, runs: Sequence[PlannedRun]) -> None:
        """Have one worker say its version."""
        del runs
        require_same(str(self.executor), self.executor.submit(made_by).result())

    def workers(self) -> Mapping[str, int]:
        """The pool's size, where it has one."""
        return {str(self.executor): int(getattr(self.executor, "_max_workers", None) or 8)}

    def submit(self, job: Job, done: Done) -> None:
        """Hand over one job."""
        try:
            future = self.executor.submit(carry_out, job)
        except RuntimeError as error:  # it is broken, or shut down, and says so here and not in a future
            done(Attempt(job, error=error))
            return
        self._under_way.add(future)

        def ended(future: "Future[Answer]") -> None:
            self._under_way.discard(future)
            attempt = Attempt(job)
            try:
                attempt.answer = future.result()
            except BaseException as error:  # noqa: BLE001 - the head decides what it means
                attempt.error = error
            done(attempt)

        future.add_done_callback(ended)

    def is_worker_loss(self, error: BaseException) -> bool:
        """A broken pool takes no further job, so that no attempt is worth it."""
        del error
        return False

    def take_refusals(self) -> list[str]:
        """Returns no refusal once one worker has reported its version: the others are like it."""
        return []

    def exclude_worker(self, attempt: Attempt) -> bool:
        """An executor chooses its workers itself."""
        del attempt
        return False

    def listen(self, topic: str, heard: Callable[[str, dict[str, Any]], None]) -> None:
        """An executor has no way to tell anything."""

    def kept(self, attempt: Attempt) -> dict[str, int]:
        """Raises ClusterError: kept files can be fetched only where a worker can be named."""
        raise _too_large(attempt)

    def read_chunk(self, attempt: Attempt, name: str, offset: int, size: int) -> bytes:
        """Refused as `kept` is."""
        del name, offset, size
        raise _too_large(attempt)

    def forget(self, attempt: Attempt) -> None:
        """Does nothing: kept files go with the worker's scratch directory."""

    def write_chunk(self, attempt: Attempt, digest: str, token: str, offset: int, content: bytes) -> None:
        """Every file comes with its job."""

    def cancel(self) -> None:
        """Take back what has not begun."""
        for future in list(self._under_way):
            future.cancel()


def _too_large(attempt: Attempt) -> ClusterError:
    return ClusterError(
        "TC-C003",
        f"{label(attempt.job.run)}: its files are too large to come back through this executor",
        "give the workers a directory that they share with this process, or use --cluster",
    )


def require_same(who: str, found: tuple[str, int]) -> None:
    """Refuse workers of another version.

    Raises:
        ClusterError: theirs differs from ours; names both.
    """
    ours = made_by()
    if found != ours:
        raise ClusterError(
            "TC-C002",
            f"{who} has Tailcut {found[0]} (results version {found[1]}), this command is of Tailcut {ours[0]}"
            f" (results version {ours[1]})",
            "install the same version everywhere: results must not depend on where a run is made",
        )


@dataclass
class FarmRunner:
    """Has the missing runs of a plan made by a farm."""

    store: Store
    progress: Progress
    options: Options
    farm: Farm
    _waiting: deque[PlannedRun] = field(default_factory=deque)
    _elsewhere: deque[PlannedRun] = field(default_factory=deque)
    _events: "queue.SimpleQueue[Attempt | tuple[str, dict[str, Any]]]" = field(default_factory=queue.SimpleQueue)
    _under_way: dict[str, PlannedRun] = field(default_factory=dict)
    _supplied: set[tuple[str | None, str]] = field(default_factory=set)  # worker and SHA-256
    _told: set[str] = field(default_factory=set)
    _workers: Mapping[str, int] = field(default_factory=dict)
    _watched: float = float("-inf")
    _attempts: dict[str, int] = field(default_factory=dict)
    _failures: Failures = field(init=False)
    _contents: dict[str, bytes] = field(default_factory=dict)

    def make(self, runs: Sequence[PlannedRun]) -> None:
        """Make ``runs`` in the order given, as far as the farm keeps to it.

        Raises:
            RunError: some failed; the others are in the store.
            ClusterError: the workers cannot make them, or all are gone.
            KeyboardInterrupt: interrupted; what had finished is in the store.
        """
        self._failures = Failures(self.store, self.progress, self.options.capture)
        self.farm.check(runs)
        self._workers = self.farm.workers()
        if self.farm.tells:
            shown = f"; what they do is shown at {self.farm.dashboard}" if self.farm.dashboard else ""
            self.progress.note(f"{self._staff()}{shown}")
        self._waiting.extend(runs)
        topic = f"tailcut-{secrets.token_hex(8)}"
        self.farm.listen(topic, lambda run_id, message: self._events.put((run_id, message)))
        with self.store.probe() as probe:
            try:
                self._submit(probe, topic)
                while self._under_way and not (self._failures.has_failed and self.options.fail_fast):
                    with contextlib.suppress(queue.Empty):
                        event = self._events.get(timeout=WATCH_SECONDS)
                        if isinstance(event, Attempt):
                            self._ended(event)
                        elif event[0] in self._under_way:
                            self._heard(self._under_way[event[0]], event[1])
                    self._watch()
                    self._submit(probe, topic)
            finally:
                self.farm.cancel()
        self._failures.raise_if_any(len(runs))

    def _staff(self) -> str:
        return f"{len(self._workers)} workers, {sum(self._workers.values())} runs at a time"

    def _watch(self) -> None:
        """See now and then which workers there are, and say who came and who has gone."""
        if time.monotonic() - self._watched < WATCH_SECONDS:
            return
        before, self._workers = self._workers, self.farm.workers()
        self._watched = time.monotonic()
        for reason in self.farm.take_refusals():
            self.progress.note(reason)
        said = [
            f"{len(those)} {how}" if len(those) > 1 else f"{those[0]} {how}"
            for those, how in (
                ([one for one in self._workers if one not in before], "came"),
                ([one for one in before if one not in self._workers], "left"),
            )
            if those
        ]
        if said:
            self.progress.note(f"workers: {', '.join(said)}; {self._staff()}")

    def _begun(self, run: PlannedRun, worker: str | None = None) -> None:
        self._told.add(run["id"])
        tell_started(self.progress, run, worker)

    def _heard(self, run: PlannedRun, message: dict[str, Any]) -> None:
        if "worker" in message:
            self._begun(run, message["worker"])
        elif run["id"] in self._told:
            self.progress.advanced(run["id"], message["now_ps"], message["packet_hops"])

    def _submit(self, probe: tuple[str, str], topic: str) -> None:
        while (self._waiting or self._elsewhere) and len(self._under_way) < AHEAD * max(sum(self._workers.values()), 1):
            source = self._waiting or self._elsewhere
            if not self._failures.has_room([*self._under_way.values(), source[0]]):
                if not self._under_way:
                    self._stop_beginning()
                return
            run = source.popleft()
            self._under_way[run["id"]] = run
            if not self.farm.tells:
                self._begun(run)
            job = Job(
                run=run,
                files=self._files(run),
                store=str(self.store.directory.resolve()),
                probe=probe,
                made_by=made_by(),
                capture=self.options.capture,
                limit_seconds=self.options.limit_seconds,
                wait=source is self._elsewhere,
                topic=topic,
            )
            self.farm.submit(job, self._events.put)

    def _files(self, run: PlannedRun) -> dict[str, bytes]:
        """The contents of the files of a run that go with its job."""
        for use in run["files"]:
            place = Path(use["resolved"])
            if use["sha256"] not in self._contents and (
                not self.farm.can_call_workers or place.stat().st_size <= WITH_JOB_BYTES
            ):
                self._contents[use["sha256"]] = place.read_bytes()
        return {use["sha256"]: self._contents[use["sha256"]] for use in run["files"] if use["sha256"] in self._contents}

    def _supply(self, run: PlannedRun, attempt: Attempt, answer: Answer) -> None:
        """Send a worker the files that it lacks, once, and hand the run out again."""
        places = {use["sha256"]: Path(use["resolved"]) for use in run["files"]}
        try:
            for digest in answer.needs:
                if (attempt.where, digest) not in self._supplied:
                    self._send(attempt, digest, places[digest])
        except OSError as error:
            if not disk_space.is_full(error):
                raise
            self._unfit(run, attempt, f"its disk is full ({answer.kept})")
        else:
            self._again(run, f"{attempt.where} does not keep the files that it is sent")

    def _send(self, attempt: Attempt, digest: str, place: Path) -> None:
        token, offset = secrets.token_hex(8), 0
        with place.open("rb") as file:
            while content := file.read(PIECE_BYTES):
                self.farm.write_chunk(attempt, digest, token, offset, content)
                offset += len(content)
        self.farm.write_chunk(attempt, digest, token, offset, b"")
        self._supplied.add((attempt.where, digest))

    def _unfit(self, run: PlannedRun, attempt: Attempt, why: str) -> None:
        """A worker cannot make runs: others do, if there are others."""
        if self.farm.exclude_worker(attempt):
            self.progress.note(f"the worker {attempt.where}: {why}; its runs are made elsewhere")
            self._waiting.appendleft(run)
        else:
            self._failures.fail(run, why)

    def _ended(self, attempt: Attempt) -> None:
        run = self._under_way.pop(attempt.job.run["id"])
        if run["id"] not in self._told:  # what a worker tells may come after its answer
            self._begun(run, attempt.where)
        if attempt.error is not None:
            self._broken(run, attempt.error)
            return
        answer = attempt.answer
        assert answer is not None  # noqa: S101 - an attempt has an answer or an error
        if answer.unfit:
            self._unfit(run, attempt, str(answer.failure))
        elif answer.failure is not None:
            self._failures.fail(run, answer.failure, answer.traceback)
            if answer.full:
                self._disk_was_full(run)
        elif answer.outcome == Outcome.BUSY:
            self.progress.note(f"{label(run)}: another process is making it")
            self._elsewhere.append(run)
        else:
            try:
                if answer.needs:
                    self._supply(run, attempt, answer)
                    return
                self._take(run, attempt, answer)
            except StoreError as error:
                self._failures.fail(run, str(error))
            except OSError as error:
                if disk_space.is_full(error):
                    self._failures.fail(run, f"{self.store.directory}: {error.strerror}")
                    self._disk_was_full(run)
                elif self.farm.is_worker_loss(error):
                    self._broken(run, error)
                else:
                    raise
            except Exception as error:
                if not self.farm.is_worker_loss(error):
                    raise
                self._broken(run, error)
            else:
                self.progress.finished(run["id"])

    def _disk_was_full(self, run: PlannedRun) -> None:
        self._failures.was_full(label(run))
        self._stop_beginning()

    def _stop_beginning(self) -> None:
        self._waiting.clear()
        self._elsewhere.clear()

    def _take(self, run: PlannedRun, attempt: Attempt, answer: Answer) -> None:
        """Write what a worker gave back, if it did not write it itself."""
        if answer.files is not None:
            self.store.adopt(run["id"], answer.files)
        elif answer.kept is not None:
            with self.store.scratch(run["id"]) as incoming:
                files: dict[str, bytes | Path] = {}
                for name, size in self.farm.kept(attempt).items():
                    files[name] = self._fetched(attempt, name, size, incoming / f"{len(files)}")
                self.store.adopt(run["id"], files)
            self.farm.forget(attempt)

    def _fetched(self, attempt: Attempt, name: str, size: int, path: Path) -> Path:
        with path.open("xb") as file:
            for offset in range(0, size, PIECE_BYTES):
                file.write(self.farm.read_chunk(attempt, name, offset, PIECE_BYTES))
        return path

    def _broken(self, run: PlannedRun, error: BaseException) -> None:
        """A job ended without an answer: its worker was lost, or the way to it."""
        if self.farm.is_worker_loss(error):
            self.progress.note(f"{label(run)}: lost its worker, retrying on another")
            self._again(run, f"{type(error).__name__}: {error}")
        else:
            self._failures.fail(run, f"{type(error).__name__}: {error}")

    def _again(self, run: PlannedRun, why_not: str) -> None:
        """Hand a run out another time, unless that was done too often."""
        count = self._attempts[run["id"]] = self._attempts.get(run["id"], 0) + 1
        if count < MOST_ATTEMPTS:
            self._waiting.appendleft(run)
        else:
            self._failures.fail(run, why_not)
