"""A disk that is full, or will be: noticed before a run is simulated, told in one message, nothing finished is lost."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailcut
from support import experiments, made_up
from support.skipping import missing
from tailcut.api import Silent
from tailcut.backends import worker
from tailcut.results import Store, disk_space
from tailcut.results.store import State


class NotesLog(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.notes: list[str] = []

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        self.begun.append(run_id)

    def note(self, message: str) -> None:
        self.notes.append(message)


@pytest.fixture
def experiment(tmp_path: Path) -> tailcut.Experiment:
    return tailcut.load(experiments.tiny(tmp_path))


def say_free(monkeypatch: pytest.MonkeyPatch, free: Iterator[int | None]) -> None:
    monkeypatch.setattr(disk_space, "free_bytes", lambda directory: next(free))


def forever(value: int | None) -> Iterator[int | None]:
    while True:
        yield value


def states(result_directory: Path, experiment: tailcut.Experiment) -> list[State]:
    return [Store(result_directory).state(run["id"]) for run in experiment.plan["runs"]]


def test_a_run_without_room_on_disk_is_not_begun(
    experiment: tailcut.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_free(monkeypatch, forever(1000))
    told = NotesLog()
    with pytest.raises(
        tailcut.RunError, match=r"seed \d is expected to take about 7\d\.\d kB, and 1\.00 kB are"
    ) as caught:
        tailcut.run(experiment, out=tmp_path / "results", progress=told)
    assert caught.value.code == "TC-R002"
    assert "--out" in str(caught.value.hint)
    assert told.begun == []


def test_runs_that_fit_are_made_and_the_same_call_makes_the_rest_later(
    experiment: tailcut.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough = sum(disk_space.expected_bytes(run) for run in experiment.plan["runs"])
    # Asked once for all runs and once for each: two are begun, then the disk is full.
    say_free(monkeypatch, iter([enough, enough, enough, 0, 0]))
    with pytest.raises(tailcut.RunError, match="no room for more runs"):
        tailcut.run(experiment, out=tmp_path / "results", jobs=1)
    assert sorted(state.name for state in states(tmp_path / "results", experiment)) == ["ABSENT"] * 2 + ["COMPLETE"] * 2
    say_free(monkeypatch, forever(enough))
    told = NotesLog()
    tailcut.run(experiment, out=tmp_path / "results", progress=told)
    assert len(told.begun) == 2


def test_a_sweep_that_will_fill_the_disk_warns_at_the_start(
    experiment: tailcut.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_free(monkeypatch, forever(disk_space.expected_bytes(experiment.plan["runs"][0]) * 2))
    told = NotesLog()
    tailcut.run(experiment, out=tmp_path / "results", jobs=1, progress=told)
    assert [note for note in told.notes if "are expected to take about" in note]


def test_free_space_is_unknown_if_the_system_does_not_report_it(tmp_path: Path) -> None:
    free = disk_space.free_bytes(tmp_path)
    assert free is not None
    assert 0 < free <= shutil.disk_usage(tmp_path).total
    assert disk_space.free_bytes(tmp_path / "not there") is None


def test_runs_are_made_if_free_space_is_unknown(
    experiment: tailcut.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_free(monkeypatch, forever(None))
    assert tailcut.run(experiment, out=tmp_path / "results").missing_runs == []


def test_a_disk_that_fills_up_under_way_leaves_no_part_of_a_run(
    experiment: tailcut.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(tmp_path / "results", experiment.plan)
    (run, *_) = experiment.plan["runs"]

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        worker.work(store, run, None, wait=False, tell=lambda _: None)
    assert disk_space.is_full(caught.value)
    assert list((tmp_path / "results/runs").iterdir()) == []


def test_a_full_disk_costs_the_file_of_the_summary_and_not_the_result(
    experiment: tailcut.Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: tailcut.Result) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tailcut.Result, "write_summary", full)
    told = NotesLog()
    result = tailcut.run(experiment, out=tmp_path / "results", progress=told)
    assert result.missing_runs == []
    assert [note for note in told.notes if "no room for summary.parquet" in note]


def test_an_error_of_the_core_about_a_full_disk_is_recognised() -> None:
    assert disk_space.is_full(ValueError(f"h0.pcapng: No space left on device (os error {errno.ENOSPC})"))
    assert not disk_space.is_full(ValueError("h0.pcapng: Permission denied (os error 13)"))
    assert not disk_space.is_full(PermissionError(errno.EACCES, "no"))


# --- what runs are expected to take ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "capture"),
    [
        ({}, ()),
        ({"horizon.arrivals": '"200ms"'}, ()),
        ({"horizon.arrivals": '"50ms"', "traffic.sizes": '"web-search"', "measure.segments": "true"}, ()),
        ({"series.flows": "[0, 1, 2]", "series.links": '["h0>s0"]', "measure.throughput": "true"}, ()),
        ({"measure.fabric": "true", "topology.k": "8"}, ()),
        ({"measure.fabric": "true", "measure.fabric_instants": "10000", "traffic.load": "0.9"}, ()),
        ({}, ("host:0",)),
        ({}, ("host:0", "link:h0>s0")),
    ],
)
def test_a_run_takes_no_more_than_is_expected(
    tmp_path: Path, changes: dict[str, str], capture: tuple[str, ...]
) -> None:
    experiment = tailcut.load(experiments.tiny(tmp_path), set=changes, seeds=1)
    result = tailcut.run(experiment, out=tmp_path / "results", capture=capture)
    spec = tailcut.Capture(capture).spec if capture else None
    for run in result.finished_runs:
        taken = sum(file.stat().st_size for file in (result.directory / "runs" / run["id"]).iterdir())
        assert taken <= disk_space.expected_bytes(run, spec)


def test_a_bounded_capture_is_expected_to_keep_its_bounds() -> None:
    run = made_up.planned_run("TCP", {}, 1)
    run["facts"]["expected_packets"] = 10**9
    without = disk_space.expected_bytes(run)
    for bounds, most in (({"max_bytes": "5MB"}, 5_000_000), ({"max_packets": 100}, 160_000), ({}, 10**9)):
        assert disk_space.expected_bytes(run, {"points": ["host:0"], **bounds}) == without + most


# --- a disk that is really small ------------------------------------------------------------------

ON_A_SMALL_DISK = """
mount -t tmpfs -o size="$1" none "$2" || exit 77
cd "$2" && shift 2 && exec "$@"
"""
RUN = "import sys; from tailcut.cli import main; main()"
SAYS_NOTHING = f"from tailcut.results import disk_space; disk_space.free_bytes = lambda directory: None; {RUN}"


def on_a_small_disk(directory: Path, size: str, program: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the tiny experiment into a directory on a disk of this size."""
    disk = directory / "disk"
    disk.mkdir()
    arguments: list[str | Path] = [
        sys.executable,
        "-c",
        program,
        "run",
        experiments.tiny(directory),
        "--out",
        "small",
        *options,
    ]
    namespace: list[str | Path] = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        ON_A_SMALL_DISK,
        "sh",
        size,
        disk,
    ]
    if shutil.which("unshare") is None:
        missing("there is no unshare, and so no small disk", "apt-get install util-linux")
    done = subprocess.run([*namespace, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare" in done.stderr:
        missing("this system lets nobody mount a tmpfs of their own")
    return done


def test_on_a_small_disk_runs_that_fit_are_made_and_the_rest_reported(tmp_path: Path) -> None:
    done = on_a_small_disk(tmp_path, "300k", RUN, "--jobs", "1", "--set", "horizon.arrivals=100ms")
    assert done.returncode == 1
    assert "error[TC-R002]: there is no room for more runs in small" in done.stderr
    assert "are expected to take about" in done.stderr.splitlines()[1]
    assert "[1/4]" in done.stderr, "what there was room for"
    assert "failed" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_of_unknown_size_is_reported(tmp_path: Path) -> None:
    done = on_a_small_disk(tmp_path, "300k", SAYS_NOTHING, "--jobs", "1", "--capture", "host:0")
    assert done.returncode == 1
    assert "error[TC-R002]: there is no room for more runs in small: the disk filled up while writing" in done.stderr
    assert "1 of 4 runs failed" in done.stderr, "the others were not begun"
    assert "Traceback" not in done.stderr
