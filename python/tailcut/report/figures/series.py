"""Sampled time series: rates and windows of flows, queues and utilisation of links, over the time of the run."""

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import (
    Chart,
    Figure,
    Panel,
    colour,
    dash,
    hoverable,
    layered,
    scheme_dash,
    shown,
    sized,
    source,
)
from tailcut.report.study import Study
from tailcut.report.theme import Theme

QUANTITIES: dict[str, tuple[str, str, float]] = {
    "rate_bps": ("rate", "rate (Mbps)", 1e6),
    "cwnd_bytes": ("congestion window", "congestion window (KB)", 1e3),
    "queue_packets": ("queue", "queue (packets)", 1.0),
    "differential_packets": ("queue differential", "queue differential (packets)", 1.0),
    "utilisation": ("utilisation", "utilisation (%)", 0.01),
}
"""Sampled quantities in the order of the page: name, axis, and how much of it is one unit of the axis."""


def over_time(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """The sampled time series, one panel per quantity and flow or link, one line per scheme and backend.

    Panels of one quantity share their vertical scale, so that flows and links can be compared.
    """
    panels: list[Panel] = []
    if table.height:
        table = table.with_columns(source=pl.col("backend").map_elements(source, return_dtype=pl.String))
    known = list(QUANTITIES)
    found = table["quantity"].unique(maintain_order=True).to_list() if table.height else []
    for quantity in sorted(found, key=lambda name: known.index(name) if name in known else len(known)):
        of_quantity = table.filter(pl.col("quantity") == quantity)
        name, title, unit = QUANTITIES.get(quantity, (quantity.replace("_", " "), quantity.replace("_", " "), 1.0))
        scaled = of_quantity.with_columns((pl.col("value") / unit).round_sig_figs(6))
        most = 100.0 if quantity == "utilisation" else float(scaled["value"].max() or 0) * 1.05 or 1.0  # type: ignore[arg-type]
        for (series,), rows in scaled.group_by("name", maintain_order=True):
            where = str(series).removesuffix(f" {quantity}")
            panel = f"series-{len(panels)}"
            panels.append(Panel(panel, f"{where}: {name}", _over_time(panel, rows, title, most, theme)))
    seed = table["seed"][0] if table.height else None
    where = ", ".join(str(v) for v in table.select("point", "cell").row(0) if v) if table.height else ""
    return Figure(
        name="series",
        title="Over time",
        lead="Samples of the flows and links that the experiment names. Panels of one quantity have one scale.",
        caption=captions.join(
            f"Seed {seed}{f', {study.x.name} {where}' if study.x and where else ''}.",
            "Schemes and points without a run of that seed are not drawn.",
            "Long series keep the least and the greatest sample of each span.",
        ),
        panels=panels,
        data=_extent(table),
        note=None if panels else "The experiment asks for no time series (see [series]).",
    )


def _extent(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the extent of each series; the samples themselves are in series.parquet."""
    if table.height == 0:
        return table
    return table.group_by("source", "scheme", "name", maintain_order=True).agg(
        pl.len().alias("samples drawn"),
        pl.col("ms").min().alias("from (ms)"),
        pl.col("ms").max().alias("to (ms)"),
        pl.col("value").min().alias("least"),
        pl.col("value").mean().alias("mean of those drawn"),
        pl.col("value").max().alias("greatest"),
    )


def _over_time(panel: str, rows: pl.DataFrame, title: str, most: float, theme: Theme) -> Chart:
    backends = rows["backend"].unique(maintain_order=True).to_list()
    base = shown(alt.Chart(rows), theme).encode(
        x=alt.X("ms:Q", title="time (ms)", axis=alt.Axis(grid=False)),
        y=alt.Y(
            "value:Q",
            title=title,
            scale=alt.Scale(domain=[0, most], nice=False),
            axis=alt.Axis(tickCount=5, format="~s"),
        ),
        color=colour(theme),
    )
    dashes = dash(theme, backends) if len(backends) > 1 else scheme_dash(theme)
    line = base.mark_line(strokeWidth=1.5, interpolate="step-after").encode(strokeDash=dashes)
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("source:N", title="from"),
        alt.Tooltip("ms:Q", title="time (ms)", format=".4~f"),
        alt.Tooltip("value:Q", title=title, format=",.5~r"),
    ]
    marks = hoverable(panel, base.mark_point(filled=True, aria=False), theme, tooltip=tips, size=50, resting=0)
    return sized(layered(line, marks) if theme.interactive else line, theme)
