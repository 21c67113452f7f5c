"""Jobs: how long queries, transfers, shuffles and sorts take, each of which waits for its slowest flow."""

import polars as pl

from tailcut.report import captions
from tailcut.report.figures.base import Figure, Panel, unit_for
from tailcut.report.figures.lines import of_statistics, time_in
from tailcut.report.study import Study
from tailcut.report.theme import Theme

SHOWN = ("mean", "p50", "p99", "p99_9")
TITLES = {
    "query": "Queries",
    "transfer": "Transfers",
    "shuffle": "Shuffles",
    "sort": "Sorting jobs",
    "pings": "Trains of pings",
}


def are_the_question(table: pl.DataFrame) -> bool:
    """Whether the traffic is about its jobs: a train of pings is not."""
    kinds = table.filter(pl.col("grouping") == "job", pl.col("value_us").is_not_null())["class"]
    return bool((kinds != "pings").any())


def completion(study: Study, table: pl.DataFrame, theme: Theme) -> Figure:
    """Completion time of each kind of job over the sweep."""
    jobs = table.filter(pl.col("grouping") == "job")
    kinds = jobs["class"].unique(maintain_order=True).to_list()
    panels: list[Panel] = []
    for kind in kinds:
        of_kind = jobs.filter(pl.col("class") == kind)
        unit, size = unit_for(of_kind.filter(pl.col("statistic").is_in(SHOWN))["value_us"])
        alone = (of_kind["n_flows"] <= of_kind["n_seeds"]).all()  # every percentile of one job is that job
        panels += of_statistics(
            f"jobs-{kind}", TITLES.get(kind, kind), of_kind, "value_us",
            time_in(unit, "completion time"),
            study.x, theme, shown=SHOWN[:1] if alone else SHOWN, divisor=size,
        )  # fmt: skip
    return Figure(
        name="jobs",
        title="How long jobs take",
        lead="A job lasts from the start of its first flow to the last byte of its last one: it waits for the slowest."
        " Lower is better.",
        caption=captions.join(captions.load(study), captions.intervals(study, model=False)),
        panels=panels,
        data=jobs.select(
            "scheme", "cell", "point", "class", "statistic", "value_us", "ci_low", "ci_high",
            jobs=pl.col("n_flows"), unfinished=pl.col("n_unfinished"), seeds=pl.col("n_seeds"), reason="reason",
        ),
        note=None if panels else "The traffic has no jobs, or none has finished.",
    )  # fmt: skip
