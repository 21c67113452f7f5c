"""Every word of the documentation is an English word, or one of ours (docs/words.txt)."""

import re
from pathlib import Path

import pytest
from spellchecker import SpellChecker

from support import pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REPNET = ROOT / "packages/repnet"
PAGES = sorted([*pages.written(DOCS), *ROOT.glob("*.md"), REPNET / "README.md", *pages.written(REPNET / "docs")])
NOT_PROSE = re.compile(
    r"^[ \t]*```.*?^[ \t]*```|`[^`]*`|\$[^$\n]+\$|\]\([^)]*\)|<[^>]*>|https?://\S+", re.MULTILINE | re.DOTALL
)


def ours() -> list[str]:
    """The words of our list."""
    return [word for word in (DOCS / "words.txt").read_text("utf-8").splitlines() if not word.startswith("#")]


@pytest.fixture(scope="module")
def dictionary() -> SpellChecker:
    known = SpellChecker(language="en")
    known.word_frequency.load_words(ours())
    return known


def unknown(text: str, dictionary: SpellChecker) -> list[str]:
    """The words of a text, in lower case, that are in neither list."""
    words = {
        word.lower().removesuffix("'s") for word in re.findall(r"[A-Za-z][a-z]+(?:'[a-z]+)?", NOT_PROSE.sub(" ", text))
    }
    return sorted(words - dictionary.known(words))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_spelled_right(page: Path, dictionary: SpellChecker) -> None:
    assert unknown(page.read_text("utf-8"), dictionary) == [], "mend it, or add the word to docs/words.txt"


def test_a_slip_is_found_and_code_is_not_read(dictionary: SpellChecker) -> None:
    text = "A packat, `a packat` and [a page](packat.md).\n\n```console\n$ packat\n```\n"
    assert unknown(text, dictionary) == ["packat"]


def test_our_words_are_in_order() -> None:
    assert ours() == sorted(set(ours()))
