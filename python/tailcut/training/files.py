"""Writes a training step: the experiment, and its graph as Parquet beside it."""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tailcut.document import toml_value
from tailcut.imports.amounts import rate_text
from tailcut.imports.job import MESSAGE, Job
from tailcut.imports.source import MAX_SECONDS
from tailcut.training.model import StepError
from tailcut.training.step import Counts, TensorTraffic, TrainingStep

if TYPE_CHECKING:
    import polars as pl

LINK_BPS = 400 * 10**9
_GRAPH = ".parquet"
_RACK = 8
"""Hosts of a rack where tensor groups do not decide."""
_MOST_SPINES = 1023


def write(step: TrainingStep, path: Path, name: str = "custom", link_bps: int = LINK_BPS) -> list[Path]:
    """Writes the experiment of a step and its graph; overwrites nothing.

    Args:
        step: the step.
        path: the experiment file; the graph has its name with the suffix ``.parquet``.
        name: the name of the model.
        link_bps: the rate of all links.

    Returns:
        The paths of both files.

    Raises:
        StepError: TC-N002: no experiment can have the step; TC-N003: one of the files exists already, or both would
            have one name.
        OSError: a file cannot be written.
    """
    _refuse_existing(path)
    graph = path.with_suffix(_GRAPH)
    if graph == path:
        raise StepError("TC-N003", f"{path} is the name of the graph", "name the experiment with the suffix .toml")
    _refuse_existing(graph)
    text = experiment(step, graph.name, name, link_bps)
    frame(step.job()).write_parquet(graph)
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
    return [path, graph]


def _refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise StepError("TC-N003", f"{path} exists already", "name another file")


def frame(job: Job) -> "pl.DataFrame":
    """Returns the rows of a job with the columns of a graph file."""
    import polars as pl

    first, waits = job.first.tolist(), job.ids[job.waits].tolist()
    after = [" ".join(map(str, waits[begin:end])) for begin, end in pairwise(first)]
    is_message = pl.col("kind") == MESSAGE
    columns = {"id": job.ids, "kind": job.kinds, "one": job.one, "other": job.other, "amount": job.amounts}

    def of_messages(name: str) -> pl.Expr:
        return pl.when(is_message).then(pl.col(name))

    def of_computations(name: str) -> pl.Expr:
        return pl.when(~is_message).then(pl.col(name))

    pooled = {} if job.pool is None or job.at_once is None else {"pool": job.pool, "at_once": job.at_once}
    of_pools = [pl.col(name) for name in pooled] + ([pl.lit(job.until).alias("until")] if job.until else [])
    return pl.DataFrame(columns | pooled | {"after": after}).select(
        "id",
        of_messages("one").alias("src"),
        of_messages("other").alias("dst"),
        of_messages("amount").alias("bytes"),
        *(pl.when(pl.col("pool") > 0).then(column).alias(column.meta.output_name()) for column in of_pools),
        of_computations("one").alias("host"),
        of_computations("other").alias("processor"),
        of_computations("amount").alias("duration_ns"),
        pl.when(pl.col("after") != "").then(pl.col("after")).alias("after"),
    )


def experiment(step: TrainingStep, graph: str, name: str, link_bps: int = LINK_BPS) -> str:
    """Returns the experiment file of a step, as TOML.

    Args:
        step: the step.
        graph: the name of the graph's file.
        name: the name of the model.
        link_bps: the rate of all links.

    Raises:
        StepError: TC-N002: its racks are too large, or it takes too long.
    """
    counts = step.counts()
    split = f"tensor {step.tensor} x data {step.data}"
    title = f"A training step of {name}: {split}"
    times = "once" if step.micro_batches == 1 else f"{step.micro_batches} times"
    lines = [
        f"# {step.model.parameters:,} parameters, {split}.",
        f"# A rank computes {times} {step.micro_batch} x {step.model.sequence:,} tokens.",
        *_comments(step, counts),
        f"title = {toml_value(title)}",
        'question = "How long does the step take, and how much of it does it wait for the network?"',
        "",
        "[topology]",
        *_topology(step, counts.hosts),
        f'rate = "{rate_text(link_bps)}"',
        'propagation = "1us"',
        "",
        "[transport]",
        'kind = "uet" # messages are not connections: no handshake',
        'mss = "4096B"',
        'entropy = { kind = "reps" }',
        "",
        "[queue]",
        'kind = "trimming"',
        'limit = "100packets"',
        "returns = false",
        'marking = { low = "20packets", high = "80packets" }',
        "",
        "[traffic]",
        'kind = "graph"',
        f"file = {toml_value(graph)}",
        "",
        "[horizon]",
        'arrivals = "1ms"',
        f'drain = "{_drain_s(step, counts, link_bps)}s"',
        "",
        "[schemes.UET]",
        "",
    ]
    return "\n".join(lines)


def _comments(step: TrainingStep, counts: Counts) -> list[str]:
    found = []
    if counts.tensor_reduces:
        size = f"{counts.tensor_reduces} all-reduces of {counts.tensor_reduce_bytes:,} B in each tensor group"
        inside = step.traffic is TensorTraffic.COMPUTATION
        how = "inside servers" if inside else f"{step.traffic}: {counts.tensor_messages:,} messages"
        found.append(f"# {size}, {how}.")
    if counts.bucket_bytes:
        size = f"{len(counts.bucket_bytes)} buckets of at most {counts.bucket_bytes[0]:,} B around each data group"
        found.append(f"# {size}: {counts.data_messages:,} messages.")
    found.append(f"# {counts.total_bytes:,} B in all; a rank computes for {counts.computation_ns / 1e6:.2f} ms.")
    return found


def _topology(step: TrainingStep, hosts: int) -> list[str]:
    """Returns racks of one tensor group each, with as many spines as hosts of a rack."""
    rack = step.tensor if step.tensor > 1 else max(size for size in range(1, _RACK + 1) if hosts % size == 0)
    racks = hosts // rack
    if racks == 1 or rack == 1:
        return ['kind = "star"', f"hosts = {hosts}"]
    if rack > _MOST_SPINES:
        what = f"tensor = {rack}: a rack has at most {_MOST_SPINES:,} hosts, with a spine for each"
        raise StepError("TC-N002", what, "use a smaller tensor")
    return ['kind = "leaf-spine"', f"racks = {racks}", f"hosts_per_rack = {rack}", f"spines = {rack}"]


def _drain_s(step: TrainingStep, counts: Counts, link_bps: int) -> int:
    """Returns seconds that suffice for everything one after the other, at a quarter of the links' rate.

    Raises:
        StepError: TC-N002: they are more than an experiment can last.
    """
    bits = 8 * counts.total_bytes // counts.hosts
    inside = step.inside_ns() * counts.tensor_reduces if step.traffic is TensorTraffic.COMPUTATION else 0
    seconds = 1 + (counts.computation_ns + inside) // 10**9 + 4 * bits // link_bps + 1
    if seconds > MAX_SECONDS:
        what = f"the step may take {seconds:,} s, and an experiment at most {MAX_SECONDS:,} s"
        raise StepError("TC-N002", what, "use smaller or fewer micro-batches, a smaller model, or a faster rank")
    return seconds
