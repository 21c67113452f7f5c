"""Executors of Python's own, and what a store takes from somebody else."""

import json
import multiprocessing
import tempfile
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from tailcut.backends import remote
from tailcut.errors import ClusterError, RunError, StoreError
from tailcut.results import Store


def job(experiment: tailcut.Experiment, store: Path, probe: tuple[str, str] = ("none", "")) -> remote.Job:
    """The first run of an experiment, as a job."""
    return remote.Job(
        run=experiment.plan["runs"][0],
        files={},
        store=str(store),
        probe=probe,
        made_by=remote.made_by(),
        capture=None,
        limit_seconds=None,
        wait=False,
        topic="",
    )


@pytest.fixture
def sent(tmp_path: Path) -> tuple[Store, str, dict[str, bytes]]:
    """A store, a run that was made elsewhere, and its files."""
    experiment = tailcut.load(experiments.tiny(tmp_path))
    store = Store.create(tmp_path / "results", experiment.plan, experiment.path)
    answer = remote.carry_out(job(experiment, store.directory), scratch=str(tmp_path))
    assert answer.files is not None
    return store, experiment.plan["runs"][0]["id"], answer.files


def test_a_process_pool_makes_the_runs(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with ProcessPoolExecutor(2) as pool:
        result = tailcut.run(experiment, out=tmp_path / "results", executor=pool)
    assert len(result.finished_runs) == 4


def test_a_forked_process_leaves_the_children_of_its_parent_alone(sent: tuple[Store, str, dict[str, bytes]]) -> None:
    """The fixture has made a run in this process, which keeps a child for the next one."""
    experiment = tailcut.load(sent[0].directory.parent / "tiny.toml")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert len(tailcut.run(experiment, out=sent[0].directory, executor=pool).finished_runs) == 4
    again = remote.carry_out(job(experiment, sent[0].directory), scratch=str(sent[0].directory.parent))
    assert again.files is not None


class BreaksAfterOneRun(ThreadPoolExecutor):
    """Stands for a pool whose process dies: it takes the question after its version and one job, and then nothing."""

    taken = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        self.taken += 1
        if self.taken > 2:
            raise BrokenExecutor("a process in the pool was terminated abruptly")
        return super().submit(function, *arguments, **named)


def test_a_broken_pool_fails_the_runs_it_rejects_and_keeps_the_others(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with BreaksAfterOneRun(1) as pool, pytest.raises(RunError, match="3 of 4 runs failed") as failed:
        tailcut.run(experiment, out=tmp_path / "results", executor=pool)
    assert str(failed.value).count("BrokenExecutor: a process in the pool was terminated abruptly") == 3
    assert len(tailcut.open_results(tmp_path / "results").finished_runs) == 1


def test_a_run_that_fails_is_one_failed_run_and_the_others_are_kept(tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path)
    path.write_text(path.read_text().replace('"50KB"', '"sizes.cdf"'))
    (tmp_path / "sizes.cdf").write_text("1000 0.5\n20000 1\n")
    experiment = tailcut.load(path)
    experiment.plan["runs"][0]["seed"] = 99  # it is no longer the run that its identifier says
    with ProcessPoolExecutor(1) as pool, pytest.raises(RunError, match="1 of 4 runs failed"):
        tailcut.run(experiment, out=tmp_path / "results", executor=pool)


def test_files_too_large_for_an_executor_are_an_error_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of this process stand for workers that do not see the results and may send nothing with their answer."""
    monkeypatch.setattr(remote, "_sees", lambda job: False)
    monkeypatch.setattr(remote, "INLINE_BYTES", 0)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with ThreadPoolExecutor(1) as pool, pytest.raises(ClusterError) as refused:
        tailcut.run(experiment, out=tmp_path / "results", executor=pool)
    assert refused.value.code == "TC-C003"
    assert "too large to come back" in str(refused.value)
    assert "--cluster" in str(refused.value.hint)
    assert [path for path in (tmp_path / "results" / "runs").iterdir() if path.is_dir()] == []
    assert all(path.name.startswith("tailcut-runs-") for path in scratch.iterdir())


def test_a_run_made_elsewhere_is_stored_whole(sent: tuple[Store, str, dict[str, bytes]]) -> None:
    store, run_id, files = sent
    store.adopt(run_id, files)
    assert store.state(run_id).value == "complete"


@pytest.mark.parametrize("name", ["../outside.parquet", "/outside", ".hidden", "a/b", ""])
def test_a_file_name_that_leads_out_of_the_run_writes_nothing(
    sent: tuple[Store, str, dict[str, bytes]], name: str
) -> None:
    store, run_id, files = sent
    with pytest.raises(StoreError, match="arrived with an unexpected file") as refused:
        store.adopt(run_id, {**files, name: b"x"})
    assert refused.value.code == "TC-S010"
    assert [path.name for path in (store.directory / "runs").iterdir() if path.is_dir()] == []
    assert not (store.directory.parent / "outside.parquet").exists()


def test_a_damaged_run_is_not_taken(sent: tuple[Store, str, dict[str, bytes]]) -> None:
    store, run_id, files = sent
    with pytest.raises(StoreError, match="did not arrive as it was written"):
        store.adopt(run_id, {**files, "flows.parquet": files["flows.parquet"][:-1]})
    assert store.state(run_id).value == "absent"


def test_a_file_that_the_run_does_not_list_is_not_taken(sent: tuple[Store, str, dict[str, bytes]]) -> None:
    store, run_id, files = sent
    with pytest.raises(StoreError, match="did not arrive as it was written"):
        store.adopt(run_id, {**files, "notes.txt": b"x"})
    assert store.state(run_id).value == "absent"


def test_a_run_with_a_file_missing_is_not_taken(sent: tuple[Store, str, dict[str, bytes]]) -> None:
    store, run_id, files = sent
    for name in files:
        with pytest.raises(StoreError, match="did not arrive as it was written"):
            store.adopt(run_id, {other: content for other, content in files.items() if other != name})
    assert store.state(run_id).value == "absent"


def test_a_run_of_another_identifier_is_not_taken(sent: tuple[Store, str, dict[str, bytes]]) -> None:
    store, _, files = sent
    with pytest.raises(StoreError, match="did not arrive as it was written"):
        store.adopt("0" * 64, files)


def test_different_tables_for_an_existing_run_are_reported_as_such(
    sent: tuple[Store, str, dict[str, bytes]],
) -> None:
    store, run_id, files = sent
    store.adopt(run_id, files)
    about = json.loads(files["run.json"])
    about["files"]["flows.parquet"] = about["files"]["tiers.parquet"]
    other = {**files, "flows.parquet": files["tiers.parquet"], "run.json": json.dumps(about).encode()}
    with pytest.raises(StoreError, match="made twice and its tables differ") as refused:
        store.adopt(run_id, other)
    assert refused.value.code == "TC-S011"
    assert (store.path(run_id) / "flows.parquet").read_bytes() == files["flows.parquet"]


def test_a_worker_of_another_version_makes_nothing(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    asked = job(experiment, tmp_path)
    answer = remote.carry_out(remote.Job(**{**{n: getattr(asked, n) for n in asked.__slots__}, "made_by": ("9.9", 1)}))
    assert answer.failure is not None
    assert "9.9" in answer.failure


@pytest.mark.parametrize("sees", [True, False], ids=["shared directory", "directory of its own"])
def test_a_system_error_on_a_worker_is_not_taken_for_a_lost_connection(
    sees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    monkeypatch.setattr(remote, "_sees", lambda job: sees)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    answer = remote.carry_out(job(experiment, tmp_path / "results"))
    assert answer.unfit
    assert "FileNotFoundError" in str(answer.failure)
    assert str(tmp_path / "absent") in str(answer.failure)
