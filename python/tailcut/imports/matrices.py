"""htsim's connection matrices (``.cm``, ``.tm``), read line by line.

A matrix counts nodes and connections, and has a line for each: ``0->1 id 1 start 0 size 1000``. Programs disagree on
the unit of ``start``: picoseconds in ndp, eqds, roce and hpcc, microseconds in uec and swift. Connections that wait for
triggers make a matrix a job (see `tailcut.imports.triggers`).
"""

import re

import numpy as np
import numpy.typing as npt

from tailcut.imports import triggers
from tailcut.imports.job import Integers
from tailcut.imports.network import Imported, ImportedFlow, ImportOptions, checked_flow
from tailcut.imports.source import MAX_FLOWS, MAX_HOSTS, ImportRefusedError, LineSource, Word

_TRIGGERS = ("trigger", "send_done_trigger", "recv_done_trigger")
_LEFT_OUT = {
    "addon": "marks of added flows (addon) are left out: they have no effect here",
    "msg": "messages (msg) become flows of their own, numbered anew: connections are not reused",
    "prio": "priorities (prio) are left out: flows here have none",
}
"""Attributes without a meaning here, with the note that says so."""
_N = r"(\d{1,15})"
_PLAIN = re.compile(
    rf"{_N}->{_N}(?: id {_N})?(?: start {_N}| trigger {_N}) size {_N}"
    rf"(?: send_done_trigger {_N})?(?: recv_done_trigger {_N})?",
    re.ASCII,
)
"""A connection as most files write it; every other form is read word by word."""
_ONESHOT = re.compile(rf"trigger id {_N} oneshot", re.ASCII)
_TOLD = 65_536
"""Lines between two reports on progress."""


def read(source: LineSource, found: Imported, options: ImportOptions) -> None:
    """Read a matrix.

    Args:
        source: the file.
        found: gets the flows or the job; its network, if any, must have all nodes.
        options: among them, the unit of starts.

    Raises:
        ImportRefusedError: it is no matrix, or says what has no place here.
    """
    matrix = _Matrix(source, options)
    try:
        matrix.read()
    except ImportRefusedError:
        matrix.refuse_repeated()  # stands before the line that is refused
        raise
    matrix.refuse_repeated()
    matrix.check_counts()
    nodes, word = matrix.counts["Nodes"]
    if found.network is not None and nodes > len(found.network.hosts):
        what = f"{nodes} nodes, and the topology has {len(found.network.hosts)} hosts"
        word.refuse(what, "name the topology that belongs to the matrix", "TC-I004")
    flows, known = matrix.flows, matrix.triggers
    numbered = "msg" not in matrix.left_out and min(flows.own) >= 0
    if len(known) or any(flows.trigger) or any(flows.send_done) or any(flows.recv_done):
        options.progress(f"{source.name}: joining connections by their triggers")
        found.job = triggers.job(flows, known, numbered=numbered)
    else:
        found.flows = triggers.Listed(flows, numbered="msg" not in matrix.left_out)
    for name, place in sorted(matrix.left_out.items()):
        found.notes.append(f"{place.file}:{place.line}: {_LEFT_OUT[name]}")
    found.hosts = nodes


class _Matrix:
    """A matrix as it is read."""

    def __init__(self, source: LineSource, options: ImportOptions) -> None:
        self.source = source
        self.options = options
        self.unit_ps = options.start_unit_ps or 1
        self.counts: dict[str, tuple[int, Word]] = {}
        self.flows = triggers.Flows(source.name)
        self.triggers = triggers.Triggers(source.name)
        self.left_out: dict[str, Word] = {}

    def read(self) -> None:
        """Read all lines."""
        flows, source = self.flows, self.source
        plain, oneshot, known = _PLAIN.fullmatch, _ONESHOT.fullmatch, self.triggers
        for number, line in source.numbered():
            if not number % _TOLD:
                self._tell()
            found = plain(line)
            if found is not None and self._add_plain(found.groups(), number):
                continue
            one = oneshot(line)
            if one is not None and 0 < int(one[1]) < 2**32:
                known.add(int(one[1]), "oneshot", 1, number)
                continue
            words = source.words(number, line, "#")
            if words:
                self._add(words)
        if not len(flows):
            source.end().refuse("no connection", "write SRC->DST start PS size BYTES for each")
        if len(known) and "Triggers" not in self.counts:
            self._refuse_uncounted()

    def _refuse_uncounted(self) -> None:
        self.check_counts()
        known = self.triggers
        known.refuse(0, "no line says how many triggers there are", f"write Triggers {len(known)}")

    def _tell(self) -> None:
        done = self.source.done()
        count = f"{len(self.flows):,} connections and {len(self.triggers):,} triggers"
        self.options.progress(f"{self.source.name}: {done:.0%} read, {count}")

    def check_counts(self) -> None:
        """Refuses a number of connections or triggers that does not fit."""
        for name, there in (("Connections", len(self.flows)), ("Triggers", len(self.triggers))):
            count, word = self.counts.get(name, (there, None))
            if word is not None and count != there:
                word.refuse(f"{count} {name.lower()} are announced, but {there} follow", "correct the number")

    def refuse_repeated(self) -> None:
        """Refuses the first line whose connection or trigger has the number of another one before."""
        flows, known = self.flows, self.triggers
        faults = []
        own = np.frombuffer(flows.own, dtype=np.int64) if len(flows) else np.zeros(0, dtype=np.int64)
        joined = np.frombuffer(flows.joined, dtype=np.uint8) if len(flows) else np.zeros(0, dtype=np.uint8)
        pair = _repeated(own, joined == 0)
        if pair is not None:
            what = f"id {flows.own[pair[1]]} is that of line {flows.line[pair[0]]}, too"
            faults.append((flows.line[pair[1]], "id", what, "every flow needs an id of its own"))
        numbers = np.array(known.numbers, dtype=np.int64)
        pair = _repeated(numbers, np.ones(len(numbers), dtype=np.bool_))
        if pair is not None:
            what = f"trigger {known.numbers[pair[1]]} is that of line {known.line[pair[0]]}, too"
            faults.append((known.line[pair[1]], "id", what, "remove one of them"))
        for line, name, what, hint in sorted(faults)[:1]:
            words = self.source.words_of(line, "#")
            after = next(at for at, word in enumerate(words) if word.text == name)
            words[after + 1].refuse(what, hint)

    # --- lines

    def _add_plain(self, groups: tuple[str | None, ...], line: int) -> bool:
        """Adds a connection in its usual form; returns false if it needs a closer look."""
        src, dst, own, start, trigger, size, sent, received = groups
        nodes = self.counts["Nodes"][0] if "Nodes" in self.counts else 0
        one, other, amount = int(src or 0), int(dst or 0), int(size or 0)
        at, rest = divmod(int(start or 0) * self.unit_ps, 1000)
        names = (trigger, sent, received)
        ids = [0 if name is None else int(name) for name in names]
        if (
            one >= nodes
            or other >= nodes
            or one == other
            or not 0 < amount <= 10**12
            or rest
            or at >= 10**15
            or len(self.flows) >= MAX_FLOWS
            or any(name is not None and not 0 < number < 2**32 for name, number in zip(names, ids, strict=True))
        ):
            return False
        self.flows.add((one, other, amount, at), -1 if own is None else int(own), line, ids)
        return True

    def _add(self, words: list[Word]) -> None:
        first = words[0]
        if first.text in ("Nodes", "Connections", "Triggers", "Failures"):
            self._count(words)
        elif first.text == "trigger":
            triggers.read_trigger(words, self.triggers)
        elif first.text == "failure":
            first.refuse("failures cannot be imported", "remove it, and describe it under [faults]", "TC-I003")
        elif "->" in first.text:
            given = _attributes(words)
            for name in _LEFT_OUT.keys() & given.keys():
                self.left_out.setdefault(name, given[name])
            self._flow(first, given)
        else:
            first.refuse(f"{first.text!r} is no line of a connection matrix", "write SRC->DST start PS size BYTES")

    def _count(self, words: list[Word]) -> None:
        name, counts = words[0], self.counts
        if len(words) != 2:
            name.refuse(f"{name.text}: one number is expected", f"write {name.text} and how many")
        if name.text in counts:
            name.refuse(f"{name.text} is given twice", "remove one of them")
        most = MAX_HOSTS if name.text == "Nodes" else MAX_FLOWS
        counts[name.text] = (words[1].whole(name.text, most), words[1])
        if counts[name.text][0] and name.text == "Failures":
            name.refuse("failures cannot be imported", "remove them, and describe them under [faults]", "TC-I003")

    def _flow(self, word: Word, given: dict[str, Word]) -> None:
        if "Nodes" not in self.counts:
            word.refuse("no line before says how many nodes there are", "write Nodes N in the first line")
        nodes = self.counts["Nodes"][0]
        ends = []
        for text in word.text.split("->", 1):
            number = Word(word.file, word.line, word.column, text).whole("node")
            if number >= nodes:
                word.refuse(f"there is no node {number}: the matrix counts {nodes}", f"nodes go from 0 to {nodes - 1}")
            ends.append(number)
        if "start" in given and "trigger" in given:
            given["trigger"].refuse("the connection has both a start and a trigger", "remove one of them")
        if "start" not in given and "trigger" not in given:
            word.refuse("the connection has no start", "write start and a time, or trigger and its number")
        if "size" not in given:
            word.refuse("the connection has no size, and lasts for ever", "write size and bytes", "TC-I003")
        start = _start(given["start"], self.unit_ps) if "start" in given else 0
        own = given["id"].whole("id") if "id" in given else -1
        flow = ImportedFlow(ends[0], ends[1], given["size"].whole("size"), start)
        checked_flow(flow, word, len(self.flows) + 1)
        numbers = [triggers.trigger_id(given[name]) if name in given else 0 for name in _TRIGGERS]
        columns = (flow.src, flow.dst, flow.size, start)
        self.flows.add(columns, own, word.line, numbers, joined="msg" in given)


def _attributes(words: list[Word]) -> dict[str, Word]:
    """Returns the names and values that follow a connection; a mark without a value is its own value."""
    found: dict[str, Word] = {}
    rest = words[:0:-1]
    while rest:
        name = rest.pop()
        if name.text not in ("start", "size", "id", *_TRIGGERS, *_LEFT_OUT):
            hint = f"use start, size, id, {', '.join(_TRIGGERS)}, prio, msg and addon"
            name.refuse(f"{name.text!r} is no attribute of a connection", hint)
        if name.text in found:
            name.refuse(f"{name.text} is given twice", "remove one of them")
        if name.text == "addon" or (name.text == "msg" and not (rest and rest[-1].text.isdecimal())):
            found[name.text] = name
        elif rest:
            found[name.text] = rest.pop()
        else:
            name.refuse(f"{name.text} has no value", "write it behind the name")
    return found


def _start(word: Word, unit_ps: int) -> int:
    """Returns a start in nanoseconds."""
    exact = word.number("start") * unit_ps / 1000
    if exact.denominator != 1 and unit_ps == 1:
        word.refuse(
            f"start: {word.text} is finer than a nanosecond",
            "matrices of uec and swift count microseconds: say so with --start-unit us; else round it",
        )
    return word.nanoseconds(exact)


def _repeated(numbers: Integers, counts: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """Returns the first place whose number stands before, after the last such place; none if there is none.

    Args:
        numbers: the numbers; negative ones are none.
        counts: the places that must have a number of their own.
    """
    order = np.argsort(numbers, kind="stable")
    found = numbers[order]
    same = (found[1:] == found[:-1]) & (found[1:] >= 0)
    same &= counts[order[1:]]
    places = np.flatnonzero(same)
    if not len(places):
        return None
    first = places[int(order[places + 1].argmin())]
    return int(order[first]), int(order[first + 1])
