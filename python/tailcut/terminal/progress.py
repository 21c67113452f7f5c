"""Progress of a sweep: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tailcut import backends
from tailcut.terminal.sweep_progress import RunProgress, SweepProgress
from tailcut.units import count, duration, time_text

LINE_SECONDS = 10.0
ROOM = 6  # lines of a terminal that are left to the sweep's bar and to what is said


class Display(backends.Progress, Protocol):
    """Progress that is shown while it is open."""

    def __enter__(self) -> Self:
        """Start showing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""


def display(console: Console, clock: Callable[[], float] = time.monotonic) -> Display:
    """Returns the display that suits the console."""
    return Bars(console, clock) if console.is_terminal else Lines(console, clock)


def _speed(rate: float) -> str:
    """Returns the speed in words; empty until a run has reported packet-hops, which short ones never do."""
    return f"{count(rate)} packet-hops/s" if rate else ""


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"{duration(seconds)} left"


class Bars:
    """A bar for the sweep, and one for each run under way as far as they fit into the terminal."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._pace = SweepProgress(clock)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[simulated]}", style="cyan"),
            TextColumn("{task.fields[speed]}", style="magenta"),
            TextColumn("{task.fields[left]}", style="green"),
            console=console,
            transient=True,
        )
        self._sweep: TaskID | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, runs: int, done: int, expected_packet_hops: int) -> None:
        """Show the sweep's bar."""
        self._pace.begin(runs, done, expected_packet_hops)
        self._sweep = self._add("sweep")
        self._refresh()

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        """Show a bar for the run."""
        self._pace.started(run_id, label, horizon_ps, expected_packet_hops)
        if run_id in self._tasks:  # made again
            self._bars.reset(self._tasks[run_id], description=label, total=1.0, simulated="", speed="", left="")
        elif len(self._tasks) < self._bars.console.height - ROOM:
            self._tasks[run_id] = self._add(label)
        self._refresh()

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        """Move the run's bar and the sweep's."""
        run = self._pace.advanced(run_id, now_ps, packet_hops)
        now = self._pace.clock()
        if run_id in self._tasks:
            self._bars.update(
                self._tasks[run_id],
                completed=run.fraction,
                simulated=f"{time_text(run.now_ps)} simulated",
                speed=_speed(run.rate(now)),
                left=_left(run.seconds_left(now)),
            )
        self._refresh()

    def finished(self, run_id: str) -> None:
        """Take the run's bar away."""
        self._end(run_id, finished=True)

    def failed(self, run_id: str, reason: str) -> None:
        """Say why, above the bars."""
        run = self._end(run_id, finished=False)
        self._bars.console.print(f"{run.label}: {reason}", style="red", markup=False)

    def note(self, message: str) -> None:
        """Say it above the bars."""
        self._bars.console.print(message, style="yellow", markup=False)

    def _end(self, run_id: str, *, finished: bool) -> RunProgress:
        run = self._pace.ended(run_id, finished=finished)
        if run_id in self._tasks:
            self._bars.remove_task(self._tasks.pop(run_id))
        self._refresh()
        return run

    def _add(self, description: str) -> TaskID:
        return self._bars.add_task(description, total=1.0, simulated="", speed="", left="")

    def _refresh(self) -> None:
        if self._sweep is not None:
            running = len(self._pace.running)
            under_way = f", {running} under way" if running > len(self._tasks) else ""  # not all of them are shown
            self._bars.update(
                self._sweep,
                completed=self._pace.fraction,
                simulated=f"{self._pace.done} of {self._pace.total} runs{under_way}",
                speed=_speed(self._pace.rate),
                left=_left(self._pace.seconds_left),
            )


class Lines:
    """A line per finished run, and one now and then for those that take long."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._pace = SweepProgress(clock)
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, runs: int, done: int, expected_packet_hops: int) -> None:
        """Prints how many runs are ahead."""
        self._pace.begin(runs, done, expected_packet_hops)
        self._last = self._pace.clock()
        if done == runs:
            if runs:
                self.note(f"all {runs} runs are finished already")
            return
        ready = f", {done} finished already" if done else ""
        self.note(f"{runs} runs{ready}; about {count(expected_packet_hops)} packet-hops to simulate")

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        """Keep the time."""
        self._pace.started(run_id, label, horizon_ps, expected_packet_hops)

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        """Say how far the run is, unless something was said just now."""
        run = self._pace.advanced(run_id, now_ps, packet_hops)
        now = self._pace.clock()
        if now - self._last >= LINE_SECONDS:
            self._last = now
            left = _left(run.seconds_left(now))
            self.note(
                f"  {run.label}: {run.fraction:.0%}, {time_text(run.now_ps)} simulated, {_speed(run.rate(now))}"
                + (f", {left}" if left else "")
            )

    def finished(self, run_id: str) -> None:
        """Prints the finished run with its time."""
        run = self._pace.ended(run_id, finished=True)
        self._last = self._pace.clock()
        left = _left(self._pace.seconds_left) if self._pace.done < self._pace.total else ""
        self.note(
            f"[{self._pace.done}/{self._pace.total}] {run.label}: {duration(self._last - run.began)}"
            + (f"; {', '.join(filter(None, [_speed(self._pace.rate), left]))}" if left else "")
        )

    def failed(self, run_id: str, reason: str) -> None:
        """Say why."""
        run = self._pace.ended(run_id, finished=False)
        self.note(f"{run.label}: {reason}")

    def note(self, message: str) -> None:
        """Print one line."""
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)
