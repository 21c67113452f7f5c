"""Workers without processes: a test that is not about worker processes need not start an interpreter for each."""

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tailcut.backends import Capture, worker
from tailcut.backends.worker_process import MessageQueue, WorkerProcess
from tailcut.plan import PlannedRun
from tailcut.results import disk_space
from tailcut.results.store import Store


class InProcess(WorkerProcess):
    """Makes each run at once, in this process, by the code of the worker.

    The pool around it is the real one. A run cannot be given up, because it has ended by then.
    """

    def __init__(self, directory: Path, said: MessageQueue) -> None:
        self._store = Store(directory)
        self._said = said
        self._open = True

    @property
    def open(self) -> bool:
        return self._open

    def send(
        self, run: PlannedRun, capture: Capture | None, *, wait: bool, threads: int = 1, auto: bool = False
    ) -> None:
        """Makes a run; returns what the worker would have written."""
        try:
            outcome = worker.work(self._store, run, capture, wait=wait, tell=self._tell, threads=threads, auto=auto)
        except (Exception, MemoryError) as error:  # noqa: BLE001 - as the worker does
            where = traceback.format_exc()
            self._tell(
                {"failed": f"{type(error).__name__}: {error}", "full": disk_space.is_full(error), "traceback": where}
            )
        else:
            self._tell({"done": outcome})

    def _tell(self, message: dict[str, Any]) -> None:
        self._said.put((self, json.loads(json.dumps(message))))

    def finish(self) -> None:
        """Ends the worker: there are no more jobs."""
        if self._open:
            self._open = False
            self._said.put((self, None))

    def wait_for_exit(self) -> str:
        return "exit code 0"

    def ask_to_stop(self) -> None:
        """Does nothing: no run is under way."""

    def stop(self) -> None:
        """Does nothing: there is no process."""

    def kill(self) -> None:
        raise AssertionError("a run of this test has to be given up: use the fixture worker_processes")


@contextmanager
def in_process() -> Iterator[None]:
    """Lets pools make runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tailcut.backends.pool.WorkerProcess", InProcess)
        yield


@contextmanager
def in_processes() -> Iterator[None]:
    """Lets pools start worker processes, as they do for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tailcut.backends.pool.WorkerProcess", WorkerProcess)
        yield
