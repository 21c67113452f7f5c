"""Folders of the simulator are ordered, from what knows least to what knows most; the architecture page names each."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "crates/tailcut-net/src"
PAGE = ROOT / "docs/concepts/architecture.md"


def code(path: Path) -> str:
    """Returns a source file without its tests, comments and texts."""
    text = path.read_text("utf-8").split("#[cfg(test)]\nmod tests {")[0]
    # A text may go over several lines, and hold quotation marks.
    text = re.sub(r'//[^\n]*|"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)
    return re.sub(r"#\[cfg\(test\)\]\s*use [^;]+;", "", text)


def used_folders() -> dict[str, set[str]]:
    """Returns the other folders and files of the simulator that each folder and file uses."""
    known: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.rs")):
        place = path.relative_to(SOURCE)
        if path.name != "tests.rs" and place != Path("lib.rs"):
            own = place.parts[0].removesuffix(".rs")
            known.setdefault(own, set()).update(set(re.findall(r"\bcrate::(\w+)", code(path))) - {own})
    return known


def section() -> str:
    """Returns what the architecture page says of the simulated network."""
    return PAGE.read_text("utf-8").split("## The simulated network")[1].split("\n## ")[0]


def test_simulator_folders_have_no_cyclic_dependencies() -> None:
    known = used_folders()
    assert {"fabric", "measure", "transport"} <= known["network"]
    # Raises an error that names the circle.
    order = list(TopologicalSorter(known).static_order())
    assert order.index("transport") < order.index("measure") < order.index("network")


def test_the_page_names_every_folder_and_file_of_the_simulator() -> None:
    names = {path.stem for path in SOURCE.iterdir()} - {"lib"}
    assert {name for name in names if not re.search(rf"`{name}/?`", section())} == set()


def test_the_page_names_exactly_the_files_of_the_loop() -> None:
    row = next(line for line in section().splitlines() if line.startswith("| `network/` |"))
    assert set(re.findall(r"`(\w+)`", row)) == {path.stem for path in (SOURCE / "network").iterdir()} - {"tests"}
