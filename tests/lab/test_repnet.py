"""Flows that `repnet-bench` carries over real kernels: plain, RepFlow's and RepSYN's. Skipped without a lab or Node."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tailcut
from support.kernels import (
    AS_NOBODY,
    EVERY_JOB,
    POISSON,
    assert_flows_waited,
    carried,
    jobs_of,
    network,
    offered,
)
from support.skipping import busy, judged_when_idle, missing, needs_root, on_an_idle_machine
from tailcut import _core
from tailcut.lab import process, repnet
from tailcut.results import tables

pytestmark = pytest.mark.usefixtures("kernel")

SCHEMES = '[schemes.RepFlow]\nreplicate = { kind = "repflow" }\n[schemes.RepSYN]\nreplicate = { kind = "repsyn" }\n'
CONGESTED = Path(__file__).parents[2] / "experiments/lab/one-congested-path.toml"

# Each Node notes every collection of garbage that begins once it is ready.
COLLECTIONS = """
const { appendFileSync } = require('node:fs');
const { performance, PerformanceObserver } = require('node:perf_hooks');
let ready = Infinity;
const write = process.stdout.write;
process.stdout.write = function (text, ...rest) {
  if (String(text).startsWith('{"node"')) ready = performance.now();
  return write.call(this, text, ...rest);
};
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries())
    if (startTime > ready) appendFileSync(process.env.COLLECTIONS, `${duration} ms at ${startTime - ready}, `);
}).observe({ entryTypes: ['gc'] });
"""


@pytest.fixture
def program() -> list[str]:
    """How `repnet-bench` is started."""
    try:
        return repnet.program()
    except repnet.MissingError as error:
        missing(f"the kernel lab: {error}", "make setup-lab")


def runs(experiment: Path) -> dict[str, dict[str, Any]]:
    """The run of each scheme: plain, RepFlow and RepSYN."""
    experiment.write_text(experiment.read_text() + SCHEMES)
    plan = tailcut.load(experiment).plan
    return {run["config"]["scheme"]["replicate"]["kind"]: dict(run) for run in plan["runs"]}


def ideal_ns(run: dict[str, Any]) -> list[float]:
    return [flow["ideal_ps"] / 1000 for flow in json.loads(_core.demand(json.dumps(run)))["flows"]]


@pytest.mark.parametrize("kind", ["none", "repflow", "repsyn"])
def test_every_flow_is_carried_and_every_byte_arrives(experiment: Path, program: list[str], kind: str) -> None:
    before = network()
    run = runs(experiment)[kind]
    done = carried(run, program)
    flows = done["measured"]["flows"]
    assert len(flows) == run["facts"]["flows"]
    ideal = ideal_ns(run)
    # Real hosts are never faster than the best possible through this fabric.
    assert all(flow["fct_ns"] >= ideal[flow["index"]] for flow in flows)
    assert all(flow["fct_ns"] > flow["connect_ns"] for flow in flows)
    facts = done["facts"]
    assert facts["strange"] == facts["refused"] == 0
    assert set(done["repnet"]) == {"node", "bench"}
    assert done["goes_first"] == offered("processors first")
    # Second connections are repnet's alone; of RepFlow they carry about as much as the first.
    assert (done["copied"] == 0) == (kind == "none")
    if kind == "repflow":
        assert done["frames"] > 1.2 * done["copied"] > 0.3 * done["frames"]
    assert network() == before


@pytest.mark.parametrize("kind", ["none", "repflow", "repsyn"])
def test_jobs_are_the_simulators_and_their_flows_start_when_what_they_wait_for_is_over(
    experiment: Path, program: list[str], kind: str
) -> None:
    experiment.write_text(experiment.read_text().replace(POISSON, EVERY_JOB))
    run = runs(experiment)[kind]
    done = carried(run, program)
    assert_flows_waited(run, done)
    jobs = jobs_of(run, done)
    simulated = tables.frame(dict(_core.run(json.dumps(run))["further"])["jobs"])
    assert set(jobs["kind"]) == {"transfer", "pings", "query", "shuffle", "sort"}
    same = ["id", "kind", "flows", "bytes"]
    assert jobs.select(same).equals(simulated.select(same))
    # No job is over before the slowest of its flows can be.
    demand = json.loads(_core.demand(json.dumps(run)))["flows"]
    for job, completion_ns in jobs.select("id", "completion_ns").rows():
        assert completion_ns >= max(flow["ideal_ps"] / 1000 for flow in demand if flow["job"] == job)
    assert done["facts"]["strange"] == 0
    assert (done["copied"] == 0) == (kind == "none")


@pytest.mark.parametrize(("arrivals", "load"), [("400ms", 0.2), ("9500ms", 0.02)], ids=["in a hurry", "at leisure"])
def test_node_collects_no_garbage_while_flows_are_due(
    experiment: Path, program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrivals: str, load: float
) -> None:
    """For as long as a collection takes, whatever is due waits: one to two milliseconds for what is new, ten and more
    for everything, which V8 begins where there was little to do for eight seconds."""
    (tmp_path / "hook.cjs").write_text(COLLECTIONS)
    noted = tmp_path / "collections"
    noted.touch()
    monkeypatch.setenv("COLLECTIONS", str(noted))
    text = experiment.read_text().replace('"20KB"', '"1KB"')
    experiment.write_text(text.replace('"400ms"', f'"{arrivals}"').replace("load = 0.2", f"load = {load}"))
    run = runs(experiment)["repflow"]
    carried(run, [program[0], "--require", str(tmp_path / "hook.cjs"), *program[1:]])
    assert run["facts"]["flows"] > 100
    assert noted.read_text() == ""


def test_columns_that_node_does_not_report_stay_empty(experiment: Path, program: list[str]) -> None:
    run = runs(experiment)["repflow"]
    made = _core.tabulate(json.dumps(run), json.dumps(carried(run, program)["measured"]))
    flows = tables.frame(made["flows"])
    for name in ("data_packets", "retransmissions", "timeouts", "copies", "winner"):
        assert flows[name].null_count() == flows.height, name
    assert flows["fct_ns"].null_count() == flows["connect_ns"].null_count() == 0
    # A flow is acknowledged when its receiver, which has all of it then, has ended the connection.
    assert (flows["fct_ack_ns"] > flows["fct_ns"]).all()


@judged_when_idle
def test_the_flows_that_meet_a_congested_path_are_a_third_and_with_two_copies_a_ninth(program: list[str]) -> None:
    """RepNet, Figure 2: flows of 10 KB that wait where two windows stand take 110 ms or more, all others 30 at most."""
    plan = tailcut.load(CONGESTED, set={"horizon.arrivals": '"4s"'}).plan
    met, unfaithful = {}, []
    for run in plan["runs"]:
        kind = run["config"]["scheme"]["replicate"]["kind"]
        simulated = tables.frame(_core.run(json.dumps(run))["flows"])
        mice = simulated.filter((pl.col("src") == 2) & (pl.col("start_ns") > 500_000_000))["id"].to_list()
        done = carried(dict(run), program)
        made = _core.tabulate(json.dumps(run), json.dumps(done["measured"]))
        waits = [
            dict(zip(flows["id"], flows["fct_ns"].fill_null(10**10) > 70_000_000, strict=True))
            for flows in (simulated, tables.frame(made["flows"]))
        ]
        met[kind] = [[of[mouse] for mouse in mice] for of in waits]
        unfaithful += done["unfaithful"]
    if unfaithful:
        busy(f"unfaithful: {'; '.join(unfaithful)}")
    with on_an_idle_machine():
        # The very flows of the simulator, since both hash the same ports; one in twenty may be held up
        # by chance.
        for kind in ("none", "repflow"):
            expected, real = met[kind]
            assert sum(a != b for a, b in zip(expected, real, strict=True)) <= len(real) / 20, kind
        # RepSYN's ports are the kernel's choice: four standard deviations about a ninth.
        share = sum(met["repsyn"][1]) / len(met["repsyn"][1])
        assert abs(share - 1 / 9) < 4 * math.sqrt(8 / 81 / len(met["repsyn"][1]))
        assert sum(met["repflow"][1]) < sum(met["none"][1]) / 2


@needs_root
def test_repnet_hosts_work_without_root(experiment: Path, program: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", AS_NOBODY))
    if not offered("namespaces") or not offered("hosts with reno"):
        missing("the kernel lab without root: this kernel lets nobody make namespaces")
    run = runs(experiment)["repflow"]
    assert len(carried(run, program)["measured"]["flows"]) == run["facts"]["flows"]


def test_settings_of_the_user_do_not_reach_repnet(
    experiment: Path, program: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--no-such-option")
    monkeypatch.setenv("REPNET_MODE", "off")
    assert carried(runs(experiment)["repflow"], program)["copied"] > 0


def test_a_bench_process_that_cannot_start_is_reported(experiment: Path, program: list[str]) -> None:
    run = runs(experiment)["none"]
    with pytest.raises(process.LabError, match="/nowhere/node"):
        carried(run, ["/nowhere/node", "main.js"])
    with pytest.raises(process.LabError, match="the Node process of host 0 has exited"):
        carried(run, [program[0], "--eval", "0"])
