"""How often the intervals of changes cover a truth that is known: the study of docs/components/summaries.md, small.

The populations are simulated: many seeds of flows under two schemes, with what makes tails hard (bursts that share
their luck, episodes, rare timeouts). The truth is the change between all flows of all seeds; a draw is five of them.
"""

from collections.abc import Callable

import numpy as np
import pytest

from tailcut.results import estimates
from tailcut.results.estimates import PooledTimes
from tailcut.results.statistics import Values

SEEDS_OF_A_DRAW = 5
Draw = Callable[[np.random.Generator, int], tuple[Values, Values]]


def bursts(random: np.random.Generator, flows: int, mean: float, deviation: float) -> list[Values]:
    """A normal value per burst of flows under either scheme, half of it in common."""
    of = np.cumsum(random.random(flows) < 1 / mean)
    both = random.normal(0, deviation * 0.5**0.5, of[-1] + 1)
    return [(both + random.normal(0, deviation * 0.5**0.5, of[-1] + 1))[of] for _ in range(2)]


def lognormal(random: np.random.Generator, flows: int) -> tuple[Values, Values]:
    """Flows of several sizes in bursts of ten that share their luck; seeds differ in level."""
    level, size = random.normal(0, 0.2), random.normal(0, 0.5, flows)
    one, other = (np.exp(level + size + luck + random.normal(0, 0.5, flows)) for luck in bursts(random, flows, 10, 0.6))
    return one, other


def episodes(random: np.random.Generator, flows: int) -> tuple[Values, Values]:
    """Every 150 flows about ten in a row take seven times as long, most of them under both schemes."""

    def hit(rate: float) -> Values:
        inside = np.zeros(flows)
        for start in np.flatnonzero(random.random(flows) < rate / 150):
            inside[start : start + random.geometric(0.1)] = 1
        return inside

    common, size, level = hit(0.7), random.normal(0, 0.6, flows), random.normal(0, 0.15)
    one, other = (
        np.exp(
            level + size + random.normal(0, 0.3, flows) + np.maximum(common, hit(0.3)) * random.normal(2, 0.4, flows)
        )
        for _ in range(2)
    )
    return one, other


def timeouts(random: np.random.Generator, flows: int) -> tuple[Values, Values]:
    """Draws times in which one flow in a thousand waits for a timer of 200 times the usual, in pairs."""
    size, level = random.normal(0, 0.5, flows), random.normal(0, 0.1)

    def under_one() -> Values:
        late = np.zeros(flows)
        for start in np.flatnonzero(random.random(flows) < 1 / 2000):
            late[start : start + 2] = 1
        return np.asarray(np.exp(level + size + random.normal(0, 0.4, flows)) + 200 * late)

    return under_one(), under_one()


def coverage(draw: Draw, flows: int, name: str, draws: int) -> float:
    """The share of draws of five seeds whose interval holds the truth, in percent."""
    random = np.random.default_rng(1)
    population = [[np.sort(side) for side in draw(random, flows)] for _ in range(300)]
    base, ours = (PooledTimes(dict(enumerate(side))) for side in zip(*population, strict=True))
    truth = ours.values[name] / base.values[name] - 1
    covered = 0
    for _ in range(draws):
        chosen = tuple(sorted(random.choice(len(population), SEEDS_OF_A_DRAW, replace=False).tolist()))
        found = estimates.change(base.only(chosen), ours.only(chosen), name)
        assert found is not None
        covered += found.low is not None and found.high is not None and found.low <= truth <= found.high
    return 100 * covered / draws


CELLS = [
    (lognormal, 300, "mean", 96),
    (lognormal, 300, "p99", 96),
    (episodes, 300, "p50", 98),
    (episodes, 3_000, "p99", 96),
    (timeouts, 3_000, "p99", 96),
]
"""A population, its flows a seed, a statistic, and how often the study found its interval to cover (the median)."""


@pytest.mark.parametrize(("draw", "flows", "name", "found"), CELLS[:3])
def test_an_interval_over_five_seeds_covers_the_truth_about_as_often_as_the_study_found(
    draw: Draw, flows: int, name: str, found: float
) -> None:
    assert coverage(draw, flows, name, draws=150) == pytest.approx(found, abs=5)


@pytest.mark.soak
@pytest.mark.parametrize(("draw", "flows", "name", "found"), CELLS)
def test_an_interval_over_five_seeds_covers_the_truth_within_two_points_of_the_study(
    draw: Draw, flows: int, name: str, found: float
) -> None:
    assert coverage(draw, flows, name, draws=2_000) == pytest.approx(found, abs=2)
