"""Writes docs/guide/today.md and its pictures from the checkout's claims and scorecard: `make today`."""

import sys
from pathlib import Path

from tailcut.claims import Scorecard, answer_page, document
from tailcut.results.store import write_atomically

DOCS = Path(__file__).parent
EXPERIMENTS = DOCS.parent / "experiments"


def write(scorecard: Path) -> None:
    """Writes every file of the page.

    Args:
        scorecard: the scorecard that its numbers are taken from.
    """
    claims = (EXPERIMENTS / document.TODAY / "claims.toml").read_text("utf-8")
    paper = document.read(document.TODAY, claims)
    for name, text in answer_page.files(paper, Scorecard.parse(scorecard.read_text("utf-8"))).items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        write_atomically(DOCS / name, text.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else EXPERIMENTS / "papers/scorecard.json")
