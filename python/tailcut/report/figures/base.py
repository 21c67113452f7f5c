"""Common parts of all figures: panels, scales per scheme, axes, tooltips."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, floor, isfinite, log10
from typing import Any, TypeAlias, cast

import altair as alt
import polars as pl

from tailcut.report.study import Axis
from tailcut.report.theme import BACKENDS, Theme

Chart: TypeAlias = alt.Chart | alt.LayerChart
PANEL_WIDTH, PANEL_HEIGHT = 310, 220
UNITS = (("s", 1e6), ("ms", 1e3), ("µs", 1.0))
NUMBER = ",.6~r"
"""Decimal notation, without an exponent and without needless zeros."""
FAR = 5
"""A value this many times the next is an outlier, if few are: it would flatten all others."""
MANY = 6
"""Schemes from which on a scale leaves outliers out."""
LOG_SPAN = 20
"""An axis of times becomes logarithmic when its values span more than this factor."""


@dataclass(frozen=True)
class Panel:
    """A chart of a figure.

    Attributes:
        name: part of file names and of element ids.
        title: what it shows.
        chart: the chart, without size when it is for the page.
    """

    name: str
    title: str
    chart: Chart


@dataclass(frozen=True)
class Figure:
    """A figure of the report.

    Attributes:
        name: its file name without suffix.
        title: what it is about.
        lead: how to read it, for somebody who sees such a figure for the first time.
        caption: clock, normalisation, load and intervals.
        panels: the charts; empty if ``note`` says why there is nothing to draw.
        data: the numbers drawn, as a table with readable column names.
        note: replaces the charts when there is nothing to draw.
        gaps: what is not drawn, and why.
    """

    name: str
    title: str
    lead: str
    caption: str
    panels: Sequence[Panel] = ()
    data: pl.DataFrame = field(default_factory=pl.DataFrame)
    note: str | None = None
    gaps: Sequence[str] = ()


def shown(chart: alt.Chart, theme: Theme, *, choose: Sequence[str] = ()) -> alt.Chart:
    """The chart obeying the page: hidden schemes and backends drop out, the rest is cut down to the reader's choice.

    Args:
        chart: a chart with a column ``scheme`` and the columns named in ``choose``.
        theme: unless it is interactive, nothing is filtered.
        choose: columns (``"cell"``, ``"point"``) that the page holds in a signal of the same name.
    """
    if not theme.interactive:
        return chart
    chart = chart.transform_filter(
        "indexof(hidden, 'scheme:' + datum.scheme) < 0 && indexof(hidden, 'backend:' + datum.backend) < 0"
    )
    for name in choose:
        chart = chart.transform_filter(f"datum.{name} === {name}")
    return chart


def legend(theme: Theme) -> alt.Legend | None:
    """The legend of a figure in a file; the page has its own, once for all figures."""
    return None if theme.interactive else alt.Legend(orient="top", title=None, symbolOpacity=1)


def gaps(table: pl.DataFrame, value: str, classes: Sequence[str], statistics: Sequence[str]) -> list[str]:
    """The cells of a summary that a figure leaves out, with their reasons, cells of one reason together.

    Args:
        table: ``tables.curves``.
        value: the column that is drawn.
        classes: the classes that have a panel.
        statistics: the statistics that have a panel.
    """
    empty = table.filter(
        pl.col("grouping") == "class", pl.col("class").is_in(classes), pl.col("statistic").is_in(statistics),
        pl.col(value).is_null(), pl.col("value_us").is_null(), pl.col("reason").is_not_null(),
    )  # fmt: skip
    told = []
    for (backend, reason), rows in empty.group_by("backend", "reason", maintain_order=True):
        schemes = ", ".join(rows["scheme"].unique(maintain_order=True).to_list())
        names = rows["class"].unique(maintain_order=True).to_list()
        which = f"{names[0]} flows" if len(names) == 1 else "any class"
        points = [p for p in rows["point"].unique(maintain_order=True).to_list() if p]
        where = f" at {', '.join(points)}" if points and len(points) < table["point"].n_unique() else ""
        told.append(f"{which} of {schemes}{where}, {source(str(backend))} ({reason})")
    return told


def _colours(theme: Theme) -> alt.Scale:
    return alt.Scale(domain=list(theme.schemes), range=[theme.colour(s) for s in theme.schemes])


def colour(theme: Theme) -> alt.Color:
    """The fixed colour of every scheme."""
    return alt.Color("scheme:N", scale=_colours(theme), legend=legend(theme))


def fill(theme: Theme) -> alt.Fill:
    """The same colour inside a mark."""
    return alt.Fill("scheme:N", scale=_colours(theme), legend=legend(theme))


def scheme_dash(theme: Theme) -> alt.StrokeDash:
    """The fixed dash of every scheme's curve where it has no marks."""
    ranges = [theme.dash(s) for s in theme.schemes]
    return alt.StrokeDash("scheme:N", scale=alt.Scale(domain=list(theme.schemes), range=ranges), legend=legend(theme))


def shape(theme: Theme) -> alt.Shape:
    """The fixed mark shape of every scheme."""
    return alt.Shape(
        "scheme:N",
        scale=alt.Scale(domain=list(theme.schemes), range=[theme.shape(s) for s in theme.schemes]),
        legend=legend(theme),
    )


def dash(theme: Theme, present: Sequence[str]) -> alt.StrokeDash:
    """Solid for the simulator, dashed for the model, dotted for real kernels."""
    domain = [BACKENDS[b][0] if b in BACKENDS else b for b in present]
    ranges = [list(BACKENDS[b][1]) if b in BACKENDS else [4, 2, 1, 2] for b in present]
    key = legend(theme) if len(present) > 1 else None
    return alt.StrokeDash("source:N", scale=alt.Scale(domain=domain, range=ranges), legend=key)


def x_position(axis: Axis) -> alt.X:
    """The sweep's axis, with a tick at each of its values."""
    if not axis.numeric:
        labels = list(dict.fromkeys(axis.labels))
        return alt.X("point:N", sort=labels, title=axis.title, axis=alt.Axis(labelAngle=0, grid=False))
    numbers = [float(v) for v in axis.values]
    spread = min(numbers) > 0 and max(numbers) / min(numbers) >= 50
    kind = {"type": "log"} if spread else {"type": "linear", "zero": False}
    scale = alt.Scale(nice=False, padding=14, **kind)
    ticks = alt.Axis(values=numbers if len(numbers) <= 12 else alt.Undefined, format=NUMBER, grid=False)
    return alt.X("x:Q", title=axis.title, scale=scale, axis=ticks)


def hoverable(
    panel: str, marks: alt.Chart, theme: Theme, *, tooltip: list[alt.Tooltip], size: int = 55, resting: float = 1
) -> alt.Chart:
    """Marks with a tooltip that hovering anywhere in the panel brings up for the nearest of them.

    Args:
        panel: the panel's name, different from all others on the page.
        marks: filled point marks.
        theme: unless it is interactive, the marks stay as they are.
        tooltip: what it shows.
        size: the marks' size; the nearest grows.
        resting: the opacity of marks that are not the nearest.
    """
    if not theme.interactive:
        return marks.encode(size=alt.SizeValue(size))
    name = panel.replace("-", "_")
    near = alt.selection_point(name=f"hover_{name}", on="pointerover", nearest=True, empty=False)
    # Altair would number an unnamed chart with a selection, and so write the same report
    # differently the second time.
    return (
        marks.properties(name=f"marks_{name}")
        .encode(
            tooltip=tooltip,
            size=alt.SizeValue(size, condition=condition(near, size * 2.5)),
            opacity=alt.OpacityValue(resting, condition=condition(near, 1)),
        )
        .add_params(near)
    )


def condition(when: alt.Parameter | str, value: object) -> dict[str, Any]:
    """Returns the conditional value that a channel's class takes.

    Channels are given as their classes, never as texts or dictionaries: to find the class of one of those, Altair goes
    through its whole schema each time.

    Args:
        when: a selection, or an expression of Vega.
        value: what the channel has there.
    """
    return cast("dict[str, Any]", alt.condition(when, alt.value(value), alt.value(value))["condition"])


def unit_for(times_us: pl.Series) -> tuple[str, float]:
    """The unit in which most of these times are at least 1, and how many us it has."""
    middle = times_us.drop_nulls().median()
    for name, size in UNITS:
        if isinstance(middle, int | float) and middle >= size:
            return name, size
    return UNITS[-1]


@dataclass(frozen=True)
class Scale:
    """A fixed vertical scale: it does not change when a scheme is hidden, so that the others stay comparable.

    Attributes:
        domain: least and greatest value shown.
        ticks: where to label it; none leaves that to Vega.
        log: true for a logarithmic one.
    """

    domain: tuple[float, float]
    ticks: Sequence[float] | None = None
    log: bool = False

    def y(self, column: str, title: str) -> alt.Y:
        """The vertical encoding of a column."""
        axis = alt.Axis(values=list(self.ticks), format=NUMBER) if self.ticks else alt.Axis(tickCount=5, format=NUMBER)
        kind = {"type": "log"} if self.log else {"type": "linear", "zero": False}
        scale = alt.Scale(domain=list(self.domain), nice=False, **kind)
        return alt.Y(f"{column}:Q", title=f"{title}, log scale" if self.log else title, scale=scale, axis=axis)


def scale_of(rows: pl.DataFrame, *, signed: bool = False) -> Scale:
    """A scale for the columns value, low and high: logarithmic beyond a factor of ``LOG_SPAN``, else from zero.

    It covers the values without outliers (``inner``), and their intervals as far as they do not squeeze the values into
    half of it or reach below zero; what lies beyond is clipped. With ``signed`` it is linear and zero is somewhere
    within.
    """
    known = [float(v) for v in rows["value"].to_list() if v is not None]
    # A logarithmic axis of few schemes has room for all.
    many = "scheme" in rows.columns and rows["scheme"].n_unique() >= MANY
    known = inner(known) if signed or many else known
    ends = [float(v) for name in ("low", "high") for v in rows[name].to_list() if v is not None]
    least, most = min(known, default=0.0), max(known, default=1.0)
    if signed:
        low, high = min(least, 0.0), max(most, 0.0)
        reach = high - low
        low, high = max(min([low, *ends]), low - reach / 2), min(max([high, *ends]), high + reach / 2)
        margin = max((high - low) * 0.08, 5.0 - (high - low) / 2)
        return Scale((low - margin, high + margin))
    top = min(max([most, *ends]), most * 1.5)
    if least <= 0 or most / least <= LOG_SPAN:
        return Scale((0.0, top * 1.06 if top > 0 else 1.0))
    bottom = max(min([least, *(end for end in ends if end > 0)]), least / 2)
    low, high = bottom / 1.15, top * 1.15
    return Scale((low, high), log_ticks(low, high), log=True)


def inner(values: Sequence[float]) -> list[float]:
    """The values without outliers: at most a tenth of them (one of four and more) that are ``FAR`` times the next."""
    by_size = sorted(values, key=abs)
    most = max(1, len(values) // 10) if len(values) >= 4 else 0
    for outliers in range(most, 0, -1):
        next_largest = abs(by_size[-outliers - 1])
        if next_largest > 0 and abs(by_size[-outliers]) > FAR * next_largest:
            return by_size[:-outliers]
    return by_size


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2 and 5 of each decade while they are few, else whole decades."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if log10(high / low) <= 2.5 else (1,)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def layered(*charts: Chart) -> Chart:
    """Charts on top of each other."""
    return cast("alt.LayerChart", alt.layer(*charts))


def sized(chart: Chart, theme: Theme, width: int = PANEL_WIDTH, height: int = PANEL_HEIGHT) -> Chart:
    """The chart with its size: the width of its place on the page, or fixed in a file."""
    return chart.properties(width="container" if theme.interactive else width, height=height)


def significant(value: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits, or whole if it has more before the point; a dash for none."""
    if value is None or not isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = digits - 1 - floor(log10(abs(value)))
    return f"{value:,.{max(decimals, 0)}f}".replace("-", "−")


def source(backend: str) -> str:
    """Returns the name of a backend in a legend or a tooltip."""
    return BACKENDS[backend][0] if backend in BACKENDS else backend


def interval(low: float | None, high: float | None, unit: str = "") -> str:
    """An interval as text, or that there is none."""
    if low is None or high is None:
        return "none"
    return f"{significant(low)} to {significant(high)}{unit and ' ' + unit}"
