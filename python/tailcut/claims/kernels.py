"""Directions over kernels beside those of the simulator, for the page's questions: one small fabric."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailcut.claims import drawings
from tailcut.claims.answers import Found, answered, find, sentence
from tailcut.claims.document import Paper
from tailcut.claims.questions import Question
from tailcut.claims.scorecard import Scorecard

LAB = "lab"
"""The backend that kernels answer by."""
SIMULATOR = "sim"
OUTCOMES: Mapping[str, str] = {
    "alike": "As in the simulator",
    "kernels": "Decided over kernels, open in the simulator",
    "simulator": "Decided in the simulator, open over kernels",
    "open": "Open in both",
    "against": "Against the simulator",
    "absent": "Not run over kernels",
}
"""How the directions of kernels and simulator lie to each other, in the page's words and order."""
DIRECTIONS: Mapping[str, str] = {"less": "helps", "more": "harms"}
"""The marks of the table of ideas whose signs say that a number is lower, or higher."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A comparison with both answers.

    Attributes:
        what: what is compared.
        simulator: the simulator's number.
        kernels: the number of kernels.
    """

    what: str
    simulator: Found
    kernels: Found

    @property
    def outcome(self) -> str:
        """A key of ``OUTCOMES``."""
        ours, theirs = self.simulator.side, self.kernels.side
        if self.kernels.number is None or self.simulator.number is None:
            return "absent"
        if ours == theirs:
            return "open" if ours == "open" else "alike"
        return "kernels" if ours == "open" else "simulator" if theirs == "open" else "against"

    @property
    def runs(self) -> str:
        """How many of the runs over kernels count: those that were faithful."""
        there, asked = (0 if one.row is None else len(one.row.runs) for one in (self.kernels, self.simulator))
        return f"{there} of {asked}"


def sign(found: Found) -> str:
    """Returns the sign of a number's direction: below no change, above it, or open."""
    return drawings.SIGNS["absent" if found.number is None else DIRECTIONS.get(found.side, "open")]


def pairs(paper: Paper, scorecard: Scorecard, question: Question) -> list[Pair]:
    """Returns a question's comparisons, in their order."""
    return [
        Pair(
            one.what,
            find(paper, scorecard, one.of, SIMULATOR),
            find(paper, scorecard, one.of, LAB),
        )
        for one in question.kernels
    ]


def paragraph(paper: Paper, scorecard: Scorecard, question: Question) -> str:
    """Returns what kernels say of a question, and what they were not asked; empty where neither is known."""
    found = pairs(paper, scorecard, question)
    parts = []
    for outcome, words in OUTCOMES.items():
        of_outcome = [f"{one.what} {_shown(one)}".strip() for one in found if one.outcome == outcome]
        if of_outcome:
            parts.append(f"{words}: {'; '.join(of_outcome)}.")
    return " ".join([*parts, sentence(paper, scorecard, question.lacks)]).strip()


def _shown(pair: Pair) -> str:
    """Returns the sign that a paragraph shows: of the side that decided; none where nobody did."""
    if pair.outcome == "against":
        return f"{sign(pair.kernels)} (simulator {sign(pair.simulator)})"
    decided = pair.simulator if pair.outcome == "simulator" else pair.kernels
    return "" if pair.outcome in ("open", "absent") else sign(decided)


def section(paper: Paper, scorecard: Scorecard) -> str:
    """Returns the sentence that counts all comparisons, and a table for each question; empty without any."""
    of_question = {
        number: pairs(paper, scorecard, one)
        for number, one in enumerate(paper.answers.questions if paper.answers else (), 1)
        if one in answered(paper)
    }
    every = [one for found in of_question.values() for one in found]
    if not every:
        return ""
    tables = [_table(number, found) for number, found in of_question.items() if found]
    return "\n".join([f"{textwrap.fill(counted(every), 100)}\n", *tables])


def _table(number: int, found: Sequence[Pair]) -> str:
    """Returns the table of a question's comparisons."""
    head = f"| question {number} | simulator | kernels | runs that count |\n|---|---|---|---|\n"
    rows = (f"| {one.what} | {sign(one.simulator)} | {sign(one.kernels)} | {one.runs} |\n" for one in found)
    return head + "".join(rows)


def counted(every: Sequence[Pair]) -> str:
    """Returns how many comparisons have which outcome, as a sentence."""
    words = {
        "alike": "have the simulator's direction",
        "kernels": "are decided over kernels alone",
        "simulator": "are decided in the simulator alone",
        "open": "are open in both",
        "against": "have the opposite direction",
        "absent": "were not run over kernels",
    }
    numbers = {outcome: sum(one.outcome == outcome for one in every) for outcome in OUTCOMES}
    said = [f"{number} {words[outcome]}" for outcome, number in numbers.items() if number or outcome == "against"]
    return f"Of {len(every)} comparisons over kernels, {', '.join(said)}."
