"""Runs of the lab of several machines, put together; what they measured is made up here, and no kernel is asked."""

from pathlib import Path

import tailcut
from support.lab import Kernels
from tailcut.results import State, Store, upkeep


def measured(experiment: Path, directory: Path, repeat: int = 1) -> Store:
    tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=repeat), out=directory)
    return Store.open(directory)


def tables(store: Store) -> list[str]:
    return sorted(store.run_record(run_id)["files"]["flows.parquet"]["sha256"] for run_id in store.runs())


def test_the_same_run_measured_on_another_machine_becomes_a_further_repeat(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    into = measured(experiment, tmp_path / "a")
    other = measured(experiment, tmp_path / "b")
    (first,) = into.runs()
    both = sorted(tables(into) + tables(other))
    merged = upkeep.merge(into, other)
    assert merged.taken == merged.repeats == [first.removesuffix("1") + "2"]
    assert tables(into) == both
    assert [into.verify(run_id) for run_id in into.runs()] == [State.COMPLETE] * 2
    assert tailcut.open_results(tmp_path / "a").lab.runs["repeat"].to_list() == [1, 2]


def test_merging_the_same_directory_again_adds_nothing(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    into = measured(experiment, tmp_path / "a")
    other = measured(experiment, tmp_path / "b", repeat=2)
    taken = upkeep.merge(into, other).taken
    again = upkeep.merge(into, other)
    assert (again.taken, sorted(again.there)) == ([], sorted(taken))


def test_repeats_whose_numbers_are_free_keep_them(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    into = measured(experiment, tmp_path / "a")
    other = measured(experiment, tmp_path / "b", repeat=3)
    kept = {run_id: other.run_record(run_id)["files"] for run_id in other.runs()[1:]}
    assert len(upkeep.merge(into, other).repeats) == 1
    assert {run_id: into.run_record(run_id)["files"] for run_id in kept} == kept
    assert [run_id.rpartition("-")[2] for run_id in into.runs()] == ["1", "2", "3", "4"]
