"""Fat trees of two and three tiers from htsim's description of each tier, with its numbering and links."""

from dataclasses import dataclass

from tailcut.imports.network import Link, Network
from tailcut.imports.source import MAX_LINKS, Word

LARGEST = 65_536


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier of switches.

    Attributes:
        word: where it is said.
        speed_bps: the rate of its links downwards.
        down: how many of these each switch has.
        delay_ps: their delay.
        up: how many links each switch has upwards.
        oversubscribed: capacity that comes from below over capacity upwards.
        bundle: how many links join the same two switches downwards.
        switch_ps: how long a packet takes through a switch.
    """

    word: Word
    speed_bps: int
    down: int
    delay_ps: int
    up: int = 0
    oversubscribed: int = 1
    bundle: int = 1
    switch_ps: int = 0


def build(nodes: tuple[int, Word], podsize: tuple[int, Word], tiers: list[Tier]) -> Network:
    """Returns a tree with a number of hosts, in pods of a size.

    A packet passes a switch between two links: half of the switch's time is added to the delay of each, so that every
    path takes as long as in htsim.

    Raises:
        ImportRefusedError: the numbers do not fit together.
    """
    hosts, pod = nodes[0], podsize[0]
    edge, middle = tiers[0], tiers[1]
    if edge.bundle != 1:
        edge.word.refuse("Bundle of tier 0 must be 1: a host has one link", "remove it", "TC-I003")
    pods = _split(hosts, pod, podsize[1], f"{hosts} nodes are no whole number of pods of {pod}")
    if len(tiers) == 2 and pods != 1:
        podsize[1].refuse(f"a tree of two tiers has one pod: Podsize is {hosts}", "correct it")
    edges = _split(pod, edge.down, edge.word, f"a pod of {pod} is no whole number of switches with {edge.down} hosts")
    uplinks = _split(
        hosts * edge.speed_bps,
        middle.speed_bps * edge.oversubscribed,
        edge.word,
        "the links up from tier 0 are no whole number",
    )
    middles = _split(
        uplinks, pods * middle.down, middle.word, f"the {uplinks} links up from tier 0 are no whole number of switches"
    )
    if middles * middle.bundle != edge.up:
        what = f"Radix_Up of tier 0 is {edge.up}, and a pod has {middles} switches with {middle.bundle} links to each"
        edge.word.refuse(what, "correct Radix_Up, Oversubscribed, or Bundle of tier 1")
    cores = 0
    if len(tiers) == 3:
        cores = _cores(uplinks, middles, middle, tiers[2])
    total = hosts + pods * edges * edge.up + (pods * middles * middle.up if cores else 0)
    if total > MAX_LINKS or hosts > LARGEST:
        nodes[1].refuse(f"{hosts:,} hosts and {total:,} links", f"at most {LARGEST:,} and {MAX_LINKS:,}", "TC-I003")
    return _joined((hosts, pods, edges, middles, cores), tiers, nodes[1])


def _cores(uplinks: int, middles: int, middle: Tier, core: Tier) -> int:
    links = _split(
        uplinks * middle.speed_bps, core.speed_bps * middle.oversubscribed, middle.word,
        "the links up from tier 1 are no whole number",
    )  # fmt: skip
    cores = _split(links, core.down, core.word, f"the {links} links up from tier 1 are no whole number of switches")
    groups = _split(cores, middles, core.word, f"{cores} core switches do not divide among {middles} of a pod")
    if groups * core.bundle != middle.up:
        what = (
            f"Radix_Up of tier 1 is {middle.up}, and {groups} core switches with {core.bundle} links each belong to it"
        )
        middle.word.refuse(what, "correct Radix_Up, Oversubscribed, or Bundle of tier 2")
    return cores


def _split(amount: int, parts: int, word: Word, what: str) -> int:
    if parts == 0 or amount % parts or not amount:
        word.refuse(what, "correct the numbers")
    return amount // parts


def _joined(counts: tuple[int, int, int, int, int], tiers: list[Tier], word: Word) -> Network:
    hosts, pods, edges, middles, cores = counts
    network = Network()
    names = {"host": hosts, "tor": pods * edges, "agg": pods * middles, "core": cores}
    for kind, count in names.items():
        for number in range(count):
            network.add(f"{kind}{number}", word, host=kind == "host")
    passing = [tier.switch_ps for tier in tiers]
    edge, middle = tiers[0], tiers[1]
    for host in range(hosts):
        ends = (f"host{host}", f"tor{host // edge.down}")
        network.join(Link(ends, edge.speed_bps, edge.delay_ps + passing[0] // 2), edge.word)
    for tor in range(pods * edges):
        first = tor // edges * middles
        for agg in range(first, first + middles):
            link = Link((f"tor{tor}", f"agg{agg}"), middle.speed_bps, middle.delay_ps + sum(passing[:2]) // 2)
            for _ in range(middle.bundle):
                network.join(link, middle.word)
    if cores:
        core = tiers[2]
        for agg in range(pods * middles):
            for group in range(middle.up // core.bundle):
                ends = (f"agg{agg}", f"core{agg % middles + middles * group}")
                for _ in range(core.bundle):
                    network.join(Link(ends, core.speed_bps, core.delay_ps + sum(passing[1:]) // 2), core.word)
    return network
