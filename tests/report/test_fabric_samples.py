"""The page's fabric: samples of real runs on one grid, slow flows and their paths, positions of nodes."""

import base64
import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import tailcut
from support import experiments
from tailcut import _core, report
from tailcut.report import fabric_samples
from tailcut.report.fabric_samples import FabricSamples, Sampled
from tailcut.report.study import Study
from tailcut.result import Result

FABRIC = {
    "measure.fabric": "true",
    "measure.fabric_instants": "40",
    "traffic.sizes": "web-search",
    "traffic.load": "0.6",
    "horizon.arrivals": "20ms",
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    directory = tmp_path_factory.mktemp("watched")
    experiment = tailcut.load(experiments.tiny(directory), set=FABRIC)
    return tailcut.run(experiment, out=directory / "results")


@pytest.fixture(scope="module")
def shown(result: Result) -> FabricSamples:
    found = FabricSamples.of(Study.of(result))
    assert found is not None
    return found


def test_the_tables_say_the_same_as_those_of_tiers_and_flows(result: Result) -> None:
    ports = result.ports.filter(pl.col("scheme") == "TCP", pl.col("seed") == 1)
    assert ports["port"].to_list() == list(range(96))
    assert set(ports["tier"].unique()) == set(result.tiers["tier"].unique())
    fabric = result.fabric.filter(pl.col("scheme") == "TCP", pl.col("seed") == 1)
    assert fabric.height % 96 == 0
    assert 20 <= fabric["time_ns"].n_unique() <= 40
    busiest = fabric.join(ports.select("port", "tier"), on="port").group_by("tier", "port").agg(pl.col("busy_ns").sum())
    assert busiest.filter(pl.col("busy_ns") > 0).height > 40
    paths = result.paths.filter(pl.col("scheme") == "RepFlow", pl.col("seed") == 1)
    flows = result.flows.filter(pl.col("scheme") == "RepFlow", pl.col("seed") == 1)
    for row in flows.iter_rows(named=True):
        of = paths.filter(pl.col("id") == row["id"])
        assert of["copy"].n_unique() == row["copies"]
        assert (of.group_by("copy").len()["len"] == row["hops"]).all()


def test_fabric_samples_are_stored_only_on_request(tmp_path: Path) -> None:
    plain = tailcut.run(tailcut.load(experiments.tiny(tmp_path), seeds=1), out=tmp_path / "plain")
    assert plain.fabric.height == plain.ports.height == plain.paths.height == 0
    assert FabricSamples.of(Study.of(plain)) is None
    assert 'id="fabric' not in report.write(plain, tmp_path / "page.html")[0].read_text("utf-8")


def test_what_is_not_sampled_leaves_the_identifiers_of_runs_alone(tmp_path: Path) -> None:
    path = experiments.tiny(tmp_path)
    plain, fewer, sampled = (
        {run["id"] for run in tailcut.load(path, set=set_).plan["runs"]}
        for set_ in ({}, {"measure.fabric_instants": "7"}, {"measure.fabric": "true"})
    )
    assert plain == fewer
    assert not plain & sampled


def test_every_scheme_is_on_one_grid(result: Result, shown: FabricSamples) -> None:
    assert list(shown.runs) == ["TCP", "RepFlow"]
    for scheme, sampled in shown.runs.items():
        table = result.fabric.filter(pl.col("scheme") == scheme, pl.col("seed") == shown.seed)
        end = table["time_ns"].max()
        for place, queue in enumerate(sampled.queue):
            at = table.filter(pl.col("time_ns") == min((place + 1) * shown.interval_ns, end))  # type: ignore[type-var]
            assert queue.tolist() == at["queue_packets"].to_list()
        assert sampled.drops.sum() == table["drops"].sum()
        assert sampled.busy_ns.sum() == table["busy_ns"].sum()


def test_thinning_out_adds_up_times_and_drops(shown: FabricSamples) -> None:
    sampled = shown.runs["TCP"]
    half = sampled.thinned(2)
    whole = len(sampled.queue) // 2
    assert half.interval_ns == 2 * sampled.interval_ns
    assert half.queue[:whole].tolist() == sampled.queue[1::2].tolist()
    assert half.busy_ns[:whole].tolist() == (sampled.busy_ns[0:-1:2] + sampled.busy_ns[1::2])[:whole].tolist()
    assert half.busy_ns.sum() == sampled.busy_ns.sum()
    assert half.drops.sum() == sampled.drops.sum()


@pytest.mark.parametrize(
    ("instants", "queues", "drops"), [(1, [0], [1]), (4, [3], [10]), (5, [3, 4], [10, 5]), (7, [3, 6], [10, 18])]
)
def test_thinning_out_keeps_what_happened_up_to_the_end_of_a_run(
    instants: int, queues: list[int], drops: list[int]
) -> None:
    column = np.arange(instants, dtype=np.uint32).reshape(-1, 1)
    thin = Sampled(None, 1000, column, column, column + 1).thinned(4)  # type: ignore[arg-type]
    assert thin.queue[:, 0].tolist() == queues
    assert thin.drops[:, 0].tolist() == drops


def test_encoded_samples_decode_to_the_same_values(shown: FabricSamples) -> None:
    sampled = shown.runs["RepFlow"]
    queue, use, *drops = np.frombuffer(zlib.decompress(sampled.packed(1)), np.uint8).reshape(6, 96, -1)
    assert queue.T.tolist() == np.minimum(sampled.queue, 255).tolist()
    assert use.T.tolist() == sampled.use.tolist()
    assert np.abs(use.T - sampled.busy_ns / sampled.interval_ns * 100).max() <= 0.5001
    assert drops[0].T.tolist() == sampled.drops.tolist()
    assert not np.any(drops[1:])


def test_many_drops_keep_their_exact_count() -> None:
    none, drops = np.zeros((2, 1), np.uint32), np.array([[256], [70_000]], np.uint32)
    planes = zlib.decompress(Sampled(None, 1000, none, none, drops).packed(1))  # type: ignore[arg-type]
    assert np.frombuffer(planes[4:], np.uint8).reshape(4, 2).T.tolist() == [[0, 1, 0, 0], [0x70, 0x11, 1, 0]]


def test_incompressible_samples_of_a_large_fabric_are_thinned_out_until_there_is_room() -> None:
    random = np.random.default_rng(1)
    planes = [random.integers(0, most, (400, 6144)) for most in (100, 1000, 9)]
    ports = pl.DataFrame({"from": range(6144)})
    runs: Any = {name: Sampled(None, 1000, *planes) for name in ("a", "b")}  # type: ignore[arg-type]
    bounded = FabricSamples(None, runs, ports, 1024).bounded()  # type: ignore[arg-type]
    assert bounded.instants < 400
    assert sum(len(sampled.packed(bounded.unit)) for sampled in bounded.runs.values()) <= fabric_samples.MOST_BYTES


def test_the_slowest_flows_are_listed_with_how_they_fared_everywhere(result: Result, shown: FabricSamples) -> None:
    assert shown.short
    for place, scheme in enumerate(shown.runs):
        flows = result.flows.filter(
            pl.col("scheme") == scheme, pl.col("seed") == shown.seed, pl.col("class") == "short"
        )
        slowest = flows.sort("normalised_fct", descending=True, nulls_last=False).head(fabric_samples.SLOWEST)
        assert {flow["id"] for flow in shown.flows if place in flow["lists"]} == set(slowest["id"])
        took = dict(zip(flows["id"], flows["fct_ns"], strict=True))
        assert all(flow["of"][place]["ns"] == took[flow["id"]] for flow in shown.flows)
    of_repflow = [flow["of"][1] for flow in shown.flows]
    assert all({copy for copy, _ in of["ways"]} == {0, 1} for of in of_repflow)


def test_a_flow_is_looked_at_while_most_waited_on_its_way(shown: FabricSamples) -> None:
    for flow in shown.flows:
        name, of = max(zip(shown.runs, flow["of"], strict=True), key=lambda pair: pair[1]["slowdown"])
        queue = shown.runs[name].queue[:, [port for _, port in of["ways"]]].sum(axis=1)
        first = flow["start_ns"] // shown.interval_ns
        last = (flow["start_ns"] + of["ns"]) // shown.interval_ns
        assert first <= flow["at"] <= max(first, last)
        assert queue[flow["at"]] == queue[first : max(first + 1, last)].max()


def graph(topology: dict[str, object], directory: Path) -> SimpleNamespace:
    """The hosts and the links of a topology."""
    lines = "\n".join(f"{key} = {value!r}" for key, value in topology.items())
    text = (experiments.TINY.replace('kind = "fat-tree"\nk = 4', lines)).replace("'", '"')
    plan = tailcut.loads(text, directory=directory).plan
    network = json.loads(_core.demand(json.dumps(plan["runs"][0]), None))["graph"]
    return SimpleNamespace(hosts=network["hosts"], links=[(link["a"], link["b"]) for link in network["links"]])


def test_pods_of_a_fat_tree_are_what_is_left_without_its_cores(tmp_path: Path) -> None:
    net = graph({"kind": "fat-tree", "k": 4}, tmp_path)
    stand = fabric_samples.places(net.hosts, net.links)
    assert [stand.level.count(depth) for depth in range(4)] == [16, 8, 8, 4]
    assert [stand.pod.count(pod) for pod in range(4)] == [8, 8, 8, 8]
    assert [node for node, pod in enumerate(stand.pod) if pod < 0] == [
        n for n, depth in enumerate(stand.level) if depth == 3
    ]
    spots = list(zip(stand.level, stand.pod, stand.order, strict=True))
    assert len(set(spots)) == len(spots)


def test_racks_of_a_leaf_spine_fabric_are_its_pods(tmp_path: Path) -> None:
    net = graph({"kind": "leaf-spine", "racks": 3, "hosts_per_rack": 4, "spines": 2}, tmp_path)
    stand = fabric_samples.places(net.hosts, net.links)
    assert [stand.pod.count(pod) for pod in range(3)] == [5, 5, 5]
    assert stand.pod.count(-1) == 2


@pytest.mark.parametrize("kind", ["star", "dumbbell", "parallel-paths", "chain"])
def test_any_graph_has_a_place_for_every_node(kind: str, tmp_path: Path) -> None:
    net = graph({"kind": kind}, tmp_path)
    stand = fabric_samples.places(net.hosts, net.links)
    assert stand.level[: net.hosts] == [0] * net.hosts
    assert min(stand.level) == 0
    spots = list(zip(stand.level, stand.pod, stand.order, strict=True))
    assert len(set(spots)) == len(spots)


def test_the_state_of_the_page_follows_from_the_results_alone(shown: FabricSamples) -> None:
    colours = dict.fromkeys(shown.runs, "red")
    state = fabric_samples.state(shown, colours)
    assert state == fabric_samples.state(shown, colours)
    assert len(state["links"]) == 96
    assert state["names"][:2] == ["h0", "h1"]
    assert all(len(base64.b64decode(scheme["samples"])) > 100 for scheme in state["schemes"])
