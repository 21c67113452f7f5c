"""The tables behind the figures: pure functions from a study to a Polars frame.

Every table that depends on the sweep has the columns ``cell`` (the label of the point on all axes but the first),
``point`` (its label on the first) and ``x`` (its value there).
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from tailcut.report.study import CLOCKS, Run, Study
from tailcut.results import statistics
from tailcut.results.bounds import MARKS
from tailcut.results.summary import axes_schema, point_columns
from tailcut.units import percent

BODY_POINTS = 150
TAIL_POINTS = 150
EXACT_POINTS = 100
CLASS = 1 << 56  # apart from the times of another class, which are less than two years
UNFINISHED = CLASS - 1
READ = {f"p{q}".replace(".", "_"): Fraction(q) / 100 for q in ("10", "25", "50", "75", "90", "95", "99", "99.9")}
"""The reported percentiles of a distribution; exact, because 0.999 in binary is slightly more than 999/1000."""
PLACE = ["backend", "cell", "point", "grouping", "class", "statistic"]
"""The columns that identify the rows of a scheme."""
STATISTICS = {"mean": "mean", "p50": "median", "p99": "99th percentile", "p99_9": "99.9th percentile"}


def curves(study: Study) -> pl.DataFrame:
    """The summary with the labels of its points; times in us, changes in percent."""
    table = _labelled(study, study.summary)
    percent = {f"change{end}": pl.col(f"change{end}") * 100 for end in ("", "_ci_low", "_ci_high")}
    return _without_mere_bounds(table.with_columns(**percent))


def _labelled(study: Study, table: pl.DataFrame) -> pl.DataFrame:
    """A table with the sweep's axes, which become the labels of the points and their place on the first axis."""
    keys = [axis["key"] for axis in study.plan["sweep"]]
    if keys:
        places = [run["point"] for run in study.plan["runs"]]
        labels = [{"cell": study.cell(at), "point": study.point(at), **point_columns(study.plan, at)} for at in places]
        schema: dict[str, pl.DataType] = {"cell": pl.String(), "point": pl.String(), **axes_schema(study.plan)}
        table = table.join(
            pl.DataFrame(labels, schema=schema).unique(), on=keys, how="left", nulls_equal=True, maintain_order="left"
        )
    else:
        table = table.with_columns(cell=pl.lit(""), point=pl.lit(""))
    x = pl.col(study.x.key) if study.x else pl.lit(None, pl.Float64)
    return table.with_columns(x=x).drop(keys)


def _without_mere_bounds(table: pl.DataFrame) -> pl.DataFrame:
    """The rows without values that no finished flow stands behind: such a time says how long the run was."""
    none = (pl.col("n_flows") > 0) & (pl.col("n_unfinished") == pl.col("n_flows"))
    times = ["value_us", "ci_low", "ci_high", "normalised", "normalised_ci_low", "normalised_ci_high"]
    return table.with_columns(
        *(pl.when(~none).then(pl.col(name)).alias(name) for name in times),
        lower_bound=pl.col("lower_bound") & ~none,
        normalised_lower_bound=pl.col("normalised_lower_bound") & ~none,
        reason=pl.when(none).then(pl.format("none of its {} flows finished", "n_flows")).otherwise("reason"),
    )


def changes(study: Study, table: pl.DataFrame) -> pl.DataFrame:
    """Returns the changes against the baseline by scheme and point: completion times, packets, devices.

    Args:
        study: the experiment.
        table: ``curves`` of it.

    Columns: scheme, backend, cell, point, class, statistic, change (percent; null where it is no number), factor (of
    times: the same as a multiple of the baseline's), low, high, change_bound, significant, said, range. The class is
    ``packets`` for the packets sent and ``asks`` for what has to be changed.
    """
    if study.baseline is None or not study.runs:
        return pl.DataFrame()
    keys = ["scheme", "backend", "cell", "point"]
    times = table.filter(
        pl.col("grouping") == "class", pl.col("backend") == "sim", pl.col("statistic").is_in(["mean", "p99"]),
        pl.col("scheme") != study.baseline, pl.col("change").is_not_null(),
    ).select(
        *keys, "class", "statistic", "change", low="change_ci_low", high="change_ci_high",
        # Not from the rounded change: of one near -100 % nothing or a single digit would be left.
        factor=1 + pl.col("change") / 100, change_bound="change_bound", significant="significant",
    )  # fmt: skip
    if times.height == 0:
        return pl.DataFrame()
    places = times.select(keys).unique(maintain_order=True)
    packets = places.join(_packets_change(study), on=["scheme", "cell", "point"], how="inner", maintain_order="left")
    packets = packets.select(*keys, pl.lit("packets").alias("class"), pl.lit("sent").alias("statistic"), "change")
    asks = {scheme: study.changed_side(scheme) for scheme in study.schemes}
    asked = places.with_columns(
        pl.lit("asks").alias("class"), pl.lit("").alias("statistic"), said=pl.col("scheme").replace_strict(asks)
    )
    table = pl.concat([times, packets, asked], how="diagonal")
    said = pl.struct("change", "change_bound", "significant").map_elements(_said, return_dtype=pl.String)
    return table.with_columns(
        pl.col("change", "factor", "low", "high").round_sig_figs(4),
        said=pl.coalesce("said", said),
        range=pl.struct("low", "high").map_elements(_range, return_dtype=pl.String),
    )


def against(study: Study) -> pl.DataFrame:
    """Returns the difference of kernels from the simulator by scheme, point, class and statistic.

    Columns: scheme, backend, cell, point, class, statistic, simulated_us, real_us, n_seeds, change (percent, above zero
    where kernels took longer), said.
    """
    against = study.lab.against
    if against.height == 0:
        return pl.DataFrame()
    change = (pl.col("change") * 100).round_sig_figs(4)
    said = pl.struct("change").map_elements(_said, return_dtype=pl.String)
    columns = ["scheme", "backend", "cell", "point", "class", "statistic", "simulated_us", "real_us", "n_seeds"]
    table = _labelled(study, against).select(*columns, change=change)
    return table.with_columns(said=said)


def _packets_change(study: Study) -> pl.DataFrame:
    """By how many percent each scheme sends more data packets than the baseline at each point, over their common seeds.

    Another seed has other flows, and where runs are missing sums over all seeds would be of different ones.
    """
    rows = []
    for labels, runs in study.groups():
        at = {name: labels[name] for name in ("scheme", "cell", "point")}
        for run in runs:
            if (flows := run.table("flows")) is not None:
                sent = int(flows.select(pl.col("data_packets").sum()).collect().item())
                rows.append({**at, "seed": run.planned["seed"], "sent": sent})
    table = pl.DataFrame(rows)
    base = table.filter(pl.col("scheme") == study.baseline).select("cell", "point", "seed", before="sent")
    both = table.join(base, on=["cell", "point", "seed"], how="inner", maintain_order="left")
    return both.group_by("scheme", "cell", "point", maintain_order=True).agg(
        change=share(pl.col("sent").sum(), pl.col("before").sum(), 100) - 100
    )


def share(part: pl.Expr, whole: pl.Expr, of: float) -> pl.Expr:
    """A part of a whole, times ``of``; null where the whole is nothing."""
    return pl.when(whole > 0).then(part / whole * of)


def _said(row: dict[str, Any]) -> str:
    if row["change"] is None:
        return ""
    digits = 0 if abs(row["change"]) >= 9.95 or round(row["change"], 1) == 0 else 1
    size = f"{'−' if row['change'] < 0 else '+'}{percent(abs(row['change']), digits)}"
    text = size if round(row["change"], 1) else "±0"
    bound = row.get("change_bound")
    return f"{MARKS[bound] if bound else ''}{text} %{'*' if row.get('significant') else ''}"


def _range(row: dict[str, Any]) -> str:
    if row["low"] is None or row["high"] is None:
        return "none"
    return " to ".join(f"{'−' if row[end] < 0 else '+'}{percent(abs(row[end]), 1)} %" for end in ("low", "high"))


def distributions(study: Study) -> pl.DataFrame:
    """The distribution of completion times per scheme, point and class, all seeds pooled.

    Columns: scheme, cell, point, x, class, fct_us, at_most (fraction of flows that took at most this long), at_least
    (fraction that took at least this long, or had not finished), flows, unfinished, drawn (points kept), and of the
    whole curve its ``READ`` percentiles (us). Fractions are of all flows, finished or not, so that flows that never
    finished lie to the right of everything drawn, and a percentile that they reach is null.
    """
    return _distributions(study, CLOCKS[study.clock][0], pl.lit(True))


def round_trips(study: Study) -> pl.DataFrame:
    """Returns the times to open the connections of pings, as ``distributions``; no row where no pair of hosts pings."""
    pairs = {pair for run in study.plan["runs"] for pair in _pinging(run["config"]["traffic"])}
    between = [(pl.col("src") == source) & (pl.col("dst") == target) for source, target in sorted(pairs)]
    return _distributions(study, "connect_ns", pl.any_horizontal(between)) if between else pl.DataFrame()


def _pinging(traffic: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The pairs of hosts of which one pings the other."""
    if traffic["kind"] == "mix":
        return [pair for part in traffic["parts"] for pair in _pinging(part)]
    named = traffic["kind"] == "pings" and traffic["from"] is not None
    return [(traffic["from"], traffic["to"])] if named else []


def _distributions(study: Study, time: str, which: pl.Expr) -> pl.DataFrame:
    frames = []
    for labels, runs in study.groups():
        for name, times, flows in _pooled(runs, time, which):
            ranks = kept_ranks(len(times))
            frames.append(
                pl.DataFrame(
                    {
                        "fct_us": times[ranks - 1] / 1000,
                        "at_most": ranks / flows,
                        "at_least": (flows - ranks + 1) / flows,
                    }
                ).select(
                    *(pl.lit(value).alias(key) for key, value in labels.items()),
                    pl.lit(name).alias("class"),
                    pl.col("fct_us", "at_most", "at_least"),
                    pl.lit(flows).alias("flows"),
                    pl.lit(flows - len(times)).alias("unfinished"),
                    pl.lit(len(ranks)).alias("drawn"),
                    *(pl.lit(us, pl.Float64).alias(name) for name, us in _read(times, flows).items()),
                )
            )
    return pl.concat(frames) if frames else pl.DataFrame()


def _read(times: np.ndarray[tuple[int], np.dtype[np.int64]], flows: int) -> dict[str, float | None]:
    """Percentiles by nearest rank among all flows: the points of a curve that are kept need not be theirs."""
    ranks = {name: ceil(flows * fraction) for name, fraction in READ.items()}
    return {name: times[rank - 1] / 1000 if rank <= len(times) else None for name, rank in ranks.items()}


def _pooled(
    runs: Sequence[Run], time: str, which: pl.Expr
) -> Iterator[tuple[str, np.ndarray[tuple[int], np.dtype[np.int64]], int]]:
    """Yields, for each class of flows in these runs, its name, its sorted times in ns, and its number of flows.

    Eight bytes a flow, for there may be many millions: one number has the class above the time, and all are sorted in
    place.
    """
    classes: list[str] = []
    pool = bytearray()
    for run in runs:
        if (table := run.table("flows")) is None:
            continue
        flows = table.filter(which).select(pl.col(time).cast(pl.Int64), pl.col("class").cast(pl.String)).collect()
        classes += [name for name in flows["class"].unique(maintain_order=True) if name not in classes]
        for place, name in enumerate(classes):
            times = flows.filter(pl.col("class") == name)[time].fill_null(UNFINISHED)
            pool += (times + place * CLASS).to_numpy().tobytes()
    numbers = np.frombuffer(pool, np.int64)
    numbers.sort()
    bounds = [
        np.searchsorted(numbers, np.array([0, UNFINISHED, CLASS]) + place * CLASS) for place in range(len(classes))
    ]
    numbers &= CLASS - 1
    for name, (first, unfinished, end) in zip(classes, bounds, strict=True):
        if unfinished > first:
            yield name, numbers[first:unfinished], int(end - first)


def kept_ranks(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns the ranks, from 1, of the ``count`` sorted values that a curve is drawn through.

    All of them while they are few. Otherwise evenly spaced ones for the bulk, geometrically spaced ones counted from
    the slowest for the tail, and each of the ``EXACT_POINTS`` slowest: every point drawn is an observed value.
    """
    if count <= BODY_POINTS + TAIL_POINTS + EXACT_POINTS:
        return np.arange(1, count + 1)
    body = np.linspace(1, count, BODY_POINTS).astype(np.int64)
    tail = count + 1 - np.geomspace(1, count / 2, TAIL_POINTS).astype(np.int64)
    exact = np.arange(count - EXACT_POINTS + 1, count + 1)
    return np.unique(np.concatenate([body, tail, exact]))


def links(study: Study) -> pl.DataFrame:
    """Utilisation and drops per scheme, point and stage of the path, means over seeds.

    Columns: scheme, cell, point, x, stage (``"host up"``, see ``stages``), mean (% of the arrivals), busiest (%),
    dropped (% of the packets that came to the queues), drops, max_queue (most over seeds), seeds.
    """
    frames = []
    for labels, runs in study.groups():
        tables = [t.collect().with_columns(seed=i) for i, r in enumerate(runs) if (t := r.table("tiers")) is not None]
        if not tables:
            continue
        per_seed = pl.concat(tables).with_columns(
            pl.col("tier", "direction").cast(pl.String),
            offered=pl.col("packets") + pl.col("drops"),
        )
        table = per_seed.group_by("tier", "direction", maintain_order=True).agg(
            mean=pl.col("mean_utilisation").mean() * 100,
            busiest=pl.col("max_utilisation").mean() * 100,
            dropped=pl.when(pl.col("offered").sum() > 0)
            .then(pl.col("drops").sum() / pl.col("offered").sum() * 100)
            .otherwise(0.0),
            drops=pl.col("drops").sum(),
            max_queue=pl.col("max_queue").max(),
            seeds=pl.col("seed").n_unique(),
        )
        frames.append(
            table.select(
                *(pl.lit(value).alias(key) for key, value in labels.items()),
                pl.format("{} {}", "tier", "direction").alias("stage"),
                pl.exclude("tier", "direction"),
            )
        )
    return pl.concat(frames) if frames else pl.DataFrame()


def stages(table: pl.DataFrame) -> list[str]:
    """The stages of a path in the order in which a packet meets them: up from the host, then down to one."""
    names = table["stage"].unique(maintain_order=True).to_list()
    ups = [name for name in names if name.endswith(" up")]
    return ups + [f"{name[: -len(' up')]} down" for name in reversed(ups)]


def unfinished(table: pl.DataFrame) -> pl.DataFrame:
    """Flows that had not finished, per backend, scheme, point and class of ``curves``: flows, unfinished, percent."""
    rows = table.filter(pl.col("grouping") == "class", pl.col("statistic") == "mean", pl.col("n_flows") > 0)
    return rows.select(
        "backend", "scheme", "cell", "point", "x", "class",
        flows=pl.col("n_flows"),
        unfinished=pl.col("n_unfinished"),
        percent=pl.col("n_unfinished") / pl.col("n_flows") * 100,
        seeds=pl.col("n_seeds"),
    )  # fmt: skip


def series(study: Study, limit: int = 2000) -> pl.DataFrame:
    """The sampled time series of each scheme and backend at the first point that has some, all of one seed.

    It is the seed of which most of them have a run, since other seeds have other flows. What has no run of it is not
    there.

    Columns: backend, scheme, cell, point, seed, name, quantity (what was sampled), ms, value. A series of more than
    ``limit`` samples keeps the least and the greatest of each of ``limit / 2`` equal spans.
    """

    def place(run: Run) -> dict[str, str]:
        return {"cell": study.cell(run.planned["point"]), "point": study.point(run.planned["point"])}

    first = next((place(run) for run in study.measured if _samples(run) is not None), None)
    of_seeds: dict[int, dict[tuple[str, str], tuple[Run, pl.LazyFrame]]] = {}
    for run in study.measured:
        if place(run) == first and (samples := _samples(run)) is not None:
            lines = of_seeds.setdefault(run.planned["seed"], {})
            lines.setdefault((run.backend, run.planned["scheme"]), (run, samples))  # of several repeats the first
    seed, drawn = max(of_seeds.items(), key=lambda item: len(item[1]), default=(0, {}))
    frames = []
    for (backend, scheme), (run, samples) in drawn.items():
        labels = {"backend": backend, "scheme": scheme, **place(run), "seed": seed}
        frames.append(
            thinned(samples.collect(), limit).select(
                *(pl.lit(value).alias(key) for key, value in labels.items()),
                "name",
                pl.col("name").str.split(" ").list.last().alias("quantity"),
                (pl.col("time_ns") / 1e6).alias("ms"),
                pl.col("value").round_sig_figs(6),
            )
        )
    return pl.concat(frames) if frames else pl.DataFrame()


def _samples(run: Run) -> pl.LazyFrame | None:
    """Returns the samples of a run; None where it has none."""
    table = run.table("series")
    return table if table is not None and table.select(pl.len()).collect().item() else None


def thinned(samples: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Series of at most ``limit`` samples each that keep every excursion: least and greatest of each equal span."""
    kept: list[pl.DataFrame] = []
    for _, one in samples.group_by("name", maintain_order=True):
        if one.height <= limit:
            kept.append(one)
            continue
        span = ceil(one.height / (limit // 2))
        indexed = one.with_row_index("row").with_columns(span=pl.col("row") // span)
        extremes = indexed.filter(
            (pl.col("row") == pl.col("row").sort_by("value").first().over("span"))
            | (pl.col("row") == pl.col("row").sort_by("value").last().over("span"))
        )
        kept.append(extremes.drop("row", "span"))
    return pl.concat(kept) if kept else samples


def segments(study: Study) -> pl.DataFrame:
    """Returns the fates of segments per scheme and point, all seeds pooled.

    Columns: scheme, cell, point, x, quantity, value, count, percent (of the quantity's counts), at_least (percent of
    that value or more).
    """
    frames = []
    for labels, runs in study.groups():
        tables = [t for r in runs if (t := r.table("segments")) is not None]
        if not tables:
            continue
        pooled = pl.concat(tables).with_columns(pl.col("quantity").cast(pl.String))
        pooled = pooled.group_by("quantity", "value", maintain_order=True).agg(pl.col("count").sum())
        table = pooled.collect().sort("quantity", "value")
        total = pl.col("count").sum().over("quantity")
        before = pl.col("count").cum_sum().over("quantity") - pl.col("count")
        frames.append(
            table.select(
                *(pl.lit(value).alias(key) for key, value in labels.items()),
                pl.all(),
                percent=pl.col("count") / total * 100,
                at_least=(1 - before / total) * 100,
            )
        )
    return pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame()


def throughput(study: Study) -> pl.DataFrame:
    """Returns the distribution of the throughput of long flows per scheme and point, all seeds pooled.

    Columns: scheme, cell, point, x, mbps (in ascending order), at_most (share of flows at most this fast), flows, drawn
    (rows kept, see ``kept_ranks``); then of all flows mean, p25, p50, p75 and deviation (Mbps), and ideal_mean,
    ideal_p25 and ideal_p75 (percent of the ideal; null where all flows ended before the arrivals did).
    """
    frames = []
    for labels, runs in study.groups():
        tables = [t for r in runs if (t := r.table("throughput")) is not None]
        if not tables:
            continue
        flows = (
            pl.concat(tables)
            .select(
                mbps=pl.col("throughput_bps") / 1e6, ideal=share(pl.col("throughput_bps"), pl.col("ideal_bps"), 100)
            )
            .sort("mbps")
            .collect()
        )
        if flows.height == 0:
            continue
        ranks = flows.height + 1 - kept_ranks(flows.height)[::-1]  # every one of the slowest, which come first here
        of_all = flows.select(
            flows=pl.len(),
            drawn=pl.lit(len(ranks)),
            mean=pl.col("mbps").mean(),
            **{f"p{q}": nearest_rank(pl.col("mbps"), Fraction(q, 100)) for q in (25, 50, 75)},
            deviation=pl.col("mbps").std(),
            ideal_mean=pl.col("ideal").mean(),
            **{f"ideal_p{q}": nearest_rank(pl.col("ideal"), Fraction(q, 100)) for q in (25, 75)},
        ).row(0, named=True)
        frames.append(
            flows[ranks - 1].select(
                *(pl.lit(value).alias(key) for key, value in labels.items()),
                "mbps",
                pl.Series("at_most", ranks / flows.height),
                *(pl.lit(value, None if value is not None else pl.Float64).alias(key) for key, value in of_all.items()),
            )
        )
    return pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame()


def nearest_rank(column: pl.Expr, fraction: Fraction) -> pl.Expr:
    """The percentile of a column by nearest rank, as of completion times; null without values."""
    return (
        column.drop_nulls()
        .sort()
        .map_batches(
            lambda values: pl.Series([statistics.nearest_rank(values.to_numpy(), fraction) if len(values) else None]),
            return_dtype=pl.Float64(),
            returns_scalar=True,
        )
    )


def size_groups(table: pl.DataFrame) -> list[str]:
    """The finer size groups of a summary in the order in which it lists them."""
    return table.filter(pl.col("grouping") == "size_group")["class"].unique(maintain_order=True).to_list()
