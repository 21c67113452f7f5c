import json
from pathlib import Path

import pytest

from support import made_up
from tailcut import StoreError
from tailcut.plan import Plan
from tailcut.result import Result
from tailcut.results import State, Store, drafts, upkeep
from tailcut.results.locks import locked

ONE_SEED = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
THREE_SEEDS = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1, 2, 3])
IDS = [run["id"] for run in THREE_SEEDS["runs"]]


def filled(directory: Path, *seeds: int) -> Store:
    """A store with the runs of these seeds, whose plan is of the first seed alone."""
    store = Store.create(directory, ONE_SEED)
    for run in THREE_SEEDS["runs"]:
        if run["seed"] in seeds:
            made_up.put(store, run, made_up.flows([100.0 * run["seed"]]))
    return store


def names(store: Store) -> list[str]:
    return sorted(path.name for path in (store.directory / "runs").iterdir())


# --- prune ----------------------------------------------------------------------------------------


def test_runs_that_the_plan_does_not_refer_to_are_removed_and_the_others_stay(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2, 3)
    unasked = upkeep.unreferenced_runs(store)
    assert sorted(unasked) == sorted(IDS[1:])
    assert upkeep.bytes_of(store, unasked) == sum(
        file.stat().st_size for run_id in IDS[1:] for file in store.path(run_id).iterdir()
    )
    assert upkeep.prune(store, unasked) == 2
    assert names(store) == [IDS[0]]
    assert store.verify(IDS[0]) is State.COMPLETE


def asked(store: Store, plan: Plan, **overrides: str) -> None:
    Store.create(store.directory, {**plan, "overrides": overrides} if overrides else plan)


def test_runs_of_a_plan_with_other_overrides_are_kept(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2, 3)
    asked(store, made_up.plan(schemes=["TCP"], sweep=[], seeds=[2]), seeds="[2]")
    assert upkeep.unreferenced_runs(store) == [IDS[2]]
    assert sorted(upkeep.unreferenced_runs(store, by_last=True)) == sorted([IDS[0], IDS[2]])


def test_the_plan_of_an_edited_experiment_replaces_the_earlier_one(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2)
    asked(store, made_up.plan(schemes=["TCP"], sweep=[], seeds=[2]))
    assert upkeep.unreferenced_runs(store) == [IDS[0]]


def test_a_plan_of_an_older_version_which_kept_no_list_is_not_forgotten(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2)
    for path in (store.directory / "plans").iterdir():
        path.unlink()
    asked(store, made_up.plan(schemes=["TCP"], sweep=[], seeds=[2]), seeds="[2]")
    assert upkeep.unreferenced_runs(store) == []


def test_times_of_runs_that_are_gone_go_with_them(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2)
    asked(store, THREE_SEEDS)
    Result(store).summary()
    asked(store, ONE_SEED)
    upkeep.prune(store, upkeep.unreferenced_runs(store))
    left = [path.stem.rpartition("-")[2] for path in store.directory.glob("derived/times-*")]
    assert left == [IDS[0]]


def test_a_run_that_another_process_is_making_is_not_removed(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2)
    with locked(store.directory / "runs" / f".{IDS[1]}.lock", wait=False):
        assert upkeep.prune(store, upkeep.unreferenced_runs(store)) == 0
    assert store.state(IDS[1]) is State.COMPLETE


def test_prune_removes_nothing_if_the_latest_plan_is_damaged(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2)
    (store.directory / "plan.json").write_text("{")
    with pytest.raises(StoreError):
        upkeep.unreferenced_runs(store)
    assert names(store) == sorted(IDS[:2])


def test_prune_removes_nothing_if_any_plan_is_damaged(tmp_path: Path) -> None:
    store = filled(tmp_path / "results", 1, 2)
    next((store.directory / "plans").iterdir()).write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        upkeep.unreferenced_runs(store)


# --- merge ----------------------------------------------------------------------------------------


def test_merge_adds_the_runs_of_the_second_store_and_leaves_it_unchanged(tmp_path: Path) -> None:
    into, other = filled(tmp_path / "a", 1, 2), filled(tmp_path / "b", 2, 3)
    before = {path: path.read_bytes() for path in other.directory.rglob("*") if path.is_file()}
    merged = upkeep.merge(into, other)
    assert (merged.taken, merged.there, merged.damaged) == ([IDS[2]], [IDS[1]], [])
    assert names(into) == sorted(IDS)
    assert {into.verify(run_id) for run_id in IDS} == {State.COMPLETE}
    assert {path: path.read_bytes() for path in other.directory.rglob("*") if path.is_file()} == before


def test_runs_are_put_together_where_nothing_tells_which_processes_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "_started", lambda process: "0")  # as without /proc
    into, other = filled(tmp_path / "a", 1), filled(tmp_path / "b", 2)
    assert upkeep.merge(into, other).taken == [IDS[1]]
    assert names(into) == sorted(IDS[:2])


def test_a_merged_run_counts_as_written_in_its_new_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into, other = filled(tmp_path / "a", 1), filled(tmp_path / "b", 2)
    upkeep.merge(into, other)
    monkeypatch.setattr("tailcut.results.run_record.digest", lambda path: "read again")
    assert into.state(IDS[1]) is State.COMPLETE


def test_a_damaged_run_is_left_out_and_named(tmp_path: Path) -> None:
    into, other = filled(tmp_path / "a", 1), filled(tmp_path / "b", 2, 3)
    (other.path(IDS[1]) / "flows.parquet").write_bytes(b"cut")
    merged = upkeep.merge(into, other)
    assert (merged.taken, merged.damaged) == ([IDS[2]], [IDS[1]])
    assert into.state(IDS[1]) is State.ABSENT


def test_a_run_damaged_in_the_first_is_taken_from_the_second(tmp_path: Path) -> None:
    into, other = filled(tmp_path / "a", 1, 2), filled(tmp_path / "b", 2)
    (into.path(IDS[1]) / "flows.parquet").write_bytes(b"cut")
    assert upkeep.merge(into, other).taken == [IDS[1]]
    assert into.verify(IDS[1]) is State.COMPLETE


def test_other_tables_for_the_same_run_are_refused(tmp_path: Path) -> None:
    into, other = filled(tmp_path / "a", 1), filled(tmp_path / "b")
    made_up.put(other, THREE_SEEDS["runs"][0], made_up.flows([7.0]))
    with pytest.raises(StoreError, match="made twice and its tables differ") as caught:
        upkeep.merge(into, other)
    assert caught.value.code == "TC-S011"


def test_merging_a_store_of_another_experiment_is_refused(tmp_path: Path) -> None:
    into = filled(tmp_path / "a", 1)
    other = Store.create(tmp_path / "b", {**ONE_SEED, "title": "Something else"})
    with pytest.raises(StoreError, match="'Something else'") as caught:
        upkeep.merge(into, other)
    assert caught.value.code == "TC-S012"


def test_merge_takes_summaries_of_backends_without_runs(tmp_path: Path) -> None:
    import polars as pl

    into, other = filled(tmp_path / "a", 1), filled(tmp_path / "b", 1)
    rows = pl.DataFrame({"scheme": ["TCP"]})
    other.put_summary("model", rows, ONE_SEED)
    upkeep.merge(into, other)
    assert into.summaries(ONE_SEED)["model"].equals(rows)
    assert json.loads((into.directory / "plan.json").read_text())["seeds"] == [1]
