"""From flow tables to the summary: one statistic of one class of flows of one scheme at one point per row."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import polars as pl

from tailcut.plan import Plan, PlannedRun, Value
from tailcut.results import statistics
from tailcut.results.statistics import Estimate

CLOCKS = {"receiver": ("fct_ns", "ideal_fct_ns"), "sender": ("fct_ack_ns", "ideal_fct_ack_ns")}
"""The completion time by each clock, and the best possible one."""
ALWAYS = (("all", "all"), ("class", "short"), ("class", "long"))
NO_INTERVAL = "one seed gives no interval; ask for more with --seeds"
ALL_THE_SAME = "all seeds gave the same value"
NO_RUN = "no run of this cell has finished"
PARTS_OF = {f"part of {name}": name for _, name in ALWAYS}
"""The groupings of what completion times are made of, and whose they are: their classes are parts."""
OF_PARTS = ("mean", "slowest")
"""The statistics of a part: the mean over all flows, and over the slowest 1 %."""
SLOWEST, FEWEST = 100, 10
"""One flow of so many is among the slowest, and so many of them say something."""
TOO_FEW = f"there are not {FEWEST} flows among the slowest 1 %"
Observation = TypeVar("Observation")


def summary_schema(plan: Plan) -> dict[str, pl.DataType]:
    """Names and types of the summary's columns, whichever backend fills them."""
    return {
        "backend": pl.String(),
        "scheme": pl.String(),
        **axes_schema(plan),
        "grouping": pl.String(),
        "class": pl.String(),
        "statistic": pl.String(),
        "value_us": pl.Float64(),
        "ci_low": pl.Float64(),
        "ci_high": pl.Float64(),
        "lower_bound": pl.Boolean(),
        "normalised": pl.Float64(),
        "normalised_ci_low": pl.Float64(),
        "normalised_ci_high": pl.Float64(),
        "gain": pl.Float64(),
        "gain_ci_low": pl.Float64(),
        "gain_ci_high": pl.Float64(),
        "n_flows": pl.UInt64(),
        "n_unfinished": pl.UInt64(),
        "n_seeds": pl.UInt32(),
        "reason": pl.String(),
    }


def axes_schema(plan: Plan) -> dict[str, pl.DataType]:
    """The type of each axis' column: a number if all its values are, text otherwise."""
    return {
        axis["key"]: pl.Float64() if all(_is_number(value) for value in axis["values"]) else pl.String()
        for axis in plan["sweep"]
    }


def point_columns(plan: Plan, point: Mapping[str, Value]) -> dict[str, float | str]:
    """A point of the sweep as the values of the axes' columns."""
    return {key: _spelled(point[key], kind) for key, kind in axes_schema(plan).items()}


def _spelled(value: Value, kind: pl.DataType) -> float | str:
    if isinstance(kind, pl.Float64):
        return float(value)
    return value if isinstance(value, str) else json.dumps(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


PER_RUN: dict[str, pl.DataType] = {
    "grouping": pl.String(),
    "class": pl.String(),
    "statistic": pl.String(),
    "value_us": pl.Float64(),
    "normalised": pl.Float64(),
    "lower_bound": pl.Boolean(),
    "n_flows": pl.UInt64(),
    "n_unfinished": pl.UInt64(),
}

# --- one run --------------------------------------------------------------------------------------------------------


def of_run(flows: pl.DataFrame, measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Every statistic of every class of one run.

    Args:
        flows: the run's flow table.
        measure: the plan's ``measure``; its ``clock`` says which completion time counts, its ``unfinished`` whether
            flows that did not complete are left out (``exclude``) or enter with the time they had (``censored``).
        end_ns: when the run ended.

    Returns:
        A row per class and statistic, with the columns ``PER_RUN``.
    """
    clock, ideal = CLOCKS[measure["clock"]]
    timed = flows.select(
        "class",
        "size_group",
        "bytes",
        finished=pl.col(clock).is_not_null(),
        fct=pl.col(clock).fill_null(end_ns - pl.col("start_ns")),
        ideal=ideal,
    ).with_columns(normalised=pl.col("fct") / pl.col("ideal"))
    censored = measure["unfinished"] == "censored"
    return pl.DataFrame(
        [
            {"grouping": grouping, "class": name, **row}
            for grouping, name, part in _parts(timed)
            for row in _statistics(part, censored=censored)
        ]
        + list(_made_of(flows)),
        schema=PER_RUN,
    )


def _made_of(flows: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """What completion times are made of, by class and part; nothing without attribution.

    Parts are those of ``fct_ns``, whatever the plan's clock; flows that have not finished have none.
    """
    columns = [name for name in flows.columns if name.startswith("part_")]
    for grouping, name in PARTS_OF.items() if columns else ():
        asked = flows if name == "all" else flows.filter(pl.col("class") == name)
        done = asked.filter(pl.col("fct_ns").is_not_null()).sort("fct_ns", descending=True, maintain_order=True)
        slowest = done.head(-(-done.height // SLOWEST))
        for column in columns:
            for statistic, of, fewest in zip(OF_PARTS, (done, slowest), (1, FEWEST), strict=True):
                yield {
                    "grouping": grouping,
                    "class": column.removeprefix("part_").removesuffix("_ns"),
                    "statistic": statistic,
                    "value_us": of[column].sum() / of.height / 1000 if of.height >= fewest else None,
                    "lower_bound": False,
                    "n_flows": of.height,
                    "n_unfinished": asked.height - done.height,
                }


def of_jobs(jobs: pl.DataFrame, measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Every statistic of each kind of job of one run: rows of ``PER_RUN`` whose grouping is ``job`` and class the kind.

    Args:
        jobs: the run's job table; ``n_flows`` and ``n_unfinished`` of the rows count jobs.
        measure: as for ``of_run``; only ``unfinished`` concerns jobs, which end when their last byte is received.
        end_ns: when the run ended.
    """
    timed = jobs.select(
        "kind",
        "finished",
        fct=pl.col("completion_ns").fill_null(end_ns - pl.col("start_ns")),
        normalised=pl.lit(None, pl.Float64),
    )
    censored = measure["unfinished"] == "censored"
    return pl.DataFrame(
        [
            {"grouping": "job", "class": kind, **row}
            for (kind,), part in timed.group_by("kind", maintain_order=True)
            for row in _statistics(part, censored=censored)
        ],
        schema=PER_RUN,
    )


def _parts(timed: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """All flows, each class, each size group from the smallest up."""
    for grouping, name in ALWAYS:
        yield grouping, name, timed if grouping == "all" else timed.filter(pl.col("class") == name)
    for part in timed.sort("bytes").partition_by("size_group", maintain_order=True):
        yield "size_group", part["size_group"][0], part


def _statistics(part: pl.DataFrame, *, censored: bool) -> list[dict[str, Any]]:
    counts = {"n_flows": part.height, "n_unfinished": part.height - int(part["finished"].sum())}
    counted = part if censored else part.filter("finished")
    if counted.height == 0:
        return [{"statistic": name, "lower_bound": False, **counts} for name in statistics.STATISTICS]
    # Sums of whole nanoseconds below 2^53 are exact, whatever the order of the rows.
    fct = statistics.of(np.sort(counted["fct"].to_numpy().astype(np.float64)))
    has_ideal = counted["normalised"].null_count() == 0
    normalised = statistics.of(np.sort(counted["normalised"].to_numpy())) if has_ideal else {}
    open_for = counted.filter(~pl.col("finished"))["fct"].to_numpy()
    return [
        {
            "statistic": name,
            "value_us": fct[name] / 1000,
            "normalised": normalised.get(name),
            # Unfinished flows can only move a statistic that lies at or above the time they have had.
            "lower_bound": len(open_for) > 0 and (name == "mean" or bool(open_for.min() <= fct[name])),
            **counts,
        }
        for name in statistics.STATISTICS
    ]


# --- over seeds -----------------------------------------------------------------------------------------------------


def summarise(plan: Plan, per_seed: pl.DataFrame, backend: str, no_run: str = NO_RUN) -> pl.DataFrame:
    """The summary of a plan from the statistics of its runs.

    Args:
        plan: what was asked; cells without a finished run are there, empty.
        per_seed: ``of_run`` of each run, with columns scheme, seed and the sweep's axes.
        backend: whose runs they are.
        no_run: why a cell is empty that no run is there for.
    """
    found = {
        key: {row["seed"]: row for row in rows}
        for key, rows in per_seed.sort("seed").rows_by_key([*_cell_columns(plan)], named=True, include_key=True).items()
    }
    there = per_seed.select("grouping", "class").unique(maintain_order=True).rows()
    # A run that has no flow of a size does not tell the place of its group.
    sizes = [("size_group", name) for name in size_groups(plan["measure"]["size_groups"])]
    groups = dict.fromkeys([*ALWAYS, *(group for group in sizes if group in there), *there])
    rows = []
    for scheme, point in cells(plan["runs"]):
        at = point_columns(plan, point)
        for grouping, name in groups:
            made_of = grouping in PARTS_OF
            for statistic in OF_PARTS if made_of else statistics.STATISTICS:
                place = (*at.values(), grouping, name, statistic)
                here = found.get((scheme, *place), {})
                # A part may be nothing at all: there is no share of it to be gained.
                compared = scheme != plan["baseline"] and not made_of
                base = found.get((plan["baseline"], *place), {}) if compared else {}
                cell = {"scheme": scheme, **at, "grouping": grouping, "class": name, "statistic": statistic}
                rows.append({"backend": backend, **cell, **_over_seeds(here, base, no_run)})
    return pl.DataFrame(rows, schema=summary_schema(plan))


def size_groups(bounds: Sequence[object]) -> list[str]:
    """The names of the size groups between these bounds, from the smallest up."""
    ends = ["0", *(str(bound) for bound in bounds)]
    return [*(f"({low},{high}]" for low, high in pairwise(ends)), f">{ends[-1]}"]


def _cell_columns(plan: Plan) -> list[str]:
    return ["scheme", *axes_schema(plan), "grouping", "class", "statistic"]


def cells(runs: Iterable[PlannedRun]) -> list[tuple[str, dict[str, Value]]]:
    """Scheme and point of the runs, each once, in plan order."""
    return list({(run["scheme"], json.dumps(run["point"])): (run["scheme"], run["point"]) for run in runs}.values())


def _over_seeds(
    here: Mapping[int, Mapping[str, Any]], base: Mapping[int, Mapping[str, Any]], no_run: str
) -> dict[str, Any]:
    """One cell from its value for each seed, and the baseline's."""
    filled = [row for row in here.values() if row["value_us"] is not None]
    cell = {
        "lower_bound": any(row["lower_bound"] for row in filled),
        "n_flows": sum(row["n_flows"] for row in here.values()),
        "n_unfinished": sum(row["n_unfinished"] for row in here.values()),
        "n_seeds": len(filled),
        "reason": _reason(here, filled) if here else no_run,
    }
    if filled:
        cell |= _columns("value_us", "ci", _observed([row["value_us"] for row in filled]))
    normalised = [row["normalised"] for row in filled if row["normalised"] is not None]
    if normalised:
        cell |= _columns("normalised", "normalised_ci", _observed(normalised))
    pairs = [
        (row["value_us"], base[seed]["value_us"])
        for seed, row in here.items()
        if seed in base and row["value_us"] is not None and base[seed]["value_us"] is not None
    ]
    if pairs:
        cell |= _columns("gain", "gain_ci", [1 - value / of for value, of in _observed(pairs)])
    return cell


def _observed(of_seeds: Sequence[Observation]) -> Sequence[Observation]:
    """Seeds that all give the same are one observation: nothing that decides it is drawn."""
    return of_seeds[:1] if len(set(of_seeds)) == 1 else of_seeds


def _columns(value: str, interval: str, values: Sequence[float]) -> dict[str, float | None]:
    estimate: Estimate = statistics.over_seeds(values)
    return {value: estimate.value, f"{interval}_low": estimate.low, f"{interval}_high": estimate.high}


def _reason(here: Mapping[int, Mapping[str, Any]], filled: Sequence[Mapping[str, Any]]) -> str | None:
    if not filled:
        flows = sum(row["n_flows"] for row in here.values())
        if flows and any(row["statistic"] == "slowest" for row in here.values()):
            return TOO_FEW
        return f"none of its {flows} flows finished" if flows else "there are no such flows"
    if len(filled) == 1:
        return NO_INTERVAL
    return ALL_THE_SAME if len(_observed([row["value_us"] for row in filled])) == 1 else None
