"""Matrices of numbers on a tinted ground, legible with too many schemes for bars and lines."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from tailcut.report.figures.base import Chart, condition, layered, shown, sized
from tailcut.report.theme import Theme

ROW = 25
STRONGEST = 0.55
"""Opacity of the strongest tint: text on it keeps its contrast, light and dark."""


def matrix(
    rows: pl.DataFrame,
    theme: Theme,
    *,
    columns: Sequence[str],
    tooltip: list[alt.Tooltip],
    text: str = "said",
    signed: bool = False,
) -> Chart:
    """A row per scheme, a column per value of ``column``.

    Args:
        rows: the columns scheme, backend, cell, point, column, value (null where there is no tint) and ``text``.
        theme: of the page or of a file.
        columns: the columns from left to right; ``|`` breaks a line of a heading.
        tooltip: what hovering shows.
        text: the column with what a cell says.
        signed: true for changes: below zero is better and blue, above is worse and vermillion. Otherwise the tint
            grows with the value.
    """
    base = shown(alt.Chart(rows), theme, choose=["cell", "point"]).encode(
        x=alt.X(
            "column:N", sort=list(columns), title=None,
            axis=alt.Axis(
                orient="top", labelAngle=0, labelExpr="split(datum.label, '|')", domain=False, ticks=False, grid=False,
                labelOverlap=False, labelPadding=16,
            ),
            scale=alt.Scale(paddingInner=0.04),
        ),
        y=alt.Y(
            "scheme:N", sort=list(theme.schemes), title=None,
            axis=alt.Axis(domain=False, ticks=False, grid=False, labelLimit=160),
            scale=alt.Scale(paddingInner=0.08),
        ),
    )  # fmt: skip
    most = max((abs(float(v)) for v in rows["value"].drop_nulls().to_list()), default=0.0) or 1.0
    better, worse = theme.hue(1), theme.hue(2)
    ground = base.mark_rect(cornerRadius=2).encode(
        fill=alt.FillValue(better, condition=condition("datum.value > 0", worse)) if signed else alt.FillValue(better),
        fillOpacity=alt.Opacity(
            "strength:Q", scale=alt.Scale(domain=[0, 1], range=[0.03, STRONGEST], clamp=True), legend=None
        ),
        tooltip=tooltip,
    )
    ground = ground.transform_calculate(strength=f"abs(datum.value) / {min(most, 100.0) if signed else most}")
    label = base.mark_text(fontSize=11, color=theme.ink("ink")).encode(text=alt.Text(f"{text}:N"), tooltip=tooltip)
    return sized(layered(ground, label), theme, height=ROW * rows["scheme"].n_unique())
