"""The numbers of a page of questions, and whether its words agree with them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailcut.claims import words
from tailcut.claims.document import Claim, Paper
from tailcut.claims.questions import IN_BRACES, Idea, Question, Reference, reference
from tailcut.claims.scorecard import Point, Row, Scorecard
from tailcut.claims.verdict import BEYOND, Number
from tailcut.errors import ClaimsError
from tailcut.plan import written

SIDED = ("change", "ratio", "contrast")
"""The comparisons whose numbers lie on a side of no change."""
ALIKE = 0.05
"""An interval within this of no change is no difference in the table of ideas."""


@dataclass(frozen=True, slots=True)
class Found:
    """A claim's number that a reference names.

    Attributes:
        claim: the claim.
        row: its row of the scorecard; None before it was run.
        point: the point of the row; None without one.
    """

    claim: Claim
    row: Row | None
    point: Point | None

    @property
    def number(self) -> Number | None:
        """The number; None where there is none."""
        return None if self.point is None else self.point.number

    @property
    def side(self) -> str:
        """One of ``SIDES``: where the interval lies. Without an interval, and with few flows beyond, it is open."""
        return side(self.claim, self.number)

    @property
    def text(self) -> str:
        """The number with its interval, as people read it."""
        return "(not run yet)" if self.number is None else words.number(self.claim, self.number)

    @property
    def size(self) -> str:
        """The number with its interval, without signs, for words that say the direction."""
        return "(not run yet)" if self.number is None else words.size(self.claim, self.number)

    @property
    def mark(self) -> str:
        """One of ``helps``, ``harms``, ``alike``, ``open`` and ``absent``, for the table of ideas."""
        number = self.number
        if number is None:
            return "absent"
        none = no_change(self.claim)
        ends = [none if end is None else end - none for end in (number.low, number.high)]
        if number.low is not None and max(map(abs, ends)) <= ALIKE:
            return "alike"
        if self.side == "open":
            return "open"
        return "helps" if self.side == promise(self.claim) else "harms"


def no_change(claim: Claim) -> float:
    """Returns the number that says that nothing changes."""
    return 1.0 if claim.compare is not None and claim.compare.kind == "ratio" else 0.0


def side(claim: Claim, number: Number | None) -> str:
    """Returns the side of no change on which a number's interval lies: ``less``, ``more`` or ``open``."""
    if number is None or number.low is None or number.high is None:
        return "open"
    if number.beyond is not None and number.beyond < BEYOND:
        return "open"
    none = no_change(claim)
    return "less" if number.high < none else "more" if number.low > none else "open"


def promise(claim: Claim) -> str:
    """Returns the side that a claim promises: ``less`` or ``more``."""
    low, high = claim.target[0].low, claim.target[0].high
    return "more" if high is None or (low is not None and low + high > 0) else "less"


def find(paper: Paper, scorecard: Scorecard, asked: Reference, backend: str = "") -> Found:
    """Returns the number that a reference names.

    Args:
        paper: whose claims it names.
        scorecard: where the numbers are.
        asked: the reference.
        backend: who answers; empty for the claim's first backend.

    Raises:
        ClaimsError: TC-K003: the claims have no such claim, reading or point.
    """
    claim = next((one for one in paper.claims if one.id == f"{paper.name}/{asked.claim}"), None)
    if claim is None:
        raise _unknown(paper, asked, "there is no such claim")
    reading = asked.reading or claim.readings[0]
    if reading not in claim.readings:
        raise _unknown(paper, asked, f"the claim has no reading {reading!r}")
    key = (reading, backend or claim.backends[0])
    rows = [one for one in scorecard.of(claim) if (one.reading, one.backend) == key]
    row = rows[0] if rows else None
    points = [one for row in rows for one in row.points if not asked.at or asked.at in map(written, one.at.values())]
    if row is not None and not points:
        raise _unknown(paper, asked, f"no point is at {asked.at}")
    return Found(claim, row, points[0] if points else None)


def _unknown(paper: Paper, asked: Reference, why: str) -> ClaimsError:
    return ClaimsError("TC-K003", f"the page of {paper.name} names {asked.claim}: {why}", "correct its claims.toml")


def sentence(paper: Paper, scorecard: Scorecard, text: str) -> str:
    """Returns a sentence with its numbers."""

    def filled(braces: str) -> str:
        asked = reference(braces)
        if asked is None:
            return ""
        found = find(paper, scorecard, asked)
        return found.size if asked.size else found.text

    return IN_BRACES.sub(lambda found: filled(found[1]), " ".join(text.split()))


def cell(paper: Paper, scorecard: Scorecard, idea: Idea, situation: str) -> list[Found]:
    """Returns the numbers of a cell of the table of ideas; none where nothing was asked."""
    return [find(paper, scorecard, asked) for asked in idea.cells.get(situation, ())]


def parts(question: Question) -> Mapping[str, str]:
    """Returns the sentences of a question that have numbers, by what they are."""
    return {"answer": question.answer, "why": question.why, "change": question.change}


def answered(paper: Paper) -> list[Question]:
    """Returns the questions that have an answer."""
    return [question for question in paper.answers.questions if question.answered] if paper.answers else []


def contradictions(paper: Paper, scorecard: Scorecard) -> Iterator[str]:
    """Yields each number whose side is not the one that its sentence states."""
    for question in answered(paper):
        for part, text in {**parts(question), "lacks": question.lacks}.items():
            for braces in IN_BRACES.findall(text):
                asked = reference(braces)
                if asked is None:
                    continue
                found = find(paper, scorecard, asked)
                sided = found.claim.compare is not None and found.claim.compare.kind in SIDED
                place = f"{question.id}, {part}: {{{braces}}}"
                if found.number is None:
                    yield f"{place} has not been run"
                elif sided and not asked.side:
                    yield f"{place} does not state its side: {found.side}"
                elif sided and asked.side != found.side:
                    yield f"{place} is {found.text}: {found.side}"
                elif asked.size and not words.has_size(found.number):
                    yield f"{place} is {found.text}: on both sides of no change"
                elif asked.side and not sided:
                    yield f"{place} is a value, and has no side"
