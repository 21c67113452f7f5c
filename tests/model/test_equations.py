import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailcut.model import FlowSizes
from tailcut.model import equations as eq

LOADS = st.floats(0.0, 0.94)
SHARES = st.floats(0.0, 0.1)
WEB_SEARCH = FlowSizes(
    (6.0, 6.0, 13.0, 19.0, 33.0, 53.0, 133.0, 667.0, 1333.0, 3333.0, 6667.0, 20000.0),
    (0.0, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0),
)
SHORT = (WEB_SEARCH, 68.0, 12.0, 44.0)
LONG = (WEB_SEARCH, 68.0, 44.0)


def test_a_flow_of_one_initial_window_is_one_round() -> None:
    assert eq.slow_start_rounds(12, initial_window=12) == 1.0
    assert eq.slow_start_rounds(12 + 24 + 48, initial_window=12) == 3.0


def test_eq1_adds_the_waits_of_all_rounds_to_the_transmission_time() -> None:
    # 36 packets leave as 12 + 24; two bursts wait 9 each: 36 + 18 packet times.
    assert eq.short_flow_fct(36, mean_burst_wait=9, initial_window=12) == pytest.approx((36 + 18) / 36)


def test_eq2_adds_the_waits_of_all_windows_to_the_transmission_time() -> None:
    # 440 packets leave as 10 windows of 44; ten bursts wait 22 each.
    assert eq.long_flow_fct(440, mean_burst_wait=22, max_window=44) == pytest.approx((440 + 220) / 440)


def test_eq3_averages_eq1_over_the_short_flows() -> None:
    sizes = FlowSizes((12.0, 36.0, 36.0, 1000.0, 1000.0), (0.3, 0.3, 0.6, 0.6, 1.0))
    expected = (eq.short_flow_fct(12, 9, 12) + eq.short_flow_fct(36, 9, 12)) / 2
    assert eq.mean_short_fct(9, sizes, short_limit=68, initial_window=12) == pytest.approx(expected)


@given(st.floats(0.0, 0.9), st.floats(1.0, 100.0))
def test_eq4_is_pollaczek_khintchine_with_constant_bursts(load: float, burst: float) -> None:
    arrivals_per_time, second_moment = load / burst, burst**2
    pollaczek_khintchine = arrivals_per_time * second_moment / (2 * (1 - load))
    assert eq.mean_wait(load, burst) == pytest.approx(pollaczek_khintchine)


@pytest.mark.parametrize("load", [1.0, 1.5, -0.1, math.nan])
def test_eq4_has_no_answer_without_a_steady_state(load: float) -> None:
    with pytest.raises(ValueError, match="steady state"):
        eq.mean_wait(load, 44)


@given(LOADS)
def test_eq5_is_eq4_in_eq3(load: float) -> None:
    assert eq.mean_short_fct_tcp(load, *SHORT) == eq.mean_short_fct(eq.mean_wait(load, 44.0), *SHORT[:3])


@given(st.floats(0.0, 0.9), SHARES)
def test_eq6_is_eq5_at_the_effective_load(load: float, share: float) -> None:
    virtual = ((1 + share) * load) ** 2
    assert eq.mean_short_fct_repflow(load, share, *SHORT) == pytest.approx(eq.mean_short_fct_tcp(virtual, *SHORT))


@given(LOADS, st.floats(68.0, 20000.0))
def test_eq7_is_eq2_at_the_mean_wait_whatever_the_size(load: float, size: float) -> None:
    assert eq.mean_long_fct_tcp(load) == pytest.approx(eq.long_flow_fct(size, eq.mean_wait(load, 44), 44))


@given(st.floats(0.0, 0.9), SHARES)
def test_eq8_is_eq7_with_the_copies_added_to_the_load(load: float, share: float) -> None:
    assert eq.mean_long_fct_repflow(load, share) == pytest.approx(eq.mean_long_fct_tcp(load * (1 + share)))


@given(st.floats(0.01, 0.94), st.floats(1.0, 100.0))
def test_eq9_integrates_to_eq4(load: float, burst: float) -> None:
    # The mean of a non-negative variable is the integral of P(W > w).
    mean = eq.mean_wait(load, burst)
    step = mean / 200
    integral = step * sum(eq.wait_exceeds((n + 0.5) * step, load, burst) for n in range(200 * 40))
    assert integral == pytest.approx(mean, rel=1e-4)


@given(st.floats(0.001, 0.94), st.floats(1.0, 100.0))
def test_eq10_is_where_eq9_reaches_one_percent(load: float, burst: float) -> None:
    assert eq.wait_exceeds(eq.p99_wait(load, burst), load, burst) == pytest.approx(0.01)
    assert eq.p99_wait(load, burst) == pytest.approx(math.log(10) * load * burst / (1 - load))


def test_eq11_lets_one_round_wait_the_99th_percentile() -> None:
    sizes = FlowSizes((36.0,), (1.0,))  # two rounds
    mean, tail = eq.mean_wait(0.5, 44), eq.p99_wait(0.5, 44)
    assert eq.p99_short_fct_tcp(0.5, sizes, 68, 12, 44) == pytest.approx((36 + mean + tail) / 36)


@given(st.floats(0.0, 0.9), SHARES)
def test_eq12_is_eq11_at_the_effective_load(load: float, share: float) -> None:
    virtual = ((1 + share) * load) ** 2
    assert eq.p99_short_fct_repflow(load, share, *SHORT) == pytest.approx(eq.p99_short_fct_tcp(virtual, *SHORT))


def test_eq13_lets_one_window_wait_the_99th_percentile() -> None:
    sizes = FlowSizes((440.0,), (1.0,))  # ten windows
    mean, tail = eq.mean_wait(0.5, 44), eq.p99_wait(0.5, 44)
    assert eq.p99_long_fct_tcp(0.5, sizes, 68, 44) == pytest.approx((440 + 9 * mean + tail) / 440)


@given(st.floats(0.0, 0.9), SHARES)
def test_eq14_is_eq13_with_the_copies_added_to_the_load(load: float, share: float) -> None:
    expected = eq.p99_long_fct_tcp(load * (1 + share), *LONG)
    assert eq.p99_long_fct_repflow(load, share, *LONG) == pytest.approx(expected)


EVERY_FCT = [
    lambda load, share: eq.mean_short_fct_tcp(load, *SHORT),
    lambda load, share: eq.mean_short_fct_repflow(load, share, *SHORT),
    lambda load, share: eq.mean_long_fct_tcp(load),
    lambda load, share: eq.mean_long_fct_repflow(load, share),
    lambda load, share: eq.p99_short_fct_tcp(load, *SHORT),
    lambda load, share: eq.p99_short_fct_repflow(load, share, *SHORT),
    lambda load, share: eq.p99_long_fct_tcp(load, *LONG),
    lambda load, share: eq.p99_long_fct_repflow(load, share, *LONG),
]
NUMBERS = ["5", "6", "7", "8", "11", "12", "13", "14"]


@pytest.mark.parametrize("fct", EVERY_FCT, ids=NUMBERS)
@given(a=st.floats(0.0, 0.9), b=st.floats(0.0, 0.9), share=SHARES)
def test_more_load_is_never_faster(fct: object, a: float, b: float, share: float) -> None:
    assert callable(fct)
    low, high = sorted((a, b))
    assert fct(low, share) <= fct(high, share)


@pytest.mark.parametrize("fct", EVERY_FCT, ids=NUMBERS)
@given(load=st.floats(0.0, 0.9), share=SHARES)
def test_a_tiny_step_in_load_is_a_small_step_in_time(fct: object, load: float, share: float) -> None:
    assert callable(fct)
    assert fct(load + 1e-9, share) == pytest.approx(fct(load, share), rel=1e-5)


@pytest.mark.parametrize("fct", EVERY_FCT, ids=NUMBERS)
@given(share=SHARES)
def test_an_idle_network_gives_the_best_possible_time(fct: object, share: float) -> None:
    assert callable(fct)
    assert fct(0.0, share) == 1.0
    assert fct(1e-12, share) == pytest.approx(1.0, abs=1e-9)


@given(LOADS, st.floats(1.0, 67.0), st.floats(1.0, 40.0))
def test_the_99th_percentile_is_never_below_the_mean(load: float, size: float, window: float) -> None:
    sizes = FlowSizes((size, size + 1.0, 200.0), (0.2, 0.6, 1.0))
    mean = eq.mean_short_fct_tcp(load, sizes, 68, window, 44)
    assert eq.p99_short_fct_tcp(load, sizes, 68, window, 44) >= mean
    assert eq.p99_long_fct_tcp(load, sizes, 68, 44) >= eq.mean_long_fct_tcp(load)


@given(LOADS, SHARES)
def test_replication_helps_exactly_when_both_queues_are_less_often_busy(load: float, share: float) -> None:
    assume((1 + share) * load < 1)
    tcp, repflow = eq.mean_short_fct_tcp(load, *SHORT), eq.mean_short_fct_repflow(load, share, *SHORT)
    # ((1 + e) rho)^2 < rho, that is rho < (1 + e)^-2.
    assert (repflow < tcp) == (((1 + share) * load) ** 2 < load) or repflow == pytest.approx(tcp, rel=1e-12)


@given(st.floats(0.01, 0.9), SHARES)
def test_replication_never_helps_long_flows(load: float, share: float) -> None:
    assert eq.mean_long_fct_repflow(load, share) >= eq.mean_long_fct_tcp(load)
    assert eq.p99_long_fct_repflow(load, share, *LONG) >= eq.p99_long_fct_tcp(load, *LONG)


@given(LOADS, st.floats(1.0, 40.0))
def test_a_larger_initial_window_is_never_slower(load: float, window: float) -> None:
    larger = eq.mean_short_fct_tcp(load, WEB_SEARCH, 68, window * 1.1, 44)
    assert larger <= eq.mean_short_fct_tcp(load, WEB_SEARCH, 68, window, 44)
