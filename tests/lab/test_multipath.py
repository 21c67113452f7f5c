"""Multipath TCP over real kernels: what of a plan can be had, and whether subflows take the simulator's paths."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tailcut
from support.kernels import AS_NOBODY, carried, offered, planned
from support.skipping import busy, judged_when_idle, missing, needs_root, on_an_idle_machine
from tailcut.backends.lab import fields
from tailcut.lab import process

MPTCP = """
title = "subflows"
seeds = 1

[topology]
kind = "leaf-spine"
racks = 2
hosts_per_rack = 2
spines = 4
rate = { host = "20Mbps", spine = "5Mbps" }

[transport]
kind = "mptcp"
subflows = 4

[transport.tcp]
initial_rto = "1s"

[traffic]
kind = "trace"
file = "flows.csv"

[horizon]
arrivals = "400ms"
drain = "60s"

[series]
links = ["s0>s2", "s0>s3", "s0>s4", "s0>s5", "s1>s2", "s1>s3", "s1>s4", "s1>s5"]
interval = "1ms"

[schemes.MPTCP]
"""
BYTES = 1_500_000
PATH_BPS = 5e6


@pytest.fixture(scope="module")
def multipath(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a long flow between the racks and short ones within them."""
    directory = tmp_path_factory.mktemp("multipath")
    short = "".join(f"{at % 4},{at % 4 ^ 1},{1 + 700 * at},{9_000 * at}\n" for at in range(1, 20))
    (directory / "flows.csv").write_text(f"src,dst,bytes,start_us\n0,3,{BYTES},0\n{short}")
    path = directory / "mptcp.toml"
    path.write_text(MPTCP)
    return path


@pytest.fixture(scope="module")
def subflows(kernel: None) -> None:
    if not offered("subflows"):
        missing("the kernel lab: this kernel has no Multipath TCP with subflows from user space")


def fatal(experiment: Path, fabric: str = "engine", **overrides: str) -> set[str]:
    told = fields(tailcut.load(experiment, set=overrides).plan, fabric)
    return {one["field"] for one in told if one["answer"] == "fatal"}


@pytest.fixture(scope="module")
def done(subflows: None, multipath: Path) -> dict[str, Any]:
    return carried(planned(multipath))


def written(path: Path, traffic: str) -> Path:
    """An experiment with other traffic, and half of the time for it."""
    trace = 'kind = "trace"\nfile = "flows.csv"'
    path.write_text(MPTCP.replace(trace, traffic).replace('"400ms"', '"200ms"'))
    return path


def carrying(series: Mapping[str, Any]) -> set[str]:
    """The links that carried anything."""
    return {name for name, values in series.items() if name.endswith("utilisation") and max(values) > 0}


@pytest.mark.usefixtures("subflows")
def test_fields_of_multipath_tcp_are_reported_done_near_or_fatal(multipath: Path) -> None:
    told = {one["field"]: one for one in fields(tailcut.load(multipath).plan)}
    assert told["transport.kind"]["answer"] == "near"
    assert "uncoupled" in told["transport.kind"]["text"]
    assert told["transport.receive_window"]["answer"] == "done"
    assert fatal(multipath) == set()
    assert fatal(multipath, **{"transport.subflows": "9"}) == {"transport.subflows"}
    assert fatal(multipath, **{"transport.tcp.close": '"none"'}) == {"transport.tcp.close"}
    assert fatal(multipath, **{"transport.tcp.initial_rto": '"200ms"'}) == {"transport.tcp.initial_rto"}
    assert "transport.subflows" in fatal(multipath, "kernel")
    beside = multipath.with_name("beside.toml")
    beside.write_text(MPTCP + '[schemes.RepFlow]\ntransport.kind = "tcp"\nreplicate = { kind = "repflow" }\n')
    assert "transport.kind" in fatal(beside), "Node would carry it"


def test_every_flow_arrives_and_the_long_one_has_all_of_its_subflows(done: dict[str, Any]) -> None:
    long, *short = sorted(done["measured"]["flows"], key=lambda flow: int(flow["index"]))
    assert len(short) == 19
    for flow in (long, *short):
        assert flow["connect_ns"] < flow["fct_ns"] < flow["fct_ack_ns"]
    assert done["facts"]["strange"] == 0
    assert 3 <= done["joined"] <= 3 * 20
    # The counts are those of all subflows together; what one carries after another has is no
    # retransmission of TCP's.
    assert long["data_packets"] - long["retransmissions"] >= BYTES // 1460
    assert "retransmissions" not in done["measured"]["unknown"]
    settings = dict(done["hosts"]["sysctls"])
    assert [settings[f"mptcp/{name}"] for name in ("enabled", "pm_type", "checksum_enabled")] == ["1", "1", "0"]


def test_subflows_take_the_simulators_paths(done: dict[str, Any], multipath: Path, tmp_path: Path) -> None:
    used = {one["name"]: one["values"] for one in done["measured"]["series"]}
    simulated = tailcut.run(tailcut.load(multipath), out=tmp_path / "results").series
    wanted = carrying(dict(simulated.group_by("name").agg(pl.col("value")).iter_rows()))
    assert carrying(used) == wanted
    forth = {name for name in wanted if name.startswith("link s0>")}
    assert 1 < len(forth) < 4, "some links have no subflow, or this says nothing"


@judged_when_idle
def test_the_bytes_cross_several_paths_at_once(done: dict[str, Any], multipath: Path) -> None:
    if done["unfaithful"]:
        done = carried(planned(multipath))
    if done["unfaithful"]:
        busy(f"unfaithful: {'; '.join(done['unfaithful'])}")
    (long,) = (flow for flow in done["measured"]["flows"] if flow["index"] == 0)
    with on_an_idle_machine():
        assert PATH_BPS / 8 * long["fct_ns"] / 1e9 < 0.8 * BYTES, "one path alone would not have carried them in time"


@pytest.mark.usefixtures("subflows")
def test_flows_that_wait_for_acknowledgements_are_started(multipath: Path) -> None:
    waiting = written(multipath.with_name("waiting.toml"), 'kind = "transfers"\nbytes = "20KB"')
    flows = carried(planned(waiting))["measured"]["flows"]
    assert len(flows) > 4, "those that waited are among them"
    assert all(flow["fct_ns"] is not None for flow in flows)


@pytest.mark.usefixtures("subflows")
@needs_root
def test_subflows_are_opened_without_root(multipath: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", AS_NOBODY))
    if not offered("namespaces") or not offered("hosts with reno") or not offered("subflows"):
        missing("the kernel lab without root: this kernel lets nobody make namespaces")
    run = planned(written(multipath.with_name("nobody.toml"), 'kind = "permutation"\nsizes = "200KB"'))
    assert carried(run)["joined"] >= 3, "nobody may not read a trace of root's"
