"""The queue behind the analysis, simulated: Lindley's recursion against equations 4, 9 and 10."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tailcut.model import equations as eq

BURSTS = 2_000_000


def simulated_waits(load: float, service: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Waiting times of a first-come-first-served queue with Poisson arrivals, from an empty queue."""
    gaps = np.random.default_rng(seed).exponential(service.mean() / load, size=service.size)
    steps = np.concatenate(([0.0], np.cumsum(service[:-1] - gaps[1:])))
    return np.asarray(steps - np.minimum.accumulate(steps), dtype=np.float64)


def batch_interval(samples: NDArray[np.float64], batches: int = 40) -> tuple[float, float]:
    """Mean and the half-width of its 99.9 % interval from batch means (Student's t, 39 degrees: 3.558)."""
    means = samples.reshape(batches, -1).mean(axis=1)
    return float(means.mean()), 3.558 * float(means.std(ddof=1)) / math.sqrt(batches)


@pytest.mark.parametrize("load", [0.1, 0.3, 0.5, 0.7, 0.8])
def test_eq4_is_the_mean_wait_of_bursts_of_one_size(load: float) -> None:
    waits = simulated_waits(load, np.full(BURSTS, 44.0), seed=1)
    mean, half_width = batch_interval(waits)
    assert half_width < 0.05 * mean
    assert eq.mean_wait(load, 44.0) == pytest.approx(mean, abs=half_width)


def test_the_paper_counts_on_bursts_of_one_size_and_mixed_bursts_wait_less() -> None:
    # Ten small bursts per window of 44: E[B^2]/E[B] falls below M, and eq. 4 is an upper bound.
    rng = np.random.default_rng(2)
    service = np.where(rng.random(BURSTS) < 1 / 11, 44.0, 12.0)
    waits = simulated_waits(0.5, service, seed=3)
    mean, half_width = batch_interval(waits)
    moments = float((service**2).mean() / service.mean())
    assert mean == pytest.approx(0.5 / (2 * 0.5) * moments, abs=half_width)
    assert eq.mean_wait(0.5, 44.0) > mean + half_width


@pytest.mark.parametrize(("load", "ratio"), [(0.1, 0.27), (0.3, 0.52), (0.5, 0.69), (0.7, 0.83), (0.9, 0.97)])
def test_eq10_falls_short_of_the_queues_own_99th_percentile_and_nears_it_as_load_grows(
    load: float, ratio: float
) -> None:
    waits = simulated_waits(load, np.full(BURSTS, 44.0), seed=4)
    assert eq.p99_wait(load, 44.0) / float(np.quantile(waits, 0.99)) == pytest.approx(ratio, abs=0.03)


@pytest.mark.parametrize(("load", "ratio"), [(0.1, 1.41), (0.3, 1.25), (0.5, 1.14), (0.7, 1.07), (0.9, 1.02)])
def test_eq6_waits_longer_than_the_shorter_of_two_independent_queues(load: float, ratio: float) -> None:
    rng = np.random.default_rng(6)
    first, second = (simulated_waits(load, np.full(BURSTS, 44.0), seed) for seed in (4, 5))
    shorter = np.minimum(first, rng.permutation(second))
    virtual_queue = eq.mean_wait(eq.effective_load(load, short_byte_share=0.0), 44.0)
    assert virtual_queue / float(shorter.mean()) == pytest.approx(ratio, abs=0.03)
