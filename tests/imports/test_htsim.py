"""Connection matrices and fat trees of htsim."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.imports import carried, finished, graph, imported, read_or_refused, refused, written
from support.traces import Flow
from tailcut import imports
from tailcut.imports import ImportOptions

LEAVES = """# eight hosts
Nodes 8
Tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 2

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 500
Switch_Latency_ns 100
"""
TREE = """Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 10
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 100
Tier 1
Downlink_speed_Gbps 10
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 200
Tier 2
Downlink_speed_Gbps 10
Radix_Down 8
Bundle 2
Downlink_Latency_ns 300
"""
MATRIX = """Nodes 8
Connections 3
0->4 id 7 start 0 size 30000
5->1 id 8 start 1000 size 1500 # a comment
2->3 start 2.5e6 id 9 size 7
"""
FILES = {"leaves.topo": LEAVES, "some.cm": MATRIX}


def ends(directory: Path) -> Counter[tuple[str, ...]]:
    """How many links join which nodes."""
    return Counter(tuple(sorted((edge["source"], edge["target"]))) for edge in graph(directory)["edges"])


def test_flows_are_taken_over_with_their_numbers(tmp_path: Path) -> None:
    assert carried(imported(tmp_path, FILES)) == [
        Flow(7, 0, 4, 30_000, 0),
        Flow(8, 5, 1, 1_500, 1),
        Flow(9, 2, 3, 7, 2_500),
    ]


def test_what_is_imported_runs(tmp_path: Path) -> None:
    assert finished(imported(tmp_path, FILES)) == 3


def test_leaves_are_joined_to_every_spine(tmp_path: Path) -> None:
    found = ends(imported(tmp_path, FILES))
    assert found == Counter(
        [(f"host{host}", f"tor{host // 4}") for host in range(8)]
        + [(f"agg{agg}", f"tor{tor}") for tor in (0, 1) for agg in (0, 1)]
    )


def test_a_switchs_time_is_shared_by_the_links_on_its_sides(tmp_path: Path) -> None:
    edges = graph(imported(tmp_path, FILES))["edges"]
    assert [edges[index]["propagation"] for index in (0, -1)] == ["1150ns", "700ns"]


def test_a_tree_of_three_tiers_has_the_links_of_htsim(tmp_path: Path) -> None:
    found = ends(imported(tmp_path, {"tree.topo": TREE}))
    cores = [(f"agg{agg}", f"core{agg % 2}") for agg in range(8)]
    assert {pair: found[pair] for pair in cores} == dict.fromkeys(cores, 2)
    assert sum(found.values()) == 16 + 16 + 16
    assert found["agg0", "tor1"] == 1
    assert found["agg2", "tor1"] == 0


def test_a_matrix_alone_is_put_on_a_star(tmp_path: Path) -> None:
    out = imported(tmp_path, {"some.tm": MATRIX})
    assert "hosts = 8" in (out / "experiment.toml").read_text()
    assert len(carried(out)) == 3


def test_starts_are_read_in_the_unit_asked_for(tmp_path: Path) -> None:
    matrix = "Nodes 3\nConnections 2\n1->0 id 1 start 15 size 9\n2->0 id 2 start 0.5 size 8\n"
    out = imported(tmp_path, {"a.cm": matrix}, ImportOptions(start_unit_ps=10**6))
    assert carried(out) == [Flow(2, 2, 0, 8, 500), Flow(1, 1, 0, 9, 15_000)]


def test_a_start_below_a_nanosecond_suggests_microseconds(tmp_path: Path) -> None:
    error = refused(tmp_path, {"a.cm": "Nodes 2\nConnections 1\n1->0 id 1 start 15 size 9\n"})
    assert "--start-unit us" in (error.hint or "")


def test_messages_on_one_connection_become_flows(tmp_path: Path) -> None:
    matrix = "Nodes 2\nConnections 3\n" + "".join(
        f"0->1 id 1 {mark} size 7\n" for mark in ("msg start 0", "msg 2 start 0", "addon msg start 0")
    )
    _, found = imports.read(written(tmp_path, {"a.cm": matrix}))
    assert [(flow.size, flow.id) for flow in found.flows or []] == [(7, None)] * 3
    assert [note.partition(": ")[2].split()[0] for note in found.notes] == ["marks", "messages"]


def test_priorities_and_queues_are_left_out_with_a_note(tmp_path: Path) -> None:
    files = {"a.topo": LEAVES + "Queue_Down 100\n", "a.cm": MATRIX.replace("size 7", "size 7 prio 3")}
    _, found = imports.read(written(tmp_path, files))
    assert ["a.topo:19: Queue_Down is left" in found.notes[0], "a.cm:5: priorities" in found.notes[1]] == [True, True]


@pytest.mark.parametrize(
    ("name", "old", "new", "place", "message"),
    [
        ("some.cm", "Connections 3", "Connections 4", "2:13", "4 connections are announced, but 3 follow"),
        ("some.cm", "Connections 3", "Connections 3\nTriggers 1", "3:10", "1 triggers are announced, but 0 follow"),
        ("some.cm", "start 1000", "trigger 4", "4:1", "the connection waits for trigger 4, which no line has"),
        ("some.cm", "size 7", "size 7 send_done_trigger 2", "5:1", "the connection fires trigger 2, which no line has"),
        ("some.cm", "2->3", "trigger id 1 oneshot\n2->3", "5:1", "no line says how many triggers there are"),
        ("some.cm", "2->3", "failure switch_type AGG\n2->3", "5:1", "failures cannot be imported"),
        ("some.cm", "2->3", "9->3", "5:1", "there is no node 9: the matrix counts 8"),
        ("some.cm", "2->3", "3->3", "5:1", "a flow from a host to itself"),
        ("some.cm", "2->3", "x->3", "5:1", "node: 'x' is not a non-negative integer"),
        ("some.cm", "start 1000", "start 1500.5", "4:17", "start: 1500.5 is finer than a nanosecond"),
        ("some.cm", "start 1000", "begin 0", "4:11", "'begin' is no attribute of a connection"),
        ("some.cm", "id 8", "id 7", "4:9", "id 7 is that of line 3, too"),
        ("some.cm", " size 7", "", "5:1", "the connection has no size, and lasts for ever"),
        ("some.cm", "size 7", "size", "5:23", "size has no value"),
        ("some.cm", "Nodes 8\n", "", "2:1", "no line before says how many nodes there are"),
        ("some.cm", "Nodes 8", "Nodes 9", "1:7", "9 nodes, and the topology has 8 hosts"),
        ("leaves.topo", "Tiers 2", "Tiers 4", "3:7", "4 tiers"),
        ("leaves.topo", "Podsize 8", "Podsize 3", "4:9", "8 nodes are no whole number of pods of 3"),
        ("leaves.topo", "Radix_Up 2", "Radix_Up 3", "6:1", "Radix_Up of tier 0 is 3, and a pod has 2 switches with 1"),
        ("leaves.topo", "Radix_Down 4", "Radix_Down 3", "6:1", "a pod of 8 is no whole number of switches with 3"),
        ("leaves.topo", "Radix_Down 4", "Radix_Dawn 4", "8:1", "'Radix_Dawn' is no attribute here"),
        ("leaves.topo", "Radix_Down 4", "Radix_Down 4\nRadix_Down 4", "9:1", "Radix_Down is given twice"),
        ("leaves.topo", "Podsize 8", "", "18:1", "Podsize is missing"),
        ("leaves.topo", "Tier 1", "Tier 2", "18:1", "Tier 1 is missing"),
    ],
)
def test_what_has_no_place_here_is_refused_by_line_and_column(
    name: str, old: str, new: str, place: str, message: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, FILES | {name: FILES[name].replace(old, new, 1)})
    assert str(error).startswith(f"{tmp_path / name}:{place}: {message}")
    assert error.hint


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.integers(1, 10**12), st.integers(0, 10**14)), min_size=1, max_size=20))
def test_every_size_and_start_comes_through_as_it_is(rows: list[tuple[int, int]], tmp_path: Path) -> None:
    listed = "".join(f"0->1 start {ns * 1000} size {size}\n" for size, ns in rows)
    _, found = imports.read(written(tmp_path, {"a.cm": f"Nodes 2\nConnections {len(rows)}\n{listed}"}))
    assert [(flow.size, flow.start_ns) for flow in found.flows or []] == rows


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(FILES)),
    at=st.integers(0, 300),
    gone=st.integers(0, 6),
    put=st.text("0123 .eE->\n\tNTsizdart", max_size=6),
)
def test_files_with_a_change_anywhere_are_read_or_refused(
    name: str, at: int, gone: int, put: str, tmp_path: Path
) -> None:
    text = FILES[name]
    at %= len(text)
    read_or_refused(written(tmp_path, FILES | {name: text[:at] + put + text[at + gone :]}))


def test_a_matrix_is_no_text_from_a_byte_on(tmp_path: Path) -> None:
    error = refused(tmp_path, {"a.cm": b"Nodes 2\nConnections 1\n0->1 start 0 size \xff\n"})
    assert error.code == "TC-I001"
    assert "it is not text in UTF-8 (byte 41)" in str(error)


def test_messages_that_share_an_id_need_it_no_more(tmp_path: Path) -> None:
    text = (
        "Nodes 3\nConnections 3\n0->1 id 4 start 0 size 5\n0->1 id 4 msg 2 start 0 size 6\n1->2 id 4 start 0 size 7\n"
    )
    error = refused(tmp_path, {"a.cm": text})
    assert f"{tmp_path / 'a.cm'}:5:9: id 4 is that of line 4, too" in str(error)
