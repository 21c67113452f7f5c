"""A TCP connection's frames at one end or both, as packets of a story."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tailcut.explain.pcapng import ACK, FIN, RST, SYN, Frame
from tailcut.units import time_text

RECEIVED = "received"
SEQUENCES = 1 << 32


@dataclass(frozen=True, slots=True)
class Ends:
    """The captured ends of a flow: its sender, its receiver."""

    sender: bool
    receiver: bool


def connection_packets(
    copy: int, port: int, there: Sequence[Frame], back: Sequence[Frame], ends: Ends
) -> list[dict[str, Any]]:
    """Returns the packets of a connection as in a story, without links, in order of time in each direction.

    Args:
        copy: which connection of the flow, from 0.
        port: its port at the flow's sender.
        there: frames from the flow's sender, at both hosts, in order of time.
        back: frames to it.
        ends: whose frames these are.

    Returns:
        A dictionary per packet: the keys of `tailcut._core.explain`, and ``back`` (towards the flow's sender),
        ``arrives`` (captured at its destination only: ``sent_ps`` is the time of arrival) and ``note`` (a remark).
        Sequence numbers count from the connection's initial ones. ``end`` is none if a frame has not arrived; its
        ``how`` is ``unseen`` if that is not known.
    """
    first = _first(there), _first(back)
    acks = [frame for frame in back if not frame.sent or not ends.sender]
    forward = _direction(there, ends.sender, ends.receiver)
    backward = _direction(back, ends.receiver, ends.sender)
    notes = _as_sent(there, acks, first[0]) if ends.sender else _as_received(there, first[0])
    found = []
    for (frame, end), (again, note) in zip(forward, notes, strict=True):
        found.append(_packet(frame, end, (frame.seq - first[0]) % SEQUENCES, again=again, note=note))
    known: set[tuple[str, int]] = set()
    for frame, reached in backward:
        what = _kind(frame, back=True), frame.seq
        again = what in known and what[0] != "ack"
        known.add(what)
        packet = _packet(frame, reached, (frame.seq - first[1]) % SEQUENCES, again=again, note="")
        found.append(packet | {"back": True, "kind": what[0], "ack": (frame.ack - first[0]) % SEQUENCES})
    arrives = {False: not ends.sender, True: not ends.receiver}
    return [{"copy": copy, "port": port, **packet, "arrives": arrives[packet["back"]]} for packet in found]


def _first(frames: Sequence[Frame]) -> int:
    """Returns the initial sequence number; without a captured SYN, one that lets the first captured byte count as 1."""
    if not frames:
        return 0
    opened = next((frame for frame in frames if frame.flags & SYN), None)
    return frames[0].seq - 1 if opened is None else opened.seq


def _kind(frame: Frame, *, back: bool) -> str:
    if frame.flags & SYN:
        return "syn-ack" if back or frame.flags & ACK else "syn"
    if frame.flags & RST:
        return "rst"
    if frame.payload:
        return "data"
    return "fin" if frame.flags & FIN else "ack"


def _packet(frame: Frame, end: dict[str, Any] | None, seq: int, *, again: bool, note: str) -> dict[str, Any]:
    return {
        "kind": _kind(frame, back=False),
        "seq": seq,
        "bytes": frame.payload,
        "ack": 0,
        "again": again,
        "marked": frame.marked or bool(end and end.pop("marked", False)),
        "sent_ps": 1000 * frame.at_ns,
        "hops": [],
        "end": end,
        "back": False,
        "note": note,
    }


def _direction(frames: Sequence[Frame], near: bool, far: bool) -> list[tuple[Frame, dict[str, Any] | None]]:
    """The frames of one direction as they were sent, or else as they arrived, each with its end."""
    if not near:
        return [(frame, {"at_ps": 1000 * frame.at_ns, "how": RECEIVED, "link": None}) for frame in frames]
    sent = [frame for frame in frames if frame.sent]
    if not far:
        return [(frame, {"at_ps": 1000 * frame.at_ns, "how": "unseen", "link": None}) for frame in sent]
    arrivals = _arrivals(sent, [frame for frame in frames if not frame.sent])
    return [
        (
            frame,
            None
            if there is None
            else {"at_ps": 1000 * there.at_ns, "how": RECEIVED, "link": None, "marked": there.marked},
        )
        for frame, there in zip(sent, arrivals, strict=True)
    ]


def _arrivals(sent: Sequence[Frame], arrived: Sequence[Frame]) -> list[Frame | None]:
    """Returns, for each frame that was sent, the one that arrived.

    Some look the same, as a SYN-ACK that is repeated: if fewer arrive than were sent, it is the latest that could.
    """
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, frame in enumerate(sent):
        places[frame.identity].append(place)
    alike: dict[tuple[int, ...], list[Frame]] = defaultdict(list)
    for frame in arrived:
        alike[frame.identity].append(frame)
    found: list[Frame | None] = [None] * len(sent)
    for identity, there in alike.items():
        free = places[identity]
        if len(free) == len(there):
            for place, frame in zip(free, there, strict=True):
                found[place] = frame
            continue
        for frame in reversed(there):
            latest = next((place for place in reversed(free) if sent[place].at_ns <= frame.at_ns), None)
            if latest is not None:
                free.remove(latest)
                found[latest] = frame
    return found


def _as_sent(frames: Sequence[Frame], acks: Sequence[Frame], first: int) -> Iterator[tuple[bool, str]]:
    """Yields, for each frame of the flow's sender, whether it was sent before, and the ACKs known at that time."""
    highest = 0
    begun: dict[tuple[str, int], int] = {}
    for frame in frames:
        if not frame.sent:
            continue
        kind, seq = _kind(frame, back=False), (frame.seq - first) % SEQUENCES
        when = begun.setdefault((kind, seq), frame.at_ns)
        again = seq < highest if kind == "data" else kind in ("syn", "fin") and when < frame.at_ns
        if kind == "data":
            highest = max(highest, seq + frame.payload)
        note = ""
        if again:
            note = f"{time_text(1000 * (frame.at_ns - when))} after the first time" if when < frame.at_ns else ""
            repeated = sum(one.ack == frame.seq and not one.payload and one.at_ns <= frame.at_ns for one in acks) - 1
            if kind == "data" and repeated > 0:
                said = f"after {repeated:,} duplicate ACK{'' if repeated == 1 else 's'}"
                note = f"{note}, {said}" if note else said
        elif kind == "data" and frame.flags & FIN:
            note = "with FIN"
        yield again, note


def _as_received(frames: Sequence[Frame], first: int) -> Iterator[tuple[bool, str]]:
    """Yields, for each frame at the flow's receiver, whether its bytes were there, and which are missing before it."""
    there: list[tuple[int, int]] = [(0, 1)]
    opened: set[str] = set()
    for frame in frames:
        kind, seq = _kind(frame, back=False), (frame.seq - first) % SEQUENCES
        if kind != "data":
            yield kind in ("syn", "fin") and kind in opened, ""
            opened.add(kind)
            continue
        end = seq + frame.payload
        highest = there[-1][1]
        note, again = "", False
        if any(low <= seq and end <= high for low, high in there):
            note, again = "received before", True
        elif seq > highest:
            note = f"before bytes {highest:,} to {seq - 1:,}, which are missing"
        elif seq < highest:
            note = "fills a gap"
        yield again, note
        there = _joined([*there, (seq, end)])


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that touch as one."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(high, joined[-1][1])
        else:
            joined.append((low, high))
    return joined
