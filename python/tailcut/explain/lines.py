"""A flow's story in lines: when, which connection, where, what.

What is the same for many packets is one line: packets that are sent together, acknowledgements that come back together.
Those that nothing happened to are folded further when there are many of them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tailcut.explain import FlowStory
from tailcut.explain.waiting import WindowWait, find_window_waits
from tailcut.units import size, time_text

Packet: TypeAlias = Mapping[str, Any]

WORDS = {
    "syn": "SYN",
    "syn-ack": "SYN-ACK",
    "data": "data",
    "probe": "probe",
    "ack": "ACK",
    "pull": "PULL",
    "cut": "NACK",
    "fin": "FIN",
    "rst": "RST",
}
LOSSES = {
    "dropped": "dropped at {}: the queue is full",
    "returned": "returned by {}: no room for its header either",
    "dead-link": "lost: {} is down",
    "under-way": "lost: {} went down",
    "corrupted": "corrupted on {}",
    "missing": "lost: it does not arrive",
}
NUMBER = re.compile(r"[0-9][0-9.,]*( ([pnµm]?s|[kMG]?B)\b)?")
SEVERAL = frozenset({"data", "ack", "pull"})
SHORT = 60
"""Most lines of a story that is shown whole; in longer ones, lines that recur are counted."""
FIRST = 3
"""Number of repeated events that are shown."""
FEW = 24
"""Most stretches without incident that get a line each; in longer stories neighbours share one."""


@dataclass(frozen=True, slots=True)
class Line:
    """An event of a story.

    Attributes:
        at_ps: picoseconds from the start of the flow.
        copy: the connection, from 0; none for the flow as a whole.
        what: in words.
        kind: ``quiet``, ``step`` (opens or ends a connection), ``incident`` (losses, timers,
            retransmissions), or ``end``.
        packets: of how many packets it tells.
        wait: the longest that one of them spent in one queue.
        held_ps: how long their sender then waited with a full window.
    """

    at_ps: int
    copy: int | None
    what: str
    kind: str = "quiet"
    packets: int = 0
    wait: "Wait | None" = None
    held_ps: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Time in one queue."""

    link: str
    waited_ps: int
    ahead: int
    own: int

    def __str__(self) -> str:
        own = "all" if self.own == self.ahead else f"{self.own} of them"
        of_own = f", {own} its own" if self.own else ""
        return f"{time_text(self.waited_ps)} at {self.link} behind {packets_text(self.ahead)}{of_own}"


def waits(packet: Packet) -> list[Wait]:
    """The queues that a packet waited in."""
    return [
        Wait(hop["link"], hop["begins_ps"] - hop["at_ps"], hop["ahead"], hop["own"])
        for hop in packet["hops"]
        if hop["begins_ps"] > hop["at_ps"]
    ]


def longest_wait(packets: Sequence[Packet]) -> Wait | None:
    """The longest time that any of these packets spent in one queue."""
    return max((wait for packet in packets for wait in waits(packet)), key=lambda wait: wait.waited_ps, default=None)


def packets_text(number: int, word: str = "packet") -> str:
    """A number of packets."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def lost(packet: Packet) -> bool:
    """Whether a packet did not arrive."""
    return packet["end"] is not None and packet["end"]["how"] not in ("received", "unseen")


def towards_sender(packet: Packet) -> bool:
    """Whether a packet goes from the flow's receiver to its sender."""
    return bool(packet["back"])


def _sent(packet: Packet) -> str:
    """The verb: a capture of one end has frames of the other when they arrive."""
    if not packet.get("arrives"):
        return "sent"
    return "arrive" if packet["kind"] == "data" and packet["bytes"] else "arrives"


def lines(told: FlowStory, *, everything: bool = False) -> list[Line]:
    """The story of a flow, in order.

    Args:
        told: the flow under one scheme.
        everything: a line for every packet.
    """
    story = told.story
    found = [*_of_flow(story), *_of_senders(story), *_of_packets(story, everything), *_silences(story)]
    found.sort(key=lambda line: line.at_ps)  # what is of one instant stays in this order: packets are what comes of it
    return found if everything else _grouped(_folded(found))


def _of_packets(story: Mapping[str, Any], everything: bool) -> Iterator[Line]:
    """A line for each packet that something happened to, and for each stretch of others."""
    pause = _pause(story)
    waits_after = find_window_waits(story, pause)
    stretches: dict[tuple[int, bool], list[tuple[Packet, WindowWait | None]]] = {}
    resets: dict[tuple[int, bool], list[Packet]] = {}
    for place, packet in enumerate(story["packets"]):
        full = waits_after.get(place)
        several = packet["kind"] in SEVERAL and not (lost(packet) or packet["again"] or packet.get("note"))
        if packet["kind"] == "rst" and not (everything or lost(packet)):
            resets.setdefault((packet["copy"], towards_sender(packet)), []).append(packet)
            continue
        if everything or not several:
            yield _of_one(story, packet, full)
            continue
        key = packet["copy"], towards_sender(packet)
        stretch = stretches.setdefault(key, [])
        if stretch and packet["sent_ps"] - stretch[-1][0]["sent_ps"] > pause:
            yield _of_stretch(story, [one for one, _ in stretch], stretch[-1][1])
            stretch.clear()
        stretch.append((packet, full))
    for stretch in stretches.values():
        yield _of_stretch(story, [one for one, _ in stretch], stretch[-1][1])
    for same in resets.values():
        yield _of_resets(story, same)


def _of_resets(story: Mapping[str, Any], resets: Sequence[Packet]) -> Line:
    """Returns the line for the RSTs of one end of a connection: one per packet that reaches it after its close."""
    if len(resets) == 1:
        return _of_one(story, resets[0], None)
    first, span = resets[0], resets[-1]["sent_ps"] - resets[0]["sent_ps"]
    whose = " of the receiver" if towards_sender(first) else ""
    verb = "arrive" if first.get("arrives") else "sent"
    what = f"{len(resets):,} RSTs{whose} {verb} {f'within {time_text(span)}' if span else 'at once'}"
    wait = longest_wait(resets)
    said = what if wait is None else f"{what}; longest wait {wait}"
    return Line(first["sent_ps"] - story["start_ps"], first["copy"], said, "step", len(resets), wait)


def _pause(story: Mapping[str, Any]) -> int:
    """Returns the shortest gap between packets of two lines, in ps: half of the round trip without queues."""
    ways: dict[bool, int] = {}
    for packet in story["packets"]:
        if packet["end"] is not None and packet["end"]["how"] == "received":
            way = packet["end"]["at_ps"] - packet["sent_ps"] - sum(wait.waited_ps for wait in waits(packet))
            ways.setdefault(towards_sender(packet), way)
        if len(ways) == 2:
            break
    if "capture" in story and len(ways) < 2:
        return int(story["round_trip_ps"]) // 2
    return sum(ways.values()) // 2


def _of_one(story: Mapping[str, Any], packet: Packet, full: WindowWait | None) -> Line:
    """Returns a packet's own line."""
    what = WORDS[packet["kind"]]
    if packet["bytes"] and packet["kind"] == "data":
        what = f"bytes {packet['seq']:,} to {packet['seq'] + packet['bytes'] - 1:,}"
    elif packet["kind"] == "ack" and packet["ack"]:
        what = f"ACK of everything before byte {packet['ack']:,}"
    if packet["kind"] in ("fin", "rst") and towards_sender(packet):
        what += " of the receiver"
    said = [f"{what} {_sent(packet)}{' again' if packet['again'] else ''}"]
    if packet.get("note"):
        said.append(packet["note"])
    total = sum(wait.waited_ps for wait in waits(packet))
    longest = longest_wait([packet])
    if longest is not None and (longest.ahead > 1 or lost(packet)):
        said.append(f"waits {longest}" + (f" ({time_text(total)} in all)" if total > 1.2 * longest.waited_ps else ""))
    if packet["marked"]:
        said.append("marked on the way")
    end = packet["end"]
    if end is None:
        said.append("still on its way when the flow ends")
    elif lost(packet):
        said.append(LOSSES[end["how"]].format(end["link"]))
    elif end["how"] == "received" and not packet.get("arrives"):
        said.append(f"arrives after {time_text(end['at_ps'] - packet['sent_ps'])}")
    if full is not None:
        said.append(str(full))
    several = packet["kind"] in SEVERAL
    kind = "incident" if lost(packet) or packet["again"] else "quiet" if several else "step"
    lasts = 0 if full is None else full.lasts_ps
    return Line(packet["sent_ps"] - story["start_ps"], packet["copy"], "; ".join(said), kind, 1, longest, lasts)


def _of_stretch(story: Mapping[str, Any], stretch: Sequence[Packet], full: WindowWait | None) -> Line:
    """Returns the line for packets that were sent together and met no incident."""
    if len(stretch) == 1:
        return _of_one(story, stretch[0], full)
    first = stretch[0]
    payload = sum(packet["bytes"] for packet in stretch)
    if towards_sender(first):
        what = packets_text(len(stretch), "PULL" if all(packet["kind"] == "pull" for packet in stretch) else "ACK")
    else:
        what = f"{packets_text(len(stretch))} ({size(payload)})"
    span = stretch[-1]["sent_ps"] - first["sent_ps"]
    verb = "arrive" if first.get("arrives") else "sent"
    said = [f"{what} {verb} {f'within {time_text(span)}' if span else 'at once'}"]
    wait = longest_wait(stretch)
    if wait is not None:
        said.append(f"longest wait {wait}")
    marked = sum(packet["marked"] for packet in stretch)
    if marked:
        said.append(f"{marked:,} marked")
    if full is not None:
        said.append(str(full))
    at, lasts = first["sent_ps"] - story["start_ps"], 0 if full is None else full.lasts_ps
    return Line(at, first["copy"], "; ".join(said), packets=len(stretch), wait=wait, held_ps=lasts)


def _of_senders(story: Mapping[str, Any]) -> Iterator[Line]:
    """Yields the events of senders besides sending: timers and recoveries."""
    told: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "timed-out": lambda act: (
            f"the timer{_of(act['timer_ps'])} expires: nothing has come back; window {size(act['window'])}"
        ),
        "recovers": lambda act: f"ACKs indicate a loss: fast retransmit; window {size(act['window'])}",
        "recovered": lambda act: f"what was lost has arrived; window {size(act['window'])}",
        "undid": lambda act: f"spurious: the reduction is undone; window {size(act['window'])}",
        "heeded": lambda act: f"marks were echoed; window reduced to {size(act['window'])}",
    }
    for act in story["acts"]:
        if act["what"] in told:
            yield Line(act["at_ps"] - story["start_ps"], act["copy"], told[act["what"]](act), "incident")


def _silences(story: Mapping[str, Any]) -> Iterator[Line]:
    """Yields the times in which an end of a connection neither sends nor receives, by its capture."""
    for act in story["acts"]:
        if act["what"] == "silent":
            what = f"then nothing is sent or received for {time_text(act['lasts_ps'])}"
            yield Line(act["at_ps"] - story["start_ps"], act["copy"], what, "incident")


def _of(picoseconds: int | None) -> str:
    return "" if picoseconds is None else f" of {time_text(picoseconds)}"


def _of_flow(story: Mapping[str, Any]) -> Iterator[Line]:
    """Yields the events of the flow as a whole."""
    if story["connect_ps"] is not None:
        yield Line(story["connect_ps"], None, "connected", "step")
    if story["fct_ps"] is None:
        yield Line(story["until_ps"] - story["start_ps"], None, "not finished when the run ended", "end")
    else:
        several = len({packet["copy"] for packet in story["packets"]}) > 1
        by = f" on connection {story['winner'] + 1}" if several and story["winner"] is not None else ""
        best = (
            f"{story['fct_ps'] / story['ideal_fct_ps']:.1f} times the best possible {time_text(story['ideal_fct_ps'])}"
        )
        whose = " and been read by the application" if "capture" in story else ""
        yield Line(story["fct_ps"], None, f"the last byte has arrived{by}{whose}: {best}", "end")
        if story["fct_ack_ps"] is not None:
            yield Line(story["fct_ack_ps"], None, "the sender has the last ACK", "end")
    if not story.get("capture", {"whole": True})["whole"]:
        yield Line(
            story["until_ps"] - story["start_ps"], None, "the capture was full: later packets are not in it", "end"
        )
    if story["left_out"]:
        yield Line(
            story["until_ps"] - story["start_ps"],
            None,
            f"{packets_text(story['left_out'])} more are not shown",
            "end",
        )


def _folded(found: Sequence[Line]) -> list[Line]:
    """Folds neighbouring lines without incident into one, if there are many."""
    if sum(line.kind == "quiet" for line in found) <= FEW:
        return list(found)
    folded: list[Line] = []
    run: list[Line] = []
    for line in [*found, None]:
        if line is not None and line.kind == "quiet":
            run.append(line)
            continue
        if len(run) > 2:
            folded.append(_together(run))
        else:
            folded.extend(run)
        run = []
        if line is not None:
            folded.append(line)
    return folded


def _together(run: Sequence[Line]) -> Line:
    """Returns one line for several stretches without incident."""
    packets = sum(line.packets for line in run)
    said = [f"{packets_text(packets)} in {time_text(run[-1].at_ps - run[0].at_ps)} without incident"]
    wait = max((line.wait for line in run if line.wait is not None), key=lambda wait: wait.waited_ps, default=None)
    if wait is not None:
        said.append(f"longest wait {wait}")
    lasts = sum(line.held_ps for line in run)
    if lasts:
        whose = " of all connections together" if len({line.copy for line in run}) > 1 else ""
        said.append(f"{time_text(lasts)} of waiting with a full window{whose}")
    copies = {line.copy for line in run}
    copy = run[0].copy if len(copies) == 1 else None
    return Line(run[0].at_ps, copy, "; ".join(said), packets=packets, wait=wait, held_ps=lasts)


def _grouped(found: Sequence[Line]) -> list[Line]:
    """Shortens a long story: of lines that differ only in numbers the first stay, and the others are counted.

    Openings and ends of connections stay where they are; lines between two of them are grouped by themselves.
    """
    if len(found) <= SHORT:
        return list(found)
    grouped: list[Line] = []
    between: list[Line] = []
    for line in [*found, None]:
        if line is not None and line.kind in ("quiet", "incident"):
            between.append(line)
            continue
        grouped.extend(_once(between))
        between = []
        if line is not None:
            grouped.append(line)
    return grouped


def _once(between: Sequence[Line]) -> Iterator[Line]:
    alike: dict[tuple[int | None, str], list[Line]] = {}
    for line in between:
        alike.setdefault((line.copy, NUMBER.sub("#", line.what)), []).append(line)
    again = {id(lines[FIRST]): lines[FIRST:] for lines in alike.values() if len(lines) > FIRST + 1}
    left_out = {id(line) for lines in again.values() for line in lines}
    for line in between:
        if id(line) in again:
            yield _counted(again[id(line)])
        elif id(line) not in left_out:
            yield line


def _counted(same: Sequence[Line]) -> Line:
    """Returns one line for lines that differ only in their numbers."""
    last = same[-1]
    what = f"{len(same):,} times more until {time_text(last.at_ps)}; the last: {last.what}"
    wait = max((line.wait for line in same if line.wait is not None), key=lambda wait: wait.waited_ps, default=None)
    packets, lasts = sum(line.packets for line in same), sum(line.held_ps for line in same)
    return Line(same[0].at_ps, last.copy, what, last.kind, packets, wait, lasts)
