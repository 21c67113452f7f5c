"""Worker processes as their parent sees them: how they end, and how long their runs may take."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from tailcut.api import Silent
from tailcut.backends import Options, pool
from tailcut.backends.worker_process import MessageQueue, WorkerProcess
from tailcut.lab import process
from tailcut.results import Store


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGRTMIN + 2, signal.SIGRTMAX - 1])
def test_a_child_that_a_signal_ends_says_which(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says_its_number = 'import os, time; print(f"{{\\"pid\\": {os.getpid()}}}", flush=True); input()'
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, **named: popen([sys.executable, "-c", says_its_number], **named)
    )
    said: MessageQueue = queue.SimpleQueue()
    started = WorkerProcess(tmp_path, said)
    _, message = said.get()
    assert message is not None
    os.kill(message["pid"], number)
    name = "SIGTERM" if number == signal.SIGTERM else str(int(number))
    assert started.wait_for_exit() == f"signal {name}"


class Scripted:
    """A child whose first run another process makes for three hours, on a clock that the test owns."""

    now = 0.0

    def __init__(self, _directory: Path, said: MessageQueue) -> None:
        self._said: Any = said
        self.open = True

    def send(self, _run: Any, _capture: Any, *, wait: bool, threads: int = 1, auto: bool = False) -> None:
        if not wait:
            self._say({"done": "busy"})
            return
        Scripted.now += 10_000
        self._say({"begun": True})
        self._say({"done": "made"})

    def _say(self, message: Any) -> None:
        self._said.put((self, message))

    def finish(self) -> None:
        self.open = False
        self._say(None)

    kill = finish

    def wait_for_exit(self) -> str:
        return "exit code 0"

    def stop(self) -> None:
        """Does nothing: the process has ended."""

    ask_to_stop = stop


def test_the_time_limit_of_a_run_counts_from_when_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WorkerProcess", Scripted)
    monkeypatch.setattr(time, "monotonic", lambda: Scripted.now)
    experiment = tailcut.load(experiments.tiny(tmp_path))
    store = Store.create(tmp_path / "results", experiment.plan)
    pool.Pool(store, Silent(), Options(limit_seconds=4, jobs=1)).make(experiment.plan["runs"][:1])
    assert Scripted.now == 10_000


def test_a_worker_reports_when_the_run_it_waited_for_begins(tmp_path: Path) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    store = Store.create(tmp_path / "results", experiment.plan)
    jobs = [
        {"run": run, "capture": None, "wait": wait, "threads": 1, "auto": False}
        for run, wait in zip(experiment.plan["runs"], (False, True), strict=False)
    ]
    command = [sys.executable, "-m", "tailcut.backends.worker", str(store.directory)]
    said = subprocess.run(
        command, input="".join(json.dumps(job) + "\n" for job in jobs), capture_output=True, text=True, check=True
    ).stdout
    answers = [line for line in map(json.loads, said.splitlines()) if "now_ps" not in line]
    assert answers == [{"done": "made"}, {"begun": True}, {"done": "made"}]


@pytest.mark.parametrize("seconds", [float("inf"), 1e10, 1e300])
def test_a_time_limit_beyond_the_clocks_range_is_no_limit(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[float] = []
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", 'input(); print(\'{"done": {"frames": 1}}\')'))
    monkeypatch.setattr(threading.Timer, "start", lambda timer: started.append(timer.interval))
    assert process.run("{}", lambda now_ns, over: None, seconds) == {"frames": 1}
    assert started == []
