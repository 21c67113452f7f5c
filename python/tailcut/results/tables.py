"""The tables of a run: their columns, units, and the one way they are written.

Equal tables give equal bytes: the writer's settings are fixed, rows come in flow order, and what goes into a file's
metadata follows from the configuration and the seed alone. Wall time, machine and the like are in ``run.json`` only.
"""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import tailcut
from tailcut.plan import PlannedRun, canonical

if TYPE_CHECKING:
    from tailcut._core import _Column

# Part of every run's identity, by way of the plan: raise it there when the meaning of a result changes.
METADATA_KEY = "tailcut"

UNITS: dict[str, dict[str, str]] = {
    "flows": {
        "id": "flow number in order of start",
        "src": "host number",
        "dst": "host number",
        "bytes": "application bytes",
        "start_ns": "ns of simulated time",
        "connect_ns": "ns from start until the first connection is established",
        "fct_ns": "ns from start until the last byte is received",
        "fct_ack_ns": "ns from start until the sender has the last byte's acknowledgement",
        "ideal_fct_ns": "ns, the flow alone in the network",
        "ideal_fct_ack_ns": "ns, the flow alone in the network, its last byte acknowledged at once",
        "normalised_fct": "fct on the plan's clock / ideal fct on that clock",
        "class": "short or long, by the plan's threshold",
        "size_group": "the plan's size groups",
        "data_packets": "packets sent, retransmissions and copies included",
        "retransmissions": "packets",
        "timeouts": "retransmission timeouts, SYN included",
        "fast_recoveries": "recoveries entered",
        "recoveries_undone": "recoveries taken back, since nothing had been lost",
        "needless_retransmissions": "data segments that the receiver had already",
        "most_duplicate_acks": "duplicate ACKs for one segment, where measure.segments counts them",
        "reordering_extent": "segments behind the highest received, at most, where measure.segments counts them",
        "copies": "connections opened",
        "winner": "connection that finished first, from 0",
        "shared_hops": "switch-to-switch links that the first two copies share",
        "hops": "links from source to destination",
        "finished": "before the run ended",
    },
    "jobs": {
        "id": "job number",
        "kind": "what kind of job",
        "start_ns": "ns of simulated time, start of its first flow",
        "completion_ns": "ns from start until the last byte of its last flow is received",
        "flows": "its flows",
        "bytes": "application bytes of its flows",
        "finished": "before the run ended",
    },
    "segments": {
        "quantity": "what is counted",
        "value": "duplicate ACKs, segments, or timeouts",
        "count": "segments, or flows, of that value",
    },
    "throughput": {
        "id": "flow number",
        "bytes": "application bytes",
        "delivered_bytes": "in order at the receiver when the arrivals ended",
        "throughput_bps": "delivered bits per second of the flow's time until then",
        "ideal_bps": "payload of the max-min fair share, of flows that run to the end of the arrivals",
    },
    "tiers": {
        "tier": "name",
        "direction": "up (away from hosts) or down",
        "links": "directed links",
        "packets": "packets that crossed",
        "wire_bytes": "bytes that crossed, framing included",
        "drops": "packets that found a queue full",
        "mean_utilisation": "fraction of the arrivals window, mean over links",
        "max_utilisation": "fraction of the arrivals window, busiest link",
        "max_queue": "packets",
    },
    "series": {"name": "what was sampled", "time_ns": "ns of simulated time", "value": "unit as in the name"},
}


def frame(columns: Mapping[str, "_Column"]) -> pl.DataFrame:
    """A Polars frame of columns as the core gives them: values, validity if some are missing, labels if categorical."""
    return pl.DataFrame([_series(name, column) for name, column in columns.items()])


def _series(name: str, column: "_Column") -> pl.Series:
    categories = column["categories"]
    if categories is not None:
        labels = pl.Series(categories, dtype=pl.String)
        series = labels.gather(pl.Series(column["values"].astype(np.uint32))).alias(name)
    else:
        series = pl.Series(name, column["values"])
    valid = column["valid"]
    if valid is None:
        return series
    return pl.select(pl.when(pl.Series(valid)).then(series).alias(name)).to_series()


def encode(table: str, data: pl.DataFrame, run: PlannedRun) -> bytes:
    """``data`` as the bytes of a Parquet file that says what it is.

    Args:
        table: a key of ``UNITS``.
        data: the rows.
        run: the run they come from.
    """
    about = {
        "table": table,
        "id": run["id"],
        "seed": run["seed"],
        "version": tailcut.__version__,
        "config": run["config"],
        "units": {name: UNITS[table].get(name, "") for name in data.columns},
    }
    return to_parquet(data, {METADATA_KEY: canonical(about)})


def to_parquet(data: pl.DataFrame, metadata: dict[str, str]) -> bytes:
    """``data`` as Parquet with every setting that shows in the bytes fixed."""
    buffer = io.BytesIO()
    data.rechunk().write_parquet(
        buffer,
        compression="zstd",
        compression_level=3,
        statistics=True,
        row_group_size=1 << 18,
        data_page_size=1 << 20,
        metadata=metadata,
    )
    return buffer.getvalue()
