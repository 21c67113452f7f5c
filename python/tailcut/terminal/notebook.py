"""Progress of a sweep in a notebook: one line below the cell, brought up to date."""

import html
import sys
import time
from collections.abc import Callable
from typing import Any

from tailcut.terminal.sweep_progress import SweepProgress
from tailcut.units import count, duration

UPDATE_SECONDS = 0.2


def display_of_notebook() -> Callable[..., Any] | None:
    """IPython's ``display`` if this program is a notebook's kernel; otherwise none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from importlib import import_module

    found: Callable[..., Any] = import_module("IPython.display").display
    return found


class Notebook:
    """A bar with runs, speed and the time left, and messages below it."""

    def __init__(self, display: Callable[..., Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._display = display
        self._handle: Any = None
        self._pace = SweepProgress(clock)
        self._said: list[str] = []
        self._last = 0.0

    def begin(self, runs: int, done: int, expected_packet_hops: int) -> None:
        """Show the bar."""
        self._pace.begin(runs, done, expected_packet_hops)
        self._show()

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        """Keep the time."""
        self._pace.started(run_id, label, horizon_ps, expected_packet_hops)

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        """Move the bar, a few times a second."""
        self._pace.advanced(run_id, now_ps, packet_hops)
        if self._pace.clock() - self._last >= UPDATE_SECONDS:
            self._show()

    def finished(self, run_id: str) -> None:
        """Move the bar."""
        self._pace.ended(run_id, finished=True)
        self._show()

    def failed(self, run_id: str, reason: str) -> None:
        """Say why, below the bar."""
        run = self._pace.ended(run_id, finished=False)
        self.note(f"{run.label}: {reason}")

    def note(self, message: str) -> None:
        """Say it below the bar."""
        self._said.append(message)
        self._show()

    def _show(self) -> None:
        self._last = self._pace.clock()
        parts = [f"{self._pace.done} of {self._pace.total} runs"] if self._pace.total else []
        if self._pace.done < self._pace.total:
            left = self._pace.seconds_left
            parts += [f"{count(self._pace.rate)} packet-hops/s"] if self._pace.rate else []
            parts += [f"{duration(left)} left"] if left else []
        line = ", ".join(parts)
        bar = f'<progress value="{self._pace.fraction:.3f}"></progress> ' if parts else ""
        shown = {
            "text/plain": "\n".join([*([line] if line else []), *self._said]),
            "text/html": "<br>".join([f"{bar}{line}", *map(html.escape, self._said)]),
        }
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
