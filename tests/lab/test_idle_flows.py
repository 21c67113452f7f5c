"""Flows alone over every topology, held to their closed form and what a connection adds."""

import json
from pathlib import Path

import pytest

from support.kernels import carried
from support.lab import bench
from support.skipping import busy, judged_when_idle, on_an_idle_machine
from tailcut import _core

lone = bench("lab_lone")


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("topology", lone.TOPOLOGIES)
@judged_when_idle
def test_a_flow_on_the_idle_fabric_takes_the_closed_form_plus_one_constant(tmp_path: Path, topology: str) -> None:
    flows, unfaithful = [], []
    for run in lone.planned(topology, tmp_path):
        done = carried(run)
        flows += lone.flows(topology, json.loads(_core.demand(json.dumps(run)))["flows"], done)
        unfaithful += done["unfaithful"]
    assert len(flows) == sum(count for sizes in lone.RATES_MBPS.values() for count in sizes.values())
    # No real flow is faster than the best possible, whatever else the machine does.
    assert [one for one in flows if one.late_ns < 0] == []
    if unfaithful:
        busy(f"unfaithful: {'; '.join(unfaithful)}")
    constant = lone.constant_ns(flows)
    with on_an_idle_machine():
        assert constant <= lone.CONSTANT_NS
        assert [one for one in lone.cells(flows, constant) if abs(one.apart) > lone.SHARE] == []


@pytest.mark.parametrize("topology", lone.TOPOLOGIES)
def test_idle_flows_have_every_size_and_run_one_after_the_other(tmp_path: Path, topology: str) -> None:
    sizes = set()
    for run in lone.planned(topology, tmp_path):
        flows = json.loads(_core.demand(json.dumps(run)))["flows"]
        ends = [flow["start_ps"] + flow["ideal_ps"] for flow in flows]
        assert all(flow["start_ps"] > end for flow, end in zip(flows[1:], ends, strict=False))
        sizes |= {flow["bytes"] for flow in flows}
    assert min(sizes) == 1
    assert max(sizes) == 1_000_000


def test_the_table_gives_each_sizes_deviation_from_closed_form_plus_constant() -> None:
    small = [lone.Flow("star", 1, 4e6, late) for late in (90e3, 100e3, 500e3)]
    large = [lone.Flow("star", 10**6, 9.9e6, late) for late in (100e3, 400e3, 600e3)]
    constant = lone.constant_ns(small + large)
    assert constant == 100e3
    assert [round(one.apart, 4) for one in lone.cells(small + large, constant)] == [0, 0.03]
    assert lone.table(lone.cells(large, constant))[2] == "| star | 1,000,000 | 3 | 9.90 | 400 | +3.00 % |"
