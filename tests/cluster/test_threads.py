"""Executors of threads: what a thread keeps for its next job goes with the thread."""

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tailcut
from support import experiments, waiting
from tailcut.backends import remote


def workers() -> set[int]:
    """The worker processes of this process."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if parent == os.getpid() and b"tailcut.backends.worker" in command:
            found.add(int(entry.name))
    return found


@pytest.fixture
def gone() -> Callable[[], None]:
    """Wait until no worker process is there that was not there before."""
    before = workers()
    return lambda: waiting.until(lambda: workers() <= before, lambda: f"left: {workers() - before}")


def test_threads_that_end_leave_no_process_behind(tmp_path: Path, gone: Callable[[], None]) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path))
    for number in range(2):
        with ThreadPoolExecutor(2) as pool:
            result = tailcut.run(experiment, out=tmp_path / f"results-{number}", executor=pool)
        assert len(result.finished_runs) == 4
        gone()


def test_threads_that_end_leave_no_directory_behind(
    tmp_path: Path, gone: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads stand for workers that do not see the directory of results, and keep runs elsewhere."""
    monkeypatch.setattr(remote, "_sees", lambda job: False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with ThreadPoolExecutor(2) as pool:
        tailcut.run(tailcut.load(experiments.tiny(tmp_path)), out=tmp_path / "results", executor=pool)
    gone()
    waiting.until(lambda: not list(scratch.iterdir()), lambda: str(list(scratch.iterdir())))
