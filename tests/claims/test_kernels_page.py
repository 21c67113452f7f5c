"""What the page of today's questions says of kernels follows from the scorecard."""

import pytest

from support.questions import FILE, asked, card, read, row
from tailcut import claims
from tailcut.claims import Scorecard, answer_page, kernels
from tailcut.claims.verdict import Number

TODAY = claims.load()["today"]
SHIPPED = Scorecard.shipped()

LESS, MORE, OPEN = Number(-0.3, -0.4, -0.2), Number(0.3, 0.2, 0.4), Number(0.1, -0.2, 0.4)
ASKED = FILE.replace(
    'figure = ["faster", "waiting"]',
    'figure = ["faster", "waiting"]\nkernels = [{ what = "copies", of = "faster" }]\nlacks = "No hedges."',
).replace('readings = ["stated", "slow"]', 'readings = ["stated", "slow"]\nbackends = ["sim", "lab"]')


def both(ours: Number, theirs: Number | None) -> Scorecard:
    """Returns a scorecard with a number of the simulator, and one of kernels."""
    found = card()
    found.put(row("faster", ours))
    if theirs is not None:
        found.put(row("faster", theirs, backend="lab"))
    return found


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (LESS, LESS, "As in the simulator: copies ▼."),
        (MORE, MORE, "As in the simulator: copies ▲."),
        (OPEN, LESS, "Decided over kernels, open in the simulator: copies ▼."),
        (LESS, OPEN, "Decided in the simulator, open over kernels: copies ▼."),
        (OPEN, OPEN, "Open in both: copies."),
        (LESS, MORE, "Against the simulator: copies ▲ (simulator ▼)."),
        (LESS, None, "Not run over kernels: copies."),
    ],
)
def test_a_comparison_has_the_direction_of_both(ours: Number, theirs: Number | None, said: str) -> None:
    paper = read(ASKED)
    assert kernels.paragraph(paper, both(ours, theirs), asked(paper).questions[0]) == f"{said} No hedges."


def test_the_table_shows_signs_and_how_many_runs_count() -> None:
    found = kernels.section(read(ASKED), both(LESS, MORE))
    assert "| question 1 | simulator |" in found
    assert "| copies | ▼ | ▲ | 1 of 1 |" in found
    assert found.startswith("Of 1 comparisons over kernels, 1 have the opposite direction.")


def test_a_page_that_asked_kernels_nothing_does_not_speak_of_them() -> None:
    assert "kernels" not in answer_page.page(read(), card())


def test_runs_over_kernels_are_not_among_those_that_make_today_makes() -> None:
    found = both(LESS, MORE)
    found.put(row("faster", MORE, backend="lab", runs=("f00-lab-repnet-1",)))
    assert "missing of 1 runs" in answer_page.page(read(ASKED), found)


def test_every_comparison_of_the_page_is_answered_by_simulator_and_kernels() -> None:
    named = {f"today/{one.of.claim}" for question in asked(TODAY).questions for one in question.kernels}
    assert {claim.backends for claim in TODAY.claims if claim.id in named} == {("sim", "lab")}
    both_backends = {claim.id for claim in TODAY.claims if "lab" in claim.backends}
    assert named <= both_backends
    assert {claim.experiment for claim in TODAY.claims if claim.id in both_backends} == {"today/kernels"}


def test_every_question_names_what_of_it_kernels_were_not_asked() -> None:
    assert [question.id for question in asked(TODAY).questions if not question.lacks.rstrip().endswith(".")] == []


def test_the_table_shows_no_number_of_kernels() -> None:
    """Rates are a thousandth of today's, so that directions alone count."""
    assert "%" not in kernels.section(TODAY, SHIPPED)
