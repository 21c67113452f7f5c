"""``topology.txt`` and ``flow.txt`` of HPCC's simulator."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.imports import carried, finished, graph, imported, read_or_refused, refused, written
from support.traces import Flow
from tailcut import imports

TOPOLOGY = """5 2 4
2 4
0 2 100Gbps 0.001ms 0
1 2 25Gb/s 1500ns 0.000000
2 4 40Gbps 2us 0
3 4 10Gbps 0.0000015 0

First line: counts
"""
FLOWS = "3\n0 3 3 100 30000 2\n3 1 3 100 1500 2.000000001\n1 0 3 101 7 3.5e0\n"
FILES = {"topology.txt": TOPOLOGY, "flow.txt": FLOWS}


def test_a_network_is_taken_over_exactly(tmp_path: Path) -> None:
    found = graph(imported(tmp_path, FILES))
    assert [(node["id"], node["kind"]) for node in found["nodes"]] == [
        ("host0", "host"), ("host1", "host"), ("host3", "host"), ("switch2", "switch"), ("switch4", "switch"),
    ]  # fmt: skip
    assert [(edge["source"], edge["target"], edge["rate"], edge["propagation"]) for edge in found["edges"]] == [
        ("host0", "switch2", "100Gbps", "1us"),
        ("host1", "switch2", "25Gbps", "1500ns"),
        ("switch2", "switch4", "40Gbps", "2us"),
        ("host3", "switch4", "10Gbps", "1500ns"),
    ]


def test_flows_are_taken_over_to_the_nanosecond(tmp_path: Path) -> None:
    assert carried(imported(tmp_path, FILES)) == [
        Flow(0, 0, 2, 30_000, 2_000_000_000),
        Flow(1, 2, 1, 1_500, 2_000_000_001),
        Flow(2, 1, 0, 7, 3_500_000_000),
    ]


def test_what_is_imported_runs(tmp_path: Path) -> None:
    assert finished(imported(tmp_path, FILES)) == 3


def test_an_error_rate_becomes_an_incident(tmp_path: Path) -> None:
    files = FILES | {"topology.txt": TOPOLOGY.replace("2 4 40Gbps 2us 0", "2 4 40Gbps 2us 0.01")}
    out = imported(tmp_path, files)
    assert (
        '{ kind = "loss", link = "switch2>switch4", probability = 0.01, at = "0s" }'
        in (out / "experiment.toml").read_text()
    )
    assert len(carried(out)) == 3


def test_a_topology_alone_asks_for_flows(tmp_path: Path) -> None:
    out = imported(tmp_path, {"topology.txt": TOPOLOGY})
    assert "ask for yours" in (out / "experiment.toml").read_text()
    assert carried(out)


def test_switches_may_be_named_over_several_lines(tmp_path: Path) -> None:
    found = graph(imported(tmp_path, {"topology.txt": TOPOLOGY.replace("\n2 4\n", "\n2\n4\n", 1)}))
    assert [node["id"] for node in found["nodes"] if node["kind"] == "switch"] == ["switch2", "switch4"]


@pytest.mark.parametrize(
    ("name", "old", "new", "place", "message"),
    [
        ("topology.txt", "5 2 4\n", "5 2\n", "1:1", "three numbers are expected: nodes, switches, links"),
        ("topology.txt", "\n2 4\n", "\n2 2\n", "2:3", "switch 2 is named twice"),
        ("topology.txt", "\n2 4\n", "\n2 9\n", "2:3", "there is no node 9: the first line counts 5"),
        ("topology.txt", "5 2 4\n", "5 2 6\n", "8:1", "3 columns where 5 are expected"),
        ("topology.txt", "100Gbps", "fast", "3:5", "rate: 'fast' is not a number"),
        ("topology.txt", "100Gbps", "0Gbps", "3:1", "a rate of 0 bps"),
        ("topology.txt", "0.001ms", "0.001xs", "3:13", "delay: '0.001xs' is no delay with a unit"),
        ("topology.txt", "1500ns", "1.5fs", "4:12", "delay: 1.5fs is finer than a picosecond"),
        ("topology.txt", "2us 0", "2us 1.5", "5:16", "error rate: 1.5 is above 1"),
        ("topology.txt", "1 2 25Gb/s", "1 0 25Gb/s", "4:1", "host1 and host0 are both hosts"),
        ("topology.txt", "1 2 25Gb/s", "0 4 25Gb/s", "4:1", "host0 has a second link, and a host has one here"),
        ("topology.txt", "2 4 40Gbps", "2 2 40Gbps", "5:1", "a link from switch2 to itself"),
        ("flow.txt", "3\n", "4\n", "1:1", "fewer flows follow than the 4 that are counted"),
        ("flow.txt", "0 3 3 100", "0 2 3 100", "2:3", "node 2 is no host of the topology"),
        ("flow.txt", "0 3 3 100", "3 3 3 100", "2:1", "a flow from a host to itself"),
        ("flow.txt", "30000", "0", "2:1", "a flow of 0 bytes"),
        ("flow.txt", "30000", "1.5", "2:11", "bytes: '1.5' is not a non-negative integer"),
        ("flow.txt", "2.000000001", "2.0000000001", "3:16", "start: 2.0000000001 is finer than a nanosecond"),
        ("flow.txt", "3.5e0", "-1", "4:13", "start: -1 is below 0"),
        ("flow.txt", " 101 7", " 7", "4:1", "5 columns where 6 are expected"),
    ],
)
def test_what_has_no_place_here_is_refused_by_line_and_column(
    name: str, old: str, new: str, place: str, message: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, FILES | {name: FILES[name].replace(old, new, 1)})
    assert str(error).startswith(f"{tmp_path / name}:{place}: {message}")
    assert error.hint


def test_flows_beyond_the_stated_count_are_reported(tmp_path: Path) -> None:
    paths = written(tmp_path, FILES | {"flow.txt": FLOWS.replace("3\n", "2\n", 1)})
    _, found = imports.read(paths)
    assert len(found.flows or []) == 2
    assert "flow.txt:4: the flows from here on are more than the 2" in found.notes[0]


def test_flows_alone_are_refused(tmp_path: Path) -> None:
    assert "name both files" in (refused(tmp_path, {"flow.txt": FLOWS}).hint or "")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.integers(1, 10**12), st.integers(0, 10**12)), min_size=1, max_size=20))
def test_every_size_and_start_comes_through_as_it_is(rows: list[tuple[int, int]], tmp_path: Path) -> None:
    listed = "".join(f"0 3 3 100 {size} {ns // 10**9}.{ns % 10**9:09d}\n" for size, ns in rows)
    _, found = imports.read(written(tmp_path, FILES | {"flow.txt": f"{len(rows)}\n{listed}"}))
    assert [(flow.size, flow.start_ns) for flow in found.flows or []] == rows


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(FILES)),
    at=st.integers(0, 200),
    gone=st.integers(0, 6),
    put=st.text("0123 .eE-\n\tGbpsmx", max_size=6),
)
def test_files_with_a_change_anywhere_are_read_or_refused(
    name: str, at: int, gone: int, put: str, tmp_path: Path
) -> None:
    text = FILES[name]
    at %= len(text)
    read_or_refused(written(tmp_path, FILES | {name: text[:at] + put + text[at + gone :]}))
