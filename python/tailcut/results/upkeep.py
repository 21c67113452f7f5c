"""Putting stores together, and taking out of one what nobody asks for."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailcut.errors import StoreError
from tailcut.plan import unique_runs
from tailcut.results import lab_runs
from tailcut.results.store import State, Store


@dataclass(frozen=True, slots=True)
class Merged:
    """What `merge` did, run by run.

    Attributes:
        taken: runs that are now in the first store as well.
        there: runs that were in both already.
        damaged: runs of the second store that are not as they were written, and were left out.
    """

    taken: list[str]
    there: list[str]
    damaged: list[str]


def unasked(store: Store) -> list[str]:
    """The runs of a store that its plan does not refer to.

    Raises:
        StoreError: its plan cannot be read, so that nobody knows.
    """
    asked = unique_runs(store.plan())
    return [run_id for run_id in store.runs() if lab_runs.planned(run_id) not in asked]


def bytes_of(store: Store, runs: Sequence[str]) -> int:
    """How many bytes the files of runs take."""
    return sum(file.stat().st_size for run_id in runs for file in store.path(run_id).iterdir())


def prune(store: Store, runs: Sequence[str]) -> int:
    """Remove runs, but none that another process is making.

    Returns:
        How many were removed.
    """
    removed = 0
    for run_id in runs:
        with store.claim(run_id) as ours:
            if ours and store.path(run_id).exists():
                store.set_aside(run_id)
                removed += 1
    return removed


def merge(into: Store, other: Store) -> Merged:
    """Put the runs of another store into this one. The other stays as it is, and so does the plan of this one.

    Raises:
        StoreError: they are of different experiments, or a run is in both with different tables.
        OSError: there is no room, or a file cannot be read.
    """
    titles = into.plan()["title"], other.plan()["title"]
    if titles[0] != titles[1]:
        raise StoreError(
            "TC-S012",
            f"{into.directory} is of the experiment {titles[0]!r}, {other.directory} of {titles[1]!r}",
            "name two directories of the same experiment",
        )
    merged = Merged([], [], [])
    for run_id in other.runs():
        state = other.state(run_id, whole=True)
        if state is not State.COMPLETE:
            merged.damaged.append(run_id)
            continue
        there = into.state(run_id) is State.COMPLETE
        if there and not lab_runs.is_of_lab(run_id):
            into.compare(run_id, other.about(run_id))
        if not there:
            _copy(into, other, run_id)
        (merged.there if there else merged.taken).append(run_id)
    for path in sorted((other.directory / "summaries").glob("*.parquet")):
        place = into.directory / "summaries" / path.name
        if not place.exists():
            into.put_derived(place, path.read_bytes())
    return merged


def _copy(into: Store, other: Store, run_id: str) -> None:
    with into.scratch(run_id) as incoming:
        files: dict[str, bytes | Path] = {}
        for file in other.path(run_id).iterdir():
            files[file.name] = Path(shutil.copyfile(file, incoming / file.name))
        into.adopt(run_id, files)
