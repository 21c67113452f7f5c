"""A sweep on a cluster gives what a local one gives, byte for byte, whatever happens to the cluster."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments, waiting
from support.clusters import blind, local, tables
from tailcut.api import Silent
from tailcut.backends import farm
from tailcut.cluster import DaskFarm, connect
from tailcut.errors import ClusterError, RunError

Cluster = Any  # of conftest.py

MORE_LOADS = """
[sweep]
"traffic.load" = [0.1, 0.2, 0.3, 0.4]
"""


def elsewhere(experiment: tailcut.Experiment, cluster: Cluster, directory: Path, **options: Any) -> dict[str, str]:
    """Runs a sweep on the cluster and returns its tables."""
    with connect(str(cluster.file)) as client:
        tailcut.run(experiment, out=directory, executor=client, **options)
    return tables(directory)


def test_workers_that_see_the_directory_write_there(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    cluster.start_worker()
    assert elsewhere(experiment, cluster, tmp_path / "far") == local(experiment, tmp_path / "near")


def test_workers_that_do_not_see_the_directory_send_their_runs_back(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    cluster.start_worker(before=blind(tmp_path / "far"))
    assert elsewhere(experiment, cluster, tmp_path / "far") == local(experiment, tmp_path / "near")


def test_a_large_run_comes_back_in_pieces(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path), set={"horizon.arrivals": "100ms"}, seeds=1)
    cluster.start_worker(before=blind(tmp_path / "far"))
    with connect(str(cluster.file)) as client:
        result = tailcut.run(experiment, out=tmp_path / "far", executor=client, capture=["h0", "h1", "h2"])
    captures = list(result.directory.glob("runs/*/capture.pcapng"))
    assert sum(path.stat().st_size for path in captures) > 8_000_000
    assert len(result.finished_runs) == 2


@pytest.mark.parametrize("with_job", [farm.WITH_JOB_BYTES, 0], ids=["with each job", "once to each worker"])
def test_files_that_an_experiment_names_travel_with_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_job: int
) -> None:
    monkeypatch.setattr(farm, "WITH_JOB_BYTES", with_job)
    monkeypatch.setattr(farm, "PIECE_BYTES", 10)
    supplied = []
    write_chunk = DaskFarm.write_chunk

    def noted(self: DaskFarm, attempt: farm.Attempt, *what: Any) -> None:
        supplied.append(what)
        write_chunk(self, attempt, *what)

    monkeypatch.setattr(DaskFarm, "write_chunk", noted)
    hidden = tmp_path / "inputs"
    cluster.start_worker(before=blind(hidden))
    path = experiments.tiny(hidden)
    path.write_text(path.read_text().replace('"50KB"', '"sizes.cdf"'))
    (hidden / "sizes.cdf").write_text("1000 0.5\n20000 1\n")
    experiment = tailcut.load(path)
    assert elsewhere(experiment, cluster, tmp_path / "far") == local(experiment, tmp_path / "near")
    pieces = [content for _, _, _, content in supplied]
    assert pieces == ([] if with_job else [b"1000 0.5\n2", b"0000 1\n", b""]), "once, though four runs need it"


def test_a_killed_worker_costs_its_run_a_new_start_and_nothing_else(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path, MORE_LOADS), seeds=1)
    for _ in range(2):
        cluster.start_worker()

    class KillOne(Silent):
        """Kills a worker as soon as the first run is there, and starts another."""

        done = False

        def finished(self, run_id: str) -> None:
            if not self.done:
                os.killpg(cluster.workers[0].pid, signal.SIGKILL)
                cluster.start_worker()
                self.done = True

    assert elsewhere(experiment, cluster, tmp_path / "far", progress=KillOne()) == local(experiment, tmp_path / "near")


def test_a_sweep_whose_only_worker_is_killed_goes_on_with_the_next(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path, MORE_LOADS), seeds=1)
    cluster.start_worker()

    with connect(str(cluster.file)) as client:

        class KillOnly(Silent):
            """Kills the worker as soon as the first run is there, and starts another once the scheduler knows."""

            done = False

            def finished(self, run_id: str) -> None:
                if not self.done:
                    os.killpg(cluster.workers[0].pid, signal.SIGKILL)
                    waiting.until(lambda: not client.nthreads(), client.nthreads)
                    cluster.start_worker()
                    self.done = True

        tailcut.run(experiment, out=tmp_path / "far", executor=client, progress=KillOnly())
    assert tables(tmp_path / "far") == local(experiment, tmp_path / "near")


def test_a_killed_scheduler_ends_the_command_and_the_same_command_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path, MORE_LOADS), seeds=1)
    cluster.start_worker()

    class KillScheduler(Silent):
        """Kills the scheduler as soon as the first run is there."""

        def finished(self, run_id: str) -> None:
            if cluster.processes[0].poll() is None:
                os.killpg(cluster.processes[0].pid, signal.SIGKILL)
                cluster.processes[0].wait()

    with pytest.raises(ClusterError) as gone:
        elsewhere(experiment, cluster, tmp_path / "far", progress=KillScheduler())
    assert gone.value.code == "TC-C007"
    kept = tables(tmp_path / "far")
    assert kept
    cluster.start_scheduler()
    cluster.start_worker()
    everything = elsewhere(experiment, cluster, tmp_path / "far")
    assert everything == local(experiment, tmp_path / "near")
    assert kept.items() <= everything.items()


def test_a_run_that_takes_too_long_is_one_failed_run(cluster: Cluster, tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path), seeds=1)
    cluster.start_worker()
    with pytest.raises(RunError, match=r"longer than the limit of 0\.001 s"):
        elsewhere(experiment, cluster, tmp_path / "far", limit_seconds=0.001)


def test_a_run_too_big_for_any_worker_is_refused_before_the_sweep(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_worker("--resources", "MEMORY=1e6")
    with pytest.raises(ClusterError, match="too big for any worker") as refused:
        elsewhere(tailcut.load(experiments.tiny(tmp_path)), cluster, tmp_path / "far")
    assert refused.value.code == "TC-C006"


def test_a_cluster_on_this_machine_needs_nothing_else(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    with connect("local:1") as client:
        tailcut.run(experiment, out=tmp_path / "far", executor=client)
    assert tables(tmp_path / "far") == local(experiment, tmp_path / "near")
