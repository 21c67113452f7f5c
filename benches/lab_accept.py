"""`make lab-accept`: whether this machine, idle, carries the kernel lab's runs in time, and what it then finds.

Fails if more than one run in ten is not faithful, or if a faithful one is not what it should be. What it prints goes
into benches/lab-accept.md: that is the evidence if it does not fail. If it does, it stands there by itself, and
says why. About three minutes; nothing else should run.
"""

import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import lab_drivers
import lab_lone
import polars as pl

import tailcut
from tailcut import _core
from tailcut.lab import doctor, process, repnet
from tailcut.results import tables

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benches/lab-accept.md"
BEGIN, END = "<!-- made by make lab-accept: begin -->", "<!-- made by make lab-accept: end -->"
FAILED = (
    "<!-- made by make lab-accept, when it fails: begin -->",
    "<!-- made by make lab-accept, when it fails: end -->",
)
"""Marks of the place where the page records the last failure."""
MOST_UNFAITHFUL = 0.1
MEDIAN_US, P99_US = 100, 300
"""By how much a packet across six idle hops may be late."""
PACKETS = 3
"""Packets in sequence until a flow of one byte has arrived: two of the handshake and its own."""
SIZES = (1, 1460, 14_600)
LONE = """
title = "lone flows"
[topology]
kind = "fat-tree"
k = 4
rate = "20Mbps"
[transport]
initial_rto = "1s"
[traffic]
kind = "trace"
file = "lone.csv"
[horizon]
arrivals = "1s"
drain = "30s"
[schemes.TCP]
"""
LONE_RUNS = 8
ALONE, DRIVER, CONGESTED = "alone over ", "driver: ", "one congested path: "
"""How runs over a topology, of a driver, and where one of three paths is congested, are called."""
SHORTER = {"seeds": "1", "horizon.arrivals": '"10s"'}


@dataclass
class Carried:
    """A run, and what kernels made of it."""

    name: str
    run: dict[str, Any]
    done: dict[str, Any]
    demand: Sequence[Mapping[str, Any]]
    """The flows of the plan, by their index: their bytes, and how long each takes alone."""

    @property
    def unfaithful(self) -> list[str]:
        reasons: list[str] = self.done["unfaithful"]
        return reasons


@dataclass
class Acceptance:
    """The outcome of all checks: a line for each, and those that failed."""

    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, *, holds: bool) -> None:
        self.lines.append(f"- {what}" if holds else f"- **Not so**: {what}")
        if not holds:
            self.wrong.append(what)


def carry(name: str, run: Mapping[str, Any], program: Sequence[str] | None = None) -> Carried:
    """Carries out a run, and prints its verdict."""
    print(f"{name} …", end=" ", flush=True)
    done = process.run(json.dumps(run), lambda _now, _over: None, 300, program)
    print("; ".join(done["unfaithful"]) or "faithful", flush=True)
    # Now: the files that a plan reads may be gone when all runs are judged.
    return Carried(name, dict(run), done, json.loads(_core.demand(json.dumps(run)))["flows"])


def rests_alone(name: str) -> bool:
    """Whether a check or a table needs runs of this name."""
    return name.startswith((ALONE, DRIVER, CONGESTED))


def carry_until_faithful(name: str, run: Mapping[str, Any], program: Sequence[str] | None = None) -> list[Carried]:
    """Carries out a run that a check needs, once more if it was unfaithful; both count."""
    runs = [carry(name, run, program)]
    return [*runs, carry(name, run, program)] if runs[0].unfaithful else runs


def planned(path: Path, **values: str) -> list[dict[str, Any]]:
    return [dict(run) for run in tailcut.load(path, set=values).plan["runs"]]


def quantile_us(lateness: Mapping[str, Any], share: float) -> int:
    """Returns a quantile of a histogram with steps of 10 us, rounded up to the next step; 0 if it is empty."""
    wanted, below = math.ceil(sum(lateness["counts"]) * share), 0
    for step, count in enumerate(lateness["counts"]):
        below += count
        if below >= wanted > 0:
            return 10 * (step + 1)
    return 0


def row(carried: Carried) -> str:
    """Returns a run's row of the table."""
    facts = carried.done["facts"]
    alone = ", ".join(median_us(facts[when]["late_ns"]) for when in ("before", "after"))
    starts, released = (quantile_us(facts[name], 0.99) for name in ("starts", "released"))
    pressure, stolen = ("–" if facts[name] is None else f"{100 * facts[name]:.0f} %" for name in ("pressure", "stolen"))
    frames = f"{carried.done['frames']:,}"
    verdict = "; ".join(carried.unfaithful) or "faithful"
    return f"| {carried.name} | {frames} | {starts} | {released} | {alone} | {pressure} | {stolen} | {verdict} |"


def median_us(late_ns: Sequence[int | None]) -> str:
    arrived = sorted(one for one in late_ns if one is not None)
    return f"{arrived[len(arrived) // 2] / 1000:.0f}" if len(arrived) == len(late_ns) > 0 else "lost"


def judge(runs: Sequence[Carried]) -> Acceptance:
    """Checks the runs against the bounds."""
    found = Acceptance()
    unfaithful = sum(1 for one in runs if one.unfaithful)
    found.check(
        f"{unfaithful} of {len(runs)} runs are not faithful; one in ten may be",
        holds=unfaithful <= MOST_UNFAITHFUL * len(runs),
    )
    faithful = [one for one in runs if not one.unfaithful]
    unchecked = {one.name for one in runs if rests_alone(one.name)} - {one.name for one in faithful}
    for name in sorted(unchecked):
        found.lines.append(f"- **Not checked**: {name}, of which no run was faithful")
        found.wrong.append(f"{name} was not checked")
    lone = [late for one in faithful if one.name == "lone flows" for late in late_us(one)]
    if lone:
        released = [one.done["facts"]["released"]["counts"] for one in faithful if one.name == "lone flows"]
        together = {"counts": [sum(step) for step in zip_longest(*released, fillvalue=0)]}
        median, p99 = (quantile_us(together, share) for share in (0.5, 0.99))
        found.check(
            f"{sum(together['counts']):,} packets across six idle hops at 20 Mbps are handed over {median:.0f} us after"
            f" their closed form at the median ({MEDIAN_US} may be) and {p99:.0f} us at the 99th percentile ({P99_US})",
            holds=median <= MEDIAN_US and p99 <= P99_US,
        )
        lone.sort()
        median, p99 = lone[len(lone) // 2], lone[math.ceil(0.99 * len(lone)) - 1]
        found.check(
            f"{len(lone)} flows alone across six idle hops at 20 Mbps, of 1 B to 14.6 KB, take the closed form and"
            f" {median:.0f} us at the median and {p99:.0f} us at the 99th percentile ({PACKETS * MEDIAN_US} and"
            f" {PACKETS * P99_US} may be, as {PACKETS} packets one after the other)",
            holds=median <= PACKETS * MEDIAN_US and p99 <= PACKETS * P99_US,
        )
        found.check("none of them is early", holds=lone[0] >= 0)
    judge_topologies(runs, found)
    for one in faithful:
        if one.name.startswith(CONGESTED):
            kind = one.run["config"]["scheme"]["replicate"]["kind"]
            expected = 1 / 3 if kind == "none" else 1 / 9
            met, mice = congested(one)
            spread = 4 * math.sqrt(expected * (1 - expected) / mice)
            found.check(
                f"{one.name}: {met} of {mice} mice meet the long flows, {met / mice:.3f}; {expected:.3f} is expected,"
                f" give or take {spread:.3f}",
                holds=abs(met / mice - expected) < spread,
            )
    return found


def judge_topologies(runs: Sequence[Carried], found: Acceptance) -> None:
    """Whether flows alone take their closed form and one constant, over every topology."""
    everywhere = alone_over(runs)
    if everywhere:
        early = sum(one.late_ns < 0 for one in everywhere)
        found.check(
            f"{early} of {len(everywhere)} flows alone over every topology are early, faithful or not",
            holds=early == 0,
        )
    constant, cells = lone_cells(runs)
    if not cells:
        return
    farthest = max(cells, key=lambda one: abs(one.apart))
    found.check(
        f"over every topology flows alone of 1 B to 1 MB take the closed form and {constant / 1000:,.0f} us for the"
        f" connection ({PACKETS * MEDIAN_US} may be), within {100 * lab_lone.SHARE:.0f} % at the median of each size;"
        f" farthest: {farthest.size:,} B over {farthest.topology}, {100 * farthest.apart:+.2f} %",
        holds=constant <= 1000 * PACKETS * MEDIAN_US and abs(farthest.apart) <= lab_lone.SHARE,
    )


def alone_over(runs: Sequence[Carried]) -> list[lab_lone.Flow]:
    """The flows of all runs over a topology of their own."""
    of = [one for one in runs if one.name.startswith(ALONE)]
    return [flow for one in of for flow in lab_lone.flows(one.name.removeprefix(ALONE), one.demand, one.done)]


def lone_cells(runs: Sequence[Carried]) -> tuple[float, list[lab_lone.Cell]]:
    """Returns the constant that a connection adds, in ns, and each size's deviation from it, over faithful runs."""
    flows = alone_over([one for one in runs if not one.unfaithful])
    if not any(one.size == lab_lone.FIRST for one in flows):
        return 0.0, []
    constant = lab_lone.constant_ns(flows)
    return constant, lab_lone.cells(flows, constant)


def further_tables(runs: Sequence[Carried]) -> list[str]:
    """Returns the tables of idle flows by topology and size, and by driver, over faithful runs."""
    _, lone = lone_cells(runs)
    of = [one for one in runs if one.name.startswith(DRIVER) and not one.unfaithful]
    cells = [cell for one in of for cell in lab_drivers.cells(one.name.removeprefix(DRIVER), one.done["measured"])]
    tables = [lab_lone.table(lone) if lone else [], lab_drivers.table(cells)]
    return [line for table in tables if table for line in [*table, ""]]


def late_us(carried: Carried) -> list[float]:
    """Returns how much later than their closed form flows were, in us."""
    flows = carried.done["measured"]["flows"]
    return [flow["fct_ns"] / 1000 - carried.demand[flow["index"]]["ideal_ps"] / 1e6 for flow in flows]


def congested(carried: Carried) -> tuple[int, int]:
    """Returns how many mice of the congested rack waited behind two windows (50 ms each), and how many there are."""
    made = _core.tabulate(json.dumps(carried.run), json.dumps(carried.done["measured"]))
    flows = tables.frame(made["flows"]).filter((pl.col("src") == 2) & (pl.col("start_ns") > 500_000_000))
    return flows.filter(pl.col("fct_ns").fill_null(10**10) > 70_000_000).height, flows.height


def machine() -> str:
    """Returns a description of the machine."""
    kernel = platform.release().split("-")[0]
    return f"Linux {kernel}, {os.cpu_count()} processors, Python {platform.python_version()}"


def failure(found: Acceptance) -> str:
    """Returns the sentence on a failure: date, machine and reasons."""
    return f"Failed last on {datetime.now(UTC):%Y-%m-%d} ({machine()}): {'; '.join(found.wrong)}."


def noted(page: str, runs: Sequence[Carried], found: Acceptance, timers: tuple[str, str]) -> str:
    """Returns the page with this outcome: as its evidence if all checks hold, else beside the old evidence."""
    if found.wrong:
        return into_page(page, f"{failure(found)}\n\n{report(runs, found, timers)}", *FAILED)
    return into_page(page, report(runs, found, timers))


def report(runs: Sequence[Carried], found: Acceptance, timers: tuple[str, str]) -> str:
    """In Markdown; ``timers`` is what `tailcut lab` says of the machine's, before and after the runs."""
    versions = [one.done["repnet"]["node"] for one in runs if one.done["repnet"]]
    node = f", Node {versions[0]}" if versions else ""
    return "\n".join(
        [
            "| run | frames | starts late, p99, us | handed over late, p99, us"
            " | alone before, after, us | waiting | stolen | verdict |",
            "|---|---:|---:|---:|---:|---:|---:|---|",
            *map(row, runs),
            "",
            *further_tables(runs),
            *found.lines,
            f"- of the machine's own timers {timers[0]} before the runs, and {timers[1]} after them",
            "",
            f"Measured on {datetime.now(UTC):%Y-%m-%d} by `make lab-accept`: {machine()}{node}.",
        ]
    )


def into_page(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """The page with this between its marks."""
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def carry_all() -> list[Carried]:
    runs = []
    with tempfile.TemporaryDirectory() as directory:
        rows = [f"0,15,{size},{20_000 * number}" for number, size in enumerate(SIZES * 10)]
        (Path(directory) / "lone.csv").write_text("\n".join(["src,dst,bytes,start_us", *rows]))
        (Path(directory) / "lone.toml").write_text(LONE)
        (lone,) = planned(Path(directory) / "lone.toml")
        runs += [carry("lone flows", lone) for _ in range(LONE_RUNS)]
        for name in lab_lone.TOPOLOGIES:
            for run in lab_lone.planned(name, Path(directory)):
                runs += carry_until_faithful(f"{ALONE}{name}", run)
        for name, (_, by_repnet) in lab_drivers.DRIVERS.items():
            program = repnet.program() if by_repnet else None
            runs += carry_until_faithful(f"{DRIVER}{name}", lab_drivers.planned(name, Path(directory)), program)
    experiments = ROOT / "experiments/lab"
    for run in planned(experiments / "spraying.toml", **SHORTER):
        runs.append(carry(f"spraying: {run['scheme']}", run))
    for run in planned(experiments / "one-congested-path.toml", **SHORTER):
        runs += carry_until_faithful(f"{CONGESTED}{run['scheme']}", run, repnet.program())
    for run in planned(experiments / "repnet.toml", **SHORTER):
        runs.append(carry(f"by repnet: {run['scheme']}", run, repnet.program()))
    return runs


def own_timers() -> str:
    """How late the machine's own timers are, whatever runs."""
    return next(one.found for one in doctor.findings(timers=True) if one.name == "timers")


def main() -> int:
    before = own_timers()
    runs = carry_all()
    found, timers = judge(runs), (before, own_timers())
    print(f"\n{report(runs, found, timers)}")
    PAGE.write_text(noted(PAGE.read_text(), runs, found, timers))
    if found.wrong:
        print(f"\nnot accepted: {'; '.join(found.wrong)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
