"""The scorecard: a file that survives, tells what is stale, and from which the verdicts follow."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tailcut import ClaimsError, _core, claims
from tailcut.claims import Row, Scorecard, Verdict, make, verdict, words
from tailcut.claims.scorecard import Point
from tailcut.claims.verdict import Number

PAPERS = claims.load()
CLAIMS = {claim.id: claim for paper in PAPERS.values() for claim in paper.claims}
CLAIM = CLAIMS["repflow/fig8-mean"]
SHIPPED = Scorecard.shipped()
ROOT = Path(__file__).parents[2]


def row(**changes: object) -> Row:
    points = (Point({"traffic.load": 0.4}, Number(-0.27, -0.3, -0.24), Verdict.DIRECTION), Point({}, None, Verdict.NOT))
    made = Row(CLAIM.id, "stated", "sim", points, Verdict.DIRECTION, _core.RESULTS, (1, 2), ("ab", "cd"))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_written_scorecard_reads_back_the_same() -> None:
    card = Scorecard([row(), row(reading="ns-3.10"), row(backend="model", seeds=(), runs=())])
    assert Scorecard.parse(card.text()).rows == card.rows


def test_a_row_is_one_line_so_that_a_change_shows_as_one() -> None:
    before, after = (Scorecard([row(), row(backend="lab", results=of)]).text() for of in (1, 2))
    assert sum(one != other for one, other in zip(before.splitlines(), after.splitlines(), strict=True)) == 1


def test_a_new_row_replaces_the_one_of_the_same_claim() -> None:
    card = Scorecard([row()])
    card.put(row(verdict=Verdict.NOT))
    assert [one.verdict for one in card.rows] == [Verdict.NOT]


def test_rows_of_another_version_of_results_are_stale() -> None:
    old = row(results=_core.RESULTS - 1)
    assert Scorecard([old, row(backend="lab")]).stale == [old]


def test_a_claim_is_judged_as_stated() -> None:
    card = Scorecard([row(reading="ns-3.10", verdict=Verdict.REPRODUCED)])
    assert card.verdict(CLAIM) is Verdict.ABSENT
    card.put(row())
    assert card.verdict(CLAIM) is Verdict.DIRECTION
    assert card.verdict(CLAIMS["repflow/table1-consistent"]) is Verdict.CONTRADICTION
    assert card.verdict(CLAIMS["repnet/fig10-overhead"]) is Verdict.CANNOT


def test_the_authors_own_numbers_judge_no_claim() -> None:
    claim = CLAIMS["repnet/fig2-alike"]
    card = Scorecard([row(claim=claim.id, backend="authors")])
    assert len(card.of(claim)) == 1
    assert card.verdict(claim) is Verdict.ABSENT


def test_a_number_of_zeros_is_read_back() -> None:
    nothing = Number(0.0, 0.0, 0.0, beyond=0)
    row = replace(SHIPPED.rows[0], points=(replace(SHIPPED.rows[0].points[0], number=nothing),))
    (found,) = Scorecard.parse(Scorecard([row]).text()).rows
    assert found.points[0].number == nothing


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0, "rows": []}', '{"format": 1, "rows": [{"claim": "x"}]}'])
def test_a_file_that_is_no_scorecard_is_refused(text: str) -> None:
    with pytest.raises(ClaimsError, match="no scorecard of this version") as refused:
        Scorecard.parse(text)
    assert refused.value.code == "TC-K002"


# --- the one that comes with Tailcut --------------------------------------------------------------


def test_every_row_belongs_to_an_existing_claim() -> None:
    rows = [row for row in SHIPPED.rows if not row.small]
    known = [
        row for row in rows
        if row.claim in CLAIMS and row.reading in CLAIMS[row.claim].readings
        and row.backend in CLAIMS[row.claim].backends
    ]  # fmt: skip
    assert SHIPPED.rows == known


def test_the_readme_says_how_many_claims_have_which_verdict() -> None:
    said = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert words.all_totals(SHIPPED, claims.load().values()) in said


def test_verdicts_follow_from_the_numbers_and_the_rule() -> None:
    for row in SHIPPED.rows:
        claim = CLAIMS[row.claim]
        targets = claim.target if len(claim.target) > 1 else claim.target * len(row.points)
        of_points = [
            Verdict.UNDECIDED if point.number is None else verdict.judge(point.number, target)
            for point, target in zip(row.points, targets, strict=True)
        ]
        assert [point.verdict for point in row.points] == of_points, row.claim
        assert row.verdict is verdict.over_points(of_points, most=claim.most), row.claim


@pytest.mark.parametrize("backend", ["model", "authors"])
def test_rows_that_need_no_runs_equal_freshly_computed_ones(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    found = [
        row
        for batch in make.batches([*PAPERS.values()], [*CLAIMS.values()], backend, ())
        for row in make.carry_out(batch, tmp_path / "claims")
    ]
    now = {row.key: row for row in Scorecard.parse(Scorecard(found).text()).rows}
    kept = {row.key: row for row in SHIPPED.rows if row.backend == backend}
    assert {key: row.points for key, row in kept.items()} == {key: row.points for key, row in now.items()}


def test_the_shipped_scorecard_is_in_canonical_form() -> None:
    assert json.loads(SHIPPED.text())["rows"] == json.loads(_core.scorecard())["rows"]
