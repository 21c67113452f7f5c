"""The page on a scheme of one's own: its file compiles and passes its test, its list applies, and both go together.

Tests of the library compile the page's file (``of_the_page`` in ``balance/mod.rs``) at no cost of their own. That the
page as a whole compiles takes a build of a copy, and is part of the long form.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILED = "crates/tailcut-net/tests/pages/least_sent.rs"


def run(*command: str | Path, at: Path) -> str:
    """Runs a command, which must succeed, and returns its output."""
    done = subprocess.run(command, cwd=at, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks() -> tuple[str, str, str]:
    """The page's file, its text, and its diff."""
    page = (ROOT / "docs/howto/scheme.md").read_text("utf-8")
    [(file, rust)] = re.findall(r"^```rust\n// (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [diff] = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return file, rust, diff


def apply(diff: str, tree: Path) -> None:
    """Applies a diff to a copy of what it changes."""
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=tree, input=diff, encoding="utf-8", check=True)


def apply_page(tree: Path) -> None:
    """Makes a copy of the crates in `tree` to which the page was applied."""
    for name in ("Cargo.toml", "Cargo.lock", ".cargo", "crates", "experiments", "workloads"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    file, rust, diff = blocks()
    (tree / file).write_text(rust, "utf-8")
    apply(diff, tree)


def test_the_scheme_on_the_page_equals_the_one_that_library_tests_compile() -> None:
    _, rust, _ = blocks()
    assert rust == (ROOT / COMPILED).read_text("utf-8"), f"write it to {COMPILED}, too"


def test_the_list_of_the_page_applies_and_names_the_file(tmp_path: Path) -> None:
    file, _, diff = blocks()
    [changed] = re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)
    before = (ROOT / changed).read_text("utf-8")
    (tmp_path / changed).parent.mkdir(parents=True)
    (tmp_path / changed).write_text(before, "utf-8")
    apply(diff, tmp_path)
    after = (tmp_path / changed).read_text("utf-8")
    name = Path(file).stem
    kind = name.title().replace("_", "")
    added = [line.strip() for line in after.splitlines() if line not in before.splitlines()]
    assert added[0] == f"pub mod {name};"
    assert added[-1] == f"{kind}({name}::{kind}),"
    lines = [line.strip() for line in after.splitlines()]
    entry = lines.index(added[-1])
    assert re.fullmatch(r"\w+\(\w+::\w+\),", lines[entry - 2]), "it stands among the kinds"
    assert "registry! {" in lines[:entry]


# A target of its own: in the checkout's, what is built here would pass for what is built there.


@pytest.mark.soak
@pytest.mark.timeout(1800)  # it compiles what tests need, too
def test_the_scheme_of_the_page_compiles_and_passes_its_test(tmp_path: Path) -> None:
    apply_page(tmp_path)
    target = ("--target-dir", tmp_path / "target")
    tests = run("cargo", "test", "--package", "tailcut-net", "--lib", "--locked", *target, "least_sent", at=tmp_path)
    assert "1 passed" in tests
