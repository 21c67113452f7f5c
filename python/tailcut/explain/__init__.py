"""Explains why a flow took as long as it did, by repeating its run under every scheme with the flow traced.

Simulated runs are deterministic, so nothing has to be stored for this: the repeated run gives the same completion time,
or `ExplainError` says that it does not. Runs of the kernel lab are not: their captures are read instead.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailcut import _core
from tailcut.errors import ExplainError
from tailcut.explain import captured
from tailcut.explain.selection import RunSelection, all_selections, select_runs, slowest
from tailcut.plan import PlannedRun, label
from tailcut.results.lab_runs import LabRun
from tailcut.traces import read_table
from tailcut.units import amount_bytes

if TYPE_CHECKING:
    from tailcut.results import StoredResult

__all__ = [
    "MOST_PACKETS",
    "ExplainError",
    "Explained",
    "FlowStory",
    "RunSelection",
    "all_selections",
    "explain",
    "select_runs",
    "slowest",
]

MOST_PACKETS = 200_000
"""Most packets of a flow in its story; further packets are only counted."""


@dataclass(frozen=True, slots=True)
class FlowStory:
    """A flow under one scheme, with all that happened to it.

    Attributes:
        scheme: the scheme.
        row: its row of the flow table.
        story: the answer of `tailcut._core.explain` for it, with names of links in place of their numbers,
            ``transport`` and ``receive_window``. For a run of the lab: the same form made from its captured frames,
            and ``capture``, which describes the capture.
    """

    scheme: str
    row: Mapping[str, Any]
    story: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Explained:
    """A flow under every scheme that has it, the one asked about first.

    Attributes:
        flow: its number.
        selection: the runs that it belongs to.
        stories: one entry per scheme.
        without: the other schemes, each with the reason why it has no story.
    """

    flow: int
    selection: RunSelection
    stories: Sequence[FlowStory]
    without: Mapping[str, str]


def explain(result: "StoredResult", selection: RunSelection, flows: Sequence[int]) -> list[Explained]:
    """Returns the stories of these flows under every scheme; their runs are repeated until those flows end.

    Raises:
        ExplainError: TC-X003: the chosen scheme has no such flow; TC-X004: a run cannot be repeated, or gives another
            completion time than the stored one; TC-X005, TC-X006: a capture has no (identifiable) frames of the flow.
    """
    rows = {
        scheme: {row["id"]: row for row in result.flows_of(selection.run_id(scheme)).iter_rows(named=True)}
        for scheme in selection.runs
    }
    for flow in flows:
        if flow not in rows[selection.scheme]:
            known = sorted(rows[selection.scheme])
            span = f"its flows are {known[0]} to {known[-1]}" if known else "it has none"
            raise ExplainError("TC-X003", f"{selection.scheme}, {selection.label} has no flow {flow}", span)
    told: dict[str, dict[int, FlowStory]] = {}
    for scheme, run in selection.runs.items():
        wanted = {flow: rows[scheme][flow] for flow in dict.fromkeys(flows) if flow in rows[scheme]}
        told[scheme] = (
            _from_capture(result, selection.lab[scheme], wanted) if selection.lab else _rerun(scheme, run, wanted)
        )
    for flow in flows:
        if flow not in told[selection.scheme]:
            raise _not_seen(result, selection, rows[selection.scheme][flow])
    return [
        Explained(
            flow,
            selection,
            [told[scheme][flow] for scheme in selection.runs if flow in told[scheme]],
            {
                scheme: "its frames are not in the capture" if flow in rows[scheme] else "it did not start in that run"
                for scheme in selection.runs
                if flow not in told[scheme]
            },
        )
        for flow in flows
    ]


def _from_capture(result: "StoredResult", run: LabRun, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, FlowStory]:
    """Returns these flows' stories from the capture of a run of the lab."""
    file = result.capture_of(run.id)
    if file is None or not rows:
        return {}
    stories = captured.stories(run, file, rows, MOST_PACKETS)
    return {flow: FlowStory(run.run["scheme"], rows[flow], story) for flow, story in stories.items()}


def _not_seen(result: "StoredResult", selection: RunSelection, row: Mapping[str, Any]) -> ExplainError:
    """Returns the error for a flow whose frames a capture lacks, with the command that captures them."""
    run = selection.lab[selection.scheme]
    of_fabric = [one for one in result.lab.finished if one.fabric == run.fabric]
    again = f"make all runs once more: {captured.command(result.plan, result.directory, of_fabric, row)}"
    if {row["src"], row["dst"]} & captured.hosts_seen(run.run, run.about):
        return ExplainError(
            "TC-X006",
            f"the capture of {selection.scheme}, {selection.label} has no identifiable frames of flow {row['id']}:"
            " it filled up earlier, or several flows had ports chosen by the kernel at that time",
            f"name another flow with --flow, or {again}",
        )
    return ExplainError(
        "TC-X005",
        f"flow {row['id']} goes from host {row['src']} to host {row['dst']}, and neither host was captured in"
        f" {selection.scheme}, {selection.label}",
        again,
    )


def _rerun(scheme: str, run: PlannedRun, rows: Mapping[int, Mapping[str, Any]]) -> dict[int, FlowStory]:
    """Repeats a run until these flows end, and returns their stories; raises TC-X004 if their times differ."""
    if not rows:
        return {}
    try:
        answer = json.loads(_core.explain(json.dumps(run), list(rows), MOST_PACKETS, read_table))
    except ValueError as error:
        raise ExplainError(
            "TC-X004", f"{label(run)} cannot be repeated: {error}", "run the experiment again with this version"
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
                    f"{label(run)}, repeated, gives flow {story['flow']} another {name}:"
                    f" {found} ps instead of the stored {stored} ns",
                    "tailcut verify says whether the stored results are intact; if so, this is a defect of Tailcut",
                )
        transport = run["config"]["scheme"]["transport"]
        window = transport.get("receive_window")
        story |= {
            "transport": transport["kind"],
            "receive_window": None if window is None else amount_bytes(window),
        }
        told[story["flow"]] = FlowStory(scheme, row, _with_links(story, links))
    return told


def _with_links(story: dict[str, Any], links: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the story with names of links in place of their numbers."""
    for packet in story["packets"]:
        for hop in packet["hops"]:
            hop["link"] = links[hop["link"]]["name"]
        if packet["end"] is not None and packet["end"]["link"] is not None:
            packet["end"]["link"] = links[packet["end"]["link"]]["name"]
    return story
