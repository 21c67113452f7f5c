"""Claims as people see them: in the terminal and on the page."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailcut import _core, claims
from tailcut.claims import Row, Scorecard, Verdict, page
from tailcut.claims.scorecard import Point
from tailcut.claims.verdict import Number
from tailcut.cli import app

PAPERS = [*claims.load().values()]


def row(claim: str, verdict: Verdict, number: Number, results: int = _core.RESULTS, reading: str = "stated") -> Row:
    return Row(
        claim, reading, "sim", (Point({"traffic.load": 0.5}, number, verdict),), verdict, results, (1, 2), ("f00",)
    )


@pytest.fixture
def card(tmp_path: Path) -> Path:
    file = tmp_path / "scorecard.json"
    rows = [
        row("repnet/fig5-repflow-mean", Verdict.REPRODUCED, Number(-0.14, -0.17, -0.11)),
        row("repnet/fig5-repflow-mean", Verdict.NOT, Number(0.3, 0.2, 0.4), reading="96 KB a port"),
        row("rps/fig4a", Verdict.NOT, Number(0.5, 0.4, 0.6), results=_core.RESULTS - 1),
    ]
    Scorecard(rows).write(file)
    return file


def said(*arguments: str) -> str:
    return " ".join(CliRunner().invoke(app, ["claims", *arguments], env={"COLUMNS": "150"}).output.split())


def test_the_list_has_each_claim_with_both_numbers_and_the_verdict(card: Path) -> None:
    shown = said("--scorecard", str(card))
    assert "repnet/fig5-repflow-mean −15 % −14 % (−17 % to −11 %) reproduced" in shown
    assert re.search(r"106 claims as stated: 1 reproduced, 1 not, 2 cannot be shown, .* not run yet", shown)


def test_stale_rows_are_marked_and_counted(card: Path) -> None:
    shown = said("--scorecard", str(card))
    assert "not (of an older version)" in shown
    assert "1 row is of an older version" in shown


def test_shipping_a_scorecard_with_stale_rows_is_refused(card: Path, tmp_path: Path) -> None:
    assert "TC-K004" in said("--current", "--scorecard", str(card))
    assert said("--current", "--scorecard", str(tmp_path / "none.json")) == ""


def test_another_reading_can_be_listed(card: Path) -> None:
    shown = said("--scorecard", str(card), "--reading", "96 KB a port")
    assert "repnet/fig5-repflow-mean −15 % +30 % (+20 % to +40 %) not" in shown
    assert "rps/fig4a" not in shown


def test_an_unknown_claim_is_refused_with_the_likely_one() -> None:
    assert "did you mean rps/fig4b?" in said("run", "rps/fig4A")


def test_claims_run_predicts_its_time_and_fills_the_scorecard(tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    options = ["--small", "--scorecard", str(card), "--out", str(tmp_path / "runs")]
    assert "2 runs are missing" in said("run", "repnet/fig2-alike", *options)
    assert [one.claim for one in Scorecard.parse(card.read_text()).rows] == ["repnet/fig2-alike"]
    assert "0 runs are missing" in said("run", "repnet/fig2-alike", *options)


# --- the page -------------------------------------------------------------------------------------


@pytest.fixture
def html(card: Path) -> str:
    return page.render(PAPERS, Scorecard.parse(card.read_text()))


def test_the_page_has_every_claim_and_loads_nothing_from_elsewhere(html: str) -> None:
    assert all(f'id="{claim.id}"' in html for paper in PAPERS for claim in paper.claims)
    assert not re.search(r'(src|href)="(https?:)?//', html)
    assert "<script" not in html


def test_the_page_names_the_command_that_makes_a_row_again(html: str) -> None:
    assert "tailcut claims run repnet/fig5-repflow-mean --reading &#39;96 KB a port&#39;" in html


def test_the_same_scorecard_gives_the_same_page(html: str, card: Path) -> None:
    assert page.render(PAPERS, Scorecard.parse(card.read_text())) == html
