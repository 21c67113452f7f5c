"""The BPF programs of switches, one packet at a time: which mark each gets.

Time is moved by moving what a program remembers of it.
"""

import struct
from collections.abc import Iterator

import pytest

from support.bpf import Loaded, loaded, packet

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
    """As if the last packet had come so much earlier."""
    lock, choice, last, count, used = ENTRY.unpack(switch.get("table", bytes(4), ENTRY.size))
    switch.set("table", bytes(4), ENTRY.pack(lock, choice, last - ns, count, used))


def test_packets_of_a_flow_that_follow_closely_take_one_way(flowlets: Loaded) -> None:
    marks = flowlets.marks(packet(0, TO, 1024), 200)
    assert len(set(marks)) == 1
    assert 1 <= marks[0] <= WAYS


def test_after_a_gap_a_flow_may_take_another_way_and_keeps_it(flowlets: Loaded) -> None:
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
def test_so_many_bytes_on_the_wire_let_a_flow_change_its_way(flowlets: Loaded) -> None:
    bursts = [set(flowlets.marks(packet(0, TO, 1024), 3)) for _ in range(100)]
    assert all(len(burst) == 1 for burst in bursts)
    assert set().union(*bursts) == {1, 2, 3, 4}


@pytest.mark.parametrize("flowlets", [{"gap": 0}], indirect=True)
def test_every_packet_draws_where_any_silence_is_a_gap_and_all_ways_alike(flowlets: Loaded) -> None:
    marks = flowlets.marks(packet(0, TO, 1024), 2000)
    chi_squared = sum((marks.count(way) - 500) ** 2 / 500 for way in range(1, WAYS + 1))
    assert chi_squared < 44.2  # once in 10^9 runs it is more


def test_where_there_is_one_way_or_another_protocol_nothing_is_marked(flowlets: Loaded) -> None:
    assert flowlets.mark(packet(0, ELSEWHERE, 1024)) == 0
    assert flowlets.mark(packet(0, TO, 1024, protocol=17)) == 0
    assert flowlets.mark(packet(0, TO, 1024)[:14].replace(b"\x08\0", b"\x86\xdd") + bytes(60)) == 0


def test_ways_that_fail_are_left_out(flowlets: Loaded) -> None:
    flowlets.ways(TO, 1 + 1)
    for _ in range(50):
        assert flowlets.mark(packet(0, TO, 1024)) in {1, 2}
        wait(flowlets, HOUR_NS)
