"""What the network did: utilisation and drops by stage of the path, and sampled time series."""

import altair as alt
import polars as pl

from tailcut.report import captions, tables
from tailcut.report.figures.base import (
    NUMBER,
    Chart,
    Figure,
    Panel,
    colour,
    hoverable,
    layered,
    shown,
    significant,
    sized,
)
from tailcut.report.study import Study
from tailcut.report.theme import Theme


def links(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Utilisation and drops by tier and direction at one point of the sweep (``tables.links``)."""
    panels = []
    if table.height:
        rows = table.with_columns(
            pl.col("mean", "busiest", "dropped").round_sig_figs(4),
            said=_percent("mean"),
            said_busiest=_percent("busiest"),
            said_dropped=_percent("dropped"),
        )
        panels.append(
            Panel("links-utilisation", "Utilisation: mean (bar), busiest link (tick)", _used(rows, study, theme))
        )
        if table["drops"].sum() > 0:
            panels.append(Panel("links-drops", "Packets dropped, % of those that came", _dropped(rows, study, theme)))
    lossless = table.height > 0 and table["drops"].sum() == 0
    return Figure(
        name="links",
        title="Where the traffic went",
        lead="Stages in the order in which a packet meets them: up from the sending host, down to the receiving one."
        + (" No packet was dropped anywhere." if lossless else ""),
        caption=captions.join(
            "Utilisation is the share of the arrivals window during which a link was transmitting, headers, framing,"
            " copies and retransmissions included: the mean over all links of a stage, and its busiest link. Means over"
            " seeds.",
            captions.load(study),
        ),
        panels=panels,
        data=table,
        note=None if panels else "No backend in this directory measures links.",
    )


def _percent(column: str) -> pl.Expr:
    return pl.col(column).map_elements(lambda v: f"{significant(v)} %", return_dtype=pl.String)


def _rows(rows: pl.DataFrame, theme: Theme) -> alt.Chart:
    return shown(alt.Chart(rows), theme, choose=["cell", "point"]).encode(
        y=alt.Y(
            "stage:N", sort=tables.stages(rows), title=None, axis=alt.Axis(grid=False, domain=False, ticks=False),
            scale=alt.Scale(paddingInner=0.25, paddingOuter=0.1),
        ),
        yOffset=alt.YOffset("scheme:N", sort=list(theme.schemes)),
        color=colour(theme),
    )  # fmt: skip


def _tips(study: Study) -> list[alt.Tooltip]:
    tips = [alt.Tooltip("scheme:N", title="scheme"), alt.Tooltip("stage:N", title="stage")]
    tips += [alt.Tooltip("point:N", title=study.x.name)] if study.x else []
    return [
        *tips,
        alt.Tooltip("said:N", title="mean utilisation"),
        alt.Tooltip("said_busiest:N", title="busiest link"),
        alt.Tooltip("said_dropped:N", title="packets dropped"),
        alt.Tooltip("max_queue:Q", title="longest queue (packets)", format=","),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]


def _height(rows: pl.DataFrame) -> int:
    return max(180, rows["stage"].n_unique() * (14 + 9 * rows["scheme"].n_unique()))


def _used(rows: pl.DataFrame, study: Study, theme: Theme) -> Chart:
    base = _rows(rows, theme)
    axis = alt.Axis(values=[0, 25, 50, 75, 100], format=NUMBER)
    scale = alt.Scale(domain=[0, 100], nice=False)
    bars = base.mark_bar(opacity=0.85).encode(
        x=alt.X("mean:Q", title="% of the arrivals window", scale=scale, axis=axis), tooltip=_tips(study)
    )
    ticks = base.mark_tick(thickness=2.5, bandSize=9).encode(x="busiest:Q", tooltip=_tips(study))
    return sized(layered(bars, ticks), theme, height=_height(rows))


def _dropped(rows: pl.DataFrame, study: Study, theme: Theme) -> Chart:
    most = float(rows["dropped"].max())  # type: ignore[arg-type]
    bars = (
        _rows(rows, theme)
        .mark_bar(opacity=0.85)
        .encode(
            x=alt.X(
                "dropped:Q", title="dropped (%)", scale=alt.Scale(domain=[0, most * 1.1], nice=False),
                axis=alt.Axis(tickCount=5, format=NUMBER),
            ),
            tooltip=_tips(study),
        )
    )  # fmt: skip
    return sized(bars, theme, height=_height(rows))


def series(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """The sampled time series, one panel per quantity and flow or link, one line per scheme."""
    panels = []
    if table.height:
        for number, ((name,), rows) in enumerate(table.group_by("name", maintain_order=True)):
            chart = _over_time(f"series-{number}", rows, theme)
            panels.append(Panel(f"series-{number}", str(name).replace("_", " "), chart))
    seed = table["seed"][0] if table.height else None
    where = ", ".join(str(v) for v in table.select("point", "cell").row(0) if v) if table.height else ""
    return Figure(
        name="series",
        title="Over time",
        lead="Samples of the flows and links that the experiment names.",
        caption=captions.join(
            f"Seed {seed}{f', {study.x.name} {where}' if study.x and where else ''}.",
            "Long series keep the least and the greatest sample of each span.",
        ),
        panels=panels,
        data=_extent(table),
        note=None if panels else "The experiment asks for no time series (see [series]).",
    )


def _extent(table: pl.DataFrame) -> pl.DataFrame:
    """What each series spans; the samples themselves are in series.parquet."""
    if table.height == 0:
        return table
    return table.group_by("scheme", "name", maintain_order=True).agg(
        pl.len().alias("samples drawn"),
        pl.col("ms").min().alias("from (ms)"),
        pl.col("ms").max().alias("to (ms)"),
        pl.col("value").min().alias("least"),
        pl.col("value").mean().alias("mean of those drawn"),
        pl.col("value").max().alias("greatest"),
    )


def _over_time(name: str, rows: pl.DataFrame, theme: Theme) -> Chart:
    quantity = str(rows["quantity"][0]).replace("_", " ")
    base = shown(alt.Chart(rows), theme).encode(
        x=alt.X("ms:Q", title="simulated time (ms)", axis=alt.Axis(grid=False)),
        y=alt.Y("value:Q", title=quantity, axis=alt.Axis(tickCount=5, format="~s")),
        color=colour(theme),
    )
    line = base.mark_line(strokeWidth=1.5, interpolate="step-after")
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("ms:Q", title="time (ms)", format=".4~f"),
        alt.Tooltip("value:Q", title=quantity, format=",.5~r"),
    ]
    marks = hoverable(name, base.mark_point(filled=True, aria=False), theme, tooltip=tips, size=50, resting=0)
    return sized(layered(line, marks) if theme.interactive else line, theme)
