"""Samples of links and queues for the page's fabric: one point, one seed, every scheme, one grid of instants."""

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup

from tailcut.report.study import CLOCKS, Run, Study
from tailcut.report.theme import Theme
from tailcut.results.tables import read_parquet, scan_parquet

MOST_BYTES = 2_400_000
"""Size limit of the compressed samples of all schemes; instants beyond it are dropped. Base 64 adds a third."""
SLOWEST = 15
"""Number of slowest flows listed for each scheme."""
MOST_QUEUE = 255

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Waiting packets, busy nanoseconds and drops: a row per instant, a column per port."""


@dataclass(frozen=True)
class Sampled:
    """The samples of one run.

    Attributes:
        run: the sampled run.
        interval_ns: the time between two instants; the first instant is one interval after the beginning.
        queue: packets waiting at the instant: a row per instant, a column per port.
        busy_ns: time spent transmitting since the previous instant.
        drops: packets dropped since the previous instant.
    """

    run: Run
    interval_ns: int
    queue: np.ndarray
    busy_ns: np.ndarray
    drops: np.ndarray

    def thinned(self, factor: int) -> "Sampled":
        """Keeps every ``factor``-th instant: queues are those at it, busy times and drops are summed over the interval.

        A shorter last interval is kept, too, with the queues at the end of the run.
        """
        kept = -(-len(self.queue) // factor)
        last = np.minimum(np.arange(1, kept + 1) * factor, len(self.queue)) - 1
        first = np.arange(kept) * factor
        sums = [np.add.reduceat(plane, first, axis=0, dtype=np.int64) for plane in (self.busy_ns, self.drops)]
        return Sampled(self.run, self.interval_ns * factor, self.queue[last], *sums)

    @cached_property
    def use(self) -> np.ndarray:
        """Utilisation in percent."""
        return np.clip(np.rint(self.busy_ns / self.interval_ns * 100), 0, 100).astype(np.uint8)

    def packed(self, unit: int) -> bytes:
        """Queues in steps of ``unit`` packets and use, a byte each, and drops, four bytes; port by port, compressed."""
        queue = np.clip(-(-self.queue // unit), 0, MOST_QUEUE)
        # The page shows exact sums of drops, so all four bytes are kept; upper ones are nearly all
        # 0 and compress well.
        planes = (queue, self.use, *(self.drops >> shift & 255 for shift in (0, 8, 16, 24)))
        return zlib.compress(b"".join(np.ascontiguousarray(p.T.astype(np.uint8)).tobytes() for p in planes), 9)


@dataclass(frozen=True)
class FabricSamples:
    """The contents of the fabric view.

    Attributes:
        study: the experiment.
        runs: the samples by scheme, on one grid.
        ports: the ports (``ports.parquet``).
        hosts: the number of hosts; they come first among the nodes.
    """

    study: Study
    runs: dict[str, Sampled]
    ports: pl.DataFrame
    hosts: int

    @classmethod
    def of(cls, study: Study) -> "FabricSamples | None":
        """Loads the samples, thinned until they fit into the page (`MOST_BYTES`)."""
        found = cls.whole(study)
        return None if found is None else found.bounded()

    @classmethod
    def whole(cls, study: Study) -> "FabricSamples | None":
        """Loads the samples of the page's first point and the first seed that has any; None if that point has none."""
        cell, point = study.cells[0], study.points[len(study.points) // 2]
        here = [
            r for r in study.runs if (study.cell(r.planned["point"]), study.point(r.planned["point"])) == (cell, point)
        ]
        here = [run for run in here if (run.directory / "fabric.parquet").is_file()]
        of_seed = [run for run in here if run.planned["seed"] == here[0].planned["seed"]]
        if not of_seed:
            return None
        ports = read_parquet(of_seed[0].directory / "ports.parquet")
        sampled = [_sampled(run, ports.height) for run in of_seed]
        longest = max(s.interval_ns for s in sampled)
        runs = {s.run.planned["scheme"]: s.thinned(longest // s.interval_ns) for s in sampled}
        return cls(study, runs, ports, of_seed[0].planned["facts"]["hosts"])

    def bounded(self) -> "FabricSamples":
        """Returns the samples, thinned until they fit into the page (`MOST_BYTES`)."""
        size = sum(len(sampled.packed(self.unit)) for sampled in self.runs.values())
        if size <= MOST_BYTES or self.instants < 4:
            return self
        runs = {scheme: sampled.thinned(2) for scheme, sampled in self.runs.items()}
        return FabricSamples(self.study, runs, self.ports, self.hosts).bounded()

    @property
    def interval_ns(self) -> int:
        """The time between two instants, in ns."""
        return next(iter(self.runs.values())).interval_ns

    @property
    def instants(self) -> int:
        """The number of instants, in the run that took longest."""
        return max(len(sampled.queue) for sampled in self.runs.values())

    @property
    def seed(self) -> int:
        """The seed that is shown."""
        return next(iter(self.runs.values())).run.planned["seed"]

    @cached_property
    def longest(self) -> int:
        """The longest queue of a switch at any instant, to which colours are relative."""
        switches = (self.ports["from"] >= self.hosts).to_numpy()
        return max(1, *(int(sampled.queue[:, switches].max(initial=0)) for sampled in self.runs.values()))

    @cached_property
    def unit(self) -> int:
        """The number of packets that one step of a packed queue stands for."""
        most = max(int(sampled.queue.max(initial=0)) for sampled in self.runs.values())
        return max(1, -(-most // MOST_QUEUE))

    @cached_property
    def short(self) -> bool:
        """Whether the listed flows are short ones, which is so if there are any."""
        return any((_flows(sampled.run, "fct_ns")["class"] == "short").any() for sampled in self.runs.values())

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """The slowest short flows of each scheme (all flows, if none is short), and how each fared in every scheme.

        ``at`` is the index of the instant with the most packets waiting on the flow's path, under its slowest scheme.
        """
        clock = CLOCKS[self.study.clock][0]
        tables = {scheme: _flows(sampled.run, clock) for scheme, sampled in self.runs.items()}
        listed = {scheme: _slowest(table) for scheme, table in tables.items()}
        names = list(self.runs)
        wanted = list(dict.fromkeys(flow for rows in listed.values() for flow in rows))
        fared = [_fared(self.runs[name].run, tables[name], wanted) for name in names]
        found = []
        for flow in wanted:
            of = [rows.get(flow) for rows in fared]
            worst = max((row for row in of if row), key=lambda row: row["slowdown"] or float("inf"))
            first = next(row for row in of if row)
            at = self._busiest(self.runs[names[of.index(worst)]], worst)
            lists = [place for place, name in enumerate(names) if flow in listed[name]]
            about = {name: first[name] for name in ("src", "dst", "bytes", "start_ns")}
            kept = [row and {name: row[name] for name in ("ns", "slowdown", "winner", "ways")} for row in of]
            found.append({"id": flow, **about, "at": at, "lists": lists, "of": kept})
        return found

    def _busiest(self, sampled: Sampled, row: dict[str, Any]) -> int:
        first = min(row["start_ns"] // self.interval_ns, len(sampled.queue) - 1)
        end = row["start_ns"] + row["ns"] if row["ns"] is not None else self.interval_ns * len(sampled.queue)
        last = min(max(first + 1, end // self.interval_ns), len(sampled.queue))
        ports = [port for _, port in row["ways"]]
        waiting = sampled.queue[first:last, ports].sum(axis=1)
        return int(first + waiting.argmax())


def _sampled(run: Run, ports: int) -> Sampled:
    table = read_parquet(run.directory / "fabric.parquet")
    planes = [table[name].to_numpy().reshape(-1, ports) for name in ("queue_packets", "busy_ns", "drops")]
    return Sampled(run, int(table["time_ns"][0]), *planes)


def _flows(run: Run, clock: str) -> pl.DataFrame:
    columns = ["id", "src", "dst", "bytes", "start_ns", "class", "winner", pl.col(clock).alias("ns"), "normalised_fct"]
    return scan_parquet(run.directory / "flows.parquet").select(columns).collect()


def _slowest(flows: pl.DataFrame) -> list[int]:
    short = flows.filter(pl.col("class") == "short")
    rows = short if short.height else flows
    order = rows.sort("normalised_fct", "id", descending=[True, False], nulls_last=False)
    return order["id"].head(SLOWEST).to_list()


def _fared(run: Run, flows: pl.DataFrame, wanted: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Returns how each of these flows fared in a run; ``ways`` are pairs of connection and port, where recorded."""
    ways: dict[int, list[tuple[int, int]]] = {}
    paths = scan_parquet(run.directory / "paths.parquet").filter(pl.col("id").is_in(list(wanted))).collect()
    for flow, copy, port in paths.select("id", "copy", "port").iter_rows():
        ways.setdefault(flow, []).append((copy, port))
    rows = flows.filter(pl.col("id").is_in(list(wanted)))
    return {
        row["id"]: {**row, "slowdown": row["normalised_fct"], "ways": ways.get(row["id"], [])}
        for row in rows.iter_rows(named=True)
    }


# --- where nodes stand ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """The positions of nodes.

    Attributes:
        level: how far each node is from the nearest host.
        pod: which part of what is left without the switches of the highest level it belongs to; -1 for those.
        order: its place among the nodes of its level and pod.
    """

    level: list[int]
    pod: list[int]
    order: list[int]


def places(hosts: int, links: Iterable[tuple[int, int]]) -> Places:
    """Returns the positions of a network's nodes: hosts at the bottom, each switch by its distance from them.

    Args:
        hosts: how many nodes are hosts; they come first.
        links: pairs of nodes.
    """
    links = list(links)
    neighbours: list[list[int]] = [[] for _ in range(1 + max(max(link) for link in links))]
    for a, b in links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    level = [-1] * len(neighbours)
    row, depth = list(range(hosts)), 0
    while row:
        for node in row:
            level[node] = depth
        row = list(dict.fromkeys(other for node in row for other in neighbours[node] if level[other] < 0))
        depth += 1
    top = depth - 1
    pod = [-1] * len(neighbours)
    pods = 0
    for start in range(len(neighbours)):
        if pod[start] >= 0 or level[start] == top:
            continue
        pod[start], reached = pods, [start]
        for node in reached:
            for other in neighbours[node]:
                if pod[other] < 0 and level[other] != top:
                    pod[other] = pods
                    reached.append(other)
        pods += 1
    return Places(level, pod, _orders(level, pod, neighbours))


def _orders(level: list[int], pod: list[int], neighbours: list[list[int]]) -> list[int]:
    """Returns each node's place in its level and pod: a switch stands above the middle of its neighbours below."""
    x = [float(node) for node in range(len(level))]
    order = [0] * len(level)
    for depth in range(max(level) + 1):
        members = [node for node in range(len(level)) if level[node] == depth]
        for node in members if depth else ():
            below = [x[other] for other in neighbours[node] if level[other] < depth]
            x[node] = sum(below) / max(1, len(below))
        members.sort(key=lambda node: (pod[node], x[node], node))
        for place, node in enumerate(members):
            before = members[place - 1] if place else node
            order[node] = order[before] + 1 if place and pod[before] == pod[node] else 0
    return order


def on_page(study: Study, theme: Theme) -> dict[str, Any]:
    """Returns the template's input for the fabric; ``fabric_samples`` is None if no port was sampled."""
    samples = FabricSamples.of(study)
    if samples is None:
        return {"fabric_samples": None}
    assets = files("tailcut.report") / "assets"
    colours = {scheme: theme.colour(scheme) for scheme in samples.runs}
    told = json.dumps(state(samples, colours), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return {
        "fabric_samples": samples,
        "interval": f"{samples.interval_ns / 1e6:.4g} ms",
        "fabric": Markup(told),  # noqa: S704 - escaped here
        "fabric_style": Markup((assets / "fabric.css").read_text("utf-8")),  # noqa: S704
        "fabric_script": Markup((assets / "fabric.js").read_text("utf-8")),  # noqa: S704
    }


def state(samples: FabricSamples, colours: dict[str, str]) -> dict[str, Any]:
    """Returns the input of the page's script, as values for JSON."""
    up = samples.ports.filter(pl.col("port") % 2 == 0)
    ends = list(zip(up["from"].to_list(), up["to"].to_list(), strict=True))
    stand = places(samples.hosts, ends)
    names = dict(samples.ports.select("from", "from_name").iter_rows())
    return {
        "hosts": samples.hosts,
        "names": [names[node] for node in sorted(names)],
        "links": [node for link in ends for node in link],
        "gbps": [rate / 1e9 for rate in up["rate_bps"].to_list()],
        "level": stand.level,
        "pod": stand.pod,
        "order": stand.order,
        "interval_ns": samples.interval_ns,
        "instants": samples.instants,
        "unit": samples.unit,
        "longest": samples.longest,
        "schemes": [
            {
                "name": scheme,
                "colour": colours[scheme],
                "instants": len(sampled.queue),
                "samples": base64.b64encode(sampled.packed(samples.unit)).decode(),
            }
            for scheme, sampled in samples.runs.items()
        ],
        "flows": samples.flows,
    }
