import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import spence

from tailcut.model import FlowSizes
from tailcut.model.equations import slow_start_rounds


@st.composite
def flow_sizes(draw: st.DrawFn) -> FlowSizes:
    """Any piecewise-linear distribution of sizes between 1 and about 10 million packets."""
    steps = draw(st.lists(st.floats(0.0, 6.0), min_size=1, max_size=8))
    weights = draw(st.lists(st.floats(0.01, 1.0), min_size=len(steps), max_size=len(steps)))
    packets = np.maximum.accumulate(np.exp(np.cumsum(np.asarray(steps) / 3.0)))
    cumulative = np.cumsum(weights) / np.sum(weights)
    return FlowSizes(tuple(packets.tolist()), tuple(cumulative.tolist()))


def test_the_mean_of_the_web_search_table_is_the_published_one(web_search: FlowSizes) -> None:
    assert web_search.mean() * 1460 == pytest.approx(1_665_831, abs=1)


def test_a_point_mass_is_integrated_by_its_value() -> None:
    sizes = FlowSizes((10.0,), (1.0,))
    assert sizes.partial_expectation(lambda x: x * x) == 100.0


def test_two_points_of_one_size_make_an_atom() -> None:
    sizes = FlowSizes((2.0, 2.0, 4.0), (0.0, 0.5, 1.0))
    assert sizes.cdf(2.0) == 0.5
    assert sizes.cdf(1.999) == 0.0
    assert sizes.mean() == pytest.approx(0.5 * 2 + 0.5 * 3)


def test_a_flow_of_less_than_one_packet_is_one_packet() -> None:
    sizes = FlowSizes.from_bytes([0, 2920], [0, 1], mss=1460)
    assert sizes.cdf(1.0) == pytest.approx(0.5)
    assert sizes.mean() == pytest.approx(0.5 * 1 + 0.5 * 1.5)


def test_the_slow_start_integral_equals_its_dilogarithm(web_search: FlowSizes) -> None:
    # The antiderivative of log2(x/k + 1)/x is -Li2(-x/k)/ln 2, and scipy's spence(z) is Li2(1 - z).
    def antiderivative(x: float) -> float:
        return -float(spence(1.0 + x / 12.0)) / math.log(2.0)

    density = 0.7 / 90.0
    sizes = FlowSizes((10.0, 100.0), (0.3, 1.0))
    numeric = sizes.partial_expectation(lambda x: slow_start_rounds(x, 12.0) / x, above=10.0)
    assert numeric == pytest.approx(density * (antiderivative(100.0) - antiderivative(10.0)), rel=1e-12)


@given(flow_sizes(), st.floats(1.0, 1e7))
def test_the_cdf_of_any_table_is_its_interpolation(sizes: FlowSizes, size: float) -> None:
    assume(size not in sizes.packets)  # an atom there makes a step
    expected = 0.0 if size < sizes.packets[0] else float(np.interp(size, sizes.packets, sizes.probability))
    assert sizes.cdf(size) == pytest.approx(expected, abs=1e-9)


@given(flow_sizes(), st.floats(1.0, 2.0))
def test_no_flow_is_larger_than_the_largest(sizes: FlowSizes, factor: float) -> None:
    assert sizes.cdf(sizes.packets[-1] * factor) == 1.0


def test_trailing_table_rows_without_flows_add_no_sizes() -> None:
    sizes = FlowSizes((1.0, 2.0, 4.0, 8.0, 50.0), (0.1, 0.2, 0.9, 1.0, 1.0))
    assert sizes.cdf(20.0) == 1.0


@given(flow_sizes(), st.floats(1.0, 1e4))
def test_short_and_long_flows_share_all_bytes(sizes: FlowSizes, limit: float) -> None:
    long_bytes = sizes.partial_expectation(lambda x: x, above=limit) / sizes.mean()
    assert sizes.short_byte_share(limit) + long_bytes == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("packets", "probability", "complaint"),
    [
        ((2.0, 1.0), (0.0, 1.0), "must not decrease"),
        ((0.5, 1.0), (0.0, 1.0), "one packet or more"),
        ((1.0, 2.0), (0.5, 0.2), "must not decrease"),
        ((1.0, 2.0), (0.0, 0.9), "must be 1"),
        ((1.0, 2.0), (1.0,), "as many probabilities"),
    ],
)
def test_a_table_that_is_no_distribution_is_refused(
    packets: tuple[float, ...], probability: tuple[float, ...], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        FlowSizes(packets, probability)
