"""What is known of a gain where flows have not finished: that of a lower bound is a bound itself, or not even that.

The column ``gain_bound`` says that it is ``at most`` what is told where the scheme's own time may be longer,
``at least`` that where the baseline's may be, and ``roughly`` that where both may be; it is null where both are known.
"""

from collections.abc import Sequence

import polars as pl

AT_MOST, AT_LEAST, ROUGHLY = "at most", "at least", "roughly"
MARKS = {AT_MOST: "≥ ", AT_LEAST: "≤ ", ROUGHLY: "~ "}
"""What stands before the change of a time, which is below zero for a gain."""


def with_gain_bounds(table: pl.DataFrame, baseline: str | None, place: Sequence[str]) -> pl.DataFrame:
    """A summary with the column ``gain_bound``.

    Args:
        table: rows with the columns scheme, gain and lower_bound.
        baseline: what gains are against.
        place: the columns that tell the rows of a scheme apart.
    """
    base = table.filter(pl.col("scheme") == (baseline or "")).select(*place, of_base="lower_bound")
    table = table.join(base, on=place, how="left", nulls_equal=True, maintain_order="left")
    own, of_base = pl.col("lower_bound"), pl.col("of_base")
    bound = (
        pl.when(pl.col("gain").is_null())
        .then(pl.lit(None, pl.String))
        .when(own & of_base)
        .then(pl.lit(ROUGHLY))
        .when(own)
        .then(pl.lit(AT_MOST))
        .when(of_base)
        .then(pl.lit(AT_LEAST))
    )
    return table.with_columns(gain_bound=bound).drop("of_base")


def stands(gain: float, bound: str | None) -> bool:
    """Whether a gain stays a gain, and a loss a loss, however long flows that have not finished take."""
    return bound is None or bound == (AT_LEAST if gain > 0 else AT_MOST)
