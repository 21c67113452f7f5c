"""Throughput of long flows: how it is spread, and how much of the best possible it is."""

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import NUMBER, Chart, Figure, Panel, colour, layered, scheme_dash, shown, sized
from tailcut.report.study import Study
from tailcut.report.theme import Theme


def spread(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Long flows' throughput at one point of the sweep, absolute and of the ideal (``tables.throughput``)."""
    panels = []
    if table.height:
        panels.append(Panel("throughput-mbps", "Throughput of long flows", _cdf(table, theme)))
        if table["ideal_mean"].null_count() < table.height:
            panels.append(Panel("throughput-ideal", "Share of the ideal: mean and quartiles", _ideal(table, theme)))
    return Figure(
        name="throughput",
        title="How fast long flows run",
        lead="Left: the share of long flows that ran at most this fast; further right is better. Right: their"
        " throughput as a share of the rate that each would have if the links of every rack and pod acted as one.",
        caption=captions.join(
            "Throughput is what a flow has delivered in order over its time, both up to the end of arrivals. The ideal"
            " is the payload of its max-min fair share of healthy links, among the flows that run to the end of the"
            " arrivals. All seeds pooled.",
            captions.load(study),
            captions.thinning() if table.height and (table["drawn"] < table["flows"]).any() else "",
        ),
        panels=panels,
        data=numbers(table),
        note=None if panels else "The experiment records no throughput (see measure.throughput).",
    )


def numbers(table: pl.DataFrame) -> pl.DataFrame:
    """Mean and quartiles of each scheme at each point."""
    if table.height == 0:
        return table
    return _of_each(table).select(
        "scheme",
        "cell",
        "point",
        pl.col("flows").alias("long flows"),
        pl.col("mean").alias("mean (Mbps)"),
        *(pl.col(f"p{q}").alias(f"p{q} (Mbps)") for q in (25, 50, 75)),
        pl.col("deviation").alias("deviation (Mbps)"),
        pl.col("ideal_mean").alias("of the ideal (%)"),
    )


def _of_each(table: pl.DataFrame) -> pl.DataFrame:
    """Returns a row per scheme and point."""
    return table.unique(["scheme", "cell", "point"], keep="first", maintain_order=True)


def _cdf(table: pl.DataFrame, theme: Theme) -> Chart:
    rows = table.select("scheme", "cell", "point", pl.col("mbps", "at_most").round_sig_figs(5))
    chart = shown(alt.Chart(rows), theme, choose=["cell", "point"]).encode(
        x=alt.X("mbps:Q", title="throughput (Mbps)", axis=alt.Axis(format=NUMBER, grid=False)),
        y=alt.Y("at_most:Q", title="share of long flows", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=colour(theme),
        strokeDash=scheme_dash(theme),
        tooltip=[
            alt.Tooltip("scheme:N", title="scheme"),
            alt.Tooltip("mbps:Q", title="Mbps", format=",.4~r"),
            alt.Tooltip("at_most:Q", title="flows at most this fast", format=".3~%"),
        ],
    )
    return sized(chart.mark_line(interpolate="step-after", strokeWidth=2), theme)


def _ideal(table: pl.DataFrame, theme: Theme) -> Chart:
    rows = (
        _of_each(table)
        .drop_nulls("ideal_mean")
        .select(
            "scheme", "cell", "point",
            mean=pl.col("ideal_mean").round_sig_figs(4),
            low=pl.col("ideal_p25").round_sig_figs(4),
            high=pl.col("ideal_p75").round_sig_figs(4),
        )
    )  # fmt: skip
    base = shown(alt.Chart(rows), theme, choose=["cell", "point"]).encode(
        y=alt.Y("scheme:N", sort=list(theme.schemes), title=None), color=colour(theme)
    )
    scale = alt.Scale(domain=[0, max(100.0, float(rows["high"].max()))], nice=False)  # type: ignore[arg-type]
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("mean:Q", title="mean (% of the ideal)"),
        alt.Tooltip("low:Q", title="first quartile (%)"),
        alt.Tooltip("high:Q", title="third quartile (%)"),
    ]
    bars = base.mark_bar(opacity=0.85).encode(x=alt.X("mean:Q", title="% of the ideal", scale=scale), tooltip=tips)
    whiskers = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=alt.ColorValue(theme.ink("ink"))
    )
    return sized(layered(bars, whiskers), theme, height=40 + 34 * rows["scheme"].n_unique())
