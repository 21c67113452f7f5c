"""The BPF programs of switches, one packet at a time: which mark each gets.

Time is moved by moving what a program remembers of it.
"""

import struct
from collections.abc import Iterator

import pytest

from support.bpf import Loaded, key, loaded, packet

pytestmark = pytest.mark.usefixtures("bpf")

HOUR_NS = 3600 * 10**9
FRAMING = 38
WAYS = 4
TO, ELSEWHERE = 2, 3
ENTRY = struct.Struct("=IIqQQ")
"""An entry of the table of flowlets: lock, choice, time of the last packet, bytes, whether it is used."""


@pytest.fixture
def flowlets(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    """A switch with a table of one entry and four ways to a host; the gap and the bytes are the test's."""
    settings = {"gap": HOUR_NS, "bytes": 0} | getattr(request, "param", {})
    told = struct.pack("=QQII", settings["gap"], settings["bytes"], 1, FRAMING)
    with loaded("flowlet", told, table=1) as switch:
        switch.ways(TO, WAYS)
        yield switch


def wait(switch: Loaded, ns: int) -> None:
    """Moves the time of a flow's last packet back by ``ns``."""
    lock, choice, last, count, used = ENTRY.unpack(switch.get("table", bytes(4), ENTRY.size))
    switch.set("table", bytes(4), ENTRY.pack(lock, choice, last - ns, count, used))


def test_closely_spaced_packets_of_a_flow_take_one_path(flowlets: Loaded) -> None:
    marks = flowlets.marks(packet(0, TO, 1024), 200)
    assert len(set(marks)) == 1
    assert 1 <= marks[0] <= WAYS


def test_after_a_gap_a_flow_may_take_another_path_and_keeps_it(flowlets: Loaded) -> None:
    bursts = []
    for _ in range(100):
        bursts.append(set(flowlets.marks(packet(0, TO, 1024), 5)))
        wait(flowlets, HOUR_NS)
    assert all(len(burst) == 1 for burst in bursts)
    # All four are drawn, but for once in 10^12 runs.
    assert set().union(*bursts) == {1, 2, 3, 4}


def test_a_silence_that_is_shorter_than_the_gap_changes_nothing(flowlets: Loaded) -> None:
    before = flowlets.mark(packet(0, TO, 1024))
    for _ in range(50):
        wait(flowlets, HOUR_NS // 2)
        assert flowlets.mark(packet(0, TO, 1024)) == before


@pytest.mark.parametrize("flowlets", [{"bytes": 3 * (1500 + FRAMING)}], indirect=True)
def test_a_flow_may_change_its_path_after_a_number_of_bytes(flowlets: Loaded) -> None:
    bursts = [set(flowlets.marks(packet(0, TO, 1024), 3)) for _ in range(100)]
    assert all(len(burst) == 1 for burst in bursts)
    assert set().union(*bursts) == {1, 2, 3, 4}


@pytest.mark.parametrize("flowlets", [{"gap": 0}], indirect=True)
def test_with_the_smallest_gap_every_packet_draws_among_all_paths_evenly(flowlets: Loaded) -> None:
    marks = flowlets.marks(packet(0, TO, 1024), 2000)
    chi_squared = sum((marks.count(way) - 500) ** 2 / 500 for way in range(1, WAYS + 1))
    assert chi_squared < 44.2  # once in 10^9 runs it is more


def test_packets_with_one_path_or_of_another_protocol_are_not_marked(flowlets: Loaded) -> None:
    assert flowlets.mark(packet(0, ELSEWHERE, 1024)) == 0
    assert flowlets.mark(packet(0, TO, 1024, protocol=17)) == 0
    assert flowlets.mark(packet(0, TO, 1024)[:14].replace(b"\x08\0", b"\x86\xdd") + bytes(60)) == 0


def test_failed_paths_are_avoided(flowlets: Loaded) -> None:
    flowlets.ways(TO, 1 + 1)
    for _ in range(50):
        assert flowlets.mark(packet(0, TO, 1024)) in {1, 2}
        wait(flowlets, HOUR_NS)


WIRE = 1500 + FRAMING
FLOW = struct.Struct("=8qqqqqQQ")
"""TinyFlow's entry of a flow: times of samples, their number, bytes counted, polls, last packet, bytes and draw."""
SAMPLES, POLLS, LAST = 8, 10, 11
"""Indices in it."""


@pytest.fixture
def edge(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    """An edge switch with four ways to a host, where an elephant is what two samples fall on: every fifth packet."""
    told = {
        "window": HOUR_NS,
        "forget": HOUR_NS,
        "poll_every": 0,
        "elephant": 10 * WIRE,
        "reroute_every": 3 * WIRE,
        "samples": 2,
        "per_host": 1,
    }
    told |= getattr(request, "param", {})
    skip = 5 * WIRE
    with loaded("tinyflow", struct.pack("=5Q4I", *told.values(), 0, FRAMING), skips=1, samplers=4) as switch:
        switch.set("skips", bytes(4), struct.pack("=Q", skip))
        for host in range(4):
            switch.set("samplers", struct.pack("=I", host), struct.pack("=q", skip))
        switch.ways(TO, WAYS)
        yield switch


def move(switch: Loaded, flow: tuple[int, int, int], places: list[int], by: int) -> None:
    """Some of what is known of a flow is earlier by so much."""
    known = list(FLOW.unpack(switch.get("flows", key(*flow), FLOW.size)))
    for place in places:
        known[place] -= by
    switch.set("flows", key(*flow), FLOW.pack(*known))


def test_a_flow_is_an_elephant_from_its_second_sample_on(edge: Loaded) -> None:
    marks = edge.marks(packet(0, TO, 1024), 200)
    assert marks[:9] == [0] * 9
    assert 0 not in marks[9:]


def test_an_elephant_draws_a_new_path_every_so_many_bytes_evenly(edge: Loaded) -> None:
    marks = edge.marks(packet(0, TO, 1024), 9 + 3 * 1000)[9:]
    stretches = [marks[at : at + 3] for at in range(0, len(marks), 3)]
    assert all(len(set(stretch)) == 1 for stretch in stretches)
    counts = [sum(stretch[0] == way for stretch in stretches) for way in range(1, WAYS + 1)]
    assert sum((count - 250) ** 2 / 250 for count in counts) < 44.2  # once in 10^9 runs it is more


def test_flows_sampled_only_once_keep_their_path(edge: Loaded) -> None:
    assert {edge.mark(packet(0, TO, port)) for port in range(1024, 1524)} == {0}


def test_samples_that_are_too_old_do_not_count(edge: Loaded) -> None:
    flow = (0, TO, 1024)
    for _ in range(20):
        assert edge.marks(packet(*flow), 5) == [0] * 5
        move(edge, flow, list(range(SAMPLES)), 2 * HOUR_NS)


def test_an_elephant_that_was_silent_is_a_flow_like_any_other(edge: Loaded) -> None:
    flow = (0, TO, 1024)
    assert edge.marks(packet(*flow), 11)[-1] > 0
    # The next sample is four packets off, and those before it are old.
    move(edge, flow, [*range(SAMPLES), LAST], 2 * HOUR_NS)
    assert edge.marks(packet(*flow), 8) == [0] * 8


@pytest.mark.parametrize(("edge", "found"), [({"per_host": 1}, 5), ({"per_host": 0}, 3)], indirect=["edge"])
def test_a_sampler_counts_for_a_host_or_for_all_of_the_switch(edge: Loaded, found: int) -> None:
    # Two hosts in turn: what the other sends brings the switch's sample nearer.
    sent = [edge.mark(packet(at % 2, TO, 1024)) for at in range(6)]
    assert set(sent) == {0}
    left = [struct.unpack("=q", edge.get("samplers", struct.pack("=I", host), 8))[0] // WIRE for host in range(2)]
    assert left == ([2, 2] if found == 5 else [4, 5])


POLLED = {"poll_every": HOUR_NS}


@pytest.mark.parametrize("edge", [POLLED], indirect=True)
def test_a_poll_finds_a_flow_that_has_grown_large(edge: Loaded) -> None:
    large, small = (0, TO, 1024), (1, TO, 1025)
    assert set(edge.marks(packet(*large), 10)) == {0}
    assert set(edge.marks(packet(*small), 9)) == {0}
    for flow in (large, small):
        move(edge, flow, [POLLS], 1)
    assert edge.mark(packet(*large)) > 0
    assert edge.mark(packet(*small)) == 0


@pytest.mark.parametrize("edge", [POLLED], indirect=True)
def test_a_counter_that_stands_still_for_two_polls_begins_anew(edge: Loaded) -> None:
    flow = (0, TO, 1024)
    assert set(edge.marks(packet(*flow), 9)) == {0}
    move(edge, flow, [POLLS], 2)
    assert set(edge.marks(packet(*flow), 9)) == {0}
    move(edge, flow, [POLLS], 1)
    assert edge.mark(packet(*flow)) == 0
