"""Many schemes at a glance: gain of short flows, cost for long ones, and devices that must change."""

from math import log10
from typing import Literal

import altair as alt
import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import NUMBER, Chart, Figure, Panel, hoverable, layered, log_ticks, shown, sized
from tailcut.report.figures.lines import solid
from tailcut.report.figures.matrix import matrix
from tailcut.report.study import Study
from tailcut.report.theme import Theme

FEWEST = 4
"""Schemes from which on a glance needs help."""
HEADINGS = {
    ("short", "p99"): "short|p99",
    ("short", "mean"): "short|mean",
    ("long", "mean"): "long|mean",
    ("long", "p99"): "long|p99",
    ("packets", "sent"): "packets|sent",
    ("asks", ""): "changes|in",
}
HEIGHT = 330
ROW = 24
"""Height of a scheme's row in pixels, in a plane next to a matrix with a row for each."""
LABEL = 13
"""Height of a line of a label, in pixels."""


def glance(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Every scheme against the baseline at one point of the sweep (``tables.changes``)."""
    panels = []
    if table.height and len(study.schemes) >= FEWEST:
        plane = _plane(table)
        if plane.height:
            title = f"Short flows against long flows, both relative to {study.baseline}"
            panels.append(Panel("glance-plane", title, _scatter(plane, study, theme)))
        panels.append(Panel("glance-matrix", f"Change against {study.baseline} (%)", _matrix(table, study, theme)))
    return Figure(
        name="glance",
        title="What each scheme gains, costs and requires",
        lead=(
            "In the plane, further down is a shorter tail of short flows and further left are faster long flows;"
            f" {study.baseline} is where the lines cross. "
            if len(panels) > 1
            else ""
        )
        + f"In the table, blue is less than {study.baseline} and orange more; the last column says what has to be"
        " changed to have the scheme.",
        caption=captions.join(
            f"Completion times (FCT) as changes against {study.baseline}, of the flows of all seeds; * where the 95 %"
            " interval over seeds excludes zero. Packets sent are data packets of all flows, retransmissions and copies"
            " included. Hosts change with [transport] and [replicate], switches with [queue] and [balance].",
            _bounds(table),
            captions.clock(study),
            captions.load(study),
        ),
        panels=panels,
        data=_numbers(table),
        note=None if panels else "There are too few schemes for a trade-off.",
    )


def _bounds(table: pl.DataFrame) -> str:
    if table.height == 0 or table["change_bound"].null_count() == table.height:
        return ""
    return (
        "Where flows have not finished, changes are bounds (hollow, ≥ and ≤); a change between two lower bounds (~) may"
        " be more or less."
    )


def _numbers(table: pl.DataFrame) -> pl.DataFrame:
    if table.height == 0:
        return table
    return table.with_columns(
        what=pl.struct("class", "statistic").map_elements(
            lambda row: HEADINGS[row["class"], row["statistic"]].replace("|", " "), return_dtype=pl.String
        )
    ).select("scheme", "cell", "point", "what", change="said", low="low", high="high")


def _matrix(table: pl.DataFrame, study: Study, theme: Theme) -> Chart:
    rows = table.drop("factor", "change_bound", "significant").with_columns(
        column=pl.struct("class", "statistic").map_elements(
            lambda row: HEADINGS[row["class"], row["statistic"]], return_dtype=pl.String
        ),
        value=pl.col("change"),
        short=pl.col("said").str.replace(" %", "", literal=True),
    )
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("column:N", title="what"),
        alt.Tooltip("said:N", title=f"against {study.baseline}"),
        alt.Tooltip("range:N", title="95 % interval"),
    ]
    return matrix(rows, theme, columns=list(HEADINGS.values()), tooltip=tips, text="short", signed=True)


def _plane(table: pl.DataFrame) -> pl.DataFrame:
    """A row per scheme and point: x is the long flows' mean, y the short flows' p99, relative to the baseline's."""
    keys = ["scheme", "backend", "cell", "point"]

    def factor(name: str, statistic: str, column: str) -> pl.DataFrame:
        rows = table.filter(pl.col("class") == name, pl.col("statistic") == statistic, pl.col("change").is_not_null())
        bound = pl.col("change_bound").is_not_null()
        return rows.select(*keys, pl.col("factor").alias(column), said="said", bound=bound)

    short = factor("short", "p99", "y").rename({"said": "said_short"})
    long = factor("long", "mean", "x").rename({"said": "said_long", "bound": "bound_long"})
    both = short.join(long, on=keys, how="inner", maintain_order="left")
    if both.height == 0:
        return both
    low, high = _domain(both["y"])
    pixels = _height(both) / log10(high / low)
    sides = both.with_columns(
        side=pl.when(pl.col("x") < 1).then(pl.lit("left")).otherwise(pl.lit("right")),
        bound=pl.col("bound") | pl.col("bound_long"),
    ).drop("bound_long")
    placed = [
        part.with_columns(label_y=pl.Series(apart(part["y"].to_list(), LABEL / pixels)).round_sig_figs(5))
        for part in sides.partition_by("cell", "point", "side", maintain_order=True)
    ]
    return pl.concat(placed)


def apart(values: list[float], gap: float) -> list[float]:
    """Returns positions of labels: as near to their values as leaves ``gap`` decades between any two, order kept."""
    order = sorted(range(len(values)), key=values.__getitem__)
    wanted = [log10(values[i]) for i in order]
    groups: list[tuple[float, int]] = []  # centre and number of labels of each block
    for at in wanted:
        centre, count = at, 1
        while groups and centre - (count - 1) / 2 * gap < groups[-1][0] + (groups[-1][1] + 1) / 2 * gap:
            other, many = groups.pop()
            centre, count = (centre * count + other * many) / (count + many), count + many
        groups.append((centre, count))
    placed = [centre + (k - (count - 1) / 2) * gap for centre, count in groups for k in range(count)]
    found = [0.0] * len(values)
    for i, at in zip(order, placed, strict=True):
        found[i] = 10**at
    return found


def _height(plane: pl.DataFrame) -> int:
    return max(HEIGHT, ROW * plane["scheme"].n_unique())


def _domain(values: pl.Series) -> tuple[float, float]:
    """An axis that holds the values and 1, with room for labels."""
    low, high = min(1.0, *values.to_list()), max(1.0, *values.to_list())
    reach = max((high / low) ** 0.12, 1.08)
    return low / reach, high * reach


def _scatter(plane: pl.DataFrame, study: Study, theme: Theme) -> Chart:
    (left, right), (low, high) = _domain(plane["x"]), _domain(plane["y"])
    room = (right / left) ** 0.3  # for the labels beside the marks
    left, right = left / room, right * room

    def axis(ends: tuple[float, float]) -> alt.Axis:
        wide = ends[1] / ends[0] > 4
        ticks = log_ticks(*ends) if wide else [t / 10 for t in range(1, 41) if ends[0] <= t / 10 <= ends[1]]
        return alt.Axis(values=ticks, format=NUMBER, grid=False)

    def scale(ends: tuple[float, float]) -> alt.Scale:
        return alt.Scale(type="log", domain=list(ends), nice=False)

    x = alt.X(
        "x:Q", title=f"mean FCT of long flows (× {study.baseline}'s, log scale)",
        scale=scale((left, right)), axis=axis((left, right)),
    )  # fmt: skip
    y = alt.Y(
        "y:Q", title=f"99th percentile of short flows' FCT (× {study.baseline}'s, log scale)",
        scale=scale((low, high)), axis=axis((low, high)),
    )  # fmt: skip
    one = alt.Chart(pl.DataFrame({"at": [1]}))
    line = one.mark_rule(color=theme.ink("rule"), strokeDash=[4, 3])
    cross = [line.encode(x=alt.X("at:Q")), line.encode(y=alt.Y("at:Q"))]
    base = shown(alt.Chart(plane), theme, choose=["cell", "point"]).encode(x=x)
    labels = []
    sides: tuple[tuple[str, int, Literal["left", "right"]], ...] = (("left", -1, "right"), ("right", 1, "left"))
    for side, sign, align in sides:
        ours = base.transform_filter(f"datum.side === '{side}'")
        thread = ours.mark_rule(color=theme.ink("rule"), strokeWidth=0.7, xOffset=8 * sign)
        name = ours.mark_text(align=align, dx=11 * sign, fontSize=11, color=theme.ink("ink"))
        labels += [
            thread.encode(y=alt.Y("y:Q"), y2=alt.Y2("label_y:Q")),
            name.encode(y=alt.Y("label_y:Q"), text=alt.Text("scheme:N")),
        ]
    tips = [
        alt.Tooltip("scheme:N", title="scheme"),
        alt.Tooltip("said_short:N", title="short flows, 99th percentile"),
        alt.Tooltip("said_long:N", title="long flows, mean"),
    ]
    marks = hoverable("glance-plane", solid(base, theme).encode(y=y), theme, tooltip=tips, size=80)
    return sized(layered(*cross, *labels, marks), theme, height=_height(plane))
