"""Runs over real kernels: what is carried, what is left behind, and the verdict. Skipped where there is no lab."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support import waiting
from support.disturbances import disturbed, star
from support.kernels import (
    AS_NOBODY,
    EVERY_JOB,
    MARK,
    POISSON,
    assert_flows_waited,
    carried,
    jobs_of,
    network,
    offered,
    planned,
    wait_until_none,
)
from support.killing import Lab
from support.skipping import missing, needs_root
from tailcut.lab import process
from tailcut.lab.fabrics import FABRICS

pytestmark = pytest.mark.usefixtures("kernel")


def test_exactly_the_flows_of_the_plan_are_carried_and_every_byte_arrives(experiment: Path, tmp_path: Path) -> None:
    before = network()
    wanted = tailcut.load(experiment)
    simulated = tailcut.run(wanted, out=tmp_path / "results")
    result = tailcut.run(wanted, on="lab", out=tmp_path / "results")
    flows = result.lab.flows
    same = ["scheme", "seed", "id", "src", "dst", "bytes", "start_ns", "ideal_fct_ns", "ideal_fct_ack_ns", "hops"]
    assert flows.select(same).equals(simulated.flows.select(same))
    assert flows["finished"].all()
    # Real hosts are never faster than the best possible through this fabric.
    assert (flows["fct_ns"] >= flows["ideal_fct_ns"]).all()
    assert (flows["fct_ack_ns"] > flows["connect_ns"]).all()
    about = json.loads(next((tmp_path / "results/runs").glob("*-lab-1/run.json")).read_text())
    assert about["lab"]["awake"] == offered("awake processors")
    assert about["lab"]["in_memory"] == offered("programs in memory")
    assert about["lab"]["goes_first"] == offered("processors first")
    assert about["lab"]["facts"]["strange"] == about["lab"]["facts"]["refused"] == 0
    sysctls = dict(about["lab"]["hosts"]["sysctls"])
    assert sysctls["ipv4/tcp_sack"] == "1"
    offloads = dict(about["lab"]["hosts"]["offloads"])
    assert len(offloads) == 6
    assert not any(on for name, on in offloads.items() if name != "rx-checksumming")
    assert "iproute2" in about["lab"]["versions"]["iproute2"]
    assert about["lab"]["unknown"]["fast_recoveries"] == "not available from the kernel: recoveries"
    assert about["lab"]["hosts"]["route"]["metrics"][0]["congestion"] == "reno"
    tiers = {(row["tier"], row["direction"]): row for row in result_tiers(tmp_path)}
    assert tiers["host", "up"]["packets"] == about["lab"]["frames"] - tiers["host", "up"]["drops"]
    assert network() == before
    assert not list(tmp_path.rglob("elsewhere"))


@pytest.mark.parametrize("fabric", FABRICS)
def test_the_fabric_outranks_hosts_and_hosts_outrank_all_others(tmp_path: Path, token: str, fabric: str) -> None:
    ranks: list[int] = []

    def look(lab: Lab) -> None:
        ranks.extend(os.sched_getparam(pid).sched_priority for pid in [lab.fabric, *lab.hosts])

    disturbed(star(tmp_path, "0,1,1000,1000\n0,1,1000,500000"), token, 250_000_000, look, fabric)
    assert ranks == ([2, 1, 1, 1, 1] if offered("processors first") else [0] * 5)


def test_the_start_delay_of_every_flow_is_recorded(experiment: Path, tmp_path: Path) -> None:
    result = tailcut.run(tailcut.load(experiment), on="lab", out=tmp_path / "results")
    late = result.lab.flows["start_late_ns"]
    assert late.null_count() == 0
    about = json.loads(next((tmp_path / "results/runs").glob("*-lab-1/run.json")).read_text())
    starts = about["lab"]["facts"]["starts"]
    assert late.max() == starts["longest_ns"]
    assert [int((late // 10_000 == step).sum()) for step in range(len(starts["counts"]) - 1)] == starts["counts"][:-1]


def test_queues_windows_and_rates_are_sampled(experiment: Path) -> None:
    """Two long flows meet at the link to a host: its queue fills, it is always busy, and the window of either grows."""
    text = experiment.read_text()
    file = experiment.parent / "two.csv"
    file.write_text("src,dst,bytes,start_us\n0,3,300000,0\n2,3,300000,0\n")
    poisson = 'kind = "poisson"\nsizes = "20KB"\nload = 0.2'
    experiment.write_text(text.replace(poisson, 'kind = "trace"\nfile = "two.csv"'))
    run = planned(
        experiment,
        **{
            "series.flows": "[0, 1]",
            "series.links": '["s1>h3"]',
            "series.differentials": '["h0>h3"]',
            "series.interval": '"2ms"',
        },
    )
    done = carried(run)
    series = {one["name"]: one for one in done["measured"]["series"]}
    queue, busy = series["link s1>h3 queue_packets"], series["link s1>h3 utilisation"]
    assert queue["times_ns"] == [2_000_000 * (number + 1) for number in range(len(queue["times_ns"]))]
    assert max(queue["values"]) > 20
    assert all(0 <= value <= 1 for value in busy["values"])
    # What it carried took it so long, less what came after the last sample.
    assert 0.002 * (sum(busy["values"]) + 1) * 20e6 / 8 >= 600_000
    assert set(series) >= {"paths h0>h3 queue_differential_packets"}
    for flow in (0, 1):
        window, rate = series[f"flow {flow} cwnd_bytes"], series[f"flow {flow} rate_bps"]
        assert window["times_ns"] == rate["times_ns"]
        assert len(window["values"]) >= 2
        assert max(window["values"]) > window["values"][0] >= 8 * 1460  # an initial window of 12 KB
        assert all(value % 1460 == 0 for value in window["values"])
        # What was acknowledged by the last sample is no more than the flow; between samples it is
        # what came by then.
        since = [after - before for before, after in zip([0, *rate["times_ns"]], rate["times_ns"], strict=False)]
        bits = sum(value * span / 1e9 for value, span in zip(rate["values"], since, strict=True))
        assert 0 < bits <= 8 * 300_001 * 1.2


def test_dependent_flows_start_when_the_flows_they_wait_for_have_ended(experiment: Path) -> None:
    experiment.write_text(experiment.read_text().replace(POISSON, EVERY_JOB))
    run = planned(experiment)
    done = carried(run)
    assert_flows_waited(run, done)
    jobs = jobs_of(run, done)
    assert set(jobs["kind"]) == {"transfer", "pings", "query", "shuffle", "sort"}
    assert jobs["completion_ns"].null_count() == 0


def result_tiers(directory: Path) -> list[dict[str, Any]]:
    import polars as pl

    return pl.read_parquet(next((directory / "results/runs").glob("*-lab-1/tiers.parquet"))).to_dicts()


@pytest.mark.parametrize(
    "overrides",
    [
        {"transport.congestion": '{ kind = "cubic" }'},
        {"transport.congestion": '{ kind = "bbr" }'},
        {"transport.recovery": '"newreno"', "transport.timestamps": "true"},
        {"transport.close": '"none"', "balance.kind": '"spray"'},
        {"queue.limit": '"3packets"', "traffic.load": "0.6"},
    ],
    ids=["cubic", "bbr", "newreno with timestamps", "sprayed and never closed", "a queue of three packets"],
)
def test_host_and_fabric_settings_are_applied_as_planned(experiment: Path, overrides: dict[str, str]) -> None:
    for kind in ("cubic", "bbr"):
        if kind in overrides.get("transport.congestion", "") and not offered(f"hosts with {kind}"):
            missing(f"the kernel lab: this kernel does not offer {kind}")
    run = planned(experiment, **overrides)
    done = carried(run)
    measured = done["measured"]
    assert len(measured["flows"]) == run["facts"]["flows"]
    assert all(flow["fct_ns"] for flow in measured["flows"])
    facts = done["facts"]
    assert facts["strange"] == facts["refused"] == 0
    if "queue.limit" in overrides:
        # What the ports drop is what senders send again, but for what they sent again needlessly.
        again = sum(flow["retransmissions"] for flow in measured["flows"])
        assert measured["dropped"] == sum(tier["drops"] for tier in measured["tiers"])
        assert measured["dropped"] > 0
        assert again > 0


def test_ecn_marks_reach_hosts_that_negotiated_ecn(experiment: Path) -> None:
    text = experiment.read_text().replace(
        'limit = "50packets"', 'kind = "ecn"\nlimit = "50packets"\nthreshold = "3packets"'
    )
    experiment.write_text(text.replace('initial_rto = "1s"', 'initial_rto = "1s"\necn = true').replace("20KB", "200KB"))
    done = carried(planned(experiment))
    assert all(flow["fct_ns"] for flow in done["measured"]["flows"])
    assert dict(done["hosts"]["sysctls"])["ipv4/tcp_ecn"] == "1"


def test_a_flow_whose_host_cannot_be_reached_does_not_finish_and_the_others_do(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("src,dst,bytes,start_us\n0,2,1000,100\n0,1,1000,200\n")
    (tmp_path / "two.toml").write_text(
        'title = "a host apart"\n[topology]\nkind = "star"\nhosts = 3\nrate = "20Mbps"\n'
        '[transport]\ninitial_rto = "1s"\nsyn_retries = 1\n[traffic]\nkind = "trace"\nfile = "two.csv"\n'
        '[faults]\nincidents = [{ kind = "link-down", link = "h2>s0", at = "0s" }]\n'
        '[horizon]\narrivals = "100ms"\ndrain = "4s"\n[schemes.TCP]\n'
    )
    measured = carried(planned(tmp_path / "two.toml"))["measured"]
    finished = {flow["index"]: flow["fct_ns"] is not None for flow in measured["flows"]}
    assert finished == {0: False, 1: True}
    assert measured["lost_on_links"] >= 2
    assert measured["end_ns"] >= 4_100_000_000


@pytest.mark.parametrize("fabric", FABRICS)
def test_two_labs_run_side_by_side(experiment: Path, fabric: str) -> None:
    before = network()
    run = json.dumps(planned(experiment))
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda one: carried(json.loads(one), fabric=fabric), [run, run]))
    assert network() == before
    assert all(flow["fct_ns"] for one in done for flow in one["measured"]["flows"])
    assert [len(one["measured"]["flows"]) for one in done] == [json.loads(run)["facts"]["flows"]] * 2


@needs_root
@pytest.mark.parametrize(("kind", "kernels"), [("newreno", "reno"), ("bbr", "bbr")])
def test_a_run_works_without_root(experiment: Path, monkeypatch: pytest.MonkeyPatch, kind: str, kernels: str) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", AS_NOBODY))
    if not offered("namespaces") or not offered(f"hosts with {kernels}"):
        missing("the kernel lab without root: this kernel lets nobody make namespaces")
    run = planned(experiment, **{"transport.congestion": f'{{ kind = "{kind}" }}'})
    done = carried(run)
    assert len(done["measured"]["flows"]) == run["facts"]["flows"]
    assert not done["awake"], "nobody may not keep processors from sleeping"
    assert not done["in_memory"], "nobody may lock 8 MB at the most"


def test_a_run_that_takes_too_long_is_ended(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, str(experiment))
    run = planned(experiment, **{"horizon.arrivals": '"30s"'})
    so_far = "(the run had not begun|it was at .* s, and [0-9]+ flows had ended)"
    with pytest.raises(process.LabError, match=f"longer than the limit of 1 s: {so_far}"):
        process.run(json.dumps(run), lambda _now, _over: None, 1)
    wait_until_none(str(experiment))


def test_an_error_of_the_kernel_is_reported(experiment: Path) -> None:
    run = planned(experiment, **{"transport.ack_every": "2"})
    with pytest.raises(process.LabError, match="cannot realise this run"):
        carried(run)


def test_beside_busy_processors_a_run_is_not_faithful(experiment: Path) -> None:
    if not Path("/proc/pressure/cpu").exists():
        missing("the kernel lab: this kernel does not tell how busy the processors are")

    def ran(pid: int) -> int:
        """Ticks that a process has had."""
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])

    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        waiting.until(lambda: all(ran(hog.pid) > 0 for hog in hogs), lambda: [ran(hog.pid) for hog in hogs])
        done = carried(planned(experiment))
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    reasons = "; ".join(done["unfaithful"])
    assert "processes waited for a CPU" in reasons
