"""Files of a crate that import each other in a circle can only be understood together: circles stay small."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))
#: The most files of a circle.
MOST = 4


def code(text: str) -> str:
    """Returns a source without its tests, comments and texts."""
    text = text.split("#[cfg(test)]\nmod tests {", maxsplit=1)[0]
    return re.sub(r'//[^\n]*|"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL)


def expanded(tree: str) -> list[str]:
    """Returns every path of a tree of imports: `a::{b, c::{d}}` is `a::b` and `a::c::d`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [tree]
    inner, depth, part, paths = rest.rpartition("}")[0], 0, "", []
    for letter in inner + ",":
        if letter == "," and depth == 0:
            paths += [head + path for path in expanded(part) if part]
            part = ""
        else:
            depth += (letter == "{") - (letter == "}")
            part += letter
    return paths


def imports(text: str, module: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Returns what a file imports from its crate, as paths from the crate's root."""
    text = re.sub(r"\s+", "", re.sub(r"\buse\s+", "use ", code(text)).replace("use ", "\0"))
    trees = re.findall(r"\0((?:crate|super)::[^;]*);", text)
    named = re.findall(r"(?<!\0)(?<![\w:])(?:crate|super)(?:::\w+)+", text)
    found = set()
    for path in [path for tree in trees for path in expanded(tree)] + named:
        parts = path.removesuffix("::self").split("::")
        base = () if parts[0] == "crate" else module
        while parts and parts[0] in {"crate", "super"}:
            base = base[:-1] if parts.pop(0) == "super" else base
        found.add((*base, *parts))
    return found


def graph(sources: dict[tuple[str, ...], str]) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Returns the modules that each module, a file, imports from.

    A folder's registry lists its files without importing them.
    """
    edges: dict[tuple[str, ...], set[tuple[str, ...]]] = {module: set() for module in sources}
    for module, text in sources.items():
        for path in imports(text, module):
            # A path to an item in a file: the file is the longest part of it.
            files = (path[:length] for length in range(len(path), 0, -1) if path[:length] in sources)
            file = next(files, module)
            if file != module:
                edges[module].add(file)
    return edges


def circles(edges: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[str]]:
    """Returns the strongly connected components of more than one file, the largest first."""

    def reached(start: tuple[str, ...]) -> set[tuple[str, ...]]:
        seen: set[tuple[str, ...]] = set()
        waiting = [start]
        while waiting:
            for module in edges[waiting.pop()] - seen:
                seen.add(module)
                waiting.append(module)
        return seen

    reach = {module: reached(module) for module in edges}
    components = {
        frozenset(other for other in edges if other in reach[module] and module in reach[other]) for module in edges
    }
    large = [sorted("::".join(module) for module in component) for component in components if len(component) > 1]
    return sorted(large, key=len, reverse=True)


def modules(crate: Path) -> dict[tuple[str, ...], str]:
    """Returns the sources of a crate's modules but the root, whose file only lists them."""
    found = {}
    for path in sorted((crate / "src").rglob("*.rs")):
        place = path.relative_to(crate / "src").with_suffix("")
        parts = place.parts[:-1] if place.name == "mod" else place.parts
        if path.name not in {"lib.rs", "tests.rs"}:
            found[parts] = path.read_text("utf-8")
    return found


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_circle_of_imports_has_more_than_four_files(crate: Path) -> None:
    assert [circle for circle in circles(graph(modules(crate))) if len(circle) > MOST] == []


def test_imports_are_followed_through_trees_and_parents() -> None:
    sources = {
        ("a",): "use crate::b::{c::{D, e}, F};\nuse crate::Root;",
        ("b",): "mod c;\nuse std::io;",
        ("b", "c"): "use super::F;\nfn f() { crate::a::g(); }\n// use crate::x;",
        ("x",): "",
    }
    edges = graph(sources)
    assert edges == {("a",): {("b", "c"), ("b",)}, ("b",): set(), ("b", "c"): {("b",), ("a",)}, ("x",): set()}
    assert circles(edges) == [["a", "b::c"]]
