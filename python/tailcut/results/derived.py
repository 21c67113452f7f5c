"""Statistics derived from the tables of each run, computed once: a summary of thousands of runs reads one file.

``derived/<…>.parquet`` of a directory of results has the rows of all runs, and ``derived/times-<…>.parquet`` the sorted
times of one. They are named by everything but the runs that decides them, and each row says which tables it is of, so
that nothing old is taken for new. They can be removed at any time.
"""

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from tailcut.plan import canonical
from tailcut.results import samples, statistics, summary
from tailcut.results.machine import cores
from tailcut.results.samples import Group, Sample
from tailcut.results.store import Store
from tailcut.results.tables import read_parquet, to_parquet

SUMS = ("retransmissions", "timeouts", "data_packets")
TOTALS: dict[str, pl.DataType] = {
    **dict.fromkeys(SUMS, pl.UInt64()),
    "long_throughput_bps": pl.Float64(),
    "long_share_of_ideal": pl.Float64(),
    "times": pl.String(),
}
"""Columns of the totals of a run: sums over its flows; the mean throughput of long flows and their mean share of the
ideal; a hash of the completion times of all flows, empty if there are none."""
TIMES = "times-"
"""The prefix of files of sorted times; a hash of the code and the run follow, with a hyphen between."""
IDENTIFYING = ("id", "fct_ns", "fct_ack_ns")
OF = "of"  # which tables a row was computed from
READ = ("flows.parquet", "jobs.parquet", "throughput.parquet")
In = TypeVar("In")
Out = TypeVar("Out")


def tables_of(about: Mapping[str, Any]) -> str:
    """Identifies the tables that rows are computed from, given ``run.json``."""
    return " ".join(about["files"][name]["sha256"][:16] for name in READ if name in about["files"])


class Derived:
    """Statistics and totals of the runs of a store, under one setting of ``measure``."""

    def __init__(self, store: Store, measure: Mapping[str, Any], prefix: str = "") -> None:
        self._store = store
        self._measure = measure
        self._prefix = prefix  # of the files: each backend has its own, as each asks for its runs alone
        self._name = hashlib.sha256(f"{canonical(measure)}\n{_code()}".encode()).hexdigest()[:12]

    def statistics(self, runs: Mapping[str, tuple[str, int]]) -> pl.DataFrame:
        """The columns ``id`` and ``summary.PER_RUN`` of runs.

        Args:
            runs: by identifier, which tables a run has (``tables_of``) and when it ended, in ns.
        """
        return self._rows("statistics", summary.PER_RUN, runs, self._statistics_of)

    def totals(self, runs: Mapping[str, tuple[str, int]]) -> pl.DataFrame:
        """The columns ``id`` and ``TOTALS`` of runs, one row each; the argument is that of ``statistics``."""
        return self._rows("totals", TOTALS, runs, self._totals_of)

    def _rows(
        self, kind: str, columns: Mapping[str, pl.DataType], runs: Mapping[str, tuple[str, int]], compute: Any
    ) -> pl.DataFrame:
        homes: dict[Path, dict[str, tuple[str, int]]] = {}
        for run_id, made in runs.items():
            homes.setdefault(self._store.home(run_id).directory, {})[run_id] = made
        there = homes or {self._store.directory: {}}
        return pl.concat([self._rows_at(home, kind, columns, made, compute) for home, made in there.items()])

    def _rows_at(
        self,
        home: Path,
        kind: str,
        columns: Mapping[str, pl.DataType],
        runs: Mapping[str, tuple[str, int]],
        compute: Any,
    ) -> pl.DataFrame:
        schema = {"id": pl.String(), OF: pl.String(), **columns}
        path = home / "derived" / f"{self._prefix}{kind}-{self._name}.parquet"
        kept = pl.DataFrame(schema=schema)
        with contextlib.suppress(OSError, pl.exceptions.PolarsError):
            kept = read_parquet(path).select(pl.col(name).cast(kind) for name, kind in schema.items())
        asked = pl.DataFrame(
            {"id": list(runs), OF: [of for of, _ in runs.values()]}, schema={"id": pl.String(), OF: pl.String()}
        )
        kept = kept.join(asked, on=["id", OF], how="semi", maintain_order="left")
        there = set(kept["id"])
        missing = [run_id for run_id in runs if run_id not in there]

        def rows_of(run_id: str) -> pl.DataFrame:
            of, end_ns = runs[run_id]
            rows: pl.DataFrame = compute(run_id, of, end_ns)
            return rows.select(pl.lit(run_id).alias("id"), pl.lit(of).alias(OF), pl.all())

        new = in_threads(rows_of, missing)
        if new:
            kept = pl.concat([kept, *new])
            with contextlib.suppress(OSError):  # where nothing may be written, it is computed again the next time
                self._store.put_derived(path, to_parquet(kept, {}))
        return kept.drop(OF)

    def samples(self, run_id: str, of: str, end_ns: int) -> dict[Group, Sample]:
        """Returns the counted flows of a run by class, from its derived file, which is written if it is missing.

        Args:
            run_id: its identifier.
            of: which tables it has (``tables_of``).
            end_ns: when it ended.
        """
        kept = pl.DataFrame()
        with contextlib.suppress(OSError, pl.exceptions.PolarsError):
            found = read_parquet(self._times_at(run_id))
            kept = found.select(pl.col(name).cast(kind) for name, kind in samples.KEPT.items())
        if kept.height == 0 or kept["of"][0] != of:
            kept = self._keep_samples(run_id, of, self._flows(run_id), end_ns)
        return samples.by_group(kept)

    def _keep_samples(self, run_id: str, of: str, flows: pl.DataFrame, end_ns: int) -> pl.DataFrame:
        jobs = self._store.path(run_id) / "jobs.parquet"
        parts = [samples.of_flows(flows, self._measure, end_ns)]
        if jobs.exists():
            parts.append(samples.of_jobs(read_parquet(jobs), self._measure, end_ns))
        kept = pl.concat(parts).select(pl.lit(of).alias("of"), pl.all())
        with contextlib.suppress(OSError):  # where nothing may be written, it is computed again the next time
            self._store.put_derived(self._times_at(run_id), to_parquet(kept, {}))
        return kept

    def _times_at(self, run_id: str) -> Path:
        return self._store.home(run_id).directory / "derived" / f"{TIMES}{self._name}-{run_id}.parquet"

    def _flows(self, run_id: str) -> pl.DataFrame:
        return read_parquet(self._store.path(run_id) / "flows.parquet")

    def _statistics_of(self, run_id: str, of: str, end_ns: int) -> pl.DataFrame:
        flows = self._flows(run_id)
        of_groups = samples.by_group(self._keep_samples(run_id, of, flows, end_ns))
        return pl.concat([summary.of_samples(of_groups), summary.of_parts(flows)])

    def _totals_of(self, run_id: str, _of: str, _end_ns: int) -> pl.DataFrame:
        path = self._store.path(run_id)
        of_flows = read_parquet(path / "flows.parquet", (*SUMS, *IDENTIFYING))
        totals = of_flows.select(pl.col(name).cast(pl.UInt64).sum() for name in SUMS)
        times = _identity(of_flows.select(IDENTIFYING).sort("id")) if of_flows.height else ""
        speed: dict[str, Any] = {"long_throughput_bps": None, "long_share_of_ideal": None}
        if (path / "throughput.parquet").exists():
            of_long = read_parquet(path / "throughput.parquet").select(
                long_throughput_bps=pl.col("throughput_bps").mean(),
                long_share_of_ideal=pl.when(pl.col("ideal_bps") > 0)
                .then(pl.col("throughput_bps") / pl.col("ideal_bps"))
                .mean(),
            )
            speed = of_long.row(0, named=True)
        speeds = (pl.lit(value, pl.Float64).alias(name) for name, value in speed.items())
        return totals.with_columns(*speeds, pl.lit(times).alias("times"))


def in_threads(work: Callable[[In], Out], items: Sequence[In]) -> list[Out]:
    """Returns the results of independent work on each item, in order, from a thread per core.

    Reading and sorting tables leaves the interpreter to other threads.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(len(items), cores())) as threads:
        return list(threads.map(work, items))


def _identity(table: pl.DataFrame) -> str:
    """Identifies the values of a table of whole numbers, some of which may be missing."""
    digest = hashlib.sha256()
    for column in table:
        digest.update(column.is_null().to_numpy().tobytes())
        digest.update(column.fill_null(0).cast(pl.Int64).to_numpy().tobytes())
    return digest.hexdigest()


@cache
def _code() -> str:
    """Identifies the code that rows are computed by."""
    modules: Sequence[Path] = [Path(str(module.__file__)) for module in (samples, statistics, summary)] + [
        Path(__file__)
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in modules)).hexdigest()
