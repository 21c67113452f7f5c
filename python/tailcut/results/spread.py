"""Spread over repeats of one seed with real kernels, and over seeds: kernels are not deterministic."""

from collections.abc import Sequence

import polars as pl

SPREAD: dict[str, pl.DataType] = {
    "grouping": pl.String(),
    "class": pl.String(),
    "statistic": pl.String(),
    "value_us": pl.Float64(),
    "over_repeats_us": pl.Float64(),
    "over_seeds_us": pl.Float64(),
    "n_runs": pl.UInt32(),
    "n_repeated": pl.UInt32(),
    "n_seeds": pl.UInt32(),
}
"""The columns after those that name a cell: see `lab_spread`."""
SHOWN = {
    ("short", "mean"): "short flows, mean",
    ("short", "p99"): "short flows, 99th percentile",
    ("long", "mean"): "long flows, mean",
}
"""The classes and statistics whose spread is shown, with their labels."""


def lab_spread(per_repeat: pl.DataFrame, cell: Sequence[str]) -> pl.DataFrame:
    """The two spreads of every statistic, as standard deviations in microseconds; cells without a value are left out.

    Args:
        per_repeat: a row per run, class and statistic, as `LabResults.per_repeat` has them.
        cell: the columns that tell cells apart: the fabric, the scheme, and the axes of the sweep.

    Returns:
        For each cell, class and statistic: the mean over seeds of the seeds' means; ``over_repeats_us``, the standard
        deviation of runs about the mean of their own seed, pooled over the seeds that have several (null without one);
        ``over_seeds_us``, that of the seeds' means (null with a single seed), in which what repeats differ by is, too,
        though divided by the root of their number; and how many runs, seeds with several, and seeds there are.
    """
    place = [*cell, "grouping", "class", "statistic"]
    per_seed = (
        per_repeat.filter(pl.col("value_us").is_not_null())
        .group_by(*place, "seed", maintain_order=True)
        .agg(
            mean=pl.col("value_us").mean(),
            squares=((pl.col("value_us") - pl.col("value_us").mean()) ** 2).sum(),
            runs=pl.len(),
        )
    )
    free = (pl.col("runs") - 1).sum()
    return (
        per_seed.group_by(place, maintain_order=True)
        .agg(
            value_us=pl.col("mean").mean(),
            over_repeats_us=pl.when(free > 0).then((pl.col("squares").sum() / free).sqrt()),
            over_seeds_us=pl.col("mean").std(),
            n_runs=pl.col("runs").sum(),
            n_repeated=(pl.col("runs") > 1).sum(),
            n_seeds=pl.len(),
        )
        .select(*cell, *(pl.col(name).cast(kind) for name, kind in SPREAD.items()))
    )


def shown(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of `lab_spread` that are shown, with a label in ``what``; none if no seed was repeated."""
    rows = table.filter(pl.col("grouping") == "class", pl.col("n_repeated") > 0)
    called = pl.DataFrame(
        [(*place, what) for place, what in SHOWN.items()], schema=["class", "statistic", "what"], orient="row"
    )
    return rows.join(called, on=["class", "statistic"], how="inner", maintain_order="left")
