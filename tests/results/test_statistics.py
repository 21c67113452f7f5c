from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailcut.results import statistics

times = st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, max_size=300)
fractions = st.sampled_from(list(statistics.PERCENTILES.values()))


def ascending(values: list[float]) -> statistics.Values:
    return np.sort(np.array(values, dtype=np.float64))


@given(times, fractions)
def test_a_percentile_is_the_least_observed_value_that_enough_values_do_not_exceed(
    values: list[float], fraction: Fraction
) -> None:
    found = statistics.nearest_rank(ascending(values), fraction)
    assert found in values
    assert sum(value <= found for value in values) >= fraction * len(values)
    assert sum(value < found for value in values) < fraction * len(values)


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (999, 999), (1000, 999), (1001, 1000), (2000, 1998)])
def test_p99_9_takes_exact_ranks_where_binary_fractions_would_not(count: int, rank: int) -> None:
    values = ascending([float(i) for i in range(1, count + 1)])
    assert statistics.nearest_rank(values, statistics.PERCENTILES["p99_9"]) == rank


def test_every_statistic_of_one_value_is_that_value() -> None:
    assert statistics.of(ascending([7.0])) == {"mean": 7.0, "p50": 7.0, "p99": 7.0, "p99_9": 7.0}
