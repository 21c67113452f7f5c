"""The simulator against real kernels: by how much the same flows took another time, class by class."""

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import Figure, Panel, significant, unit_for
from tailcut.report.figures.matrix import matrix
from tailcut.report.study import Study
from tailcut.report.theme import Theme


def kernels(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Real kernels against the simulator at one point of the sweep (``tables.against``)."""
    panels = []
    if table.height:
        rows = _timed(table).with_columns(column=pl.format("{}|{}", "class", "statistic"), value=pl.col("change"))
        tips = [
            alt.Tooltip("scheme:N", title="scheme"),
            alt.Tooltip("column:N", title="what"),
            alt.Tooltip("said:N", title="real kernels against the simulator"),
            alt.Tooltip("simulated:N", title="simulated"),
            alt.Tooltip("real:N", title="real kernels"),
        ]
        names = rows["column"].unique(maintain_order=True).to_list()
        chart = matrix(rows, theme, columns=names, tooltip=tips, signed=True)
        panels.append(Panel("against-kernels", "Real kernels against the simulator (%)", chart))
    return Figure(
        name="against",
        title="The simulator against real kernels",
        lead=(
            "How much longer (orange) or shorter (blue) the same flows took with real kernels. The best outcome is no"
            " difference."
        ),
        caption=captions.join(
            "Changes of completion times (FCT) from the simulator to real kernels, over the seeds that both have"
            f"{', unfaithful runs included' if study.lab.with_unfaithful else '; of faithful runs alone'}.",
            captions.clock(study),
            captions.load(study),
        ),
        panels=panels,
        data=_numbers(table),
        note=None if panels else "No seed has both a simulated run and a faithful lab run.",
    )


def _numbers(table: pl.DataFrame) -> pl.DataFrame:
    if table.height == 0:
        return table
    columns = ["scheme", "cell", "point", "class", "statistic", "simulated", "real"]
    return _timed(table).select(*columns, change="said", seeds="n_seeds")


def _timed(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(
        pl.col(f"{name}_us").map_elements(_time, return_dtype=pl.String).alias(name) for name in ("simulated", "real")
    )


def _time(us: float) -> str:
    unit, size = unit_for(pl.Series([us]))
    return f"{significant(us / size)} {unit}"
