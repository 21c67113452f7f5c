"""Backends: each realises a plan and fills the same summary table.

A backend never ignores what it cannot realise: ``check`` names the field of the plan, or the cells of the summary that
stay empty, with the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tailcut.plan import Plan, PlannedRun, label
from tailcut.units import time_ps

if TYPE_CHECKING:
    import polars as pl

    from tailcut.backends.farm import Farm
    from tailcut.results import StoredResult
    from tailcut.results.store import Store


@dataclass(frozen=True, slots=True)
class Gap:
    """Something in a plan that a backend cannot realise.

    Attributes:
        where: the key in the plan (``"transport.sack"``) or the cells of the summary (``"statistic=p50"``).
        reason: why, in a sentence that a reader of the report understands.
        fatal: true if nothing of the plan can be realised; otherwise the cells concerned stay empty.
    """

    where: str
    reason: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """Packets to write as pcapng beside the tables of each run.

    Attributes:
        points: hosts (``"host:0"``, ``"h0"``) and links (``"link:h0>s0"``, ``"h0>s0"``).
        max_packets: most packets in a file; none for as many as there are.
        max_bytes: most bytes in a file, such as ``"100MB"``; none for 1 GB.
        snapshot: most bytes kept of a packet, such as ``"96B"``; none for whole packets.
    """

    points: Sequence[str]
    max_packets: int | None = None
    max_bytes: str | None = None
    snapshot: str | None = None

    @property
    def bounds(self) -> dict[str, int | str]:
        """The bounds that are given, by name."""
        named = {"max_packets": self.max_packets, "max_bytes": self.max_bytes, "snapshot": self.snapshot}
        return {name: bound for name, bound in named.items() if bound is not None}

    @property
    def spec(self) -> dict[str, Any]:
        """The capture as `tailcut._core.run` and a worker are told of it."""
        return {"points": list(self.points), **self.bounds}

    def is_in(self, about: Mapping[str, Any]) -> bool:
        """Whether a finished run, given its ``run.json``, has this capture."""
        return set(self.points) <= set(about.get("capture", [])) and self.bounds == about.get("capture_bounds", {})


Threads: TypeAlias = int | Literal["auto"]
"""Threads of a run: a number, or as many as pay."""


@dataclass(frozen=True, slots=True)
class Options:
    """Ways to make runs; none changes a result.

    Attributes:
        jobs: runs at a time; none for as many as there are available cores for their threads.
        threads: threads that simulate a run; ``auto`` gives the last runs those of idle cores that pay.
        capture: packets to write, if any.
        fail_fast: whether the first run that fails ends the sweep; those under way are given up.
        limit_seconds: how long a run may take; none for any time.
        farm: who makes the runs; none for worker processes of this machine.
    """

    jobs: int | None = None
    threads: Threads = 1
    capture: Capture | None = None
    fail_fast: bool = False
    limit_seconds: float | None = None
    farm: "Farm | None" = None

    @property
    def several_threads(self) -> bool:
        """Whether several threads are asked for, whatever the run."""
        return self.threads != "auto" and self.threads > 1


class Maker(Protocol):
    """Makes the runs that are missing: worker processes of this machine, an executor, a cluster."""

    def make(self, runs: Sequence[PlannedRun]) -> None:
        """Make ``runs`` and put them into the store.

        Raises:
            RunError: some failed; the others are in the store.
            KeyboardInterrupt: interrupted; what had finished is in the store.
        """


def maker(store: "Store", progress: "Progress", options: Options) -> Maker:
    """Returns the maker of runs under these options."""
    if options.farm is None:
        from tailcut.backends.pool import Pool

        return Pool(store, progress, options)
    from tailcut.backends.farm import FarmRunner

    return FarmRunner(store, progress, options, options.farm)


class Progress(Protocol):
    """Reports of a backend at work. All calls come from one thread."""

    def begin(self, runs: int, done: int, expected_packet_hops: int) -> None:
        """Work on ``runs`` runs starts, of which ``done`` are in the store; the others have the hops ahead of them."""

    def started(self, run_id: str, label: str, horizon_ps: int, expected_packet_hops: int) -> None:
        """A run has started, perhaps again; its simulated time ends at ``horizon_ps`` at the latest."""

    def advanced(self, run_id: str, now_ps: int, packet_hops: int) -> None:
        """A run is at simulated time ``now_ps`` after ``packet_hops`` packet-hops."""

    def finished(self, run_id: str) -> None:
        """A run is in the store."""

    def failed(self, run_id: str, reason: str) -> None:
        """A run cannot be had; the others go on."""

    def note(self, message: str) -> None:
        """Something that the user should know, in one line."""


def tell_started(progress: Progress, run: PlannedRun, where: str | None = None) -> None:
    """Tell that a run has started, and on which worker if that is another machine's."""
    horizon = run["config"]["horizon"]
    progress.started(
        run["id"],
        f"{label(run)} on {where}" if where else label(run),
        time_ps(horizon["arrivals"]) + time_ps(horizon["drain"]),
        run["facts"]["expected_packet_hops"],
    )


class Backend(Protocol):
    """A way to realise a plan."""

    @property
    def name(self) -> str:
        """The name in ``--on NAME`` and in the summary's ``backend`` column."""

    def check(self, plan: Plan, options: Options) -> list[Gap]:
        """Returns the parts of ``plan`` that this backend cannot realise."""

    def run(self, plan: Plan, store: "Store", progress: Progress, options: Options) -> None:
        """Realise ``plan`` and put what comes of it into ``store``.

        Raises:
            RunError: some runs failed; the others are in the store.
            KeyboardInterrupt: interrupted; what had finished is in the store.
        """


class Extras(Protocol):
    """The runs that a backend keeps beside the planned ones, in a result."""

    @property
    def has_runs(self) -> bool:
        """Whether any is there."""

    def summary(self) -> "pl.DataFrame":
        """Returns their rows of the summary."""


@dataclass(frozen=True, slots=True)
class BackendKind:
    """A backend that there is, before anything of it is imported.

    Attributes:
        about: what it is, in a line.
        home: the class that realises plans, as ``module:class``; its fields are the backend's own options.
        extras: the class of what its runs add to a result, as ``module:class``; none if that is its rows of the
            summary alone.
    """

    about: str
    home: str
    extras: str | None = None

    def extras_of(self, result: "StoredResult") -> Extras:
        """Returns the extras of a result."""
        made: Extras = _loaded(self.extras or "")(result)
        return made


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


KINDS: Mapping[str, BackendKind] = MappingProxyType(
    {
        "sim": BackendKind("The packet simulator: every packet of every flow.", "tailcut.backends.sim:SimBackend"),
        "model": BackendKind(
            "RepFlow's queueing analysis: means and 99th percentiles, and no packets.",
            "tailcut.backends.model:ModelBackend",
        ),
        "lab": BackendKind(
            "Real Linux kernels: the same flows by this machine's TCP, in real time, no root.",
            "tailcut.backends.lab:Lab",
            "tailcut.lab.results:LabResults",
        ),
    }
)
"""Every backend by name, as in ``--on NAME``; the first is the default."""
FATAL_HINT = "change what is named, or choose another backend with --on"
"""The remedy where a backend cannot realise an experiment."""
NAMES = tuple(KINDS)


def backend(name: str, **options: Any) -> Backend:
    """Returns the backend called ``name``, with options of its own.

    Raises:
        BackendError: TC-B001: there is none of that name; TC-B003: it has no such option, or not that value.
    """
    from tailcut.errors import BackendError

    if name not in KINDS:
        raise BackendError("TC-B001", f"there is no backend {name!r}", f"use one of: {', '.join(NAMES)}")
    home = _loaded(KINDS[name].home)
    known = {one.name for one in fields(home)}
    for option in options:
        if option not in known:
            owners = [other for other in KINDS if option in {one.name for one in fields(_loaded(KINDS[other].home))}]
            raise BackendError(
                "TC-B003",
                f"the backend {name!r} has no option {option!r}",
                f"use it with {' or '.join(f'--on {one}' for one in owners)}" if owners else "",
            )
    made: Backend = home(**options)
    return made


def described() -> list[dict[str, Any]]:
    """The backends, as `tailcut._core.describe` tells of what an experiment can name."""
    return [
        {"group": "backend", "name": name, "summary": kind.about, "default": name == NAMES[0], "parameters": []}
        for name, kind in KINDS.items()
    ]
