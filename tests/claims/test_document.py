"""Claims as their files state them."""

import re
from pathlib import Path

import pytest

from tailcut import ClaimsError, claims
from tailcut.claims import document, make
from tailcut.claims.document import STATED

MINIMAL = """
title = "A paper"
source = "Somebody, 2014"

[[claims]]
id = "first"
says = "It is faster."
where = "figure 1"
experiment = "fig1"
measure = { metric = "fct", statistic = "p99" }
compare = { kind = "change", scheme = "B", against = "A" }
paper = { values = [-0.4] }
"""


def changed(old: str, new: str) -> str:
    assert old in MINIMAL
    return MINIMAL.replace(old, new)


def test_a_claim_belongs_to_its_paper_and_defaults_to_the_stated_reading() -> None:
    (claim,) = document.read("paper", MINIMAL).claims
    assert (claim.id, claim.paper, claim.experiment) == ("paper/first", "paper", "papers/paper/fig1")
    assert (claim.readings, claim.backends) == ((STATED,), ("sim",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed('metric = "fct"', 'metric = "speed"'), "paper, first, measure: metric = 'speed' must be one of fct"),
        (changed('statistic = "p99"', 'statistic = "p95"'), "statistic = 'p95' must be one of mean"),
        (changed('kind = "change"', 'kind = "better"'), "paper, first, compare: kind = 'better' must be one of value"),
        (changed(', against = "A"', ""), "needs against or against_at: what it is compared with"),
        (changed('against = "A"', "against_quickest_of = 0"), "against_quickest_of = 0 must be at least 1"),
        (changed('"fct"', '"drops"').replace('against = "A"', "quickest_of = 2"), "needs one of the metrics fct, slow"),
        (changed("values = [-0.4]", 'read = "printed"'), "needs one of value, values"),
        (changed('where = "figure 1"', ""), "paper, first: where is missing"),
        (changed('where = "figure 1"', "where = 1"), "where = 1 has the wrong type"),
        (changed('where = "figure 1"', 'where = "figure 1"\nwhy = "no"'), "why: unknown key"),
        (changed('paper = {', 'readings = ["stated", "other"]\npaper = {'), "unlike stated, other"),
        (changed('experiment = "fig1"', ""), "paper, first: a claim without experiment needs because"),
        (MINIMAL + MINIMAL[MINIMAL.index("[[claims]]") :], "paper/first is defined twice"),
        ("title = ", "claims of paper: Invalid value"),
    ],
)  # fmt: skip
def test_an_unknown_word_in_a_claims_file_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ClaimsError, match=re.escape(said)) as refused:
        document.read("paper", text)
    assert refused.value.code == "TC-K001"


def test_a_sign_takes_no_tolerance_and_needs_no_size() -> None:
    (claim,) = document.read("paper", changed("values = [-0.4]", 'sign = "less"')).claims
    assert claim.target[0].accepted == (float("-inf"), 0.0)


def test_readings_set_dotted_keys_however_they_are_nested() -> None:
    text = MINIMAL.replace(
        "[[claims]]", '[readings.slow]\nsays = "slow"\nset = { transport.min_rto = "200ms" }\n\n[[claims]]'
    )
    assert document.read("paper", text).readings["slow"].overrides == {"transport.min_rto": "200ms"}


def test_readings_quote_names_of_schemes_that_are_no_bare_keys() -> None:
    text = MINIMAL.replace(
        "[[claims]]",
        '[readings.slow]\nsays = "slow"\nset = { schemes."MPTCP, 2".transport.kind = "tcp" }\n\n[[claims]]',
    )
    expected = {'schemes."MPTCP, 2".transport.kind': "tcp"}
    assert document.read("paper", text).readings["slow"].overrides == expected


# --- those that come with Tailcut -----------------------------------------------------------------

PAPERS = claims.load()
EVERY = [claim for paper in PAPERS.values() for claim in paper.claims]


def test_all_five_papers_and_the_known_answers_have_claims() -> None:
    assert {name: len(paper.claims) >= 4 for name, paper in PAPERS.items()} == dict.fromkeys(
        ["mmptcp", "repflow", "repnet", "rps", "tinyflow", "known", "lab", "uet", "today"], True
    )


@pytest.mark.parametrize("backend", ["sim", "model", "lab", "authors"])
def test_every_claim_fits_its_experiment_under_each_of_its_readings(backend: str) -> None:
    found = make.batches([*PAPERS.values()], EVERY, backend, ())
    asked = {(claim.id, name) for claim in EVERY if backend in claim.backends for name in claim.readings}
    assert {(claim.id, batch.reading.name) for batch in found for claim in batch.claims} == asked
    assert all(batch.runs for batch in found)


def test_every_claim_ends_its_sentence_and_says_where_the_paper_has_it() -> None:
    assert [claim.id for claim in EVERY if not (claim.says.endswith(".") and claim.where)] == []


def test_a_claim_that_cannot_be_tested_states_the_reason() -> None:
    assert [claim.id for claim in EVERY if claim.experiment is None and not claim.because] == []


def test_the_authors_own_numbers_are_named_as_their_files_are() -> None:
    folder = Path(__file__).parents[2] / "experiments/papers/repnet/authors"
    named = [name for claim in EVERY if claim.authors for name in (*claim.authors.scheme, *claim.authors.against)]
    assert [name for name in named if not (folder / f"{name}.dat").exists()] == []
    assert {claim.paper for claim in EVERY if claim.authors} == {"repnet"}


def test_tolerances_belong_to_no_claim() -> None:
    files = Path(__file__).parents[2].glob("experiments/papers/*/claims.toml")
    assert [file for file in files if "tolerance" in file.read_text()] == []
