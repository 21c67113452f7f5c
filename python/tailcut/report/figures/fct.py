"""Flow completion times: absolute, against the ideal, against the baseline, and by flow size."""

import re

import altair as alt
import polars as pl

from tailcut.report import captions, tables
from tailcut.report.figures.base import (
    Figure,
    Panel,
    colour,
    gaps,
    hoverable,
    layered,
    scale_of,
    shown,
    sized,
    unit_for,
)
from tailcut.report.figures.lines import (
    Quantity,
    drawn,
    of_statistics,
    panel,
    placed,
    solid,
    time_in,
    tooltip,
    whiskers,
)
from tailcut.report.study import Study, spell
from tailcut.report.theme import Theme

SHOWN = ("mean", "p99")
CLASSES = ("short", "long")
COLUMNS = ("backend", "scheme", "cell", "point", "class", "statistic")


def completion(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Mean and 99th percentile of FCT per class over the sweep."""
    panels: list[Panel] = []
    for name in CLASSES:
        of_class = _of(table, name)
        unit, size = unit_for(of_class.filter(pl.col("statistic").is_in(SHOWN))["value_us"])
        panels += of_statistics(
            f"fct-{name}", study.class_title(name), of_class, "value_us",
            time_in(unit, "FCT"),
            study.x, theme, shown=SHOWN, divisor=size,
        )  # fmt: skip
    return Figure(
        name="fct",
        title="How long flows take",
        lead="Lower is better. The mean describes the usual flow; the 99th percentile the slowest flow in a hundred,"
        " which decides how long a request for many flows takes.",
        caption=captions.join(
            captions.clock(study), captions.load(study), captions.unfinished(study), captions.intervals(study)
        ),
        panels=panels,
        gaps=gaps(table, "value_us", CLASSES, SHOWN),
        data=table.filter(pl.col("grouping").is_in(["class", "all"])).select(
            *COLUMNS, "value_us", "ci_low", "ci_high", "n_flows", "n_unfinished", "n_seeds", "reason"
        ),
        note=None if panels else "No flow of any class has finished, so there is no completion time to show.",
    )


def slowdown(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Mean and 99th percentile of FCT over the ideal FCT, per class."""
    panels: list[Panel] = []
    for name in CLASSES:
        panels += of_statistics(
            f"slowdown-{name}", study.class_title(name), _of(table, name), "normalised",
            lambda words: Quantity("FCT / ideal FCT", f"{words} slowdown", "×"),
            study.x, theme, shown=SHOWN,
        )  # fmt: skip
    return Figure(
        name="slowdown",
        title="How far from the best possible",
        lead="1 means that every flow ran as in an empty network. Flows of all sizes count equally.",
        caption=captions.join(
            captions.normalisation(), captions.clock(study), captions.load(study), captions.unfinished(study),
            captions.intervals(study),
        ),
        panels=panels,
        gaps=gaps(table, "normalised", CLASSES, SHOWN),
        data=table.filter(pl.col("grouping").is_in(["class", "all"])).select(
            *COLUMNS, "normalised", "normalised_ci_low", "normalised_ci_high", "n_flows", "n_seeds", "reason"
        ),
        note=None if panels else "No backend gives completion times relative to the ideal.",
    )  # fmt: skip


def change(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """The change of mean and 99th percentile from the baseline to each scheme, in percent."""
    baseline = study.baseline
    others = table.filter(pl.col("scheme") != (baseline or ""))
    panels: list[Panel] = []
    for name in CLASSES:
        panels += of_statistics(
            f"change-{name}", study.class_title(name), _of(others, name), "change",
            lambda words: Quantity(f"change against {baseline} (%)", f"change of {words}", "%", signed=True),
            study.x, theme, shown=SHOWN,
        )  # fmt: skip
    note = None
    if baseline is None or len(study.schemes) < 2:
        note = "There is only one scheme, or no baseline, so there is no change to show."
    elif not panels:
        note = f"No change against {baseline} is known: it, or every other scheme, has no value yet."
    return Figure(
        name="change",
        title=f"The change against {baseline}" if baseline else "The change",
        lead="Below zero is faster than the baseline: −50 % means half the time. Where a band crosses zero, the seeds"
        " do not tell faster from slower.",
        caption=captions.join(
            f"The change is FCT / FCT of {baseline} − 1, of the same statistic of all flows." if baseline else "",
            captions.clock(study), captions.load(study), captions.unfinished(study),
            captions.changes_of_bounds(others), captions.intervals(study, changes=True),
        ),
        panels=panels,
        gaps=gaps(others, "change", CLASSES, SHOWN),
        data=others.filter(pl.col("grouping").is_in(["class", "all"])).select(
            *COLUMNS, "change_bound", "change", "change_ci_low", "change_ci_high", "significant", "n_seeds", "reason",
            "change_note",
        ),
        note=note,
    )  # fmt: skip


def by_size(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Slowdown per finer size group at one point of the sweep."""
    groups = tables.size_groups(table)
    finer = table.filter(
        pl.col("grouping") == "size_group", pl.col("backend") == (study.backends[0] if study.backends else "")
    )
    panels = []
    for statistic in SHOWN:
        quantity = Quantity("FCT / ideal FCT", f"{tables.STATISTICS[statistic]} slowdown", "×")
        at = _at(finer, statistic)
        rows = drawn(at, "normalised", "normalised_ci_low", "normalised_ci_high", quantity)
        if rows.height:
            labels = at.filter(pl.col("normalised").is_not_null())["class"]
            rows = rows.with_columns(group=labels.map_elements(size_label, return_dtype=pl.String))
            chart = _groups(f"size-{statistic}", rows, [size_label(g) for g in groups], quantity, study, theme)
            panels.append(Panel(f"size-{statistic}", f"All flows by size: {tables.STATISTICS[statistic]}", chart))
    return Figure(
        name="size",
        title="How flows of each size fare",
        lead="Each group holds flows of similar size, smallest first. Lower is better.",
        caption=captions.join(
            captions.normalisation(),
            captions.clock(study),
            captions.load(study),
            captions.intervals(study, model=False),
        ),
        panels=panels,
        data=finer.select(
            *COLUMNS, "normalised", "normalised_ci_low", "normalised_ci_high", "value_us", "n_flows", "reason"
        ),
        note=None if panels else "The plan names no finer size groups, or none has a finished flow.",
    )


def _groups(
    name: str, rows: pl.DataFrame, groups: list[str], quantity: Quantity, study: Study, theme: Theme,
) -> alt.LayerChart | alt.Chart:  # fmt: skip
    scale = scale_of(rows)
    rows = placed(rows, scale)
    base = shown(alt.Chart(rows), theme, choose=["cell", "point"]).encode(
        x=alt.X("group:N", sort=groups, title="flow size", axis=alt.Axis(labelAngle=0, grid=False, labelOverlap=True)),
        xOffset=alt.XOffset("scheme:N", sort=list(theme.schemes)),
        color=colour(theme),
    )
    whisker = whiskers(base, scale, quantity.title)
    points = solid(base, theme).encode(y=scale.y("at", quantity.title))
    tips = [alt.Tooltip("group:N", title="flow size"), *tooltip(quantity, study.x)]
    marks = hoverable(name, points, theme, tooltip=tips, size=70)
    return sized(layered(whisker, marks), theme)


def size_label(interval: str) -> str:
    """A size group as an axis names it: ``(10KB,100KB]`` is ``10 to 100 KB``, ``>1MB`` is ``> 1 MB``."""
    if interval.startswith(">"):
        return f"> {spell(interval[1:])}"
    ends = re.fullmatch(r"\((\S+),(\S+)\]", interval)
    if not ends:
        return interval
    low, high = (spell(end) for end in ends.groups())
    if low == "0":
        return f"≤ {high}"
    number, _, unit = low.partition(" ")
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def unfinished(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """The share of flows that had not finished when the runs ended."""
    rows = tables.unfinished(table)
    panels = []
    if rows["unfinished"].sum() > 0:
        for name in CLASSES:
            of_class = rows.filter(pl.col("class") == name).with_columns(
                n_flows=pl.col("flows"), n_unfinished=pl.col("unfinished"), n_seeds=pl.col("seeds"),
                none=pl.lit(None, pl.Float64), lower_bound=pl.lit(value=False),
            )  # fmt: skip
            if of_class.height:
                quantity = Quantity("unfinished (% of flows)", "unfinished", "%")
                part = drawn(of_class, "percent", "none", "none", quantity)
                panels.append(panel(f"unfinished-{name}", study.class_title(name), part, quantity, study.x, theme))
    total = int(rows.filter(pl.col("backend") == "sim")["unfinished"].sum())
    return Figure(
        name="unfinished",
        title="What did not finish",
        lead=f"{total:,} flows (all seeds) had not finished when their run ended. Where many are missing, compare with"
        " care."
        if total
        else "",
        caption=captions.join(captions.unfinished(study), captions.load(study), "Flows of all seeds together."),
        panels=panels,
        data=rows,
        note=None
        if panels
        else "Every flow finished before its run ended."
        if study.measured
        else "No flow was simulated.",
    )


def _of(table: pl.DataFrame, name: str) -> pl.DataFrame:
    return table.filter(pl.col("grouping") == "class", pl.col("class") == name)


def _at(table: pl.DataFrame, statistic: str) -> pl.DataFrame:
    return table.filter(pl.col("statistic") == statistic)
