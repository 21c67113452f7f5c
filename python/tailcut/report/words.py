"""First sentences of the page: findings with intervals, also where there is nothing to boast of."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from tailcut.report.figures.base import significant, unit_for
from tailcut.report.study import Study
from tailcut.results import estimates, statistics
from tailcut.results.bounds import MARKS, is_certain
from tailcut.results.summary import SEPARATOR, notes
from tailcut.units import percent

JOBS = {"query": "queries", "transfer": "transfers", "shuffle": "shuffles", "sort": "sorts"}
ONE_SEED = "one seed does not tell it from chance"
NEGLIGIBLE = 2.0
"""Percent of change below which two times are called about equal when there is no interval."""


@dataclass(frozen=True)
class SchemeVerdict:
    """The summary's finding on one scheme against the baseline.

    Attributes:
        scheme: the scheme.
        kind: ``gain``, ``loss``, ``mixed`` or ``none``; what may be otherwise once all flows finish is ``none``.
        sentence: the same in words.
        detail: what it does to the mean of short flows and to long flows.
        strength: by how many percent times fall, averaged over the sweep.
        ranges: the change of the short flows' 99th percentile, of their mean, and of the long flows' mean.
    """

    scheme: str
    kind: str
    sentence: str
    detail: str
    strength: float
    ranges: tuple[str, str, str]


@dataclass(frozen=True)
class Subject:
    """The subject of the page's first sentences.

    Attributes:
        grouping: of the summary.
        name: the class or the kind of job.
        statistic: of its completion times.
        words: the same as a phrase.
    """

    grouping: str
    name: str
    statistic: str
    words: str


SHORT = Subject("class", "short", "p99", "the 99th percentile of short flows' completion times")
LONG = Subject("class", "long", "mean", "the mean of long flows' completion times")


def subject(table: pl.DataFrame) -> Subject:
    """Jobs where the traffic is about them, else the tail of short flows, else the mean of long ones."""
    kinds = table.filter(pl.col("grouping") == "job")["class"].unique(maintain_order=True).to_list()
    jobs = [_jobs(kind) for kind in kinds if kind != "pings"]
    for one in (*jobs, SHORT, LONG):
        if _about(table, one).filter(pl.col("value_us").is_not_null()).height:
            return one
    return SHORT


def _jobs(kind: str) -> Subject:
    """The tail of queries, each of which a person may wait for; the mean of longer jobs."""
    statistic, words = ("p99", "99th percentile of the") if kind == "query" else ("mean", "mean")
    return Subject("job", kind, statistic, f"the {words} completion time of {JOBS.get(kind, kind)}")


def _many(about: Subject) -> str:
    return JOBS.get(about.name, about.name) if about.grouping == "job" else f"{about.name} flows"


def _about(table: pl.DataFrame, about: Subject) -> pl.DataFrame:
    return table.filter(
        pl.col("grouping") == about.grouping, pl.col("class") == about.name, pl.col("statistic") == about.statistic
    )


def verdicts(study: Study, table: pl.DataFrame) -> list[SchemeVerdict]:
    """Returns a verdict per scheme other than the baseline, on the 99th percentile of short flows (see ``subject``).

    Args:
        study: the experiment.
        table: ``tables.curves`` of it.
    """
    backend = study.backends[0] if study.backends else ""
    about = subject(table)
    of_backend = table.filter(pl.col("backend") == backend, pl.col("change").is_not_null())
    found = []
    for scheme in study.schemes:
        if scheme == study.baseline:
            continue
        rows = of_backend.filter(pl.col("scheme") == scheme)
        tail = _distinct(_about(rows, about)).to_dicts()
        rows = rows.filter(pl.col("grouping") == "class")
        if tail:
            kind, sentence = _tail(study, scheme, tail, about.words)
            if kind == "none" and about is SHORT:
                mean = rows.filter(pl.col("class") == "short", pl.col("statistic") == "mean").to_dicts()
                sentence += _mean(study, mean)
            strength = -sum(row["change"] for row in tail) / len(tail)
            ranges = (_range(rows, "short", "p99"), _range(rows, "short", "mean"), _range(rows, "long", "mean"))
            found.append(SchemeVerdict(scheme, kind, sentence, _detail(ranges), strength, ranges))
    return found


def _distinct(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without those that repeat another one's numbers: points of a sweep that are one run, and so one point."""
    numbers = [name for name, kind in rows.schema.items() if kind.is_float() and name not in ("x", "point")]
    return rows.unique(numbers, keep="first", maintain_order=True)


def headline(study: Study, table: pl.DataFrame, throughput: pl.DataFrame | None = None) -> str:
    """The page's first sentence: the strongest verdict, or why there is none.

    Args:
        study: the experiment.
        table: ``tables.curves`` of it.
        throughput: ``tables.throughput`` of it, which is told where no flow and no job has finished.
    """
    found = verdicts(study, table)
    if not found:
        return _alone(study, table, throughput)
    order = {"gain": 0, "mixed": 1, "loss": 2, "none": 3}
    return min(found, key=lambda verdict: (order[verdict.kind], -verdict.strength)).sentence


def _tail(study: Study, scheme: str, rows: list[dict[str, Any]], what: str) -> tuple[str, str]:
    """Returns the kind of change of the page's subject, and the sentence on it."""
    better = [row for row in rows if _sign(row) < 0]
    worse = [row for row in rows if _sign(row) > 0]
    open_ = [row for row in rows if _seen(row) and not _sign(row)]
    source = _source(study.backends[0])
    if not better and not worse:
        least, most = max(r["change"] for r in rows), min(r["change"] for r in rows)
        span = f"changes between {change(least)} and {change(most)}" if len(rows) > 1 else f"change of {change(least)}"
        told = "and every interval holds zero" if _has_interval(rows) else "too little to call a difference"
        if open_:
            where = f" at {len(open_)} of {len(rows)} points of the sweep" if len(rows) > 1 else ""
            told = f"and unfinished flows leave open which way it goes{where}"
        elif lacking := _lacking(rows):
            at = f"{_interval(rows[0])}" if len(rows) == 1 else ""
            return "none", (
                f"{scheme} changes {what}{source} by {_span(rows)}{at} against {study.baseline}; {'; '.join(lacking)}."
            )
        return "none", f"{scheme} shows no clear effect on {what}{source}: {span} against {study.baseline}, {told}."
    if better and worse:
        best, worst = min(better, key=_change), max(worse, key=_change)
        return "mixed", (
            f"{scheme} cuts {what} by {_size(best)}{_where(study, best)}, but lengthens it by {_size(worst)}"
            f"{_where(study, worst)}{source}."
        )
    kind, verb, clear = ("gain", "cuts", better) if better else ("loss", "lengthens", worse)
    extreme = max(clear, key=lambda row: abs(row["change"]))
    sentence = f"{scheme} {verb} {what} by {_size(extreme)}{_where(study, extreme)}{source}"
    if len(rows) == 1:
        return kind, f"{sentence} against {study.baseline}."
    if len(clear) == len(rows):
        least = percent(min(abs(row["change"]) for row in clear))
        return kind, f"{sentence}, and by at least {least} % at every other point of the sweep."
    told = "the change is clear" if _has_interval(rows) else f"it exceeds {NEGLIGIBLE:.0f} %"
    rest = f", and unfinished flows leave open which way it goes at {len(open_)}" if open_ else ""
    return kind, f"{sentence}; {told} at {len(clear)} of {len(rows)} points of the sweep{rest}."


def _source(backend: str) -> str:
    """Returns the clause that names the backend of a sentence's numbers; empty for the simulator."""
    return {"sim": "", "model": " according to the model"}.get(backend, " over real kernels")


def _mean(study: Study, rows: list[dict[str, Any]]) -> str:
    """Returns the addition on the mean of short flows where the tail is undecided; empty if the mean is, too."""
    clear = [row for row in rows if _sign(row)]
    if not clear:
        return ""
    extreme = max(clear, key=lambda row: abs(row["change"]))
    verb = "falls" if extreme["change"] < 0 else "rises"
    return f" Their mean {verb} by {_size(extreme)}{_where(study, extreme)}."


def _detail(ranges: tuple[str, str, str]) -> str:
    """The means as a clause."""
    named = (("short", ranges[1]), ("long", ranges[2]))
    return "; ".join(f"mean of {name} flows {change}" for name, change in named if change)


def _range(rows: pl.DataFrame, name: str, statistic: str) -> str:
    """The change of a statistic from its best to its worst point; empty if there is none."""
    found = rows.filter(pl.col("class") == name, pl.col("statistic") == statistic).sort("change")
    if found.height == 0:
        return ""
    ends = found.select("change", "change_bound").rows()
    low, high = change(*ends[0]), change(*ends[-1])
    return "unchanged" if low == high == change(0) else low if low == high else f"{low} to {high}"


def _alone(study: Study, table: pl.DataFrame, throughput: pl.DataFrame | None) -> str:
    """Returns the sentences where there is nothing to compare."""
    about = subject(table)
    told = _about(table, about).filter(pl.col("value_us").is_not_null())
    backend = next((name for name in study.backends if name in told["backend"]), "")
    rows = told.filter(pl.col("backend") == backend)
    if rows.height == 0:
        if not study.measured and study.lab.unfaithful:
            return f"No number is shown: {unfaithful(study)}; --with-unfaithful includes them."
        if throughput is not None and throughput.height and throughput["ideal_mean"].null_count() < throughput.height:
            return _speed(study, throughput)
        return "No flow runs to its end here: the experiment is about its links and flows over time."
    unit, size = unit_for(rows["value_us"])
    scheme = rows["scheme"][0]
    ours = rows.filter(pl.col("scheme") == scheme)
    times = ours["value_us"].to_list()
    span = f"{'at least ' if ours['lower_bound'].any() else ''}{significant(min(times) / size)} {unit}"
    if len(times) > 1:
        span += f" to {significant(max(times) / size)} {unit} over the sweep"
    alone = len(study.schemes) > 1 and rows["scheme"].n_unique() == 1
    others = "; no other scheme has results to compare it with" if alone else ""
    return f"{about.words[0].upper()}{about.words[1:]} under {scheme} is {span}{_source(backend)}{others}."


def _speed(study: Study, throughput: pl.DataFrame) -> str:
    """Returns the mean share of the ideal throughput of long flows, at the point that the page shows first."""
    points = throughput["point"].unique(maintain_order=True).to_list()
    point = study.points[len(study.points) // 2]
    at = throughput.filter(
        pl.col("cell") == study.cells[0], pl.col("point") == (point if point in points else points[0])
    )
    means = at.select("scheme", "ideal_mean").drop_nulls().unique(maintain_order=True)
    shares = [
        f"{share:.0f} % under {scheme}" for scheme, share in means.sort("ideal_mean", descending=True).iter_rows()
    ]
    where = f" at {study.x.name} {point}" if study.x else ""
    return f"Long flows reach this share of their ideal throughput{where} on average: {', '.join(shares)}."


def _sign(row: dict[str, Any]) -> int:
    """Returns the sign as ``_seen`` does; 0 also where it may change once all flows finish."""
    return _seen(row) if is_certain(row["change"], row["change_bound"]) else 0


def _seen(row: dict[str, Any]) -> int:
    """Returns the sign of a change whose interval excludes zero, else 0.

    That takes a star; where there is no interval to expect, as of the model or of seeds that all gave the same, its
    size decides. What unfinished flows leave open is told from zero here by its interval.
    """
    low, high = row["change_ci_low"], row["change_ci_high"]
    clear = False
    if low is None or high is None:
        clear = row["change_seeds"] != 1 and abs(row["change"]) > NEGLIGIBLE
    elif low > 0 or high < 0:
        clear = row["significant"] or not is_certain(row["change"], row["change_bound"])
    return 0 if not clear else 1 if row["change"] > 0 else -1


def _lacking(rows: list[dict[str, Any]]) -> list[str]:
    """Returns what rows with an apparent effect lack for a star; empty if they lack nothing."""
    found: dict[str, None] = {}
    for row in rows:
        low, high = row["change_ci_low"], row["change_ci_high"]
        if row["change_seeds"] == 1 and abs(row["change"]) > NEGLIGIBLE:
            found[ONE_SEED] = None
        elif low is not None and high is not None and (low > 0 or high < 0):
            notes = (row["change_note"] or "").split(SEPARATOR)
            found |= dict.fromkeys(note for note in notes if note.startswith(estimates.NO_STAR))
    return [*found]


def _span(rows: list[dict[str, Any]]) -> str:
    changes = [row["change"] for row in rows]
    low, high = change(min(changes)), change(max(changes))
    return low if low == high else f"{low} to {high}"


def _interval(row: dict[str, Any]) -> str:
    low, high = row["change_ci_low"], row["change_ci_high"]
    return "" if low is None or high is None else f" (95 % interval {change(low)} to {change(high)})"


def _change(row: dict[str, Any]) -> float:
    return float(row["change"])


def _has_interval(rows: list[dict[str, Any]]) -> bool:
    return all(row["change_ci_low"] is not None for row in rows)


def _size(row: dict[str, Any]) -> str:
    """A change that ``_sign`` tells as a positive number with its interval."""
    bound = "at least " if row["change_bound"] else ""
    sign = 1 if row["change"] > 0 else -1
    low, high = row["change_ci_low"], row["change_ci_high"]
    if low is None or high is None:
        return f"{bound}{percent(abs(row['change']))} % (no interval)"
    ends = sorted((sign * low, sign * high))
    digits = 0 if ends[1] - ends[0] >= 2 else 1
    said, least, most = (f"{'−' * (value < 0)}{percent(abs(value), digits)}" for value in (abs(row["change"]), *ends))
    return f"{bound}{said} % (95 % interval {least} to {most} %)"


def change(percents: float, bound: str | None = None) -> str:
    """A change in time: −30 % is 30 % less, and ≤ −30 % at least 30 % less."""
    size = percent(abs(percents))
    return f"{MARKS[bound] if bound else ''}{'±' if size == '0' else '−' if percents < 0 else '+'}{size} %"


def _where(study: Study, row: dict[str, Any]) -> str:
    place = [f"{study.x.name} {row['point']}"] if study.x else []
    place += [row["cell"]] if row["cell"] else []
    return f" at {', '.join(place)}" if place else ""


def agreement(table: pl.DataFrame) -> str:
    """Returns how far real kernels and the simulator agree; empty where there are not both.

    Args:
        table: ``tables.against`` of a study.
    """
    if table.height == 0:
        return ""
    parts = []
    for name, statistic, what in (
        ("short", "mean", "in the mean of short flows"),
        ("short", "p99", "in their 99th percentile"),
        ("long", "mean", "in the mean of long flows"),
    ):
        found = table.filter(pl.col("class") == name, pl.col("statistic") == statistic)["change"].to_list()
        if found:
            low, high = (change(ends) for ends in (min(found), max(found)))
            parts.append(f"{low if low == high else f'{low} to {high}'} {what}")
    counts = table["n_seeds"].unique().sort().to_list()
    seeds = " to ".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]]))
    seeds += " seed that both have" if counts[-1] == 1 else " seeds that both have"
    return f"Real kernels differ from the simulator by {', '.join(parts)}, over {seeds}." if parts else ""


def unfaithful(study: Study) -> str:
    """Returns the number of runs over kernels that the machine could not carry, as a clause."""
    which = f"{study.lab.unfaithful} of {len(study.lab.finished)} runs over real kernels"
    verb = "is" if study.lab.unfaithful == 1 else "are"
    return f"{which} {verb} not faithful, since the machine could not keep them on time"


def cautions(study: Study, table: pl.DataFrame) -> list[str]:
    """Returns the cautions about figures: missing runs, unfinished flows, a single seed."""
    said = list(study.same)
    if not study.runs:
        whose = ["real kernels'"] if study.over_kernels else []
        whose += ["the queueing model's"] if "model" in study.backends else []
        said.append("Nothing has been simulated here" + (f": all numbers are {' or '.join(whose)}." if whose else "."))
    if study.missing:
        said.append(
            f"{study.missing} of {len(study.plan['runs'])} runs {'is' if study.missing == 1 else 'are'} missing: run"
            " the experiment again to make them. Points without runs are not drawn."
        )
    if study.lab.unfaithful:
        fate = "left out of all figures"
        if study.lab.with_unfaithful:
            fate = "included on request, so that statements about kernels are not reliable"
        said.append(
            f"{unfaithful(study)}, and {fate}: the verdicts, with their reasons, are under “Runs over real kernels”."
        )
    if "lab-kernel" in study.backends:
        said.append(
            "Kernel switches do not delay a packet at an idle port: short flows and handshakes are too fast by one"
            " packet time per idle hop, so do not compare them with those of other backends. Queues and rates under"
            " load are right."
        )
    of_class = table.filter(
        pl.col("grouping") == "class", pl.col("statistic") == "mean", pl.col("n_unfinished") > 0, pl.col("n_flows") > 0
    )
    if of_class.height:
        share = (of_class["n_unfinished"] / of_class["n_flows"]).alias("share")
        worst = of_class.with_columns(share).sort("share", descending=True).row(0, named=True)
        enter = "are left out"
        if study.unfinished_policy == "censored":
            enter = "enter with the time they had been running, where others of their kind have finished"
        when = "when their runs ended"
        if study.unfinished_policy == "by":
            when = f"{study.plan['measure']['unfinished']['by']} after their runs began"
        said.append(
            f"{of_class['n_unfinished'].sum():,} flows had not finished {when}; they {enter}. The most:"
            f" {significant(worst['share'] * 100)} % of {worst['class']} flows under {worst['scheme']}"
            f"{_where(study, worst)}."
        )
        if table["change_bound"].is_not_null().any():
            said[-1] += (
                " Such times are lower bounds, and changes from or to them are bounds as well (≥ and ≤); a change"
                " between two lower bounds (~) may be more or less."
            )
    fewest = statistics.fewest("p99")
    for about in dict.fromkeys(one for one in (subject(table), SHORT) if one.statistic == "p99"):
        few = _about(table, about).filter(pl.col("value_us").is_not_null(), pl.col("n_flows").is_between(1, fewest - 1))
        if few.height:
            said.append(
                f"Where there are fewer than {fewest} {_many(about)}, as under {few['scheme'][0]}"
                f"{_where(study, few.row(0, named=True))}, their 99th percentile is the slowest of them: one lost"
                " packet decides it."
            )
    noted = notes(table.filter(pl.col("grouping") == "class", pl.col("statistic").is_in(["mean", "p99"])))
    if starless := [note for note in noted if note.startswith((estimates.NO_STAR, estimates.GAP))]:
        said.append(" ".join(f"{note[0].upper()}{note[1:]}." for note in starless))
    cut = sorted({name for run in study.measured for name in run.record.get("truncated_series", [])})
    if cut:
        said.append(
            f"Time series end before their run does, at {study.configuration['series']['max_samples']:,} samples:"
            f" {', '.join(cut)}. A longer series.interval or a larger series.max_samples covers the whole run."
        )
    seeds = len({run.planned["seed"] for run in study.measured})
    if seeds == 1:
        said.append("All numbers come from one seed. Another would give others; more seeds (--seeds 5) give intervals.")
    elif seeds == 2:
        said.append("Two seeds leave the intervals very wide; more seeds (--seeds 5) narrow them.")
    return said
