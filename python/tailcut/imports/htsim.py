"""htsim, and its fork for Ultra Ethernet: connection matrices (``.cm``, ``.tm``) and fat trees (``.topo``).

A matrix counts nodes and connections, and has a line for each: ``0->1 id 1 start 0 size 1000``. Programs disagree on
the unit of ``start``: picoseconds in ndp, eqds, roce and hpcc, microseconds in uec and swift. Connections that wait for
triggers make a matrix a job (see `tailcut.imports.triggers`). A tree counts hosts,
tiers and hosts of a pod, and says of each tier what leads down from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tailcut.imports import triggers
from tailcut.imports.fat_tree import LARGEST, Tier, build
from tailcut.imports.network import Format, Imported, ImportedFlow, ImportOptions, checked_flow, pick
from tailcut.imports.source import MAX_FLOWS, MAX_HOSTS, Source, Word

_MATRICES = (".cm", ".tm")
_TRIGGERS = ("trigger", "send_done_trigger", "recv_done_trigger")
_LEFT_OUT = {
    "addon": "marks of added flows (addon) are left out: they have no effect here",
    "msg": "messages (msg) become flows of their own, numbered anew: connections are not reused",
    "prio": "priorities (prio) are left out: flows here have none",
}
"""Attributes without a meaning here, with the note that says so."""
_KEYS = {
    "downlink_speed_gbps": "speed_bps", "radix_up": "up", "radix_down": "down", "oversubscribed": "oversubscribed",
    "bundle": "bundle", "switch_latency_ns": "switch_ps", "downlink_latency_ns": "delay_ps",
}  # fmt: skip
_SCALES = {"speed_bps": 10**9, "switch_ps": 1000, "delay_ps": 1000}


def _fits(paths: Sequence[Path]) -> bool:
    return all(path.suffix in (*_MATRICES, ".topo") for path in paths)


def _read(paths: Sequence[Path], options: ImportOptions) -> Imported:
    topology = pick(paths, "topology", lambda path: path.suffix == ".topo")
    matrix = pick(paths, "connection matrix", lambda path: path.suffix != ".topo")
    found = Imported()
    if topology is not None:
        _tree(Source(topology), found)
    if matrix is not None:
        _matrix(Source(matrix), found, options)
    return found


def _matrix(source: Source, found: Imported, options: ImportOptions) -> None:
    counts: dict[str, tuple[int, Word]] = {}
    flows = triggers.Flows(source.name)
    known = triggers.Triggers(source.name)
    ids: dict[int, int] = {}
    left_out: dict[str, Word] = {}
    for words in source.lines("#"):
        first = words[0]
        if first.text in ("Nodes", "Connections", "Triggers", "Failures"):
            _count(words, counts)
        elif first.text == "trigger":
            triggers.read_trigger(words, known)
            if not len(known) % 65_536:
                options.progress(f"{source.name}: {len(known):,} triggers read")
        elif first.text == "failure":
            first.refuse("failures cannot be imported", "remove it, and describe it under [faults]", "TC-I003")
        elif "->" in first.text:
            given = _attributes(words)
            for name in _LEFT_OUT.keys() & given.keys():
                left_out.setdefault(name, given[name])
            _flow(first, given, _nodes(counts, first), ids, flows, options.start_unit_ps or 1)
            if not len(flows) % 65_536:
                options.progress(f"{source.name}: {len(flows):,} connections read")
        else:
            first.refuse(f"{first.text!r} is no line of a connection matrix", "write SRC->DST start PS size BYTES")
    for name, there, what in (("Connections", len(flows), "connections"), ("Triggers", len(known), "triggers")):
        count, word = counts.get(name, (there, source.end()))
        if count != there:
            word.refuse(f"{count} {what} are announced, but {there} follow", "correct the number")
    if len(known) and "Triggers" not in counts:
        known.refuse(0, "no line says how many triggers there are", f"write Triggers {len(known)}")
    if not len(flows):
        source.end().refuse("no connection", "write SRC->DST start PS size BYTES for each")
    nodes = counts["Nodes"][0]
    if found.network is not None and nodes > len(found.network.hosts):
        what = f"{nodes} nodes, and the topology has {len(found.network.hosts)} hosts"
        counts["Nodes"][1].refuse(what, "name the topology that belongs to the matrix", "TC-I004")
    numbered = "msg" not in left_out and len(ids) == len(flows)
    waits = any(flows.trigger) or any(flows.send_done) or any(flows.recv_done)
    if len(known) or waits:
        found.job = triggers.job(flows, known, numbered=numbered)
    else:
        found.flows = [
            ImportedFlow(src, dst, size, start, None if own < 0 or "msg" in left_out else own)
            for src, dst, size, start, own in zip(
                flows.src, flows.dst, flows.size, flows.start_ns, flows.own, strict=True
            )
        ]
    for name, word in sorted(left_out.items()):
        found.notes.append(f"{word.file}:{word.line}: {_LEFT_OUT[name]}")
    found.hosts = nodes


def _count(words: list[Word], counts: dict[str, tuple[int, Word]]) -> None:
    name = words[0]
    if len(words) != 2:
        name.refuse(f"{name.text}: one number is expected", f"write {name.text} and how many")
    if name.text in counts:
        name.refuse(f"{name.text} is given twice", "remove one of them")
    most = MAX_HOSTS if name.text == "Nodes" else MAX_FLOWS
    counts[name.text] = (words[1].whole(name.text, most), words[1])
    if counts[name.text][0] and name.text == "Failures":
        name.refuse("failures cannot be imported", "remove them, and describe them under [faults]", "TC-I003")


def _nodes(counts: dict[str, tuple[int, Word]], word: Word) -> int:
    if "Nodes" not in counts:
        word.refuse("no line before says how many nodes there are", "write Nodes N in the first line")
    return counts["Nodes"][0]


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


def _flow(
    word: Word, given: dict[str, Word], nodes: int, ids: dict[int, int], flows: triggers.Flows, unit_ps: int
) -> None:
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
    start = _start(given["start"], unit_ps) if "start" in given else 0
    own = -1
    if "id" in given:
        own = given["id"].whole("id")
        if own in ids and "msg" not in given:
            given["id"].refuse(f"id {own} is that of line {ids[own]}, too", "every flow needs an id of its own")
        ids[own] = word.line
    flow = ImportedFlow(ends[0], ends[1], given["size"].whole("size"), start)
    checked_flow(flow, word, len(flows) + 1)
    flows.src.append(flow.src)
    flows.dst.append(flow.dst)
    flows.size.append(flow.size)
    flows.start_ns.append(start)
    flows.own.append(own)
    flows.line.append(word.line)
    for numbers, name in zip((flows.trigger, flows.send_done, flows.recv_done), _TRIGGERS, strict=True):
        numbers.append(triggers.trigger_id(given[name]) if name in given else 0)


def _start(word: Word, unit_ps: int) -> int:
    """Returns a start in nanoseconds."""
    exact = word.number("start") * unit_ps / 1000
    if exact.denominator != 1 and unit_ps == 1:
        word.refuse(
            f"start: {word.text} is finer than a nanosecond",
            "matrices of uec and swift count microseconds: say so with --start-unit us; else round it",
        )
    return word.nanoseconds(exact)


@dataclass(slots=True)
class _Tree:
    """The content of a ``.topo``, with the place of each value."""

    head: dict[str, tuple[int, Word]] = field(default_factory=dict)
    tiers: dict[int, tuple[Word, dict[str, tuple[int, Word]]]] = field(default_factory=dict)


def _tree(source: Source, found: Imported) -> None:
    tree = _Tree()
    current: dict[str, tuple[int, Word]] | None = None
    queues: Word | None = None
    for words in source.lines("#"):
        name, key = words[0], words[0].text.lower()
        if len(words) != 2:
            name.refuse(f"{name.text}: one value is expected", "write a name and a number in each line")
        if key == "tier":
            number = words[1].whole("tier", 2)
            if number in tree.tiers:
                name.refuse(f"tier {number} is given twice", "remove one of them")
            current = {}
            tree.tiers[number] = (name, current)
        elif key in ("nodes", "tiers", "podsize") and current is None:
            _once(tree.head, key, words, LARGEST)
        elif key in ("queue_up", "queue_down") and current is not None:
            queues = queues or name
        elif key in _KEYS and current is not None:
            attribute = _KEYS[key]
            _once(current, attribute, words, 10**9, _SCALES.get(attribute, 1))
        else:
            known = "nodes, tiers, podsize, and below Tier N: " + ", ".join(_KEYS)
            name.refuse(f"{name.text!r} is no attribute here", f"use {known}")
    for key in ("nodes", "tiers", "podsize"):
        if tree.head.get(key, (0,))[0] == 0:
            source.end().refuse(f"{key.capitalize()} is missing", "say it before the first Tier")
    count, word = tree.head["tiers"]
    if count not in (2, 3):
        word.refuse(f"{count} tiers", "trees of two and three tiers are read", "TC-I003")
    tiers = [_tier(tree, number, count, source) for number in range(count)]
    found.network = build(tree.head["nodes"], tree.head["podsize"], tiers)
    found.network.check(source.end())
    if queues is not None:
        found.notes.append(
            f"{queues.file}:{queues.line}: {queues.text} is left out: say [queue] limit in the experiment"
        )


def _once(values: dict[str, tuple[int, Word]], key: str, words: list[Word], most: int, scale: int = 1) -> None:
    if key in values:
        words[0].refuse(f"{words[0].text} is given twice", "remove one of them")
    values[key] = (words[1].whole(words[0].text, most) * scale, words[1])


def _tier(tree: _Tree, number: int, count: int, source: Source) -> Tier:
    if number not in tree.tiers:
        source.end().refuse(f"Tier {number} is missing", f"a tree of {count} tiers has Tier 0 to Tier {count - 1}")
    word, given = tree.tiers[number]
    for key, name in (("speed_bps", "Downlink_speed_Gbps"), ("down", "Radix_Down"), ("up", "Radix_Up")):
        if given.get(key, (0,))[0] == 0 and not (key == "up" and number == count - 1):
            word.refuse(f"tier {number} has no {name}", "write it with a number above 0")
    values = {key: value for key, (value, _) in given.items()}
    if "delay_ps" not in values:
        word.refuse(f"tier {number} has no Downlink_Latency_ns", "write it")
    if not all(values.get(key, 1) for key in ("oversubscribed", "bundle")):
        word.refuse(f"tier {number}: Oversubscribed and Bundle are at least 1", "leave out what is 1")
    return Tier(word, **values)


FORMAT = Format("htsim", ".cm, .tm and .topo of htsim", _fits, _read)
