"""Switches as namespaces: what of a plan they realise, what is carried, and what is told of it."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tailcut
from support.kernels import network, planned
from tailcut import cli
from tailcut.backends import Capture, Options, backend
from tailcut.backends.lab import fields
from tailcut.errors import BackendError
from tailcut.lab import process
from tailcut.lab.fabrics import FABRICS

KERNEL = "kernel"


def answers(experiment: Path, **overrides: str) -> dict[str, str]:
    return {one["field"]: one["answer"] for one in fields(tailcut.load(experiment, set=overrides).plan, KERNEL)}


def carried(run: dict[str, Any]) -> dict[str, Any]:
    return process.run(json.dumps(run), lambda _now, _over: None, 120, fabric=KERNEL)


def test_what_kernels_realise_is_told_field_by_field(experiment: Path) -> None:
    told = answers(experiment)
    assert "fatal" not in told.values()
    assert {field for field, answer in told.items() if answer == "near" and not field.startswith("transport")} == {
        "topology.rate",
        "topology.propagation",
        "balance",
        "host.nic_queue",
    }
    assert told["queue.limit"] == "done"
    by_bytes = answers(experiment, **{"queue.limit": '"30KB"'})
    assert by_bytes["queue.limit"] == "near"


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("balance.kind", '"flowlet"', "balance.kind"),
        ("balance.kind", '"tinyflow"', "balance.kind"),
        ("balance.kind", '"drill"', "balance.kind"),
        ("queue.kind", '"red"', "queue.kind"),
        ("switch.shared_buffer", '"100KB"', "switch.shared_buffer"),
        ("host.framing_overhead", '"2B"', "host.framing_overhead"),
    ],
)
def test_what_kernels_do_not_realise_is_refused_by_name(experiment: Path, key: str, value: str, field: str) -> None:
    if key == "queue.kind":
        experiment.write_text(experiment.read_text().replace('limit = "50packets"', f"kind = {value}"))
        told = answers(experiment)
    else:
        told = answers(experiment, **{key: value})
    assert [name for name, answer in told.items() if answer == "fatal"] == [field]


@pytest.mark.parametrize("kind", ["ecmp", "spray", "round-robin"])
def test_what_the_kernel_balances_can_be_had(experiment: Path, kind: str) -> None:
    assert answers(experiment, **{"balance.kind": f'"{kind}"'})["balance"] in {"done", "near"}


def test_a_fabric_that_is_not_there_or_for_another_backend_is_refused(experiment: Path) -> None:
    wanted = tailcut.load(experiment)
    with pytest.raises(BackendError, match="'lab' has no fabric 'wood'") as refused:
        tailcut.run(wanted, on="lab", lab_fabric="wood")
    assert refused.value.code == "TC-B004"
    with pytest.raises(BackendError, match="'sim'"):
        tailcut.run(wanted, lab_fabric=KERNEL)
    capture = Options(lab_fabric=KERNEL, capture=Capture(("host:0",)))
    assert [gap.where for gap in backend("lab").check(wanted.plan, capture) if gap.fatal] == ["--capture"]


def test_the_command_tells_of_the_fabric_that_is_asked_for(experiment: Path) -> None:
    asked = ["check", str(experiment), "--on", "lab", "--set", 'balance.kind="flowlet"']
    runner = CliRunner()
    assert runner.invoke(cli.app, asked).exit_code == 0
    refused = runner.invoke(cli.app, [*asked, "--lab-fabric", KERNEL])
    assert refused.exit_code == 2
    assert "clang" in refused.stderr
    assert list(FABRICS) == ["engine", KERNEL]


@pytest.mark.usefixtures("kernel")
def test_runs_of_both_fabrics_lie_side_by_side_and_the_machine_is_as_before(experiment: Path, tmp_path: Path) -> None:
    before = network()
    wanted = tailcut.load(experiment)
    out = tmp_path / "results"
    tailcut.run(wanted, on="lab", out=out)
    result = tailcut.run(wanted, on="lab", out=out, lab_fabric=KERNEL)
    assert network() == before
    assert result.lab_runs["fabric"].to_list() == ["engine", KERNEL]
    assert sorted(result.summary()["backend"].unique()) == ["lab", "lab-kernel"]
    same = ["scheme", "seed", "id", "src", "dst", "bytes", "start_ns", "ideal_fct_ns", "finished"]
    engine, kernel = (result.lab_flows.filter(fabric=fabric).select(same) for fabric in FABRICS)
    assert kernel.equals(engine)
    assert kernel["finished"].all()
    place = next((out / "runs").glob("*-lab-kernel-1"))
    about = json.loads((place / "run.json").read_text())
    assert about["lab"]["fabric"] == KERNEL
    switches = about["lab"]["switches"]
    seeds = [dict(one["sysctls"])["ipv4/fib_multipath_hash_seed"] for one in switches]
    assert len(set(seeds)) == len(switches) == 4
    # A rack of two hosts, and two ports towards the other rack.
    assert [len(route.split()) for route in switches[0]["routes"]] == [1, 1, 2, 2]
    tiers = pl.read_parquet(place / "tiers.parquet")
    assert tiers["max_queue"].null_count() == tiers.height
    up, down = (tiers.filter(tier="host", direction=way).row(0, named=True) for way in ("up", "down"))
    assert up["packets"] == about["lab"]["frames"]
    assert up["packets"] == down["packets"] + tiers["drops"].sum() - up["drops"]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("kind", ["spray", "round-robin"])
def test_sprayed_packets_take_every_port_alike(experiment: Path, kind: str) -> None:
    done = carried(planned(experiment, **{"balance.kind": f'"{kind}"'}))
    assert all(flow["fct_ns"] for flow in done["measured"]["flows"])


@pytest.mark.usefixtures("kernel")
def test_a_full_queue_drops_and_what_is_dropped_is_sent_again(experiment: Path) -> None:
    done = carried(planned(experiment, **{"queue.limit": '"3packets"', "traffic.load": "0.6"}))
    measured = done["measured"]
    assert all(flow["fct_ns"] for flow in measured["flows"])
    assert measured["dropped"] == sum(tier["drops"] for tier in measured["tiers"]) > 0
    assert sum(flow["retransmissions"] for flow in measured["flows"]) > 0
    assert done["facts"]["thrown_away"] == {}
