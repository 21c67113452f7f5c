"""`make lab-table`: the lab's experiments over five seeds, over real kernels and in the simulator.

Half an hour of a machine that does nothing else. What is finished is kept: the same command goes on. Only
faithful runs count. Its tables go into docs/validation/kernels.md, and say where the two are further apart than they
should be.
"""

import argparse
import json
import math
import os
import platform
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import polars as pl
from lab_accept import ROOT, into_page

import tailcut
from tailcut.errors import RunError
from tailcut.results import estimates, statistics
from tailcut.results.store import Store

PAGE = ROOT / "docs/validation/kernels.md"
BEGIN, END = "<!-- made by make lab-table: begin -->", "<!-- made by make lab-table: end -->"
EXPERIMENTS = ("repnet", "mininet", "tinyflow", "permutation", "failed-link", "marks", "spraying", "transfers", "cubic")
SEEDS = 5
TRIES = 2
"""How often a run that was not faithful is made in all."""
MEAN, P99, POINTS = 0.10, 0.20, 5.0
"""How far kernels may be from the simulator: in mean and 99th percentile of short flows, and in a scheme's change."""
VERDICTS = "verdicts.jsonl"
NUMBER = re.compile(r"\d+(\.\d+)?")
LOST_SYN_NS = 900_000_000
"""A connection that took longer has waited for the first timeout, of a second."""
TIMES = (
    "| experiment | scheme | seeds | short flows | mean, ms: simulator | kernels | apart"
    " | 99th, ms: simulator | kernels | apart | lost SYN: simulator | kernels |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)
CHANGES = (
    "| experiment | scheme | change of the mean: simulator | kernels | points"
    " | of the 99th: simulator | kernels | points |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|"
)
STATISTICS = {"mean_ms": ("mean", MEAN), "p99_ms": ("99th percentile", P99)}


@dataclass(frozen=True)
class Side:
    """Statistics of a scheme's short flows, simulated or over kernels.

    Attributes:
        means_ms: their mean completion time of each seed.
        mean_ms: of all seeds together.
        p99_ms: of all seeds together, by nearest rank.
        lost: the number of handshakes that waited for the first timeout.
        flows: the number of short flows.
    """

    means_ms: list[float]
    mean_ms: float
    p99_ms: float
    lost: int
    flows: int


@dataclass(frozen=True)
class Row:
    """A scheme of an experiment, in the simulator and over kernels."""

    experiment: str
    scheme: str
    seeds: int
    simulated: Side
    real: Side
    baseline: "Row | None"
    """The row it is compared with, over the same seeds; None for the baseline itself."""


def side(flows: pl.DataFrame, seeds: list[int], horizon_ns: int) -> Side:
    """Returns the statistics of a scheme's short flows; an unfinished flow counts with the time until the run's end."""
    short = flows.filter((pl.col("class") == "short") & pl.col("seed").is_in(seeds)).with_columns(
        ms=pl.col("fct_ns").fill_null(horizon_ns - pl.col("start_ns")) / 1e6
    )
    ascending = np.sort(short["ms"].to_numpy())
    return Side(
        short.group_by("seed").agg(pl.col("ms").mean()).sort("seed")["ms"].to_list(),
        float(ascending.mean()),
        statistics.nearest_rank(ascending, Fraction(99, 100)),
        short.filter(pl.col("connect_ns").fill_null(horizon_ns) > LOST_SYN_NS).height,
        short.height,
    )


def rows(name: str, result: tailcut.Result) -> list[Row]:
    """An experiment's schemes: of the seeds of which both have a scheme and the first one, the lab faithfully."""
    horizon_ns = result.runs["end_ns"].max()  # when a run ends in which a flow is not done
    both = (result.flows, result.lab.flows.filter("faithful"))
    seeds_of: dict[str, set[int]] = {}
    for scheme in result.plan["schemes"]:
        each = [set(flows.filter(pl.col("scheme") == scheme)["seed"].unique().to_list()) for flows in both]
        seeds_of[scheme] = set.intersection(*each)

    def row(scheme: str, seeds: list[int], baseline: Row | None) -> Row:
        sides = [side(flows.filter(pl.col("scheme") == scheme), seeds, horizon_ns) for flows in both]
        return Row(name, scheme, len(seeds), *sides, baseline)

    first, *others = seeds_of
    found = [row(first, sorted(seeds_of[first]), None)] if seeds_of[first] else []
    compared = ((scheme, sorted(seeds_of[scheme] & seeds_of[first])) for scheme in others)
    found.extend(row(scheme, seeds, row(first, seeds, None)) for scheme, seeds in compared if seeds)
    return found


def apart(simulated: float, real: float) -> float:
    return real / simulated - 1


def change(baseline: float, value: float) -> float:
    """The change against the baseline in percent; below zero is faster."""
    return 100 * (value / baseline - 1)


def by_chance(row: Row) -> str:
    """How far apart the means of one seed are by chance: half the interval over seeds, at 95 %, in points."""
    each = [apart(*pair) for pair in zip(row.simulated.means_ms, row.real.means_ms, strict=True)]
    if len(each) == 1:
        return ""
    return f" ± {100 * estimates.student(len(each) - 1) * stdev(each) / math.sqrt(len(each)):.0f}"


def times(row: Row) -> str:
    """In the table of completion times."""
    simulated, real = row.simulated, row.real
    cells = [
        row.experiment,
        row.scheme,
        str(row.seeds),
        f"{simulated.flows:,}",
        f"{simulated.mean_ms:.1f}",
        f"{real.mean_ms:.1f}",
        f"{100 * apart(simulated.mean_ms, real.mean_ms):+.0f} %{by_chance(row)}",
        f"{simulated.p99_ms:,.0f}",
        f"{real.p99_ms:,.0f}",
        f"{100 * apart(simulated.p99_ms, real.p99_ms):+.0f} %",
        str(simulated.lost),
        str(real.lost),
    ]
    return f"| {' | '.join(cells)} |"


def changes(row: Row) -> dict[str, tuple[float, float]]:
    """By how much a scheme changes each statistic, in percent, in the simulator and over kernels."""
    if row.baseline is None:
        return {}
    pairs = ((row.baseline.simulated, row.simulated), (row.baseline.real, row.real))
    both = {name: [change(getattr(one, name), getattr(other, name)) for one, other in pairs] for name in STATISTICS}
    return {name: (simulated, real) for name, (simulated, real) in both.items()}


def changed(row: Row) -> str:
    """A row of the table of changes."""
    cells = [
        f"{simulated:+.0f} % | {real:+.0f} % | {real - simulated:+.0f}" for simulated, real in changes(row).values()
    ]
    return f"| {row.experiment} | {row.scheme} | {' | '.join(cells)} |"


def beyond(row: Row) -> list[str]:
    """Returns the statistics in which kernels differ from the simulator by more than the bounds."""
    found, of_changes = [], changes(row)
    for name, (what, most) in STATISTICS.items():
        share = apart(getattr(row.simulated, name), getattr(row.real, name))
        if abs(share) > most:
            found.append(f"{what} {100 * share:+.0f} %")
        simulated, real = of_changes.get(name, (0.0, 0.0))
        if abs(real - simulated) > POINTS:
            found.append(f"change of the {what} {real - simulated:+.0f} points")
    return found


def report(experiments: list[list[Row]], verdicts: list[dict[str, Any]]) -> str:
    """In Markdown: an experiment's first scheme is what its others are compared with."""
    each = [row for of_experiment in experiments for row in of_experiment]
    too_far = [f"- {row.experiment}, {row.scheme}: {', '.join(found)}" for row in each if (found := beyond(row))]
    lines = [
        TIMES,
        *(times(row) for row in each),
        "",
        CHANGES,
        *(changed(row) for row in each if row.baseline),
        "",
        f"Further apart than {100 * MEAN:.0f} % in the mean, {100 * P99:.0f} % in the 99th percentile or {POINTS:.0f}"
        f" points in a change: {len(too_far)} of {len(each)} schemes.",
        "",
        *(*too_far, ""),
        *counts(verdicts),
        "",
        f"Measured on {datetime.now(UTC):%Y-%m-%d} by `make lab-table`: Linux {platform.release().split('-')[0]},"
        f" {os.cpu_count()} processors.",
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def counts(verdicts: list[dict[str, Any]]) -> list[str]:
    """How many runs over kernels were faithful, and how often which reason kept others from counting."""
    said = f"{sum(not one['unfaithful'] for one in verdicts)} of {len(verdicts)} runs over kernels were faithful."
    of_experiments: dict[str, list[dict[str, Any]]] = {}
    for one in verdicts:
        of_experiments.setdefault(one["experiment"], []).append(one)
    return [
        f"{said} Runs that were not were made again.",
        "",
        "| experiment | runs | faithful |",
        "|---|---:|---:|",
        *(
            f"| {name} | {len(runs)} | {sum(not one['unfaithful'] for one in runs)} |"
            for name, runs in of_experiments.items()
        ),
        "",
        f"Why others were not, and how often: {'; '.join(reasons(verdicts)) or '–'}.",
    ]


def reasons(runs: list[dict[str, Any]]) -> list[str]:
    """Why runs were not faithful, the most frequent reason first; what differs from run to run is left out."""
    kinds = Counter(NUMBER.sub("…", reason) for one in runs for reason in one["unfaithful"])
    return [f"{kind}: {count}" for kind, count in kinds.most_common()]


@dataclass
class Work:
    """The state of the work: the directory of results, the time until which runs are begun, and verdicts."""

    directory: Path
    until: float
    verdicts: list[dict[str, Any]]

    def carry(self, name: str, seeds: int) -> None:
        """Makes the missing runs of an experiment for a number of seeds, simulated and over kernels."""
        experiment, out = self.experiment(name, seeds), self.directory / name
        result = self.made(name, seeds)
        for _ in range(TRIES):
            if not self.missing(result, seeds) or time.monotonic() > self.until:
                return
            print(f"{name}, seed {seeds} …", end=" ", flush=True)
            try:
                result = tailcut.run(experiment, on="lab", out=out, limit_seconds=120)
            except RunError as error:
                print(f"failed: {error}", flush=True)
                result = tailcut.open_results(out)
            self.note(name, result)

    @staticmethod
    def experiment(name: str, seeds: int) -> tailcut.Experiment:
        return tailcut.load(ROOT / f"experiments/lab/{name}.toml", seeds=seeds)

    def made(self, name: str, seeds: int) -> tailcut.Result:
        """Returns the results for a number of seeds, with the simulated runs made."""
        return tailcut.run(self.experiment(name, seeds), out=self.directory / name)

    @staticmethod
    def missing(result: tailcut.Result, seeds: int) -> bool:
        return result.lab.runs.filter("faithful").height < seeds * len(result.plan["schemes"])

    def note(self, name: str, result: tailcut.Result) -> None:
        """Write down what was made, and remove what was not faithful, so that it is made again."""
        known = {one["id"] for one in self.verdicts if not one["unfaithful"]}
        new = [one for one in result.lab.runs.iter_rows(named=True) if one["id"] not in known]
        for one in new:
            self.verdicts.append(
                {"experiment": name, **{key: one[key] for key in ("id", "scheme", "seed", "unfaithful")}}
            )
        with (self.directory / VERDICTS).open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in self.verdicts[len(self.verdicts) - len(new) :])
        for one in new:
            if one["unfaithful"]:
                Store.open(result.directory).remove_run(one["id"])
        print("; ".join(f"{one['scheme']}: {', '.join(one['unfaithful']) or 'faithful'}" for one in new), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="begin no runs later than this")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    parser.add_argument("--out", type=Path, default=ROOT / "results/lab-table")
    parser.add_argument("--no-page", action="store_true", help="leave the documentation as it is")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    noted = asked.out / VERDICTS
    verdicts = [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []
    work = Work(asked.out, time.monotonic() + 60 * asked.minutes, verdicts)
    # One seed of all before the next, so that whatever the time is enough for is even.
    for seeds, name in product(range(1, asked.seeds + 1), asked.only):
        if time.monotonic() < work.until:
            work.carry(name, seeds)
    found = [rows(name, work.made(name, asked.seeds)) for name in asked.only if (asked.out / name).exists()]
    if not any(found):
        print("no experiment has a seed of which all runs are faithful")
        return 1
    text = report([of_experiment for of_experiment in found if of_experiment], verdicts)
    print(f"\n{text}")
    if not asked.no_page:
        PAGE.write_text(into_page(PAGE.read_text(), text, BEGIN, END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
