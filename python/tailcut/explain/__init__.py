"""Why a flow took as long as it did: its run is made again with that flow traced, for every scheme.

Runs are deterministic, so nothing has to be stored for it: the run made again gives the same completion time, or
`ExplainError` says that it does not.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tailcut import _core
from tailcut.errors import TailcutError
from tailcut.plan import PlannedRun, Value, label, short_keys
from tailcut.results.summary import CLOCKS
from tailcut.traces import read_table

if TYPE_CHECKING:
    from tailcut.results import Result

MOST_PACKETS = 200_000
"""Packets of a flow in its story; what more it sends is counted."""


class ExplainError(TailcutError):
    """A flow cannot be explained."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where flows are looked for: the runs of all schemes at one point of the sweep with one seed.

    Attributes:
        seed: of the runs.
        point: the swept keys and their values.
        runs: by scheme, those that are there; the one that is asked about comes first.
    """

    seed: int
    point: Mapping[str, Value]
    runs: Mapping[str, PlannedRun]

    @property
    def scheme(self) -> str:
        """The scheme that is asked about."""
        return next(iter(self.runs))

    @property
    def label(self) -> str:
        """It as a person refers to it: ``load 0.8, seed 1``."""
        return ", ".join(
            [*(f"{name} {self.point[key]}" for key, name in short_keys(self.point).items()), f"seed {self.seed}"]
        )


@dataclass(frozen=True, slots=True)
class Told:
    """A flow under one scheme, with all that happened to it.

    Attributes:
        scheme: the scheme.
        row: its row of the flow table.
        story: what `tailcut._core.explain` tells of it, with ``links`` in place of their numbers.
    """

    scheme: str
    row: Mapping[str, Any]
    story: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Explained:
    """A flow under every scheme that has it, the one asked about first.

    Attributes:
        flow: its number.
        place: where it is.
        told: one entry per scheme.
        without: schemes in whose run it did not start.
    """

    flow: int
    place: Place
    told: Sequence[Told]
    without: Sequence[str]


def find_place(
    result: "Result", scheme: str | None = None, seed: int | None = None, at: Mapping[str, str] | None = None
) -> Place:
    """The runs to look at: by default those of the baseline, of the first seed that is there, at the last point.

    Args:
        result: the results.
        scheme: whose flows are asked about.
        seed: of the runs.
        at: values of swept keys as they are written; a key may be its last part (``load``).

    Raises:
        ExplainError: TC-X001: no run of the simulator is there; TC-X002: what is named is not among the results.
    """
    plan, there = result.plan, result.finished_runs
    if not there:
        backends = set(result.summary()["backend"]) - {"sim"}
        why = ""
        if "lab" in backends:
            why = ": of the kernel lab's runs it is not known where each packet was when"
        elif "model" in backends:
            why = ": the queueing model has no packets"
        raise ExplainError(
            "TC-X001",
            f"{result.directory} holds no run of the simulator{why}",
            f"tailcut run {plan['source_file']} makes them",
        )
    scheme = _one_of("scheme", scheme or _baseline(plan["baseline"], there), [run["scheme"] for run in there])
    of_scheme = [run for run in there if run["scheme"] == scheme]
    seed = _one_of("seed", seed if seed is not None else of_scheme[0]["seed"], [run["seed"] for run in of_scheme])
    points = [run["point"] for run in of_scheme if run["seed"] == seed]
    wanted = _wanted(at or {}, points)
    points = [point for point in points if all(str(point[key]) == value for key, value in wanted.items())]
    if not points:
        raise ExplainError(
            "TC-X002", f"no run of {scheme} with seed {seed} is at that point together", "name one key only"
        )
    point = points[-1]
    runs = {run["scheme"]: run for run in there if run["seed"] == seed and run["point"] == point}
    return Place(seed, point, {scheme: runs[scheme], **runs})


def _baseline(baseline: str, there: Sequence[PlannedRun]) -> str:
    return baseline if any(run["scheme"] == baseline for run in there) else there[0]["scheme"]


def _one_of(what: str, asked: Any, known: Sequence[Any]) -> Any:
    if asked not in known:
        names = ", ".join(dict.fromkeys(str(one) for one in known))
        raise ExplainError("TC-X002", f"there is no finished run of {what} {asked!r}", f"there are those of: {names}")
    return asked


def _wanted(at: Mapping[str, str], points: Sequence[Mapping[str, Value]]) -> dict[str, str]:
    """The swept keys that are meant, whole, with a value that each has somewhere."""
    names = short_keys(points[0])
    wanted = {}
    for asked, value in at.items():
        key = next((key for key, name in names.items() if asked in (key, name)), None)
        if key is None:
            swept = ", ".join(names.values()) or "nothing is swept"
            raise ExplainError("TC-X002", f"{asked!r} is not swept here", f"swept: {swept}")
        _one_of(names[key], value, [str(point[key]) for point in points])
        wanted[key] = value
    return wanted


def slowest(result: "Result", place: Place, number: int) -> list[int]:
    """The slowest flows of the scheme that is asked about, the slowest first: short ones, if there are any.

    A flow that has not finished has taken at least until the end of its run.
    """
    clock, _ = CLOCKS[result.plan["measure"]["clock"]]
    flows = result.flows_of(place.runs[place.scheme])
    end = result.runs.filter(pl.col("id") == place.runs[place.scheme]["id"])["end_ns"][0]
    short = flows.filter(pl.col("class") == "short")
    took = pl.col(clock).fill_null(pl.lit(end) - pl.col("start_ns"))
    ranked = (flows if short.is_empty() else short).sort(took, descending=True, maintain_order=True)
    return ranked["id"].head(number).to_list()


def explain(result: "Result", place: Place, flows: Sequence[int]) -> list[Explained]:
    """What happened to these flows, under every scheme: their runs are made again, as far as those flows go.

    Raises:
        ExplainError: TC-X003: the scheme that is asked about has no such flow; TC-X004: a run cannot be made again, or
            gives another completion time than the one that is stored.
    """
    rows = {
        scheme: {row["id"]: row for row in result.flows_of(place.runs[scheme]).iter_rows(named=True)}
        for scheme in place.runs
    }
    for flow in flows:
        if flow not in rows[place.scheme]:
            known = sorted(rows[place.scheme])
            span = f"its flows are {known[0]} to {known[-1]}" if known else "it has none"
            raise ExplainError("TC-X003", f"{place.scheme}, {place.label} has no flow {flow}", span)
    told: dict[str, dict[int, Told]] = {}
    for scheme, run in place.runs.items():
        wanted = [flow for flow in dict.fromkeys(flows) if flow in rows[scheme]]
        told[scheme] = _again(scheme, run, {flow: rows[scheme][flow] for flow in wanted})
    return [
        Explained(
            flow,
            place,
            [told[scheme][flow] for scheme in place.runs if flow in told[scheme]],
            [scheme for scheme in place.runs if flow not in told[scheme]],
        )
        for flow in flows
    ]


def _again(scheme: str, run: PlannedRun, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, Told]:
    """Makes a run again as far as these flows go."""
    if not rows:
        return {}
    try:
        answer = json.loads(_core.explain(json.dumps(run), list(rows), MOST_PACKETS, read_table))
    except ValueError as error:
        raise ExplainError(
            "TC-X004", f"{label(run)} cannot be made again: {error}", "run the experiment again with this version"
        ) from None
    links = answer["links"]
    told = {}
    for story in answer["flows"]:
        row = rows[story["flow"]]
        for name in ("connect", "fct", "fct_ack"):
            found = story[f"{name}_ps"]
            stored = row[f"{name}_ns"]
            if (None if found is None else found // 1000) != stored:
                raise ExplainError(
                    "TC-X004",
                    f"{label(run)}, made again, gives flow {story['flow']} another {name}:"
                    f" {found} ps, and {stored} ns are stored",
                    "tailcut verify says whether the results are as they were written; if they are, this is a defect",
                )
        told[story["flow"]] = Told(scheme, row, _with_links(story, links))
    return told


def _with_links(story: dict[str, Any], links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The story with the names of links in place of their numbers."""
    for packet in story["packets"]:
        for hop in packet["hops"]:
            hop["link"] = links[hop["link"]]["name"]
        if packet["end"] is not None and packet["end"]["link"] is not None:
            packet["end"]["link"] = links[packet["end"]["link"]]["name"]
    return story
