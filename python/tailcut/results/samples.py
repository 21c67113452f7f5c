"""The counted flows of one run as sorted times by class, the basis of all statistics."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tailcut.results.statistics import Values
from tailcut.units import time_ps

COMPLETION_COLUMNS = {"receiver": ("fct_ns", "ideal_fct_ns"), "sender": ("fct_ack_ns", "ideal_fct_ack_ns")}
"""The completion time by each clock, and the best possible one."""
ALL, SHORT, LONG = ("all", "all"), ("class", "short"), ("class", "long")
ALWAYS = (ALL, SHORT, LONG)
FLOWS, JOBS = "flows", "jobs"
KEPT: dict[str, pl.DataType] = {
    "of": pl.String(),
    "kind": pl.String(),
    "class": pl.String(),
    "size_group": pl.String(),
    "times": pl.List(pl.Int64()),
    "slowdowns": pl.List(pl.Float64()),
    "flows": pl.UInt64(),
    "unfinished": pl.UInt64(),
    "shortest_open_ns": pl.Int64(),
    "least_open_slowdown": pl.Float64(),
}
"""The columns of a run's derived file: a row per kind, class and size group, from the smallest flows up."""

Group = tuple[str, str]
"""A grouping of the summary and a class of it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The flows, or jobs, of one class of one run.

    Attributes:
        times: what those that count took, in ns and ascending order.
        slowdowns: their times over the best possible, in ascending order; None where no best one is known.
        flows: how many there are, whether they count or not.
        unfinished: how many of them had not finished.
        runs: how many runs of the same flows the times are of; more than one where the lab repeated its run.
        shortest_open_ns: the shortest time that an unfinished one counts with; infinite without any.
        least_open_slowdown: the least slowdown that an unfinished one counts with; infinite without any.
    """

    times: Values
    slowdowns: Values | None
    flows: int
    unfinished: int
    shortest_open_ns: float = math.inf
    least_open_slowdown: float = math.inf
    runs: int = 1

    @property
    def different(self) -> int:
        """The number of different flows that the times are of."""
        return -(-len(self.times) // self.runs)


def together(parts: Sequence[Sample]) -> Sample:
    """Several samples as one."""
    parts = [part for part in parts if part.flows] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    slowdowns = [part.slowdowns for part in parts if part.slowdowns is not None]
    return Sample(
        np.sort(np.concatenate([part.times for part in parts]), kind="stable"),
        np.sort(np.concatenate(slowdowns), kind="stable") if len(slowdowns) == len(parts) else None,
        sum(part.flows for part in parts),
        sum(part.unfinished for part in parts),
        min(part.shortest_open_ns for part in parts),
        min(part.least_open_slowdown for part in parts),
    )


def of_flows(flows: pl.DataFrame, measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Returns the kept part of a run's flow table: rows of ``KEPT`` without ``of``.

    Args:
        flows: the flow table.
        measure: the plan's ``measure``; its ``clock`` says which completion time counts, its ``unfinished`` whether
            flows that did not complete are left out (``exclude``) or enter with the time they had (``censored``); with
            ``{"by": time}`` flows that completed after that time of the run are left out as well.
        end_ns: when the run ended.
    """
    clock, ideal = COMPLETION_COLUMNS[measure["clock"]]
    timed = flows.select(
        pl.col("class", "size_group").cast(pl.String),
        "bytes",
        time=pl.col(clock),
        had=end_ns - pl.col("start_ns"),
        ideal=pl.when(pl.col(ideal) > 0).then(pl.col(ideal)),
    )
    return _kept(FLOWS, timed, ["class", "size_group"], measure, end_ns)


def of_jobs(jobs: pl.DataFrame, measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Returns the kept part of a run's job table, as ``of_flows``; jobs end when their last byte is received."""
    timed = jobs.select(
        pl.col("kind").cast(pl.String).alias("class"),
        size_group=pl.lit(None, pl.String),
        bytes=pl.lit(0, pl.UInt64),
        time=pl.col("completion_ns"),
        had=end_ns - pl.col("start_ns"),
        ideal=pl.lit(None, pl.Int64),
    )
    return _kept(JOBS, timed, ["class", "size_group"], measure, end_ns)


def last_finish_ns(measure: Mapping[str, Any]) -> int | None:
    """Returns the time of the run, in ns, after which a completion does not count; None without such a limit."""
    policy = measure["unfinished"]
    return None if isinstance(policy, str) else time_ps(policy["by"]) // 1000


def _kept(kind: str, timed: pl.DataFrame, groups: list[str], measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    last = last_finish_ns(measure)
    if last is not None:  # `had` is the time from the flow's start to the end of the run
        timed = timed.with_columns(time=pl.when(pl.col("time") - pl.col("had") + end_ns <= last).then(pl.col("time")))
    unfinished = pl.col("time").is_null()
    with_slowdown = timed.with_columns(unfinished=unfinished, time=pl.coalesce("time", "had")).with_columns(
        slowdown=pl.col("time") / pl.col("ideal")
    )
    counts = pl.lit(value=True) if measure["unfinished"] == "censored" else ~pl.col("unfinished")
    open_ = pl.col("unfinished") & counts
    time, slowdown = (pl.col(name).filter(counts).sort() for name in ("time", "slowdown"))
    return (
        with_slowdown.sort("bytes", maintain_order=True)
        .group_by(groups, maintain_order=True)
        .agg(
            time.implode().alias("times"),
            pl.when(slowdown.null_count() == 0).then(slowdown.implode()).alias("slowdowns"),
            flows=pl.len(),
            unfinished=pl.col("unfinished").sum(),
            shortest_open_ns=pl.col("time").filter(open_).min(),
            least_open_slowdown=pl.col("slowdown").filter(open_).min(),
        )
        .select(pl.lit(kind).alias("kind"), pl.all())
        .cast({name: dtype for name, dtype in KEPT.items() if name != "of"})
    )


def by_group(kept: pl.DataFrame) -> dict[Group, Sample]:
    """The samples of a run: all flows and the classes always, size groups and kinds of jobs where there are any."""
    groups: dict[Group, list[Sample]] = {group: [] for group in ALWAYS}
    for row, times, slowdowns in zip(
        kept.drop("times", "slowdowns").iter_rows(named=True), kept["times"], kept["slowdowns"], strict=True
    ):
        sample = Sample(
            times.to_numpy().astype(np.float64),
            None if slowdowns is None else slowdowns.to_numpy(),
            row["flows"],
            row["unfinished"],
            math.inf if row["shortest_open_ns"] is None else row["shortest_open_ns"],
            math.inf if row["least_open_slowdown"] is None else row["least_open_slowdown"],
        )
        if row["kind"] == JOBS:
            groups.setdefault(("job", row["class"]), []).append(sample)
            continue
        for group in (ALL, ("class", row["class"]), ("size_group", row["size_group"])):
            groups.setdefault(group, []).append(sample)
    return {group: together(parts) if parts else NONE for group, parts in groups.items()}


NONE = Sample(np.zeros(0), None, 0, 0)


def over_runs(runs: Iterable[Mapping[Group, Sample]]) -> dict[Group, Sample]:
    """The samples of several runs of one seed as those of one run.

    All times count. The flows are those of one run, as each has the same, and of the unfinished it is the mean, rounded
    up.
    """
    parts: dict[Group, list[Sample]] = {}
    for run in runs:
        for group, sample in run.items():
            parts.setdefault(group, []).append(sample)
    return {group: _repeated(several) for group, several in parts.items()}


def _repeated(several: Sequence[Sample]) -> Sample:
    if len(several) == 1:
        return several[0]
    unfinished = -(-sum(sample.unfinished for sample in several) // len(several))
    flows = max(sample.flows for sample in several)
    return replace(together(several), flows=flows, unfinished=unfinished, runs=len(several))
