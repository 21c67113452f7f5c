"""From flow tables to the summary: one statistic of one class of flows of one scheme at one point per row."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import polars as pl

from tailcut.plan import Plan, PlannedRun, Value
from tailcut.results import bounds, estimates, samples, statistics
from tailcut.results.estimates import Interval, PooledTimes
from tailcut.results.samples import ALWAYS, Group, Sample

NO_INTERVAL = "one seed gives no interval; ask for more with --seeds"
ALL_THE_SAME = "all seeds gave the same value"
NO_RUN = "no run of this cell has finished"
PARTS_OF = {f"part of {name}": name for _, name in ALWAYS}
"""The groupings of parts of completion times, by the flows that they cover; their classes are the parts."""
OF_PARTS = ("mean", "slowest")
"""The statistics of a part: the mean over all flows, and over the slowest 1 %."""
SLOWEST, FEWEST = 100, 10
"""The inverse share of the slowest flows, and the least number of them for a statistic."""
SEPARATOR = "; "
"""Between the sentences of ``change_note``."""
TOO_FEW = f"there are not {FEWEST} flows among the slowest 1 %"


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
        "normalised_lower_bound": pl.Boolean(),
        "change": pl.Float64(),
        "change_ci_low": pl.Float64(),
        "change_ci_high": pl.Float64(),
        "change_bound": pl.String(),
        "change_seeds": pl.UInt32(),
        "significant": pl.Boolean(),
        "change_note": pl.String(),
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
    "normalised_lower_bound": pl.Boolean(),
    "n_flows": pl.UInt64(),
    "n_unfinished": pl.UInt64(),
}

# --- one run --------------------------------------------------------------------------------------


def of_run(flows: pl.DataFrame, measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Every statistic of every class of one run: rows of ``PER_RUN``; the arguments are ``samples.of_flows``'."""
    of_groups = samples.by_group(samples.of_flows(flows, measure, end_ns))
    return pl.concat([of_samples(of_groups), of_parts(flows)])


def of_jobs(jobs: pl.DataFrame, measure: Mapping[str, Any], end_ns: int) -> pl.DataFrame:
    """Returns every statistic of each kind of job of a run: rows of ``PER_RUN`` with the kind as class.

    ``n_flows`` and ``n_unfinished`` of the rows count jobs. The arguments are those of ``samples.of_jobs``.
    """
    of_groups = samples.by_group(samples.of_jobs(jobs, measure, end_ns))
    return of_samples({group: sample for group, sample in of_groups.items() if group[0] == "job"})


def of_samples(of_groups: Mapping[Group, Sample]) -> pl.DataFrame:
    """Every statistic of the samples of one run: rows of ``PER_RUN``."""
    return pl.DataFrame(
        [
            {"grouping": grouping, "class": name, **row}
            for (grouping, name), sample in of_groups.items()
            for row in _statistics(sample)
        ],
        schema=PER_RUN,
    )


def of_parts(flows: pl.DataFrame) -> pl.DataFrame:
    """Returns the parts of one run's completion times, by class and part: rows of ``PER_RUN``."""
    rows = [
        {"grouping": grouping, "class": part, "statistic": statistic, "lower_bound": False,
         "normalised_lower_bound": False, "value_us": cell.get("value_us"), "n_flows": cell["n_flows"],
         "n_unfinished": cell["n_unfinished"]}
        for (grouping, part, statistic), cell in _parts({0: flows}).items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=PER_RUN)


def _statistics(sample: Sample) -> Iterator[dict[str, Any]]:
    times = statistics.of(sample.times) if len(sample.times) else {}
    slowdowns = statistics.of(sample.slowdowns) if sample.slowdowns is not None and len(sample.slowdowns) else {}
    for name in statistics.STATISTICS:
        yield {
            "statistic": name,
            "value_us": times[name] / 1000 if times else None,
            "normalised": slowdowns.get(name),
            "lower_bound": bool(times) and may_grow(name, times[name], sample.shortest_open_ns),
            "normalised_lower_bound": bool(slowdowns) and may_grow(name, slowdowns[name], sample.least_open_slowdown),
            "n_flows": sample.flows,
            "n_unfinished": sample.unfinished,
        }


def may_grow(name: str, value: float, least_open: float) -> bool:
    """Whether unfinished flows may raise a statistic: they raise every mean, and percentiles at or above their time.

    Args:
        name: the statistic.
        value: it.
        least_open: the least of the values that unfinished flows count with; infinite without any.
    """
    return least_open < np.inf and (name == "mean" or least_open <= value)


def _parts(of_seeds: Mapping[int, pl.DataFrame]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Returns the parts of one cell's completion times, over all flows of all seeds; nothing without attribution.

    Parts are those of ``fct_ns``, whatever the plan's clock; flows that have not finished have none.

    Args:
        of_seeds: by seed, the flow table.

    Returns:
        By grouping, part and statistic: columns of the summary.
    """
    columns = [name for name in next(iter(of_seeds.values())).columns if name.startswith("part_")] if of_seeds else []
    cells = {}
    for grouping, name in PARTS_OF.items() if columns else ():
        parts = [
            flows.select("class", "fct_ns", *columns).with_columns(seed=pl.lit(place))
            for place, flows in enumerate(of_seeds.values())
        ]
        asked = pl.concat(parts) if name == "all" else pl.concat(parts).filter(pl.col("class") == name)
        done = asked.filter(pl.col("fct_ns").is_not_null()).sort("fct_ns", descending=True, maintain_order=True)
        seeds = [*range(len(of_seeds))]
        for statistic, fewest in zip(OF_PARTS, (1, FEWEST), strict=True):
            of = _looked_at(done, statistic)
            others = [_looked_at(done.filter(pl.col("seed") != seed), statistic) for seed in seeds]
            there = of.height >= fewest
            left = [other.select(columns).mean() for other in others] if there and all(o.height for o in others) else []
            for column in columns:
                cell: dict[str, Any] = {
                    "n_flows": of.height,
                    "n_unfinished": asked.height - done.height,
                    "n_seeds": done["seed"].n_unique() if there else 0,
                }
                if there:
                    value = float(of[column].sum()) / of.height / 1000
                    known = estimates.linear(value, np.array([mean[column].item() / 1000 for mean in left]))
                    cell |= {"value_us": value, "ci_low": known.low, "ci_high": known.high}
                    cell["reason"] = NO_INTERVAL if len(seeds) == 1 else ALL_THE_SAME if known.same else None
                else:
                    cell["reason"] = _why_empty(asked.height, enough_finished=done.height > 0)
                cells[grouping, column.removeprefix("part_").removesuffix("_ns"), statistic] = cell
    return cells


def _looked_at(slowest_first: pl.DataFrame, statistic: str) -> pl.DataFrame:
    return slowest_first if statistic == "mean" else slowest_first.head(-(-slowest_first.height // SLOWEST))


def _why_empty(flows: int, *, enough_finished: bool = False) -> str:
    if enough_finished:
        return TOO_FEW
    return f"none of its {flows} flows finished" if flows else "there are no such flows"


# --- over seeds -----------------------------------------------------------------------------------


class Runs(Protocol):
    """The runs that a summary is of."""

    def samples(self, scheme: str, point: Mapping[str, Value]) -> Mapping[int, Mapping[Group, Sample]]:
        """By seed, the samples of one cell's runs."""

    def parted(self, scheme: str, point: Mapping[str, Value]) -> Mapping[int, pl.DataFrame]:
        """Returns the flows of one cell with their parts, by seed; used only with attribution."""


class Cell:
    """A group of flows of one scheme at one point, over its seeds.

    Args:
        of_seeds: by seed, its sample.
    """

    def __init__(self, of_seeds: Mapping[int, Sample]) -> None:
        self.of_seeds = of_seeds
        different = {seed: sample.different for seed, sample in of_seeds.items()}
        self.times = PooledTimes({seed: sample.times for seed, sample in of_seeds.items()}, different)
        known = {seed: sample.slowdowns for seed, sample in of_seeds.items() if len(sample.times)}
        self.slowdowns = PooledTimes({seed: part for seed, part in known.items() if part is not None})
        self.flows = sum(sample.flows for sample in of_seeds.values())
        self.unfinished = sum(sample.unfinished for sample in of_seeds.values())

    @property
    def none_finished(self) -> bool:
        """Whether no flow has finished: a time then says how long the run was."""
        return self.unfinished == self.flows

    def is_bound(self, name: str) -> bool:
        """Whether unfinished flows may make a time greater."""
        least = min((sample.shortest_open_ns for sample in self.of_seeds.values()), default=np.inf)
        return bool(self.times.seeds) and may_grow(name, self.times.values[name], least)

    def slowdown_is_bound(self, name: str) -> bool:
        """Whether unfinished flows may make a slowdown greater."""
        least = min((sample.least_open_slowdown for sample in self.of_seeds.values()), default=np.inf)
        return bool(self.slowdowns.seeds) and may_grow(name, self.slowdowns.values[name], least)


def summarise(plan: Plan, runs: Runs, there: Iterable[Group], backend: str, no_run: str = NO_RUN) -> pl.DataFrame:
    """The summary of a plan from the flows of its runs.

    Args:
        plan: what was asked; cells without a finished run are there, empty.
        runs: the runs that are there.
        there: which groupings and classes they have rows of; parts among them.
        backend: whose runs they are.
        no_run: why a cell is empty that no run is there for.
    """
    there = [*there]
    # A run that has no flow of a size does not tell the place of its group.
    sizes = [("size_group", name) for name in size_groups(plan["measure"]["size_groups"])]
    groups = [*dict.fromkeys([*ALWAYS, *(group for group in sizes if group in there), *there])]
    parted = any(grouping in PARTS_OF for grouping, _ in groups)
    baselines: dict[str, dict[Group, Cell]] = {}
    rows = []
    for scheme, point in cells(plan["runs"]):
        at = point_columns(plan, point)
        place = json.dumps(point)
        if place not in baselines:
            baselines = {place: _cells_of(runs, plan["baseline"], point, groups)}
        base = baselines[place]
        here = base if scheme == plan["baseline"] else _cells_of(runs, scheme, point, groups)
        parts = _parts(runs.parted(scheme, point)) if parted else {}
        for grouping, name in groups:
            head = {"backend": backend, "scheme": scheme, **at, "grouping": grouping, "class": name}
            if grouping in PARTS_OF:
                # A part may be nothing at all: there is no change of it in percent.
                empty = {"reason": no_run, "n_flows": 0, "n_unfinished": 0, "n_seeds": 0}
                found = ((statistic, parts.get((grouping, name, statistic), empty)) for statistic in OF_PARTS)
                rows += [
                    {**head, "statistic": statistic, "lower_bound": False, "normalised_lower_bound": False, **row}
                    for statistic, row in found
                ]
                continue
            against = base[grouping, name] if scheme != plan["baseline"] else None
            for statistic in statistics.STATISTICS:
                row = _over_seeds(here[grouping, name], against, statistic, no_run)
                rows.append({**head, "statistic": statistic, **row})
    return pl.DataFrame(rows, schema=summary_schema(plan))


def _cells_of(runs: Runs, scheme: str, point: Mapping[str, Value], groups: Iterable[Group]) -> dict[Group, Cell]:
    of_seeds = runs.samples(scheme, point)
    return {group: Cell({seed: of.get(group, samples.NONE) for seed, of in of_seeds.items()}) for group in groups}


def size_groups(bounds: Sequence[object]) -> list[str]:
    """The names of the size groups between these bounds, from the smallest up."""
    ends = ["0", *(str(bound) for bound in bounds)]
    return [*(f"({low},{high}]" for low, high in pairwise(ends)), f">{ends[-1]}"]


def _cell_columns(plan: Plan) -> list[str]:
    return ["scheme", *axes_schema(plan), "grouping", "class", "statistic"]


def cells(runs: Iterable[PlannedRun]) -> list[tuple[str, dict[str, Value]]]:
    """Scheme and point of the runs, each once, in plan order."""
    return list({(run["scheme"], json.dumps(run["point"])): (run["scheme"], run["point"]) for run in runs}.values())


def _over_seeds(here: Cell, base: Cell | None, name: str, no_run: str) -> dict[str, Any]:
    """Returns a statistic of one cell, and its change against the baseline's."""
    row: dict[str, Any] = {
        "lower_bound": here.is_bound(name),
        "normalised_lower_bound": here.slowdown_is_bound(name),
        "n_flows": here.flows,
        "n_unfinished": here.unfinished,
        "n_seeds": len(here.times.seeds),
        "reason": None if here.times.seeds else _why_empty(here.flows) if here.of_seeds else no_run,
    }
    if here.times.seeds:
        known = estimates.interval(here.times, name)
        row |= _columns("value_us", "ci", here.times.values[name], known, 1000)
        row["reason"] = NO_INTERVAL if len(here.times.seeds) == 1 else ALL_THE_SAME if known.same else None
    # Where the best possible time of some flows is not known, slowdowns would be those of the
    # others.
    if here.slowdowns.seeds == here.times.seeds and here.slowdowns.seeds:
        known = estimates.interval(here.slowdowns, name)
        row |= _columns("normalised", "normalised_ci", here.slowdowns.values[name], known)
    return row | (_change(here, base, name) if base is not None else {})


def _change(here: Cell, base: Cell, name: str) -> dict[str, Any]:
    if here.none_finished or base.none_finished:
        return {}
    found = estimates.change(base.times, here.times, name)
    if found is None:
        return {}
    common = {seed for seed in base.times.seeds if seed in here.times.seeds}
    of_both = (Cell({seed: cell.of_seeds[seed] for seed in common}) for cell in (here, base))
    whole = common == {*base.times.seeds} == {*here.times.seeds}
    here, base = (here, base) if whole else of_both
    bound = bounds.of_change(here.is_bound(name), base.is_bound(name))
    return {
        "change": found.value,
        "change_ci_low": found.low,
        "change_ci_high": found.high,
        "change_bound": bound,
        "change_seeds": found.seeds,
        "significant": found.sure and bounds.is_certain(found.value, bound),
        "change_note": SEPARATOR.join(found.notes) or None,
    }


def _columns(value: str, interval: str, of: float, known: Interval, scale: float = 1) -> dict[str, float | None]:
    low, high = (None if end is None else end / scale for end in (known.low, known.high))
    return {value: of / scale, f"{interval}_low": low, f"{interval}_high": high}


def notes(table: pl.DataFrame) -> list[str]:
    """Returns the notes of a summary's rows, each sentence once; the number of seeds of a change is apart."""
    said = table["change_note"].drop_nulls().unique(maintain_order=True).to_list()
    return [*dict.fromkeys(sentence for text in said for sentence in text.split(SEPARATOR))]
