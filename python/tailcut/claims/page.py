"""The page of all claims: one file that works offline, without scripts."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import jinja2

from tailcut import _core
from tailcut.claims import picture, words
from tailcut.claims.document import STATED, Claim, Paper, Reading
from tailcut.claims.scorecard import Row, Scorecard
from tailcut.claims.verdict import Verdict
from tailcut.plan import flatten

ORDER = (
    Verdict.REPRODUCED,
    Verdict.DIRECTION,
    Verdict.NOT,
    Verdict.UNDECIDED,
    Verdict.CONTRADICTION,
    Verdict.CANNOT,
    Verdict.ABSENT,
)
MARKS = {
    Verdict.REPRODUCED: "✓",
    Verdict.DIRECTION: "↗",
    Verdict.NOT: "✗",
    Verdict.UNDECIDED: "?",
    Verdict.CONTRADICTION: "≠",
    Verdict.CANNOT: "–",
    Verdict.ABSENT: "…",
}
"""A sign for each verdict, for readers who cannot tell colours apart."""


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """A claim as the page shows it.

    Attributes:
        claim: it.
        row: what it is judged by; None before it was run.
        verdict: on it.
        others: what came out under other readings and with other backends.
    """

    claim: Claim
    row: Row | None
    verdict: Verdict
    others: tuple[Row, ...]


def render(papers: Sequence[Paper], scorecard: Scorecard) -> str:
    """The page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    totals = scorecard.totals(paper for paper in papers if paper.published)
    known = scorecard.totals(paper for paper in papers if paper.known)
    return environment.get_template("page.html.j2").render(
        papers=[(paper, [_line(claim, scorecard) for claim in paper.claims]) for paper in papers],
        totals=[(verdict, totals[verdict]) for verdict in ORDER if totals[verdict]],
        count=totals.total(),
        count_of_papers=sum(paper.published for paper in papers),
        known=words.totals(known, "known answers") if known else "",
        stale=len(scorecard.stale),
        results=_core.RESULTS,
        marks=MARKS,
        style=_asset("page.css"),
        picture=picture.svg,
        words=words,
        command=command,
        settings=settings,
        STATED=STATED,
    )


def _line(claim: Claim, scorecard: Scorecard) -> ClaimLine:
    row = scorecard.main(claim)
    others = tuple(one for one in scorecard.of(claim) if one is not row)
    return ClaimLine(claim, row, scorecard.verdict(claim), others)


def _asset(name: str) -> str:
    return (files("tailcut") / "claims/assets" / name).read_text(encoding="utf-8")


def command(claim: Claim, row: Row) -> str:
    """Returns the command that makes a row again."""
    options = [] if row.backend == "sim" else ["--on", row.backend]
    options += [] if row.reading == STATED else ["--reading", row.reading]
    return shlex.join(["tailcut", "claims", "run", claim.id, *options])


def settings(reading: Reading) -> str:
    """Returns a reading's settings as the command line takes them."""
    return " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in flatten(reading.overrides).items())
