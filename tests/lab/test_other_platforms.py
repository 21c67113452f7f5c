"""The lab's crate is made for Linux, and compiles elsewhere: what only Linux has is left out there.

Whether it does is tried where a compiler for another system is at hand. Everywhere else what is compiled for all
systems is held not to name what is left out.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.skipping import missing

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "crates/tailcut-lab"
ELSEWHERE = ("x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-pc-windows-msvc", "wasm32-unknown-unknown")
LINUX = re.compile(r'#\[cfg\((?:test|(?:all\(test, )?target_os = "linux"\)?)\)\]\s*')
NOT_LINUX = re.compile(r'#\[cfg\(not\(target_os = "linux"\)\)\]\s*')
MODULE = re.compile(r"^(?:pub )?mod (\w+);", re.MULTILINE)
USE = re.compile(r"^\s*(?:pub )?use ([^;]+);", re.MULTILINE)
ITEM = re.compile(r"(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:fn|impl|struct|enum|trait|type|use|mod|const|static)\b")
PACKAGES = ("libc", "netlink_packet_core", "netlink_packet_route", "netlink_sys")
UNIX = ("std::os::",)


def end_of_item(text: str, at: int) -> int:
    """Returns the end of what begins at ``at``: its semicolon, its closing brace or, if it is no item, its comma."""
    ends = ";" if ITEM.match(text, at) else ";,"
    depth = 0
    for place in range(at, len(text)):
        letter = text[place]
        if letter in "{([":
            depth += 1
        elif letter in "})]":
            depth -= 1
            if depth < 0:
                return place
            if depth == 0 and letter == "}" and text[place + 1 : place + 2] not in {";", ",", ")", "."}:
                return place + 1
        elif depth == 0 and letter in ends:
            return place + 1
    return len(text)


def without_words(text: str) -> str:
    """Returns the code without the text of comments and strings."""
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(
        r'"(?:[^"\\]|\\.)*"', lambda found: found[0] if found[0] == '"linux"' else '""', text, flags=re.DOTALL
    )


def split(text: str) -> tuple[str, list[str]]:
    """Splits a source into the text compiled everywhere and the items compiled on Linux only; tests are left out."""
    kept, items, place = [], [], 0
    while found := LINUX.search(text, place):
        kept.append(text[place : found.start()])
        place = end_of_item(text, found.end())
        items.append(text[found.end() : place])
    kept.append(text[place:])
    return "".join(kept), items


def names(use: str) -> set[str]:
    """Returns the names that a ``use`` declaration brings into scope."""
    use = re.sub(r"\s+", " ", use)
    leaves = re.sub(r"[{}]", ",", use).split(",")
    return {leaf.strip().rpartition("::")[2].rpartition(" as ")[2] for leaf in leaves if leaf.strip()} - {
        "",
        "_",
        "*",
        "self",
    }


def place_of(path: Path) -> tuple[str, ...]:
    """The modules that a file is in, its own last."""
    parts = path.relative_to(CRATE / "src").with_suffix("").parts
    return parts[:-1] if parts[-1] in {"lib", "mod"} else parts


def left_out() -> set[tuple[str, ...]]:
    """Modules that only Linux compiles, by their places."""
    found = set()
    for path in (CRATE / "src").rglob("*.rs"):
        for item in split(without_words(path.read_text()))[1]:
            found |= {(*place_of(path), module) for module in MODULE.findall(item)}
    return found


def compiled_everywhere() -> Iterator[tuple[Path, str, set[str]]]:
    """Every file that other systems compile, what they compile of it, and the names that only Linux has."""
    missing = left_out()
    assert missing >= {("sys",), ("hosts",), ("supervisor",), ("fabric", "carrier")}
    files = [CRATE / "src/lib.rs"]
    while files:
        path = files.pop()
        kept, items = split(without_words(path.read_text()))
        here = place_of(path)
        folder = CRATE.joinpath("src", *here)
        for module in MODULE.findall(kept):
            place = folder / f"{module}.rs"
            files.append(place if place.exists() else folder / module / "mod.rs")
        linux = {name for item in items for use in USE.findall(item) for name in names(use)}
        linux |= {"::".join(["crate", *module]) for module in missing}
        linux |= {f"super::{module[-1]}" for module in missing if module[:-1] == here[:-1]}
        yield path, kept, linux


def test_platform_independent_modules_name_nothing_linux_only() -> None:
    wrong = []
    several = list(compiled_everywhere())
    assert len(several) > 15
    for path, text, linux in several:
        elsewhere = NOT_LINUX.sub("", text)
        own = {name for use in USE.findall(elsewhere) for name in names(use)}
        packages = [f"{package}::" for package in PACKAGES]
        wrong += [
            f"{path.relative_to(ROOT)}: {name}"
            for name in sorted((linux - own) | set(packages) | set(UNIX))
            if re.search(rf"(?<![\w:.]){re.escape(name)}(?!\w)", elsewhere)
        ]
    assert wrong == []


def test_the_lab_crate_compiles_for_another_system() -> None:
    rustc = shutil.which("rustc")
    if rustc is None:
        missing("there is no rustc")
    asked = [rustc, "--print", "sysroot"]
    sysroot = Path(subprocess.run(asked, check=True, capture_output=True, encoding="utf-8").stdout.strip())
    there = [target for target in ELSEWHERE if (sysroot / "lib/rustlib" / target).exists()]
    if not there:
        missing("this Rust has no standard library of another system", f"rustup target add {ELSEWHERE[0]}")
    for target in there:
        command = ["cargo", "check", "--locked", "--package", "tailcut-lab", "--lib", "--target", target]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
        assert said.returncode == 0, said.stderr
        assert "warning" not in said.stderr
