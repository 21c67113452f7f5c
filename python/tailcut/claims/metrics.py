"""The numbers of claims from the tables of runs: a metric of a population, a statistic over seeds, and its interval."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from tailcut.claims.document import Measure, Population
from tailcut.claims.verdict import Number
from tailcut.results import estimates, samples, statistics
from tailcut.results.estimates import Interval, PooledTimes
from tailcut.results.statistics import PERCENTILES, STATISTICS, Values
from tailcut.results.tables import read_parquet

MILLISECOND = 1e6
"""In ns."""


@dataclass(frozen=True, slots=True)
class Made:
    """A finished run.

    Attributes:
        path: the directory of its tables.
        end_ns: when it ended.
    """

    path: Path
    end_ns: int

    def table(self, name: str) -> pl.DataFrame:
        """A table of the run, by its name; without rows and columns if it has none."""
        file = self.path / f"{name}.parquet"
        return read_parquet(file) if file.exists() else pl.DataFrame()


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one seed to a metric.

    Attributes:
        values: one for each flow, job or sample; pooled over seeds they have statistics.
        above: of a share, how many count; it is divided by ``below`` once both are added up over seeds.
        below: of a share, of how many.
    """

    values: Values | None = None
    above: float = 0.0
    below: float = 0.0


Runs = Mapping[int, Made]
"""By seed."""


def parts(runs: Runs, measure: Measure, plan_measure: Mapping[str, Any]) -> dict[int, Part]:
    """Returns each seed's share in a metric.

    Args:
        runs: the runs of one scheme at one point, by seed.
        measure: what is asked.
        plan_measure: the plan's ``measure``, which says how unfinished flows count.
    """
    compute = COMPUTE[measure.metric]
    return {seed: compute(made, measure, plan_measure) for seed, made in sorted(runs.items())}


# --- populations ----------------------------------------------------------------------------------


def chosen(flows: pl.DataFrame, population: Population) -> pl.DataFrame:
    """The flows of a table that a population has."""
    conditions = []
    if population.size != "all":
        column = "class" if population.size in ("short", "long") else "size_group"
        conditions.append(pl.col(column).cast(pl.String) == population.size)
    if population.ids:
        conditions.append(pl.col("id").is_in([*population.ids]))
    ends = (pl.col("src"), pl.col("dst"))
    if population.touching:
        hosts = [*population.touching]
        conditions.append(ends[0].is_in(hosts) | ends[1].is_in(hosts))
    if population.avoiding:
        hosts = [*population.avoiding]
        conditions.append(~(ends[0].is_in(hosts) | ends[1].is_in(hosts)))
    if population.pod_hosts:
        conditions.append(ends[0] // population.pod_hosts != ends[1] // population.pod_hosts)
    if population.largest:
        conditions.append(pl.col("bytes") <= population.largest)
    return flows.filter(*conditions) if conditions else flows


def _timed(made: Made, measure: Measure) -> pl.DataFrame:
    """The flows that count, as `samples.of_flows` takes them, by the claim's clock."""
    flows = chosen(made.table("flows"), measure.population)
    clock, _ = samples.COMPLETION_COLUMNS["receiver" if measure.clock == "connect" else measure.clock]
    if measure.clock == "connect":
        flows = flows.with_columns((pl.col(clock) - pl.col("connect_ns")).alias(clock))
    if measure.population.finished_by_ms:
        end = int(measure.population.finished_by_ms * MILLISECOND)
        flows = flows.filter(pl.col("start_ns") + pl.col("fct_ns") <= end)
    count = measure.population.quickest_of
    return flows if count == 1 else quickest(flows, count)


def quickest(flows: pl.DataFrame, count: int) -> pl.DataFrame:
    """Returns the quickest of every ``count`` flows that are next to each other in size: independent draws.

    The quickest is the one of the smallest slowdown; a flow that did not finish is the slowest. Flows that are left
    over at the end of the list are left out.
    """
    whole = flows.height // count * count
    ordered = flows.sort("bytes", "id").head(whole).with_row_index("place").with_columns(pl.col("place") // count)
    order = pl.col("normalised_fct").fill_null(math.inf)
    return ordered.sort("place", order, "id").group_by("place", maintain_order=True).first().drop("place")


def _sample(made: Made, measure: Measure, plan_measure: Mapping[str, Any]) -> samples.Sample:
    clock = "sender" if measure.clock == "sender" else "receiver"
    asked = {**plan_measure, "clock": clock}
    kept = samples.of_flows(_timed(made, measure), asked, made.end_ns)
    return samples.by_group(kept.select(pl.lit("").alias("of"), pl.all()))[samples.ALL]


# --- metrics --------------------------------------------------------------------------------------


def _fct(made: Made, measure: Measure, plan_measure: Mapping[str, Any]) -> Part:
    return Part(_sample(made, measure, plan_measure).times / MILLISECOND)


def _slowest(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    flows = chosen(made.table("flows"), measure.population)
    ends = flows.select((pl.col("start_ns") + pl.col("fct_ack_ns")).alias("end"))["end"]
    last = np.array([]) if ends.null_count() else np.array([ends.max()], dtype=np.float64)
    return Part(last / MILLISECOND)


def _queueing(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    flows = chosen(made.table("flows"), measure.population)
    parts = [name for name in flows.columns if name.startswith("part_queue_")]
    waited = (
        flows.filter(pl.col("finished")).select(pl.sum_horizontal(parts).alias("waited"))["waited"] if parts else None
    )
    return Part(np.zeros(0) if waited is None else _sorted(waited) / MILLISECOND)


def _share_of_time(made: Made, measure: Measure, part: pl.Expr) -> Part:
    """Returns how much of the time of finished flows, or of the slowest of them, is in a part of it."""
    flows = chosen(made.table("flows"), measure.population).filter(pl.col("finished"))
    slowest = measure.population.slowest
    if slowest:
        flows = flows.sort("fct_ns", "id", descending=True).head(math.ceil(flows.height * slowest))
    return Part(None, float(flows.select(part.alias("of"))["of"].sum()), float(flows["fct_ns"].sum()))


def _part_share(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    named = "|".join(measure.name.split())
    return _share_of_time(made, measure, pl.sum_horizontal(f"^part_(?:{named}).*$"))


def _handshake_share(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    return _share_of_time(made, measure, pl.col("connect_ns"))


def _slowdown(made: Made, measure: Measure, plan_measure: Mapping[str, Any]) -> Part:
    found = _sample(made, measure, plan_measure).slowdowns
    return Part(np.zeros(0) if found is None else found)


def _job_time(made: Made, measure: Measure, plan_measure: Mapping[str, Any]) -> Part:
    jobs = made.table("jobs")
    if jobs.height and measure.population.kind:
        jobs = jobs.filter(pl.col("kind").cast(pl.String) == measure.population.kind)
    if not jobs.height:
        return Part(np.zeros(0))
    last = samples.last_finish_ns(plan_measure)
    if last is not None:
        jobs = jobs.filter(pl.col("start_ns") + pl.col("completion_ns") <= last)
    counted = plan_measure["unfinished"] == "censored"
    time = pl.coalesce("completion_ns", made.end_ns - pl.col("start_ns")) if counted else pl.col("completion_ns")
    return Part(_sorted(jobs.select(time.alias("time"))["time"]) / MILLISECOND)


def _of_throughput(made: Made, measure: Measure, value: pl.Expr) -> Part:
    long = made.table("throughput")
    if not long.height:
        return Part(np.zeros(0))
    flows = chosen(made.table("flows"), measure.population).select("id")
    return Part(_sorted(long.join(flows, on="id", how="semi").select(value.alias("value"))["value"]))


def _throughput(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    return _of_throughput(made, measure, pl.col("throughput_bps") / 1e6)


def _share_of_ideal(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    ideal = pl.when(pl.col("ideal_bps") > 0).then(pl.col("ideal_bps"))
    return _of_throughput(made, measure, pl.col("throughput_bps") / ideal)


def _series(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    series = made.table("series")
    if not series.height:
        return Part(np.zeros(0))
    after = int(measure.after_ms * MILLISECOND)
    return Part(_sorted(series.filter(pl.col("name") == measure.name, pl.col("time_ns") >= after)["value"]))


def _duplicate_acks(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    segments = made.table("segments")
    if not segments.height:
        return Part()
    counts = segments.filter(pl.col("quantity").cast(pl.String) == "duplicate ACKs")
    above = counts.filter(pl.col("value") > measure.limit)
    return Part(None, float(above["count"].sum()), float(counts["count"].sum()))


def _timeouts(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    flows = chosen(made.table("flows"), measure.population)
    return Part(None, float((flows["timeouts"] > 0).sum()), float(flows.height))


def _retransmitted(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    flows = chosen(made.table("flows"), measure.population)
    again = float(flows["retransmissions"].sum())
    return Part(None, again, float(flows["data_packets"].sum()) - again)


def _data_packets(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    return Part(None, float(chosen(made.table("flows"), measure.population)["data_packets"].sum()), 1.0)


def _drops(made: Made, measure: Measure, _plan_measure: Mapping[str, Any]) -> Part:
    tiers = made.table("tiers").filter(pl.col("tier").cast(pl.String) == measure.name)
    drops = float(tiers["drops"].sum())
    return Part(None, drops, float(tiers["packets"].sum()) + drops)


def _sorted(column: pl.Series) -> Values:
    return np.sort(column.drop_nulls().to_numpy().astype(np.float64))


COMPUTE: Mapping[str, Callable[[Made, Measure, Mapping[str, Any]], Part]] = MappingProxyType(
    {
        "fct": _fct,
        "slowest": _slowest,
        "slowdown": _slowdown,
        "queueing": _queueing,
        "part_share": _part_share,
        "handshake_share": _handshake_share,
        "job_time": _job_time,
        "throughput": _throughput,
        "share_of_ideal": _share_of_ideal,
        "series": _series,
        "duplicate_acks": _duplicate_acks,
        "timeouts": _timeouts,
        "retransmitted": _retransmitted,
        "data_packets": _data_packets,
        "drops": _drops,
    }
)
"""The function that computes each metric of the vocabulary from the tables of one run."""


def of_authors(file: Path) -> Part:
    """The authors' own numbers, one a line in ms, as a seed's; further columns are left out."""
    numbers = [float(line.split()[0]) for line in file.read_text("utf-8").splitlines() if line.strip()]
    return Part(np.sort(np.array(numbers)))


# --- over seeds -----------------------------------------------------------------------------------


def pooled(of_seeds: Mapping[int, Part], measure: Measure) -> float | None:
    """A statistic of all seeds together; None where there is nothing."""
    several = [*of_seeds.values()]
    if all(part.values is None for part in several):
        below = sum(part.below for part in several)
        return sum(part.above for part in several) / below if below else None
    values = np.sort(np.concatenate([part.values for part in several if part.values is not None]))
    return _statistic(values, measure) if len(values) else None


def _statistic(ascending: Values, measure: Measure) -> float:
    if measure.statistic in STATISTICS:
        return statistics.of(ascending)[measure.statistic]
    if measure.statistic == "sd":
        return float(ascending.std())
    if measure.statistic == "max":
        return float(ascending[-1])
    below = np.searchsorted(ascending, measure.limit, side="right")
    share = float(below) / len(ascending)
    return 1.0 - share if measure.statistic == "share_above" else share


def value(of_seeds: Mapping[int, Part], measure: Measure) -> Number | None:
    """The number of one scheme at one point, with its interval over seeds; None where there is none."""
    found = pooled(of_seeds, measure)
    if found is None:
        return None
    pool = _pool(of_seeds, measure)
    if pool is not None:
        known = estimates.interval(pool, measure.statistic)
    else:
        known = _jackknife(found, [pooled(_without(of_seeds, seed), measure) for seed in of_seeds])
    return _number(found, known, _beyond(of_seeds, measure))


def change(base: Mapping[int, Part], ours: Mapping[int, Part], measure: Measure) -> Number | None:
    """The number of a scheme over its baseline's, less 1, of the seeds that both have; None where there is none."""
    common = [seed for seed in base if seed in ours]
    base, ours = ({seed: part[seed] for seed in common} for part in (base, ours))
    first, second = pooled(base, measure), pooled(ours, measure)
    if first is None or second is None or first <= 0:
        return None
    pools = _pool(base, measure), _pool(ours, measure)
    if pools[0] is not None and pools[1] is not None:
        found = estimates.change(pools[0], pools[1], measure.statistic)
        known = Interval() if found is None else Interval(found.low, found.high)
        if found is not None and found.low is None and estimates.SAME_CHANGE in found.notes:
            known = Interval(found.value, found.value)
        return _number(second / first - 1, known, _beyond(base, measure), _beyond(ours, measure))
    left = [_ratio(_without(base, seed), _without(ours, seed), measure) for seed in common]
    known = _jackknife(second / first, left)
    low, high = (None if end is None else end - 1 for end in (known.low, known.high))
    same = second / first - 1 if known.same else None
    return Number(second / first - 1, low if same is None else same, high if same is None else same)


def contrast(
    first: tuple[Mapping[int, Part], Mapping[int, Part]],
    last: tuple[Mapping[int, Part], Mapping[int, Part]],
    measure: Measure,
) -> Number | None:
    """The change at one point less the change at another, each as baseline and scheme; None where there is none."""
    common = [seed for seed in first[0] if all(seed in parts for parts in (*first, *last))]

    def of(seeds: list[int]) -> float | None:
        kept = [{seed: parts[seed] for seed in seeds} for parts in (*first, *last)]
        ratios = _ratio(kept[0], kept[1], measure), _ratio(kept[2], kept[3], measure)
        return None if ratios[0] is None or ratios[1] is None else ratios[0] - ratios[1]

    found = of(common)
    if found is None:
        return None
    left = [of([other for other in common if other != seed]) for seed in common]
    there = [one for one in left if one is not None]
    known = estimates.linear(found, np.array(there)) if len(there) == len(common) > 1 else Interval()
    return _number(found, known, *(_beyond(parts, measure) for parts in (*first, *last)))


def _ratio(base: Mapping[int, Part], ours: Mapping[int, Part], measure: Measure) -> float | None:
    first, second = pooled(base, measure), pooled(ours, measure)
    return None if first is None or second is None or first <= 0 else second / first


def _without(of_seeds: Mapping[int, Part], seed: int) -> dict[int, Part]:
    return {other: part for other, part in of_seeds.items() if other != seed}


def _pool(of_seeds: Mapping[int, Part], measure: Measure) -> PooledTimes | None:
    """Returns the values as the summary pools them; None if it lacks the statistic, or a value has no logarithm."""
    known = {seed: part.values for seed, part in of_seeds.items() if part.values is not None and len(part.values)}
    plain = measure.statistic in STATISTICS and len(known) == len(of_seeds) > 0
    return PooledTimes(known) if plain and all(one[0] > 0 for one in known.values()) else None


def _jackknife(found: float, left: list[float | None]) -> Interval:
    """The interval of a number, given it without each seed in turn: of its logarithm where it has one."""
    there = [one for one in left if one is not None]
    if len(there) < 2 or len(there) < len(left):
        return Interval()
    if found > 0 and min(there) > 0:
        return estimates.of_logarithm(found, np.log(there))
    return estimates.linear(found, np.array(there))


def _beyond(of_seeds: Mapping[int, Part], measure: Measure) -> int | None:
    if measure.statistic not in PERCENTILES or measure.metric == "slowest":  # a number of runs, not of flows
        return None
    count = sum(len(part.values) for part in of_seeds.values() if part.values is not None)
    return count - statistics.rank(count, PERCENTILES[measure.statistic])


def _number(found: float, known: Interval, *beyond: int | None) -> Number:
    counted = [one for one in beyond if one is not None]
    low, high = known.low, known.high
    if known.same:  # all seeds gave this: there is nothing to be in doubt about
        low = high = found
    finite = low is None or (math.isfinite(low) and high is not None and math.isfinite(high))
    return Number(found, low if finite else None, high if finite else None, beyond=min(counted, default=None))
