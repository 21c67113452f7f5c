"""Totals of runs: fields of run.json, and their sums and means over seeds."""

import polars as pl

from tailcut.results import derived

SUMS = (
    "dropped",
    "lost_on_links",
    "in_flight",
    "needless_retransmissions",
    "recoveries_undone",
    "elephants_found",
    "elephants_missed",
    "elephants_mistaken",
    "elephant_ack_streams",
    "elephant_detection_ns",
    "elephant_reroutes",
    "pauses",
    "deadlocked_links",
    "headers_returned",
    "headers_dropped",
    "paws_discarded",
)
"""Fields of run.json that add up over seeds; null where no run has them."""
ABOUT: dict[str, pl.DataType] = {
    "offered_load": pl.Float64(),
    "carried_load": pl.Float64(),
    "goodput": pl.Float64(),
    "delivered_bytes": pl.Int64(),
    "offered_bytes": pl.Int64(),
    "finished_bytes": pl.Int64(),
    "wall_seconds": pl.Float64(),
    "peak_memory_bytes": pl.Int64(),
    "events": pl.Int64(),
    "packet_hops": pl.Int64(),
    "packet_hops_per_second": pl.Float64(),
    "end_ns": pl.Int64(),
    **dict.fromkeys(("flows", "unfinished_flows", "sent", "delivered"), pl.Int64()),
    **dict.fromkeys(SUMS, pl.UInt64()),
}
"""Fields of run.json that are columns of `Result.runs`."""


def of_cells(runs: pl.DataFrame, per_run: pl.DataFrame, axes: list[str]) -> pl.DataFrame:
    """Returns each scheme's carried and lost traffic at each point: loads are means over seeds, counts are sums.

    Args:
        runs: a row per scheme, point and seed, with the columns of ``ABOUT``.
        per_run: the totals of `tailcut.results.derived`, by ``id``.
        axes: the columns of the swept keys.
    """
    return (
        runs.join(per_run, on="id", how="left", maintain_order="left")
        .group_by("scheme", *axes, maintain_order=True)
        .agg(
            n_seeds=pl.len(),
            offered_load=pl.col("offered_load").mean(),
            carried_load=pl.col("carried_load").mean(),
            goodput=pl.col("goodput").mean(),
            offered_bytes=pl.col("offered_bytes").sum(),
            finished_bytes=pl.col("finished_bytes").sum(),
            flows=pl.col("flows").sum(),
            unfinished_flows=pl.col("unfinished_flows").sum(),
            **{
                name: pl.when(pl.col(name).count() > 0).then(pl.col(name).cast(pl.UInt64).sum())
                for name in (*SUMS, *derived.SUMS)
            },
            long_throughput_bps=pl.col("long_throughput_bps").mean(),
            long_share_of_ideal=pl.col("long_share_of_ideal").mean(),
            packet_hops=pl.col("packet_hops").sum(),
            wall_seconds=pl.col("wall_seconds").sum(),
        )
    )
