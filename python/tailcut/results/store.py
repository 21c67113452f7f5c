"""The run store: finished runs on disk, named by a hash of what decides their results.

Layout of a directory of results::

    plan.json                       the latest plan, and the experiment's file that it is of
    plans/<…>.json                  which runs a plan needs: one file for each set of overrides
    runs/<id>/flows.parquet …       one directory per finished run; ``run.json`` lists the other files with their sizes
                                    and SHA-256
    summaries/<backend>-<…>.parquet rows of backends that keep no runs, one file per question asked
    derived/<…>.parquet             what is computed from the tables of each run; can be removed
    summary.parquet                 derived from all of the above

A run is written to a hidden sibling, ``run.json`` last, made durable, and renamed whole. Whatever happens to the
process, ``runs/<id>`` is absent or complete. Files that were changed afterwards no longer match ``run.json``; such a
run counts as absent and is made again. A file is read for that only if its time is not the one at which it was written,
so that a command does not read all there is; ``verify`` reads everything.

Processes that share a directory exclude each other run by run with locks that die with them. That only saves work: the
renames decide (see `tailcut.results.drafts`), so that locks that do not hold make a run twice and nothing worse.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, cast

import polars as pl

from tailcut.errors import StoreError
from tailcut.plan import Plan, canonical, question_id, unique_runs
from tailcut.results import drafts, location
from tailcut.results.locks import locked
from tailcut.results.plan_file import is_foreign, read_plan, refuse_another
from tailcut.results.run_record import RUN_FORMAT, digest, read_record, same_files
from tailcut.results.tables import METADATA_KEY, read_parquet, to_parquet

RUN_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # a name that cannot lead out of the run's directory
RUN = re.compile(r"[0-9a-f]{8,}(-[a-z0-9-]+)?")  # how the directory of a run may be called
UNDER_WAY = re.compile(r"\..+\.(tmp|lock)")  # how drafts and locks are called
NOT_WRITTEN = "nothing of it was stored; check the worker that sent it"


class State(Enum):
    """The store's state of a run."""

    ABSENT = "absent"
    DAMAGED = "damaged"
    COMPLETE = "complete"


class Store:
    """Finished runs under one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._runs = directory / "runs"

    # --- the plan ---------------------------------------------------------------------------------

    @classmethod
    def create(cls, directory: Path, plan: Plan, file: Path | None = None) -> "Store":
        """Returns the store at ``directory`` for ``plan``; makes it if it does not exist, and keeps existing runs.

        Args:
            directory: the directory of results.
            plan: the plan, which becomes the store's latest.
            file: the experiment's file; None for an experiment without one.

        Raises:
            StoreError: the directory holds something else, another experiment's results, or those of another version.
        """
        if directory.exists() and not directory.is_dir():
            raise StoreError("TC-S001", f"{directory} is not a directory", "name another with --out")
        if directory.exists() and is_foreign(directory):
            raise StoreError(
                "TC-S001",
                f"{directory} holds files but no plan.json, so it is not a directory of results",
                "name a new or empty directory with --out",
            )
        refuse_another(directory, plan, file)
        directory.mkdir(parents=True, exist_ok=True)
        store = cls(directory)
        with contextlib.suppress(FileNotFoundError, StoreError):
            store._remember(store.plan())  # an older version may have asked for it
        # The plan comes first: it is what makes a directory one of results, for other processes
        # too.
        held = {**plan, location.ORIGIN: location.origin(file, directory)}
        write_atomically(directory / "plan.json", json.dumps(held, indent=1).encode())
        store._remember(plan)
        (directory / "runs").mkdir(exist_ok=True)
        return store

    @classmethod
    def open(cls, directory: Path) -> "Store":
        """The store at ``directory``.

        Raises:
            StoreError: there is none.
        """
        if not (directory / "plan.json").is_file():
            raise StoreError(
                "TC-S002",
                f"{directory} has no plan.json, so it is not a directory of results",
                "name the directory that `tailcut run` wrote to, such as results/quickstart",
            )
        return cls(directory)

    def plan(self) -> Plan:
        """Returns the latest plan.

        Raises:
            StoreError: plan.json is damaged or of another version.
        """
        held = read_plan(self.directory)
        held.pop(location.ORIGIN, None)  # older versions did not write it
        return cast("Plan", held)

    def _remember(self, plan: Plan) -> None:
        """Records which runs a plan needs; replaces the record of an earlier plan with the same overrides."""
        replaced = plan.get("overrides", {})
        name = hashlib.sha256(canonical(replaced).encode()).hexdigest()[:12]
        needed = {"overrides": replaced, "runs": [*unique_runs(plan)]}
        (self.directory / "plans").mkdir(exist_ok=True)
        write_atomically(self.directory / "plans" / f"{name}.json", json.dumps(needed).encode())

    def beside(self, name: str) -> Path:
        """Returns the path of a file that belongs to all results of this directory."""
        return self.directory / name

    # --- runs -------------------------------------------------------------------------------------

    def path(self, run_id: str) -> Path:
        """Returns the directory of a finished run."""
        return self._runs / run_id

    def home(self, run_id: str) -> "Store":  # noqa: ARG002 - stores of several directories ask
        """Returns the store that a run belongs to."""
        return self

    def runs(self) -> list[str]:
        """Returns the ids of all runs in the directory, complete or damaged, of any plan."""
        there = (path for path in self._runs.glob("*") if RUN.fullmatch(path.name))
        return sorted(path.name for path in there if path.is_dir())

    def files(self, run_id: str) -> list[Path]:
        """Returns the files of a finished run: those that ``run.json`` lists, and ``run.json``."""
        return files_of(self.path(run_id))

    def strays(self) -> list[Path]:
        """Returns files that belong to no run, such as those that file managers leave; they do no harm."""
        runs = self.runs()
        found = [one for one in self._runs.glob("*") if one.name not in runs and not UNDER_WAY.fullmatch(one.name)]
        for run_id in runs:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # damaged, and reported as such
                listed = self.files(run_id)
                found += [one for one in self.path(run_id).iterdir() if one not in listed]
        return sorted(found)

    def state(self, run_id: str, *, whole: bool = False) -> State:
        """Returns whether a run is absent, damaged or complete.

        Args:
            run_id: the run.
            whole: whether to read every byte; otherwise a file of unchanged size and time counts as unchanged.

        Raises:
            StoreError: another version of Tailcut wrote it.
        """
        return self.state_and_record(run_id, whole=whole)[0]

    def state_and_record(self, run_id: str, *, whole: bool = False) -> tuple[State, dict[str, Any] | None]:
        """Returns the state of a run and, if it is complete, the contents of its ``run.json``."""
        if not self.path(run_id).exists():
            return State.ABSENT, None
        about = read_record(self.path(run_id), run_id, whole=whole)
        return (State.DAMAGED if about is None else State.COMPLETE), about

    def verify(self, run_id: str) -> State:
        """Returns `state` with every byte read, and marks a damaged run so that every command notices it."""
        state = self.state(run_id, whole=True)
        if state is State.DAMAGED:
            with contextlib.suppress(OSError):  # where nothing may be written, `verify` alone knows
                for file in self.path(run_id).iterdir():
                    os.utime(file)
        return state

    def run_record(self, run_id: str) -> dict[str, Any]:
        """Returns the contents of a finished run's ``run.json``."""
        about: dict[str, Any] = json.loads((self.path(run_id) / "run.json").read_bytes())
        return about

    @contextmanager
    def claim(self, run_id: str, *, wait: bool = False) -> Iterator[bool]:
        """Claims a run exclusively among processes, and removes drafts of it that killed processes left behind.

        Yields:
            True if this process holds the claim; False if another process does and ``wait`` is not set.
        """
        with locked(self._runs / f".{run_id}.lock", wait=wait) as ours:
            if ours:
                for left in self._runs.glob(f".{run_id}.*.tmp"):
                    if drafts.left_behind(left):
                        drafts.remove(left)
            yield ours

    @contextmanager
    def scratch(self, run_id: str) -> Iterator[Path]:
        """Yields an empty directory for unfinished files, on the file system of the store; it is removed at the end."""
        directory = drafts.draft_path(self._runs, run_id)
        directory.mkdir()
        try:
            yield directory
        finally:
            drafts.remove(directory)

    @contextmanager
    def probe(self) -> Iterator[tuple[str, str]]:
        """Yields path and content of a file by which a worker can tell that it sees this directory."""
        token = secrets.token_hex(16)
        path = drafts.draft_path(self._runs, "probe")
        path.write_text(token, "ascii")
        try:
            yield path.relative_to(self.directory).as_posix(), token
        finally:
            path.unlink(missing_ok=True)

    def put(self, run_id: str, files: dict[str, bytes | Path], about: dict[str, Any]) -> None:
        """Stores a finished run. Call it only while holding the claim on the run.

        Args:
            run_id: the run.
            files: the files of the run, by name; a path is moved there.
            about: the contents of ``run.json``, without ``format``, ``id`` and ``files``.
        """
        with self.scratch(run_id) as draft:
            _fill(draft, files)
            listing = {}
            for name in files:
                written = (draft / name).stat()
                listing[name] = {
                    "bytes": written.st_size,
                    "sha256": digest(draft / name),
                    "modified_ns": written.st_mtime_ns,
                }
            description = {"format": RUN_FORMAT, "id": run_id, **about, "files": listing}
            _write_durably(draft / "run.json", json.dumps(description, indent=1).encode())
            self._publish(run_id, draft)

    def adopt(self, run_id: str, files: Mapping[str, bytes | Path]) -> None:
        """Stores a finished run that was made elsewhere, after checking every byte of it.

        Args:
            run_id: the run.
            files: all its files by name, ``run.json`` among them; a path is moved.

        Raises:
            StoreError: the files are not a whole run of that id, or the run is here with other tables.
        """
        strange = [name for name in files if not RUN_FILE.fullmatch(name)]
        if strange:
            raise StoreError(
                "TC-S010", f"run {run_id[:12]} arrived with an unexpected file, {strange[0]!r}", NOT_WRITTEN
            )
        with self.claim(run_id, wait=True), self.scratch(run_id) as draft:
            _fill(draft, files)
            made = read_record(draft, run_id, whole=True)
            if made is None or {*made["files"], "run.json"} != set(files):
                raise StoreError("TC-S010", f"run {run_id[:12]} did not arrive as it was written", NOT_WRITTEN)
            for name, file in made["files"].items():
                if "modified_ns" in file:
                    os.utime(draft / name, ns=(file["modified_ns"], file["modified_ns"]))
            self._publish(run_id, draft)

    def compare(self, run_id: str, made: Mapping[str, Any]) -> None:
        """Compares the tables of a finished run with those of the same run made elsewhere, given as ``run.json``.

        Raises:
            StoreError: they differ.
        """
        here = self.run_record(run_id)["files"]
        for name in here.keys() & made["files"].keys():
            if name.endswith(".parquet") and here[name]["sha256"] != made["files"][name]["sha256"]:
                raise StoreError(
                    "TC-S011",
                    f"run {run_id[:12]} was made twice and its tables differ: one of the machines is broken, or Tailcut"
                    " is not deterministic there",
                    "the first version is kept; make the run again on a machine that you trust",
                )

    def _publish(self, run_id: str, draft: Path) -> None:
        """Turns a draft into the run, durably and at once, unless the same run exists.

        Raises:
            StoreError: the run exists with other tables.
        """
        _sync(draft)
        made = json.loads((draft / "run.json").read_bytes())
        while True:
            if self.state(run_id) is State.COMPLETE:
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    self.compare(run_id, made)
                    if same_files(self.run_record(run_id), made):
                        return
            self.remove_run(run_id)
            try:
                draft.rename(self.path(run_id))
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) and not isinstance(error, PermissionError):
                    raise
                if not self.path(run_id).exists():  # nobody was first: it is not that
                    raise
            else:
                break
        _sync(self._runs)

    def remove_run(self, run_id: str) -> None:
        """Removes a run if it exists: a later rename must not land on a directory with files in it."""
        if self.path(run_id).exists():
            drafts.remove(self.path(run_id))

    def clear_leftovers(self) -> int:
        """Removes drafts and locks of killed processes, except those of runs that are claimed.

        Returns: the number of drafts removed.
        """
        left = list(self._runs.glob(".*.tmp"))
        locks = self._runs.glob(".*.lock")  # of a process that ended between taking a lock and knowing it
        for run_id in sorted({one.name.split(".")[1] for one in [*left, *locks]}):
            with self.claim(run_id):
                pass
        return sum(not one.exists() for one in left)

    # --- summaries of backends that keep no runs --------------------------------------------------

    def put_summary(self, backend: str, rows: pl.DataFrame, plan: Plan) -> None:
        """Stores a backend's rows of the summary for ``plan``, beside its rows for other plans."""
        asked = question_id(plan)
        path = self.directory / "summaries" / f"{backend}-{asked[:12]}.parquet"
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, to_parquet(rows, {METADATA_KEY: asked}))

    def put_derived(self, path: Path, content: bytes) -> None:
        """Writes a derived file below the store's directory, whole or not at all.

        It does not wait for the disk: an unreadable derived file is made again, and a summary writes one per run.
        """
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content, durably=False)

    def summaries(self, plan: Plan) -> dict[str, pl.DataFrame]:
        """Returns the stored summary rows that answer ``plan``, by backend."""
        asked = question_id(plan)
        found = {}
        for path in sorted((self.directory / "summaries").glob("[!.]*.parquet")):
            with contextlib.suppress(pl.exceptions.ComputeError, OSError):
                if pl.read_parquet_metadata(path).get(METADATA_KEY) == asked:
                    found[path.stem.partition("-")[0]] = read_parquet(path)
        return found


def files_of(path: Path) -> list[Path]:
    """Returns the files of a finished run, given its directory."""
    about = json.loads((path / "run.json").read_bytes())
    return [path / name for name in (*about["files"], "run.json")]


def _fill(draft: Path, files: Mapping[str, bytes | Path]) -> None:
    """Writes files durably into a draft; a path is moved there."""
    for name, content in files.items():
        if isinstance(content, Path):
            shutil.move(content, draft / name)
            _sync(draft / name)
        else:
            _write_durably(draft / name, content)


def write_atomically(path: Path, content: bytes, *, durably: bool = True) -> None:
    """Replaces ``path`` by ``content``, whole or not at all; ``durably`` if it must survive a power cut."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        if durably:
            _write_durably(draft, content)
        else:
            draft.write_bytes(content)
        draft.replace(path)
        if durably:
            _sync(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there, and entries are durable without
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
