"""The summary as a table that reads well, with changes against the baseline."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from tailcut.plan import Plan, Value, short_keys, title, written
from tailcut.results import estimates
from tailcut.results.bounds import MARKS
from tailcut.results.lab_runs import is_caveat
from tailcut.results.statistics import fewest
from tailcut.results.summary import PARTS_OF, axes_schema
from tailcut.results.summary import notes as change_notes
from tailcut.units import count, microseconds, number, percent

NAMES = {"mean": "mean", "p50": "median", "p99": "p99", "p99_9": "p99.9", "slowest": "slowest 1 %"}
AT_LEAST_MARK = "≥ "
SHOWN = {"short": ("mean", "p99", "p99_9"), "long": ("mean", "p99"), "job": ("mean", "p50", "p99")}
"""The statistics of each class of flows in the short tables."""
UNFINISHED = "un-\nfinished"
WIDEST = 10_000
Row = dict[str, Any]


class WholeTable(Table):
    """A table of numbers, as wide as they need: a number that lost its unit or its sign would be another one.

    Print it with ``crop=False``. Where there is less room, the terminal breaks its lines.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Take the room that all columns need."""
        needed = self.__rich_measure__(console, options.update(max_width=WIDEST)).maximum
        return super().__rich_console__(console, options.update(max_width=max(options.max_width, needed)))


def summary_table(
    plan: Plan, summary: pl.DataFrame, totals: pl.DataFrame, bandwidths: pl.DataFrame | None = None
) -> RenderableType:
    """Completion times of short and of long flows, a line per point and scheme, with changes against the baseline.

    Args:
        plan: what was asked.
        summary: as ``Result.summary`` gives it.
        totals: as ``Result.totals`` gives it.
        bandwidths: as ``Result.bus_bandwidths`` gives it.
    """
    axes = list(axes_schema(plan))
    notes = _Notes()
    lines = summary.partition_by([*axes, "scheme", "backend"], maintain_order=True)
    lines.sort(key=lambda line: _order(plan, axes, line.row(0, named=True)))
    short = _table(plan, summary, "Short flows")
    long = _table(plan, summary, "Long flows, and what was carried")
    for table, shown in ((short, SHOWN["short"]), (long, SHOWN["long"])):
        for statistic in shown:
            table.add_column(NAMES[statistic], justify="right", no_wrap=True)
            table.add_column("", justify="right", no_wrap=True)
    rated = "long_throughput_bps" in totals.columns and totals["long_throughput_bps"].null_count() < totals.height
    short.add_column(UNFINISHED, justify="right", no_wrap=True)
    names = (UNFINISHED, "bytes\nfinished", "links\nbusy", *(("long\nflows", "of\nideal") if rated else ()))
    for name in names:
        long.add_column(name, justify="right", no_wrap=True)

    carried = {(row["scheme"], *(row[axis] for axis in axes)): row for row in totals.iter_rows(named=True)}
    previous: tuple[Any, ...] | None = None
    for line in lines:
        first = line.row(0, named=True)
        point = tuple(first[axis] for axis in axes)
        if previous not in (None, point):
            short.add_section()
            long.add_section()
        head = _head(plan, summary, first, point if point != previous else None, len(axes))
        previous = point
        rows = {(row["class"], row["statistic"]): row for row in line.iter_rows(named=True)}
        short.add_row(*head, *_cells(rows, "short", SHOWN["short"], notes), _unfinished(rows.get(("short", "mean"))))
        simulated = carried.get((first["scheme"], *point)) if first["backend"] == "sim" else None
        long.add_row(
            *head,
            *_cells(rows, "long", SHOWN["long"], notes),
            _unfinished(rows.get(("long", "mean"))),
            "" if simulated is None else _percentage(simulated["finished_bytes"], simulated["offered_bytes"]),
            "" if simulated is None else f"{simulated['carried_load']:.0%}",
            *(_speed(simulated) if rated else ()),
        )
    jobs = [
        _job_table(plan, summary, kind, lines, notes, _bandwidths_of(kind, bandwidths, axes))
        for kind in _kinds(summary)
    ]
    heading = Text(title(plan) + "\n", style="bold")
    return Group(heading, short, long, *jobs, *_headers(totals), *notes.lines(), *_legend(plan, summary))


def _headers(totals: pl.DataFrame) -> list[Text]:
    """Returns a line per scheme with dropped headers, answers or pulls, which make flows wait for timers."""
    if "headers_dropped" not in totals.columns:
        return []
    counts = totals.group_by("scheme", maintain_order=True).agg(pl.col("headers_dropped", "headers_returned").sum())
    return [
        Text(
            f"{row['scheme']}: {row['headers_dropped']:,} headers, answers and pulls had no room and were dropped;"
            f" {row['headers_returned']:,} headers went back to their senders (queue.header_limit).",
            "yellow",
        )
        for row in counts.filter(pl.col("headers_dropped") > 0).iter_rows(named=True)
    ]


def _speed(totals: Row | None) -> tuple[str, str]:
    """Returns the mean throughput of long flows, and its share of the ideal."""
    if totals is None or totals["long_throughput_bps"] is None:
        return "", ""
    ideal = totals["long_share_of_ideal"]
    return f"{count(totals['long_throughput_bps'])}bps", "" if ideal is None else f"{ideal:.0%}"


def _kinds(summary: pl.DataFrame) -> list[str]:
    kinds: list[str] = summary.filter(pl.col("grouping") == "job")["class"].unique(maintain_order=True).to_list()
    return kinds


def _bandwidths_of(kind: str, bandwidths: pl.DataFrame | None, axes: Sequence[str]) -> dict[tuple[Any, ...], float]:
    """Returns the bus bandwidths of a kind of collective operation in GB/s, by scheme and point."""
    if bandwidths is None:
        return {}
    rows = bandwidths.filter(pl.col("kind") == kind).iter_rows(named=True)
    return {(row["scheme"], *(row[axis] for axis in axes)): row["busbw_gb_per_s"] for row in rows}


def _job_table(
    plan: Plan,
    summary: pl.DataFrame,
    kind: str,
    lines: Sequence[pl.DataFrame],
    notes: "_Notes",
    bandwidths: dict[tuple[Any, ...], float],
) -> Table:
    """Completion times of one kind of job, and the bus bandwidth of collective operations."""
    axes = list(axes_schema(plan))
    table = _table(plan, summary, f"Jobs: {kind}")
    statistics = SHOWN["job"]
    for statistic in statistics:
        table.add_column(NAMES[statistic], justify="right", no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
    table.add_column(UNFINISHED, justify="right", no_wrap=True)
    if bandwidths:
        table.add_column("bus\nGB/s", justify="right", no_wrap=True)
    previous: tuple[Any, ...] | None = None
    for line in lines:
        of_kind = line.filter(pl.col("grouping") == "job", pl.col("class") == kind)
        if of_kind.height == 0:
            continue
        first = of_kind.row(0, named=True)
        point = tuple(first[axis] for axis in axes)
        if previous not in (None, point):
            table.add_section()
        head = _head(plan, summary, first, point if point != previous else None, len(axes))
        previous = point
        rows = {(row["class"], row["statistic"]): row for row in of_kind.iter_rows(named=True)}
        bandwidth = bandwidths.get((first["scheme"], *point))
        rate = [] if not bandwidths else ["" if bandwidth is None else f"{bandwidth:.3g}"]
        table.add_row(*head, *_cells(rows, kind, statistics, notes), _unfinished(rows.get((kind, "mean"))), *rate)
    return table


def _head(plan: Plan, summary: pl.DataFrame, row: Row, point: tuple[Any, ...] | None, axes: int) -> list[str | Text]:
    """The first cells of a row: the point unless it is the previous row's, scheme, backend where there are several."""
    head: list[str | Text] = [""] * axes if point is None else [_value(value) for value in point]
    head.append(Text(row["scheme"], style="bold" if row["scheme"] == plan["baseline"] else ""))
    if summary["backend"].n_unique() > 1:
        head.append(row["backend"])
    return head


def _table(plan: Plan, summary: pl.DataFrame, title: str) -> Table:
    table = WholeTable(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        title=Text(title, style="bold cyan"),
        title_justify="left",
    )
    for name in short_keys(axes_schema(plan)).values():
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("scheme", no_wrap=True)
    if summary["backend"].n_unique() > 1:
        table.add_column("backend", no_wrap=True)
    return table


def _cells(rows: dict[tuple[str, str], Row], name: str, statistics: Iterable[str], notes: "_Notes") -> list[Text]:
    found = [rows.get((name, statistic)) for statistic in statistics]
    return [cell for row in found for cell in (_time(row, notes), _change(row))]


def full_table(plan: Plan, summary: pl.DataFrame) -> RenderableType:
    """Every row of the summary, with its interval; where a cell is empty, a note says why."""
    notes = _Notes()
    axes = list(axes_schema(plan))
    table = WholeTable(
        box=box.SIMPLE_HEAD, pad_edge=False, title=Text(plan["title"], style="bold"), title_justify="left"
    )
    for name in [*short_keys(axes).values(), "scheme", "backend", "class", "statistic"]:
        table.add_column(name, no_wrap=True)
    for name in ["FCT", "95 % interval", "/ ideal", "change", "95 % interval", "flows", "unfinished"]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("note")
    for row in summary.iter_rows(named=True):
        table.add_row(
            *(_value(row[axis]) for axis in axes),
            Text(row["scheme"]),
            row["backend"],
            Text(f"{PARTS_OF[row['grouping']]}, {row['class']}" if row["grouping"] in PARTS_OF else row["class"]),
            NAMES[row["statistic"]],
            "—" if row["value_us"] is None else _bound(row["lower_bound"]) + microseconds(row["value_us"]),
            _interval(row["ci_low"], row["ci_high"], microseconds),
            "—" if row["normalised"] is None else _bound(row["normalised_lower_bound"]) + f"{row['normalised']:.2f}",
            _change(row),
            _interval(row["change_ci_low"], row["change_ci_high"], lambda value: f"{_percent(value)}%"),
            count(row["n_flows"]),
            count(row["n_unfinished"]),
            Text(notes.mark(row["reason"]) + notes.mark(row["change_note"]), style="dim"),
        )
    return Group(table, *notes.lines())


def _order(plan: Plan, axes: Sequence[str], row: Row) -> tuple[Any, ...]:
    values = {axis["key"]: axis["values"] for axis in plan["sweep"]}
    at = [next((i for i, value in enumerate(values[axis]) if _same(value, row[axis])), -1) for axis in axes]
    return (*at, plan["schemes"].index(row["scheme"]), row["backend"] != "sim")


def _same(value: Value, cell: object) -> bool:
    return value == cell or written(value) == cell


def _value(value: object) -> Text:
    return Text(number(value) if isinstance(value, float) else str(value))


def _time(row: Row | None, notes: "_Notes") -> Text:
    if row is None or row["value_us"] is None:
        return Text(f"— {notes.mark(row['reason'] if row else None)}", style="dim")
    mark = f" {notes.mark(row['reason'])}" if is_caveat(row["reason"]) else ""
    return Text(_bound(row["lower_bound"]) + microseconds(row["value_us"]) + mark)


def _bound(is_bound: bool | None) -> str:
    return AT_LEAST_MARK if is_bound else ""


def _change(row: Row | None) -> Text:
    """Returns the change against the baseline: green if faster, with a star if its interval excludes zero, else dim."""
    if row is None or row["change"] is None:
        return Text("")
    colour = "green" if row["change"] < 0 else "red"
    mark = MARKS[row["change_bound"]] if row["change_bound"] else ""
    sure = row["significant"]
    return Text(f"{mark}{_percent(row['change'])}%{'*' if sure else ' '}", style=colour if sure else f"dim {colour}")


def _percent(change: float) -> str:
    text = percent(abs(change) * 100)
    return text if text == "0" else f"{'−' if change < 0 else '+'}{text}"


def _percentage(part: float, whole: float) -> str:
    """A share that shows 100 % for nothing less than all."""
    if part >= whole:
        return "100%"
    return f"{min(99.9, 100 * part / whole):.1f}%"


def _interval(low: float | None, high: float | None, show: Callable[[float], str]) -> str:
    if low is None or high is None:
        return ""
    return " … ".join(show(value) for value in (low, high))


def _unfinished(row: Row | None) -> Text:
    if row is None or not row["n_flows"]:
        return Text("")
    some = row["n_unfinished"] > 0
    return Text(f"{row['n_unfinished']} of {row['n_flows']}" if some else "0", style="yellow" if some else "")


def _legend(plan: Plan, summary: pl.DataFrame) -> Iterable[Text]:
    lines = []
    changed = _shown(summary).filter(pl.col("change").is_not_null())
    backends = changed["backend"].unique().to_list()
    if "model" in backends:
        lines.append(f"The model's changes are of the slowdown (FCT / best possible) against {plan['baseline']}'s.")
    if set(backends) - {"model"}:
        alone = "; one seed gives no interval" if changed["change_seeds"].max() == 1 else ""
        lines.append(f"Changes are against {plan['baseline']}, of the flows of all seeds; below zero is faster{alone}.")
        if changed["significant"].any():
            lines.append(f"*: the 95 % interval over seeds excludes zero ({estimates.OFTEN}).")
    lines += [f"{note[0].upper()}{note[1:]}." for note in change_notes(changed)]
    if summary["lower_bound"].any():
        lines.append("≥: unfinished flows count with the time they had been running, so the truth is at least this.")
        if summary["change_bound"].is_not_null().any():
            lines.append("A change with one such time is a bound, too (≥, ≤); with two it is neither (~).")
    elif summary["n_unfinished"].max():
        lines.append("Unfinished flows are left out of the times.")
    for statistic, what in (("p99", "flow"), ("p99_9", "flow"), ("p99", "job")):
        least = fewest(statistic)
        few = pl.col("n_flows").is_between(1, least - 1) & pl.col("value_us").is_not_null()
        of_jobs = (pl.col("grouping") == "job") == (what == "job")
        if _shown(summary).filter(pl.col("statistic") == statistic, of_jobs, few).height:
            lines.append(f"{NAMES[statistic]} of fewer than {least:,} {what}s is the slowest {what}.")
    return [Text(line, style="dim") for line in lines]


def _shown(summary: pl.DataFrame) -> pl.DataFrame:
    """The rows of a summary that are in its short tables."""
    shown = {
        "job": ("job", pl.col("grouping") == "job"),
        "short": ("class", pl.col("class") == "short"),
        "long": ("class", pl.col("class") == "long"),
    }
    return summary.filter(
        pl.any_horizontal(
            (pl.col("grouping") == grouping) & which & pl.col("statistic").is_in(SHOWN[name])
            for name, (grouping, which) in shown.items()
        )
    )


class _Notes:
    """Footnotes: reasons of empty cells and caveats, each once."""

    def __init__(self) -> None:
        self._reasons: dict[str, int] = {}

    def mark(self, reason: str | None) -> str:
        if reason is None:
            return ""
        return f"[{self._reasons.setdefault(reason, len(self._reasons) + 1)}]"

    def lines(self) -> list[Text]:
        return [Text(f"[{number}] {reason}", style="dim") for reason, number in self._reasons.items()]
