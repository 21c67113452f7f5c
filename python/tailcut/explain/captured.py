"""Flows of the kernel lab: their stories from the frames that the hosts at their ends sent and received.

A capture says when a host had a frame to send and when one was due at its host, by the clock of the fabric. Where both
ends are captured, a frame that does not arrive is lost; where one is, what becomes of frames at the other is not known.
"""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tailcut import _core
from tailcut.errors import ExplainError
from tailcut.explain.connection import RECEIVED, Ends, connection_packets
from tailcut.explain.pcapng import DamagedError, Frame, frames
from tailcut.plan import Plan, PlannedRun
from tailcut.results.lab_runs import LabRun
from tailcut.results.location import default_directory
from tailcut.traces import read_table
from tailcut.units import amount_bytes, time_ps

LISTEN = 62_000
"""Port on which a host of the lab receives; the second copy of a flow goes to the one after it."""
COPIES = 2
NETWORK = 10 << 24 | 77 << 16
"""Host n of the lab has the address that is n + 1 from here."""


def hosts_seen(run: PlannedRun, about: Mapping[str, Any]) -> set[int]:
    """Returns the hosts whose frames a lab run captured, by its ``run.json``."""
    names = _names(_demand(run))
    points = [point.removeprefix("host:") for point in about["capture"]]
    by_name = {name: host for host, name in enumerate(names)}
    return {by_name[point] if point in by_name else int(point.removeprefix("h")) for point in points}


def command(plan: Plan, directory: Path, there: Sequence[LabRun], flow: Mapping[str, Any] | None) -> str:
    """Returns the command that makes further runs of the lab with both ends of a flow captured."""
    hosts = ("N",) if flow is None else (flow["src"], flow["dst"])
    words = ["tailcut", "run", plan["source_file"], "--on", "lab", "--repeat", max(one.repeat for one in there) + 1]
    words += [word for host in hosts for word in ("--capture", f"host:{host}")]
    fabric = there[0].fabric
    words += ["--lab-fabric", fabric] if fabric != plan["lab"]["fabric"] else []
    words += ["--out", directory] if directory != default_directory(Path(plan["source_file"])) else []
    return shlex.join(map(str, words))


def stories(lab: LabRun, file: Path, rows: Mapping[int, Mapping[str, Any]], most: int) -> dict[int, dict[str, Any]]:
    """Returns the stories of these flows from the frames of a run, in the form of `tailcut._core.explain`.

    Args:
        lab: the run.
        file: its capture.
        rows: of its flow table, by flow.
        most: packets of a flow.

    Raises:
        ExplainError: TC-X006: the capture is damaged.
    """
    demand = _demand(lab.run)
    seen = hosts_seen(lab.run, lab.about)
    wanted = {one["id"]: one for one in demand["flows"] if one["id"] in rows}
    try:
        found, until_ns = _connections(lab.run, frames(file), demand["flows"], wanted)
    except DamagedError as error:
        raise ExplainError(
            "TC-X006", f"the capture {file} cannot be read: {error}", "capture a further run with --repeat"
        ) from None
    names = _names(demand)
    if not lab.about["captured"]["left_out"]:
        until_ns = lab.about["end_ns"]
    return {
        flow: _story(lab, rows[flow], connections, CaptureScope(names, seen, until_ns, most))
        for flow, connections in found.items()
        if connections
    }


@dataclass(frozen=True, slots=True)
class CaptureScope:
    """The extent of a capture, and of the stories made from it.

    Attributes:
        names: the names of all hosts.
        hosts: the hosts whose frames were captured.
        until_ns: the time at which the capture ends.
        most: the most packets of a flow in its story.
    """

    names: Sequence[str]
    hosts: set[int]
    until_ns: int
    most: int


@dataclass(slots=True)
class Connection:
    """The frames of a connection, in order of time: those from the flow's sender, and those to it."""

    copy: int
    port: int
    there: list[Frame] = field(default_factory=list)
    back: list[Frame] = field(default_factory=list)


def _demand(run: PlannedRun) -> dict[str, Any]:
    demand: dict[str, Any] = json.loads(_core.demand(json.dumps(run), read_table))
    return demand


def _names(demand: Mapping[str, Any]) -> list[str]:
    graph = demand["graph"]
    return [*graph["names"][: graph["hosts"]], *(f"h{host}" for host in range(len(graph["names"]), graph["hosts"]))]


def _races(run: PlannedRun, flow: Mapping[str, Any]) -> bool:
    """Whether kernels choose the source ports of a flow: those of RepSYN's short flows, which no plan has."""
    replicate = run["config"]["scheme"]["replicate"]
    return bool(replicate["kind"] == "repsyn" and flow["bytes"] <= amount_bytes(replicate["threshold"]))


def _connections(
    run: PlannedRun,
    all_frames: Iterable[Frame],
    flows: Sequence[Mapping[str, Any]],
    wanted: Mapping[int, Mapping[str, Any]],
) -> tuple[dict[int, list[Connection]], int]:
    """The connections of each flow that is wanted, and the time of the last frame in ns."""
    planned = {(one["src"], one["source_port"], one["dst"]) for one in flows if not _races(run, one)}
    pairs = {(one["src"], one["dst"]) for one in wanted.values()}
    found: dict[tuple[int, int, int, int], Connection] = {}
    until = 0
    for frame in all_frames:
        until = frame.at_ns
        back = LISTEN <= frame.source[1] < LISTEN + COPIES
        near, far = (frame.destination, frame.source) if back else (frame.source, frame.destination)
        copy = far[1] - LISTEN
        pair = near[0] - NETWORK - 1, far[0] - NETWORK - 1
        if pair not in pairs or not 0 <= copy < COPIES:
            continue
        connection = found.setdefault((pair[0], near[1], pair[1], copy), Connection(copy, near[1]))
        (connection.back if back else connection.there).append(frame)
    of_flows: dict[int, list[Connection]] = {}
    for flow, one in wanted.items():
        if _races(run, one):
            raced = {key: connection for key, connection in found.items() if key[:3] not in planned}
            of_flows[flow] = _raced(one, flows, raced)
        else:
            keys = [(one["src"], one["source_port"], one["dst"], copy) for copy in range(COPIES)]
            of_flows[flow] = [found[key] for key in keys if key in found]
    return of_flows, until


def _raced(
    wanted: Mapping[str, Any],
    flows: Sequence[Mapping[str, Any]],
    found: Mapping[tuple[int, int, int, int], Connection],
) -> list[Connection]:
    """Returns the connections of a flow with kernel-chosen ports: those begun before the next flow of the two hosts.

    None if there may be others at that time.
    """
    later = [
        one["start_ps"]
        for one in flows
        if (one["src"], one["dst"]) == (wanted["src"], wanted["dst"]) and one["start_ps"] > wanted["start_ps"]
    ]
    begins, ends = wanted["start_ps"] // 1000, min(later, default=1 << 63) // 1000
    of_copies: dict[int, list[Connection]] = defaultdict(list)
    for (src, _, dst, copy), connection in found.items():
        of_hosts = (src, dst) == (wanted["src"], wanted["dst"]) and connection.there
        if of_hosts and begins <= connection.there[0].at_ns < ends:
            of_copies[copy].append(connection)
    if not of_copies[0] or any(len(connections) > 1 for connections in of_copies.values()):
        return []
    return [connections[0] for _, connections in sorted(of_copies.items()) if connections]


def _story(
    lab: LabRun, row: Mapping[str, Any], connections: Sequence[Connection], scope: CaptureScope
) -> dict[str, Any]:
    ends = Ends(row["src"] in scope.hosts, row["dst"] in scope.hosts)
    told = [connection_packets(one.copy, one.port, one.there, one.back, ends) for one in connections]
    packets = sorted((packet for one in told for packet in one), key=lambda packet: packet["sent_ps"])
    _settle(packets, ends, 1000 * scope.until_ns)
    until = 1000 * scope.until_ns
    times = {
        name: None if row[f"{name}_ns"] is None else 1000 * row[f"{name}_ns"] for name in ("connect", "fct", "fct_ack")
    }
    transport = lab.run["config"]["scheme"]["transport"]
    # Completion times count from when the application opened the flow, a little after the plan's
    # start.
    opened = [packet["sent_ps"] for packet in packets if packet["kind"] == "syn" and not packet["arrives"]]
    start = opened[0] if opened else 1000 * row["start_ns"]
    over = until if times["fct"] is None else start + times["fct"]
    silence = [act for one in told for act in _silence(one, time_ps(transport["min_rto"]), over, sender=ends.sender)]
    return {
        "flow": row["id"],
        "from": scope.names[row["src"]],
        "to": scope.names[row["dst"]],
        "bytes": row["bytes"],
        "segment": amount_bytes(transport["mss"]),
        "start_ps": start,
        **{f"{name}_ps": time for name, time in times.items()},
        "ideal_fct_ps": 1000 * row["ideal_fct_ns"],
        "winner": row["winner"],
        "until_ps": until,
        "packets": packets[: scope.most],
        "acts": sorted(silence, key=lambda act: act["at_ps"]),
        "left_out": max(0, len(packets) - scope.most),
        "round_trip_ps": _round_trip(packets),
        "capture": {
            "hosts": [scope.names[host] for host in sorted(scope.hosts)],
            "sender": ends.sender,
            "receiver": ends.receiver,
            "whole": not lab.about["captured"]["left_out"],
            "repeat": lab.repeat,
            "faithful": lab.faithful,
        },
    }


def _settle(packets: Sequence[dict[str, Any]], ends: Ends, until_ps: int) -> None:
    """Marks frames that never reached the receiver as missing, if both ends of the flow were captured.

    A frame sent less than twice the longest transit time before the end may still have been on its way.
    """
    if not (ends.sender and ends.receiver):
        return
    arrived = [packet for packet in packets if packet["end"] is not None]
    longest = max((packet["end"]["at_ps"] - packet["sent_ps"] for packet in arrived), default=0)
    for packet in packets:
        if packet["end"] is None and packet["sent_ps"] + 2 * longest < until_ps:
            packet["end"] = {"at_ps": packet["sent_ps"], "how": "missing", "link": None}


def _round_trip(packets: Sequence[Mapping[str, Any]]) -> int:
    """Returns the round trip of the handshake as one end saw it; 0 if the capture lacks the handshake."""
    syn = next((packet for packet in packets if packet["kind"] == "syn"), None)
    answer = next((packet for packet in packets if packet["kind"] == "syn-ack"), None)
    if syn is None or answer is None:
        return 0
    end = answer["end"]
    at = end["at_ps"] if end is not None and end["how"] == RECEIVED else answer["sent_ps"]
    return int(at - syn["sent_ps"])


def _silence(
    packets: Sequence[Mapping[str, Any]], shortest: int, until_ps: int, *, sender: bool
) -> Iterable[dict[str, Any]]:
    """Yields the silences at one end of a connection longer than its shortest timer, until its flow ends."""
    known = (_instant(packet, sender=sender) for packet in packets)
    instants = sorted(at for at in known if at is not None)
    for before, after in pairwise(instants):
        if after - before > shortest and before < until_ps:
            yield {
                "at_ps": before,
                "copy": packets[0]["copy"],
                "port": packets[0]["port"],
                "what": "silent",
                "lasts_ps": after - before,
            }


def _instant(packet: Mapping[str, Any], *, sender: bool) -> int | None:
    """Returns when one captured end of a connection sent or received a packet; None if it did not arrive."""
    if not (sender and packet["back"]) or packet["arrives"]:
        return int(packet["sent_ps"])
    end = packet["end"]
    return int(end["at_ps"]) if end is not None and end["how"] == RECEIVED else None
