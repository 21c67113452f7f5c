"""Pooled values, their changes, intervals and stars: reference values of docs/components/summaries.md, and edges."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from tailcut.results import estimates, statistics
from tailcut.results.estimates import Change, PooledTimes
from tailcut.results.samples import ALL, Sample, over_runs
from tailcut.results.statistics import STATISTICS
from tailcut.results.summary import Cell

Seeds = Sequence[Sequence[float]]


def pool(seeds: Seeds) -> PooledTimes:
    return PooledTimes({seed: np.sort(np.array(values, dtype=np.float64)) for seed, values in enumerate(seeds)})


def change(base: Seeds, ours: Seeds, name: str) -> Change:
    found = estimates.change(pool(base), pool(ours), name)
    assert found is not None
    return found


ODD: tuple[Seeds, Seeds] = ([[1, 1, 1, 97], [50, 50], [9, 11]], [[2, 2, 2, 44], [40, 40], [18, 22]])
MANY: tuple[Seeds, Seeds] = (
    [[1000 + i * i * (7 + s) % 9973 for i in range(240)] for s in range(5)],
    [[1000 + i * i * (5 + s) % 9973 for i in range(240)] for s in range(5)],
)


@pytest.mark.parametrize(
    ("seeds", "name", "values", "percents"),
    [
        (ODD, "mean", (27.5, 21.25), (-22.7273, -74.0204, 129.8370)),
        (ODD, "p50", (9, 18), (100, -72.1432, 1335.9153)),
        (MANY, "mean", (5731.9258, 5635.2092), (-1.6873, -3.7628, 0.4329)),
        (MANY, "p50", (5608, 5526), (-1.4622, -8.7778, 6.4401)),
    ],
)
def test_a_change_is_the_quotient_of_the_two_pooled_values_with_its_interval(
    seeds: tuple[Seeds, Seeds], name: str, values: tuple[float, float], percents: tuple[float, float, float]
) -> None:
    assert [pool(side).values[name] for side in seeds] == pytest.approx(values, abs=1e-4)
    found = change(*seeds, name)
    assert found.low is not None
    assert found.high is not None
    assert [100 * end for end in (found.value, found.low, found.high)] == pytest.approx(percents, abs=1e-4)


def errors(seeds: tuple[Seeds, Seeds], name: str) -> tuple[float, float]:
    base, ours = (pool(side) for side in seeds)
    moves = None if name == "mean" else ours.influence(name) - base.influence(name)
    return estimates.errors(np.log(ours.without[name] / base.without[name]), moves)


def test_the_error_is_the_jackknifes_of_a_mean_and_of_percentiles_woodruffs_besides() -> None:
    assert [*errors(ODD, "mean")] == pytest.approx([0.2533389, 0], abs=1e-7)
    assert [*errors(ODD, "p50")] == pytest.approx([0, 0.4581454], abs=1e-7)
    assert [*errors(MANY, "mean")] == pytest.approx([0.00768491, 0], abs=1e-8)
    assert [*errors(MANY, "p50")] == pytest.approx([0.02778458, 0.02482725], abs=1e-8)


def test_seeds_that_all_gave_the_same_change_have_no_interval_and_no_star() -> None:
    found = change([[10, 20, 30], [20, 40]], [[10, 10, 20], [20, 20]], "mean")
    assert found.value == pytest.approx(-1 / 3)
    assert (found.low, found.high, found.sure, found.notes) == (None, None, False, (estimates.SAME_CHANGE,))


@pytest.mark.parametrize("name", STATISTICS)
def test_schemes_that_are_the_same_change_nothing(name: str) -> None:
    found = change(MANY[0], MANY[0], name)
    assert (found.value, found.low, found.sure) == (0, None, False)


def test_the_factor_is_students() -> None:
    degrees = [*range(1, 60), 239, 1000]
    assert [estimates.student(n) for n in degrees] == pytest.approx([t.ppf(0.975, n) for n in degrees], rel=1e-12)


@pytest.mark.parametrize(("name", "of_seed", "repeats", "sure"), [
    ("mean", 200, 1, True), ("mean", 200, 3, True), ("mean", 199, 1, False), ("mean", 199, 3, False),
    ("p99", 200, 2, True), ("p99", 199, 2, False),
])  # fmt: skip
def test_flows_that_the_lab_repeats_count_once_for_a_star(name: str, of_seed: int, repeats: int, sure: bool) -> None:
    def repeated(took: int) -> PooledTimes:
        runs = [np.sort(np.arange(of_seed) % 7 + took + 100.0 * seed) for seed in range(5)]
        samples = [over_runs([{ALL: Sample(run, None, of_seed, 0)}] * repeats)[ALL] for run in runs]
        return Cell(dict(enumerate(samples))).times

    found = estimates.change(repeated(90_000), repeated(45_000), name)
    assert found is not None
    assert found.sure == sure


def test_one_seed_has_a_change_without_an_interval() -> None:
    found = change([[100, 300]], [[50, 50]], "mean")
    assert (found.value, found.low, found.high, found.seeds, found.sure) == (-0.75, None, None, 1, False)


def test_only_seeds_that_both_have_count_and_the_note_says_over_how_many() -> None:
    found = change([[100], [900], []], [[80], [], [7]], "mean")
    assert found.value == pytest.approx(-0.2)
    assert found.notes[0] == "over 1 of 3 seeds"


def test_without_a_common_seed_there_is_no_change() -> None:
    assert estimates.change(pool([[1], []]), pool([[], [1]]), "mean") is None


def faster(flows: int, seeds: int) -> tuple[Seeds, Seeds]:
    """A scheme that halves the time of every flow but for a little noise."""
    random = np.random.default_rng(flows)
    base = [random.lognormal(0, 0.3, flows) for _ in range(seeds)]
    return [part.tolist() for part in base], [(part / 2 * random.lognormal(0, 0.01, flows)).tolist() for part in base]


@pytest.mark.parametrize(
    ("flows", "seeds", "name", "lacking"),
    [
        (200, 5, "mean", ()),
        (200, 5, "p99", ()),
        (2_000, 5, "p99_9", ()),
        (500, 4, "mean", ("no star: that takes five seeds",)),
        (500, 2, "mean", ("no star: that takes five seeds", "two seeds hardly tell how far seeds differ")),
        (199, 5, "mean", ("no star: fewer than 1,000 flows, which may miss rare timeouts",)),
        (199, 5, "p99", ("no star: fewer than ten flows lie beyond p99 (that takes 1,000 flows)",)),
        (1_999, 5, "p99_9", ("no star: fewer than ten flows lie beyond p99.9 (that takes 10,000 flows)",)),
    ],
)
def test_a_star_takes_five_seeds_and_enough_flows(flows: int, seeds: int, name: str, lacking: tuple[str, ...]) -> None:
    found = change(*faster(flows, seeds), name)
    assert found.high is not None
    assert found.high < 0
    assert (found.sure, found.notes) == (not lacking, lacking)


def test_a_percentile_in_a_gap_has_a_very_wide_interval_and_says_what_that_may_come_from() -> None:
    """About as many flows time out as lie beyond the percentile: it jumps with each."""
    late = [1, 3, 2, 4, 2]
    base = [[1.0] * (200 - n) + [1000.0] * n for n in late]
    found = change(base, [*base[1:], base[0]], "p99")
    assert found.notes == ("flows that time out may be about as many as lie beyond p99",)
    assert not found.sure


times = st.lists(st.integers(0, 10**12), min_size=0, max_size=12)
seeds = st.lists(times, min_size=1, max_size=5)


@given(seeds, seeds, st.sampled_from(STATISTICS))
def test_whatever_the_times_a_change_is_a_number_within_its_interval_and_above_minus_all(
    base: Seeds, ours: Seeds, name: str
) -> None:
    found = estimates.change(pool(base), pool(ours), name)
    if found is None:
        return
    assert math.isfinite(found.value)
    assert (found.low is None) == (found.high is None)
    if found.low is not None and found.high is not None:
        assert -1 <= found.low <= found.value <= found.high < math.inf


@given(seeds.filter(lambda of: sum(map(bool, of)) > 1), st.sampled_from(STATISTICS))
def test_leaving_a_seed_out_gives_the_statistic_of_all_flows_of_the_others(of: Seeds, name: str) -> None:
    of = [values for values in of if values]
    others = [np.sort(np.concatenate([*of[:left], *of[left + 1 :]]).astype(np.float64)) for left in range(len(of))]
    assert pool(of).without[name] == pytest.approx([statistics.of(values)[name] for values in others], rel=1e-15)


@given(seeds.filter(any), st.sampled_from(STATISTICS))
def test_a_value_is_one_of_all_flows_within_its_interval(of: Seeds, name: str) -> None:
    together = pool(of)
    known = estimates.interval(together, name)
    if known.low is not None and known.high is not None:
        assert 0 <= known.low <= together.values[name] <= known.high < math.inf
