"""Without working locks, and whichever process is killed, a run is absent or whole and made by one process.

Two stores share a directory, and each believes that it has claimed the run. Every access to the file system is a step.
All interleavings with two switches between the stores are tried, and a kill at each step.
"""

import contextlib
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import made_up
from tailcut.results import State, Store, drafts, tables

PLAN = made_up.plan(schemes=["TCP"], sweep=[], seeds=[1])
(RUN,) = PLAN["runs"]
TABLE = tables.encode("flows", made_up.flows([100, 200]), RUN)
UNIQUE = re.compile(r"\.[0-9a-f]{32}(?=\.tmp)")
"""Numbers that tell drafts of one run by one process apart."""
STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime", "os.scandir"}

_process = threading.local()


def _step(event: str, _arguments: tuple[object, ...]) -> None:
    """Before every access to the file system by a thread that is stepped."""
    stepped = getattr(_process, "stepped", None)
    if stepped is not None and event in STEPS:
        stepped.before_access()


sys.addaudithook(_step)  # cannot be taken off; it costs other tests a look at a thread's own variable


class Killed(BaseException):
    """Stands for SIGKILL: nothing that follows has any effect."""


class Stepped:
    """Work in a thread that goes one access to the file system at a time."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._go, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self._killed = False
        self.over = False
        self.error: BaseException | None = None

        def run() -> None:
            _process.stepped = self
            try:
                self.before_access()
                work()
            except BaseException as error:  # noqa: BLE001 - told to the test
                self.error = error
            finally:
                _process.stepped = None
                self.over = True
                self._waits.release()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        self._waits.acquire()

    def before_access(self) -> None:
        if not self._killed:
            self._waits.release()
            self._go.acquire()
        if self._killed:
            raise Killed

    def steps(self, count: int | None = None) -> int:
        """Let it go so many steps, or to its end; how many it went."""
        gone = 0
        while not self.over and (count is None or gone < count):
            self._go.release()
            self._waits.acquire()
            gone += 1
        return gone

    def kill(self) -> None:
        self._killed = True
        if not self.over:
            self._go.release()
        self._thread.join()


def put(store: Store, capture: bytes | None) -> Callable[[], None]:
    """Returns the work of a worker that has simulated a run."""

    def work() -> None:
        files: dict[str, bytes | Path] = {"flows.parquet": TABLE}
        if capture is not None:
            files["capture.pcapng"] = capture
        with store.claim(RUN["id"]) as ours:
            assert ours
            store.put(RUN["id"], files, made_up.about(made_up.flows([100]), capture=["h0"] if capture else []))

    return work


def check(store: Store, *, damaged: bool) -> State:
    """The run is absent or whole: what ``run.json`` lists and nothing else, every byte as it was written."""
    state = store.state(RUN["id"], whole=True)
    assert state is not State.DAMAGED or damaged
    if state is State.COMPLETE:
        there = {path.name for path in store.path(RUN["id"]).iterdir()}
        assert there == {"run.json", *store.run_record(RUN["id"])["files"]}
    return state


@pytest.fixture(autouse=True)
def _no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def unlocked(path: Path, *, wait: bool) -> Iterator[bool]:
        yield True

    monkeypatch.setattr("tailcut.results.store.locked", unlocked)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # thousands of them; no step is about power cuts


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: thousands of stores are made and removed."""
    memory = Path("/dev/shm")  # noqa: S108 - the directory in it is its own
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="tailcut-test-") as own:
        yield Path(own)


BEFORE = ["absent", "damaged", "complete"]


@pytest.mark.parametrize("taken_for_dead", [False, True], ids=["told apart", "all taken for dead"])
@pytest.mark.parametrize("before", BEFORE)
def test_no_interleaving_of_two_stores_leaves_a_partial_run(
    before: str, taken_for_dead: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "left_behind", lambda path: taken_for_dead)
    store = Store.create(place / "results", PLAN)
    template = place / "before"
    if before != "absent":
        put(store, None)()
    if before == "damaged":
        (store.path(RUN["id"]) / "flows.parquet").write_bytes(TABLE[:-1])
    (store.directory / "runs").rename(template)
    settled: set[tuple[object, ...]] = set()

    def start() -> tuple[Stepped, Stepped]:
        shutil.copytree(template, store.directory / "runs")
        return Stepped(put(store, b"packets")), Stepped(put(Store(store.directory), None))

    def settle(*both: Stepped) -> None:
        """Whatever has happened, the same command again ends in the whole run."""
        for stepped in both:
            # Who was taken for dead finds nothing to go on with, and says so; its run is made
            # again.
            allowed = (Killed, FileNotFoundError) if taken_for_dead else Killed
            assert stepped.error is None or isinstance(stepped.error, allowed), stepped.error
        killed = any(isinstance(one.error, Killed) for one in both)
        left = (killed, *content(store))
        if left not in settled:  # most turns leave what others have left
            assert check(store, damaged=before == "damaged") is State.COMPLETE or taken_for_dead
            put(store, b"packets")()
            assert check(store, damaged=False) is State.COMPLETE
            assert taken_for_dead or not drafts_of(store) or killed
            settled.add(left)
        shutil.rmtree(store.directory / "runs")

    def in_turns(first: int, second: int) -> tuple[bool, bool]:
        """Runs ``first`` steps of one, ``second`` of the other, then both to the end; returns which ended before."""
        one, other = start()
        one.steps(first)
        other.steps(second)
        over = one.over, other.over
        check(store, damaged=before == "damaged")
        one.steps()
        check(store, damaged=before == "damaged")
        other.steps()
        settle(one, other)
        return over

    def killed(first: int) -> bool:
        """Kills one after ``first`` steps and runs the other to its end; returns whether the first had ended before."""
        one, other = start()
        one.steps(first)
        over = one.over
        one.kill()
        while not other.over:
            check(store, damaged=before == "damaged")
            other.steps(1)
        settle(one, other)
        return over

    first = 0
    while not killed(first):
        second = 0
        while not in_turns(first, second)[1]:
            second += 1
        first += 1
    assert first > 15


def content(store: Store) -> list[tuple[str, bytes]]:
    """Every file and folder below the runs, drafts by what is in them, and the bytes of each file."""
    runs = store.directory / "runs"
    return sorted(
        (UNIQUE.sub("", str(path.relative_to(runs))), b"" if path.is_dir() else path.read_bytes())
        for path in runs.rglob("*")
    )


def drafts_of(store: Store) -> list[Path]:
    return list((store.directory / "runs").glob(".*.tmp"))
