"""The known answers: every number in experiments/known/claims.toml, worked out from its formula."""

import math

import pytest

from tailcut import claims
from tailcut.claims import Claim

KNOWN = {claim.id.partition("/")[2]: claim for claim in claims.load()["known"].claims}
FRAME = 78
"""The bytes of a packet on the wire beyond its payload: 40 of headers, 38 of framing."""


def numbers(claim: Claim) -> list[float]:
    """The answers of a claim, at all points."""
    return [target.low for target in claim.target if target.low is not None]


@pytest.mark.parametrize(("name", "smallest"), [("m-d-1", 8960), ("m-g-1", 4480)])
def test_packets_wait_as_pollaczek_and_khinchine_say(name: str, smallest: int) -> None:
    sizes = range(smallest, 8961)
    milliseconds = [(size + FRAME) * 8 / 1e6 for size in sizes]  # at 1 Gbps
    first, second = (sum(one**power for one in milliseconds) / len(sizes) for power in (1, 2))
    waits = []
    for load in (0.0015, 0.0025, 0.0035):
        arrivals = load * 201 * 1e6 / 8 / (sum(sizes) / len(sizes))  # per ms: of all links' capacity, to one host
        waits.append(arrivals * second / (2 * (1 - arrivals * first)))
    assert numbers(KNOWN[name]) == pytest.approx(waits, rel=0.005)


def test_a_lone_flow_takes_rounds_of_slow_start() -> None:
    round_trip, packet, control = 40.0, (1460 + FRAME) * 8 / 1e6, FRAME * 8 / 1e6
    times = []
    for rounds in (4, 6):
        last = 2 ** (rounds - 1)
        each = 2 * packet + 2 * control  # a data packet and its ACK cross two links
        times.append(rounds * round_trip + round_trip / 2 + rounds * each + (last - 1) * packet)
    assert numbers(KNOWN["lone-flow-rounds"]) == pytest.approx(times, rel=0.001)


def test_a_lone_flow_of_one_hundred_megabytes_takes_its_bytes_at_the_rate_of_the_link() -> None:
    packet = (1460 + FRAME) * 8 / 1e6
    packets = math.ceil(100_000_000 / 1460)
    first = 65_535 // 1460  # the field of a SYN-ACK is not scaled
    assert numbers(KNOWN["lone-flow-rate"]) == pytest.approx([2.5 * 40 + (packets - first) * packet], rel=0.001)


def test_the_sawtooth_of_dctcp_follows_from_its_analysis() -> None:
    flows, threshold, pipe = 2, 40, 10e9 * 100e-6 / 8 / 1538
    window = (pipe + threshold) / flows
    alpha = math.sqrt(2 / window)
    for _ in range(100):  # equation 6
        alpha = math.sqrt((2 * window + 1) / (window + 1) ** 2 / (1 - alpha / 4))
    amplitude = flows * (window + 1) * alpha / 2
    peak = threshold + flows
    assert numbers(KNOWN["dctcp-peak"]) == [peak]
    assert numbers(KNOWN["dctcp-mean"]) == pytest.approx([peak - amplitude / 2], rel=0.005)


@pytest.mark.parametrize(("name", "subflows"), [("reno-growth", 1), ("lia-2", 2), ("lia-4", 4)])
def test_each_of_n_coupled_subflows_grows_by_a_segment_over_n_squared(name: str, subflows: int) -> None:
    round_trips = 8_001 / 40 - 2  # without the handshake and the first window's round trip
    assert numbers(KNOWN[name]) == pytest.approx([1460 * (10 + round_trips / subflows**2)], rel=0.005)


@pytest.mark.parametrize(("name", "below"), [("cubic-mean", (1 - 0.7) / 4), ("reno-mean", 1 / 4)])
def test_the_mean_window_between_losses_follows_from_its_shape(name: str, below: float) -> None:
    largest = 250 + 250  # packets on the way and in the queue
    assert numbers(KNOWN[name]) == pytest.approx([largest * 1460 * (1 - below)], rel=0.005)
