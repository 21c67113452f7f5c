"""Topologies of containerlab."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.imports import carried, finished, graph, imported, read_or_refused, refused, written
from tailcut import imports
from tailcut.imports import ImportOptions

LAB = """# a small lab
name: ../../escape
topology:
  defaults:
    kind: linux
  nodes:
    leaf:
      kind: nokia_srlinux
      image: example/one
    web:
    db: {}
    cache:
      labels: {tailcut-kind: host}
  links:
    - endpoints: ["web:eth1", "leaf:e1-1"]
      rate: 10000000
      delay: 5us
    - type: veth
      endpoints:
        - node: db
          interface: eth1
        - node: leaf
          interface: e1-2
      impairments: {rate: 2.5Gbit, delay: 0.0015ms, jitter: 0ms}
    - endpoints: [leaf:e1-3, cache:eth1]
      vars:
        bandwidth: 100mbit
        latency: 1ms
"""
NAME = "small.clab.yml"


def test_rates_and_delays_of_links_are_taken_over_exactly(tmp_path: Path) -> None:
    found = graph(imported(tmp_path, {NAME: LAB}))
    assert [(node["id"], node["kind"]) for node in found["nodes"]] == [
        ("web", "host"), ("db", "host"), ("cache", "host"), ("leaf", "switch"),
    ]  # fmt: skip
    assert [(edge["source"], edge["target"], edge["rate"], edge["propagation"]) for edge in found["edges"]] == [
        ("web", "leaf", "10Gbps", "5us"),
        ("db", "leaf", "2500Mbps", "1500ns"),
        ("leaf", "cache", "100Mbps", "1ms"),
    ]


def test_an_imported_experiment_runs_and_no_imported_name_becomes_a_path(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    out = imported(tmp_path / "inner", {NAME: LAB})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner"]
    assert carried(out)
    text = (out / "experiment.toml").read_text()
    (out / "experiment.toml").write_text(text.replace("load = 0.3", "load = 0.001").replace("web-search", "1KB"))
    assert finished(out) >= 0


def test_links_without_rate_or_delay_take_those_of_the_command_line(tmp_path: Path) -> None:
    bare = LAB.replace("      rate: 10000000\n      delay: 5us\n", "")
    found = graph(imported(tmp_path, {NAME: bare}, ImportOptions(rate_bps=10**9, delay_ps=7_000_000)))
    assert (found["edges"][0]["rate"], found["edges"][0]["propagation"]) == ("1Gbps", "7us")


def test_a_container_with_several_links_becomes_a_switch_with_a_note(tmp_path: Path) -> None:
    _, found = imports.read(written(tmp_path, {NAME: LAB.replace("kind: nokia_srlinux", "kind: linux")}))
    assert found.notes == [f"{tmp_path / NAME}:7: leaf has 3 links and is imported as a switch"]


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("topology:", "topologie:", "2:1", "topology is missing"),
        ("web:eth1", "wob:eth1", "15:19", "there is no node 'wob'"),
        ("web:eth1", "host:eth1", "15:19", "host is the machine's side of a link"),
        ("type: veth", "type: macvlan", "18:13", "links of type macvlan"),
        ("rate: 10000000", "rate: fast", "16:13", "rate: 'fast' is not a number"),
        ("delay: 5us", "delay: 5", "17:14", "delay: '5' is no delay with a unit"),
        ("      delay: 5us\n", "", "15:7", "the link states no delay"),
        ("jitter: 0ms", "jitter: 2ms", "24:61", "jitter is not simulated on a link"),
        ("    db: {}\n", "    db: {}\n    db: {}\n", "12:5", "'db' is given twice"),
        ("    db: {}\n", "    db: {}\n    alone: {}\n", "12:5", "alone has no link"),
        ("[leaf:e1-3, cache:eth1]", "[cache:eth1]", "25:7", "1 endpoints: a link has two"),
        ("[leaf:e1-3, cache:eth1]", "[leaf:e1-3, leaf:e1-4]", "12:5", "cache has no link"),
        ("tailcut-kind: host", "tailcut-kind: router", "13:30", "tailcut-kind: 'router' is neither host nor switch"),
        ("  links:\n", "  links: {}\n  more:\n", "14:10", "a list is expected here"),
        ("    web:\n", "    web: &a [*a]\n", "10:10", "a table of keys is expected here"),
        ("    web:\n", "    web: *nothing\n", "10:10", "not valid YAML: found undefined alias"),
        ("    web:\n", "    web: [\n", "12:5", "not valid YAML: "),
    ],
)
def test_what_has_no_place_here_is_refused_by_line_and_column(
    old: str, new: str, place: str, message: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, {NAME: LAB.replace(old, new, 1)})
    assert str(error).startswith(f"{tmp_path / NAME}:{place}: {message}")
    assert error.hint


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 5000,
        "!!python/object/apply:os.system ['true']",
        "topology: {nodes: {a: !!python/name:os.system }, links: []}",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ntopology: {nodes: *c, links: *c}",
    ],
)
def test_yaml_that_would_do_harm_is_refused(content: str, tmp_path: Path) -> None:
    assert read_or_refused(written(tmp_path, {NAME: content})) is False


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 800), gone=st.integers(0, 6), put=st.text("01 .:-\n[]{}&*!\"'abrteMG", max_size=6))
def test_files_with_a_change_anywhere_are_read_or_refused(at: int, gone: int, put: str, tmp_path: Path) -> None:
    at %= len(LAB)
    read_or_refused(written(tmp_path, {NAME: LAB[:at] + put + LAB[at + gone :]}))
