"""Claims from the runs that they need: the small variants, all together in less than a minute."""

from pathlib import Path

import pytest

import tailcut
from tailcut import ClaimsError, claims
from tailcut.claims import Claim, Row, Scorecard, Verdict, evaluate, make

PAPERS = [*claims.load().values()]


def of(*names: str) -> list[Claim]:
    every = [claim for paper in PAPERS for claim in paper.claims]
    return [claim for claim in every if not names or claim.paper in names or claim.id in names]


def made(directory: Path, chosen: list[Claim], backend: str = "sim", *, small: bool = True) -> list[Row]:
    found: list[Row] = []
    for batch in make.batches(PAPERS, chosen, backend, small=small):
        found += make.carry_out(batch, directory)
    return found


def against_the_scorecard(rows: list[Row]) -> set[str]:
    """Returns the claims whose small variant has not the direction that their row of the scorecard shows."""
    card, by_id = Scorecard.shipped(), {claim.id: claim for claim in of()}
    found = set()
    for small in rows:
        claim = by_id[small.claim]
        full = card.main(claim)
        if full is not None and full.backend == small.backend:
            said = evaluate.direction(claim, full, decided=True)
            if said and evaluate.direction(claim, small) != said:
                found.add(claim.id)
    return found


@pytest.mark.parametrize("paper", [paper.name for paper in PAPERS])
def test_every_claim_has_a_row_from_its_small_variant_in_the_direction_of_the_scorecard(
    paper: str, tmp_path: Path
) -> None:
    rows = made(tmp_path / "claims", of(paper))
    assert {row.claim for row in rows} == {claim.id for claim in of(paper) if "sim" in claim.backends}
    shown = [point.number for row in rows for point in row.points]
    assert sum(number is not None for number in shown) > 0.8 * len(shown)
    assert against_the_scorecard(rows) == {claim.id for claim in of(paper) if claim.small}


def test_the_analysis_answers_without_runs_and_is_exact(tmp_path: Path) -> None:
    rows = made(tmp_path / "claims", of("repflow/fig4", "repflow/fig6"), "model", small=False)
    assert [row.verdict for row in rows] == [Verdict.REPRODUCED, Verdict.REPRODUCED]
    assert [row.runs for row in rows] == [(), ()]


def test_the_authors_own_numbers_answer_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    (fast,) = made(tmp_path, of("repnet/fig11-fast"), "authors", small=False)
    assert (fast.runs, fast.seeds) == ((), ())
    number = fast.points[0].number
    assert number is not None
    assert number.exact
    times = Path("experiments/papers/repnet/authors/app_data-time-sin.dat").read_text().split()
    assert number.value == pytest.approx(sum(float(time) <= 100 for time in times) / len(times))


def test_the_authors_own_numbers_are_in_checkouts_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClaimsError, match="are not at experiments") as refused:
        made(tmp_path, of("repnet/fig11-fast"), "authors", small=False)
    assert refused.value.code == "TC-K005"


def test_simulated_runs_do_not_count_as_lab_runs(tmp_path: Path) -> None:
    chosen = of("repnet/fig5-repflow-mean")
    made(tmp_path / "claims", chosen)
    (batch,) = make.batches(PAPERS, chosen, "lab", small=True)
    assert len(make.missing(batch, tmp_path / "claims")) == len(batch.runs)


@pytest.fixture
def batch() -> make.Batch:
    (found,) = make.batches(PAPERS, of("repnet/fig2-repflow", "repnet/fig2-alike"), small=True)
    return found


def test_only_the_runs_that_claims_need_are_made(tmp_path: Path) -> None:
    (batch,) = make.batches(PAPERS, of("repnet/fig2-alike"), small=True)
    [*make.carry_out(batch, tmp_path / "claims")]
    assert len([*(tmp_path / "claims/runs").iterdir()]) == 2
    assert len(batch.plan["runs"]) == 3


def test_claims_share_the_runs_that_they_need(tmp_path: Path, batch: make.Batch) -> None:
    one, *_ = make.batches(PAPERS, of("repnet/fig2-alike"), small=True)
    [*make.carry_out(one, tmp_path / "claims")]
    assert len(make.missing(batch, tmp_path / "claims")) == 1
    assert make.expected_seconds([batch, batch], tmp_path / "claims") == pytest.approx(
        make.expected_seconds([batch], tmp_path / "claims")
    )


def test_experiments_and_readings_share_one_directory(tmp_path: Path) -> None:
    chosen = of("tinyflow/fig2-both-paths", "repnet/fig2-alike")
    made(tmp_path / "claims", chosen)
    made(tmp_path / "claims", chosen)
    assert tailcut.open_results(tmp_path / "claims").plan["overrides"]["experiment"].startswith("papers/")


def test_a_reading_is_another_run_of_the_same_experiment() -> None:
    stated, other = make.batches(PAPERS, of("rps/fig5-after"), readings=())
    assert [batch.reading.name for batch in (stated, other)] == ["stated", "threshold 30"]
    assert not {run["id"] for run in stated.runs} & {run["id"] for run in other.runs}
