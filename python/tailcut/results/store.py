"""The run store: finished runs on disk, by what decides their results.

Layout of a directory of results::

    plan.json                       the plan asked for last, and whose it is: the experiment's file
    plans/<…>.json                  which runs a plan needs: one file for each set of overrides that was asked for
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
from tailcut.results.tables import METADATA_KEY, read_parquet, to_parquet

PLAN_FORMAT = 1
RUN_FORMAT = 1
RUN_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # a name that cannot lead out of the run's directory
RUN = re.compile(r"[0-9a-f]{8,}(-[a-z0-9-]+)?")  # how the directory of a run may be called
UNDER_WAY = re.compile(r"\..+\.(tmp|lock)")  # how drafts and locks are called
NOT_WRITTEN = "nothing of it was written; look at the worker that sent it"


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

    # --- the plan ---------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, directory: Path, plan: Plan, file: Path | None = None) -> "Store":
        """The store at ``directory``, made if it is not there, for ``plan``; runs that are there stay there.

        Args:
            directory: where.
            plan: what is asked.
            file: the experiment's file; none for an experiment without one.

        Raises:
            StoreError: the directory holds something else, another experiment's results, or those of another version.
        """
        if directory.exists() and not directory.is_dir():
            raise StoreError("TC-S001", f"{directory} is not a directory", "name another with --out")
        if directory.exists() and _foreign(directory):
            raise StoreError(
                "TC-S001",
                f"{directory} holds files but no plan.json, so it is not a directory of results",
                "name a new or empty directory with --out",
            )
        _refuse_another(directory, plan, file)
        directory.mkdir(parents=True, exist_ok=True)
        store = cls(directory)
        with contextlib.suppress(FileNotFoundError, StoreError):
            store._remember(store.plan())  # an older version may have asked for it
        # The plan comes first: it is what makes a directory one of results, for other processes too.
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
        """The plan asked for last.

        Raises:
            StoreError: plan.json is damaged or of another version.
        """
        held = _held(self.directory)
        held.pop(location.ORIGIN, None)  # older versions did not write it
        return cast("Plan", held)

    def _remember(self, plan: Plan) -> None:
        """Keep which runs a plan needs, in the place of the plan asked for before with the same overrides."""
        replaced = plan.get("overrides", {})
        name = hashlib.sha256(canonical(replaced).encode()).hexdigest()[:12]
        needed = {"overrides": replaced, "runs": [*unique_runs(plan)]}
        (self.directory / "plans").mkdir(exist_ok=True)
        write_atomically(self.directory / "plans" / f"{name}.json", json.dumps(needed).encode())

    def beside(self, name: str) -> Path:
        """Return the path of a file that is of all results here."""
        return self.directory / name

    # --- runs -------------------------------------------------------------------------------------------------------

    def path(self, run_id: str) -> Path:
        """The directory of a finished run."""
        return self._runs / run_id

    def home(self, run_id: str) -> "Store":  # noqa: ARG002 - stores of several directories ask
        """The store that a run is in, or would be."""
        return self

    def runs(self) -> list[str]:
        """The runs that are there in some state, of whichever plan."""
        there = (path for path in self._runs.glob("*") if RUN.fullmatch(path.name))
        return sorted(path.name for path in there if path.is_dir())

    def files(self, run_id: str) -> list[Path]:
        """The files of a finished run: those that it lists, and the list. Others in its directory are none of its."""
        return files_of(self.path(run_id))

    def strays(self) -> list[Path]:
        """Return the strays among the runs, as file managers leave them: they do no harm."""
        runs = self.runs()
        found = [one for one in self._runs.glob("*") if one.name not in runs and not UNDER_WAY.fullmatch(one.name)]
        for run_id in runs:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # damaged, and reported as such
                listed = self.files(run_id)
                found += [one for one in self.path(run_id).iterdir() if one not in listed]
        return sorted(found)

    def state(self, run_id: str, *, whole: bool = False) -> State:
        """Whether a run is there as it was written.

        Args:
            run_id: the run.
            whole: whether to read every byte; otherwise a file of the size and time that it was written with is as it
                was.

        Raises:
            StoreError: another version of Tailcut wrote it.
        """
        return self.state_and_record(run_id, whole=whole)[0]

    def state_and_record(self, run_id: str, *, whole: bool = False) -> tuple[State, dict[str, Any] | None]:
        """Returns the state of a run and, if it is complete, the contents of its ``run.json``."""
        if not self.path(run_id).exists():
            return State.ABSENT, None
        about = _record(self.path(run_id), run_id, whole=whole)
        return (State.DAMAGED if about is None else State.COMPLETE), about

    def verify(self, run_id: str) -> State:
        """``state`` with every byte read; from then on every command knows what is damaged."""
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
        """A directory for files under way, on the file system of the store."""
        directory = drafts.draft_path(self._runs, run_id)
        directory.mkdir()
        try:
            yield directory
        finally:
            drafts.remove(directory)

    @contextmanager
    def probe(self) -> Iterator[tuple[str, str]]:
        """A file by which others know that they see this directory: its path below it, and what is in it."""
        token = secrets.token_hex(16)
        path = drafts.draft_path(self._runs, "probe")
        path.write_text(token, "ascii")
        try:
            yield path.relative_to(self.directory).as_posix(), token
        finally:
            path.unlink(missing_ok=True)

    def put(self, run_id: str, files: dict[str, bytes | Path], about: dict[str, Any]) -> None:
        """Store a finished run. Call it while the run is claimed.

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
                    "sha256": _digest(draft / name),
                    "modified_ns": written.st_mtime_ns,
                }
            description = {"format": RUN_FORMAT, "id": run_id, **about, "files": listing}
            _write_durably(draft / "run.json", json.dumps(description, indent=1).encode())
            self._publish(run_id, draft)

    def adopt(self, run_id: str, files: Mapping[str, bytes | Path]) -> None:
        """Store a finished run that was made elsewhere, once every byte of it is seen to be as it was written there.

        Args:
            run_id: the run.
            files: all its files by name, ``run.json`` among them; a path is moved.

        Raises:
            StoreError: they are not a whole run of that identifier, or the run is here with other tables.
        """
        strange = [name for name in files if not RUN_FILE.fullmatch(name)]
        if strange:
            raise StoreError(
                "TC-S010", f"what came for run {run_id[:12]} has a file called {strange[0]!r}", NOT_WRITTEN
            )
        with self.claim(run_id, wait=True), self.scratch(run_id) as draft:
            _fill(draft, files)
            made = _record(draft, run_id, whole=True)
            if made is None or {*made["files"], "run.json"} != set(files):
                raise StoreError("TC-S010", f"what came for run {run_id[:12]} is not what was written", NOT_WRITTEN)
            for name, file in made["files"].items():
                if "modified_ns" in file:
                    os.utime(draft / name, ns=(file["modified_ns"], file["modified_ns"]))
            self._publish(run_id, draft)

    def compare(self, run_id: str, made: Mapping[str, Any]) -> None:
        """Compare the tables of a finished run with those of the same run made elsewhere, given as ``run.json``.

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
                    "what was here first is kept; make the run again on a machine that you trust",
                )

    def _publish(self, run_id: str, draft: Path) -> None:
        """Make a draft the run, durably and at once, unless the same is there.

        Raises:
            StoreError: the run is there with other tables.
        """
        _sync(draft)
        made = json.loads((draft / "run.json").read_bytes())
        while True:
            if self.state(run_id) is State.COMPLETE:
                with contextlib.suppress(FileNotFoundError):  # another process has removed it
                    self.compare(run_id, made)
                    if _same_files(self.run_record(run_id), made):
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
        """Remove what killed processes left behind, unless somebody is at work on it.

        Returns: how many drafts were removed.
        """
        left = list(self._runs.glob(".*.tmp"))
        locks = self._runs.glob(".*.lock")  # of a process that ended between taking a lock and knowing it
        for run_id in sorted({one.name.split(".")[1] for one in [*left, *locks]}):
            with self.claim(run_id):
                pass
        return sum(not one.exists() for one in left)

    # --- summaries of backends that keep no runs --------------------------------------------------------------------

    def put_summary(self, backend: str, rows: pl.DataFrame, plan: Plan) -> None:
        """Store a backend's rows of the summary table for ``plan``, beside those for other questions."""
        asked = question_id(plan)
        path = self.directory / "summaries" / f"{backend}-{asked[:12]}.parquet"
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, to_parquet(rows, {METADATA_KEY: asked}))

    def put_derived(self, path: Path, content: bytes) -> None:
        """Write a file below the store's directory, whole or not at all.

        It is made again where it cannot be read, so that nothing waits for the disk: a summary writes one per run.
        """
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content, durably=False)

    def summaries(self, plan: Plan) -> dict[str, pl.DataFrame]:
        """The rows of such backends, by name, as far as they answer ``plan``."""
        asked = question_id(plan)
        found = {}
        for path in sorted((self.directory / "summaries").glob("[!.]*.parquet")):
            with contextlib.suppress(pl.exceptions.ComputeError, OSError):
                if pl.read_parquet_metadata(path).get(METADATA_KEY) == asked:
                    found[path.stem.partition("-")[0]] = read_parquet(path)
        return found


def files_of(path: Path) -> list[Path]:
    """The files of a finished run, given its directory."""
    about = json.loads((path / "run.json").read_bytes())
    return [path / name for name in (*about["files"], "run.json")]


def _record(path: Path, run_id: str, *, whole: bool) -> dict[str, Any] | None:
    """The ``run.json`` of a directory, if it is of that run and all files that it lists are as they were written.

    Raises:
        StoreError: another version of Tailcut wrote it.
    """
    try:
        about: dict[str, Any] = json.loads((path / "run.json").read_bytes())
        if about["id"] != run_id:
            return None
        _check_format(path / "run.json", about["format"], RUN_FORMAT)
        same = all(_matches(path / name, file, whole=whole) for name, file in about["files"].items())
        return about if same else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _fill(draft: Path, files: Mapping[str, bytes | Path]) -> None:
    """Write files durably; a path is moved there."""
    for name, content in files.items():
        if isinstance(content, Path):
            shutil.move(content, draft / name)
            _sync(draft / name)
        else:
            _write_durably(draft / name, content)


def _same_files(here: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether two runs, given as ``run.json``, have the same files with the same captures."""
    asked = ("capture", "capture_bounds")
    digests = [{name: file["sha256"] for name, file in run["files"].items()} for run in (here, made)]
    return digests[0] == digests[1] and all(here.get(key) == made.get(key) for key in asked)


def _held(directory: Path) -> dict[str, Any]:
    """The contents of a directory's ``plan.json``: the plan and, under ``location.ORIGIN``, whose it is.

    Raises:
        StoreError: it is damaged or of another version.
    """
    path = directory / "plan.json"
    try:
        held: dict[str, Any] = json.loads(path.read_bytes())
        format_ = held["format"]
    except (ValueError, KeyError, TypeError):
        raise StoreError("TC-S003", f"{path} is damaged", "run the experiment again; finished runs are kept") from None
    _check_format(path, format_, PLAN_FORMAT)
    return held


def _check_format(path: Path, found: object, known: int) -> None:
    if found != known:
        raise StoreError(
            "TC-S004",
            f"{path} has format {found}; this version reads {known}",
            "use the Tailcut that wrote it, or name another directory with --out",
        )


def _refuse_another(directory: Path, plan: Plan, file: Path | None) -> None:
    """Refuse a directory whose plan is another experiment's."""
    try:
        held = _held(directory)
    except FileNotFoundError:
        return
    except StoreError as error:
        if error.code == "TC-S003":  # the new plan replaces the damaged one
            return
        raise
    if not location.is_of(held, plan, file, directory):
        raise StoreError(
            "TC-S005",
            f"{directory} holds the results of another experiment, {held.get('source_file')}",
            "name another directory with --out",
        )


def _foreign(directory: Path) -> bool:
    """Whether there are files in a directory that is not one of results, nor about to become one.

    Hidden ones do not count: file managers leave them, and so does a plan that is under way.
    """
    names = {path.name for path in directory.iterdir()}
    return "plan.json" not in names and any(not name.startswith(".") for name in names)


def write_atomically(path: Path, content: bytes, *, durably: bool = True) -> None:
    """Replace ``path`` by ``content``, whole or not at all; ``durably`` where a power cut must not take it back."""
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


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _matches(path: Path, expected: dict[str, Any], *, whole: bool) -> bool:
    found = path.stat()
    if found.st_size != expected["bytes"]:
        return False
    untouched = found.st_mtime_ns == expected.get("modified_ns")  # older versions did not write it
    return bool((untouched and not whole) or _digest(path) == expected["sha256"])
