"""What the page on a scheme of one's own adds to the simulator compiles there, and passes its own test."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, at: Path) -> str:
    """What a command prints, which must succeed."""
    done = subprocess.run(command, cwd=at, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def apply_page(tree: Path) -> None:
    """Makes a copy of the crates in `tree` to which the page was applied."""
    page = (ROOT / "docs/howto/scheme.md").read_text("utf-8")
    for name in ("Cargo.toml", "Cargo.lock", ".cargo", "crates", "experiments", "workloads"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    [(file, rust)] = re.findall(r"^```rust\n// (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [diff] = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tree / file).write_text(rust, "utf-8")
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=tree, input=diff, encoding="utf-8", check=True)


# A target of its own: in the checkout's, what is built here would pass for what is built there.


@pytest.mark.timeout(1800)  # it compiles
def test_the_scheme_of_the_page_compiles(tmp_path: Path) -> None:
    apply_page(tmp_path)
    run("cargo", "check", "--package", "tailcut-net", "--locked", "--target-dir", tmp_path / "target", at=tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1800)  # it compiles what tests need, too
def test_the_scheme_of_the_page_passes_its_test(tmp_path: Path) -> None:
    apply_page(tmp_path)
    target = ("--target-dir", tmp_path / "target")
    tests = run("cargo", "test", "--package", "tailcut-net", "--lib", "--locked", *target, "least_sent", at=tmp_path)
    assert "1 passed" in tests
