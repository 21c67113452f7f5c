"""Compares flows of each driver of the lab on an idle path with flows of `repnet-bench` without a scheme.

The difference is due to the driver, not to a scheme. `make lab-accept` carries out the runs and prints the table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tailcut

NET = "repnet-bench, TCP"
"""The driver that all others are compared with: `node:net`."""
TCP = 'receive_window = "64KB"\ninitial_rto = "1s"\nmin_rto = "1s"'
MPTCP = (
    '[schemes.MPTCP.transport]\nkind = "mptcp"\nsubflows = {count}\nreceive_window = "64KB"\n'
    '[schemes.MPTCP.transport.tcp]\ninitial_rto = "1s"\nmin_rto = "1s"'
)
DRIVERS = {
    NET: ("[schemes.TCP]", True),
    "repnet-bench, RepFlow": ('[schemes.RepFlow]\nreplicate = { kind = "repflow" }', True),
    "repnet-bench, RepSYN": ('[schemes.RepSYN]\nreplicate = { kind = "repsyn" }', True),
    "sockets": ("[schemes.TCP]", False),
    "sockets, MPTCP with one subflow": (MPTCP.format(count=1), False),
    "sockets, MPTCP with four subflows": (MPTCP.format(count=4), False),
}
"""The scheme that a driver is for, and whether `repnet-bench` carries it."""
SIZES = {1_000: 10, 20_000: 10, 1_000_000: 3}
"""How many flows of which size. Those of 1 MB are more than is replicated."""
RATE_MBPS = 20
GAP_US = 30_000
EXPERIMENT = """
title = "a driver on an idle path"
seeds = 1
[topology]
kind = "star"
hosts = 2
rate = "{rate}Mbps"
[transport]
{tcp}
[traffic]
kind = "trace"
file = "alone.csv"
[horizon]
arrivals = "4s"
drain = "30s"
{scheme}
"""


@dataclass(frozen=True)
class Cell:
    """The flows of one size that a driver has carried.

    Attributes:
        fct_ms: their completion time, in the median.
        connect_ms: until they were connected, in the median.
    """

    driver: str
    size: int
    fct_ms: float
    connect_ms: float


def planned(driver: str, directory: Path) -> dict[str, Any]:
    """The run of a driver; files that it needs go into a directory."""
    rows, start_us = ["src,dst,bytes,start_us"], 0.0
    for size, count in SIZES.items():
        for _ in range(count):
            rows.append(f"0,1,{size},{start_us:.0f}")
            # A copy takes as long as the flow itself.
            start_us += GAP_US + 2 * 8 * size / RATE_MBPS
    (directory / "alone.csv").write_text("\n".join(rows))
    scheme, _ = DRIVERS[driver]
    (directory / "alone.toml").write_text(EXPERIMENT.format(rate=RATE_MBPS, tcp=TCP, scheme=scheme))
    (run,) = tailcut.load(directory / "alone.toml").plan["runs"]
    return dict(run)


def cells(driver: str, measured: Mapping[str, Any]) -> list[Cell]:
    """Returns a driver's medians by flow size; flows come in the order of the plan."""
    flows = {one["index"]: one for one in measured["flows"]}
    made, first = [], 0
    for size, count in SIZES.items():
        alike = [flows[index] for index in range(first, first + count)]
        first += count
        times = {name: median(one[f"{name}_ns"] for one in alike) / 1e6 for name in ("fct", "connect")}
        made.append(Cell(driver, size, times["fct"], times["connect"]))
    return made


def table(of: Iterable[Cell]) -> list[str]:
    """Every driver beside `net`, in Markdown; nothing where `net` has none."""
    by_size: dict[int, list[Cell]] = {}
    for cell in of:
        by_size.setdefault(cell.size, []).append(cell)
    rows = [row for size in by_size for row in _rows(by_size[size])]
    head = "| bytes | driver, on an idle path | connected, ms | against net, ms | complete, ms | against net, ms |"
    return [head, "|---:|---|---:|---:|---:|---:|", *rows] if rows else []


def _rows(alike: Sequence[Cell]) -> list[str]:
    net = next((one for one in alike if one.driver == NET), None)
    if net is None:
        return []
    return [
        f"| {one.size:,} | {one.driver} | {one.connect_ms:.2f} | {one.connect_ms - net.connect_ms:+.2f}"
        f" | {one.fct_ms:.2f} | {one.fct_ms - net.fct_ms:+.2f} |"
        for one in alike
    ]
