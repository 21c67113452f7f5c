"""The architecture page says which source files know of each resident of the simulator; so does the source."""

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
# Another backend says by itself what it can carry out: the kernel lab is not looked at.
SOURCES = sorted(path for path in ROOT.glob("crates/*/src/**/*.rs") if "tailcut-lab" not in path.parts)
PAGE = ROOT / "docs/concepts/architecture.md"


class Resident(NamedTuple):
    """What is told apart: where it lives, the list that it is in, and the words of code that mean it."""

    own: str
    registry: str
    words: str

    def named_in(self, text: str) -> bool:
        """Whether code names it."""
        # A name written in lower case is one of modules and of kinds, in whatever case.
        flags = 0 if re.search("[A-Z]", self.words.replace(r"\w", "")) else re.IGNORECASE
        return bool(re.search(rf"(?<![a-zA-Z0-9_])(?:{self.words})(?![a-zA-Z0-9_])", text, flags))


REPLICATE, BALANCE, QUEUE, TRANSPORT = "replicate/mod.rs", "balance/mod.rs", "queue/mod.rs", "transport/mod.rs"
CONGESTION, REORDERING = "transport/tcp/congestion/mod.rs", "transport/tcp/sender/reordering/mod.rs"

RESIDENTS = {
    "RepFlow": Resident("replicate/repflow.rs", REPLICATE, "rep_?flow"),
    "RepSYN": Resident("replicate/repsyn.rs", REPLICATE, "rep_?syn"),
    "split": Resident("replicate/split.rs", REPLICATE, r"split::\w+|ReplicateSpec::Split"),
    "hedge": Resident("replicate/hedge.rs", REPLICATE, r"hedg\w+"),
    "ECMP": Resident("balance/ecmp.rs", BALANCE, r"ecmp\w*"),
    "spray": Resident("balance/spray.rs", BALANCE, "spray"),
    "round robin": Resident("balance/round_robin.rs", BALANCE, "round_?robin"),
    "flowlet": Resident("balance/flowlet.rs", BALANCE, r"flowlet::\w+|BalanceSpec::Flowlet"),
    "DRILL": Resident("balance/drill/", BALANCE, "drill"),
    "CONGA": Resident("balance/conga/", BALANCE, "conga"),
    "TinyFlow": Resident("balance/tinyflow/", BALANCE, r"tiny_?flows?|elephants?|\w+_elephants"),
    "by tier": Resident("balance/by_tier.rs", BALANCE, "by_?tier"),
    "RED": Resident("queue/red.rs", QUEUE, r"red::\w+|RedState|QueueSpec::Red"),
    "ECN marking": Resident("queue/ecn.rs", QUEUE, r"ecn::\w+|QueueSpec::Ecn|Discipline::Ecn"),
    "Selective RED": Resident("queue/selective_red.rs", QUEUE, "selective_?(red|state)"),
    "DRR": Resident("queue/drr.rs", QUEUE, "drr"),
    "PFC": Resident("switch/pfc.rs", "switch/mod.rs", r"[Pp]fc\w*|Pauses|\w+_pauses?|\w+_pausable"),
    "trimming": Resident("queue/trimming.rs", QUEUE, r"Trimming|Trimmed|trimming::\w+"),
    "pFabric's queue": Resident("queue/pfabric.rs", QUEUE, r"PriorityQueue|PfabricQueue|QueueSpec::Pfabric"),
    "pFabric's transport": Resident("transport/pfabric/", TRANSPORT, r"Pfabric(?!Queue)\w+|(?<!Queue)Spec::Pfabric"),
    "NDP": Resident("transport/ndp/", TRANSPORT, r"Ndp\w*|ndp::\w+"),
    "MPTCP": Resident("transport/mptcp/", TRANSPORT, r"mptcp\w*"),
    "MMPTCP": Resident("transport/mmptcp/", TRANSPORT, r"mmptcp\w*"),
    "CUBIC": Resident("transport/tcp/congestion/cubic.rs", CONGESTION, "cubic"),
    "DCTCP": Resident("transport/tcp/congestion/dctcp.rs", CONGESTION, "dctcp(?!.?web)"),
    "Swift": Resident("transport/tcp/congestion/swift.rs", CONGESTION, r"swift\w*"),
    "BBR": Resident("transport/tcp/congestion/bbr/", CONGESTION, r"bbr\w*"),
    "RACK-TLP": Resident("transport/tcp/sender/reordering/rack/", REORDERING, r"Rack(Spec)?|rack::\w+|(\w+_)?rack_\w+"),
    "RFC 4653 (NCR)": Resident("transport/tcp/sender/reordering/ncr.rs", REORDERING, r"ncr|\w+_ncr"),
    "RR-TCP": Resident("transport/tcp/sender/reordering/rr_tcp.rs", REORDERING, "rr_?tcp"),
    "adaptive": Resident("transport/tcp/sender/reordering/adaptive.rs", REORDERING, r"adaptive\w*"),
    "hosts as Linux's": Resident("transport/tcp/hosts.rs", "transport/tcp/hosts.rs", "Hosts::Linux"),
}


def code(path: Path) -> str:
    """A source file without its tests, comments and texts."""
    text = path.read_text("utf-8").split("#[cfg(test)]\nmod tests {")[0]
    # A text may go over several lines, and hold quotation marks.
    return re.sub(r'//[^\n]*|"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)


CODE = {path.relative_to(ROOT / "crates").as_posix(): code(path) for path in SOURCES if path.name != "tests.rs"}


def who_knows(resident: Resident) -> list[str]:
    """The source files that name a resident, besides its own and its list."""
    own = (f"tailcut-net/src/{resident.own}", f"tailcut-net/src/{resident.registry}")
    return [name for name, text in CODE.items() if not name.startswith(own) and resident.named_in(text)]


# What is done where nothing is written is named in the list a second time.
DEFAULTS = {"ECMP", "spray", "CUBIC", "RACK-TLP"}
# Not policies of a list: a field of the switches' parameters, and a set of defaults.
NO_LIST = {"PFC", "hosts as Linux's"}
# Transports whose ends are not TCP's have a line in two lists.
OWN_ENDS = {"pFabric's transport", "NDP"}


@pytest.mark.parametrize("name", [name for name in RESIDENTS if name not in NO_LIST])
def test_a_resident_has_one_line_in_its_list(name: str) -> None:
    """Besides the module: no list has an arm for it in its matches."""
    resident = RESIDENTS[name]
    lines = [line.strip() for line in CODE[f"tailcut-net/src/{resident.registry}"].splitlines()]
    named = [line for line in lines if resident.named_in(line) and not line.startswith("pub mod ")]
    entries = [line for line in named if re.fullmatch(r"\w+\([$\w:]+\),", line)]
    assert len(entries) == 1 + (name in OWN_ENDS), named
    assert len(named) - len(entries) == (name in DEFAULTS), named


def table() -> dict[str, list[str]]:
    """The rows of the page: resident and files, short of what most paths begin with."""
    known = {name: who_knows(resident) for name, resident in RESIDENTS.items()}
    return {name: [file.removeprefix("tailcut-net/src/") for file in files] for name, files in known.items()}


def test_every_resident_lives_where_it_is_said_to() -> None:
    """No row is empty because a file has moved."""
    for resident in RESIDENTS.values():
        assert (ROOT / "crates/tailcut-net/src" / resident.own).exists(), resident
        assert (ROOT / "crates/tailcut-net/src" / resident.registry).exists(), resident


def test_the_page_names_the_files_that_know_of_each_resident() -> None:
    """The table is what the source says."""
    section = PAGE.read_text("utf-8").split("## Who knows of whom")[1].split("\nA room can be there")[0]
    rows = re.findall(r"^\| ([^|]+) \| (none|`[^|]+`) \|", section, re.MULTILINE)
    told = {name: [] if files == "none" else re.findall("`([^`]+)`", files) for name, files in rows}
    assert told == table()


def test_rooms_for_one_resident_are_where_the_page_says() -> None:
    """Every file, flag and method that the page names."""
    section = PAGE.read_text("utf-8").split("| room | who alone uses it so far |")[1].split("\n\n")[0]
    rooms = re.findall("`([^`]+)`", section)
    assert rooms
    for room in rooms:
        if "::" in room:
            name = room.split("::")[1]
            assert any(re.search(rf"\b(?:const|fn) {name}\b", text) for text in CODE.values()), room
        else:
            assert (ROOT / "crates/tailcut-net/src" / room).exists(), room


def blocks(text: str, head: str) -> Iterator[tuple[str, str]]:
    """What begins so and has a body in braces: its name, and the body."""
    for found in re.finditer(head + r"[^{;]*\{", text):
        depth, end = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield found[1], text[found.end() : end - 1]


def answers() -> Iterator[tuple[str, str]]:
    """Methods with a default and whoever writes one of their own: the method with its trait, and a resident or file."""
    defaults = [
        (trait, method)
        for name, text in CODE.items()
        if name.startswith("tailcut-net/src/")
        for trait, body in blocks(text, r"\btrait (\w+)")
        for method, _ in blocks(body, r"\bfn (\w+)")
    ]
    for name, text in CODE.items():
        who = next((it for it, one in RESIDENTS.items() if name.startswith(f"tailcut-net/src/{one.own}")), name)
        for trait, body in blocks(text, r"\bimpl\b[^{;]*?\b(\w+)(?:<[^{;]*>)? for "):
            for owner, method in defaults:
                if owner == trait and re.search(rf"\bfn {method}\b", body):
                    yield f"{trait}::{method}", who


def test_the_page_names_what_one_resident_alone_answers() -> None:
    """Methods with a default that are there for one: part of the house, but nobody else's yet."""
    who: dict[str, set[str]] = {}
    for method, resident in answers():
        who.setdefault(method, set()).add(resident)
    assert who["Control::on_loss"] > {"CUBIC", "BBR"}  # those of several are seen, too
    alone: dict[str, list[str]] = {}
    for method, one in sorted(who.items()):
        if len(one) == 1 and (resident := min(one)) in RESIDENTS:
            alone.setdefault(resident, []).append(method)
    section = PAGE.read_text("utf-8").split("| resident | what it alone answers |")[1].split("\n\n")[0]
    told = {name: re.findall("`([^`]+)`", methods) for name, methods in re.findall(r"\| ([^|]+) \| (`.*) \|", section)}
    assert told == alone


def knows() -> dict[str, set[str]]:
    """Which of the folders and files of the simulator's folder each one of them uses."""
    known: dict[str, set[str]] = {}
    for name, text in CODE.items():
        if name.startswith("tailcut-net/src/") and not name.endswith("/lib.rs"):
            own = Path(name).relative_to("tailcut-net/src").parts[0].removesuffix(".rs")
            used = re.findall(r"\bcrate::(\w+)", re.sub(r"#\[cfg\(test\)\]\s*use [^;]+;", "", text))
            known.setdefault(own, set()).update(set(used) - {own})
    return known


def test_nothing_knows_what_knows_it() -> None:
    """Folders have an order, from what knows least to what knows most."""
    known = knows()
    assert {"fabric", "measure", "network", "transport"} <= known["network"] | {"network"}
    # Raises an error that names the circle.
    order = list(TopologicalSorter(known).static_order())
    assert order.index("transport") < order.index("measure") < order.index("network")


def test_the_page_names_whatever_lies_in_the_simulators_folder() -> None:
    """Nobody needs to be told where something goes."""
    section = PAGE.read_text("utf-8").split("## The simulated network")[1].split("\n## ")[0]
    for path in sorted((ROOT / "crates/tailcut-net/src").iterdir()):
        if path.stem != "lib":
            assert re.search(rf"`{path.stem}/?`", section), path.name


def test_the_page_names_whatever_lies_in_the_loops_folder() -> None:
    """Each with half a sentence; and it names nothing that is gone."""
    section = PAGE.read_text("utf-8").split("## The simulated network")[1].split("\n## ")[0]
    row = next(line for line in section.splitlines() if line.startswith("| `network/` |"))
    folder = ROOT / "crates/tailcut-net/src/network"
    assert set(re.findall(r"`(\w+)`", row)) == {path.stem for path in folder.iterdir()} - {"tests"}


class Realised(NamedTuple):
    """What the kernel lab makes of a scheme: its file, the list that it is in, and the words of code that mean it."""

    own: str
    registry: str
    words: str


LAB = ROOT / "crates/tailcut-lab/src"
REALISED = {
    "reno": Realised("congestion/reno.rs", "congestion/mod.rs", "reno"),
    "CUBIC": Realised("congestion/cubic.rs", "congestion/mod.rs", "cubic"),
    "BBR": Realised("congestion/bbr.rs", "congestion/mod.rs", "bbr"),
    "DCTCP": Realised("congestion/dctcp.rs", "congestion/mod.rs", "dctcp"),
    "MPTCP": Realised("transports/mptcp.rs", "transports/mod.rs", r"\w*mptcp\w*"),
    "RepFlow": Realised("replication/repflow.rs", "replication/mod.rs", "rep_?flow"),
    "RepSYN": Realised("replication/repsyn.rs", "replication/mod.rs", "rep_?syn"),
    "ECMP": Realised("fabrics/kernel/balance/ecmp.rs", "fabrics/kernel/balance/mod.rs", "ecmp"),
    "spray": Realised("fabrics/kernel/balance/spray.rs", "fabrics/kernel/balance/mod.rs", "spray"),
    "round robin": Realised("fabrics/kernel/balance/round_robin.rs", "fabrics/kernel/balance/mod.rs", "round_?robin"),
    "flowlet": Realised("fabrics/kernel/balance/flowlet.rs", "fabrics/kernel/balance/mod.rs", "flowlet"),
    "TinyFlow": Realised("fabrics/kernel/balance/tinyflow.rs", "fabrics/kernel/balance/mod.rs", "tiny_?flow"),
}
LAB_CODE = {path.relative_to(LAB).as_posix(): code(path) for path in sorted(LAB.rglob("*.rs"))}


@pytest.mark.parametrize("name", REALISED)
def test_a_scheme_is_one_file_of_the_lab_and_one_line_in_its_list(name: str) -> None:
    """Nothing else there names it."""
    own, registry, words = REALISED[name]

    def lines(file: str) -> list[str]:
        named = re.compile(rf"(?<![a-zA-Z0-9_])(?:{words})(?![a-zA-Z0-9_])", re.IGNORECASE)
        return [line.strip() for line in LAB_CODE[file].splitlines() if named.search(line)]

    assert lines(own)
    assert {file for file in LAB_CODE if lines(file)} == {own, registry}
    entries = [line for line in lines(registry) if not re.match(r"(pub\S* )?mod ", line)]
    assert len(entries) == 1, entries


def test_every_file_of_the_labs_lists_is_a_scheme() -> None:
    """A new one is held to the same; TCP is what the others are made of."""
    folders = {Path(one.registry).parent for one in REALISED.values()}
    files = {f"{folder}/{path.name}" for folder in folders for path in (LAB / folder).glob("*.rs")}
    told = {one.own for one in REALISED.values()} | {f"{folder}/mod.rs" for folder in folders}
    assert files - told == {"transports/tcp.rs"}
