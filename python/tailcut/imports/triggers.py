"""Triggers of htsim's matrices: flows that wait for flows, as a job.

A flow fires triggers as it is acknowledged or received. A oneshot starts the flows that name it when it is fired, a
barrier when it is fired for the K-th time. A multishot starts one flow at each firing; it is a pool if those that fire
it and those that it starts are one list of one sender.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, overload

import numpy as np
import numpy.typing as npt

from tailcut.imports.job import MESSAGE, Integers, Job
from tailcut.imports.network import ImportedFlow
from tailcut.imports.source import MAX_SECONDS, Word

_MOST_ID = 2**32 - 1
Marks = npt.NDArray[np.bool_]


KINDS = ("oneshot", "barrier", "multishot")


@dataclass(slots=True)
class Triggers:
    """The trigger lines of a matrix: a place in each array for each."""

    name: str
    numbers: "array[int]" = field(default_factory=lambda: array("I"))
    kinds: "array[int]" = field(default_factory=lambda: array("B"))
    counts: "array[int]" = field(default_factory=lambda: array("I"))
    line: "array[int]" = field(default_factory=lambda: array("I"))

    def add(self, number: int, kind: str, count: int, line: int) -> None:
        """Adds a trigger: its number, its kind, how often it is fired, its line."""
        self.numbers.append(number)
        self.kinds.append(KINDS.index(kind))
        self.counts.append(count)
        self.line.append(line)

    def __len__(self) -> int:
        return len(self.numbers)

    def refuse(self, place: int, what: str, hint: str, code: str = "TC-I002") -> NoReturn:
        """Raises the refusal of a trigger's line."""
        Word(self.name, self.line[place], 1, "").refuse(what, hint, code)


@dataclass(slots=True)
class Flows:
    """The connections of a matrix: a place in each array for each; 0 is no trigger."""

    name: str
    src: "array[int]" = field(default_factory=lambda: array("I"))
    dst: "array[int]" = field(default_factory=lambda: array("I"))
    size: "array[int]" = field(default_factory=lambda: array("Q"))
    start_ns: "array[int]" = field(default_factory=lambda: array("Q"))
    own: "array[int]" = field(default_factory=lambda: array("q"))
    line: "array[int]" = field(default_factory=lambda: array("I"))
    trigger: "array[int]" = field(default_factory=lambda: array("I"))
    send_done: "array[int]" = field(default_factory=lambda: array("I"))
    recv_done: "array[int]" = field(default_factory=lambda: array("I"))
    joined: "array[int]" = field(default_factory=lambda: array("B"))

    def add(
        self,
        flow: tuple[int, int, int, int],
        own: int,
        line: int,
        named: Sequence[int],
        *,
        joined: bool = False,
    ) -> None:
        """Adds a connection.

        Args:
            flow: source, destination, bytes, and start in nanoseconds.
            own: its id, -1 for none.
            line: its line.
            named: the triggers that start it, that it fires when sent, and when received; 0 for none.
            joined: whether it is a message on a connection of others.
        """
        src, dst, size, start = flow
        self.src.append(src)
        self.dst.append(dst)
        self.size.append(size)
        self.start_ns.append(start)
        self.own.append(own)
        self.line.append(line)
        self.joined.append(joined)
        trigger, send_done, recv_done = named
        self.trigger.append(trigger)
        self.send_done.append(send_done)
        self.recv_done.append(recv_done)

    def __len__(self) -> int:
        return len(self.src)

    def refuse(self, flow: int, what: str, hint: str, code: str = "TC-I002") -> NoReturn:
        """Raises the refusal of a flow's line."""
        Word(self.name, self.line[flow], 1, "").refuse(what, hint, code)


class Listed(Sequence[ImportedFlow]):
    """The connections of a matrix without triggers, as flows.

    Args:
        flows: the connections.
        numbered: whether flows keep their ids.
    """

    def __init__(self, flows: Flows, *, numbered: bool) -> None:
        self._flows = flows
        self._numbered = numbered

    def __len__(self) -> int:
        return len(self._flows)

    @overload
    def __getitem__(self, at: int) -> ImportedFlow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ImportedFlow]: ...
    def __getitem__(self, at: int | slice) -> ImportedFlow | Sequence[ImportedFlow]:
        flows = self._flows
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        own = flows.own[at]
        number = own if self._numbered and own >= 0 else None
        return ImportedFlow(flows.src[at], flows.dst[at], flows.size[at], flows.start_ns[at], number)


def trigger_id(word: Word) -> int:
    """Returns the number of a trigger, from 1 on."""
    number = word.whole("trigger", _MOST_ID)
    if number == 0:
        word.refuse("trigger 0: triggers are counted from 1", "use another number")
    return number


def read_trigger(words: Sequence[Word], triggers: Triggers) -> None:
    """Read ``trigger id T oneshot``, ``multishot`` or ``barrier count K``."""
    first = words[0]
    hint = "write trigger id T oneshot, multishot, or barrier count K"
    texts = [word.text for word in words]
    if len(words) < 4 or texts[1] != "id" or texts[3] not in KINDS:
        first.refuse("this is no trigger", hint)
    number, kind = trigger_id(words[2]), texts[3]
    rest = words[4:]
    count = 1
    if kind == "barrier":
        if len(rest) != 2 or rest[0].text != "count":
            first.refuse("the barrier has no count", hint)
        count, rest = rest[1].whole("count", _MOST_ID), []
        if count == 0:
            words[5].refuse("count 0: a barrier is fired at least once", hint)
    if rest:
        rest[0].refuse(f"{rest[0].text!r} behind a {kind}", hint)
    triggers.add(number, kind, count, first.line)


class _Members:
    """The flows that name each trigger in one way, by the trigger's place."""

    def __init__(self, named: Integers, triggers: int) -> None:
        flows = np.flatnonzero(named >= 0)
        self.flows = flows[np.argsort(named[flows], kind="stable")]
        self.counts = np.bincount(named[flows], minlength=triggers)
        self.first = np.concatenate(([0], np.cumsum(self.counts)))

    def of(self, trigger: int) -> list[int]:
        """Returns the flows of a trigger, in the order of the file."""
        found: list[int] = self.flows[self.first[trigger] : self.first[trigger + 1]].tolist()
        return found


def job(flows: Flows, triggers: Triggers, *, numbered: bool) -> Job:
    """Returns the job of flows that wait for others.

    Args:
        flows: the connections.
        triggers: the triggers.
        numbered: whether each flow has a number of its own.

    Raises:
        ImportRefusedError: it is no graph, or cannot come to its end.
    """
    count = len(flows)
    waiting = _named(flows, flows.trigger, "waits for", triggers)
    starts = _Members(waiting, len(triggers))
    acknowledged = _Members(_named(flows, flows.send_done, "fires", triggers), len(triggers))
    received = _Members(_named(flows, flows.recv_done, "fires", triggers), len(triggers))
    _check(triggers, flows, acknowledged, received)
    pool, at_once = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    multishots = np.frombuffer(triggers.kinds, dtype=np.uint8) == KINDS.index("multishot")
    for place in np.flatnonzero(multishots).tolist():
        members = _pool(place, triggers, flows, acknowledged.of(place), received.of(place), starts.of(place))
        pool[members] = triggers.numbers[place]
        at_once[members] = len(members) - starts.counts[place]
    waiting[(waiting >= 0) & multishots[waiting]] = -1
    first, waits, marks = _waits(waiting, acknowledged, received)
    ids = np.array(flows.own if numbered else np.arange(1, count + 1), dtype=np.int64)
    start = np.array(flows.start_ns, dtype=np.int64)
    if len(late := np.flatnonzero(start >= MAX_SECONDS * 10**9)):
        at = int(late[0])
        what = f"the connection starts at {flows.start_ns[at] / 1e9:,.0f} s, and a run lasts at most a day"
        flows.refuse(at, what, "state its unit with --start-unit, or let it start earlier", "TC-I003")
    found = Job(
        ids=ids,
        kinds=np.full(count, MESSAGE, dtype=np.uint8),
        one=np.array(flows.src, dtype=np.int64),
        other=np.array(flows.dst, dtype=np.int64),
        amounts=np.array(flows.size, dtype=np.int64),
        first=first,
        waits=waits,
        starts_ns=start if start.any() else None,
        acknowledged=marks,
        pool=pool if pool.any() else None,
        at_once=at_once,
        over="acknowledged",
    )
    cycle = found.cycle()
    if cycle:
        names = ", which waits for ".join(f"line {flows.line[at]}" for at in (*cycle[1:9], cycle[0]))
        what = f"line {flows.line[cycle[0]]} waits for {names}: none of them can start"
        flows.refuse(cycle[0], what, "remove one of these triggers")
    return found


def _named(flows: Flows, numbers: "array[int]", does: str, triggers: Triggers) -> Integers:
    """Returns the place of the trigger that each flow names, -1 for none."""
    named = np.array(numbers, dtype=np.int64)
    known = np.array(triggers.numbers, dtype=np.int64)
    order = np.argsort(known)
    at = np.searchsorted(known[order], named)
    found = np.full(len(named), -1, dtype=np.int64)
    within = at < len(known)
    found[within] = order[at[within]]
    is_known = within & (found >= 0)
    is_known[is_known] = known[found[is_known]] == named[is_known]
    unknown = np.flatnonzero((named > 0) & ~is_known)
    if len(unknown):
        number = numbers[int(unknown[0])]
        what = f"the connection {does} trigger {number}, which no line has"
        flows.refuse(int(unknown[0]), what, f"write trigger id {number} oneshot")
    found[~is_known] = -1
    return found


def _check(triggers: Triggers, flows: Flows, acknowledged: _Members, received: _Members) -> None:
    """Refuses triggers that are fired too seldom or too often."""
    fired = acknowledged.counts + received.counts
    kinds = np.frombuffer(triggers.kinds, dtype=np.uint8)
    counts = np.frombuffer(triggers.counts, dtype=np.uint32)
    wrong = (fired == 0) | ((kinds != KINDS.index("multishot")) & (fired != counts))
    for place in np.flatnonzero(wrong)[:1].tolist():
        number, times = triggers.numbers[place], int(fired[place])
        lines = ", ".join(str(flows.line[flow]) for flow in (acknowledged.of(place) + received.of(place))[:4])
        if not times:
            what = f"no connection fires trigger {number}"
            triggers.refuse(place, what, "remove it, or let a connection fire it")
        if kinds[place] == KINDS.index("oneshot"):
            what = f"oneshot {number} is fired {times} times (lines {lines})"
            triggers.refuse(place, what, "make it a barrier with that count, or a trigger for each")
        what = f"barrier {number} has count {triggers.counts[place]} and is fired {times} times"
        triggers.refuse(place, what, "correct the count")


def _waits(waiting: Integers, acknowledged: _Members, received: _Members) -> tuple[Integers, Integers, Marks]:
    """Returns where the waits of each flow begin, the flows that it waits for, and which for their acknowledgement."""
    own = np.flatnonzero(waiting >= 0)
    parts = []
    for members, mark in ((acknowledged, True), (received, False)):
        counts = members.counts[waiting[own]]
        to = np.repeat(own, counts)
        begins = np.repeat(members.first[waiting[own]], counts)
        within = np.arange(len(to)) - np.repeat(np.cumsum(counts) - counts, counts)
        parts.append((to, members.flows[begins + within], np.full(len(to), mark, dtype=np.bool_)))
    to, waits, marks = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(to, kind="stable")
    first = np.concatenate(([0], np.cumsum(np.bincount(to, minlength=len(waiting)))))
    return first, waits[order], marks[order]


def _pool(
    place: int, triggers: Triggers, flows: Flows, acknowledged: list[int], received: list[int], started: list[int]
) -> list[int]:
    """Returns the flows of a multishot that is a pool, in the order of the file."""
    hint = "import it as a pool: flows of one sender that all fire it, the first ones with start 0, the others waiting"
    number = triggers.numbers[place]

    def refuse(what: str) -> NoReturn:
        triggers.refuse(place, what, hint, "TC-I003")

    if received:
        refuse(f"multishot {number} is fired as messages are received")
    firing, waiting = set(acknowledged), set(started)
    if not waiting <= firing:
        lines = ", ".join(str(flows.line[flow]) for flow in sorted(waiting - firing)[:4])
        refuse(f"multishot {number} starts connections that do not fire it (lines {lines}): any of several is no graph")
    first = sorted(firing - waiting)
    if not first or any(flows.trigger[flow] or flows.start_ns[flow] for flow in first):
        refuse(f"multishot {number} is no pool: not all that fire it start at 0")
    if len({flows.src[flow] for flow in firing}) > 1:
        refuse(f"multishot {number} is fired by connections of several senders")
    if waiting and min(waiting) < first[-1]:
        refuse(f"multishot {number}: connections that wait stand before one that starts at 0")
    return sorted(firing)
