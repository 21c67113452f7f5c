"""Questions that claims answer: sentences by people, in which every number is a claim's."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tailcut.claims.tables import ClaimTable

SIDES = ("less", "more", "open")
"""What the words around a number may say of it: its interval lies below no change, above it, or on both sides."""
REFERENCE = re.compile(
    r"(?P<claim>[a-z0-9-]+)(?::(?P<side>less|more|open))?(?P<size> by)?"
    r"(?: at (?P<at>[^@{}]+?))?(?: @ (?P<reading>[^{}]+))?"
)
"""A claim's number: ``copies-drill:less by at true @ 100 Gbps``, with its side, unsigned, its point and its reading."""
IN_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Reference:
    """A claim's number in a sentence, or in the table of ideas.

    Attributes:
        claim: the claim's name, without its paper.
        side: one of ``SIDES``, as the words around it say; empty for values, which have none.
        at: a value of the point among a claim's several; empty for the first.
        reading: the reading; empty for the first.
        size: whether the words around it say the direction, so that the number has no sign.
    """

    claim: str
    side: str
    at: str
    reading: str
    size: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim that simulator and kernels answer over one small fabric.

    Attributes:
        what: what is compared, as the page calls it.
        of: the claim's number.
    """

    what: str
    of: Reference


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answer.

    Attributes:
        id: a short name.
        asks: the question.
        experiment: the experiment that answers it, as below the folder of the claims.
        answer: one sentence, with numbers as references in braces.
        why: what the time is made of.
        change: what would change the answer.
        figure: the claims that its figure shows, under all of their readings.
        kernels: what of it was asked of kernels, too.
        lacks: what of it kernels were not asked, and why; with numbers as references in braces.
    """

    id: str
    asks: str
    experiment: str
    answer: str
    why: str
    change: str
    figure: tuple[str, ...]
    kernels: tuple[Comparison, ...] = ()
    lacks: str = ""

    @property
    def answered(self) -> bool:
        """Whether its answer has a number; before its runs are made it has none."""
        return bool(references(self.answer))

    @property
    def complete(self) -> bool:
        """Whether it is answered, and its reason and what would change it have numbers, too."""
        return self.answered and bool(references(self.why) and references(self.change))


@dataclass(frozen=True, slots=True)
class Idea:
    """A row of the table of ideas.

    Attributes:
        name: what people call it.
        cells: by situation, the claims' numbers that show it, the first of which marks it.
    """

    name: str
    cells: Mapping[str, tuple[Reference, ...]]


@dataclass(frozen=True, slots=True)
class Answers:
    """A page of questions.

    Attributes:
        situations: the columns of the table of ideas.
        ideas: its rows.
        questions: in their order.
        limits: what the answers do not cover, a sentence each.
        kernels: how kernels were asked.
    """

    situations: tuple[str, ...]
    ideas: tuple[Idea, ...]
    questions: tuple[Question, ...]
    limits: tuple[str, ...]
    kernels: str = ""


def reference(text: str) -> Reference | None:
    """Returns the reference that a text is; None if it is none."""
    found = REFERENCE.fullmatch(text)
    if found is None:
        return None
    claim, side, at, reading = (found[name] or "" for name in ("claim", "side", "at", "reading"))
    return Reference(claim, side, at, reading, size=bool(found["size"]))


def references(sentence: str) -> list[Reference]:
    """Returns the references of a sentence, in their order."""
    return [one for text in IN_BRACES.findall(sentence) if (one := reference(text)) is not None]


def answers(table: ClaimTable) -> Answers:
    """Returns the page of questions that a claims file describes.

    Raises:
        ClaimsError: TC-K001: it says what the vocabulary has no word for.
    """
    situations, limits = table.texts("situations", ()), table.texts("limits", ())
    ideas = tuple(_idea(one, situations) for one in table.list_of_tables("ideas"))
    questions = tuple(_question(one) for one in table.list_of_tables("questions"))
    return Answers(situations, ideas, questions, limits, table.text("kernels", ""))


def _idea(table: ClaimTable, situations: tuple[str, ...]) -> Idea:
    name, cells = table.text("name"), table.table("cells").rest()
    table.done()
    unknown = [situation for situation in cells if situation not in situations]
    if unknown:
        raise table.fail(f"{unknown[0]!r} is none of the situations")
    return Idea(name, MappingProxyType({key: _cell(table, str(text)) for key, text in cells.items()}))


def _cell(table: ClaimTable, text: str) -> tuple[Reference, ...]:
    found = [(one, reference(one)) for one in text.split("; ")]
    for one, named in found:
        if named is None:
            raise table.fail(f"{one!r} names no claim's number")
    return tuple(named for _, named in found if named is not None)


def _comparison(table: ClaimTable) -> Comparison:
    what, of = table.text("what"), table.text("of")
    table.done()
    named = reference(of)
    if named is None:
        raise table.fail(f"{of!r} names no claim's number")
    return Comparison(what, named)


def _question(table: ClaimTable) -> Question:
    id_, asks, experiment = table.text("id"), table.text("asks"), table.text("experiment")
    answer, why, change = table.text("answer"), table.text("why"), table.text("change")
    figure, lacks = table.texts("figure", ()), table.text("lacks", "")
    kernels = tuple(_comparison(one) for one in table.list_of_tables("kernels")) if table.has("kernels") else ()
    found = Question(id_, asks, experiment, answer, why, change, figure, kernels, lacks)
    table.done()
    for text in IN_BRACES.findall(f"{answer} {why} {change} {lacks}"):
        if reference(text) is None:
            raise table.fail(f"{{{text}}} names no claim's number")
    return found
