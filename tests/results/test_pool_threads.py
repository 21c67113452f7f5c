"""How many threads a pool gives to each run of a sweep with ``threads="auto"``."""

from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from support.workers import InProcess
from tailcut.backends import Capture
from tailcut.backends.pool import threads_of
from tailcut.plan import PlannedRun


@pytest.mark.parametrize(
    ("cores", "busy", "beginning", "threads"),
    [(2, 0, 1, 2), (2, 1, 1, 1), (8, 0, 3, 2), (8, 2, 2, 3), (2, 0, 5, 1), (2, 4, 1, 1)],
)
def test_runs_that_begin_share_the_idle_cores(cores: int, busy: int, beginning: int, threads: int) -> None:
    assert threads_of(cores, busy, beginning) == threads


@pytest.mark.parametrize(("runs", "expected"), [(1, [4]), (2, [2, 2]), (3, [1, 1, 2]), (6, [1] * 6)])
def test_the_last_runs_of_a_sweep_get_the_cores_that_are_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, expected: list[int]
) -> None:
    asked: list[tuple[int, bool]] = []

    class Noting(InProcess):
        def send(self, run: PlannedRun, capture: Capture | None, **how: Any) -> None:
            asked.append((how["threads"], how["auto"]))
            super().send(run, capture, **how)

    monkeypatch.setattr("tailcut.backends.pool.WorkerProcess", Noting)
    monkeypatch.setattr("tailcut.results.machine.cores", lambda: 4)
    monkeypatch.setattr("tailcut.results.machine.idle_cores", lambda _own: 4)
    one_scheme = experiments.TINY.partition("[schemes.RepFlow]")[0]
    tailcut.run(tailcut.loads(one_scheme, seeds=runs), out=tmp_path / "results", threads="auto")
    assert asked == [(threads, True) for threads in expected]
