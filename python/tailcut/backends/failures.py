"""Failures in a sweep, kept until the other runs are done."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tailcut.backends import Capture, Progress
from tailcut.errors import RunError
from tailcut.plan import PlannedRun, label
from tailcut.results import disk_space
from tailcut.results.store import Store
from tailcut.units import size


@dataclass
class Failures:
    """Runs that cannot be had, and whether the disk lets more be begun."""

    store: Store
    progress: Progress
    capture: Capture | None
    disk_full_reason: str | None = None
    _failed: dict[str, str] = field(default_factory=dict)
    _tracebacks: dict[str, str] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)  # that runs are expected to write

    @property
    def has_failed(self) -> bool:
        """Whether a run has failed."""
        return bool(self._failed)

    def fail(self, run: PlannedRun, reason: str, traceback: str | None = None, name: str | None = None) -> None:
        """A run cannot be had, and where in the code it failed, if it did there; its name, if it has repeats."""
        name = name or label(run)
        if traceback is not None:
            self._tracebacks[name] = traceback
        self._failed[name] = f"  {name}: {reason}"
        self.progress.failed(run["id"], reason)

    def has_room(self, runs: Sequence[PlannedRun]) -> bool:
        """Whether the disk has room for these runs; if not even for a single one, nothing more is to be begun."""
        capture = self.capture.spec if self.capture else None
        for run in runs:
            if run["id"] not in self._bytes:
                self._bytes[run["id"]] = disk_space.expected_bytes(run, capture)
        needed = sum(self._bytes[run["id"]] for run in runs)
        free = disk_space.free_bytes(self.store.directory)
        if free is None or needed <= free:
            return True
        if len(runs) == 1:
            self.no_room(f"{label(runs[0])} is expected to take about {size(needed)}, and {size(free)} are free")
        return False

    def no_room(self, why: str) -> None:
        """Nothing more is to be begun."""
        if self.disk_full_reason is None:
            self.disk_full_reason = f"there is no room for more runs in {self.store.directory}: {why}"

    def was_full(self, name: str) -> None:
        """The disk took no more when the run of that name was to be written: nothing more is to be begun."""
        self.no_room(f"the disk filled up while writing {name}")

    def raise_if_any(self, runs: int) -> None:
        """Say what went wrong, if anything did, of so many runs.

        Raises:
            RunError: TC-R002 if the disk is full, TC-R001 if runs failed.
        """
        failed = [f"{len(self._failed)} of {runs} runs failed:", *self._failed.values()] if self._failed else []
        if self.disk_full_reason:
            raise RunError(
                "TC-R002",
                "\n".join([self.disk_full_reason, *failed]),
                "make room, or name a directory elsewhere with --out; finished runs are kept, and the same command"
                " makes what is missing",
                self._tracebacks,
            )
        if failed:
            raise RunError(
                "TC-R001",
                "\n".join(failed),
                "finished runs are kept; the same command makes what is missing",
                self._tracebacks,
            )
