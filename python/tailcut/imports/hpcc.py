"""HPCC's simulator: ``topology.txt`` and ``flow.txt``.

The first line of a topology counts nodes, switches and links. The next names the switches by number. Each further line
is a link: two nodes, rate, delay, error rate. The first line of a flow file counts flows. Each further line is one:
source, destination, priority group, port, bytes, start in seconds. What comes after as many as are counted is prose.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from tailcut.imports.amounts import delay_ps, rate_bps
from tailcut.imports.network import Format, Imported, ImportedFlow, ImportOptions, Link, Network, checked_flow, pick
from tailcut.imports.source import MAX_FLOWS, MAX_LINKS, MAX_NODES, ImportRefusedError, Source, Word

_SECOND_PS = Fraction(10**12)


def _fits(paths: Sequence[Path]) -> bool:
    return all(_is_topology(path) or _is_flows(path) for path in paths)


def _is_topology(path: Path) -> bool:
    return path.suffix == ".txt" and not _is_flows(path)


def _is_flows(path: Path) -> bool:
    return path.suffix == ".txt" and "flow" in path.stem.lower()


def _read(paths: Sequence[Path], _options: ImportOptions) -> Imported:
    topology = pick(paths, "topology", lambda path: not _is_flows(path))
    listed = pick(paths, "list of flows", _is_flows)
    if topology is None:
        message = f"{listed}: its numbers count switches, too, and only the topology says which these are"
        raise ImportRefusedError("TC-I004", message, "name both files: tailcut import topology.txt flow.txt")
    found = Imported()
    hosts = _topology(Source(topology), found)
    if listed is not None:
        _flows(Source(listed), hosts, found)
    return found


def _topology(source: Source, found: Imported) -> dict[int, int]:
    """Read the network. Returns the place of each host among the hosts, by its number in the file."""
    lines = source.lines("#")
    counted = next(lines, None)
    if counted is None or len(counted) != 3:
        place = source.end() if counted is None else counted[0]
        place.refuse("three numbers are expected: nodes, switches, links", "this is no topology of HPCC's simulator")
    nodes = counted[0].whole("nodes", MAX_NODES)
    switches = _switches(lines, counted[1].whole("switches", nodes), nodes, source)
    network = Network()
    names = [f"switch{number}" if number in switches else f"host{number}" for number in range(nodes)]
    for number, name in enumerate(names):
        network.add(name, switches.get(number, counted[0]), host=number not in switches)
    for _ in range(counted[2].whole("links", MAX_LINKS)):
        words = _row(lines, 5, "links", "node, node, rate, delay, error rate", counted[2])
        ends = [_node(word, nodes) for word in words[:2]]
        loss = words[4].number("error rate")
        if loss > 1:
            words[4].refuse(f"error rate: {words[4].text} is above 1", "write the share of packets that are lost")
        rate, delay = rate_bps(words[2], "rate"), delay_ps(words[3], "delay", _SECOND_PS)
        network.join(Link((names[ends[0]], names[ends[1]]), rate, delay, loss), words[0])
    network.check(source.end())
    found.network = network
    return {number: place for place, number in enumerate(n for n in range(nodes) if n not in switches)}


def _switches(lines: Iterator[list[Word]], count: int, nodes: int, source: Source) -> dict[int, Word]:
    """The numbers of the switches, with their places; they may go over several lines."""
    found: dict[int, Word] = {}
    while len(found) < count:
        words = next(lines, None)
        if words is None:
            what = f"{len(found)} switches where {count} are counted"
            source.end().refuse(what, "correct the first line")
        for word in words:
            number = _node(word, nodes)
            if number in found:
                word.refuse(f"switch {number} is named twice", "name each once")
            if len(found) == count:
                word.refuse(f"more switches than the {count} that are counted", "correct the first line")
            found[number] = word
    return found


def _flows(source: Source, hosts: dict[int, int], found: Imported) -> None:
    lines = source.lines("#")
    counted = next(lines, None)
    if counted is None or len(counted) != 1:
        place = source.end() if counted is None else counted[0]
        place.refuse("the number of flows is expected", "this is no list of flows of HPCC's simulator")
    flows: list[ImportedFlow] = []
    for _ in range(counted[0].whole("flows", MAX_FLOWS)):
        words = _row(lines, 6, "flows", "source, destination, priority group, port, bytes, start", counted[0])
        src, dst = (_host(word, hosts) for word in words[:2])
        size = words[4].whole("bytes")
        start = words[5].nanoseconds(words[5].number("start") * 10**9)
        flows.append(checked_flow(ImportedFlow(src, dst, size, start), words[0], len(flows) + 1))
    if not flows:
        counted[0].refuse("the first line states no number of flows", "write the number of flows that follow")
    further = next(lines, None)
    if further is not None and len(further) == 6 and all(word.text[:1].isdigit() for word in further):
        found.notes.append(
            f"{source.name}:{further[0].line}: the flows from here on are more than the {len(flows)} that are counted"
            " in the first line; they are left out, as HPCC's simulator leaves them out"
        )
    found.flows = flows


def _row(lines: Iterator[list[Word]], columns: int, what: str, meaning: str, counted: Word) -> list[Word]:
    words = next(lines, None)
    if words is None:
        counted.refuse(f"fewer {what} follow than the {counted.text} that are counted", "correct the number")
    if len(words) != columns:
        words[0].refuse(f"{len(words)} columns where {columns} are expected ({meaning})", "write each of them")
    return words


def _node(word: Word, nodes: int) -> int:
    number = word.whole("node")
    if number >= nodes:
        word.refuse(f"there is no node {number}: the first line counts {nodes}", f"nodes go from 0 to {nodes - 1}")
    return number


def _host(word: Word, hosts: dict[int, int]) -> int:
    number = word.whole("host")
    if number not in hosts:
        word.refuse(f"node {number} is no host of the topology", "flows go between hosts, not switches")
    return hosts[number]


FORMAT = Format("hpcc", "topology.txt and flow.txt of HPCC's simulator", _fits, _read)
