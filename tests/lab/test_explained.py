"""Runs of the lab are explained from their captures; what they captured is made up here, but for the last test."""

import io
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support.frames import ACK, FIN, RST, SYN, Wire, write
from support.lab import measured, outcome
from tailcut import _core
from tailcut.explain import Explained, ExplainError, explain, select_runs, slowest
from tailcut.explain.data import as_data
from tailcut.explain.lines import lines, lost
from tailcut.lab import process
from tailcut.result import Result
from tailcut.terminal.story import story

Wires = Callable[[dict[str, Any]], Sequence[Wire]]


def troubled(demand: dict[str, Any]) -> list[Wire]:
    """The first flow loses its SYN, and the second of three segments."""
    flow = demand["flows"][0]
    wire = Wire((flow["src"], flow["dst"]), flow["source_port"], flow["start_ps"] / 1e6)
    wire.there(10, None, SYN, 0)
    wire.there(1_000_010, 1_001_010, SYN, 0)
    wire.back(1_001_020, 1_002_020, SYN | ACK, 1, seq=0)
    wire.there(1_002_030, 1_003_030, ACK, 1)
    wire.there(1_002_040, 1_003_640, ACK, 1, 1_460)
    wire.there(1_002_041, None, ACK, 1_461, 1_460)
    wire.there(1_002_042, 1_004_240, ACK, 2_921, 1_460)
    wire.back(1_003_650, 1_004_650, ACK, 1_461)
    wire.back(1_004_250, 1_005_250, ACK, 1_461)
    wire.there(1_035_000, 1_036_000, ACK, 1_461, 1_460)
    wire.back(1_036_010, 1_037_010, ACK, 4_381)
    wire.there(1_037_020, 1_038_020, FIN | ACK, 4_381)
    wire.back(1_038_030, 1_039_030, FIN | ACK, 4_382)
    wire.there(1_039_040, 1_040_040, RST, 4_382)
    return [wire]


class Kernels:
    """Stands for real ones: the flows took so long, and these frames were captured."""

    def __init__(self, wires: Wires) -> None:
        self.wires = wires
        self.left_out = 0

    def __call__(
        self,
        planned: str,
        _on_progress: Any,
        _limit: float | None,
        _program: list[str] | None = None,
        capture: dict[str, Any] | None = None,
        fabric: str = "engine",
    ) -> dict[str, Any]:
        demand = json.loads(_core.demand(planned))
        found = measured(demand, 1.5)
        found["end_ns"] = 30 * 10**9
        found["flows"][0] |= {"connect_ns": 1_002_015_000, "fct_ns": 1_035_995_000, "fct_ack_ns": 1_037_005_000}
        captured = None
        if capture is not None:
            hosts = [int(point.removeprefix("host:")) for point in capture["spec"]["points"]]
            packets = write(Path(capture["file"]), self.wires(demand), hosts)
            captured = {"packets": packets, "left_out": self.left_out}
        return outcome(demand, found, captured=captured, fabric=fabric)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    made = Kernels(troubled)
    monkeypatch.setattr(process, "run", made)
    return made


def first_flow(path: Path) -> dict[str, Any]:
    (run,) = tailcut.load(path).plan["runs"]
    flow: dict[str, Any] = json.loads(_core.demand(json.dumps(run)))["flows"][0]
    return flow


def captured(path: Path, out: Path, *hosts: int) -> Result:
    return tailcut.run(tailcut.load(path), on="lab", out=out, capture=[f"host:{host}" for host in hosts])


def told(result: Result, flow: int) -> tuple[Explained, list[tuple[float, str]]]:
    (one,) = explain(result, select_runs(result), [flow])
    return one, [(line.at_ps / 1e6, line.what) for line in lines(one.stories[0])]


def test_captures_at_both_ends_show_losses_and_arrivals(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    flow = first_flow(experiment)
    result = captured(experiment, tmp_path / "results", flow["src"], flow["dst"])
    one, said = told(result, flow["id"])
    assert said == [
        (0, "SYN sent; lost: it does not arrive"),
        (0, "then nothing is sent or received for 1.00 s"),
        (1_000_000, "SYN sent again; 1.00 s after the first time; arrives after 1.00 ms"),
        (1_001_010, "SYN-ACK sent; arrives after 1.00 ms"),
        (1_002_015, "connected"),
        (1_002_020, "3 packets (2.92 kB) sent within 12.0 µs; 2 marked"),
        (1_002_031, "bytes 1,461 to 2,920 sent; lost: it does not arrive"),
        (1_003_640, "2 ACKs sent within 600 µs"),
        (1_005_240, "then nothing is sent or received for 29.8 ms"),
        (
            1_034_990,
            "bytes 1,461 to 2,920 sent again; 33.0 ms after the first time, after 1 duplicate ACK; marked on the way;"
            " arrives after 1.00 ms",
        ),
        (1_035_995, said[10][1]),
        (1_036_000, "ACK of everything before byte 4,381 sent; arrives after 1.00 ms"),
        (1_037_005, "the sender has the last ACK"),
        (1_037_010, "FIN sent; arrives after 1.00 ms"),
        (1_038_020, "FIN of the receiver sent; arrives after 1.00 ms"),
        (1_039_030, "RST sent; arrives after 1.00 ms"),
    ]
    assert said[10][1].startswith("the last byte has arrived and been read by the application: ")
    assert sum(lost(packet) for packet in one.stories[0].story["packets"]) == 2
    assert one.selection.label == "seed 1, repeat 1 of the lab"
    (data,) = as_data([one])
    assert data["schemes"][0]["capture"] == {
        "hosts": [f"h{host}" for host in sorted((flow["src"], flow["dst"]))],
        "sender": True,
        "receiver": True,
        "whole": True,
        "repeat": 1,
        "faithful": True,
    }


def test_a_capture_at_the_sender_alone_does_not_show_arrivals(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    flow = first_flow(experiment)
    one, said = told(captured(experiment, tmp_path / "results", flow["src"]), flow["id"])
    texts = [text for _, text in said]
    assert (1_000_000, "SYN sent again; 1.00 s after the first time") in said
    assert (1_002_010, "SYN-ACK arrives") in said
    assert (1_034_990, "bytes 1,461 to 2,920 sent again; 33.0 ms after the first time, after 1 duplicate ACK") in said
    assert (1_039_020, "FIN of the receiver arrives") in said
    assert not any("lost" in text or "arrives after" in text for text in texts)
    assert not any(lost(packet) for packet in one.stories[0].story["packets"])


def test_a_capture_at_the_receiver_alone_shows_gaps(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    flow = first_flow(experiment)
    _, said = told(captured(experiment, tmp_path / "results", flow["dst"]), flow["id"])
    assert (1_001_010, "SYN arrives") in said[:1]
    assert (
        1_004_240,
        "bytes 2,921 to 4,380 arrive; before bytes 1,461 to 2,920, which are missing; marked on the way",
    ) in said
    assert (1_036_000, "bytes 1,461 to 2,920 arrive; fills a gap; marked on the way") in said
    assert (1_036_010, "ACK of everything before byte 4,381 sent") in said


def test_a_story_from_a_capture_states_what_is_unknown(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    from rich.console import Console

    flow = first_flow(experiment)
    one, _ = told(captured(experiment, tmp_path / "results", flow["src"]), flow["id"])
    console = Console(width=150, file=io.StringIO())
    with console.capture() as shown:
        console.print(story(one))
    text = shown.get()
    names = f"h{flow['src']}", f"h{flow['dst']}"
    assert f"From the frames of {names[0]}: where they waited between hosts is not known." in text
    assert f"{names[1]} was not captured: whether a frame reached it is not known." in text
    assert "not known" in next(line for line in text.splitlines() if line.startswith("T; 'C' P"))


def test_slowest_flows_are_chosen_among_captured_ones(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    flow = first_flow(experiment)
    other = next(host for host in range(4) if host not in (flow["src"], flow["dst"]))
    result = captured(experiment, tmp_path / "results", other)
    place = select_runs(result)
    flows = {row["id"]: row for row in result.lab.flows.iter_rows(named=True)}
    for found in slowest(result, place, 1_000):
        assert other in (flows[found]["src"], flows[found]["dst"])
    with pytest.raises(ExplainError, match="neither host was captured") as refused:
        explain(result, place, [flow["id"]])
    assert refused.value.code == "TC-X005"
    points = f"--capture host:{flow['src']} --capture host:{flow['dst']}"
    assert refused.value.hint is not None
    assert f"--on lab --repeat 2 {points}" in refused.value.hint


def test_without_a_capture_explain_names_the_command_that_makes_one(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    flow = first_flow(experiment)
    result = tailcut.run(tailcut.load(experiment), on=tailcut.Lab(repeat=2), out=tmp_path / "results")
    with pytest.raises(ExplainError, match="without --capture") as refused:
        select_runs(result)
    # The slowest flow's ends.
    points = f"--capture host:{flow['src']} --capture host:{flow['dst']}"
    assert (refused.value.code, refused.value.hint) == (
        "TC-X005",
        f"make all of them once more: tailcut run {shlex.quote(result.plan['source_file'])} --on lab --repeat 3"
        f" {points} --out {result.directory}",
    )
    again = tailcut.run(
        tailcut.load(experiment),
        on=tailcut.Lab(repeat=3),
        out=tmp_path / "results",
        capture=[f"host:{flow['src']}", f"host:{flow['dst']}"],
    )
    assert select_runs(again).label == "seed 1, repeat 3 of the lab"
    with pytest.raises(ExplainError, match="without --capture"):
        select_runs(again, repeat=2)
    with pytest.raises(ExplainError, match="repeat 4") as missing:
        select_runs(again, repeat=4)
    assert missing.value.code == "TC-X002"


def test_the_simulators_runs_come_first_and_the_labs_when_asked(
    experiment: Path, tmp_path: Path, kernels: Kernels
) -> None:
    flow = first_flow(experiment)
    tailcut.run(tailcut.load(experiment), out=tmp_path / "results")
    result = captured(experiment, tmp_path / "results", flow["src"], flow["dst"])
    assert select_runs(result).lab == {}
    place = select_runs(result, on="lab")
    assert list(place.lab) == list(place.runs)
    simulated = tailcut.run(tailcut.load(experiment), out=tmp_path / "simulated")
    with pytest.raises(ExplainError, match="no finished run of the kernel lab") as refused:
        select_runs(simulated, on="lab")
    assert refused.value.code == "TC-X001"


def test_a_capture_that_was_full_says_so(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    kernels.left_out = 5
    flow = first_flow(experiment)
    _, said = told(captured(experiment, tmp_path / "results", flow["src"], flow["dst"]), flow["id"])
    assert said[-1][1] == "the capture was full: later packets are not in it"


def test_a_capture_that_cannot_be_read_is_refused(experiment: Path, tmp_path: Path, kernels: Kernels) -> None:
    flow = first_flow(experiment)
    result = captured(experiment, tmp_path / "results", flow["src"])
    (file,) = (tmp_path / "results").glob("runs/*/capture.pcapng")
    whole = file.read_bytes()
    write(file, troubled({"flows": [flow]}), [flow["src"]], 40)
    cut = file.read_bytes()
    for damaged, why in ((cut, "cut after 40 bytes"), (whole[:-7], "ends within"), (b"frames", "no pcapng file")):
        file.write_bytes(damaged)
        with pytest.raises(ExplainError, match=why) as refused:
            explain(result, select_runs(result), [flow["id"]])
        assert refused.value.code == "TC-X006"


REPSYN = '[schemes.RepSYN]\nreplicate = { kind = "repsyn" }\n'


def raced(at_us: Sequence[float]) -> Wires:
    """Two connections of the first flow, each from a port that a kernel chose, begun at these times after its start."""

    def wires(demand: dict[str, Any]) -> list[Wire]:
        flow = demand["flows"][0]
        found = []
        for number, at in enumerate(at_us):
            copy = min(number, 1)
            wire = Wire((flow["src"], flow["dst"]), 40_000 + number, flow["start_ps"] / 1e6, copy)
            wire.there(at, at + 1_000, SYN, 0)
            wire.back(at + 1_010, at + 2_010, SYN | ACK, 1, seq=0)
            found.append(wire)
        return found

    return wires


def test_connections_with_kernel_chosen_ports_are_found_by_their_start(
    experiment: Path, tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailcut.lab.repnet.program", lambda: ["node", "main.js"])
    experiment.write_text(experiment.read_text() + REPSYN)
    whole = tailcut.load(experiment).plan["runs"][1]
    flow = json.loads(_core.demand(json.dumps(whole)))["flows"][0]
    kernels.wires = raced([20, 25])
    result = captured(experiment, tmp_path / "results", flow["src"], flow["dst"])
    (one,) = explain(result, select_runs(result, "RepSYN"), [flow["id"]])
    assert [(packet["copy"], packet["kind"]) for packet in one.stories[0].story["packets"]] == [
        (0, "syn"),
        (1, "syn"),
        (0, "syn-ack"),
        (1, "syn-ack"),
    ]
    # Under the other scheme the flow has the port of its plan, from which nothing came.
    assert one.without == {"T; 'C' P": "its frames are not in the capture"}
    kernels.wires = raced([20, 25, 30])
    result = captured(experiment, tmp_path / "ambiguous", flow["src"], flow["dst"])
    with pytest.raises(ExplainError, match="ports chosen by the kernel") as refused:
        explain(result, select_runs(result, "RepSYN"), [flow["id"]])
    assert refused.value.code == "TC-X006"


@pytest.mark.usefixtures("kernel")
def test_stories_of_captured_frames_agree_with_the_flow_table(experiment: Path, tmp_path: Path) -> None:
    result = captured(experiment, tmp_path / "results", 0, 1, 2, 3)
    place = select_runs(result)
    flows = {row["id"]: row for row in result.lab.flows.iter_rows(named=True)}
    stories = explain(result, place, slowest(result, place, len(flows)))
    assert len(stories) == len(flows) > 0
    for one in stories:
        (under,) = one.stories
        row, packets = flows[one.flow], under.story["packets"]
        data = [packet for packet in packets if packet["kind"] == "data"]
        assert packets[0]["kind"] == "syn"
        # What is still on its way when the run ends has no end; nothing else has none.
        ends = [(packet["sent_ps"], packet["end"]["at_ps"]) for packet in packets if packet["end"] is not None]
        last_ps = under.story["until_ps"] - 2 * max(at - sent for sent, at in ends)
        assert all(packet["end"] is not None for packet in packets if packet["sent_ps"] < last_ps)
        assert {packet["seq"] for packet in data} >= {1}
        assert max(packet["seq"] + packet["bytes"] for packet in data) == 1 + row["bytes"]
        received = [packet for packet in data if packet["end"] is not None and packet["end"]["how"] == "received"]
        there = {byte for packet in received for byte in range(packet["seq"], packet["seq"] + packet["bytes"])}
        assert there == set(range(1, 1 + row["bytes"])), "every byte is in a frame that has arrived"
        # A frame is at its host before the application has what is in it.
        if row["retransmissions"] == 0:
            assert max(packet["end"]["at_ps"] for packet in received) <= under.story["start_ps"] + under.story["fct_ps"]
        known = under.story["start_ps"] + under.story["fct_ack_ps"]
        again = [packet for packet in packets if packet["again"] and packet["sent_ps"] < known]
        assert bool(again) == (row["retransmissions"] > 0)
