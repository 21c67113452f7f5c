"""Random extreme result sets: empty points, single flows, nothing finished, extreme times, odd names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from support import made_up
from tailcut.plan import Axis, PlannedRun, Value
from tailcut.result import Result
from tailcut.results import Store
from tailcut.results.tables import encode, schema

NAMES = (
    "TCP", "sim", "model", "lab", "scheme:TCP", "=1+1", "@SUM(A1)", "-2", "+x", "a,b", '"quoted"', "it's",
    "</script><b>x", "[/red]", "{x}", "schöne Grüße", "0.3", "none", "x" * 60,
)  # fmt: skip
AXES: tuple[tuple[str, tuple[Value, ...]], ...] = (
    ("traffic.load", (0.3, 0.30000000000000004, 0.3000001)),
    ("traffic.load", (0.2,)),
    ("traffic.load", (1e-9, 0.5, 1.0)),
    ("queue.limit", ("10KB", "10 KB", "100packets")),
    ("transport.it", (True, False, "yes")),
    ("transport.it", (1, 2, 2.5)),
    ("transport.mss", ("1460B",)),
)
LARGE = (4, 2, 3, (1, 2, 3, 5, 6))
SMALL = (2, 1, 2, (1, 1, 1, 2))
"""The most schemes, axes and values of each, and the numbers of seeds to draw from."""
SIZES = (1, 20_000, 100_000, 5_000_000)


def build(directory: Path, number: int, *, small: bool = False) -> Result:
    """Returns the result set of this number: equal ones for equal numbers.

    Args:
        directory: its directory.
        number: the seed of the draw.
        small: whether it has few runs, which suffices for most odd cases.
    """
    random = np.random.default_rng(number)
    store = Store.create(directory, _plan(random, *(SMALL if small else LARGE)))
    plan = store.plan()
    runs = plan["runs"]
    done: set[str] = set()
    for run in runs:
        if run["id"] not in done and (not done or random.random() < 0.9):
            _put(store, run, random)
            done.add(run["id"])
    return Result(store)


def _plan(
    random: np.random.Generator, most_schemes: int, most_axes: int, most_values: int, counts: Sequence[int]
) -> Any:
    schemes = [str(name) for name in random.choice(NAMES, random.integers(1, most_schemes + 1), replace=False)]
    axes: dict[str, Axis] = {}
    for place in random.choice(len(AXES), random.integers(0, most_axes + 1), replace=False):
        key, values = AXES[place]
        axes[key] = {"key": key, "values": list(values[:most_values])}
    seeds = [int(seed) for seed in range(1, 1 + random.choice(counts))]
    unfinished = str(random.choice(["censored", "exclude"]))
    clock = str(random.choice(["receiver", "sender"]))
    return made_up.plan(schemes, [*axes.values()], seeds, unfinished=unfinished, clock=clock)


def _times(random: np.random.Generator, flows: int) -> list[float | None]:
    kind = random.integers(5)
    if kind == 0:
        times = np.full(flows, 123.0)
    elif kind == 1:
        times = random.choice([0.001, 1e12], flows)
    else:
        times = np.exp(random.normal(6, kind, flows))
    never = random.choice([0.0, 0.3, 1.0], p=[0.6, 0.2, 0.2])
    return [None if random.random() < never else max(float(time), 0.001) for time in times]


def _put(store: Store, run: PlannedRun, random: np.random.Generator) -> None:
    flows = int(random.choice([0, 1, 2, 5, 40]))
    times = _times(random, flows)
    table = made_up.flows(times, [int(size) for size in random.choice(SIZES[: random.integers(1, 5)], flows)])
    if random.random() < 0.3:
        table = table.with_columns(ideal_fct_ns=pl.lit(int(random.choice([1, 10**15])), pl.Int64))
    if random.random() < 0.2:
        table = table.with_columns(data_packets=pl.lit(0, pl.UInt64))
    table = table.select(pl.col(name).cast(kind) for name, kind in schema("flows").items() if name in table.columns)
    files: dict[str, bytes | Path] = {"flows.parquet": encode("flows", table, run)}
    if random.random() < 0.3:
        jobs = made_up.jobs("query", [5, 5][: random.integers(0, 3)])
        files["jobs.parquet"] = encode("jobs", jobs.cast(pl.Schema(schema("jobs"))), run)
    if random.random() < 0.3:
        values = [int(value) for value in random.choice([0, 1, 41, 10**9], random.integers(0, 4), replace=False)]
        rows = {"quantity": ["timeouts per flow"] * len(values), "value": values, "count": [1] * len(values)}
        files["segments.parquet"] = encode("segments", pl.DataFrame(rows, schema=schema("segments")), run)
    if random.random() < 0.3:
        speeds = [float(speed) for speed in random.choice([0.0, 1.0, 1e12], random.integers(0, 4))]
        rows = {
            "id": [*range(len(speeds))], "bytes": [10**6] * len(speeds), "delivered_bytes": [0] * len(speeds),
            "throughput_bps": speeds, "ideal_bps": [float(random.choice([0.0, 1e9]))] * len(speeds),
        }  # fmt: skip
        files["throughput.parquet"] = encode("throughput", pl.DataFrame(rows, schema=schema("throughput")), run)
    with store.claim(run["id"]):
        store.put(run["id"], files, made_up.about(table, end_ns=10**16))
