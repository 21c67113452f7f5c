"""Writes an import: the experiment, its graph as node-link JSON, and its flows as CSV."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np

from tailcut.document import toml_value
from tailcut.imports.amounts import delay_text, rate_text
from tailcut.imports.job import MESSAGE, Job
from tailcut.imports.network import Imported, ImportedFlow, Link, Network
from tailcut.imports.source import MAX_SECONDS, ImportRefusedError

EXPERIMENT, GRAPH, FLOWS, JOB = "experiment.toml", "topology.json", "flows.csv", "job.csv"


def write(
    found: Imported,
    directory: Path,
    title: str,
    sources: Sequence[str],
    progress: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the files of an experiment into a directory.

    Their names are always the same: nothing that a file of others says becomes a path.

    Args:
        found: what was imported.
        directory: the directory to write; it is made if it does not exist.
        title: of the experiment.
        sources: the names of the files that it is from.
        progress: is told how much of a job is written.

    Raises:
        ImportRefusedError: TC-I005: one of the files exists already.
        OSError: the directory cannot be written.
    """
    texts: dict[str, Iterable[str]] = {EXPERIMENT: [_experiment(found, title, sources)]}
    if found.network is not None:
        texts[GRAPH] = [graph(found.network)]
    if found.flows is not None:
        texts[FLOWS] = _flows(found.flows)
    if found.job is not None:
        rows = len(found.job)
        texts[JOB] = found.job.text(progress=lambda done: progress(f"{done:,} of {rows:,} rows written"))
    paths = [directory / name for name in texts]
    there = next((path for path in paths if path.exists() or path.is_symlink()), None)
    if there is not None:
        message = f"{there} exists already: nothing is overwritten"
        raise ImportRefusedError("TC-I005", message, "name another directory with --out")
    directory.mkdir(parents=True, exist_ok=True)
    for path, parts in zip(paths, texts.values(), strict=True):
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
    return paths


def graph(network: Network) -> str:
    """A network as NetworkX writes graphs (``node_link_data``), with a line for each node and link."""
    nodes = [{"id": name, "kind": "host"} for name in network.hosts]
    nodes += [{"id": name, "kind": "switch"} for name in network.switches]
    times: dict[frozenset[str], int] = {}
    edges = []
    for link in network.links:
        ends = frozenset(link.ends)
        key = times[ends] = times.get(ends, -1) + 1
        edges.append(
            {
                "source": link.ends[0],
                "target": link.ends[1],
                "key": key,
                "rate": rate_text(link.rate_bps),
                "propagation": delay_text(link.delay_ps),
            }
        )
    head = '{"directed": false, "multigraph": true, "graph": {},\n'
    parts = [f'"{name}": [\n{_rows(rows)}\n]' for name, rows in (("nodes", nodes), ("edges", edges))]
    return head + ",\n".join(parts) + "}\n"


def _rows(rows: Sequence[object]) -> str:
    return ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _flows(flows: Sequence[ImportedFlow]) -> Iterator[str]:
    """Flows as a trace; hosts by their place among the hosts, with numbers of their own where each has one."""
    numbers = np.fromiter((-1 if flow.id is None else flow.id for flow in flows), dtype=np.int64, count=len(flows))
    numbered = len(numbers) > 0 and numbers.min() >= 0 and len(np.unique(numbers)) == len(numbers)
    yield "id,src,dst,bytes,start_ns\n" if numbered else "src,dst,bytes,start_ns\n"
    for flow in flows:
        row = f"{flow.src},{flow.dst},{flow.size},{flow.start_ns}\n"
        yield f"{flow.id},{row}" if numbered else row


def _experiment(found: Imported, title: str, sources: Sequence[str]) -> str:
    names = ", ".join(" ".join(source.split()) for source in sources)
    lines = [f"# Imported from {names}.", f"title = {toml_value(title)}", "", "[topology]"]
    if found.network is not None:
        lines += ['kind = "node-link"', f'file = "{GRAPH}"']
    else:
        lines += ['kind = "star" # the files have no network: name yours', f"hosts = {found.hosts}"]
    lines += ["", "[traffic]"]
    if found.job is not None:
        lines += ['kind = "graph"', f'file = "{JOB}" # hosts by their place among the hosts of the topology']
        lines += [] if found.job.over == "received" else [f'over = "{found.job.over}"']
    elif found.flows is not None:
        lines += ['kind = "trace"', f'file = "{FLOWS}" # hosts by their place among the hosts of the topology']
        if min(flow.start_ns for flow in found.flows) > 0:
            lines.append('# origin = "first" # lets the run begin with the first flow')
    else:
        lines += ['kind = "poisson" # the files have no flows: ask for yours', 'sizes = "web-search"', "load = 0.3"]
    lossy = [] if found.network is None else [link for link in found.network.links if link.loss]
    if lossy:
        lines += ["", "[faults]", "incidents = [", *(f"  {_loss(link)}," for link in lossy), "]"]
    if found.job is not None:
        arrivals, drain = _horizon(found.job)
        lines += ["", "[horizon]", f'arrivals = "{arrivals}"', f'drain = "{drain}"']
    else:
        lines += ["", "[horizon]", *([] if found.flows is not None else ['arrivals = "100ms"']), 'drain = "1s"']
    return "\n".join([*lines, "", "[schemes.TCP]", ""])


def _horizon(job: Job) -> tuple[str, str]:
    """Returns arrivals after the last start, and a drain that suffices for one row after the other at 1 Gbps."""
    latest = 0 if job.starts_ns is None else int(job.starts_ns.max(initial=0))
    messages = job.kinds == MESSAGE
    nanoseconds = 8 * int(job.amounts[messages].sum()) + int(job.amounts[~messages].sum())
    seconds = min(nanoseconds // 10**9 + 1, MAX_SECONDS)
    return f"{max(latest // 10**6 + 1, 1)}ms", f"{seconds}s"


def _loss(link: Link) -> str:
    share = Decimal(link.loss.numerator) / Decimal(link.loss.denominator)
    name = toml_value(">".join(link.ends))
    return f'{{ kind = "loss", link = {name}, probability = {float(share)!r}, at = "0s" }}'
