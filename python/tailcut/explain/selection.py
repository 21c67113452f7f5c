"""Selects the runs of all schemes at one point with one seed, simulated or of the kernel lab."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tailcut.errors import ExplainError
from tailcut.explain import captured
from tailcut.lab.fabrics import ENGINE
from tailcut.plan import PlannedRun, Value, short_keys, written
from tailcut.results.lab_runs import LabRun
from tailcut.results.samples import COMPLETION_COLUMNS

if TYPE_CHECKING:
    from tailcut.results import StoredResult


@dataclass(frozen=True, slots=True)
class RunSelection:
    """The runs of all schemes at one point of the sweep with one seed.

    Attributes:
        seed: of the runs.
        point: the swept keys and their values.
        runs: the finished runs by scheme; the chosen scheme comes first.
        lab: the runs of the kernel lab by scheme; empty for simulated runs.
    """

    seed: int
    point: Mapping[str, Value]
    runs: Mapping[str, PlannedRun]
    lab: Mapping[str, LabRun] = field(default_factory=dict)

    @property
    def scheme(self) -> str:
        """The chosen scheme."""
        return next(iter(self.runs))

    @property
    def label(self) -> str:
        """The point and the seed in words: ``load 0.8, seed 1``."""
        parts = [f"{name} {written(self.point[key])}" for key, name in short_keys(self.point).items()]
        parts.append(f"seed {self.seed}")
        if self.lab:
            of = self.lab[self.scheme]
            parts.append(f"repeat {of.repeat} of the lab{'' if of.fabric == ENGINE else f' ({of.fabric} fabric)'}")
        return ", ".join(parts)

    def run_id(self, scheme: str) -> str:
        """The identifier of a scheme's run."""
        return self.lab[scheme].id if self.lab else self.runs[scheme]["id"]


def select_runs(
    result: "StoredResult",
    scheme: str | None = None,
    seed: int | None = None,
    at: Mapping[str, str] | None = None,
    *,
    on: str | None = None,
    repeat: int | None = None,
) -> RunSelection:
    """Selects runs: by default those of the baseline, with the first finished seed, at the last point of the sweep.

    Args:
        result: the results.
        scheme: the scheme that is asked about; the others follow.
        seed: of the runs.
        at: values of swept keys as they are written; a key may be its last part (``load``).
        on: ``sim`` or ``lab``: whose runs; by default the simulator's, if there are any.
        repeat: which of the lab's; by default the first that was captured. Runs of the lab are of one fabric: the
            engine's, if any of those was captured.

    Raises:
        ExplainError: TC-X001: no such run is there; TC-X002: what is named is not among the results; TC-X005: the lab's
            runs were made without a capture.
    """
    plan = result.plan
    in_lab = result.lab.finished if on == "lab" or (on is None and not result.finished_runs) else []
    if repeat is not None and in_lab:
        _one_of("repeat", repeat, [one.repeat for one in in_lab])
    lab = [one for one in in_lab if repeat in (None, one.repeat) and result.capture_of(one.id) is not None]
    if in_lab and not lab:
        raise _not_captured(result, in_lab)
    lab = [one for one in lab if one.fabric == lab[0].fabric]
    there = [one.run for one in lab] if in_lab or on == "lab" else result.finished_runs
    if not there:
        raise _nothing(result, on)
    if repeat is not None and not in_lab:
        raise ExplainError(
            "TC-X002",
            f"--repeat {repeat}: only runs of the lab have repeats",
            "add --on lab, or leave --repeat out",
        )
    scheme = _one_of("scheme", scheme or _baseline(plan["baseline"], there), [run["scheme"] for run in there])
    of_scheme = [run for run in there if run["scheme"] == scheme]
    seed = _one_of("seed", seed if seed is not None else of_scheme[0]["seed"], [run["seed"] for run in of_scheme])
    points = [run["point"] for run in of_scheme if run["seed"] == seed]
    wanted = _wanted(at or {}, points)
    points = [point for point in points if all(written(point[key]) == value for key, value in wanted.items())]
    if not points:
        raise ExplainError(
            "TC-X002", f"no finished run of {scheme} with seed {seed} has all of these values", "give one key only"
        )
    point = points[-1]
    runs = {run["scheme"]: run for run in there if run["seed"] == seed and run["point"] == point}
    runs = {scheme: runs[scheme], **runs}
    of_runs = {one.run["id"]: one for one in reversed(lab)}
    return RunSelection(seed, point, runs, {name: of_runs[run["id"]] for name, run in runs.items()} if lab else {})


def all_selections(result: "StoredResult", seeds: Sequence[int] = ()) -> list[RunSelection]:
    """Every point of the sweep that the simulator has runs of with these seeds, the last point first.

    Args:
        result: the results.
        seeds: which; without any the first that is there.

    Raises:
        ExplainError: TC-X001: no run of the simulator is there; TC-X002: none has that seed.
    """
    there = result.finished_runs
    if not there:
        raise _nothing(result, "sim")
    known = list(dict.fromkeys(run["seed"] for run in there))
    found = []
    for seed in dict.fromkeys(_one_of("seed", seed, known) for seed in seeds or [select_runs(result).seed]):
        points: list[Mapping[str, Value]] = []
        for run in there:
            if run["seed"] == seed and run["point"] not in points:
                points.append(run["point"])
        for point in reversed(points):
            runs = {run["scheme"]: run for run in there if run["seed"] == seed and run["point"] == point}
            first = _baseline(result.plan["baseline"], list(runs.values()))
            found.append(RunSelection(seed, point, {first: runs[first], **runs}))
    return found


def _nothing(result: "StoredResult", on: str | None) -> ExplainError:
    why = ""
    if "model" in set(result.summary()["backend"]):
        why = ": the queueing model has no packets"
    what, more = ("the kernel lab", " --on lab --capture host:N") if on == "lab" else ("the simulator", "")
    return ExplainError(
        "TC-X001",
        f"{result.directory} has no finished run of {what}{why}",
        f"tailcut run {shlex.quote(result.plan['source_file'])}{more} makes them",
    )


def _not_captured(result: "StoredResult", lab: Sequence[LabRun]) -> ExplainError:
    """Returns the error for lab runs without a capture; repeating one would show another run."""
    of_fabric = [one for one in lab if one.fabric == lab[0].fabric]
    flow = _ranked(result, lab[0].id).row(0, named=True) if not result.flows_of(lab[0].id).is_empty() else None
    return ExplainError(
        "TC-X005",
        f"the lab's runs in {result.directory} were made without --capture, and a lab run cannot be repeated exactly",
        f"make all of them once more: {captured.command(result.plan, result.directory, of_fabric, flow)}",
    )


def _baseline(baseline: str, there: Sequence[PlannedRun]) -> str:
    return baseline if any(run["scheme"] == baseline for run in there) else there[0]["scheme"]


def _one_of(what: str, asked: Any, known: Sequence[Any]) -> Any:
    if asked not in known:
        names = ", ".join(dict.fromkeys(str(one) for one in known))
        raise ExplainError("TC-X002", f"no finished run has {what} {asked!r}", f"finished runs have: {names}")
    return asked


def _wanted(at: Mapping[str, str], points: Sequence[Mapping[str, Value]]) -> dict[str, str]:
    """Returns the given values by full key, spelled as the sweep has them."""
    names = short_keys(points[0])
    wanted = {}
    for asked, value in at.items():
        key = next((key for key, name in names.items() if asked in (key, name)), None)
        if key is None:
            swept = ", ".join(names.values()) or "nothing is swept"
            raise ExplainError("TC-X002", f"{asked!r} is not swept here", f"swept: {swept}")
        known = [written(point[key]) for point in points]
        meant = next((written(point[key]) for point in points if _means(value, point[key])), value)
        wanted[key] = _one_of(names[key], meant, known)
    return wanted


def _means(asked: str, value: Value) -> bool:
    """Whether a text spells this value; a number may be spelled in any way (``1`` for 1.0)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(asked) == value
        except ValueError:
            return False
    return asked == written(value)


def slowest(result: "StoredResult", selection: RunSelection, number: int) -> list[int]:
    """Returns the slowest flows of the chosen scheme, the slowest first: short ones, if there are any.

    An unfinished flow counts with the time until the end of its run. In a run of the lab only flows count of which at
    least one end was captured.
    """
    ranked = _ranked(result, selection.run_id(selection.scheme))
    if selection.lab:
        run = selection.lab[selection.scheme]
        hosts = captured.hosts_seen(run.run, run.about)
        ranked = ranked.filter(pl.col("src").is_in(hosts) | pl.col("dst").is_in(hosts))
    return ranked["id"].head(number).to_list()


def _ranked(result: "StoredResult", run_id: str) -> pl.DataFrame:
    """The short flows of a run, or all if none is, the slowest first."""
    clock, _ = COMPLETION_COLUMNS[result.plan["measure"]["clock"]]
    flows = result.flows_of(run_id)
    end = result.end_ns(run_id)
    short = flows.filter(pl.col("class") == "short")
    took = pl.col(clock).fill_null(pl.lit(end) - pl.col("start_ns"))
    return (flows if short.is_empty() else short).sort(took, descending=True, maintain_order=True)
