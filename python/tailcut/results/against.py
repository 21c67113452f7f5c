"""The simulator against real kernels, seed by seed: one that only one of them has says nothing of how they differ."""

from collections.abc import Sequence

import polars as pl

CLASSES, STATISTICS = ("short", "long"), ("mean", "p99")


def of(simulated: pl.DataFrame, real: pl.DataFrame, cell: Sequence[str]) -> pl.DataFrame:
    """Both backends' means over the seeds that both have, of each class and statistic.

    Args:
        simulated: a row per run, class and statistic, as ``Result.per_seed`` has them.
        real: those of one fabric, as ``Result.lab_per_repeat`` has them; of repeats of a seed the mean counts.
        cell: the columns that tell cells apart: the scheme, and the axes of the sweep.

    Returns:
        The columns of ``cell``, ``class``, ``statistic``, ``simulated_us``, ``real_us`` and ``n_seeds``. Times of which
        only a lower bound is known are left out.
    """
    place = [*cell, "class", "statistic"]

    def per_seed(rows: pl.DataFrame) -> pl.DataFrame:
        asked = rows.filter(
            pl.col("grouping") == "class", pl.col("class").is_in(CLASSES), pl.col("statistic").is_in(STATISTICS)
        )
        return asked.group_by(*place, "seed", maintain_order=True).agg(
            pl.col("value_us").mean(), pl.col("lower_bound").any()
        )

    both = per_seed(simulated).join(
        per_seed(real), on=[*place, "seed"], how="inner", nulls_equal=True, maintain_order="left", suffix="_real"
    )
    known = both.filter(pl.col("value_us").is_not_null(), pl.col("value_us_real").is_not_null())
    means = known.group_by(place, maintain_order=True).agg(
        simulated_us=pl.col("value_us").mean(),
        real_us=pl.col("value_us_real").mean(),
        n_seeds=pl.len(),
        bound=(pl.col("lower_bound") | pl.col("lower_bound_real")).any(),
    )
    return means.filter(~pl.col("bound")).drop("bound")
