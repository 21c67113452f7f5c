"""Whatever is killed, the same command again ends in what a sweep on one machine gives, byte for byte.

The head waits after each run that is there until the test lets it go on, and what is killed is killed in between:
nothing depends on how fast anything is. The long form makes 200 runs on four workers, of which twenty are killed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from support.clusters import blind, local, records, tables
from tailcut.results import Store

Cluster = Any  # of conftest.py

HEAD = """
import sys
import tailcut
from tailcut.api import Silent
from tailcut.cluster import connect
from tailcut.errors import ClusterError

class InStep(Silent):
    def finished(self, run_id):
        print("finished", flush=True)
        sys.stdin.readline()

file, directory, scheduler = sys.argv[1:]
try:
    with connect(scheduler) as client:
        tailcut.run(tailcut.load(file), out=directory, executor=client, progress=InStep())
except ClusterError as error:
    sys.exit(f"{error.code}: {error}")
print("all there", flush=True)
"""
MOST_HEADS = 6  # of which one is killed and one may lose its scheduler


def leave_alone(head: subprocess.Popen[str]) -> None:
    """Most runs end like that."""


@dataclass
class Chaos:
    """A sweep in which something is killed after certain numbers of finished runs."""

    cluster: Cluster
    experiment: Path
    directory: Path
    workers: int
    before: tuple[str, ...]  # what they are started with
    events: dict[int, Callable[[subprocess.Popen[str]], None]] = field(default_factory=dict)
    finished: int = 0

    def start_worker(self) -> None:
        self.cluster.start_worker(before=self.before)

    def kill_worker(self, head: subprocess.Popen[str]) -> None:
        """The one that has lived longest; another is started, as a nanny would."""
        oldest = next(worker for worker in self.cluster.workers if worker.poll() is None)
        os.killpg(oldest.pid, signal.SIGKILL)
        oldest.wait()
        self.start_worker()

    def kill_head(self, head: subprocess.Popen[str]) -> None:
        head.kill()

    def kill_scheduler(self, head: subprocess.Popen[str]) -> None:
        """With its workers, which end with it or, not connected yet, wait for it; all are started again."""
        self.cluster.kill_scheduler()
        alive = [worker for worker in self.cluster.workers if worker.poll() is None]
        for worker in alive:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        self.cluster.start_scheduler()
        for _ in range(self.workers):
            self.start_worker()

    def sweep(self) -> None:
        """The command, as often as it takes."""
        for _ in range(MOST_HEADS):
            head = subprocess.Popen(
                [sys.executable, "-c", HEAD, str(self.experiment), str(self.directory), str(self.cluster.file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            try:
                if self.follow(head):
                    return
            finally:
                head.kill()
                head.wait()
        raise AssertionError("the sweep does not end")

    def follow(self, head: subprocess.Popen[str]) -> bool:
        """Let the head go from run to run; whether it said that all runs are there."""
        assert head.stdin is not None
        assert head.stdout is not None
        said = ""
        try:
            for said in head.stdout:
                if said == "finished\n":
                    self.finished += 1
                    self.events.pop(self.finished, leave_alone)(head)
                    head.stdin.write("\n")
                    head.stdin.flush()
        except BrokenPipeError:
            pass  # it was killed
        _, errors = head.communicate()
        last = errors.splitlines()[-1] if errors else ""  # before it, the cluster may have told of its dead
        assert head.returncode in (0, -signal.SIGKILL) or last.startswith("TC-C007"), errors
        return said == "all there\n"


def chaos(cluster: Cluster, tmp_path: Path, *, shared: bool, loads: int, seeds: int, workers: int, kills: int) -> None:
    """A sweep over loads and seeds of two schemes; workers are killed at even distances, head and scheduler between."""
    values = ", ".join(f"{0.1 + 0.02 * index:.2f}" for index in range(loads))
    path = experiments.tiny(tmp_path, f'[sweep]\n"traffic.load" = [{values}]\n')
    path.write_text(path.read_text().replace("seeds = 2", f"seeds = {seeds}"))
    experiment = tailcut.load(path)
    runs = len(experiment.plan["runs"])
    assert runs == 2 * loads * seeds
    far = tmp_path / "far"
    sweep = Chaos(cluster, path, far, workers, () if shared else tuple(blind(far)))
    every = runs // (kills + 1)
    sweep.events = {every * (index + 1): sweep.kill_worker for index in range(kills)}
    sweep.events |= {runs // 3 + 1: sweep.kill_head, 2 * runs // 3 + 1: sweep.kill_scheduler}
    assert len(sweep.events) == kills + 2
    for _ in range(workers):
        sweep.start_worker()
    sweep.sweep()
    assert sweep.events == {}, "all of it has happened"
    near = tmp_path / "near"
    assert tables(far) == local(experiment, near)
    assert records(far) == records(near)
    store = Store(far)
    assert {store.verify(run_id).value for run_id in store.runs()} == {"complete"}
    if not shared:
        assert store.clear_leftovers() == 0


def test_a_sweep_survives_the_death_of_workers_head_and_scheduler(cluster: Cluster, tmp_path: Path) -> None:
    chaos(cluster, tmp_path, shared=False, loads=2, seeds=3, workers=2, kills=2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shared", [False, True], ids=["without a shared directory", "with a shared directory"])
def test_a_sweep_of_200_runs_survives_twenty_deaths(cluster: Cluster, tmp_path: Path, shared: bool) -> None:
    chaos(cluster, tmp_path, shared=shared, loads=20, seeds=5, workers=4, kills=20)
