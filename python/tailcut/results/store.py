"""The run store: finished runs on disk, by what decides their results.

Layout of a directory of results::

    plan.json                       the plan asked for last
    runs/<id>/flows.parquet …       one directory per finished run; ``run.json`` lists the other files with their sizes
                                    and SHA-256
    summaries/<backend>.parquet     rows of backends that keep no runs
    summary.parquet                 derived from all of the above

A run is written to a hidden sibling, ``run.json`` last, made durable, and renamed whole. Whatever happens to the
process, ``runs/<id>`` is absent or complete. Files that were damaged afterwards no longer match ``run.json``; such a
run counts as absent and is made again. Processes that share a directory exclude each other run by run with locks that
die with them.
"""

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl

from tailcut.errors import StoreError
from tailcut.plan import Plan, question_id
from tailcut.results.locks import locked
from tailcut.results.tables import METADATA_KEY, to_parquet

RUN_FORMAT = 1


class State(Enum):
    """What the store knows of a run."""

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
    def create(cls, directory: Path, plan: Plan) -> "Store":
        """The store at ``directory`` for ``plan``; runs that are there stay there.

        Raises:
            StoreError: the directory holds something else.
        """
        if directory.exists() and not directory.is_dir():
            raise StoreError("TC-S001", f"{directory} is not a directory", "name another with --out")
        if directory.exists() and _foreign(directory):
            raise StoreError(
                "TC-S001",
                f"{directory} holds files but no plan.json, so it is not a directory of results",
                "name a new or empty directory with --out",
            )
        directory.mkdir(parents=True, exist_ok=True)
        # The plan comes first: it is what makes a directory one of results, for other processes too.
        write_atomically(directory / "plan.json", json.dumps(plan, indent=1).encode())
        (directory / "runs").mkdir(exist_ok=True)
        return cls(directory)

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
        path = self.directory / "plan.json"
        try:
            plan: Plan = json.loads(path.read_bytes())
            format_ = plan["format"]
        except (ValueError, KeyError, TypeError):
            raise StoreError(
                "TC-S003", f"{path} is damaged", "run the experiment again; finished runs are kept"
            ) from None
        if format_ != 1:
            raise StoreError(
                "TC-S004",
                f"{path} has format {format_}; this version reads 1",
                "use the Tailcut that wrote it",
            )
        return plan

    # --- runs -------------------------------------------------------------------------------------------------------

    def path(self, run_id: str) -> Path:
        """The directory of a finished run."""
        return self._runs / run_id

    def state(self, run_id: str) -> State:
        """Whether a run is there and every byte of it is as it was written."""
        path = self.path(run_id)
        if not path.exists():
            return State.ABSENT
        try:
            about = json.loads((path / "run.json").read_bytes())
            if about["format"] != RUN_FORMAT or about["id"] != run_id:
                return State.DAMAGED
            whole = all(_matches(path / name, file) for name, file in about["files"].items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return State.DAMAGED
        return State.COMPLETE if whole else State.DAMAGED

    def about(self, run_id: str) -> dict[str, Any]:
        """The ``run.json`` of a finished run."""
        about: dict[str, Any] = json.loads((self.path(run_id) / "run.json").read_bytes())
        return about

    @contextmanager
    def claim(self, run_id: str, *, wait: bool = False) -> Iterator[bool]:
        """Take a run on, against other processes; what a killed one left of it is removed.

        Yields:
            Whether it is ours; False if another process has it and ``wait`` is not set.
        """
        with locked(self._runs / f".{run_id}.lock", wait=wait) as ours:
            if ours:
                for left in self._runs.glob(f".{run_id}.*.tmp"):
                    shutil.rmtree(left, ignore_errors=True)
            yield ours

    def put(self, run_id: str, files: dict[str, bytes | Path], about: dict[str, Any]) -> None:
        """Store a finished run. Call it while the run is claimed.

        Args:
            run_id: the run.
            files: the files of the run, by name; a path is moved there.
            about: the contents of ``run.json``, without ``format``, ``id`` and ``files``.
        """
        draft = self._runs / f".{run_id}.{uuid.uuid4().hex}.tmp"
        draft.mkdir()
        try:
            listing = {}
            for name, content in files.items():
                if isinstance(content, Path):
                    shutil.move(content, draft / name)
                    _sync(draft / name)
                else:
                    _write_durably(draft / name, content)
                listing[name] = {"bytes": (draft / name).stat().st_size, "sha256": _digest(draft / name)}
            description = {"format": RUN_FORMAT, "id": run_id, **about, "files": listing}
            _write_durably(draft / "run.json", json.dumps(description, indent=1).encode())
            _sync(draft)
            self._set_aside(run_id)
            draft.rename(self.path(run_id))
            _sync(self._runs)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _set_aside(self, run_id: str) -> None:
        """Make room for a new version of a run; a rename never lands on a directory with files in it."""
        if self.path(run_id).exists():
            old = self._runs / f".{run_id}.{uuid.uuid4().hex}.tmp"
            self.path(run_id).rename(old)
            shutil.rmtree(old, ignore_errors=True)

    def clear_leftovers(self) -> int:
        """Remove what killed processes left behind, unless somebody is at work on it.

        Returns:
            How many drafts were removed.
        """
        drafts = list(self._runs.glob(".*.tmp"))
        for run_id in sorted({draft.name.split(".")[1] for draft in drafts}):
            with self.claim(run_id):
                pass
        return sum(not draft.exists() for draft in drafts)

    # --- summaries of backends that keep no runs --------------------------------------------------------------------

    def put_summary(self, backend: str, rows: pl.DataFrame) -> None:
        """Store a backend's rows of the summary table for the current plan."""
        path = self.directory / "summaries" / f"{backend}.parquet"
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, to_parquet(rows, {METADATA_KEY: question_id(self.plan())}))

    def summaries(self) -> dict[str, pl.DataFrame]:
        """The rows of such backends, by name, as far as they answer the current plan."""
        asked = question_id(self.plan())
        found = {}
        for path in sorted((self.directory / "summaries").glob("*.parquet")):
            with contextlib.suppress(pl.exceptions.ComputeError, OSError):
                if pl.read_parquet_metadata(path).get(METADATA_KEY) == asked:
                    found[path.stem] = pl.read_parquet(path)
        return found


def _foreign(directory: Path) -> bool:
    """Whether there are files in a directory that is not one of results, nor about to become one."""
    names = {path.name for path in directory.iterdir()}
    return "plan.json" not in names and any(not name.startswith(".plan.json.") for name in names)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``, whole or not at all."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        _write_durably(draft, content)
        draft.replace(path)
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
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _matches(path: Path, expected: dict[str, Any]) -> bool:
    return bool(path.stat().st_size == expected["bytes"] and _digest(path) == expected["sha256"])
