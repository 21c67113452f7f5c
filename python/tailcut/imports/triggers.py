"""Triggers of htsim's matrices: flows that wait for flows, as a job.

A flow fires triggers as it is acknowledged or received. A oneshot starts the flows that name it when it is fired, a
barrier when it is fired for the K-th time. A multishot starts one flow at each firing; it is a pool if those that fire
it and those that it starts are one list of one sender.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from tailcut.imports.job import MESSAGE, Job
from tailcut.imports.source import Word

_MOST_ID = 2**32 - 1


@dataclass(slots=True)
class Trigger:
    """A trigger line: its place, its kind, how often it is fired, and who fires and names it, by flow."""

    word: Word
    kind: str
    count: int
    acknowledged: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    @property
    def firing(self) -> list[int]:
        """The flows that fire it."""
        return [*self.acknowledged, *self.received]


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

    def __len__(self) -> int:
        return len(self.src)

    def refuse(self, flow: int, what: str, hint: str, code: str = "TC-I002") -> NoReturn:
        """Raises the refusal of a flow's line."""
        Word(self.name, self.line[flow], 1, "").refuse(what, hint, code)


def trigger_id(word: Word) -> int:
    """Returns the number of a trigger, from 1 on."""
    number = word.whole("trigger", _MOST_ID)
    if number == 0:
        word.refuse("trigger 0: triggers are counted from 1", "use another number")
    return number


def read_trigger(words: Sequence[Word], triggers: dict[int, Trigger]) -> None:
    """Read ``trigger id T oneshot``, ``multishot`` or ``barrier count K``."""
    first = words[0]
    hint = "write trigger id T oneshot, multishot, or barrier count K"
    texts = [word.text for word in words]
    if len(words) < 4 or texts[1] != "id" or texts[3] not in ("oneshot", "multishot", "barrier"):
        first.refuse("this is no trigger", hint)
    number, kind = trigger_id(words[2]), texts[3]
    if number in triggers:
        words[2].refuse(f"trigger {number} is that of line {triggers[number].word.line}, too", "remove one of them")
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
    triggers[number] = Trigger(first, kind, count)


def job(flows: Flows, triggers: dict[int, Trigger], *, numbered: bool) -> Job:
    """Returns the job of flows that wait for others.

    Args:
        flows: the connections.
        triggers: the triggers by number.
        numbered: whether each flow has a number of its own.

    Raises:
        ImportRefusedError: it is no graph, or cannot come to its end.
    """
    _join(flows, triggers)
    pool = np.zeros(len(flows), dtype=np.int64)
    at_once = np.zeros(len(flows), dtype=np.int64)
    for number, trigger in triggers.items():
        _check(number, trigger, flows)
        if trigger.kind == "multishot":
            members = _pool(number, trigger, flows)
            pool[members], at_once[members] = number, len(members) - len(trigger.waiting)
    first, waits, marks = [0], array("I"), bytearray()
    for flow in range(len(flows)):
        cause = triggers.get(flows.trigger[flow])
        if cause is not None and cause.kind != "multishot":
            waits.extend(cause.firing)
            marks += b"\1" * len(cause.acknowledged) + b"\0" * len(cause.received)
        first.append(len(waits))
    ids = np.array(flows.own if numbered else np.arange(1, len(flows) + 1), dtype=np.int64)
    found = Job(
        ids=ids,
        kinds=np.full(len(flows), MESSAGE, dtype=np.uint8),
        one=np.array(flows.src, dtype=np.int64),
        other=np.array(flows.dst, dtype=np.int64),
        amounts=np.array(flows.size, dtype=np.int64),
        first=np.array(first, dtype=np.int64),
        waits=np.array(waits, dtype=np.int64),
        starts_ns=np.array(flows.start_ns, dtype=np.int64) if any(flows.start_ns) else None,
        acknowledged=np.frombuffer(bytes(marks), dtype=np.bool_),
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


def _join(flows: Flows, triggers: dict[int, Trigger]) -> None:
    """Tells triggers who fires them, and whom they start."""
    for numbers, name, fires in (
        (flows.trigger, "waiting", "waits for"),
        (flows.send_done, "acknowledged", "fires"),
        (flows.recv_done, "received", "fires"),
    ):
        for flow, number in enumerate(numbers):
            if not number:
                continue
            if number not in triggers:
                what = f"the connection {fires} trigger {number}, which no line has"
                flows.refuse(flow, what, f"write trigger id {number} oneshot")
            getattr(triggers[number], name).append(flow)


def _check(number: int, trigger: Trigger, flows: Flows) -> None:
    fired = len(trigger.firing)
    word, lines = trigger.word, ", ".join(str(flows.line[flow]) for flow in trigger.firing[:4])
    if not fired:
        word.refuse(f"no connection fires trigger {number}", "remove it, or let a connection fire it")
    if trigger.kind == "oneshot" and fired > 1:
        what = f"oneshot {number} is fired {fired} times (lines {lines})"
        word.refuse(what, "make it a barrier with that count, or a trigger for each")
    if trigger.kind == "barrier" and fired != trigger.count:
        what = f"barrier {number} has count {trigger.count} and is fired {fired} times"
        word.refuse(what, "correct the count")


def _pool(number: int, trigger: Trigger, flows: Flows) -> list[int]:
    """Returns the flows of a multishot that is a pool, in the order of the file."""
    hint = "import it as a pool: flows of one sender that all fire it, the first ones with start 0, the others waiting"
    refuse = trigger.word.refuse
    if trigger.received:
        refuse(f"multishot {number} is fired as messages are received", hint, "TC-I003")
    firing, waiting = set(trigger.acknowledged), set(trigger.waiting)
    if not waiting <= firing:
        lines = ", ".join(str(flows.line[flow]) for flow in sorted(waiting - firing)[:4])
        what = f"multishot {number} starts connections that do not fire it (lines {lines}): any of several is no graph"
        refuse(what, hint, "TC-I003")
    first = sorted(firing - waiting)
    other = next((flow for flow in first if flows.trigger[flow] or flows.start_ns[flow]), None)
    if other is not None or not first:
        refuse(f"multishot {number} is no pool: not all that fire it start at 0", hint, "TC-I003")
    if len({flows.src[flow] for flow in firing}) > 1:
        refuse(f"multishot {number} is fired by connections of several senders", hint, "TC-I003")
    members = sorted(firing)
    if waiting and min(waiting) < first[-1]:
        refuse(f"multishot {number}: connections that wait stand before one that starts at 0", hint, "TC-I003")
    return members
