"""The one rule for verdicts: our interval against what the paper says."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailcut.claims.verdict import Number, Precision, Target, Verdict, judge, over_points

LOWER = Target(-0.45, -0.40, change=True)
"""A change of −45 to −40 %, printed: five points more either way count."""
R, D, U, N = Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.UNDECIDED, Verdict.NOT


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (Number(-0.42, -0.48, -0.36), R),  # within
        (Number(-0.42, -0.60, -0.30), R),  # the value within, the interval narrower than the effect
        (Number(-0.42, -0.80, 0.30), U),  # wider than the effect
        (Number(-0.27, -0.30, -0.24), D),
        (Number(-0.33, -0.36, -0.30), D),  # reaches what counts, the value does not
        (Number(-0.03, -0.08, 0.02), N),  # not told from zero
        (Number(0.20, 0.10, 0.30), N),  # the other way
        (Number(-0.42), U),  # one seed
        (Number(-0.42, -0.48, -0.36, beyond=9), U),
        (Number(-0.42, -0.48, -0.36, beyond=10), R),
        (Number(-0.42, exact=True), R),
    ],
)
def test_a_change_is_judged_by_its_interval(number: Number, verdict: Verdict) -> None:
    assert judge(number, LOWER) is verdict


@pytest.mark.parametrize(
    ("value", "verdict"), [(175, R), (158, R), (157, N), (192, R), (193, N)]
)  # fmt: skip
def test_a_printed_value_may_differ_by_a_tenth_and_has_no_direction(value: float, verdict: Verdict) -> None:
    assert judge(Number(value, value - 0.4, value + 0.4), Target(175, 175)) is verdict


@pytest.mark.parametrize(
    ("precision", "worst"), [(Precision.PRINTED, -0.35), (Precision.READ, -0.32), (Precision.ABOUT, -0.30)]
)
def test_how_exactly_a_number_can_be_read_decides_how_far_ours_may_be(precision: Precision, worst: float) -> None:
    target = Target(-0.40, -0.40, precision, change=True)
    assert judge(Number(worst, worst, worst - 1e-9), target) is R
    assert judge(Number(worst + 0.01, worst + 0.01, worst + 0.01), target) is D


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (Number(0.01, -0.02, 0.04), R),
        (Number(0.08, 0.06, 0.10), N),
        (Number(0.00, -0.30, 0.30), U),
        (Number(0.04, 0.01, 0.07), R),
    ],
)
def test_no_change_is_a_claim_of_its_own(number: Number, verdict: Verdict) -> None:
    assert judge(number, Target(-0.05, 0.05, change=True, alike=True)) is verdict


@pytest.mark.parametrize(
    ("number", "verdict"), [(Number(-0.2, -0.3, -0.1), R), (Number(0.2, 0.1, 0.3), N), (Number(-0.2, -0.5, 0.1), U)]
)
def test_a_sign_is_decided_only_if_its_interval_excludes_zero(number: Number, verdict: Verdict) -> None:
    assert judge(number, Target(None, 0.0, change=True, sign=True)) is verdict


def test_more_than_a_bound_is_enough() -> None:
    assert judge(Number(-0.9, -0.95, -0.85), Target(None, -0.60, change=True)) is R


@pytest.mark.parametrize(
    ("verdicts", "of_all", "of_most"),
    [
        ([R, R, R], R, R),
        ([R, R, D], D, R),
        ([R, D, D], D, D),
        ([R, R, N], N, R),
        ([R, U, N], N, U),
        ([R, R, U], U, R),
        ([N, N, U], N, N),
        ([D, U, U], U, U),
        ([], U, U),
    ],
)
def test_a_claim_of_several_points_holds_at_all_or_at_most_of_them(
    verdicts: list[Verdict], of_all: Verdict, of_most: Verdict
) -> None:
    assert (over_points(verdicts, most=False), over_points(verdicts, most=True)) == (of_all, of_most)


ends = st.floats(-2, 2)


@given(ends, ends, ends, ends, ends, st.sampled_from(Precision))
def test_a_narrower_interval_around_the_same_value_never_undoes_a_reproduction(
    one: float, other: float, value: float, left: float, right: float, precision: Precision
) -> None:
    target = Target(min(one, other), max(one, other), precision, change=True)
    wide = Number(value, value - abs(left), value + abs(right))
    narrow = Number(value, value - abs(left) / 2, value + abs(right) / 2)
    if judge(wide, target) is R:
        assert judge(narrow, target) is R


@given(ends, ends, st.sampled_from(Precision))
def test_the_papers_own_number_is_reproduced(one: float, other: float, precision: Precision) -> None:
    target = Target(min(one, other), max(one, other), precision, change=True)
    middle = (one + other) / 2
    assert judge(Number(middle, middle, middle), target) is R
    assert not math.isnan(target.effect)
