"""A worker process that is asked to end does so where nothing is half done."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tailcut
from support import experiments
from tailcut.plan import PlannedRun
from tailcut.results import Store

ASKED_IN_THE_MIDDLE = """
import os, signal, sys
from tailcut.backends import sim, worker

def make(run, store, on_progress, capture, threads, auto):
    os.kill(os.getpid(), signal.SIGTERM)
    print("goes on", file=sys.stderr)
    on_progress(1, 1, 1)
    print("and on", file=sys.stderr)

sim.make = make
worker.main()
"""


@pytest.fixture
def experiment(tmp_path: Path) -> tailcut.Experiment:
    return tailcut.load(experiments.tiny(tmp_path))


@pytest.fixture
def store(experiment: tailcut.Experiment, tmp_path: Path) -> Store:
    return Store.create(tmp_path / "results", experiment.plan)


def started(store: Store, *program: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    asked = [sys.executable, *program, str(store.directory)]
    return subprocess.Popen(asked, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def job(run: PlannedRun, *, wait: bool = False) -> str:
    return json.dumps({"run": run, "capture": None, "wait": wait, "threads": 1, "auto": False}) + "\n"


def test_sigterm_waits_for_a_step_that_must_not_be_interrupted(experiment: tailcut.Experiment, store: Store) -> None:
    process = started(store, "-c", ASKED_IN_THE_MIDDLE)
    answers, said = process.communicate(job(experiment.plan["runs"][0]))
    assert (process.returncode, answers, said) == (143, "", "goes on\n")
    assert list((store.directory / "runs").iterdir()) == []


def test_a_worker_waiting_for_a_job_exits_at_once_on_sigterm(experiment: tailcut.Experiment, store: Store) -> None:
    process = started(store, "-m", "tailcut.backends.worker")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(job(experiment.plan["runs"][0]))
    process.stdin.flush()
    while "done" not in json.loads(process.stdout.readline()):
        pass
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == 143
    process.communicate()


def test_a_worker_waiting_for_another_process_exits_at_once_on_sigterm(
    experiment: tailcut.Experiment, store: Store
) -> None:
    run, other, *_ = experiment.plan["runs"]
    process = started(store, "-m", "tailcut.backends.worker")
    assert process.stdin is not None
    assert process.stdout is not None
    with store.claim(other["id"]) as ours:
        assert ours
        process.stdin.write(job(run) + job(other, wait=True))
        process.stdin.flush()
        while "done" not in json.loads(process.stdout.readline()):
            pass
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 143
    process.communicate()
