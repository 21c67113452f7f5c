"""Files that lie among runs and belong to none: file managers, archivers and people leave them."""

from pathlib import Path

import pytest

from support import made_up
from tailcut.results import Store, upkeep

PLAN = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2])
IDS = [run["id"] for run in PLAN["runs"]]
NAMES = [".DS_Store", "._flows.parquet", "notes.txt", "flows.parquet~", "Thumbs.db", "a folder/with a file"]


def store_of(directory: Path, *seeds: int) -> Store:
    store = Store.create(directory, made_up.plan(schemes=["TCP"], sweep=[], seeds=[1]))
    for run in PLAN["runs"]:
        if run["seed"] in seeds:
            made_up.put(store, run, made_up.flows([100.0 * run["seed"]]))
    return store


def put(place: Path, name: str) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text("of no run")


@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_a_stray_file_is_merged_without_it(tmp_path: Path, name: str) -> None:
    into, other = store_of(tmp_path / "a", 1), store_of(tmp_path / "b", 2)
    put(other.path(IDS[1]), name)
    assert upkeep.merge(into, other).taken == [IDS[1]]
    assert {path.name for path in into.path(IDS[1]).iterdir()} == {path.name for path in into.files(IDS[1])}
    assert into.strays() == []


@pytest.mark.parametrize("name", NAMES)
def test_a_stray_file_among_the_runs_is_no_run(tmp_path: Path, name: str) -> None:
    store = store_of(tmp_path / "a", 1, 2)
    put(store.directory / "runs", name)
    assert sorted(store.runs()) == sorted(IDS)
    assert upkeep.unreferenced_runs(store) == [IDS[1]]
    assert upkeep.bytes_of(store, [IDS[1]]) > 0
    assert upkeep.prune(store, upkeep.unreferenced_runs(store)) == 1
    assert (store.directory / "runs" / name).exists()


@pytest.mark.parametrize("name", NAMES)
def test_verify_and_merge_agree_on_what_is_stray(tmp_path: Path, name: str) -> None:
    store = store_of(tmp_path / "a", 1, 2)
    assert store.strays() == []
    put(store.directory / "runs", name)
    put(store.path(IDS[0]), name)
    first = name.partition("/")[0]
    assert store.strays() == sorted([store.directory / "runs" / first, store.path(IDS[0]) / first])


def test_drafts_and_locks_are_not_stray(tmp_path: Path) -> None:
    store = store_of(tmp_path / "a", 1)
    with store.claim(IDS[1]), store.scratch(IDS[1]), store.probe():
        assert store.strays() == []


def test_a_directory_with_hidden_files_alone_takes_results(tmp_path: Path) -> None:
    put(tmp_path, ".DS_Store")
    assert store_of(tmp_path, 1).runs() == [IDS[0]]
