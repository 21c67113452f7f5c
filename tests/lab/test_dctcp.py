"""DCTCP over real kernels, as a BPF program of the lab's: what it does to a queue that marks."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support.kernels import carried, planned, wait_until_gone
from support.killing import Command
from tailcut.backends.lab import fields
from tailcut.lab import programs

MARKED = """
title = "two flows at a queue that marks"
seeds = 1
[topology]
kind = "star"
hosts = 3
rate = "20Mbps"
[queue]
kind = "ecn"
limit = "100packets"
threshold = "10packets"
[transport]
initial_rto = "1s"
[traffic]
kind = "trace"
file = "two.csv"
[horizon]
arrivals = "1s"
drain = "20s"
[series]
links = ["s0>h2"]
flows = [0]
interval = "5ms"
[schemes.TCP]
"""
DCTCP = {"transport.congestion.kind": '"dctcp"', "transport.congestion.initial_alpha": "0.5"}
"""With this no kernel's own will do."""
ALIKE = {"transport.congestion.kind": '"dctcp"', "transport.congestion.g": "0.0001"}
"""The estimate hardly changes."""


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Two flows of 1.5 MB to one host, whose port would hold more than their windows."""
    directory = tmp_path / "marked"
    directory.mkdir()
    (directory / "two.csv").write_text("src,dst,bytes,start_us\n0,2,1500000,0\n1,2,1500000,0")
    path = directory / "marked.toml"
    path.write_text(MARKED)
    return path


def mean(done: dict[str, Any], name: str) -> float:
    """Returns the mean of a series after the flows have begun."""
    values: list[float]
    (values,) = [one["values"] for one in done["measured"]["series"] if one["name"] == name]
    return sum(values[20:150]) / len(values[20:150])


QUEUE = "link s0>h2 queue_packets"


def registered() -> set[str]:
    return set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


@pytest.mark.usefixtures("kernel", "bpf")
def test_dctcp_keeps_a_queue_at_its_threshold_which_reno_fills(marked: Path) -> None:
    before = registered()
    done = carried(planned(marked, **DCTCP))
    wait_until_gone(registered, before)
    (metrics,) = done["hosts"]["route"]["metrics"]
    assert re.fullmatch("tailcut[0-9a-f]{8}", metrics["congestion"])
    reno = carried(planned(marked))
    assert mean(done, QUEUE) < 20 < 50 < mean(reno, QUEUE)
    windows = [mean(one, "flow 0 cwnd_bytes") for one in (done, reno)]
    assert 2 * 1460 < windows[0] < windows[1] / 3
    for one in (done, reno):
        assert all(flow["fct_ns"] for flow in one["measured"]["flows"])


@pytest.mark.usefixtures("kernel", "bpf")
def test_a_window_falls_by_the_estimate_and_the_plan_says_how_that_begins(marked: Path) -> None:
    nothing, half = (
        mean(carried(planned(marked, **ALIKE, **{"transport.congestion.initial_alpha": alpha})), QUEUE)
        for alpha in ("0.0", "1.0")
    )
    # Windows stay where marks have ended slow start; or each window with a mark is halved, so that
    # queues run empty.
    assert half < 15 < 20 < nothing


@pytest.mark.usefixtures("kernel", "bpf")
def test_delayed_acks_echo_marks_as_well(marked: Path) -> None:
    by_two = {"transport.ack_every": "2", "transport.quick_acks": "16"}
    done = carried(planned(marked, **DCTCP, **by_two))
    assert mean(done, QUEUE) < 20
    assert all(flow["fct_ns"] for flow in done["measured"]["flows"])


@pytest.mark.usefixtures("kernel", "bpf")
def test_two_labs_side_by_side_register_a_dctcp_each(marked: Path) -> None:
    run = planned(marked, **DCTCP)
    with ThreadPoolExecutor(2) as both:
        names = {done["hosts"]["route"]["metrics"][0]["congestion"] for done in both.map(carried, [run, run])}
    assert len(names) == 2


@pytest.mark.usefixtures("kernel", "bpf")
@pytest.mark.parametrize("moments", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_a_killed_lab_leaves_no_dctcp_registered(marked: Path, tmp_path: Path, moments: int) -> None:
    before = registered()
    command = Command(marked, tmp_path, [word for key, value in DCTCP.items() for word in ("--set", f"{key}={value}")])
    command.measure()
    assert [wrong for moment in range(moments) for wrong in command.killed(moment, moments)] == []
    wait_until_gone(registered, before)


def test_without_compiled_programs_dctcp_is_refused_with_the_remedy(
    marked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "BUILT", marked.parent)
    told = fields(tailcut.load(marked, set=DCTCP).plan)
    (refused,) = [one for one in told if one["answer"] == "fatal"]
    assert refused["field"] == "transport.congestion"
    assert "make lab-bpf" in refused["text"]
