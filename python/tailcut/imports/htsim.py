"""htsim, and its fork for Ultra Ethernet: connection matrices (``.cm``, ``.tm``) and fat trees (``.topo``).

Matrices are read by `tailcut.imports.matrices`. A tree counts hosts, tiers and hosts of a pod, and says of each tier
what leads down from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tailcut.imports import matrices
from tailcut.imports.fat_tree import LARGEST, Tier, build
from tailcut.imports.network import Format, Imported, ImportOptions, pick
from tailcut.imports.source import LineSource, Source, Word

_MATRICES = (".cm", ".tm")
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
        matrices.read(LineSource(matrix), found, options)
    return found


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
