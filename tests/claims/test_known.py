"""The known answers: every number in experiments/known/claims.toml, worked out from its formula."""

import math
from pathlib import Path

import pytest

from tailcut import claims
from tailcut.claims import Claim

KNOWN = {claim.id.partition("/")[2]: claim for claim in claims.load()["known"].claims}
ORACLE = Path(__file__).parents[1] / "oracles/ns3"
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


def test_a_recovery_sends_in_proportion_to_what_arrives() -> None:
    window, before = 20, 2  # packets in flight, and those acknowledged when the third duplicate ACK begins the recovery
    arrivals = window - 1 - before
    sent = math.ceil(arrivals * (window // 2) / (window - before))  # prr_out, the retransmission among them
    assert window + sent - 1 == 29
    assert [int(size[:-1]) for size in KNOWN["prr-sends"].at["traffic.flows.0.bytes"]] == [29 * 1460, 30 * 1460]  # type: ignore[index]
    packet, control = (1460 + FRAME) * 8 / 1e6, FRAME * 8 / 1e6
    in_it = 2.5 * 40 + (window + 2) * packet + 6 * control
    a_round_later = 3.5 * 40 + 7 * packet + 8 * control
    assert numbers(KNOWN["prr-sends"]) == pytest.approx([in_it, a_round_later], rel=0.001)


def test_the_average_of_red_reaches_its_threshold_after_a_burst_of_known_length() -> None:
    shares = []
    for weight in (0.002, 0.004):
        # Equation 3 of the paper: the average after a queue has grown from empty to `length`.
        averages = ((length, length + 1 + ((1 - weight) ** (length + 1) - 1) / weight) for length in range(1, 200))
        length = next(length for length, average in averages if average >= 5)
        passed = length + 1  # the first packet is sent at once; the second finds nobody waiting; the last is dropped
        arrived = 201  # the ACK of the handshake, and the burst
        crossed = 1 + passed + passed  # the SYN; the SYN-ACK, and an ACK of each data packet
        shares.append((arrived - passed) / (crossed + arrived - passed))
    assert numbers(KNOWN["red-burst"]) == pytest.approx(shares, rel=0.001)


def test_flows_take_as_long_as_shortest_remaining_first() -> None:
    smallest, largest, steps = 14_600, 146_000, 4_000
    sizes = [smallest + (largest - smallest) * (step + 0.5) / steps for step in range(steps)]
    service = [(size + math.ceil(size / 1460) * FRAME) * 8 / 1e6 for size in sizes]
    packet, control, hop = (1460 + FRAME) * 8 / 1e6, FRAME * 8 / 1e6, 0.001
    others = 4 * (control + hop) + packet + 2 * hop  # the handshake, and the first packet up to the shared link
    times = []
    for load in (0.0015, 0.0025, 0.0035):
        arrivals = load * 201 * 1e6 / 8 / ((smallest + largest) / 2)
        busy = second = total = 0.0
        residence = before = service[0]
        for step, time in enumerate(service):
            residence += (time - before) / (1 - busy)
            before = time
            busy += arrivals * time / steps
            second += arrivals * time**2 / steps
            larger = 1 - (step + 1) / steps
            waiting = (second + arrivals * time**2 * larger) / (2 * (1 - busy) ** 2)
            total += (waiting + residence) / steps
        times.append(total + others)
    assert numbers(KNOWN["srpt"]) == pytest.approx(times, rel=0.005)


def test_the_shares_of_figure_17_fill_both_links() -> None:
    first, second, third = (numbers(KNOWN[f"dctcp-fig17-s{group}"])[0] for group in (1, 2, 3))
    assert 10 * first + 20 * second == pytest.approx(10_000, rel=0.01)
    assert 10 * first + 10 * third == pytest.approx(1_000, rel=0.01)


def test_the_shares_of_ns3_in_figure_17_fill_both_links() -> None:
    first, second, third = (numbers(KNOWN[f"ns3-fig17-s{group}"])[0] for group in (1, 2, 3))
    assert 10 * first + 20 * second == pytest.approx(10_000, rel=0.04)
    assert 10 * first + 10 * third == pytest.approx(1_000, rel=0.04)


def test_lone_flows_take_what_the_logs_of_ns3_say() -> None:
    logs = (ORACLE / f"a_{size}.fct.txt" for size in ("10k", "100k", "1m"))
    received = [int(log.read_text().splitlines()[-1].split()[5]) / 1e6 for log in logs]
    assert numbers(KNOWN["ns3-lone"]) == received
