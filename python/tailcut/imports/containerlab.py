"""containerlab's topologies (``*.clab.yml``): nodes and links, with the rate and delay that a link is given.

YAML is composed into nodes with their places, and nothing is constructed from it: tags make no objects.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import yaml  # type: ignore[import-untyped]

from tailcut.imports.amounts import delay_ps, rate_bps
from tailcut.imports.network import Format, Imported, ImportOptions, Link, Network
from tailcut.imports.source import MAX_LINKS, ImportRefusedError, Source, Word

MAX_YAML_BYTES = 10_000_000
_NESTED = ("impairments", "netem", "vars", "labels")
"""Tables of a link in which its rate and delay may stand, besides the link itself."""
_RATES, _DELAYS = ("rate", "bandwidth"), ("delay", "latency")
_NOT_SIMULATED = ("jitter", "loss", "packet-loss", "corruption")
_NOT_NODES = ("host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy")
_KIND = "tailcut-kind"


def _fits(paths: Sequence[Path]) -> bool:
    return all(path.suffix in (".yml", ".yaml") for path in paths)


def _read(paths: Sequence[Path], options: ImportOptions) -> Imported:
    if len(paths) != 1:
        raise ImportRefusedError("TC-I004", f"{len(paths)} files", "name one topology of containerlab")
    source = Source(paths[0], MAX_YAML_BYTES)
    topology = _Yaml(source, _root(source)).only("topology")
    nodes = topology.only("nodes").table()
    links = [_Cable(one, nodes) for one in topology.only("links").elements()]
    network = Network()
    found = Imported(network)
    degree: dict[str, int] = {}
    for cable in links:
        for name in cable.ends:
            degree[name] = degree.get(name, 0) + 1
    usual = topology.get("defaults")
    for name, (key, node) in nodes.items():
        _add(found, network, name, key, node, degree.get(name, 0), usual)
    for cable in links:
        network.join(Link((cable.ends[0], cable.ends[1]), cable.rate(options), cable.delay(options)), cable.link.word)
    network.check(topology.word)
    return found


def _root(source: Source) -> Any:
    try:
        root = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        Word(source.name, line, column, "").refuse(
            f"not valid YAML: {error.problem}", "check this place and the text just before it"
        )
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).partition("\n")[0] or type(error).__name__
        Word(source.name, 1, 1, "").refuse(
            f"not valid YAML: {first}", "check for characters that YAML does not allow, and for deep nesting"
        )
    if root is None:
        source.end().refuse("the file is empty", "name a topology of containerlab")
    return root


class _Yaml:
    """A node of a YAML file, with accessors that refuse another kind."""

    def __init__(self, source: Source, node: Any) -> None:
        self.source = source
        self.node = node

    @property
    def word(self) -> Word:
        """The node as a word: its text, if it is one, and its place."""
        mark = self.node.start_mark
        text = self.node.value if isinstance(self.node, yaml.ScalarNode) else ""
        return Word(self.source.name, mark.line + 1, mark.column + 1, text)

    def refuse(self, what: str, hint: str) -> NoReturn:
        self.word.refuse(what, hint)

    def table(self) -> "dict[str, tuple[_Yaml, _Yaml]]":
        """Keys with their places, and values; an empty value is an empty table."""
        if self.empty():
            return {}
        if not isinstance(self.node, yaml.MappingNode):
            self.refuse("a table of keys is expected here", "write key: value lines")
        found: dict[str, tuple[_Yaml, _Yaml]] = {}
        for key, value in self.node.value:
            name = _Yaml(self.source, key)
            if name.word.text in found:
                name.refuse(f"{name.word.text!r} is given twice", "remove one of them")
            found[name.word.text] = (name, _Yaml(self.source, value))
        return found

    def empty(self) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    def get(self, key: str) -> "_Yaml | None":
        found = self.table().get(key)
        return None if found is None else found[1]

    def only(self, key: str) -> "_Yaml":
        found = self.get(key)
        if found is None:
            self.refuse(f"{key} is missing", "a topology of containerlab has topology, and in it nodes and links")
        return found

    def elements(self) -> "Iterator[_Yaml]":
        if not isinstance(self.node, yaml.SequenceNode):
            self.refuse("a list is expected here", "write a line with - for each element")
        if len(self.node.value) > MAX_LINKS:
            self.refuse(f"more than {MAX_LINKS:,} elements", "import a part of them")
        for one in self.node.value:
            yield _Yaml(self.source, one)

    def text(self) -> Word:
        if not isinstance(self.node, yaml.ScalarNode) or self.empty():
            self.refuse("a text is expected here", "write one")
        return self.word


def _add(
    found: Imported, network: Network, name: str, key: _Yaml, node: _Yaml, links: int, usual: _Yaml | None
) -> None:
    """Adds a node: a host if it says so, or is a Linux container with one link; else a switch."""
    given = node.get("kind") or (usual.get("kind") if usual is not None else None)
    kind = "linux" if given is None else given.text().text
    labels = node.get("labels")
    said = labels.get(_KIND) if labels is not None else None
    if said is not None and said.text().text not in ("host", "switch"):
        said.refuse(f"{_KIND}: {said.word.text!r} is neither host nor switch", "write one of them")
    if links == 0:
        key.refuse(f"{name} has no link", "connect it, or remove it")
    host = said.word.text == "host" if said is not None else kind == "linux" and links == 1
    if not host and said is None and kind == "linux":
        place = f"{key.word.file}:{key.word.line}"
        found.notes.append(f"{place}: {name} has {links} links and is imported as a switch")
    network.add(name, key.word, host=host)


class _Cable:
    """A link between two nodes."""

    def __init__(self, link: _Yaml, nodes: dict[str, tuple[_Yaml, _Yaml]]) -> None:
        self.link = link
        self._given = link.table()
        kind = link.get("type")
        if kind is not None and kind.text().text != "veth":
            kind.word.refuse(
                f"links of type {kind.word.text} cannot be imported", "links between two nodes can (veth)", "TC-I003"
            )
        ends = list(link.only("endpoints").elements())
        if len(ends) != 2:
            link.refuse(f"{len(ends)} endpoints: a link has two", "name two endpoints")
        self.ends = [self._end(end, nodes) for end in ends]

    def rate(self, options: ImportOptions) -> int:
        """Return the rate in bits per second; a number without unit counts kbit/s, as containerlab has it."""
        word = self._value(_RATES)
        if word is not None:
            return rate_bps(word, "rate", 1000)
        if options.rate_bps is None:
            self.link.refuse(
                "the link states no rate", "write rate: 10Gbit below it, or give --rate for all such links"
            )
        return options.rate_bps

    def delay(self, options: ImportOptions) -> int:
        """Return the delay in picoseconds."""
        word = self._value(_DELAYS)
        if word is not None:
            return delay_ps(word, "delay", Fraction(0) if word.text == "0" else None)
        if options.delay_ps is None:
            self.link.refuse(
                "the link states no delay", "write delay: 5us below it, or give --delay for all such links"
            )
        return options.delay_ps

    def _end(self, end: _Yaml, nodes: dict[str, tuple[_Yaml, _Yaml]]) -> str:
        if isinstance(end.node, yaml.MappingNode):
            name = end.only("node").text().text
        else:
            name = end.text().text.partition(":")[0]
        if name in nodes:
            return name
        if name not in _NOT_NODES:
            end.refuse(f"there is no node {name!r}", "name a node of topology.nodes")
        what = f"{name} is the machine's side of a link, and no node of the topology"
        return end.word.refuse(what, "take the link out, or put a node in its place", "TC-I003")

    def _value(self, names: Sequence[str]) -> Word | None:
        """Return the value that the link has by one of these names; refuse it where places differ."""
        tables = [self._given]
        for name in _NESTED:
            if name in self._given and isinstance(self._given[name][1].node, yaml.MappingNode):
                tables += [self._given[name][1].table()]
        said: Word | None = None
        for table in tables:
            for key, (_, value) in table.items():
                if key in _NOT_SIMULATED and value.text().text.rstrip("%s ") not in ("0", "0.0", "0m", "0u", "0n"):
                    value.word.refuse(f"{key} is not simulated on a link", "remove it", "TC-I003")
                if key in names:
                    word = value.text()
                    if said is not None and said.text != word.text:
                        word.refuse(f"{key} is {word.text} here and {said.text} in line {said.line}", "give one value")
                    said = word
        return said


FORMAT = Format("containerlab", "*.clab.yml of containerlab", _fits, _read)
