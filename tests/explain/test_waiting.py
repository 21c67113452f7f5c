"""Why a sender sends nothing: which of its windows is full, for flows whose every round trip is known."""

from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import experiments
from tailcut.explain import FlowStory, explain, select_runs, slowest
from tailcut.explain.lines import lines, lost
from tailcut.explain.waiting import WindowWait, find_window_waits

LONE = """
title = "One flow, far away"
seeds = 1

[topology]
kind = "chain"
rate = "10Gbps"
propagation = "250us"

[transport]
kind = "tcp"
mss = "1460B"
initial_window = "14600B"
receive_window = "58400B"
{transport}

[traffic]
kind = "trace"
flows = [{{ src = 0, dst = 1, bytes = "292000B", start = "0s" }}]

[schemes.TCP]
"""
WAY = 250_000_000
"""A link's propagation, in ps; the chain has three."""


def told(directory: Path, text: str) -> FlowStory:
    path = directory / "lone.toml"
    path.write_text(text)
    result = tailcut.run(tailcut.load(path), out=directory / "results")
    ((one,),) = [explained.stories for explained in explain(result, select_runs(result), [0])]
    return one


def waits(told: FlowStory) -> list[WindowWait]:
    return list(find_window_waits(told.story, WAY).values())


def test_waits_are_for_slow_start_until_the_receive_window_is_full(tmp_path: Path) -> None:
    # 10, 20 and then 40 segments a round trip: the receiver has room for no more.
    found = waits(told(tmp_path, LONE.format(transport="")))
    assert [(one.which, one.window // 1_460) for one in found][:2] == [("slow start", 10), ("slow start", 20)]
    assert [one.which for one in found][2:] == ["receive window"] * (len(found) - 2)
    assert {one.window for one in found[2:]} == {58_400}
    # 200 segments: 10 + 20 + 40 + 40 + 40 + 40 + 10.
    assert len(found) == 6
    # A round trip less what the flight took to send: a segment of 1,538 bytes takes 1.23 us.
    for one, segments in zip(found, (10, 20, 40, 40, 40, 40), strict=True):
        assert 6 * WAY - (segments + 2) * 1_230_400 <= one.lasts_ps <= 6 * WAY + 10 * 1_230_400


def test_beyond_the_slow_start_threshold_the_wait_is_for_the_congestion_window(tmp_path: Path) -> None:
    found = waits(
        told(tmp_path, LONE.format(transport='initial_ssthresh = "14600B"\ncongestion = { kind = "newreno" }'))
    )
    assert {one.which for one in found} == {"congestion window"}
    assert [one.window for one in found] == sorted(one.window for one in found)


def test_a_transport_without_slow_start_has_a_window(tmp_path: Path) -> None:
    text = LONE.format(transport="").replace('kind = "tcp"', 'kind = "pfabric"')
    text = text.replace(
        'initial_window = "14600B"\nreceive_window = "58400B"', 'initial_window = 10\nmax_window = 10\nrto = "10ms"'
    )
    text = text.replace("[traffic]", '[queue]\nkind = "pfabric"\n\n[traffic]')
    found = waits(told(tmp_path, text))
    assert {(one.which, one.window) for one in found} == {("window", 14_600)}


def test_the_lines_say_why_nothing_is_sent(tmp_path: Path) -> None:
    one = told(tmp_path, LONE.format(transport=""))
    said = [line.what for line in lines(one) if line.held_ps]
    assert "ACKs: the congestion window of 14.6 kB is full (slow start)" in said[0]
    assert "ACKs: the receive window of 58.4 kB is full" in said[-1]
    assert sum(line.held_ps for line in lines(one)) == sum(wait.lasts_ps for wait in waits(one))
    # Every packet apart: the same waits, each after the last packet of its flight.
    assert sum(line.held_ps for line in lines(one, everything=True)) == sum(wait.lasts_ps for wait in waits(one))


def packet(at_us: float, seq: int, kind: str = "data", **more: Any) -> dict[str, Any]:
    at = round(1e6 * at_us)
    return {
        "copy": 0,
        "port": 1,
        "kind": kind,
        "seq": seq,
        "bytes": 1_000 if kind == "data" else 0,
        "ack": 0,
        "again": False,
        "marked": False,
        "back": False,
        "sent_ps": at,
        "hops": [],
        "end": {"at_ps": at + 10, "how": "received", "link": None},
        **more,
    }


def act(at_us: float, what: str, window: int) -> dict[str, Any]:
    return {"at_ps": round(1e6 * at_us), "copy": 0, "port": 1, "what": what, "window": window, "threshold": None}


def story(packets: list[dict[str, Any]], acts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"packets": packets, "acts": acts, "transport": "tcp", "receive_window": 64_000}


def test_a_sender_with_free_window_or_in_recovery_is_not_window_limited() -> None:
    two = [packet(0, 1), packet(50, 1_001)]
    full = {0: WindowWait(50_000_000, 1_999, "slow start")}
    assert find_window_waits(story(two, [act(0, "window", 1_999)]), 10**6) == full
    assert find_window_waits(story(two, [act(0, "window", 2_000)]), 10**6) == {}
    assert find_window_waits(story(two, [act(0, "recovers", 1_999)]), 10**6) == {}
    assert find_window_waits(story(two, [act(-9, "timed-out", 1_460), act(0, "recovered", 1_999)]), 10**6) == full
    assert find_window_waits(story([two[0], {**two[1], "again": True}], [act(0, "window", 1_999)]), 10**6) == {}
    assert find_window_waits(story(two, [act(0, "window", 1_999)]), 50_000_000) == {}
    # What is acknowledged is not under way any more.
    acknowledged = packet(-1, 0, "ack", ack=1_001)
    assert find_window_waits(story([acknowledged, *two], [act(0, "window", 1_999)]), 10**6) == {}


def test_resets_of_one_end_are_one_line(tmp_path: Path) -> None:
    changes = {"traffic.load": "0.6", "traffic.sizes": '"90KB"'}
    result = tailcut.run(tailcut.load(experiments.tiny(tmp_path), set=changes, seeds=1), out=tmp_path / "results")
    place = select_runs(result, "RepFlow")
    repeated = 0
    for one in explain(result, place, slowest(result, place, 8)):
        under = next(told for told in one.stories if told.scheme == "RepFlow")
        resets = [packet for packet in under.story["packets"] if packet["kind"] == "rst"]
        told_of = [line for line in lines(under) if "RST" in line.what]
        assert sum(line.packets for line in told_of) == len(resets)
        dropped = [packet for packet in resets if lost(packet)]
        ends = {(packet["copy"], packet["back"]) for packet in resets if packet not in dropped}
        assert len(told_of) == len(dropped) + len(ends)
        repeated += len(resets) > len(told_of)
        assert sum("RST" in line.what for line in lines(under, everything=True)) == len(resets)
    assert repeated > 0


@pytest.mark.parametrize(
    ("number", "said"), [(1, "RST sent; arrives after 0.00 µs"), (3, "3 RSTs sent within 80.0 µs")]
)
def test_a_single_reset_is_a_line_of_its_own(number: int, said: str) -> None:
    resets = [packet(40 * at, 0, "rst") for at in range(number)]
    whole = story(resets, []) | {
        "start_ps": 0,
        "until_ps": 10**9,
        "connect_ps": None,
        "fct_ps": None,
        "fct_ack_ps": None,
        "ideal_fct_ps": 1,
        "winner": None,
        "left_out": 0,
    }
    first, end = lines(FlowStory("TCP", {}, whole))
    assert (first.what, first.kind, first.packets) == (said, "step", number)
    assert end.what == "not finished when the run ended"
