"""Values of the flows of several seeds, the change between two schemes, and their 95 % intervals.

Every value, change, interval and star that Tailcut shows is computed here. The values are those of all flows of all
seeds together; a change is the quotient of two of them, less one: below zero is faster. Intervals are Student-t
intervals of the logarithm, by a jackknife over seeds, since flows of one run influence each other and runs do not. For
percentiles the error is the larger of the jackknife's and Woodruff's. The page docs/components/summaries.md has the
formulas and how they were validated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from tailcut.results import statistics
from tailcut.results.statistics import CONFIDENCE, PERCENTILES, STATISTICS, Values, rank

SURE_SEEDS = 5
"""Fewest seeds with which an interval that excludes zero has a star."""
SURE_FLOWS = 1000
"""A mean of fewer flows may have met none of the rare timeouts that decide it."""
SURE_BEYOND = 10
"""Fewest flows beyond a percentile whose change has a star."""
SAME = 1e-9
"""Half an interval of a logarithm up to which all seeds are said to have given the same."""
APART = 10.0
"""Ends of a percentile's interval this factor apart hint at a gap in the distribution."""
LARGEST_EXPONENT = 600.0  # a float can hold its product with any time

NO_STAR = "no star: "
GAP = "flows that time out may be about as many as lie beyond "
FEW_SEEDS = f"{NO_STAR}that takes five seeds"
TWO_SEEDS = "two seeds hardly tell how far seeds differ"
FEW_FLOWS = f"{NO_STAR}fewer than {SURE_FLOWS:,} flows, which may miss rare timeouts"
SAME_CHANGE = "all seeds gave the same change"
OFTEN = "where nothing changed, about 4 of 100 changes have a star"


def too_few_beyond(name: str) -> str:
    """Says why a percentile's change has no star."""
    needed = math.ceil(SURE_BEYOND / (1 - PERCENTILES[name]))
    return f"{NO_STAR}fewer than ten flows lie beyond {label(name)} (that takes {needed:,} flows)"


def gap_at(name: str) -> str:
    """Returns a note on the possible cause of a very wide interval of a percentile."""
    return f"{GAP}{label(name)}"


def label(name: str) -> str:
    """A statistic's name for people: ``p99_9`` is ``p99.9``."""
    return name.replace("_", ".")


class PooledTimes:
    """The values of one class of flows under one scheme, by seed and together.

    Args:
        of_seeds: by seed, its values in ascending order; seeds without values are left out.
        different: by seed, how many different flows its values are of; by default as many as there are values.
    """

    def __init__(self, of_seeds: Mapping[int, Values], different: Mapping[int, int] | None = None) -> None:
        self._parts = {seed: part for seed, part in sorted(of_seeds.items()) if len(part)}
        self._different = {seed: len(part) for seed, part in self._parts.items()} | dict(different or {})
        self.seeds = tuple(self._parts)
        self._moves: dict[str, Values] = {}

    @cached_property
    def _together(self) -> tuple[Values, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """All values in ascending order, and the position of each one's seed."""
        values = np.concatenate([*self._parts.values()])
        owner = np.repeat(np.arange(len(self._parts)), [len(part) for part in self._parts.values()])
        order = np.argsort(values, kind="stable")
        return values[order], owner[order]

    @property
    def different(self) -> int:
        """The number of different flows; repeats of a seed draw no new paths."""
        return sum(self._different[seed] for seed in self.seeds)

    @cached_property
    def values(self) -> dict[str, float]:
        """Every statistic of all values; empty without values."""
        if not self.seeds:
            return {}
        # Sums of whole nanoseconds below 2^53 are exact, whatever the order of the rows.
        return statistics.of(self._together[0])

    def only(self, seeds: tuple[int, ...]) -> "PooledTimes":
        """The same without other seeds."""
        return (
            self if seeds == self.seeds else PooledTimes({seed: self._parts[seed] for seed in seeds}, self._different)
        )

    @cached_property
    def without(self) -> dict[str, Values]:
        """Every statistic without each seed in turn; needs two seeds."""
        values, owner = self._together
        by_seed = np.argsort(owner, kind="stable")
        sums = [float(part.sum()) for part in self._parts.values()]
        sizes = [len(part) for part in self._parts.values()]
        left: dict[str, list[float]] = {name: [] for name in STATISTICS}
        begin = 0
        for place, size in enumerate(sizes):
            own = by_seed[begin : begin + size]
            begin += size
            others = len(values) - size
            left["mean"].append(math.fsum(sums[:place] + sums[place + 1 :]) / others)
            # Before each value of the seed lie as many values of the others.
            before = own - np.arange(size)
            for name, fraction in PERCENTILES.items():
                at = statistics.rank(others, fraction) - 1
                left[name].append(float(values[at + np.searchsorted(before, at, side="right")]))
        return {name: np.array(of_seeds) for name, of_seeds in left.items()}

    def influence(self, name: str) -> Values:
        """By how much each seed moves the logarithm of the pooled percentile (Woodruff); needs two seeds."""
        if name not in self._moves:
            self._moves[name] = self._influence(name)
        return self._moves[name]

    def _influence(self, name: str) -> Values:
        values, owner = self._together
        seeds, total, fraction = len(self.seeds), len(values), PERCENTILES[name]
        up, down = fraction.numerator, fraction.denominator
        below = np.searchsorted(values, self.values[name], side="right")
        counted = np.bincount(owner[:below], minlength=seeds)
        sizes = np.array([len(part) for part in self._parts.values()])
        excess = (counted * down - sizes * up) / down
        step = max(math.sqrt(seeds / (seeds - 1) * float((excess**2).sum())), 1.0) / total
        low, high = max(up / down - step, 1 / total), min(up / down + step, 1.0)
        ends = [float(values[max(math.ceil(share * total - 1e-9), 1) - 1]) for share in (low, high)]
        if ends[0] <= 0 or high <= low:
            return np.zeros(seeds)
        slope = math.log(ends[1] / ends[0]) / (high - low)
        return np.array([-part / total * slope for part in excess.tolist()])


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval; without ends where there is none.

    Attributes:
        low: its lower end.
        high: its upper end.
        same: whether it is missing since all seeds gave the same.
    """

    low: float | None = None
    high: float | None = None
    same: bool = False


def interval(pool: PooledTimes, name: str) -> Interval:
    """The interval of a statistic of all values of a pool."""
    value = pool.values[name]
    if len(pool.seeds) == 1 or value <= 0 or min(pool.without[name]) <= 0:
        return Interval(same=len(pool.seeds) > 1 and len(set(pool.without[name])) == 1)
    moves = pool.influence(name) if name in PERCENTILES else None
    return _around(value, np.log(pool.without[name]), moves)


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a statistic from a baseline to another scheme.

    Attributes:
        value: the quotient of the two values less 1, over the seeds that both have: below zero is faster.
        low: the lower end of its interval, if it has one.
        high: the upper end.
        seeds: how many seeds both have.
        sure: whether it is told from zero: its interval excludes zero, and there are enough seeds and flows.
        notes: what a reader has to know of it.
    """

    value: float
    low: float | None
    high: float | None
    seeds: int
    sure: bool
    notes: tuple[str, ...]


def change(base: PooledTimes, ours: PooledTimes, name: str) -> Change | None:
    """The change from the baseline; None where the two have no seed in common, or the baseline's value is 0."""
    common = tuple(seed for seed in base.seeds if seed in ours.seeds)
    if not common:
        return None
    of_all = len({*base.seeds, *ours.seeds})
    base, ours = base.only(common), ours.only(common)
    if base.values[name] <= 0:
        return None
    ratio = ours.values[name] / base.values[name]
    known = _interval_of_change(base, ours, name, ratio) if len(common) > 1 and ratio > 0 else Interval()
    low, high = (None if end is None else end - 1 for end in (known.low, known.high))
    lacking = _lacking(base, ours, name)
    notes = [f"over {len(common)} of {of_all} seeds"] if len(common) < of_all else []
    if known.same:
        notes.append(SAME_CHANGE)
    elif len(common) > 1:
        notes += lacking
    apart = known.low is not None and known.high is not None and known.high > APART * known.low
    if name in PERCENTILES and apart and not lacking:
        notes.append(gap_at(name))
    excluded = low is not None and high is not None and (low > 0 or high < 0)
    return Change(ratio - 1, low, high, len(common), excluded and not lacking, tuple(notes))


def _interval_of_change(base: PooledTimes, ours: PooledTimes, name: str, ratio: float) -> Interval:
    if min(*base.without[name], *ours.without[name]) <= 0:
        return Interval()
    left = np.log(ours.without[name] / base.without[name])
    moves = ours.influence(name) - base.influence(name) if name in PERCENTILES else None
    return _around(ratio, left, moves)


def of_logarithm(value: float, left: Values) -> Interval:
    """The interval of a value above 0, given its logarithm without each seed in turn; needs two seeds."""
    return _around(value, left, None)


def _around(value: float, left: Values, moves: Values | None) -> Interval:
    """The interval of a value from its logarithm without each seed, and by how much each seed moves it."""
    half = student(len(left) - 1) * max(errors(left, moves))
    if half <= SAME:
        return Interval(same=True)
    factor = math.exp(min(half, LARGEST_EXPONENT))
    return Interval(value / factor, value * factor)


def errors(left: Values, moves: Values | None) -> tuple[float, float]:
    """The jackknife's standard error of a logarithm, and Woodruff's (0 for a mean)."""
    seeds = len(left)
    jackknife = math.sqrt((seeds - 1) / seeds * float(((left - left.mean()) ** 2).sum()))
    woodruff = 0.0 if moves is None else math.sqrt(seeds / (seeds - 1) * float(((moves - moves.mean()) ** 2).sum()))
    return jackknife, woodruff


def _lacking(base: PooledTimes, ours: PooledTimes, name: str) -> list[str]:
    """Returns what a change lacks for a star, apart from its interval."""
    found = []
    if len(base.seeds) < SURE_SEEDS:
        found.append(FEW_SEEDS)
        if len(base.seeds) == 2:
            found.append(TWO_SEEDS)
    fewest = min(base.different, ours.different)
    if name == "mean":
        found += [FEW_FLOWS] if fewest < SURE_FLOWS else []
    elif fewest - rank(fewest, PERCENTILES[name]) < SURE_BEYOND:
        found.append(too_few_beyond(name))
    return found


@cache
def student(degrees: int) -> float:
    """Returns the factor of a 95 % interval for a number of degrees of freedom (Student's t)."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < CONFIDENCE else (low, middle)
    return math.tan(low) * math.sqrt(degrees)


def _within(angle: float, degrees: int) -> float:
    """The share of Student's distribution within ``tan(angle)`` times the root of the degrees of freedom of 0.

    A finite series for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4), where importing SciPy
    would take longer than the summary itself.
    """
    odd = degrees % 2
    square = math.cos(angle) ** 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for power in range(2 + odd, degrees + 1, 2):
        total += term
        term *= square * (power - 1) / power
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share


def linear(value: float, left: Values) -> Interval:
    """The interval of a value that may be 0, symmetric about it, given the value without each seed in turn."""
    if len(left) < 2:
        return Interval()
    half = student(len(left) - 1) * errors(left, None)[0]
    return Interval(same=True) if half <= SAME * abs(value) else Interval(value - half, value + half)
