"""Whatever happens to a sweep, what is done stays done and the same command goes on from there."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tailcut
from support import experiments
from tailcut.api import Silent
from tailcut.results import State, Store

# Half a dozen runs of which each takes a second or so: long enough to be interrupted in the middle.
SWEEP = """
[sweep]
"traffic.load" = [0.5, 0.6, 0.7]
"""
SLOWER = ("--set", "horizon.arrivals=500ms", "--set", "traffic.sizes=web-search")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from tailcut.cli import main; main()", *arguments]


@contextmanager
def sweeping(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command at work on the sweep, in a process group of its own as a shell would have it."""
    experiments.tiny(directory, SWEEP)
    process = subprocess.Popen(
        command("run", "tiny.toml", *SLOWER, *arguments),
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], start: str) -> list[str]:
    """Read what it says until a line starts like this."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(start):
            return lines
    raise AssertionError("".join(["ended before that:\n", *lines]))


def states(directory: Path) -> list[State]:
    store = Store(directory / "results/tiny")
    return [store.state(run["id"]) for run in store.plan()["runs"]]


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_130_keeps_what_is_done_and_says_how_to_go_on(
    tmp_path: Path, signal_: signal.Signals
) -> None:
    with sweeping(tmp_path) as process:
        until(process, "[1/12]")
        workers = workers_of(process)
        process.send_signal(signal_)
        _, said = process.communicate()
    assert process.returncode == 130
    assert "Interrupted." in said
    assert "To continue: tailcut run tiny.toml" in said
    assert "Traceback" not in said
    found = states(tmp_path)
    assert 1 <= found.count(State.COMPLETE) < 12
    assert State.DAMAGED not in found
    assert [path.name for path in (tmp_path / "results/tiny/runs").iterdir() if path.name.startswith(".")] == []
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_after_an_interrupt_the_same_command_makes_only_what_is_missing(tmp_path: Path) -> None:
    with sweeping(tmp_path) as process:
        until(process, "[1/12]")
        process.send_signal(signal.SIGINT)
        process.communicate()
    kept = states(tmp_path).count(State.COMPLETE)
    with sweeping(tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(f"12 runs, {kept} finished already;")


def test_workers_end_when_the_command_is_killed(tmp_path: Path) -> None:
    with sweeping(tmp_path) as process:
        until(process, "[1/12]")
        workers = [os.pidfd_open(worker) for worker in workers_of(process)]
        assert workers
        process.kill()
        process.communicate()
        for worker in workers:
            # A pidfd becomes readable when its process has ended.
            assert select.select([worker], [], [], 60)[0]
            os.close(worker)
    assert State.DAMAGED not in states(tmp_path)


def test_the_death_of_a_worker_costs_its_run_alone(tmp_path: Path) -> None:
    with sweeping(tmp_path, "--jobs", "1", "--seeds", "1") as process:
        until(process, "[1/6]")
        (worker,) = workers_of(process)
        os.kill(worker, signal.SIGKILL)
        _, said = process.communicate()
    assert process.returncode == 1
    assert "the worker process ended with signal SIGKILL (out of memory? try --jobs 1)" in said
    assert "1 of 6 runs failed" in said
    found = states(tmp_path)
    assert (found.count(State.COMPLETE), found.count(State.ABSENT)) == (5, 1)


def test_two_commands_on_one_directory_share_the_work(tmp_path: Path) -> None:
    experiments.tiny(tmp_path, SWEEP)
    both = [
        subprocess.Popen(
            command("run", "tiny.toml", "--jobs", "1", "--seeds", "1"),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    tables = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert tables[0] == tables[1]
    assert set(states(tmp_path)) == {State.COMPLETE}
    assert [path.name for path in (tmp_path / "results/tiny/runs").iterdir() if path.name.startswith(".")] == []


def test_a_run_that_cannot_be_made_fails_alone(tmp_path: Path) -> None:
    """A file that a run depends on changes after it was planned."""
    experiment = experiment_of_which_half_fails(tmp_path)
    with pytest.raises(tailcut.RunError, match="4 of 8 runs failed") as caught:
        tailcut.run(experiment, out=tmp_path / "results/tiny")
    assert "sizes.cdf" in str(caught.value)
    assert states(tmp_path).count(State.COMPLETE) == 4


def experiment_of_which_half_fails(directory: Path) -> tailcut.Experiment:
    """A file that half of the runs depend on changes after they were planned."""
    (directory / "sizes.cdf").write_text("20000 0\n40000 1\n")
    experiment = tailcut.load(experiments.tiny(directory, '[sweep]\n"traffic.sizes" = ["50KB", "./sizes.cdf"]\n'))
    (directory / "sizes.cdf").write_text("20000 0\n50000 1\n")
    return experiment


def test_what_failed_says_where_in_the_code(tmp_path: Path) -> None:
    with pytest.raises(tailcut.RunError) as caught:
        tailcut.run(experiment_of_which_half_fails(tmp_path), out=tmp_path / "results/tiny")
    assert len(caught.value.tracebacks) == 4
    for label, where in caught.value.tracebacks.items():
        assert "sizes ./sizes.cdf" in label
        assert where.startswith("Traceback")
        assert "in make" in where


def test_a_sweep_that_fails_fast_ends_at_the_first_run_that_fails(tmp_path: Path) -> None:
    class EventLog(Silent):
        def __init__(self) -> None:
            self.said: list[str] = []

        def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
            self.said.append("started")

        def finished(self, run_id: str) -> None:
            self.said.append("finished")

        def failed(self, run_id: str, reason: str) -> None:
            self.said.append("failed")

    told = EventLog()
    experiment = experiment_of_which_half_fails(tmp_path)
    with pytest.raises(tailcut.RunError, match="1 of 8 runs failed"):
        tailcut.run(experiment, out=tmp_path / "results/tiny", jobs=1, progress=told, fail_fast=True)
    assert told.said.count("failed") == 1
    assert told.said.index("failed") >= len(told.said) - 2, "at most the run that was just handed out comes after it"


def test_on_a_terminal_control_c_stops_the_sweep(tmp_path: Path) -> None:
    """The terminal sends SIGINT to the whole foreground group; workers leave it to their parent."""
    experiments.tiny(tmp_path, SWEEP)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, command("run", "tiny.toml", *SLOWER))  # noqa: S606
    screen = b""
    pressed = False
    while True:
        try:
            received = os.read(terminal, 1 << 14)
        except OSError:  # the terminal hangs up when its last process ends
            break
        screen += received
        if not pressed and b"simulated" in screen:
            os.write(terminal, b"\x03")
            pressed = True
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    shown = screen.decode()
    assert "packet-hops/s" in shown
    assert "To continue" in shown
    assert json.loads((tmp_path / "results/tiny/plan.json").read_text())["title"]
    assert State.DAMAGED not in states(tmp_path)
