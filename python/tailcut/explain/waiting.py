"""Why a sender that has more to send sends nothing: its window is full."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from tailcut.units import size, time_text

TROUBLED = {"timed-out": True, "recovers": True, "recovered": False, "undid": False}
"""Whether a sender repairs a loss after an act of this kind: its window alone does not limit it then."""
WITHOUT_SLOW_START = frozenset({"pfabric", "ndp"})


@dataclass(frozen=True, slots=True)
class WindowWait:
    """A sender's wait for acknowledgements with a full window.

    Attributes:
        lasts_ps: the time until it sends new data again.
        window: the size of the window in bytes.
        which: ``slow start``, ``congestion window`` or ``receive window``; ``window`` of transports that have one only.
    """

    lasts_ps: int
    window: int
    which: str

    def __str__(self) -> str:
        name, more = ("congestion window", " (slow start)") if self.which == "slow start" else (self.which, "")
        return f"then waits {time_text(self.lasts_ps)} for ACKs: the {name} of {size(self.window)} is full{more}"


def find_window_waits(story: Mapping[str, Any], pause: int) -> dict[int, WindowWait]:
    """Finds the waits for a full window: by the index of the packet in the story that was sent before each wait.

    Args:
        story: of a simulated flow, with ``transport`` and ``receive_window`` (bytes, or none).
        pause: the shortest wait that counts, in ps.
    """
    if "transport" not in story:
        return {}
    sent: dict[tuple[int, int], list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    acked: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    acts: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for place, packet in enumerate(story["packets"]):
        connection, end = (packet["copy"], packet["port"]), packet["end"]
        if packet["kind"] == "data":
            sent[connection].append((place, packet))
        elif packet["ack"] and end is not None and end["how"] == "received":
            acked[connection].append((end["at_ps"], packet["ack"]))
    for act in story["acts"]:
        acts[act["copy"], act["port"]].append(act)
    found = {}
    for connection, packets in sent.items():
        known = _Sender(acts[connection], sorted(acked[connection]), story["receive_window"])
        highest = accumulate((packet["seq"] + packet["bytes"] for _, packet in packets), max)
        for ((place, packet), (_, after)), until in zip(pairwise(packets), highest, strict=False):
            lasts = after["sent_ps"] - packet["sent_ps"]
            if lasts > pause and not after["again"] and after["seq"] >= until:
                window = known.full(packet["sent_ps"], until, after["bytes"])
                if window is not None:
                    found[place] = WindowWait(lasts, *_which(story, window))
    return found


class _Sender:
    """A sender's window and acknowledged bytes over time."""

    def __init__(
        self, acts: Sequence[Mapping[str, Any]], acked: Sequence[tuple[int, int]], receive_window: int | None
    ) -> None:
        self._acts = acts
        self._most = receive_window
        self._acted = [act["at_ps"] for act in acts]
        self._at = [at for at, _ in acked]
        self._acked = list(accumulate((ack for _, ack in acked), max))
        self._troubled = list(accumulate(acts, lambda was, act: TROUBLED.get(act["what"], was), initial=False))[1:]

    def full(self, at_ps: int, until: int, more: int) -> Mapping[str, Any] | None:
        """Returns the act that set the current window, if sending ``more`` bytes after ``until`` would exceed it.

        None if they fit, or while the sender repairs a loss.
        """
        acted, heard = bisect_right(self._acted, at_ps), bisect_right(self._at, at_ps)
        if not acted or self._troubled[acted - 1]:
            return None
        under_way = until - (self._acked[heard - 1] if heard else 1)
        act = self._acts[acted - 1]
        window = act["window"] if self._most is None else min(act["window"], self._most)
        return act if under_way + more > window else None


def _which(story: Mapping[str, Any], act: Mapping[str, Any]) -> tuple[int, str]:
    """Returns the size of the full window in bytes, and its name."""
    window, threshold, most = act["window"], act["threshold"], story["receive_window"]
    if most is not None and window >= most:
        return most, "receive window"
    if story["transport"] in WITHOUT_SLOW_START:
        return window, "window"
    return window, "slow start" if threshold is None or window < threshold else "congestion window"
