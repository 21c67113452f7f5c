"""Parts of completion times (``measure.attribution``), of the mean flow and of the slowest."""

import math
from collections.abc import Iterable
from typing import Any

import polars as pl

from tailcut.report.study import Run, Study

PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "on the way": ("on the way", ("transmission", "propagation")),
    "window": (
        "waiting for the window",
        ("window_slow_start", "window_congestion", "window_receiver", "pacing", "pull", "delayed_ack"),
    ),
    "own interface": ("in their own interfaces", ("interface_own", "interface_others")),
    "queues up": (
        "in queues on the way up",
        ("queue_up2_own", "queue_up2_others", "queue_up3_own", "queue_up3_others"),
    ),
    "queues down": (
        "in queues on the way down",
        (
            "queue_down3_own", "queue_down3_others", "queue_down2_own", "queue_down2_others",
            "queue_down1_own", "queue_down1_others",
        ),
    ),
    "pauses": ("behind paused links", ("pause",)),
    "loss recovery": ("recovering from losses", ("recovery", "reordering", "probe")),
    "timers": ("waiting for timers", ("timeout", "syn_timeout")),
    "the copy": ("waiting for the copy to be opened", ("copy_delay",)),
}  # fmt: skip
"""A group of parts in figures and in sentences, and the columns ``part_<name>_ns`` that it adds up."""
SLICES = {"mean flow": 1.0, "slowest 1 %": 0.01, "slowest 0.1 %": 0.001}
"""The share of the flows in each slice."""
FEWEST = 10
"""A share of fewer flows than this says little and is left out."""


def table(study: Study) -> pl.DataFrame:
    """The mean time of each part, by scheme, point and slice, all seeds pooled; no row without attribution.

    Columns: scheme, cell, point, backend, slice, part, us, share (of the slice's mean completion time, in percent),
    fct_us, flows (in the slice), class (of flows: short ones if there are any). Flows that have not finished are left
    out.
    """
    rows: list[dict[str, Any]] = []
    for labels, runs in study.groups():
        flows = _flows(runs)
        if flows.is_empty():
            continue
        short = flows.filter(pl.col("class") == "short")
        kind, looked_at = ("all", flows) if short.is_empty() else ("short", short)
        place = {name: labels[name] for name in ("scheme", "cell", "point")}
        ranked = looked_at.sort("fct_ns", descending=True)
        for name, share in SLICES.items():
            count = math.ceil(share * ranked.height)
            if share < 1 and count < FEWEST:
                continue
            rows.extend({**place, **row, "class": kind} for row in _slice(name, ranked.head(count)))
    return pl.DataFrame(rows, infer_schema_length=None)


def _flows(runs: Iterable[Run]) -> pl.DataFrame:
    parts = []
    for run in runs:
        flows = run.table("flows")
        if flows is None or not any(name.startswith("part_") for name in flows.collect_schema().names()):
            return pl.DataFrame()
        kept = flows.filter(pl.col("fct_ns").is_not_null())
        parts.append(kept.select("class", "fct_ns", pl.selectors.starts_with("part_")).collect())
    return pl.concat(parts)


def _slice(name: str, flows: pl.DataFrame) -> list[dict[str, Any]]:
    mean = flows.mean().row(0, named=True)
    whole = mean["fct_ns"]
    rows = []
    for part, (_, columns) in PARTS.items():
        ns = sum(mean[f"part_{column}_ns"] or 0.0 for column in columns)
        rows.append(
            {
                "backend": "sim", "slice": name, "part": part, "us": ns / 1e3, "share": 100 * ns / (whole or 1),
                "fct_us": whole / 1e3, "flows": flows.height,
            }
        )  # fmt: skip
    return rows


def sentence(study: Study, parts: pl.DataFrame) -> str:
    """Returns the sentence on the largest part of the baseline's slowest 1 %, and that part of the others."""
    if parts.height == 0 or study.baseline is None:
        return ""
    point = study.points[len(study.points) // 2]
    here = parts.filter(slice="slowest 1 %", point=point, cell=study.cells[0])
    of_baseline = here.filter(scheme=study.baseline).sort("share", descending=True, maintain_order=True)
    if of_baseline.is_empty():
        return ""
    first = of_baseline.row(0, named=True)
    words, _ = PARTS[first["part"]]
    where = f" at {study.x.name} {point}" if study.x else ""
    kind = "short flows" if first["class"] == "short" else "flows"
    told = f"{study.baseline}'s slowest 1 % of {kind}{where} spend {first['share']:.0f} % of their time {words}"
    others = here.filter(pl.col("part") == first["part"], pl.col("scheme") != study.baseline)
    return "; ".join([told, *(f"{row['scheme']}'s {row['share']:.0f} %" for row in others.iter_rows(named=True))]) + "."
