"""Figures of segments: duplicate ACKs, reordering, needless transmissions, and timeouts per flow."""

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import NUMBER, Chart, Figure, Panel, colour, log_ticks, shown, sized
from tailcut.report.study import Study
from tailcut.report.theme import Theme

SHOWN = {
    "duplicate ACKs": ("Duplicate ACKs for a segment", "duplicate ACKs", "segments"),
    "reordering extent": ("How far segments arrive out of order", "segments behind the highest", "segments"),
    "timeouts per flow": ("Timeouts of a flow", "timeouts", "flows"),
}
LONGEST = 40
"""Values beyond this are in the table only."""


def counts(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """The share of segments, or flows, by value at one point of the sweep (``tables.segments``)."""
    panels = []
    for number, (quantity, words) in enumerate(SHOWN.items()):
        rows = table.filter(pl.col("quantity") == quantity) if table.height else table
        drawn = rows.filter(pl.col("value") <= LONGEST, pl.col("at_least") > 0) if rows.height else rows
        if drawn.height and rows["value"].max() != 0:
            panels.append(Panel(f"segments-{number}", words[0], _share(drawn, words[1], words[2], theme)))
    return Figure(
        name="segments",
        title="What reordering and loss do to segments",
        lead="The share of segments (or flows) with at least so many. The steeper the fall, the better; three duplicate"
        " ACKs are what stock TCP takes for a loss.",
        caption=captions.join(
            "Duplicate ACKs are counted for the segment that they ask for. Reordering counts first transmissions only,"
            " by how many segments before the highest received they belong. All seeds pooled.",
            captions.load(study),
        ),
        panels=panels,
        data=table.drop("x") if table.height else table,
        note=None if panels else _why_nothing(table),
    )


def _why_nothing(table: pl.DataFrame) -> str:
    most = dict(table.group_by("quantity").agg(pl.col("value").max()).iter_rows()) if table.height else {}
    beyond = [f"{quantity}: up to {most[quantity]:,}" for quantity in SHOWN if (most.get(quantity) or 0) > LONGEST]
    if beyond:
        return f"Every value is above {LONGEST}, beyond what is drawn ({'; '.join(beyond)})."
    return "The experiment records no segments (see measure.segments), or none was out of order."


def _share(rows: pl.DataFrame, unit: str, of: str, theme: Theme) -> Chart:
    drawn = rows.select("scheme", "cell", "point", "value", "count", pl.col("percent", "at_least").round_sig_figs(5))
    least = float(drawn["at_least"].min())  # type: ignore[arg-type]
    most = int(drawn["value"].max())  # type: ignore[arg-type]
    whole = list(range(0, most + 1, max(1, most // 8)))
    chart = shown(alt.Chart(drawn), theme, choose=["cell", "point"]).encode(
        x=alt.X("value:Q", title=unit, axis=alt.Axis(values=whole, format="d", grid=False)),
        y=alt.Y(
            "at_least:Q", title=f"% of {of}, log scale",
            scale=alt.Scale(type="log", domain=[least / 1.2, 100], nice=False),
            axis=alt.Axis(values=log_ticks(least / 1.2, 100.0), format=NUMBER),
        ),
        color=colour(theme),
        tooltip=[
            alt.Tooltip("scheme:N", title="scheme"),
            alt.Tooltip("value:Q", title=unit),
            alt.Tooltip("at_least:Q", title=f"% of {of}, this many or more"),
            alt.Tooltip("percent:Q", title=f"% of {of}, exactly this many"),
            alt.Tooltip("count:Q", title=of, format=","),
        ],
    )  # fmt: skip
    return sized(chart.mark_line(point=True, strokeWidth=2), theme)
