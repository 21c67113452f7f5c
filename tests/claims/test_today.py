"""The page of today's questions: its sentences follow from the scorecard, and it is the one that is checked in."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from support.questions import FILE, asked, card, read, row
from tailcut import ClaimsError, _core, claims
from tailcut.claims import Scorecard, answer_page, answers, drawings, words
from tailcut.claims.questions import IN_BRACES, Question, reference
from tailcut.claims.verdict import Number

ROOT = Path(__file__).parents[2]
TODAY = claims.load()["today"]
SHIPPED = Scorecard.shipped()

# --- numbers in sentences -------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "said"), [(6.437, "6.44 times"), (12.0, "12 times"), (1893.4, "1,890 times")])
def test_a_ratio_has_three_digits_and_no_power_of_ten(value: float, said: str) -> None:
    of_ratio = FILE.replace('"change", scheme', '"ratio", scheme').replace('sign = "less"', "at_most = 1.0")
    assert words.amount(read(of_ratio).claims[0], value) == said


def test_a_sentence_has_the_number_of_its_claim_with_the_interval() -> None:
    page = answer_page.page(read(), card())
    assert "**A copy is faster: −30 % (−40 % to −20 %).**" in page
    assert "nothing is sure: −10 % (−30 % to +20 %)." in page
    assert "Waiting is 60 % (50 % to 70 %) of the time." in page


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (card((0.3, 0.2, 0.4)), "copies, answer: {faster:less} is +30 % (+20 % to +40 %): more"),
        (card((-0.1, -0.3, 0.1)), "copies, answer: {faster:less} is −10 % (−30 % to +10 %): open"),
        (card(few=True), "copies, answer: {faster:less} is −30 % (−40 % to −20 %): open"),
        (
            Scorecard(one for one in card().rows if one.reading != "stated"),
            "copies, answer: {faster:less} has not been run",
        ),
    ],
)
def test_words_that_the_number_does_not_bear_out_are_refused(found: Scorecard, said: str) -> None:
    with pytest.raises(ClaimsError, match=re.escape(said)) as refused:
        answer_page.files(read(), found)
    assert refused.value.code == "TC-K006"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{faster:less}", "{faster}", "{faster} does not state its side: less"),
        ("{waiting}", "{waiting:more}", "{waiting:more} is a value, and has no side"),
    ],
)
def test_changes_state_their_side_and_values_have_none(old: str, new: str, said: str) -> None:
    (wrong,) = answers.contradictions(read(FILE.replace(old, new)), card())
    assert said in wrong


def test_a_sentence_that_names_no_claim_is_refused() -> None:
    with pytest.raises(ClaimsError, match="names slower: there is no such claim"):
        answer_page.page(read(FILE.replace("{faster:less}", "{slower:less}")), card())
    with pytest.raises(ClaimsError, match="no reading 'fast'"):
        answer_page.page(read(FILE.replace("{faster:open @ slow}", "{faster:open @ fast}")), card())
    with pytest.raises(ClaimsError, match="names no claim's number"):
        read(FILE.replace("{faster:less}", "{faster: down}"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{faster:less}", "{faster:less by}", "**A copy is faster: 30 % (20 % to 40 %).**"),
        ("Waiting is {waiting}", "Waiting is {waiting by}", "Waiting is 60 % (50 % to 70 %) of the time."),
    ],
)
def test_a_number_whose_direction_the_words_say_has_no_sign(old: str, new: str, said: str) -> None:
    assert said in answer_page.page(read(FILE.replace(old, new)), card())


def test_a_number_on_both_sides_has_no_size() -> None:
    (wrong,) = answers.contradictions(read(FILE.replace("{faster:open @ slow}", "{faster:open by @ slow}")), card())
    assert wrong.endswith("is −10 % (−30 % to +20 %): on both sides of no change")


def test_a_reference_may_name_a_side_a_point_and_a_reading() -> None:
    found = reference("copies-drill:less at 25Gbps @ one slow link")
    assert found is not None
    assert (found.claim, found.side, found.at, found.reading) == ("copies-drill", "less", "25Gbps", "one slow link")


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faster", "mark"),
    [
        ((-0.3, -0.4, -0.2), "helps"),
        ((0.3, 0.2, 0.4), "harms"),
        ((0.01, -0.02, 0.04), "alike"),
        ((-0.02, -0.04, -0.01), "alike"),
        ((-0.1, -0.3, 0.1), "open"),
    ],
)
def test_a_cell_of_the_table_has_a_sign_besides_its_colour(faster: tuple[float, float, float], mark: str) -> None:
    picture = drawings.table(read(), card(faster))
    assert re.search(rf'<rect class="{mark}"[^>]*/>\s*<text[^>]*>{re.escape(drawings.SIGNS[mark])} [+−]', picture)
    assert len({*drawings.SIGNS.values()}) == len(drawings.SIGNS)


def test_pictures_have_a_dark_form_and_say_in_words_what_they_show() -> None:
    paper = read()
    for picture in (drawings.table(paper, card()), drawings.figure(paper, card(), asked(paper).questions[0])):
        assert "prefers-color-scheme: dark" in picture
        assert "−30 % (−40 % to −20 %)" in picture[: picture.index("</title>")]


def test_an_interval_that_is_much_wider_than_the_others_does_not_hide_them() -> None:
    paper, wide = read(), card()
    wide.put(row("faster", Number(-0.1, -0.9, 40.0, beyond=20), "slow"))
    picture = drawings.figure(paper, wide, asked(paper).questions[0])
    first, second = (float(x) for x in re.findall(r'<circle class="ours" cx="([\d.]+)"', picture)[:2])
    assert abs(first - second) > 20


# --- the one that is checked in -------------------------------------------------------------------


def test_every_experiment_of_today_answers_a_question() -> None:
    others = ("claims", "kernels")  # the latter asks several of the questions of kernels
    files = sorted(file.stem for file in (ROOT / "experiments/today").glob("*.toml") if file.stem not in others)
    assert [question.experiment for question in asked(TODAY).questions] == files


COMPLETE = [question for question in asked(TODAY).questions if question.complete]


def test_there_are_eight_questions_and_the_page_names_those_without_an_answer() -> None:
    questions = asked(TODAY).questions
    assert len(questions) == 8
    page = answer_page.page(TODAY, SHIPPED)
    assert page.count("Not answered yet") == sum(not question.answered for question in questions)
    unfinished = [question for question in questions if question.answered and not question.complete]
    assert page.count("Not asked yet.") == len(unfinished)


def test_a_question_without_a_number_is_not_answered() -> None:
    page = answer_page.page(read(FILE.replace("A copy is faster: {faster:less}.", "")), card())
    assert "## 1. Do copies help?\n\nNot answered yet" in page


@pytest.mark.parametrize("question", COMPLETE, ids=lambda one: one.id)
def test_a_question_has_an_answer_with_a_number_a_figure_a_reason_and_what_would_change_it(question: Question) -> None:
    for text in answers.parts(question).values():
        assert text.rstrip().endswith(".")
        assert IN_BRACES.search(text), f"{question.id}: a sentence without a number: {text}"
    assert re.search(r"[.?!]\s+[A-Z]", question.answer) is None, "the answer is one sentence"
    assert question.figure
    of_question = {claim.id for claim in TODAY.claims if claim.experiment == f"today/{question.experiment}"}
    assert {f"today/{name}" for name in question.figure} <= of_question


def test_no_number_of_the_page_is_typed_by_hand() -> None:
    """Percentages stand in braces; readings, rates and loads are what was set."""
    for question in answers.answered(TODAY):
        for text in answers.parts(question).values():
            assert re.search(r"\d\s*%", IN_BRACES.sub("", text)) is None, text


def test_the_words_of_the_page_agree_with_the_shipped_scorecard() -> None:
    assert [*answers.contradictions(TODAY, SHIPPED)] == []


SIGNED = r"[−+][\d.,]+ %(?: \([^)]*\))?"
DIRECTED = (
    r"\b(?:takes?|took|adds?|costs?|worth|cuts?|saves?|lowers?|raises?|leaves?|shortens?|lengthens?|spares?)"
    r"(?: \w+){0,5}? "
)
AFTERWARDS = r" (?:off|above|below|more|less|longer|shorter|higher|lower|fewer)\b"
TWICE = re.compile(f"{DIRECTED}{SIGNED}|{SIGNED}{AFTERWARDS}")


@pytest.mark.parametrize(
    "twice", ["takes off −22 % (−26 % to −18 %)", "costs requests +5.1 %", "is +21 % above copies"]
)
def test_a_direction_that_words_and_sign_state_is_found(twice: str) -> None:
    assert TWICE.search(f"A copy {twice}.")


def test_no_sentence_of_the_page_states_a_direction_twice() -> None:
    page = " ".join(answer_page.page(TODAY, SHIPPED).split())
    assert TWICE.findall(page) == []


def test_the_page_and_its_pictures_are_what_make_today_writes() -> None:
    made = answer_page.files(TODAY, SHIPPED)
    there = {name: (ROOT / "docs" / name).read_text("utf-8") for name in made}
    assert there == made, "write them again: .venv/bin/python docs/today.py"
    pictures = {file.name for file in (ROOT / "docs" / answer_page.PICTURES).iterdir()}
    assert pictures == {Path(name).name for name in made if name.endswith(".svg")}


def test_the_readme_shows_the_table_of_ideas_as_its_second_picture() -> None:
    shown = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text("utf-8"))
    assert shown[1] == f"docs/{answer_page.PICTURES}/ideas.svg"


def test_a_stale_row_is_said_on_the_page() -> None:
    paper = read()
    old = Scorecard([replace(row, results=_core.RESULTS - 1) for row in card().rows])
    assert "older version" in answer_page.page(paper, old)
    assert "older version" not in answer_page.page(paper, card())
