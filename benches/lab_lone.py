"""Flows that have the lab to themselves, over every topology: their closed form, and what each connection adds to it.

`make lab-accept` carries them on an idle machine; the tests do wherever they run.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tailcut

LINE = {
    "nodes": [{"id": "a", "kind": "host"}, {"id": "b", "kind": "host"}, *({"id": s, "kind": "switch"} for s in "stu")],
    "edges": [{"source": one, "target": other} for one, other in ("as", "st", "tu", "ub")],
}
"""A graph of its own: two hosts and three switches in a row."""
TOPOLOGIES = {
    "star": ('kind = "star"\nhosts = 4', 3),
    "dumbbell": ('kind = "dumbbell"\npairs = 2', 2),
    "chain": ('kind = "chain"\nswitches = 3', 1),
    "leaf-spine": ('kind = "leaf-spine"\nracks = 2\nhosts_per_rack = 2\nspines = 2', 3),
    "fat-tree": ('kind = "fat-tree"\nk = 4', 15),
    "parallel-paths": ('kind = "parallel-paths"\nhosts_per_side = 2\npaths = 3', 3),
    "node-link": ('kind = "node-link"\nfile = "line.json"', 1),
}
"""Each kind with little in it, and the host that is farthest from the first."""
RATES_MBPS: Mapping[int, Mapping[int, int]] = {1: {1: 9, 1_460: 5}, 20: {14_600: 5, 100_000: 3, 1_000_000: 1}}
"""At which rate flows of which size go, and how many. At 1 Mbps 3 % of what a byte takes can be told from chance."""
FIRST = 1
"""Flows of this size are all handshake: by how much they are late is what a connection adds."""
SHARE = 0.03
"""How far the median of a size may be from its closed form and the constant."""
CONSTANT_NS = 300_000
"""Most that a connection may add, in ns; if idle flows are later, the run is unfaithful."""
GAP_US = 20_000
"""Time between the end of a flow and the next start."""
EXPERIMENT = """
title = "lone flows: {name}"
seeds = 1
[topology]
{topology}
[transport]
initial_rto = "1s"
min_rto = "1s"
[traffic]
kind = "trace"
file = "lone.csv"
[horizon]
arrivals = "{seconds}s"
drain = "30s"
[schemes.TCP]
"""


@dataclass(frozen=True)
class Flow:
    """A flow that was carried alone.

    Attributes:
        topology: its kind.
        size: in bytes.
        ideal_ns: its closed form, in nanoseconds.
        late_ns: by how much it took longer.
    """

    topology: str
    size: int
    ideal_ns: float
    late_ns: float


@dataclass(frozen=True)
class Cell:
    """The flows of one size over one topology.

    Attributes:
        apart: how far their median is from closed form and constant, as a share of these.
    """

    topology: str
    size: int
    flows: int
    ideal_ns: float
    late_ns: float
    apart: float


def planned(name: str, directory: Path) -> list[dict[str, Any]]:
    """The runs over a topology, one for each rate; files that they need go into a directory."""
    topology, farthest = TOPOLOGIES[name]
    runs = []
    for rate, sizes in RATES_MBPS.items():
        place = directory / f"{name} at {rate} Mbps"
        place.mkdir(parents=True)
        rows, start_us = ["src,dst,bytes,start_us"], 0.0
        for size, count in sizes.items():
            for _ in range(count):
                rows.append(f"0,{farthest},{size},{start_us:.0f}")
                # Handshake, headers and hops beside the bytes themselves.
                start_us += GAP_US + 1.1 * (8 * size + 120_000) / rate
        (place / "lone.csv").write_text("\n".join(rows))
        links = [{**edge, "rate": f"{rate}Mbps", "propagation": "0s"} for edge in LINE["edges"]]
        (place / "line.json").write_text(json.dumps({**LINE, "edges": links}))
        fabric = topology if "file" in topology else f'{topology}\nrate = "{rate}Mbps"'
        seconds = int(start_us / 1e6) + 1
        (place / "lone.toml").write_text(EXPERIMENT.format(name=name, topology=fabric, seconds=seconds))
        runs += [dict(run) for run in tailcut.load(place / "lone.toml").plan["runs"]]
    return runs


def flows(topology: str, demand: Sequence[Mapping[str, Any]], done: Mapping[str, Any]) -> list[Flow]:
    """Returns the planned flows with their lateness; a flow that has not arrived is infinitely late."""
    carried = {one["index"]: one["fct_ns"] for one in done["measured"]["flows"]}
    made = []
    for index, one in enumerate(demand):
        ideal_ns, fct_ns = one["ideal_ps"] / 1000, carried.get(index)
        made.append(Flow(topology, one["bytes"], ideal_ns, float("inf") if fct_ns is None else fct_ns - ideal_ns))
    return made


def constant_ns(of: Iterable[Flow]) -> float:
    """Returns what a connection adds, in ns: the median lateness of flows of one byte."""
    return median(one.late_ns for one in of if one.size == FIRST)


def cells(of: Sequence[Flow], constant: float) -> list[Cell]:
    """Every size over every topology, in the order in which they come."""
    kinds = dict.fromkeys((one.topology, one.size) for one in of)
    made = []
    for topology, size in kinds:
        alike = [one for one in of if (one.topology, one.size) == (topology, size)]
        ideal_ns, late_ns = alike[0].ideal_ns, median(one.late_ns for one in alike)
        apart = (late_ns - constant) / (ideal_ns + constant)
        made.append(Cell(topology, size, len(alike), ideal_ns, late_ns, apart))
    return made


def table(of: Sequence[Cell]) -> list[str]:
    """A row for each, in Markdown."""
    rows = [
        "| alone over | bytes | flows | closed form, ms | late, median, us | from closed form and constant |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in of:
        ideal, late, apart = f"{one.ideal_ns / 1e6:.2f}", f"{one.late_ns / 1000:.0f}", f"{100 * one.apart:+.2f} %"
        rows.append(f"| {one.topology} | {one.size:,} | {one.flows} | {ideal} | {late} | {apart} |")
    return rows
