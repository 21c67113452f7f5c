"""Merges stores, and removes the runs of a store that no plan needs."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailcut.errors import StoreError
from tailcut.plan import unique_runs
from tailcut.results import lab_runs
from tailcut.results.derived import TIMES
from tailcut.results.store import State, Store, write_atomically


@dataclass(frozen=True, slots=True)
class Merged:
    """The work of `merge`, run by run.

    Attributes:
        taken: runs that are now in the first store as well, as they are called there.
        there: runs that were in both already.
        repeats: those of the runs taken that are further repeats: the lab of another machine has made the same run.
        damaged: runs of the second store that are not as they were written, and were left out.
    """

    taken: list[str]
    there: list[str]
    repeats: list[str]
    damaged: list[str]


def unreferenced_runs(store: Store, *, by_last: bool = False) -> list[str]:
    """Returns the runs of a store that none of its plans needs; with ``by_last``, that its latest plan does not need.

    Raises:
        StoreError: a plan cannot be read, so that the runs it needs are unknown.
    """
    asked = set(unique_runs(store.plan()))
    for path in () if by_last else sorted((store.directory / "plans").glob("[!.]*.json")):
        try:
            asked.update(json.loads(path.read_bytes())["runs"])
        except (ValueError, KeyError, TypeError):
            raise StoreError(
                "TC-S003", f"{path} is damaged", "remove it; runs that only its plan needs can then be pruned"
            ) from None
    return [run_id for run_id in store.runs() if lab_runs.planned(run_id) not in asked]


def bytes_of(store: Store, runs: Sequence[str]) -> int:
    """Returns the bytes of the directories of runs."""
    return sum(file.lstat().st_size for run_id in runs for file in store.path(run_id).iterdir())


def prune(store: Store, runs: Sequence[str]) -> int:
    """Removes runs that no other process is making, and derived files of removed runs.

    Returns:
        How many were removed.
    """
    removed = 0
    for run_id in runs:
        with store.claim(run_id) as ours:
            if ours and store.path(run_id).exists():
                store.remove_run(run_id)
                removed += 1
    for path in (store.directory / "derived").glob(f"{TIMES}*.parquet"):
        if not store.path(path.stem.removeprefix(TIMES).partition("-")[2]).exists():
            path.unlink(missing_ok=True)
    return removed


def merge(into: Store, other: Store) -> Merged:
    """Copies the runs of another store into this one; the other store, and this one's plan, stay unchanged.

    Raises:
        StoreError: they are of different experiments, or a run is in both with different tables.
        OSError: there is no room, or a file cannot be read.
    """
    titles = into.plan()["title"], other.plan()["title"]
    if titles[0] != titles[1]:
        raise StoreError(
            "TC-S012",
            f"{into.directory} holds results of {titles[0]!r}, {other.directory} those of {titles[1]!r}",
            "name two directories of the same experiment",
        )
    merged = Merged([], [], [], [])
    # Those whose names are free keep them.
    for run_id in sorted(other.runs(), key=lambda name: into.state(name) is State.COMPLETE):
        state = other.state(run_id, whole=True)
        if state is not State.COMPLETE:
            merged.damaged.append(run_id)
            continue
        name = _name(into, other, run_id)
        there = into.state(name) is State.COMPLETE
        if there and not lab_runs.is_of_lab(name):
            into.compare(name, other.run_record(run_id))
        if not there:
            _copy(into, other, run_id, name)
            merged.repeats.extend([name] if name != run_id else [])
        (merged.there if there else merged.taken).append(name)
    for path in sorted((other.directory / "summaries").glob("[!.]*.parquet")):
        place = into.directory / "summaries" / path.name
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            write_atomically(place, path.read_bytes())
    return merged


def _name(into: Store, other: Store, run_id: str) -> str:
    """Returns the name of the other store's run in this one.

    That is another name for a run of the lab whose number another measurement has here: the one by which the same
    measurement is here already, or that of the next repeat.
    """
    if not lab_runs.is_of_lab(run_id):
        return run_id
    measured = _digests(other, run_id)
    for name in lab_runs.repeats_from(run_id):
        if into.state(name) is not State.COMPLETE or _digests(into, name) == measured:
            break
    return name


def _digests(store: Store, run_id: str) -> dict[str, str]:
    """The SHA-256 of each file of a run, by its name."""
    return {name: file["sha256"] for name, file in store.run_record(run_id)["files"].items()}


def _copy(into: Store, other: Store, run_id: str, name: str) -> None:
    with into.scratch(name) as incoming:
        files: dict[str, bytes | Path] = {
            file.name: Path(shutil.copyfile(file, incoming / file.name)) for file in other.files(run_id)
        }
        if name != run_id:
            files["run.json"] = json.dumps({**other.run_record(run_id), "id": name}, indent=1).encode()
        into.adopt(name, files)
