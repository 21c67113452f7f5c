"""Progress of a sweep on a scripted cluster."""

import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import tailcut
from support import experiments
from tailcut.api import Silent
from tailcut.backends import Options, farm, remote
from tailcut.backends.farm import Attempt, Done, FarmRunner
from tailcut.plan import PlannedRun
from tailcut.results import Store
from tailcut.terminal.progress import Bars


class LostError(Exception):
    """A worker was lost."""


@dataclass
class Scripted:
    """A farm whose workers and whose telling are a list of steps, one for each job."""

    steps: Sequence[Callable[["Scripted", remote.Job, Done], None]]
    staff: list[Mapping[str, int]]
    dashboard: str | None = "http://127.0.0.1:8787/status"
    tells: bool = True
    can_call_workers: bool = False
    heard: Callable[[str, dict[str, Any]], None] = lambda run_id, message: None
    taken: int = 0
    shunned: list[str] = field(default_factory=list)

    def check(self, runs: Sequence[PlannedRun]) -> None:
        pass

    def workers(self) -> Mapping[str, int]:
        return self.staff.pop(0) if len(self.staff) > 1 else self.staff[0]

    def submit(self, job: remote.Job, done: Done) -> None:
        step = self.steps[self.taken]
        self.taken += 1
        step(self, job, done)

    def is_worker_loss(self, error: BaseException) -> bool:
        return isinstance(error, LostError)

    def take_refusals(self) -> list[str]:
        return []

    def exclude_worker(self, attempt: Attempt) -> bool:
        self.shunned.append(str(attempt.where))
        return True

    def listen(self, topic: str, heard: Callable[[str, dict[str, Any]], None]) -> None:
        self.heard = heard

    def kept(self, attempt: Attempt) -> dict[str, int]:
        raise AssertionError("no run of these tests comes to this")

    def read_chunk(self, attempt: Attempt, name: str, offset: int, size: int) -> bytes:
        raise AssertionError("no run of these tests comes to this")

    def forget(self, attempt: Attempt) -> None:
        raise AssertionError("no run of these tests comes to this")

    def write_chunk(self, attempt: Attempt, digest: str, token: str, offset: int, content: bytes) -> None:
        raise AssertionError("no run of these tests comes to this")

    def cancel(self) -> None:
        pass


def made_on(worker: str, *advances: tuple[int, int]) -> Callable[[Scripted, remote.Job, Done], None]:
    def step(farm: Scripted, job: remote.Job, done: Done) -> None:
        farm.heard(job.run["id"], {"worker": worker})
        for now_ps, hops in advances:
            farm.heard(job.run["id"], {"now_ps": now_ps, "packet_hops": hops})
        done(Attempt(job, remote.carry_out(job), where=worker))

    return step


def lost_on(worker: str) -> Callable[[Scripted, remote.Job, Done], None]:
    def step(farm: Scripted, job: remote.Job, done: Done) -> None:
        farm.heard(job.run["id"], {"worker": worker})
        done(Attempt(job, error=LostError()))

    return step


def unfit_on(worker: str) -> Callable[[Scripted, remote.Job, Done], None]:
    def step(farm: Scripted, job: remote.Job, done: Done) -> None:
        done(Attempt(job, remote.Answer(None, "its disk is full (/scratch)", unfit=True), where=worker))

    return step


def silently(farm: Scripted, job: remote.Job, done: Done) -> None:
    """Answers first, and delivers the worker's progress messages afterwards."""
    done(Attempt(job, remote.carry_out(job), where="late:1"))
    farm.heard(job.run["id"], {"worker": "late:1"})
    farm.heard(job.run["id"], {"now_ps": 1, "packet_hops": 1})


@dataclass
class ProgressLog(Silent):
    """Writes down what it is told."""

    said: list[str] = field(default_factory=list)

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        self.said.append(f"started {label}")

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        self.said.append(f"advanced {packet_hops}")

    def finished(self, run_id: str) -> None:
        self.said.append("finished")

    def note(self, message: str) -> None:
        self.said.append(message)


def sweep(scripted: Scripted, directory: Path, progress: Any, runs: int) -> None:
    experiment = tailcut.load(experiments.tiny(directory))
    store = Store.create(directory / "results", experiment.plan, experiment.path)
    FarmRunner(store, progress, Options(), scripted).make(experiment.plan["runs"][:runs])


def test_a_run_is_reported_as_started_with_the_worker_that_begins_it(tmp_path: Path) -> None:
    told = ProgressLog()
    sweep(Scripted([made_on("10.0.0.3:4711", (5, 70), (9, 90))], [{"10.0.0.3:4711": 16}]), tmp_path, told, 1)
    assert told.said == [
        "1 workers, 16 runs at a time; what they do is shown at http://127.0.0.1:8787/status",
        "started TCP, seed 1 on 10.0.0.3:4711",
        "advanced 70",
        "advanced 90",
        "finished",
    ]


def test_a_run_that_is_made_again_starts_again_on_the_other_worker(tmp_path: Path) -> None:
    told = ProgressLog()
    sweep(Scripted([lost_on("a:1"), made_on("b:1")], [{"a:1": 1, "b:1": 1}]), tmp_path, told, 1)
    assert told.said[1:] == [
        "started TCP, seed 1 on a:1",
        "TCP, seed 1: lost its worker, retrying on another",
        "started TCP, seed 1 on b:1",
        "finished",
    ]


def test_a_worker_whose_own_disk_is_full_gets_nothing_more_and_its_run_is_made_elsewhere(tmp_path: Path) -> None:
    told = ProgressLog()
    scripted = Scripted([unfit_on("a:1"), made_on("b:1")], [{"a:1": 1, "b:1": 1}])
    sweep(scripted, tmp_path, told, 1)
    assert scripted.shunned == ["a:1"]
    assert "the worker a:1: its disk is full (/scratch); its runs are made elsewhere" in told.said
    assert told.said[-1] == "finished"


def test_a_result_that_overtakes_its_progress_messages_is_accepted(tmp_path: Path) -> None:
    told = ProgressLog()
    sweep(Scripted([silently, silently], [{"late:1": 1}]), tmp_path, told, 2)
    assert [one.partition(" ")[0] for one in told.said[1:]] == ["started", "finished", "started", "finished"]


def test_joining_and_leaving_workers_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farm, "WATCH_SECONDS", 0)
    monkeypatch.setattr(farm, "AHEAD", 1)
    told = ProgressLog()
    staff = [{"a:1": 1}, {"a:1": 1, "b:1": 2}, {"b:1": 2}, {"b:1": 2, "c:1": 4, "d:1": 4}, {"b:1": 2}]
    sweep(Scripted([made_on("x:1")] * 4, list(staff)), tmp_path, told, 4)
    assert [one for one in told.said if one.startswith("workers:")] == [
        "workers: b:1 came; 2 workers, 3 runs at a time",
        "workers: a:1 left; 1 workers, 2 runs at a time",
        "workers: 2 came; 3 workers, 10 runs at a time",
        "workers: 2 left; 1 workers, 2 runs at a time",
    ]


def test_the_summary_can_be_read_during_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farm, "AHEAD", 1)

    class Looks(ProgressLog):
        def finished(self, run_id: str) -> None:
            seen = tailcut.open_results(tmp_path / "results")
            self.said.append(f"{len(seen.finished_runs)} there, {seen.summary()['n_flows'].max()!r} flows")

    looks = Looks()
    sweep(Scripted([made_on("a:1")] * 2, [{"a:1": 1}]), tmp_path, looks, 2)
    first, second = (one for one in looks.said if "there, " in one)
    assert first.startswith("1 there, ")
    assert second.startswith("2 there, ")
    assert first.partition(", ")[2] != second.partition(", ")[2]


def test_runs_are_submitted_only_as_far_ahead_as_there_are_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(farm, "WATCH_SECONDS", 0)
    held: queue.SimpleQueue[tuple[remote.Job, Done]] = queue.SimpleQueue()
    most = 0

    def hold(scripted: Scripted, job: remote.Job, done: Done) -> None:
        nonlocal most
        held.put((job, done))
        most = max(most, held.qsize())

    class Releases(Scripted):
        def workers(self) -> Mapping[str, int]:
            while not held.empty():
                job, done = held.get()
                done(Attempt(job, remote.carry_out(job), where="a:1"))
            return {"a:1": 1}

    sweep(Releases([hold] * 4, [{}]), tmp_path, ProgressLog(), 4)
    assert most == farm.AHEAD


def test_bars_show_as_many_runs_as_fit_and_the_total_rate(tmp_path: Path) -> None:
    now = 0.0
    console = Console(width=150, height=20, force_terminal=True, color_system=None, legacy_windows=False)
    with console.capture() as capture, Bars(console, lambda: now) as bars:
        bars.begin(100, 0, 100_000)
        for number in range(50):
            bars.started(f"{number}", f"run {number} on host-{number}:1", 10**12, 1_000)
        now = 1.0
        for number in range(50):
            bars.advanced(f"{number}", 10, 500)
        bars.started("0", "run 0 on another:1", 10**12, 1_000)
        bars.advanced("0", 10, 500)
    screen = capture.get().rpartition("sweep")[2]
    assert "0 of 100 runs, 50 under way" in screen
    assert "25.0 k packet-hops/s" in screen
    assert "run 0 on another:1" in screen
    assert "run 13 on host-13:1" in screen
    assert "run 14 " not in screen
