"""What is in a directory of results, as Polars frames."""

from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tailcut.plan import Plan, PlannedRun, unique_runs
from tailcut.results import summary as summaries
from tailcut.results.store import State, Store, write_atomically
from tailcut.results.tables import schema, to_parquet

# What of run.json adds up over seeds, and says nothing about runs that have none of it.
SUMS = (
    "dropped",
    "lost_on_links",
    "in_flight",
    "needless_retransmissions",
    "recoveries_undone",
    "elephants_found",
    "elephants_missed",
    "elephants_mistaken",
    "elephant_ack_streams",
    "elephant_detection_ns",
    "elephant_reroutes",
)
# What of run.json goes into Result.runs.
ABOUT: dict[str, pl.DataType] = {
    "offered_load": pl.Float64(),
    "carried_load": pl.Float64(),
    "goodput": pl.Float64(),
    "delivered_bytes": pl.Int64(),
    "offered_bytes": pl.Int64(),
    "finished_bytes": pl.Int64(),
    "wall_seconds": pl.Float64(),
    "peak_memory_bytes": pl.Int64(),
    "events": pl.Int64(),
    "packet_hops": pl.Int64(),
    "packet_hops_per_second": pl.Float64(),
    "end_ns": pl.Int64(),
    "flows": pl.Int64(),
    "unfinished_flows": pl.Int64(),
    "sent": pl.Int64(),
    "delivered": pl.Int64(),
    **dict.fromkeys(SUMS, pl.UInt64()),
}


class Result:
    """The results of an experiment, as far as they are there.

    Attributes:
        directory: where they are.
        plan: what was asked.
    """

    def __init__(self, store: Store, plan: Plan | None = None) -> None:
        self.directory: Path = store.directory
        # The plan on disk is the one asked for last, by whichever command; it answers only who asks for what is there.
        self.plan: Plan = store.plan() if plan is None else plan
        self._store = store
        self._states = {run_id: store.state(run_id) for run_id in unique_runs(self.plan)}
        self._there = [run for run in self.plan["runs"] if self._states[run["id"]] is State.COMPLETE]

    def __repr__(self) -> str:
        there = f"{len(self._there)} of {len(self.plan['runs'])} runs"
        return f"<Result {str(self.directory)!r}: {there} of {self.plan['title']!r}>"

    @property
    def finished_runs(self) -> list[PlannedRun]:
        """The runs of the plan that are there, in plan order."""
        return list(self._there)

    @property
    def missing_runs(self) -> list[PlannedRun]:
        """The runs of the plan that are not there, or damaged."""
        there = {run["id"] for run in self._there}
        return [run for run in self.plan["runs"] if run["id"] not in there]

    @property
    def damaged_runs(self) -> list[PlannedRun]:
        """Those of the missing runs whose files are there and not as they were written."""
        return [run for run in self.plan["runs"] if self._states[run["id"]] is State.DAMAGED]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per flow of every finished run: scheme, the sweep's axes, seed, then the columns of flows.parquet."""
        return self._table("flows")

    def scan_flows(self) -> pl.LazyFrame:
        """The rows of ``flows``, read when they are collected and as far as they are needed.

        For results whose flows do not fit into memory: ``result.scan_flows().filter(...).collect()``.
        """
        parts = [
            pl.scan_parquet(self._store.path(run["id"]) / "flows.parquet").select(*self._literals(run), pl.all())
            for run in self._there
        ]
        return pl.concat(parts) if parts else pl.LazyFrame(schema={**self._label_schema, **schema("flows")})

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """One row per job that has begun, of every finished run; empty where traffic makes up no jobs."""
        return self._table("jobs")

    @cached_property
    def segments(self) -> pl.DataFrame:
        """Counts of duplicate ACKs, reordering and the like; empty unless ``measure.segments``."""
        return self._table("segments")

    @cached_property
    def throughput(self) -> pl.DataFrame:
        """The throughput of each long flow while flows arrived; empty unless ``measure.throughput``."""
        return self._table("throughput")

    @cached_property
    def tiers(self) -> pl.DataFrame:
        """One row per tier and direction of every finished run: utilisation and drops."""
        return self._table("tiers")

    @cached_property
    def series(self) -> pl.DataFrame:
        """The samples of all time series that the plan asks for; empty if it asks for none."""
        return self._table("series")

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per finished run: its totals, wall time, speed and memory."""
        rows = []
        for run in self._there:
            about = self._store.about(run["id"])
            rows.append({"id": run["id"], **self._labels(run), **{name: about.get(name) for name in ABOUT}})
        return pl.DataFrame(rows, schema={"id": pl.String(), **self._label_schema, **ABOUT})

    @cached_property
    def per_seed(self) -> pl.DataFrame:
        """The statistics that the summary's intervals come from: one row per finished run, class and statistic."""
        parts = []
        cache: dict[str, pl.DataFrame] = {}
        for run in self._there:
            if run["id"] not in cache:
                path = self._store.path(run["id"])
                end_ns = self._store.about(run["id"])["end_ns"]
                of_run = summaries.of_run(pl.read_parquet(path / "flows.parquet"), self.plan["measure"], end_ns)
                if (path / "jobs.parquet").exists():
                    jobs = pl.read_parquet(path / "jobs.parquet")
                    of_run = pl.concat([of_run, summaries.of_jobs(jobs, self.plan["measure"], end_ns)])
                cache[run["id"]] = of_run
            parts.append(cache[run["id"]].select(*self._literals(run), pl.all()))
        if not parts:
            return pl.DataFrame(schema={**self._label_schema, **summaries.PER_RUN})
        return pl.concat(parts)

    def summary(self) -> pl.DataFrame:
        """Mean, p50, p99 and p99.9 per scheme, point and class, of every backend (see ``summary_schema``)."""
        schema = summaries.summary_schema(self.plan)
        parts = []
        others = self._store.summaries(self.plan)
        if self._there or not others:
            parts.append(summaries.summarise(self.plan, self.per_seed, "sim"))
        parts.extend(rows.select(pl.col(name).cast(kind) for name, kind in schema.items()) for rows in others.values())
        return pl.concat(parts)

    def totals(self) -> pl.DataFrame:
        """What each scheme carried and lost at each point: loads are means over seeds, counts are sums."""
        axes = list(summaries.axes_schema(self.plan))
        counts = ["retransmissions", "timeouts", "data_packets"]
        nothing = pl.DataFrame(schema={"id": pl.String(), **dict.fromkeys(counts, pl.UInt64())})
        per_run = pl.concat(
            [nothing]
            + [
                pl.scan_parquet(self._store.path(run["id"]) / "flows.parquet")
                .select(pl.col(name).cast(pl.UInt64).sum() for name in counts)
                .select(pl.lit(run["id"]).alias("id"), pl.all())
                .collect()
                for run in {run["id"]: run for run in self._there}.values()
            ]
        )
        per_run = per_run.join(self._speed_of_long_flows(), on="id", how="left")
        return (
            self.runs.join(per_run, on="id", how="left", maintain_order="left")
            .group_by("scheme", *axes, maintain_order=True)
            .agg(
                n_seeds=pl.len(),
                offered_load=pl.col("offered_load").mean(),
                carried_load=pl.col("carried_load").mean(),
                goodput=pl.col("goodput").mean(),
                offered_bytes=pl.col("offered_bytes").sum(),
                finished_bytes=pl.col("finished_bytes").sum(),
                flows=pl.col("flows").sum(),
                unfinished_flows=pl.col("unfinished_flows").sum(),
                **{
                    name: pl.when(pl.col(name).count() > 0).then(pl.col(name).cast(pl.UInt64).sum())
                    for name in (*SUMS, *counts)
                },
                long_throughput_bps=pl.col("long_throughput_bps").mean(),
                long_share_of_ideal=pl.col("long_share_of_ideal").mean(),
                packet_hops=pl.col("packet_hops").sum(),
                wall_seconds=pl.col("wall_seconds").sum(),
            )
        )

    def _speed_of_long_flows(self) -> pl.DataFrame:
        """Mean throughput of each run's long flows, and its share of the ideal; empty unless ``measure.throughput``."""
        schema = {"id": pl.String(), "long_throughput_bps": pl.Float64(), "long_share_of_ideal": pl.Float64()}
        paths = {run["id"]: self._store.path(run["id"]) / "throughput.parquet" for run in self._there}
        means = [
            pl.read_parquet(path).select(
                pl.lit(run_id).alias("id"),
                long_throughput_bps=pl.col("throughput_bps").mean(),
                long_share_of_ideal=(pl.col("throughput_bps") / pl.col("ideal_bps")).mean(),
            )
            for run_id, path in paths.items()
            if path.exists()
        ]
        return pl.concat(means) if means else pl.DataFrame(schema=schema)

    def write_summary(self) -> Path:
        """Write ``summary.parquet`` anew from what is there."""
        path = self.directory / "summary.parquet"
        write_atomically(path, to_parquet(self.summary(), {"tailcut": self.plan["title"]}))
        return path

    def report(self, path: str | Path | None = None) -> list[Path]:
        """Write the page, by default ``report.html`` beside the results, and its figures; the page comes first."""
        from tailcut.report import write

        return write(self, Path(path) if path is not None else self.directory / "report.html")

    def _table(self, name: str) -> pl.DataFrame:
        parts = []
        for run in self._there:
            path = self._store.path(run["id"]) / f"{name}.parquet"
            if path.exists():
                parts.append(pl.read_parquet(path).select(*self._literals(run), pl.all()))
        return pl.concat(parts) if parts else pl.DataFrame(schema={**self._label_schema, **schema(name)})

    @property
    def _label_schema(self) -> dict[str, pl.DataType]:
        return {"scheme": pl.String(), **summaries.axes_schema(self.plan), "seed": pl.UInt64()}

    def _labels(self, run: PlannedRun) -> dict[str, Any]:
        return {
            "scheme": run["scheme"],
            **summaries.point_columns(self.plan, run["point"]),
            "seed": run["seed"],
        }

    def _literals(self, run: PlannedRun) -> list[pl.Expr]:
        kinds = self._label_schema
        return [pl.lit(value, dtype=kinds[name]).alias(name) for name, value in self._labels(run).items()]
