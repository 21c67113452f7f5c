"""In a notebook a sweep shows how far it is."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tailcut
from support import experiments
from tailcut.terminal.notebook import Notebook


class Screen:
    """Stands for IPython's display: what the output of the cell shows, one entry per update."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> "Screen":
        assert self.shown == [], "one output, which is then updated"
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        self.shown.append(data)


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bar_shows_runs_speed_and_the_time_left() -> None:
    screen, clock = Screen(), Clock()
    notebook = Notebook(screen.display, clock)
    notebook.begin(2, 0, 4_000_000)
    notebook.started("a", "TCP, seed 1", 10**12, 2_000_000)
    clock.now += 1
    notebook.advanced("a", 10**9, 1_000_000)
    assert screen.shown[-1]["text/plain"] == "0 of 2 runs, 1.00 M packet-hops/s, 3.0 s left"
    assert '<progress value="0.250">' in screen.shown[-1]["text/html"]
    notebook.finished("a")
    assert screen.shown[-1]["text/plain"].startswith("1 of 2 runs")


def test_the_bar_updates_at_most_a_few_times_a_second() -> None:
    screen, clock = Screen(), Clock()
    notebook = Notebook(screen.display, clock)
    notebook.begin(1, 0, 1000)
    notebook.started("a", "TCP, seed 1", 10**12, 1000)
    for hops in range(100):
        clock.now += 0.01
        notebook.advanced("a", 0, hops)
    assert 3 <= len(screen.shown) <= 7


def test_failures_stay_below_the_bar_and_are_not_read_as_markup() -> None:
    screen = Screen()
    notebook = Notebook(screen.display, Clock())
    notebook.begin(1, 0, 1000)
    notebook.started("a", "TCP, seed 1", 10**12, 1000)
    notebook.failed("a", "no <b>memory</b>")
    assert screen.shown[-1]["text/plain"] == "0 of 1 runs\nTCP, seed 1: no <b>memory</b>"
    assert "no &lt;b&gt;memory" in screen.shown[-1]["text/html"]


def pretend_notebook(monkeypatch: pytest.MonkeyPatch, screen: Screen, shell: str) -> None:
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = type(shell, (), {})
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = screen.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)


@pytest.mark.parametrize(("shell", "shows"), [("ZMQInteractiveShell", True), ("TerminalInteractiveShell", False)])
def test_a_run_in_a_notebook_shows_its_progress_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, shows: bool
) -> None:
    screen = Screen()
    pretend_notebook(monkeypatch, screen, shell)
    tailcut.run(tailcut.load(experiments.tiny(tmp_path)), out=tmp_path / "results")
    assert [data["text/plain"] for data in screen.shown][-1:] == (["4 of 4 runs"] if shows else [])
