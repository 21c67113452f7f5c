"""Commands in the documentation work and print the output shown there."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support import pages
from support.skipping import missing

DOCS = Path(__file__).parents[2] / "docs"
REPLAYED = [DOCS / "tutorial.md", *sorted((DOCS / "guide").glob("*.md")), *sorted((DOCS / "howto").glob("*.md"))]
SHORT = 8  # rows of a table that somebody reads who wants to do something


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Results of the experiment that `tailcut new` writes, made once for all workers of the session."""
    base = tmp_path_factory.getbasetemp()
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return lambda: pages.starter_runs(session / "starter")


@pytest.mark.parametrize("page", REPLAYED, ids=lambda page: page.stem)
def test_a_page_can_be_followed_and_prints_what_it_says(
    page: Path, tmp_path: Path, starter: Callable[[], Path], request: pytest.FixtureRequest
) -> None:
    said = page.read_text("utf-8")
    if "tshark" in said and shutil.which("tshark") is None:
        missing("tshark is not installed", "apt-get install tshark")
    now = pages.replay(said, tmp_path, starter)
    if request.config.getoption("update_snapshots"):
        page.write_text(now, "utf-8")
    else:
        assert said == now, "write what is printed now: pytest --snapshot-update"


def test_a_page_that_says_another_output_is_found(tmp_path: Path) -> None:
    page = "```console\n$ echo one\ntwo\n```\n"
    assert pages.replay(page, tmp_path) == "```console\n$ echo one\none\n```\n"


def test_an_ellipsis_stands_for_any_lines(tmp_path: Path) -> None:
    page = "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n```\n"
    assert pages.replay(page, tmp_path) == page


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ends with 3"):
        pages.replay("```console\n$ exit 3\n```\n", tmp_path)


def test_a_block_that_names_a_file_is_saved(tmp_path: Path) -> None:
    page = '```python\n# two.py\nprint("2")\n```\n\n```console\n$ python two.py\n2\n```\n'
    assert pages.replay(page, tmp_path) == page


def test_a_block_marked_as_not_run_is_skipped(tmp_path: Path) -> None:
    left_out = "<!-- not run: it would build everything -->\n```console\n$ exit 3\n```\n"
    assert pages.replay(left_out, tmp_path) == left_out
    between = f"{left_out}\n```console\n$ echo one\n```\n\n{left_out}"
    assert pages.replay(between, tmp_path) == between.replace("echo one\n", "echo one\none\n")


def test_a_command_that_should_fail_does_and_says_why(tmp_path: Path) -> None:
    page = "<!-- fails -->\n```console\n$ echo wrong >&2; exit 2\nwrong\n```\n"
    assert pages.replay(page, tmp_path) == page
    with pytest.raises(AssertionError, match="ends with 0"):
        pages.replay("<!-- fails -->\n```console\n$ echo well\nwell\n```\n", tmp_path)


@pytest.mark.parametrize("page", REPLAYED, ids=lambda page: page.stem)
def test_a_guide_has_no_long_tables(page: Path) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8"), re.MULTILINE)
    assert [table for table in tables if table.count("\n") - 2 > SHORT] == [], "long tables belong to the reference"


# --- words ----------------------------------------------------------------------------------------

PLAIN_WORDS = [
    line.split(" -> ")
    for line in (DOCS / "plain-words.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("page", pages.written(DOCS), ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_has_no_unusual_word_for_a_usual_thing(page: Path) -> None:
    text = " ".join(page.read_text("utf-8").split())
    found = [f"{odd}: say {plain}" for odd, plain in PLAIN_WORDS if re.search(rf"\b{odd}\b", text, re.I)]
    assert found == []
