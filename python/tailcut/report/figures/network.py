"""Figures of the network: utilisation and drops by stage of the path."""

import altair as alt
import polars as pl

from tailcut.report import captions, tables
from tailcut.report.figures.base import (
    NUMBER,
    Chart,
    Figure,
    Panel,
    colour,
    layered,
    shown,
    significant,
    sized,
)
from tailcut.report.figures.matrix import matrix
from tailcut.report.study import Study
from tailcut.report.theme import Theme

MOST_BARS = 6
"""Schemes beyond which bars side by side are too many, so that there are numbers instead."""


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
        dropped = table["drops"].sum() > 0
        if len(study.schemes) > MOST_BARS:
            titles = {"mean": "Mean utilisation (%)", "busiest": "Utilisation of the busiest link (%)"}
            titles |= {"dropped": "Packets dropped (% of those that came)"} if dropped else {}
            panels += [
                Panel(f"links-{name}", title, _numbers(rows, name, study, theme)) for name, title in titles.items()
            ]
        else:
            panels.append(
                Panel("links-utilisation", "Utilisation: mean (bar), busiest link (tick)", _used(rows, study, theme))
            )
            if dropped:
                panels.append(
                    Panel("links-drops", "Packets dropped, % of those that came", _dropped(rows, study, theme))
                )
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


def _numbers(rows: pl.DataFrame, name: str, study: Study, theme: Theme) -> Chart:
    """Returns a measure as a number per scheme and stage."""
    stages = {stage: stage.replace(" ", "|").replace("aggregation", "aggr.") for stage in tables.stages(rows)}
    said = pl.col(name).map_elements(
        lambda v: "0" if v == 0 else f"{v:.0f}" if v >= 9.95 else significant(v, 2), pl.String
    )
    cells = rows.with_columns(
        backend=pl.lit("sim"), column=pl.col("stage").replace_strict(stages), value=pl.col(name), text=said
    )
    tips = _tips(study)
    return matrix(
        cells.select("scheme", "backend", "cell", "point", "stage", "column", "value", "said", "said_busiest",
                     "said_dropped", "max_queue", "seeds", said_cell="text"),
        theme, columns=list(stages.values()), tooltip=tips, text="said_cell",
    )  # fmt: skip


def _used(rows: pl.DataFrame, study: Study, theme: Theme) -> Chart:
    base = _rows(rows, theme)
    axis = alt.Axis(values=[0, 25, 50, 75, 100], format=NUMBER)
    scale = alt.Scale(domain=[0, 100], nice=False)
    bars = base.mark_bar(opacity=0.85).encode(
        x=alt.X("mean:Q", title="% of the arrivals window", scale=scale, axis=axis), tooltip=_tips(study)
    )
    ticks = base.mark_tick(thickness=2.5, bandSize=9).encode(x=alt.X("busiest:Q"), tooltip=_tips(study))
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
