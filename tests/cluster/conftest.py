"""Real Dask processes on loopback, in a directory of the test's own, and gone after it."""

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support import waiting
from support.skipping import missing

BIN = Path(sys.executable).parent
PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")  # some are served without a dashboard, too
QUIET = {"DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "false", "DASK_LOGGING__DISTRIBUTED": "error"}


@dataclass
class Cluster:
    """A scheduler and its workers, each a process."""

    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    scheduler: subprocess.Popen[bytes] = field(init=False)

    @property
    def file(self) -> Path:
        """The scheduler file."""
        return self.directory / "scheduler.json"

    def kill_scheduler(self) -> None:
        """SIGKILL to the scheduler that was started last."""
        os.killpg(self.scheduler.pid, signal.SIGKILL)
        self.scheduler.wait()

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return str(json.loads(self.file.read_text())["address"])

    def start_scheduler(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the scheduler, again where it was, and wait until it can be reached."""
        port = "0"
        if self.file.exists():
            port = self.address.rpartition(":")[2]
            self.file.unlink()
        process = self._start(
            ["dask", "scheduler", "--host", "127.0.0.1", "--port", port, *PAGES],
            "--scheduler-file",
            str(self.file),
            *options,
        )

        def written() -> bool:
            assert process.poll() is None, "the scheduler ended"
            # Dask opens the file, then writes it: on a busy machine it is there, and empty, for a
            # while.
            return self.file.exists() and self.file.read_text().rstrip().endswith("}")

        waiting.until(written, self.logs)
        self.scheduler = process
        return process

    def start_worker(self, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start a worker of one thread, without a nanny that would start it again."""
        scratch = self.directory / f"scratch-{len(self.processes)}"
        process = self._start(
            [*before, "dask", "worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", *PAGES],
            *("--scheduler-file", str(self.file), "--local-directory", str(scratch)),
            *options,
        )
        self.workers.append(process)
        return process

    def logs(self) -> str:
        """Returns the logs of all processes."""
        return "\n".join(file.read_text() for file in sorted(self.directory.glob("log-*.txt")))

    def _start(self, command: Sequence[str], *options: str) -> subprocess.Popen[bytes]:
        with (self.directory / f"log-{len(self.processes)}.txt").open("wb") as log:
            process = subprocess.Popen(
                [*command, *options],
                stdout=log,
                stderr=log,
                env={**os.environ, **QUIET, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
                process_group=0,
            )
        self.processes.append(process)
        return process

    def stop(self) -> None:
        """End every process that was started, by its own group."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="session", autouse=True)
def _extra() -> None:
    """Skips every test of clusters where Dask is not installed."""
    try:
        # Dask reads its settings here, before a test changes the environment.
        importlib.import_module("distributed")
    except ImportError:
        missing("the extra tailcut[cluster] is not installed", "pip install 'tailcut[cluster]'")


@pytest.fixture
def cluster_of_its_own(tmp_path: Path) -> Iterator[Cluster]:
    """Without a scheduler."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    started = Cluster(directory)
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture
def cluster(cluster_of_its_own: Cluster) -> Cluster:
    """A scheduler without workers."""
    cluster_of_its_own.start_scheduler()
    return cluster_of_its_own
