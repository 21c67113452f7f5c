"""Why a flow took as long as it did: its run is made again with that flow traced, for every scheme.

Runs are deterministic, so nothing has to be stored for it: the run made again gives the same completion time, or
`ExplainError` says that it does not. Runs of the kernel lab are not: they are told from their captures.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailcut import _core
from tailcut.errors import ExplainError
from tailcut.explain import captured
from tailcut.explain.places import Place, all_places, find_place, slowest
from tailcut.plan import PlannedRun, label
from tailcut.results.lab_runs import LabRun
from tailcut.traces import read_table
from tailcut.units import amount_bytes

if TYPE_CHECKING:
    from tailcut.results import Result

__all__ = [
    "MOST_PACKETS",
    "ExplainError",
    "Explained",
    "Place",
    "Told",
    "all_places",
    "explain",
    "find_place",
    "slowest",
]

MOST_PACKETS = 200_000
"""Packets of a flow in its story; what more it sends is counted."""


@dataclass(frozen=True, slots=True)
class Told:
    """A flow under one scheme, with all that happened to it.

    Attributes:
        scheme: the scheme.
        row: its row of the flow table.
        story: what `tailcut._core.explain` tells of it, with names of links in place of their numbers, ``transport``
            and ``receive_window``; of a run of the lab what its frames tell, and ``capture``: where they were captured.
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
        without: the other schemes, and why it is not told under each.
    """

    flow: int
    place: Place
    told: Sequence[Told]
    without: Mapping[str, str]


def explain(result: "Result", place: Place, flows: Sequence[int]) -> list[Explained]:
    """Returns the stories of these flows under every scheme; their runs are made again as far as those flows go.

    Raises:
        ExplainError: TC-X003: the scheme that is asked about has no such flow; TC-X004: a run cannot be made again, or
            gives another completion time than the one that is stored; TC-X005, TC-X006: a capture does not tell of it.
    """
    rows = {
        scheme: {row["id"]: row for row in result.flows_of(place.finished(scheme)).iter_rows(named=True)}
        for scheme in place.runs
    }
    for flow in flows:
        if flow not in rows[place.scheme]:
            known = sorted(rows[place.scheme])
            span = f"its flows are {known[0]} to {known[-1]}" if known else "it has none"
            raise ExplainError("TC-X003", f"{place.scheme}, {place.label} has no flow {flow}", span)
    told: dict[str, dict[int, Told]] = {}
    for scheme, run in place.runs.items():
        wanted = {flow: rows[scheme][flow] for flow in dict.fromkeys(flows) if flow in rows[scheme]}
        told[scheme] = _from_capture(result, place.lab[scheme], wanted) if place.lab else _again(scheme, run, wanted)
    for flow in flows:
        if flow not in told[place.scheme]:
            raise _not_seen(result, place, rows[place.scheme][flow])
    return [
        Explained(
            flow,
            place,
            [told[scheme][flow] for scheme in place.runs if flow in told[scheme]],
            {
                scheme: "its frames are not in the capture" if flow in rows[scheme] else "it did not start in its run"
                for scheme in place.runs
                if flow not in told[scheme]
            },
        )
        for flow in flows
    ]


def _from_capture(result: "Result", run: LabRun, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, Told]:
    """Returns these flows' stories from the capture of a run of the lab."""
    file = result.capture_of(run)
    if file is None or not rows:
        return {}
    stories = captured.stories(run, file, rows, MOST_PACKETS)
    return {flow: Told(run.run["scheme"], rows[flow], story) for flow, story in stories.items()}


def _not_seen(result: "Result", place: Place, row: Mapping[str, Any]) -> ExplainError:
    """Why the capture does not tell of a flow, and what would."""
    run = place.lab[place.scheme]
    of_fabric = [one for one in result.finished_lab_runs if one.fabric == run.fabric]
    again = f"make all runs once more: {captured.command(result.plan, result.directory, of_fabric, row)}"
    if {row["src"], row["dst"]} & captured.hosts_seen(run.run, run.about):
        return ExplainError(
            "TC-X006",
            f"the capture of {place.scheme}, {place.label} does not tell which frames are those of flow {row['id']}:"
            " it was full before, or kernels chose the ports of several flows at that time",
            f"--flow names another, or {again}",
        )
    return ExplainError(
        "TC-X005",
        f"flow {row['id']} goes from host {row['src']} to host {row['dst']}, and neither was captured in"
        f" {place.scheme}, {place.label}",
        again,
    )


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
        transport = run["config"]["scheme"]["transport"]
        window = transport.get("receive_window")
        story |= {
            "transport": transport["kind"],
            "receive_window": None if window is None else amount_bytes(window),
        }
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
