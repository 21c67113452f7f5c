"""Means, and percentiles by nearest rank."""

import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

import numpy as np

CONFIDENCE = 0.95
PERCENTILES: Mapping[str, Fraction] = MappingProxyType(
    {"p50": Fraction(1, 2), "p99": Fraction(99, 100), "p99_9": Fraction(999, 1000)}
)
STATISTICS = ("mean", *PERCENTILES)

Values = np.ndarray[tuple[int], np.dtype[np.float64]]


def rank(count: int, fraction: Fraction) -> int:
    """The rank from 1 of the smallest of ``count`` values that at least ``fraction`` of all do not exceed.

    The fraction is in (0, 1] and exact, because 0.999 in binary is a little more than 999/1000.
    """
    return -(-count * fraction.numerator // fraction.denominator)


def nearest_rank(ascending: Values, fraction: Fraction) -> float:
    """The smallest value that at least ``fraction`` of all values do not exceed.

    Args:
        ascending: at least one value, in ascending order.
        fraction: in (0, 1].
    """
    return float(ascending[rank(len(ascending), fraction) - 1])


def fewest(percentile: str) -> int:
    """Returns the number of values from which a percentile is not merely the largest."""
    return math.ceil(1 / (1 - PERCENTILES[percentile]))


def of(ascending: Values) -> dict[str, float]:
    """Every statistic of at least one value, given in ascending order."""
    return {"mean": float(ascending.sum()) / len(ascending)} | {
        name: nearest_rank(ascending, fraction) for name, fraction in PERCENTILES.items()
    }
