"""Backends: each runs a plan and fills the same tables.

A backend never ignores what it cannot realise: [`Backend.check`] names the field or the cell of the summary that it must
leave empty, with the reason.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Gap:
    """Something in a plan that a backend cannot realise.

    Attributes:
        where: the key in the plan (``"transport.sack"``) or the cell of the summary (``"statistic=p50"``).
        reason: why, in a sentence that a reader of the report understands.
        fatal: true if no run of the plan can be made without it; otherwise the cells concerned stay empty.
    """

    where: str
    reason: str
    fatal: bool = False


class Progress(Protocol):
    """What a backend tells while it works; all methods may be called from one thread only."""

    def begin(self, runs: int, done: int, estimated_seconds: float) -> None:
        """A sweep of ``runs`` runs starts, of which ``done`` were found finished."""

    def started(self, run_id: str, label: str, horizon_ps: int) -> None:
        """A run has started; its simulated time will end at ``horizon_ps`` at the latest."""

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        """A run is at simulated time ``now_ps`` after ``packet_hops`` packet-hops."""

    def finished(self, run_id: str) -> None:
        """A run is in the store."""

    def note(self, message: str) -> None:
        """Something that the user should know, in one line."""


class Backend(Protocol):
    """One way to realise a plan."""

    name: str

    def check(self, plan: dict[str, Any]) -> list[Gap]:
        """What in ``plan`` this backend cannot realise; empty if it can realise all."""

    def run(self, plan: dict[str, Any], directory: Path, progress: Progress) -> None:
        """Realise ``plan``; results go under ``directory`` (see ``tailcut.results``)."""
