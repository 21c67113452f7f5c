"""Runs made for another process or another machine.

A job names everything that the run needs. The run is made by a child process, which dies alone if the run kills it, and
goes straight into the store where this machine sees the store's directory. Otherwise it is kept in a scratch directory
until the head has taken its files.
"""

import hashlib
import os
import queue
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tailcut
from tailcut import _core
from tailcut.backends import Capture
from tailcut.backends.worker import Outcome
from tailcut.backends.worker_process import MessageQueue, WorkerProcess
from tailcut.plan import FileUse, PlannedRun
from tailcut.results import disk_space
from tailcut.results.store import State, Store, files_of

INLINE_BYTES = 8_000_000  # files of a run up to this size come back with the answer, larger ones piece by piece


@dataclass(frozen=True, slots=True)
class Job:
    """A run to make and what making it takes.

    Attributes:
        run: the run, an element of a plan.
        files: contents of the files that the run depends on, by SHA-256, as far as they come with the job.
        store: the directory of results, as the head calls it.
        probe: a file in that directory and what is in it: who reads that sees the directory.
        made_by: version of Tailcut and of what results mean, as the head has them.
        capture: packets to write.
        limit_seconds: how long the run may take; none for any time.
        wait: wait for another process that is making the run, as against saying so.
        topic: what progress is told under.
    """

    run: PlannedRun
    files: dict[str, bytes]
    store: str
    probe: tuple[str, str]
    made_by: tuple[str, int]
    capture: Capture | None
    limit_seconds: float | None
    wait: bool
    topic: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a job.

    Attributes:
        outcome: one of `Outcome`; none if the run failed.
        failure: why the run failed, in one line.
        traceback: where in the code it failed, if it did there.
        files: the run's files by name, where they come with the answer.
        kept: the directory that holds them until they are taken, where they do not.
        full: the run failed because the disk of the store is full.
        unfit: the run failed because of this worker, so that another may make it.
        needs: files that the run depends on and that are not here, by SHA-256; they are put into ``kept``.
    """

    outcome: str | None
    failure: str | None = None
    traceback: str | None = None
    files: dict[str, bytes] | None = None
    kept: str | None = None
    full: bool = False
    unfit: bool = False
    needs: tuple[str, ...] = ()


def made_by() -> tuple[str, int]:
    """Version of Tailcut here, and of what results mean."""
    return (tailcut.__version__, _core.RESULTS)


def carry_out(job: Job, tell: Callable[[dict[str, Any]], None] | None = None, scratch: str | None = None) -> Answer:
    """Make a run unless it is there.

    Args:
        job: what to make.
        tell: called with ``{"now_ps": …, "packet_hops": …}`` while the run is made.
        scratch: a directory for what does not go into the store; the system's by default.
    """
    if job.made_by != made_by():
        return Answer(None, f"it has {_words(made_by())}, this sweep is of {_words(job.made_by)}", unfit=True)
    supplied = Path(scratch or tempfile.gettempdir(), "tailcut-supplied")
    try:
        needs = _missing(job, supplied)
        if needs:
            return Answer(None, kept=str(supplied), needs=needs)
        if _sees(job):
            return _HERE.kept.make(Path(job.store), job, supplied, tell)
        return _made_and_kept(job, supplied, tell, scratch)
    except OSError as error:
        # Raised here, it would look like a lost connection at the head, which would hand the run out again and again.
        full = disk_space.is_full(error)
        why = _disk_full(scratch or tempfile.gettempdir()) if full else f"{type(error).__name__}: {error}"
        return Answer(None, why, unfit=True)


def _made_and_kept(
    job: Job, supplied: Path, tell: Callable[[dict[str, Any]], None] | None, scratch: str | None
) -> Answer:
    """Make a run beside the store that it belongs to."""
    scratch_store = _HERE.kept.scratch_store(scratch)
    answer = _HERE.kept.make(scratch_store, job, supplied, tell)
    if answer.failure is not None:
        return answer
    made = Store(scratch_store).path(job.run["id"])
    files = Store(scratch_store).files(job.run["id"])
    if sum(path.stat().st_size for path in files) <= INLINE_BYTES:
        answer = Answer(answer.outcome, files={path.name: path.read_bytes() for path in files})
        shutil.rmtree(made)
        return answer
    kept = Path(tempfile.mkdtemp(prefix="kept-", dir=scratch_store))
    made.rename(kept / "run")
    return Answer(answer.outcome, kept=str(kept / "run"))


def piece(kept: str, name: str, offset: int, size: int) -> bytes:
    """Some bytes of a file of a run that is kept here."""
    with (Path(kept) / name).open("rb") as file:
        file.seek(offset)
        return file.read(size)


def listing(kept: str) -> dict[str, int]:
    """The files of a run that is kept here, and their sizes."""
    return {path.name: path.stat().st_size for path in files_of(Path(kept))}


def forget(kept: str) -> None:
    """Remove a run that was kept here."""
    shutil.rmtree(Path(kept).parent, ignore_errors=True)


def supply(directory: str, digest: str, token: str, offset: int, content: bytes) -> None:
    """Put some bytes of a file here; with no bytes it is whole, and taken if it is the file of that SHA-256."""
    draft = Path(directory, f".{digest}.{token}")
    if content:
        draft.parent.mkdir(exist_ok=True)
        with draft.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(content)
    elif _digest(draft) == digest:
        draft.rename(draft.with_name(digest))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(job: Job, supplied: Path) -> tuple[str, ...]:
    """The files of a run that did not come with its job and are not here."""
    return tuple(
        use["sha256"]
        for use in job.run["files"]
        if use["sha256"] not in job.files and not (supplied / use["sha256"]).is_file() and not _is_here(use)
    )


def _is_here(use: FileUse) -> bool:
    place = Path(use["resolved"])
    return place.is_file() and _digest(place) == use["sha256"]


def _disk_full(directory: Path | str | None) -> str:
    return f"its disk is full ({directory})"


def _words(made: tuple[str, int]) -> str:
    return f"Tailcut {made[0]} (results version {made[1]})"


def _sees(job: Job) -> bool:
    """Whether this machine sees the head's directory of results."""
    name, content = job.probe
    try:
        return (Path(job.store) / name).read_text("ascii") == content
    except (OSError, ValueError):
        return False


def _with_files(run: PlannedRun, contents: dict[str, bytes], supplied: Path, own: Path) -> PlannedRun:
    """The run with the files that it names where this machine has them; their hashes decide, not their places."""
    files: list[FileUse] = []
    for use in run["files"]:
        place = supplied / use["sha256"]
        if not place.is_file():
            place = Path(use["resolved"])
            if not _is_here(use):
                place = own / use["sha256"]
                place.write_bytes(contents[use["sha256"]])
        files.append({"path": use["path"], "resolved": str(place), "sha256": use["sha256"]})
    return {**run, "files": files}


class _Kept:
    """The child process and the scratch directory that a thread keeps from one job to the next.

    Both go with the thread.
    """

    def __init__(self) -> None:
        self._child: WorkerProcess | None = None
        self._said: MessageQueue = queue.SimpleQueue()
        self._directory: Path | None = None
        self._scratch: Path | None = None

    def scratch_store(self, within: str | None) -> Path:
        """A store for runs that are made here and belong elsewhere."""
        if self._scratch is None or not self._scratch.is_dir():
            self._scratch = Path(tempfile.mkdtemp(prefix="tailcut-runs-", dir=within))
            (self._scratch / "runs").mkdir()
            weakref.finalize(self, _remove, self._scratch, os.getpid())
        return self._scratch

    def make(self, directory: Path, job: Job, supplied: Path, tell: Callable[[dict[str, Any]], None] | None) -> Answer:
        """Make a run in a store of this machine, unless it is there."""
        store = Store(directory)
        if store.state(job.run["id"]) is State.COMPLETE and (
            job.capture is None or job.capture.is_in(store.run_record(job.run["id"]))
        ):
            return Answer(Outcome.FOUND)
        with tempfile.TemporaryDirectory(prefix="tailcut-files-") as own:
            run = _with_files(job.run, job.files, supplied, Path(own))
            try:
                return self._ask(self._child_for(directory), run, job, tell)
            except BaseException:
                self._drop()
                raise

    def _ask(
        self, child: WorkerProcess, run: PlannedRun, job: Job, tell: Callable[[dict[str, Any]], None] | None
    ) -> Answer:
        child.send(run, job.capture, wait=job.wait)
        limit = float("inf") if job.limit_seconds is None else job.limit_seconds
        deadline = float("inf") if job.wait else time.monotonic() + limit  # a run that is waited for has not begun
        while True:
            left = max(deadline - time.monotonic(), 0)
            try:
                _, message = self._said.get(timeout=left if left < threading.TIMEOUT_MAX else None)
            except queue.Empty:
                self._drop()
                return Answer(None, f"it took longer than the limit of {job.limit_seconds:g} s")
            if message is None:
                self._child = None
                return Answer(None, f"the worker process ended with {child.wait_for_exit()}")
            if "failed" in message:
                if message["full"] and self._directory != Path(job.store):
                    return Answer(None, _disk_full(self._directory), unfit=True)
                return Answer(None, message["failed"], traceback=message["traceback"], full=message["full"])
            if "done" in message:
                return Answer(message["done"])
            if "begun" in message:
                deadline = time.monotonic() + limit
            elif tell is not None:
                tell(message)

    def _child_for(self, directory: Path) -> WorkerProcess:
        if self._child is None or self._directory != directory:
            self._drop()
            self._said = queue.SimpleQueue()  # what another child said last is nobody's
            self._child, self._directory = WorkerProcess(directory, self._said), directory
        return self._child

    def _drop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


class _Here(threading.local):
    """The state that each thread keeps between jobs."""

    def __init__(self) -> None:
        self.kept = _Kept()


def _remove(directory: Path, owner: int) -> None:
    """Removes a directory, but in no fork of its owner."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _forget_all() -> None:
    """A forked process has none of its parent's children."""
    global _HERE  # noqa: PLW0603 - what a fork leaves of the old one cannot be used
    _HERE = _Here()


_HERE = _Here()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
