"""Figures of the tail's parts: the mean flow and the slowest, scheme by scheme."""

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.attribution import PARTS, SLICES
from tailcut.report.figures.base import NUMBER, Chart, Figure, Panel, shown, significant, sized, unit_for
from tailcut.report.study import Study
from tailcut.report.theme import Theme

HUES = {
    "on the way": 0, "window": 1, "own interface": 5, "queues up": 4, "queues down": 6, "pauses": 7, "loss recovery": 3,
    "timers": 2,
}  # fmt: skip
"""The colour of each part, as a number of ``theme.PAIRS``; the copy's is that of rules."""

SHORTER = dict(zip(SLICES, ("mean", "1 %", "0.1 %"), strict=True))
"""The name of a slice on an axis."""


def tail(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Draws stacked bars of the parts of completion times at one point of the sweep (``attribution.table``)."""
    panels = []
    rows = pl.DataFrame()
    if table.height:
        slowest = table.filter(pl.col("part") == next(iter(PARTS)))
        unit, size = unit_for(slowest["fct_us"])
        rows = table.with_columns(
            row=pl.format("{}, {}", "scheme", pl.col("slice").replace(SHORTER)),
            time=(pl.col("us") / size).round_sig_figs(4),
            share=pl.col("share").round_sig_figs(4),
            order=pl.col("part").replace_strict({part: n for n, part in enumerate(PARTS)}),
            said=pl.col("us").map_elements(_time, return_dtype=pl.String),
        )
        panels = [
            Panel(
                "attribution-time", f"Mean time per flow ({unit})", _bars(rows, "time", f"time ({unit})", study, theme)
            ),
            Panel("attribution-share", "Share of the time (%)", _bars(rows, "share", "share (%)", study, theme)),
        ]
        gone = _gone(rows, study)
        if gone.height:
            title = f"The slowest 1 % against those of {study.baseline} ({unit})"
            panels.append(Panel("attribution-gone", title, _bars(gone, "time", f"difference ({unit})", study, theme)))
    return Figure(
        name="attribution",
        title="What the tail is made of",
        lead=(
            "Where flows spend their time: the mean flow beside the slowest 1 % and 0.1 %. The parts of a bar add up to"
            " the completion time."
        ),
        caption=captions.join(
            "Parts of completion times along the critical path of a flow's last byte, means over the flows of a slice,"
            " all seeds pooled; short flows where there are any. Flows that have not finished are left out. A slice of"
            " fewer than 10 flows is not drawn.",
            captions.load(study),
        ),
        panels=panels,
        data=rows.select("scheme", "cell", "point", "slice", "part", "us", "share", "flows") if rows.height else rows,
        note=None if panels else "The experiment does not ask for it: measure.attribution = true.",
    )


def _gone(rows: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Returns the difference of each part against the baseline, in the slowest 1 %."""
    keys = ["cell", "point", "part"]
    slowest = rows.filter(slice="slowest 1 %")
    base = slowest.filter(scheme=study.baseline).select(*keys, base="time", base_us="us")
    others = slowest.filter(pl.col("scheme") != study.baseline).join(base, on=keys, how="inner", maintain_order="left")
    change = pl.col("us") - pl.col("base_us")
    return others.with_columns(
        time=(pl.col("time") - pl.col("base")).round_sig_figs(4),
        said=change.map_elements(_time, return_dtype=pl.String),
        row=pl.col("scheme"),
    ).drop("base", "base_us")


def _time(us: float) -> str:
    unit, size = unit_for(pl.Series([abs(us)]))
    return f"{significant(us / size)} {unit}"


def _bars(rows: pl.DataFrame, column: str, title: str, study: Study, theme: Theme) -> Chart:
    present = [part for part in PARTS if rows.filter(part=part)["us"].abs().max()]
    order = [f"{scheme}, {SHORTER[name]}" for name in SLICES for scheme in theme.schemes] + list(theme.schemes)
    colours = [theme.hue(HUES[part]) if part in HUES else theme.ink("rule") for part in present]
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("slice:N", title="of"),
        alt.Tooltip("part:N", title="part"),
        alt.Tooltip("said:N", title="time"),
        alt.Tooltip("share:Q", title="share (%)", format=".3~r"),
        alt.Tooltip("flows:Q", title="flows", format=",d"),
        *([alt.Tooltip("point:N", title=study.x.name)] if study.x else []),
    ]
    bars = (
        shown(alt.Chart(rows.filter(pl.col("part").is_in(present))), theme, choose=["cell", "point"])
        .mark_bar(opacity=0.9)
        .encode(
            y=alt.Y(
                "row:N", sort=order, title=None,
                axis=alt.Axis(grid=False, domain=False, ticks=False, labelLimit=200),
            ),
            x=alt.X(f"{column}:Q", title=title, stack="zero", axis=alt.Axis(tickCount=5, format=NUMBER)),
            color=alt.Color(
                "part:N", scale=alt.Scale(domain=present, range=colours),
                legend=alt.Legend(orient="top", title=None, columns=3, columnPadding=14),
            ),
            order=alt.Order("order:Q"),
            tooltip=tips,
        )
    )  # fmt: skip
    return sized(bars, theme, height=max(120, 20 * rows["row"].n_unique() + 30))
