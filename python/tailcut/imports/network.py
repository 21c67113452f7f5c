"""Imported networks and flows, of whatever format."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from tailcut.imports.job import Job
from tailcut.imports.source import MAX_FLOWS, MAX_HOSTS, MAX_LINKS, MAX_NODES, ImportRefusedError, Word


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex link: its ends by name, bits per second, picoseconds, and the share of packets that it loses."""

    ends: tuple[str, str]
    rate_bps: int
    delay_ps: int
    loss: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class ImportedFlow:
    """A flow between hosts, which are counted from 0 in the order of the network."""

    src: int
    dst: int
    size: int
    start_ns: int
    id: int | None = None


@dataclass(slots=True)
class Network:
    """The hosts, switches and links found so far."""

    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    _linked: set[str] = field(default_factory=set)
    _joined: set[frozenset[str]] = field(default_factory=set)
    _kinds: dict[str, bool] = field(default_factory=dict)

    def add(self, name: str, word: Word, *, host: bool) -> None:
        """Add a node.

        Raises:
            ImportRefusedError: there is one of that name, or there are too many.
        """
        if name in self._kinds:
            word.refuse(f"there are two nodes called {name!r}", "give each a name of its own")
        self._kinds[name] = host
        (self.hosts if host else self.switches).append(name)
        if len(self.hosts) > MAX_HOSTS:
            word.refuse(f"more than {MAX_HOSTS:,} hosts", "import a part of the network", "TC-I003")
        if len(self._kinds) > MAX_NODES:
            word.refuse(f"more than {MAX_NODES:,} nodes", "import a part of the network", "TC-I003")

    def join(self, link: Link, word: Word) -> None:
        """Adds a link between two existing nodes.

        Raises:
            ImportRefusedError: no network here has such a link.
        """
        one, other = link.ends
        if one == other:
            word.refuse(f"a link from {one} to itself", "a link joins two nodes")
        if self._kinds[one] and self._kinds[other]:
            word.refuse(f"{one} and {other} are both hosts", "put a switch between them", "TC-I003")
        for end in link.ends:
            if self._kinds[end] and end in self._linked:
                what = f"{end} has a second link, and a host has one here"
                word.refuse(what, "split it into hosts of their own, or put a switch before it", "TC-I003")
            self._linked.add(end)
        if not 0 < link.rate_bps <= 100 * 10**12:
            word.refuse(f"a rate of {link.rate_bps} bps", "write one above 0 and up to 100 Tbps")
        if link.delay_ps > 10 * 10**12:
            word.refuse(f"a delay of {link.delay_ps / 1e12} s", "write one of at most 10 s")
        parallel = frozenset(link.ends) in self._joined
        self._joined.add(frozenset(link.ends))
        if link.loss and parallel:
            what = f"a second link between {one} and {other} that loses packets"
            word.refuse(what, "only the first of parallel links can: take the error rate out", "TC-I003")
        self.links.append(link)
        if len(self.links) > MAX_LINKS:
            word.refuse(f"more than {MAX_LINKS:,} links", "import a part of the network", "TC-I003")

    def check(self, word: Word) -> None:
        """Refuse a network that does not hang together, or has too few hosts."""
        if len(self.hosts) < 2:
            word.refuse(
                f"{len(self.hosts)} hosts: at least two are needed", "a host is a node with one link", "TC-I003"
            )
        group = {name: name for name in self._kinds}

        def root(name: str) -> str:
            while group[name] != name:
                group[name] = name = group[group[name]]
            return name

        for link in self.links:
            group[root(link.ends[0])] = root(link.ends[1])
        first = root(self.hosts[0])
        for name in self._kinds:
            if root(name) != first:
                word.refuse(f"no links lead from {self.hosts[0]} to {name}", "connect them, or remove it", "TC-I003")


@dataclass(slots=True)
class Imported:
    """An experiment's parts.

    Attributes:
        network: none where the files have none.
        hosts: how many hosts there are where there is no network.
        flows: none where the files have none.
        job: messages that wait for others; none where the files have none.
        notes: what is told besides: what was left out, and why.
    """

    network: Network | None = None
    hosts: int = 0
    flows: Sequence[ImportedFlow] | None = None
    job: Job | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options besides the files.

    Attributes:
        rate_bps: the rate of links that state none.
        delay_ps: their delay.
        start_unit_ps: the unit of start times without a unit, in picoseconds.
        nics: interfaces of a rank, each of which becomes a host; none leaves interfaces out.
        eager: whether a send is over as it starts, for the operations of its rank that wait for it.
        progress: is told what goes on, in a line.
    """

    rate_bps: int | None = None
    delay_ps: int | None = None
    start_unit_ps: int | None = None
    nics: int | None = None
    eager: bool = False
    progress: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is imported: one file of this folder, and one line in the list of ``__init__``.

    Attributes:
        name: as ``--format`` takes it.
        about: whose files these are, for the help.
        fits: whether files are of this format, by their names.
        read: reads them.
    """

    name: str
    about: str
    fits: Callable[[Sequence[Path]], bool]
    read: Callable[[Sequence[Path], ImportOptions], Imported]


def checked_flow(flow: ImportedFlow, word: Word, count: int) -> ImportedFlow:
    """A flow that the simulator takes.

    Args:
        flow: what was read.
        word: where.
        count: how many flows there are with it.

    Raises:
        ImportRefusedError: its ends are equal, it has no bytes, or there are too many.
    """
    if flow.src == flow.dst:
        word.refuse("a flow from a host to itself", "a flow needs two different hosts")
    if flow.size == 0:
        word.refuse("a flow of 0 bytes", "state how many bytes it carries")
    if flow.size > 3 * 10**12:
        word.refuse(f"a flow of {flow.size} bytes", "a flow carries at most 3,000 GB here", "TC-I003")
    if count > MAX_FLOWS:
        word.refuse(f"more than {MAX_FLOWS:,} flows", "import a part of them", "TC-I003")
    if flow.start_ns >= 2**63:
        word.refuse(f"a start at {flow.start_ns:,} ns", "start all flows earlier: times have 63 bits here", "TC-I003")
    return flow


def pick(paths: Iterable[Path], what: str, fits: Callable[[Path], bool]) -> Path | None:
    """The one file of a kind.

    Raises:
        ImportRefusedError: there are two.
    """
    found = [path for path in paths if fits(path)]
    if len(found) > 1:
        message = f"{found[0]} and {found[1]} are both a {what}"
        raise ImportRefusedError("TC-I004", message, "name one of each kind")
    return found[0] if found else None
