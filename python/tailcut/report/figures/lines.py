"""Statistics over the sweep: one line per scheme with a band over seeds, or bars where nothing is swept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from tailcut.report import tables
from tailcut.report.figures.base import (
    NUMBER,
    Chart,
    Panel,
    Scale,
    colour,
    condition,
    dash,
    fill,
    hoverable,
    inner,
    interval,
    layered,
    scale_of,
    shape,
    shown,
    significant,
    sized,
    source,
    x_position,
)
from tailcut.report.study import Axis
from tailcut.report.theme import Theme
from tailcut.results.bounds import AT_LEAST
from tailcut.units import percent

MOST_BANDS = 12
"""Schemes up to which bands tell something; those of more cover each other, and tooltips and the numbers have them."""


@dataclass(frozen=True)
class Quantity:
    """The quantity on a panel's vertical axis.

    Attributes:
        title: the axis title.
        tip: what a tooltip calls it.
        unit: follows a number in a tooltip.
        signed: true for changes, whose axis crosses zero and is never logarithmic.
    """

    title: str
    tip: str
    unit: str = ""
    signed: bool = False


def time_in(unit: str, name: str) -> Callable[[str], Quantity]:
    """Returns the maker of quantities for a statistic of a time."""
    return lambda words: Quantity(f"{name} ({unit})", f"{words} {name}", unit)


def drawn(
    table: pl.DataFrame, value: str, low: str, high: str, quantity: Quantity, divisor: float = 1.0
) -> pl.DataFrame:
    """The rows of a panel: those with a value, in the panel's unit, with the text of their tooltips.

    Args:
        table: rows of the summary with labels (see ``tables.curves``).
        value: the column to draw.
        low: the column with the lower end of its interval.
        high: the upper end.
        quantity: what it is.
        divisor: how many units of the column are one unit of the panel.
    """
    unit = quantity.unit
    text = (lambda v: f"{'−' * (round(v, 1) < 0)}{percent(abs(v), 1)}") if quantity.signed else significant
    bound = "normalised_lower_bound" if value == "normalised" else "lower_bound"
    bounded = pl.col("change_bound") if quantity.signed else pl.when(bound).then(pl.lit(AT_LEAST))
    rows = table.filter(pl.col(value).is_not_null()).select(
        "backend", "scheme", "cell", "point", "x",
        pl.col(value).truediv(divisor).alias("value"),
        pl.col(low).truediv(divisor).alias("low"),
        pl.col(high).truediv(divisor).alias("high"),
        flows="n_flows",
        unfinished="n_unfinished",
        seeds="n_seeds",
        bounded=bounded,
    )  # fmt: skip
    if rows["low"].null_count() == rows.height:
        rows = rows.with_columns(low=pl.lit(None, pl.Float64), high=pl.lit(None, pl.Float64))
    return rows.with_columns(
        pl.col("value", "low", "high").round_sig_figs(5),
        source=pl.col("backend").map_elements(source, return_dtype=pl.String),
        bound=pl.col("bounded").is_not_null(),
        said=pl.struct("value", "bounded").map_elements(
            lambda r: f"{r['bounded'] or ''} {text(r['value'])} {unit}".strip(),
            return_dtype=pl.String,
        ),
        range=pl.struct("low", "high").map_elements(
            lambda r: interval(r["low"], r["high"], unit), return_dtype=pl.String
        ),
    ).drop("bounded")


def of_statistics(
    name: str, title: str, table: pl.DataFrame, value: str, quantity: Callable[[str], Quantity],
    axis: Axis | None, theme: Theme, *, shown: Sequence[str], divisor: float = 1.0,
) -> list[Panel]:  # fmt: skip
    """A panel for each statistic of a class, or of a kind of job, that has a value.

    Args:
        name: of the panels, which the statistic's is appended to.
        title: of the panels, likewise.
        table: the rows of the class (see ``tables.curves``).
        value: the column to draw.
        quantity: what it is, given the statistic in words.
        axis: the sweep's.
        theme: of the page or of a file.
        shown: the statistics.
        divisor: how many units of the column are one unit of the panel.
    """
    low, high = ("ci_low", "ci_high") if value == "value_us" else (f"{value}_ci_low", f"{value}_ci_high")
    panels = []
    for statistic in shown:
        words = tables.STATISTICS[statistic]
        what = quantity(words)
        rows = drawn(table.filter(pl.col("statistic") == statistic), value, low, high, what, divisor)
        if rows.height:
            panels.append(panel(f"{name}-{statistic}", f"{title}: {words}", rows, what, axis, theme))
    return panels


def panel(
    name: str, title: str, rows: pl.DataFrame, quantity: Quantity, axis: Axis | None, theme: Theme,
) -> Panel:  # fmt: skip
    """A panel of a statistic: lines over a numeric axis, points over another, bars without a sweep."""
    if axis is None:
        height = 40 + 34 * max(1, rows.select("scheme", "backend").n_unique())
        return Panel(name, title, sized(bars(rows, quantity, theme), theme, height=height))
    build = lines if axis.numeric else dots
    return Panel(name, title, sized(build(name, rows, quantity, axis, theme), theme))


def tooltip(quantity: Quantity, axis: Axis | None) -> list[alt.Tooltip]:
    """Returns the tooltip: the value with its interval and the runs behind it."""
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("source:N", title="from"),
        alt.Tooltip("said:N", title=quantity.tip),
        alt.Tooltip("range:N", title="95 % interval"),
        alt.Tooltip("flows:Q", title="flows", format=","),
        alt.Tooltip("unfinished:Q", title="unfinished", format=","),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]
    return [*tips[:2], alt.Tooltip("point:N", title=axis.name), *tips[2:]] if axis else tips


def solid(base: alt.Chart, theme: Theme) -> alt.Chart:
    """The marks of a statistic in the scheme's colour and shape, hollow where they are lower bounds."""
    marks: alt.Chart = base.mark_point(opacity=1, strokeWidth=1.5).encode(
        color=colour(theme),
        fill=fill(theme),
        shape=shape(theme),
        fillOpacity=alt.FillOpacityValue(1, condition=condition("datum.bound", 0)),
    )
    return marks


def lines(name: str, rows: pl.DataFrame, quantity: Quantity, axis: Axis, theme: Theme) -> Chart:
    """Returns a line per scheme and backend, with a band where there are intervals."""
    scale = scale_of(rows, signed=quantity.signed)
    rows = placed(rows, scale)
    base = shown(alt.Chart(rows), theme, choose=["cell"]).encode(x=x_position(axis))
    y = scale.y("value", quantity.title)
    band = (
        _within(base, scale)
        .mark_area(opacity=min(0.16, 0.5 / rows["scheme"].n_unique()), clip=True)
        .encode(
            y=scale.y("base", quantity.title), y2=alt.Y2("top:Q"), color=colour(theme), detail=alt.Detail("backend:N")
        )
    )
    line = base.mark_line(strokeWidth=2, clip=True).encode(
        y=y, color=colour(theme), strokeDash=dash(theme, _backends(rows))
    )
    points = solid(base, theme).encode(y=scale.y("at", quantity.title))
    marks = hoverable(name, points, theme, tooltip=tooltip(quantity, axis))
    few = rows["scheme"].n_unique() <= MOST_BANDS
    layers = [band] if few and rows["low"].null_count() < rows.height else []
    return layered(*_zero(quantity, theme), *layers, line, marks, *_beyond(rows, base))


def placed(rows: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """The rows with where their marks go: ``at``, at the edge for a value beyond the scale, which ``beyond`` tells."""
    low, high = scale.domain
    arrow = pl.when(pl.col("value") > high).then(pl.lit("↑ ")).when(pl.col("value") < low).then(pl.lit("↓ "))
    return rows.with_columns(at=pl.col("value").clip(low, high), beyond=arrow + pl.col("said"))


def _within(base: alt.Chart, scale: Scale) -> alt.Chart:
    """The intervals that reach into the scale, cut at its edges: on a logarithmic one zero has no place."""
    low, high = scale.domain
    return base.transform_filter(
        f"isValid(datum.low) && datum.high >= {low} && datum.low <= {high}"
    ).transform_calculate(base=f"max(datum.low, {low})", top=f"min(datum.high, {high})")


def whiskers(base: alt.Chart, scale: Scale, title: str) -> alt.Chart:
    """A rule for each interval."""
    rules: alt.Chart = _within(base, scale).mark_rule(strokeWidth=2, opacity=0.5)
    return rules.encode(y=scale.y("base", title), y2=alt.Y2("top:Q"))


def _beyond(rows: pl.DataFrame, base: alt.Chart) -> list[alt.Chart]:
    """Draws an arrow with the value for each mark beyond the scale."""
    if rows["beyond"].null_count() == rows.height:
        return []
    text = base.transform_filter("isValid(datum.beyond)").mark_text(align="left", dx=7, dy=4, fontSize=10)
    return [text.encode(y=alt.Y("at:Q"), text=alt.Text("beyond:N"))]


def dots(name: str, rows: pl.DataFrame, quantity: Quantity, axis: Axis, theme: Theme) -> Chart:
    """Draws points side by side with their intervals, for an axis of names."""
    scale = scale_of(rows, signed=quantity.signed)
    rows = placed(rows, scale)
    base = shown(alt.Chart(rows), theme, choose=["cell"]).encode(
        x=x_position(axis), xOffset=alt.XOffset("scheme:N", sort=list(theme.schemes)), color=colour(theme)
    )
    points = solid(base, theme).encode(y=scale.y("at", quantity.title))
    marks = hoverable(name, points, theme, tooltip=tooltip(quantity, axis), size=80)
    return layered(*_zero(quantity, theme), whiskers(base, scale, quantity.title), marks, *_beyond(rows, base))


def bars(rows: pl.DataFrame, quantity: Quantity, theme: Theme) -> Chart:
    """Returns a bar per scheme and backend with its value and interval."""
    labelled = rows.with_columns(
        who=pl.when(pl.col("backend") == "sim")
        .then(pl.col("scheme"))
        .otherwise(pl.format("{} ({})", "scheme", "source"))
    )
    order = labelled["who"].unique(maintain_order=True).to_list()
    low, high = scale_of(rows, signed=quantity.signed).domain if quantity.signed else (0.0, _furthest(rows))
    labelled = labelled.with_columns(
        at=pl.col("value").clip(low, high),
        low=pl.col("low").clip(low, high),
        high=pl.col("high").clip(low, high),
        said=pl.when(pl.col("value") > high).then("→ " + pl.col("said")).otherwise("said"),
    )
    room = (high - low) * (0.4 if rows["bound"].any() else 0.28)
    scale = alt.Scale(domain=[low, high + room], nice=False)
    base = shown(alt.Chart(labelled), theme, choose=["cell"]).encode(
        y=alt.Y("who:N", sort=order, title=None, axis=alt.Axis(labelLimit=220, domain=False, ticks=False))
    )
    bar = base.mark_bar(height=16, opacity=0.85).encode(
        x=alt.X("at:Q", title=quantity.title, scale=scale, axis=alt.Axis(tickCount=5, format=NUMBER)),
        color=colour(theme),
        tooltip=tooltip(quantity, None),
    )
    whisker = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, color=theme.ink("ink"), clip=True)
    text = (
        base.transform_calculate(end="max(0, datum.at, isValid(datum.high) ? datum.high : 0)")
        .mark_text(align="left", dx=6, color=theme.ink("ink"))
        .encode(x=alt.X("end:Q"), text=alt.Text("said:N"))
    )
    return layered(bar, whisker.encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")), text)


def _furthest(rows: pl.DataFrame) -> float:
    """Returns the end of the longest bar or whisker of a panel, leaving out ends beyond twice the longest bar."""
    most = max(inner([float(v) for v in rows["value"].to_list()]), default=0.0) or 1.0
    return min(max([most, *(float(v) for v in rows["high"].drop_nulls().to_list())]), 2 * most)


def _backends(rows: pl.DataFrame) -> Sequence[str]:
    return rows["backend"].unique(maintain_order=True).to_list()


def _zero(quantity: Quantity, theme: Theme) -> list[alt.Chart]:
    """The line between faster and slower."""
    if not quantity.signed:
        return []
    return [
        alt.Chart(pl.DataFrame({"at": [0]})).mark_rule(color=theme.ink("rule"), strokeWidth=1.5).encode(y=alt.Y("at:Q"))
    ]
