"""The tables of a run: their columns and units, and how they are written.

Equal tables give equal bytes: the writer's settings are fixed, rows come in flow order, and what goes into a file's
metadata follows from the configuration and the seed alone. Wall time, machine and the like are in ``run.json`` only.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import tailcut
from tailcut.plan import PlannedRun, canonical

if TYPE_CHECKING:
    from tailcut._core import _Column

# Part of every run's identity, by way of the plan: raise it there when the meaning of a result
# changes.
METADATA_KEY = "tailcut"

COLUMNS: dict[str, dict[str, tuple[pl.DataType, str]]] = {
    "flows": {
        "id": (pl.UInt64(), "flow number in order of start"),
        "src": (pl.UInt32(), "host number"),
        "dst": (pl.UInt32(), "host number"),
        "bytes": (pl.UInt64(), "application bytes"),
        "start_ns": (pl.Int64(), "ns of simulated time"),
        "connect_ns": (pl.Int64(), "ns from start until the first connection is established"),
        "fct_ns": (pl.Int64(), "ns from start until the last byte is received"),
        "fct_ack_ns": (pl.Int64(), "ns from start until the sender has the last byte's acknowledgement"),
        "ideal_fct_ns": (pl.Int64(), "ns, the best possible: the flow alone in the network"),
        "ideal_fct_ack_ns": (pl.Int64(), "ns, the same by the sender's clock, the last byte acknowledged at once"),
        "normalised_fct": (pl.Float64(), "fct on the plan's clock / ideal fct on that clock"),
        "class": (pl.String(), "short or long, by the plan's threshold"),
        "size_group": (pl.String(), "the plan's size groups"),
        "data_packets": (pl.UInt64(), "packets sent, retransmissions and copies included"),
        "retransmissions": (pl.UInt64(), "packets"),
        "timeouts": (pl.UInt32(), "retransmission timeouts, SYN included"),
        "fast_recoveries": (pl.UInt32(), "recoveries entered"),
        "recoveries_undone": (pl.UInt32(), "recoveries taken back, since nothing had been lost"),
        "needless_retransmissions": (pl.UInt64(), "data segments that the receiver had already"),
        "most_duplicate_acks": (pl.UInt64(), "duplicate ACKs for one segment, where measure.segments counts them"),
        "reordering_extent": (
            pl.UInt64(),
            "segments behind the highest received, where measure.segments counts them",
        ),
        "copies": (pl.UInt8(), "connections opened"),
        "winner": (pl.UInt8(), "connection that finished first, from 0"),
        "shared_hops": (pl.UInt8(), "switch-to-switch links that the first two copies share"),
        "hops": (pl.UInt8(), "links from source to destination"),
        "finished": (pl.Boolean(), "before the run ended"),
    },
    "jobs": {
        "id": (pl.UInt64(), "job number"),
        "kind": (pl.String(), "what kind of job"),
        "start_ns": (pl.Int64(), "ns of simulated time, start of its first flow"),
        "completion_ns": (pl.Int64(), "ns from start until the last byte of its last flow is received"),
        "flows": (pl.UInt32(), "its flows"),
        "bytes": (pl.UInt64(), "application bytes of its flows"),
        "finished": (pl.Boolean(), "before the run ended"),
    },
    "segments": {
        "quantity": (pl.String(), "what is counted"),
        "value": (pl.UInt64(), "duplicate ACKs, segments, or timeouts"),
        "count": (pl.UInt64(), "segments, or flows, of that value"),
    },
    "throughput": {
        "id": (pl.UInt64(), "flow number"),
        "bytes": (pl.UInt64(), "application bytes"),
        "delivered_bytes": (pl.UInt64(), "in order at the receiver when the arrivals ended"),
        "throughput_bps": (pl.Float64(), "delivered bits per second of the flow's time until then"),
        "ideal_bps": (pl.Float64(), "payload of the max-min fair share, of flows that run to the end of the arrivals"),
    },
    "fabric": {
        "time_ns": (pl.Int64(), "ns of simulated time"),
        "port": (pl.UInt32(), "number of a port, as in the table of ports"),
        "queue_packets": (pl.UInt32(), "packets that wait, without the one that is being sent"),
        "queue_bytes": (pl.UInt32(), "their bytes"),
        "busy_ns": (pl.UInt64(), "ns of transmission since the instant before"),
        "drops": (pl.UInt32(), "packets dropped since the instant before"),
    },
    "ports": {
        "port": (pl.UInt32(), "port number: twice that of its link, and one more for the other direction"),
        "from": (pl.UInt32(), "number of the node that sends: hosts, then switches"),
        "to": (pl.UInt32(), "number of the node that receives"),
        "from_name": (pl.String(), "its name"),
        "to_name": (pl.String(), "its name"),
        "tier": (pl.String(), "name"),
        "rate_bps": (pl.UInt64(), "bits per second"),
    },
    "paths": {
        "id": (pl.UInt64(), "flow number"),
        "copy": (pl.UInt8(), "which of its connections, from 0"),
        "port": (pl.UInt32(), "a port that sent packets of it from source to destination"),
        "packets": (pl.UInt32(), "how many"),
    },
    "tiers": {
        "tier": (pl.String(), "name"),
        "direction": (pl.String(), "up (away from hosts) or down"),
        "links": (pl.UInt32(), "directed links"),
        "packets": (pl.UInt64(), "packets that crossed"),
        "wire_bytes": (pl.UInt64(), "bytes that crossed, framing included"),
        "drops": (pl.UInt64(), "packets that found a queue full"),
        "mean_utilisation": (pl.Float64(), "fraction of the arrivals window, mean over links"),
        "max_utilisation": (pl.Float64(), "fraction of the arrivals window, busiest link"),
        "max_queue": (pl.UInt32(), "packets"),
    },
    "starts": {
        "id": (pl.UInt64(), "flow number"),
        "start_late_ns": (pl.UInt64(), "ns from when the flow was due until its connection was opened"),
    },
    "series": {
        "name": (pl.String(), "what was sampled"),
        "time_ns": (pl.Int64(), "ns of simulated time"),
        "value": (pl.Float64(), "unit as in the name"),
        "flow": (pl.UInt64(), "flow number; none for links and paths"),
        "copy": (pl.UInt8(), "which of its connections (copies, subflows), from 0"),
    },
}
"""The columns of every table that a run can have: type and unit."""
PARTS: dict[str, str] = {
    "part_transmission_ns": "ns on the wire in the handshake and on the last path, and behind the own connection",
    "part_propagation_ns": "ns along the wires of the handshake and of the last path",
    "part_window_slow_start_ns": "ns of transmission and propagation in the round trips before: slow start",
    "part_window_congestion_ns": "the same where the congestion window had no room, and was not in slow start",
    "part_window_receiver_ns": "the same where only the receiver's window had no room",
    "part_pacing_ns": "ns that the sender's pacing held a segment back",
    "part_pull_ns": "ns until the receiver's turn to ask for more (NDP)",
    "part_delayed_ack_ns": "ns that an acknowledgement waited for company",
    "part_interface_own_ns": "ns in a host's interface behind the flow's other connections",
    "part_interface_others_ns": "ns in a host's interface behind other flows",
    "part_queue_up2_own_ns": "ns before a link of the second tier, upwards, behind the flow's other connections",
    "part_queue_up2_others_ns": "ns before a link of the second tier, upwards, behind other flows",
    "part_queue_up3_own_ns": "ns before a link of a higher tier, upwards, behind the flow's other connections",
    "part_queue_up3_others_ns": "ns before a link of a higher tier, upwards, behind other flows",
    "part_queue_down3_own_ns": "ns before a link of a higher tier, downwards, behind the flow's other connections",
    "part_queue_down3_others_ns": "ns before a link of a higher tier, downwards, behind other flows",
    "part_queue_down2_own_ns": "ns before a link of the second tier, downwards, behind the flow's other connections",
    "part_queue_down2_others_ns": "ns before a link of the second tier, downwards, behind other flows",
    "part_queue_down1_own_ns": "ns before the link to a host, behind the flow's other connections",
    "part_queue_down1_others_ns": "ns before the link to a host, behind other flows",
    "part_pause_ns": "ns before a link that was paused",
    "part_recovery_ns": "ns of transmission and propagation in round trips after which something was sent again",
    "part_reordering_ns": "ns until the sender took what was late for lost",
    "part_probe_ns": "ns until the sender probed the tail of a flight",
    "part_timeout_ns": "ns of a retransmission timer",
    "part_syn_timeout_ns": "ns of the timer of a SYN or SYN-ACK",
    "part_copy_delay_ns": "ns until the copy that won was opened",
}
"""Columns that the flow table has besides with ``measure.attribution``; they add up to ``fct_ns``."""
UNITS = {table: {name: unit for name, (_, unit) in columns.items()} for table, columns in COLUMNS.items()}
UNITS["flows"] |= PARTS
COLLECTIVE: dict[str, str] = {
    "collective": "number of the job of its first iteration",
    "iteration": "from 0",
    "algbw_gb_per_s": "GB/s: bytes of the array over the completion time (nccl-tests)",
    "busbw_gb_per_s": "GB/s: what each link carries of that, 2(n-1)/n of an all-reduce, else (n-1)/n (nccl-tests)",
}
"""Columns that the job table has besides where jobs are collective operations."""
UNITS["jobs"] |= COLLECTIVE


def schema(table: str) -> dict[str, pl.DataType]:
    """The types of a table's columns; ``table`` is a key of ``COLUMNS``."""
    return {name: kind for name, (kind, _) in COLUMNS[table].items()}


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
    """Returns ``data`` as the bytes of a Parquet file that describes itself.

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


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The table in a file, or some columns of it.

    All reading goes through here and `scan_parquet`: unless told otherwise, Polars takes ``[``, ``*`` and ``?`` in a
    path for a pattern, and reads nothing of a directory that has them in its name, or what is in another.
    """
    return pl.read_parquet(path, columns=None if columns is None else list(columns), glob=False)


def scan_parquet(*paths: Path, place: str | None = None) -> pl.LazyFrame:
    """The tables in files as one, read when it is collected; ``place`` names a further column, of each row's file."""
    return pl.scan_parquet([str(path) for path in paths], include_file_paths=place, glob=False)


def for_spreadsheets(table: pl.DataFrame) -> pl.DataFrame:
    """The table with a quote before texts that a spreadsheet would take for formulas, such as a scheme ``=1+1``."""
    text = pl.selectors.string()
    return table.with_columns(pl.when(text.str.contains(r"^[=+\-@\t\r]")).then("'" + text).otherwise(text).name.keep())


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
