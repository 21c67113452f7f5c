"""Distributions of completion times: the bulk as a CDF, the tail on a logarithmic scale."""

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import (
    NUMBER,
    Chart,
    Figure,
    Panel,
    colour,
    hoverable,
    layered,
    log_ticks,
    scheme_dash,
    shown,
    sized,
    unit_for,
)
from tailcut.report.study import Study
from tailcut.report.tables import READ
from tailcut.report.theme import Theme

CLASSES = ("short", "long")


def cdf(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """CDF and tail of FCT per class at one point of the sweep (``tables.distributions``)."""
    panels = []
    for name in CLASSES:
        rows = table.filter(pl.col("class") == name) if table.height else table
        if rows.height == 0:
            continue
        unit, size = unit_for(rows["fct_us"])
        rows = _drawn(rows, size)
        title = study.class_title(name)
        panels.append(
            Panel(f"cdf-{name}", f"{title}: distribution", _bulk(f"cdf-{name}", rows, f"FCT ({unit})", study, theme))
        )
        panels.append(
            Panel(f"tail-{name}", f"{title}: the tail", _tail(f"tail-{name}", rows, f"FCT ({unit})", study, theme))
        )
    return Figure(
        name="cdf",
        title="How completion times are spread",
        lead="Left: the share of flows that took at most this long; further left is better. Right: the slowest flows"
        " magnified; the curve crosses the 1 % line at the 99th percentile.",
        caption=captions.join(
            captions.clock(study),
            captions.load(study),
            "All seeds pooled. Shares are of all flows, so that flows that never finished lie beyond the right end of"
            " a curve.",
            _thinning(table),
        ),
        panels=panels,
        data=quantiles(table),
        note=None if panels else "No backend in this directory keeps single flows, or none has finished.",
    )


def round_trips(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """CDF and tail of the round trips of pings at one point of the sweep (``tables.round_trips``)."""
    panels = []
    if table.height:
        unit, size = unit_for(table["fct_us"])
        rows, axis = _drawn(table, size), f"round trip ({unit})"
        panels.append(Panel("rtt", "Distribution", _bulk("rtt", rows, axis, study, theme)))
        panels.append(Panel("rtt-tail", "The tail", _tail("rtt-tail", rows, axis, study, theme)))
    return Figure(
        name="round-trips",
        title="How long a round trip takes",
        lead="Left: the share of pings that took at most this long; further left is better. Right: the slowest.",
        caption=captions.join(
            "From the SYN of a ping to its answer: two packets without payload, each on a path that its ports decide;"
            " with copies, until the first answer.",
            captions.load(study),
            "All seeds pooled.",
        ),
        panels=panels,
        data=quantiles(table),
        note=None if panels else "No hosts ping each other, or none had an answer.",
    )


def _drawn(rows: pl.DataFrame, size: float) -> pl.DataFrame:
    """Returns the columns that the charts need, with times in units of ``size`` us."""
    return rows.select(
        "scheme", "cell", "point",
        fct=(pl.col("fct_us") / size).round_sig_figs(5),
        at_most=pl.col("at_most").round_sig_figs(6),
        at_least=pl.col("at_least").round_sig_figs(6),
    )  # fmt: skip


def quantiles(table: pl.DataFrame) -> pl.DataFrame:
    """Round percentiles of all flows, for reading instead of looking."""
    if table.height == 0:
        return table
    keys = ["scheme", "cell", "point", "class"]
    return table.group_by(keys, maintain_order=True).agg(
        pl.col("flows").first(),
        pl.col("unfinished").first(),
        *(pl.col(name).first().alias(f"{name} (us)") for name in READ),
        pl.col("fct_us").max().alias("slowest (us)"),
    )


def _thinning(table: pl.DataFrame) -> str:
    if table.height == 0:
        return ""
    least = table.filter(pl.col("drawn") < pl.col("flows") - pl.col("unfinished"))
    if least.height == 0:
        return "Every finished flow is drawn."
    return captions.thinning()


def _base(rows: pl.DataFrame, theme: Theme, axis: str) -> alt.Chart:
    low, high = float(rows["fct"].min()), float(rows["fct"].max())  # type: ignore[arg-type]
    wide = low > 0 and high / low > 5
    low, high = (low / 1.1, high * 1.1) if wide else (0.0, high * 1.05)
    scale = alt.Scale(type="log" if wide else "linear", domain=[low, high], nice=False)
    ticks = (
        alt.Axis(values=log_ticks(low, high), format=NUMBER, grid=False)
        if wide
        else alt.Axis(format=NUMBER, grid=False)
    )
    title = f"{axis}, log scale" if wide else axis
    return shown(alt.Chart(rows), theme, choose=["cell", "point"]).encode(
        x=alt.X("fct:Q", title=title, scale=scale, axis=ticks), color=colour(theme)
    )


def _tips(study: Study, axis: str) -> list[alt.Tooltip]:
    tips = [alt.Tooltip("scheme:N", title="scheme")]
    tips += [alt.Tooltip("point:N", title=study.x.name)] if study.x else []
    return [
        *tips,
        alt.Tooltip("fct:Q", title=axis, format=",.3~r"),
        alt.Tooltip("at_most:Q", title="flows at most this slow", format=".4~%"),
        alt.Tooltip("at_least:Q", title="flows at least this slow", format=".4~%"),
    ]


def _bulk(name: str, rows: pl.DataFrame, axis: str, study: Study, theme: Theme) -> Chart:
    y = alt.Y(
        "at_most:Q",
        title="share of flows",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    base = _base(rows, theme, axis)
    return _with_hover(
        name,
        base,
        base.mark_line(interpolate="step-after", strokeWidth=2).encode(y=y, strokeDash=scheme_dash(theme)),
        y,
        axis,
        study,
        theme,
    )


def _tail(name: str, rows: pl.DataFrame, axis: str, study: Study, theme: Theme) -> Chart:
    least = float(rows["at_least"].min())  # type: ignore[arg-type]
    y = alt.Y(
        "at_least:Q",
        title="share at least this slow, log scale",
        scale=alt.Scale(type="log", domain=[least / 1.2, 1], nice=False),
        axis=alt.Axis(format=".6~%", values=[10.0**-d for d in range(7) if 10.0**-d >= least / 1.2]),
    )
    base = _base(rows, theme, axis)
    line = base.mark_line(interpolate="step-before", strokeWidth=2).encode(y=y, strokeDash=scheme_dash(theme))
    percentile = alt.Chart(pl.DataFrame({"at": [0.01], "label": ["99th percentile"]})).encode(y=alt.Y("at:Q"))
    rule = percentile.mark_rule(color=theme.ink("rule"), strokeDash=[3, 3])
    label = percentile.mark_text(color=theme.ink("muted"), align="left", dx=4, dy=-6).encode(
        x=alt.XValue(0),  # type: ignore[no-untyped-call]
        text=alt.Text("label:N"),
    )
    return _with_hover(name, base, layered(rule, label, line) if least < 0.01 else line, y, axis, study, theme)


def _with_hover(name: str, base: alt.Chart, drawn: Chart, y: alt.Y, axis: str, study: Study, theme: Theme) -> Chart:
    """Marks that show only under the pointer, on top of the curves."""
    points = base.mark_point(filled=True, aria=False).encode(y=y)
    marks = hoverable(name, points, theme, tooltip=_tips(study, axis), size=60, resting=0)
    return sized(layered(drawn, marks) if theme.interactive else drawn, theme)
