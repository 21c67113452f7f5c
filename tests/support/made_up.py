"""Made-up plans and runs, for tests of code that works on any plan and any run."""

import hashlib
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from tailcut.plan import Axis, Plan, PlannedRun, Value
from tailcut.results import Store, tables

MEASURE = {
    "clock": "receiver",
    "unfinished": "censored",
    "short": "100KB",
    "size_groups": ["10KB", "100KB", "1MB", "10MB"],
}
GROUPS = ((10_000, "(0, 10KB]"), (100_000, "(10KB, 100KB]"), (1_000_000, "(100KB, 1MB]"), (10**12, "(1MB, inf)"))


def planned_run(scheme: str, point: dict[str, Value], seed: int) -> PlannedRun:
    config = {
        "topology": {"kind": "fat-tree", "k": 4, "rate": "1Gbps"},
        "scheme": {"transport": {"kind": "tcp"}, "replicate": {"kind": "none" if scheme == "TCP" else "repflow"}},
        "traffic": {"kind": "poisson", "sizes": "web-search", "load": 0.5}
        | {k.rpartition(".")[2]: v for k, v in point.items()},
        "horizon": {"arrivals": "100ms", "drain": "1s"},
    }
    identity = json.dumps([config, seed], sort_keys=True)
    return {
        "id": hashlib.sha256(identity.encode()).hexdigest(),
        "scheme": scheme,
        "point": point,
        "seed": seed,
        "config": config,
        "files": [],
        "facts": {
            "hosts": 16,
            "switches": 20,
            "links": 48,
            "flows": 100,
            "offered_bytes": 10_000_000,
            "carriable_bytes": 10_000_000,
            "expected_packets": 14_000,
            "expected_packet_hops": 80_000,
            "estimated_seconds": 0.008,
            "estimated_memory_bytes": 4_000_000,
        },
    }


def plan(
    schemes: Sequence[str] = ("TCP", "RepFlow"),
    sweep: Sequence[Axis] = ({"key": "traffic.load", "values": [0.2, 0.4]},),
    seeds: Sequence[int] = (1, 2),
    **measure: str,
) -> Plan:
    points = [
        dict(zip([axis["key"] for axis in sweep], values, strict=True))
        for values in product(*(axis["values"] for axis in sweep))
    ]
    return {
        "format": 1,
        "version": "0.1.0",
        "title": "RepFlow against TCP",
        "question": "Does replication help?",
        "source_file": "experiments/made-up.toml",
        "baseline": schemes[0],
        "schemes": list(schemes),
        "sweep": list(sweep),
        "seeds": list(seeds),
        "measure": MEASURE | measure,
        "model": {"short_byte_share": "workload"},
        "lab": {"fabric": "engine"},
        "report": {"baseline": schemes[0]},
        "runs": [planned_run(scheme, dict(point), seed) for scheme in schemes for point in points for seed in seeds],
    }


def flows(fct_us: Sequence[float | None], sizes: Sequence[int] | None = None, start_us: float = 0.0) -> pl.DataFrame:
    """Returns a flow table; a completion time of None is an unfinished flow."""
    count = len(fct_us)
    sizes = sizes or [20_000] * count
    fct_ns = [None if fct is None else round(fct * 1000) for fct in fct_us]
    return pl.DataFrame(
        {
            "id": range(count),
            "bytes": sizes,
            "start_ns": [round(start_us * 1000)] * count,
            "fct_ns": fct_ns,
            "fct_ack_ns": [None if fct is None else fct + 10_000 for fct in fct_ns],
            "ideal_fct_ns": [100_000] * count,
            "ideal_fct_ack_ns": [110_000] * count,
            "class": ["short" if size <= 100_000 else "long" for size in sizes],
            "size_group": [next(name for limit, name in GROUPS if size <= limit) for size in sizes],
            "retransmissions": [0] * count,
            "timeouts": [0] * count,
            "data_packets": [1] * count,
            "finished": [fct is not None for fct in fct_us],
        },
        schema_overrides={
            "fct_ns": pl.Int64,
            "fct_ack_ns": pl.Int64,
            "size_group": pl.String,
            "class": pl.String,
            "finished": pl.Boolean,
        },
    ).cast({pl.Null: pl.Int64})  # columns without rows have no type


def jobs(kind: str, completion_us: Sequence[int]) -> pl.DataFrame:
    """Returns a job table of one kind."""
    count = len(completion_us)
    return pl.DataFrame(
        {
            "id": range(count),
            "kind": [kind] * count,
            "start_ns": [0] * count,
            "completion_ns": [us * 1000 for us in completion_us],
            "flows": [8] * count,
            "bytes": [80_000] * count,
            "finished": [True] * count,
        }
    )


def about(table: pl.DataFrame, **changes: Any) -> dict[str, Any]:
    finished = int(table.filter("finished")["bytes"].sum())
    return {
        "backend": "sim",
        "end_ns": 1_000_000_000,
        "offered_load": 0.5,
        "carried_load": 0.53,
        "goodput": 0.48,
        "offered_bytes": int(table["bytes"].sum()),
        "finished_bytes": finished,
        "flows": table.height,
        "unfinished_flows": int((~table["finished"]).sum()),
        "wall_seconds": 0.5,
        "packet_hops": 80_000,
        "dropped": 3,
        "capture": [],
    } | changes


def put(store: Store, run: PlannedRun, table: pl.DataFrame, jobs: pl.DataFrame | None = None, **changes: Any) -> None:
    """Stores a run with this flow table, and its jobs if it has some."""
    files: dict[str, bytes | Path] = {"flows.parquet": tables.encode("flows", table, run)}
    if jobs is not None:
        files["jobs.parquet"] = tables.encode("jobs", jobs, run)
    with store.claim(run["id"]) as ours:
        assert ours
        store.put(run["id"], files, about(table, **changes))
