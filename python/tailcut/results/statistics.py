"""Percentiles by nearest rank and Student-t intervals over seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np

CONFIDENCE = 0.95
PERCENTILES: Mapping[str, Fraction] = MappingProxyType(
    {"p50": Fraction(1, 2), "p99": Fraction(99, 100), "p99_9": Fraction(999, 1000)}
)
STATISTICS = ("mean", *PERCENTILES)

Values = np.ndarray[tuple[int], np.dtype[np.float64]]


def nearest_rank(ascending: Values, fraction: Fraction) -> float:
    """The smallest value that at least ``fraction`` of all values do not exceed.

    Args:
        ascending: at least one value, in ascending order.
        fraction: in (0, 1]; exact, because 0.999 in binary is a little more than 999/1000.
    """
    rank = math.ceil(len(ascending) * fraction)
    return float(ascending[rank - 1])


def fewest(percentile: str) -> int:
    """Of how many values a percentile is not merely the largest."""
    return math.ceil(1 / (1 - PERCENTILES[percentile]))


def of(ascending: Values) -> dict[str, float]:
    """Every statistic of at least one value, given in ascending order."""
    return {"mean": float(ascending.mean())} | {
        name: nearest_rank(ascending, fraction) for name, fraction in PERCENTILES.items()
    }


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its confidence interval; no interval for a single seed."""

    value: float
    low: float | None
    high: float | None


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean of one value per seed with the Student-t interval at 95 %.

    The seeds are independent replications, so their values are independent whatever the flows within one are; for the
    mean of n of them the interval is mean ± t(0.975, n − 1) · s / √n (Law, *Simulation Modeling and Analysis*, ch. 9).
    """
    from scipy.special import stdtrit  # takes longer to import than everything else here

    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2)) * deviation / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half)
