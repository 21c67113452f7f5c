"""Switches as namespaces: what of a plan they realise, what is carried, and what is told of it."""

import json
import shutil
import subprocess
import sys
from itertools import pairwise
from operator import mul
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tailcut
from support import kernels
from support.bpf import in_kernel
from support.disturbances import star
from support.kernels import AS_NOBODY, LIMIT_SECONDS, network, offered, planned, wait_until_gone
from support.killing import Command
from support.lab import LAB
from support.skipping import busy, judged_when_idle, missing, needs_root, on_an_idle_machine
from tailcut import cli
from tailcut.backends import backend
from tailcut.backends.lab import fields
from tailcut.errors import BackendError
from tailcut.lab import process, programs
from tailcut.lab.fabrics import FABRICS

KERNEL = "kernel"


def answers(experiment: Path, **overrides: str) -> dict[str, str]:
    return {one["field"]: one["answer"] for one in fields(tailcut.load(experiment, set=overrides).plan, KERNEL)}


def carried(run: dict[str, Any]) -> dict[str, Any]:
    return kernels.carried(run, fabric=KERNEL)


def test_check_reports_every_field_that_kernel_switches_realise(experiment: Path) -> None:
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
        ("balance.kind", '"drill"', "balance.kind"),
        ("queue.kind", '"red"', "queue.kind"),
        ("switch.shared_buffer", '"100KB"', "switch.shared_buffer"),
        ("host.framing_overhead", '"2B"', "host.framing_overhead"),
    ],
)
def test_fields_that_kernel_switches_cannot_realise_are_refused_by_name(
    experiment: Path, key: str, value: str, field: str
) -> None:
    if key == "queue.kind":
        experiment.write_text(experiment.read_text().replace('limit = "50packets"', f"kind = {value}"))
        told = answers(experiment)
    else:
        told = answers(experiment, **{key: value})
    assert [name for name, answer in told.items() if answer == "fatal"] == [field]


@pytest.mark.parametrize("key", ["queue.limit", "host.nic_queue"])
@pytest.mark.parametrize(("limit", "refused"), [(2**32 - 1, False), (2**32, True)])
def test_a_queue_of_more_bytes_than_tc_counts_is_refused(experiment: Path, key: str, limit: int, refused: bool) -> None:
    told = fields(tailcut.load(experiment, set={key: f"{limit}B"}).plan, KERNEL)
    assert (key in {one["field"] for one in told if one["answer"] == "fatal"}) == refused


@pytest.mark.parametrize("kind", ["ecmp", "spray", "round-robin"])
def test_kernel_switches_realise_these_balancers(experiment: Path, kind: str) -> None:
    assert answers(experiment, **{"balance.kind": f'"{kind}"'})["balance"] in {"done", "near"}


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize(("name", "value"), [("detect", "host-marked"), ("reroute", "five-tuple"), ("samples", 9)])
def test_tinyflow_parameters_that_its_program_lacks_are_refused_by_name(
    experiment: Path, name: str, value: str | int
) -> None:
    tinyflow = {"balance.kind": '"tinyflow"'}
    assert "fatal" not in answers(experiment, **tinyflow).values()
    told = answers(experiment, **tinyflow, **{f"balance.{name}": json.dumps(value)})
    assert [field for field, answer in told.items() if answer == "fatal"] == [f"balance.{name}"]


@pytest.mark.parametrize("kind", ["flowlet", "tinyflow"])
def test_switches_that_remember_flows_are_refused_where_programs_are_not_compiled(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(programs, "BUILT", experiment.parent)
    plan = tailcut.load(experiment, set={"balance.kind": f'"{kind}"'}).plan
    (refused,) = [one for one in fields(plan, KERNEL) if one["answer"] == "fatal"]
    assert refused["field"] == "balance.kind"
    assert "make lab-bpf" in refused["text"]


@pytest.mark.usefixtures("bpf")
@needs_root
def test_switches_that_remember_flows_are_refused_to_another_user_than_root(experiment: Path) -> None:
    code = """
import os, sys
from tailcut import _core
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
print(_core.lab_check(sys.stdin.read(), False, "kernel", sys.argv[1]))
"""
    run = planned(experiment, **{"balance.kind": '"flowlet"'})
    asked = [sys.executable, "-c", code, str(programs.BUILT)]
    said = subprocess.run(asked, input=json.dumps(run), capture_output=True, check=True, encoding="utf-8").stdout
    refused = [one["text"] for one in json.loads(said)["told"] if one["answer"] == "fatal"]
    assert len(refused) == 1
    assert "this user may not load BPF programs: run the lab as root" in refused[0]


def test_an_unknown_fabric_or_one_for_another_backend_is_refused(experiment: Path) -> None:
    wanted = tailcut.load(experiment)
    with pytest.raises(BackendError, match="the lab has no fabric 'wood'") as refused:
        tailcut.run(wanted, on=tailcut.Lab(fabric="wood"))
    assert refused.value.code == "TC-B004"
    with pytest.raises(BackendError, match="the backend 'sim' has no option 'fabric'") as refused:
        backend("sim", fabric=KERNEL)
    assert (refused.value.code, refused.value.hint) == ("TC-B003", "use it with --on lab")
    with pytest.raises(BackendError, match="the lab has no fabric 'wood'"):
        tailcut.load(experiment, set={"lab.fabric": '"wood"'})


def test_the_experiment_names_the_fabric_and_the_command_may_name_another(experiment: Path) -> None:
    asked = ["check", str(experiment), "--on", "lab", "--set", 'balance.kind="drill"']
    named = [*asked, "--set", f'lab.fabric="{KERNEL}"']
    runner = CliRunner()
    assert [runner.invoke(cli.app, command).exit_code for command in (asked, named)] == [0, 2]
    assert runner.invoke(cli.app, [*named, "--lab-fabric", "engine"]).exit_code == 0


def test_the_fabric_that_an_experiment_names_changes_no_run(experiment: Path) -> None:
    without, named = (tailcut.load(experiment, set=keys).plan for keys in ({}, {"lab.fabric": f'"{KERNEL}"'}))
    assert named["lab"] == {"fabric": KERNEL}
    assert named["runs"] == without["runs"]


def test_check_reports_on_the_fabric_of_the_command_line(experiment: Path) -> None:
    asked = ["check", str(experiment), "--on", "lab", "--set", 'balance.kind="drill"']
    runner = CliRunner()
    assert runner.invoke(cli.app, asked).exit_code == 0
    refused = runner.invoke(cli.app, [*asked, "--lab-fabric", KERNEL])
    assert refused.exit_code == 2
    assert "this balancer is not available" in " ".join(refused.stderr.split())
    assert list(FABRICS) == ["engine", KERNEL]


@pytest.mark.usefixtures("kernel")
def test_runs_of_both_fabrics_share_a_directory_and_leave_the_machine_unchanged(
    experiment: Path, tmp_path: Path
) -> None:
    before = network()
    wanted = tailcut.load(experiment)
    out = tmp_path / "results"
    tailcut.run(wanted, on="lab", out=out)
    result = tailcut.run(wanted, on=tailcut.Lab(fabric=KERNEL), out=out)
    assert network() == before
    assert result.lab.runs["fabric"].to_list() == ["engine", KERNEL]
    assert sorted(result.summary()["backend"].unique()) == ["lab", "lab-kernel"]
    same = ["scheme", "seed", "id", "src", "dst", "bytes", "start_ns", "ideal_fct_ns", "finished"]
    engine, kernel = (result.lab.flows.filter(fabric=fabric).select(same) for fabric in FABRICS)
    assert kernel.equals(engine)
    assert kernel["finished"].all()
    place = next((out / "runs").glob("*-lab-kernel-1"))
    about = json.loads((place / "run.json").read_text())
    assert about["lab"]["fabric"] == KERNEL
    switches = about["lab"]["switches"]
    queues = about["lab"]["queues"]
    assert len(queues) == 2 * (4 + 4), "every link has two ends, and hosts are among them"
    tbf, pfifo = queues["leaf0>spine1"]
    assert (tbf["kind"], tbf["options"]["rate"]) == ("tbf", 20_000_000 // 8)
    assert (pfifo["kind"], pfifo["options"]) == ("pfifo", {"limit": 50})
    assert about["lab"]["unknown"].keys() == {"fast_recoveries", "recoveries_undone", "max_queue"}
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
def test_a_full_queue_drops_packets_and_they_are_retransmitted(experiment: Path) -> None:
    done = carried(planned(experiment, **{"queue.limit": '"3packets"', "traffic.load": "0.6"}))
    measured = done["measured"]
    assert all(flow["fct_ns"] for flow in measured["flows"])
    assert measured["dropped"] == sum(tier["drops"] for tier in measured["tiers"]) > 0
    assert sum(flow["retransmissions"] for flow in measured["flows"]) > 0
    assert done["facts"]["thrown_away"] == {}


SMALL = """
title = "small flows, one after the other"
[topology]
kind = "{kind}"
{shape}
rate = "20Mbps"
[queue]
limit = "50packets"
[transport]
initial_rto = "1s"
[traffic]
kind = "trace"
file = "small.csv"
[horizon]
arrivals = "1s"
drain = "20s"
[schemes.TCP]
"""
LEAF_SPINE = {"kind": "leaf-spine", "shape": "racks = 2\nhosts_per_rack = 2\nspines = 2"}
FAT_TREE = {"kind": "fat-tree", "shape": "k = 4"}


def small(directory: Path, shape: dict[str, str], ends: list[tuple[int, int]], flows: int = 400) -> Path:
    """Flows of a byte, each of which is over before long: at every switch on the way the same number of packets."""
    rows = [f"{src},{dst},1,{2000 * at}" for at in range(flows) for src, dst in [ends[at % len(ends)]]]
    (directory / "small.csv").write_text("\n".join(["src,dst,bytes,start_us", *rows]))
    path = directory / "small.toml"
    path.write_text(SMALL.format(**shape))
    return path


def sent(done: dict[str, Any], links: list[str]) -> list[int]:
    """Packets that switches have sent by these links."""
    assert all(flow["fct_ns"] for flow in done["measured"]["flows"])
    packets = {link: counts["packets"] for one in done["switches"] for link, counts in one["ports"].items()}
    return [packets[link] for link in links]


def chi_squared(counts: list[int], each: float) -> float:
    """How far counts are from alike; a choice is that of so many packets."""
    draws = [count / each for count in counts]
    mean = sum(draws) / len(draws)
    return sum((draw - mean) ** 2 / mean for draw in draws)


@pytest.mark.usefixtures("kernel")
def test_flows_spread_evenly_over_paths_and_tiers_choose_independently(tmp_path: Path) -> None:
    """From one rack to another pod: two ports at the edge, and behind each two to the core.

    If switches of both tiers chose alike, half of the four would have nothing.
    """
    done = carried(planned(small(tmp_path, FAT_TREE, [(0, 12), (1, 14)], 480)))
    edge = sent(done, ["edge0>agg0", "edge0>agg1"])
    core = sent(done, ["agg0>core0", "agg0>core1", "agg1>core2", "agg1>core3"])
    each = sum(edge) / 480
    assert sum(core) == sum(edge)
    # The 0.1 % points with one and with three degrees of freedom. Seeds and ports are the plan's:
    # it is one draw.
    assert chi_squared(edge, each) < 10.83
    assert chi_squared(core, each) < 16.27


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("fabric", FABRICS)
def test_sprayed_packets_spread_evenly_over_paths(tmp_path: Path, fabric: str) -> None:
    plan = small(tmp_path, LEAF_SPINE, [(0, 2), (1, 3)])
    done = kernels.carried(planned(plan, **{"balance.kind": '"spray"'}), fabric=fabric)
    # The kernel draws other numbers every time: once in 10^9 runs it is more.
    assert chi_squared(sent(done, ["leaf0>spine0", "leaf0>spine1"]), 1) < 37.3


@pytest.mark.usefixtures("kernel")
def test_packets_to_a_host_take_the_paths_in_turn(tmp_path: Path) -> None:
    plan = small(tmp_path, LEAF_SPINE, [(0, 2), (1, 3)])
    done = carried(planned(plan, **{"balance.kind": '"round-robin"'}))
    assert done["versions"]["nftables"].startswith("nftables v")
    one, other = sent(done, ["leaf0>spine0", "leaf0>spine1"])
    assert abs(one - other) <= 2  # at most one for each host


def one_flow(directory: Path, size: int) -> Path:
    """A flow from one rack to the other."""
    path = small(directory, LEAF_SPINE, [(0, 2)], 1)
    (directory / "small.csv").write_text(f"src,dst,bytes,start_us\n0,2,{size},0")
    return path


SPINES = ["leaf0>spine0", "leaf0>spine1"]


@pytest.mark.usefixtures("kernel", "bpf")
def test_a_flow_changes_its_path_only_after_a_pause(tmp_path: Path) -> None:
    path = one_flow(tmp_path, 300_000)
    flowlet = {"balance.kind": '"flowlet"'}
    # At 20 Mbps its packets are 0.6 ms apart, and 206 of them are drawn for.
    by_packet = sent(carried(planned(path, **flowlet, **{"balance.gap": '"100us"'})), SPINES)
    assert min(by_packet) > 50
    together = sent(carried(planned(path, **flowlet, **{"balance.gap": '"60s"'})), SPINES)
    assert min(together) == 0
    assert max(together) >= 206
    # A draw for every tenth packet: once in 10^6 runs all take one way.
    by_bytes = carried(planned(path, **flowlet, **{"balance.gap": '"60s"', "balance.bytes": '"15KB"'}))
    assert min(sent(by_bytes, SPINES)) > 0


@pytest.mark.usefixtures("kernel", "bpf")
def test_an_elephant_takes_several_paths_and_a_mouse_one(tmp_path: Path) -> None:
    spec = '{ kind = "tinyflow", window = "1s", sample_every = "20KB", detect = "exact-port", reroute_every = "15KB" }'
    # Of 206 packets the first 26 are a flow's like any other, and each draw is for ten: once in
    # 10^5 runs all go one.
    elephant = sent(carried(planned(one_flow(tmp_path, 300_000), balance=spec)), SPINES)
    assert min(elephant) > 0
    mouse = sent(carried(planned(one_flow(tmp_path, 15_000), balance=spec)), SPINES)
    assert min(mouse) == 0
    assert max(mouse) >= 11


@pytest.mark.usefixtures("kernel", "bpf")
def test_flowlets_avoid_a_path_that_fails_during_the_run(tmp_path: Path) -> None:
    """The flow would draw for every packet."""
    path = one_flow(tmp_path, 300_000)
    down = '[{ kind = "link-down", link = "s0>s2", at = "40ms" }]'
    changes = {"faults.incidents": down, "faults.reconvergence": '"5ms"', "balance.kind": '"flowlet"'}
    done = carried(planned(path, **changes))
    ways = sent(done, SPINES)
    assert 0 < ways[0] < ways[1]
    assert all(flow["fct_ns"] for flow in done["measured"]["flows"])


@pytest.mark.usefixtures("kernel")
def test_a_failed_link_is_avoided_and_its_losses_are_retransmitted(tmp_path: Path) -> None:
    path = small(tmp_path, LEAF_SPINE, [(0, 2), (3, 1)])
    down = '[{{ kind = "link-down", link = "s0>s2"{when} }}]'
    dead = ["leaf0>spine0", "spine0>leaf0"]
    always = carried(planned(path, **{"faults.incidents": down.format(when=', at = "0s"'), "balance.kind": '"spray"'}))
    assert sent(always, dead) == [0, 0]
    assert always["facts"]["thrown_away"] == {}
    later = ', at = "200ms", until = "500ms"'
    until = {"faults.reconvergence": '"50ms"'}  # every other of 25 flows meets the dead link
    done = carried(planned(path, **{"faults.incidents": down.format(when=later), **until}))
    whole = carried(planned(path))
    assert 0 < sum(sent(done, dead)) < sum(sent(whole, dead))
    assert done["measured"]["lost_on_links"] > 0
    # What was lost may have been SYNs, which are no retransmissions of data; their timers expire.
    assert sum(flow["retransmissions"] + flow["timeouts"] for flow in done["measured"]["flows"]) > 0
    assert done["facts"]["changed"]["longest_ns"] > 0


@pytest.mark.usefixtures("kernel")
def test_no_kernel_drops_packets_sent_to_a_failed_host_link(tmp_path: Path) -> None:
    path = small(tmp_path, LEAF_SPINE, [(0, 2), (3, 1)])
    down = '[{ kind = "link-down", link = "h0>s0", at = "200ms", until = "500ms" }]'
    assert carried(planned(path, **{"faults.incidents": down}))["facts"]["thrown_away"] == {}


@pytest.mark.usefixtures("kernel")
def test_no_idle_flow_is_sent_after_a_run_while_others_go_on_sending(tmp_path: Path) -> None:
    unfinished = carried(star(tmp_path, "0,1,8000000,1000", drain="100ms"))
    assert unfinished["facts"]["after"]["late_ns"] == []
    assert not [reason for reason in unfinished["unfaithful"] if "after the run" in reason]
    assert len(carried(star(tmp_path, "0,1,1000,1000"))["facts"]["after"]["late_ns"]) == 5


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "incident",
    ['kind = "link-down", link = "s0>h3"', 'kind = "switch-down", switch = "s0"'],
    ids=["the last host's link", "the switch"],
)
def test_idle_flows_after_a_run_arrive_despite_its_failed_links(tmp_path: Path, incident: str) -> None:
    """Lone flows go from the first host to the last, which nothing repairs."""
    done = carried(star(tmp_path, "0,1,1000,1000", drain="1s", incidents=f'[{{ {incident}, at = "100ms" }}]'))
    assert len(done["facts"]["after"]["late_ns"]) == 5
    assert None not in done["facts"]["after"]["late_ns"]


BROKEN_IP = """#!/bin/sh
if [ "$1" = -batch ]; then sed '/^link set p[0-9]* down$/d' | {real} "$@"; else exec {real} "$@"; fi
"""
IN_PLACE = 'mount --bind "$1" "$2" && exec "$3" -m tailcut.lab.worker'


@pytest.mark.usefixtures("kernel")
def test_an_incident_without_effect_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here `ip` does not hear that a link is to be set down."""
    place = Path(shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin") or "").resolve()
    real, broken = (tmp_path / name for name in ("real", "broken"))
    shutil.copy(place, real)
    broken.write_text(BROKEN_IP.format(real=real))
    broken.chmod(0o755)
    alone = ("unshare", "--user", "--map-root-user", "--mount")
    monkeypatch.setattr(
        process, "COMMAND", (*alone, "sh", "-c", IN_PLACE, "sh", str(broken), str(place), sys.executable)
    )
    path = small(tmp_path, LEAF_SPINE, [(0, 2), (3, 1)])
    fails = '[{ kind = "link-down", link = "s0>s2", at = "100ms" }]'
    with pytest.raises(process.LabError, match=r"switch 0: p\d+ is up, not down"):
        carried(planned(path, **{"faults.incidents": fails}))


LATE_NS = 300_000
"""The burst, in ns of transmission, that tbf may send after a late timer."""


@pytest.mark.usefixtures("kernel")
@judged_when_idle
def test_a_busy_link_has_its_rate(tmp_path: Path) -> None:
    """The flow may be faster by the packet that finds the port idle, and by the lateness of a timer."""
    (tmp_path / "small.csv").write_text("src,dst,bytes,start_us\n0,1,1460000,0")
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(kind="star", shape="hosts = 2"))
    done = carried(planned(path))
    packet_ns = 1538 * 8 / 20e6 * 1e9
    (flow,) = done["measured"]["flows"]
    assert flow["fct_ns"] >= 999 * packet_ns - LATE_NS
    if done["unfaithful"]:
        busy(f"unfaithful: {'; '.join(done['unfaithful'])}")
    with on_an_idle_machine():
        assert flow["fct_ns"] < 1.03 * 1000 * packet_ns


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    "shape",
    [{"topology.spines": "1"}, {"topology.rate": '{ host = "10Mbps", spine = "20Mbps" }'}],
    ids=["one spine", "two spines"],
)
@judged_when_idle
def test_a_permutation_takes_as_long_with_either_fabric(tmp_path: Path, shape: dict[str, str]) -> None:
    """Over the one path that there is, or two that either carry what a rack sends: the kernel's hash is its own."""
    assert kernels.POISSON in LAB
    path = tmp_path / "permutation.toml"
    path.write_text(LAB.replace(kernels.POISSON, 'kind = "permutation"\nsizes = "1MB"'))
    run = planned(path, **shape, **{"queue.limit": '"unlimited"'})
    both = [process.run(json.dumps(run), lambda _now, _over: None, LIMIT_SECONDS, fabric=fabric) for fabric in FABRICS]
    assert both[1]["facts"]["paces"]["busy"] > 0
    means = [sum(flow["fct_ns"] for flow in done["measured"]["flows"]) / 4 for done in both]
    if any(done["unfaithful"] for done in both):
        busy(f"unfaithful: {both[0]['unfaithful']}, {both[1]['unfaithful']}")
    with on_an_idle_machine():
        assert means[1] == pytest.approx(means[0], rel=0.05)


@pytest.mark.usefixtures("kernel")
def test_queues_of_kernels_are_sampled(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text("src,dst,bytes,start_us\n0,1,500000,0\n2,1,500000,0")
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(kind="star", shape="hosts = 3"))
    links = {"series.links": '["s0>h1", "s0>h0"]', "series.interval": '"20ms"'}
    done = carried(planned(path, **links))
    series = {one["name"]: one for one in done["measured"]["series"]}
    assert sorted(series) == [f"link s0>h{host} {what}" for host in (0, 1) for what in ("queue_packets", "utilisation")]
    times = series["link s0>h1 queue_packets"]["times_ns"]
    assert times[0] >= 20_000_000
    assert all(later - earlier >= 20_000_000 for earlier, later in pairwise(times))
    queue = series["link s0>h1 queue_packets"]["values"]
    assert 10 < max(queue) <= 50
    between = [now - before for before, now in pairwise([0, *times])]
    shares = [series[f"link s0>{host} utilisation"]["values"] for host in ("h1", "h0")]
    busy = [sum(map(mul, each, between)) for each in shares]
    # A packet, and what a late timer owes, may be more than the rate.
    assert 20 * busy[1] < busy[0] < times[-1] + 1_000_000
    assert answers(path, **links)["series.links"] == "near"


@pytest.mark.usefixtures("kernel")
@needs_root
def test_the_kernel_fabric_works_without_root(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", AS_NOBODY))
    if not offered("namespaces") or not offered("hosts with reno"):
        missing("the kernel lab without root: this kernel lets nobody make namespaces")
    done = carried(planned(experiment, **{"balance.kind": '"spray"'}))
    assert all(flow["fct_ns"] for flow in done["measured"]["flows"])


@pytest.mark.usefixtures("kernel", "bpf")
@pytest.mark.parametrize("moments", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_a_killed_lab_leaves_no_switch_program_in_the_kernel(experiment: Path, tmp_path: Path, moments: int) -> None:
    before = in_kernel()
    command = Command(experiment, tmp_path, ("--lab-fabric", KERNEL, "--set", "balance.kind=flowlet"))
    command.measure()
    assert [wrong for moment in range(moments) for wrong in command.killed(moment, moments)] == []
    wait_until_gone(in_kernel, before)
