"""A store of random numbers in place of simulated ones: any shape of experiment in milliseconds."""

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tailcut.plan import Plan, PlannedRun, canonical
from tailcut.result import Result
from tailcut.results import Store
from tailcut.results.tables import encode

RATE_GBPS = 1.0
BASE_RTT_NS = 60_000
GROUPS = ((10_000, "(0,10KB]"), (100_000, "(10KB,100KB]"), (1_000_000, "(100KB,1MB]"), (10**12, ">1MB"))
STAGES = ("host", "aggregation", "core")


@dataclass(frozen=True)
class Shape:
    """The shape of an experiment.

    Attributes:
        schemes: scheme names; the first is the baseline.
        sweep: axes as (key, values).
        seeds: the seeds.
        flows: flows per run.
        advantage: by scheme, the factor on a short flow's queueing; 1 is no change.
        unfinished: the share of long flows that never finish.
        all_short: whether there are no long flows.
        lossless: whether no queue overflows.
    """

    schemes: tuple[str, ...] = ("TCP", "RepFlow", "RepSYN")
    sweep: tuple[tuple[str, tuple[Any, ...]], ...] = (("traffic.load", (0.2, 0.4, 0.6, 0.8)),)
    seeds: tuple[int, ...] = (1, 2, 3)
    flows: int = 1500
    advantage: dict[str, float] = field(default_factory=lambda: {"RepFlow": 0.45, "RepSYN": 0.75})
    unfinished: float = 0.0
    all_short: bool = False
    lossless: bool = False


def plan_of(shape: Shape) -> Plan:
    """Returns a plan as the experiment crate would write it."""
    runs: list[PlannedRun] = []
    keys = [key for key, _ in shape.sweep]
    for values in itertools.product(*(values for _, values in shape.sweep)):
        point = dict(zip(keys, values, strict=True))
        for scheme, seed in itertools.product(shape.schemes, shape.seeds):
            config = _config(scheme, point)
            runs.append(
                {
                    "id": hashlib.sha256(canonical([config, seed]).encode()).hexdigest(),
                    "scheme": scheme,
                    "point": point,
                    "seed": seed,
                    "config": config,
                    "files": [],
                    "facts": {
                        "hosts": 128, "switches": 80, "links": 384, "flows": shape.flows, "offered_bytes": 10**9,
                        "carriable_bytes": 9 * 10**8, "expected_packets": 10**6, "expected_packet_hops": 10**7,
                        "estimated_seconds": 1.0, "estimated_memory_bytes": 10**8,
                    },
                }
            )  # fmt: skip
    return {
        "format": 1,
        "version": "0.1.0",
        "title": "Does replication cut the tail of short flows?",
        "question": "What do RepFlow and RepSYN gain on a fat-tree at different loads?",
        "source_file": "experiments/synthetic.toml",
        "baseline": shape.schemes[0],
        "schemes": list(shape.schemes),
        "sweep": [{"key": key, "values": list(values)} for key, values in shape.sweep],
        "seeds": list(shape.seeds),
        "measure": {
            "clock": "receiver",
            "unfinished": "censored",
            "short": "100KB",
            "size_groups": ["10KB", "100KB", "1MB"],
        },
        "model": {"short_byte_share": "workload"},
        "lab": {"fabric": "engine"},
        "report": {},
        "runs": runs,
    }


def _config(scheme: str, point: dict[str, Any]) -> dict[str, Any]:
    kind = scheme.lower() if scheme in ("RepFlow", "RepSYN") else "none"
    config: dict[str, Any] = {
        "topology": {"kind": "fat-tree", "k": 8, "rate": "1Gbps", "propagation": "2667ns"},
        "host": {"nic_queue": "unlimited", "framing_overhead": "38B"},
        "scheme": {
            "transport": {
                "kind": "tcp",
                "mss": "1460B",
                "min_rto": "10ms",
                "label": scheme if kind == "none" else "TCP",
            },
            "queue": {"kind": "drop-tail", "limit": "100packets"},
            "balance": {"kind": "ecmp"},
            "replicate": {"kind": kind},
        },
        "traffic": {"kind": "poisson", "sizes": "web-search", "load": 0.5, "load_of": "host-links"},
        "horizon": {"arrivals": "100ms", "drain": "1s"},
    }
    for key, value in point.items():
        *path, last = key.split(".")
        table = config
        for part in path:
            table = table[part] if part in table else table["scheme"][part]
        table[last] = value
    return config


def _stream(run: PlannedRun, purpose: str) -> np.random.Generator:
    text = canonical([run["point"], run["seed"], purpose])
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


def flows_of(shape: Shape, run: PlannedRun) -> pl.DataFrame:
    """Returns a flow table with the columns of the contract; schemes share the flows of a point and seed."""
    count = shape.flows
    rng = _stream(run, "flows")
    small = rng.random(count) < (1.0 if shape.all_short else 0.6)
    sizes = np.where(
        small,
        np.exp(rng.uniform(np.log(1e3), np.log(1e5), count)),
        np.exp(rng.uniform(np.log(1e5), np.log(2e7), count)),
    )
    sizes = sizes.astype(np.int64)
    ideal = BASE_RTT_NS + sizes * 8 / RATE_GBPS
    load = float(run["point"].get("traffic.load", 0.5))
    waiting = rng.exponential(load / (1 - load) * 4e5, count) * np.where(rng.random(count) < 0.03, 12, 1)
    waiting *= np.where(small, shape.advantage.get(run["scheme"], 1.0), 1.0 + 0.3 * load)
    slow = np.where(small, 1.0, 1 / (1 - 0.9 * load))
    fct = (ideal * slow + waiting + _stream(run, run["scheme"]).normal(0, 500, count).clip(-1000, 1000)).astype(
        np.int64
    )
    fct = np.maximum(fct, ideal.astype(np.int64))
    done = small | (rng.random(count) >= shape.unfinished)
    retransmissions = _stream(run, "retransmissions").poisson(0.02 + load / 20, count)
    table = pl.DataFrame(
        {
            "id": np.arange(count, dtype=np.uint64),
            "src": rng.integers(0, 64, count).astype(np.uint32),
            "dst": rng.integers(64, 128, count).astype(np.uint32),
            "bytes": sizes.astype(np.uint64),
            "start_ns": np.sort(rng.integers(0, 100_000_000, count)),
            "connect_ns": np.full(count, BASE_RTT_NS),
            "fct_ns": fct,
            "fct_ack_ns": fct + BASE_RTT_NS // 2,
            "ideal_fct_ns": ideal.astype(np.int64),
            "ideal_fct_ack_ns": ideal.astype(np.int64) + BASE_RTT_NS // 2,
            "data_packets": (sizes // 1460 + 1 + retransmissions).astype(np.uint64),
            "retransmissions": retransmissions.astype(np.uint64),
            "timeouts": np.zeros(count, np.uint32),
            "fast_recoveries": retransmissions.astype(np.uint32),
            "recoveries_undone": np.zeros(count, np.uint32),
            "needless_retransmissions": np.zeros(count, np.uint64),
            "copies": np.where(small & (run["scheme"] != shape.schemes[0]), 2, 1).astype(np.uint8),
            "finished": done,
        }
    )
    bounds = [bound for bound, _ in GROUPS]
    labels = [label for _, label in GROUPS]
    group = pl.Series(np.searchsorted(bounds, sizes)).cast(pl.UInt32)
    return table.with_columns(
        pl.when("finished").then("fct_ns").alias("fct_ns"),
        pl.when("finished").then("fct_ack_ns").alias("fct_ack_ns"),
        normalised_fct=pl.when("finished").then(pl.col("fct_ns") / pl.col("ideal_fct_ns")),
        winner=pl.when(pl.col("finished")).then(pl.lit(0, pl.UInt8)),
        most_duplicate_acks=pl.lit(None, pl.UInt64),
        reordering_extent=pl.lit(None, pl.UInt64),
        shared_hops=pl.when(pl.col("copies") > 1).then(pl.lit(1, pl.UInt8)),
        hops=pl.lit(6, pl.UInt8),
        **{"class": pl.Series(np.where(small, "short", "long"))},
        size_group=pl.Series(labels).gather(group),
    )


def tiers_of(shape: Shape, run: PlannedRun) -> pl.DataFrame:
    """Returns a tier table with the columns of the contract."""
    load = float(run["point"].get("traffic.load", 0.5))
    rng = _stream(run, run["scheme"] + "tiers")
    rows = []
    for direction, tier in itertools.product(("up", "down"), STAGES):
        mean = load * rng.uniform(0.88, 0.92) * (1.02 if run["scheme"] == "RepFlow" else 1)
        packets = int(1e6 * load)
        lost = (
            0
            if shape.lossless or (tier == "host" and direction == "up")
            else int(packets * load**3 * rng.uniform(0.5, 1) / 100)
        )
        rows.append(
            {
                "tier": tier, "direction": direction, "links": 128, "packets": packets, "wire_bytes": packets * 1000,
                "drops": lost, "mean_utilisation": mean, "max_utilisation": min(1.0, mean * 1.7),
                "max_queue": 100 if lost else 40,
            }
        )  # fmt: skip
    return pl.DataFrame(rows)


def series_of(run: PlannedRun, samples: int = 400) -> pl.DataFrame:
    """Returns a table of time series: the window of one flow and the queue of one link."""
    rng = _stream(run, "series")
    times = np.arange(samples, dtype=np.int64) * 100_000
    saw = 12_000 + 1460 * (np.arange(samples) % 37)
    queue = rng.integers(0, 100, samples)
    return pl.concat(
        pl.DataFrame({"name": name, "time_ns": times, "value": values.astype(float)}).with_columns(
            flow=pl.lit(flow, pl.UInt64), copy=pl.lit(None if flow is None else 0, pl.UInt8)
        )
        for name, values, flow in (("flow 12 cwnd_bytes", saw, 12), ("link h0>s0 queue_packets", queue, None))
    )


def build(
    directory: Path, shape: Shape, *, series: bool = False, keep: Callable[[PlannedRun], bool] = lambda _: True
) -> Result:
    """Writes the experiment through the real writers and opens it.

    Args:
        directory: the directory of the store.
        shape: the shape of the experiment.
        series: whether there are time series.
        keep: returns whether a run has finished.
    """
    plan = plan_of(shape)
    store = Store.create(directory, plan)
    for run in filter(keep, plan["runs"]):
        flows = flows_of(shape, run)
        frames = {"flows": flows, "tiers": tiers_of(shape, run)} | ({"series": series_of(run)} if series else {})
        files: dict[str, bytes | Path] = {f"{name}.parquet": encode(name, frame, run) for name, frame in frames.items()}
        about = {
            "seed": run["seed"], "version": "0.1.0", "plan": run,
            "machine": {"cpu": "Example CPU 2.3 GHz", "cores": 2, "system": "Linux 6.1", "python": "3.11.2"},
            "offered_load": run["point"].get("traffic.load", 0.5),
            "carried_load": float(run["point"].get("traffic.load", 0.5)) * 0.97,
            "goodput": float(run["point"].get("traffic.load", 0.5)) * 0.9,
            "wall_seconds": 1.25, "peak_memory_bytes": 90_000_000, "events": 12_000_000, "packet_hops": 12_000_000,
            "packet_hops_per_second": 9_600_000.0, "end_ns": 1_100_000_000, "flows": flows.height,
            "unfinished_flows": int((~flows["finished"]).sum()), "sent": 10**6, "delivered": 10**6, "dropped": 100,
            "in_flight": 0,
        }  # fmt: skip
        with store.claim(run["id"]):
            store.put(run["id"], files, about)
    return Result.open(directory)


def with_model(result: Result) -> Result:
    """Returns the results with a model's rows beside the simulator's: no seeds, mean and p99 only, no RepSYN."""
    simulated = result.summary()
    numbers = ["value_us", "normalised", "change"]
    intervals = [name for name in simulated.columns if name.endswith(("ci_low", "ci_high"))]
    said = pl.col("statistic").is_in(["mean", "p99"]) & (pl.col("scheme") != "RepSYN") & (pl.col("grouping") == "class")
    why = pl.when(pl.col("scheme") == "RepSYN").then(pl.lit("the analysis does not cover RepSYN")).otherwise(
        pl.lit("the analysis gives mean and 99th percentile of short and long flows only")
    )  # fmt: skip
    rows = simulated.with_columns(
        pl.when(said).then(pl.col(numbers) * 0.85),
        *(pl.lit(None, pl.Float64).alias(name) for name in intervals),
        backend=pl.lit("model"),
        lower_bound=pl.lit(value=False),
        change_note=pl.lit(None, pl.String),
        change_seeds=pl.lit(None, pl.UInt32),
        significant=pl.lit(None, pl.Boolean),
        n_flows=pl.lit(0, pl.UInt64),
        n_unfinished=pl.lit(0, pl.UInt64),
        n_seeds=pl.lit(0, pl.UInt32),
        reason=pl.when(~said).then(why),
    )
    Store.open(result.directory).put_summary("model", rows.select(simulated.columns), result.plan)
    return Result.open(result.directory)
