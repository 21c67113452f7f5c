r"""Equations 1 to 14 of RepFlow (Xu and Li, INFOCOM 2014, section IV), each as a function of its symbols.

Units: sizes in packets; time in packet transmission times, since the paper lets a link carry one packet per
second; flow completion times (FCT) are normalised by the size X, the time that the flow alone would need, so
that 1 is the best.

Symbols (Table II): X flow size, F its distribution, S_L the size up to which a flow is short, k the initial
window, M the maximum window, rho the load of a path, W the queueing delay of an M/G/1 first-come-first-served
queue, epsilon the share of all bytes that short flows carry.

Validity, of all of them: one path is one queue with an infinite buffer, so there are neither losses nor
timeouts; bursts arrive as a Poisson process; nearly all bursts are of M packets; propagation, the handshake
and the round trips of slow start cost nothing; the two paths of a replicated flow are independent.
"""

from __future__ import annotations

import math

from tailcut.model.sizes import FlowSizes

P99_OVER_MEAN_WAIT = 2.0 * math.log(10.0)
"""The 99th percentile over the mean of the exponential waiting time of equation 9: ln 100 = 2 ln 10."""


def slow_start_rounds(size: float, initial_window: float) -> float:
    """log2(X/k + 1): how many bursts of k, 2k, 4k … packets make X packets. Real, below 1 when X < k."""
    return math.log2(size / initial_window + 1.0)


def short_flow_fct(size: float, mean_burst_wait: float, initial_window: float) -> float:
    """Equation 1: the FCT of a short flow if bursts wait `mean_burst_wait` packet times on average.

    The sum of the waits over the flow's log2(X/k + 1) bursts, divided by X, plus 1. Valid for flows that stay
    in slow start for life. The number of bursts is taken as a real number, as the paper's integrals do.
    """
    return slow_start_rounds(size, initial_window) * mean_burst_wait / size + 1.0


def long_flow_fct(size: float, mean_burst_wait: float, max_window: float) -> float:
    """Equation 2: FCT of a long flow, X/M bursts of M packets. For X >= S_L: no slow start."""
    return (size / max_window) * mean_burst_wait / size + 1.0


def mean_short_fct(mean_wait: float, sizes: FlowSizes, short_limit: float, initial_window: float) -> float:
    """Equation 3: mean FCT over all short flows, given the mean wait E[W] of a burst."""
    return mean_wait * _rounds_per_packet(sizes, short_limit, initial_window) + 1.0


def mean_wait(load: float, max_window: float) -> float:
    """Equation 4: E[W] = rho M / (2 (1 - rho)) packet times (Pollaczek-Khintchine, constant bursts).

    Raises:
        ValueError: the load is not in [0, 1): the queue has no steady state.
    """
    if not 0.0 <= load < 1.0:
        raise ValueError(f"an M/G/1 queue has a steady state only for a load in [0, 1), not {load}")
    return load * max_window / (2.0 * (1.0 - load))


def mean_short_fct_tcp(
    load: float, sizes: FlowSizes, short_limit: float, initial_window: float, max_window: float
) -> float:
    """Equation 5: mean FCT of short flows under TCP, equation 4 in equation 3."""
    return mean_short_fct(mean_wait(load, max_window), sizes, short_limit, initial_window)


def effective_load(load: float, short_byte_share: float) -> float:
    """((1 + epsilon) rho)^2, of equation 6: the probability that a flow finds both its queues busy.

    Taken as the load of one virtual queue, it yields a mean wait above that of the shorter of two independent
    queues (by 41 % at a load of 0.1, 14 % at 0.5, 2 % at 0.9): a conservative estimate of what replication
    gains.
    """
    return replicated_load(load, short_byte_share) ** 2


def replicated_load(load: float, short_byte_share: float) -> float:
    """(1 + epsilon) rho: the load of every queue once each short flow is sent twice."""
    return (1.0 + short_byte_share) * load


def mean_short_fct_repflow(
    load: float,
    short_byte_share: float,
    sizes: FlowSizes,
    short_limit: float,
    initial_window: float,
    max_window: float,
) -> float:
    """Equation 6: mean FCT of short flows under RepFlow, a queue of the effective load. For two copies."""
    wait = mean_wait(effective_load(load, short_byte_share), max_window)
    return mean_short_fct(wait, sizes, short_limit, initial_window)


def mean_long_fct_tcp(load: float) -> float:
    """Equation 7: mean FCT of long flows under TCP, equation 4 in equation 2; the size cancels out."""
    return mean_wait(load, max_window=1.0) + 1.0


def mean_long_fct_repflow(load: float, short_byte_share: float) -> float:
    """Equation 8: mean FCT of long flows, themselves not replicated, among replicated short flows."""
    return mean_long_fct_tcp(replicated_load(load, short_byte_share))


def wait_exceeds(wait: float, load: float, max_window: float) -> float:
    """Equation 9: P(W > w), approximated by an exponential of mean E[W] (effective bandwidth).

    Exact in heavy traffic only. With bursts of one size the queue's own 99th percentile is longer: the
    equation reaches 27 % of it at a load of 0.1, 69 % at 0.5 and 97 % at 0.9 (tests/model/test_queue.py).
    Below a load of 0.01 a burst in a hundred does not wait at all, and the equation, which has P(W > 0) = 1
    instead of rho, overstates it.
    """
    mean = mean_wait(load, max_window)
    if mean == 0.0:
        return 1.0 if wait < 0.0 else 0.0
    return min(1.0, math.exp(-wait / mean))


def p99_wait(load: float, max_window: float) -> float:
    """Equation 10: the wait that equation 9 exceeds with probability 0.01, 2 ln 10 times E[W]."""
    return P99_OVER_MEAN_WAIT * mean_wait(load, max_window)


def short_flow_p99_fct(size: float, mean_burst_wait: float, initial_window: float) -> float:
    """The integrand of equation 11: of a short flow's bursts one waits the 99th percentile, the others the mean.

    A flow of less than k packets has less than one burst, so that its "other bursts" are a negative number, as in
    the paper.
    """
    bursts = slow_start_rounds(size, initial_window) - 1.0 + P99_OVER_MEAN_WAIT
    return bursts * mean_burst_wait / size + 1.0


def long_flow_p99_fct(size: float, mean_burst_wait: float, max_window: float) -> float:
    """The integrand of equation 13: of a long flow's X/M bursts one waits the 99th percentile, the others the mean."""
    bursts = size / max_window - 1.0 + P99_OVER_MEAN_WAIT
    return bursts * mean_burst_wait / size + 1.0


def p99_short_fct(wait: float, sizes: FlowSizes, short_limit: float, initial_window: float) -> float:
    """E[W] N + 1 of equations 11 and 12: one burst waits the 99th percentile, the others the mean.

    This is an average over sizes of each size's 99th percentile, not the 99th percentile of the mixture.
    """
    tail_packets = _tail_rounds_per_packet(sizes, short_limit, initial_window)
    return wait * tail_packets + 1.0


def p99_short_fct_tcp(
    load: float, sizes: FlowSizes, short_limit: float, initial_window: float, max_window: float
) -> float:
    """Equation 11: 99th percentile FCT of short flows under TCP."""
    return p99_short_fct(mean_wait(load, max_window), sizes, short_limit, initial_window)


def p99_short_fct_repflow(
    load: float,
    short_byte_share: float,
    sizes: FlowSizes,
    short_limit: float,
    initial_window: float,
    max_window: float,
) -> float:
    """Equation 12: 99th percentile FCT of short flows under RepFlow. For exactly two copies."""
    wait = mean_wait(effective_load(load, short_byte_share), max_window)
    return p99_short_fct(wait, sizes, short_limit, initial_window)


def p99_long_fct_tcp(load: float, sizes: FlowSizes, short_limit: float, max_window: float) -> float:
    """Equation 13: 99th percentile FCT of long flows: one of the X/M bursts waits the 99th percentile."""
    extra = (P99_OVER_MEAN_WAIT - 1.0) * mean_wait(load, max_window)
    return mean_long_fct_tcp(load) + extra * _inverse_long_size(sizes, short_limit)


def p99_long_fct_repflow(
    load: float, short_byte_share: float, sizes: FlowSizes, short_limit: float, max_window: float
) -> float:
    """Equation 14: 99th percentile FCT of long flows among replicated short flows."""
    return p99_long_fct_tcp(replicated_load(load, short_byte_share), sizes, short_limit, max_window)


def _rounds_per_packet(sizes: FlowSizes, short_limit: float, initial_window: float) -> float:
    """The integral of equations 3, 5 and 6: E[log2(X/k + 1) / X | X <= S_L]."""
    total = sizes.partial_expectation(lambda x: slow_start_rounds(x, initial_window) / x, up_to=short_limit)
    return total / sizes.cdf(short_limit)


def _tail_rounds_per_packet(sizes: FlowSizes, short_limit: float, initial_window: float) -> float:
    """N of equation 11: E[(log2(X/k + 1) - 1 + 2 ln 10) / X | X <= S_L]."""
    total = sizes.partial_expectation(
        lambda x: (slow_start_rounds(x, initial_window) - 1.0 + P99_OVER_MEAN_WAIT) / x, up_to=short_limit
    )
    return total / sizes.cdf(short_limit)


def _inverse_long_size(sizes: FlowSizes, short_limit: float) -> float:
    """P of equations 13 and 14: E[1 / X | X > S_L]."""
    return sizes.partial_expectation(lambda x: 1.0 / x, above=short_limit) / (1.0 - sizes.cdf(short_limit))
