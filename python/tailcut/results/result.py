"""The contents of a directory of results, as Polars frames."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import polars as pl

from tailcut.backends import KINDS, Extras
from tailcut.plan import SUMMARY_FORMAT, Plan, PlannedRun, label, unique_runs
from tailcut.results import same, scans, totals
from tailcut.results import summary as summaries
from tailcut.results.cells import Cells, groups_of
from tailcut.results.derived import Derived, tables_of
from tailcut.results.store import State, Store, write_atomically
from tailcut.results.tables import read_parquet, schema, to_parquet
from tailcut.results.thread_times import ThreadSeconds
from tailcut.results.totals import ABOUT

if TYPE_CHECKING:
    from tailcut.lab.results import LabResults


class StoredResult:
    """The results of an experiment, as far as they are there.

    Attributes:
        directory: where they are; of several directories the first.
        store: the runs on disk.
        plan: what was asked.
        with_unfaithful: whether the lab's runs that are not faithful are counted in.
    """

    def __init__(self, store: Store, plan: Plan | None = None, *, with_unfaithful: bool = False) -> None:
        self.directory: Path = store.directory
        self.with_unfaithful = with_unfaithful
        # The plan on disk is the one asked for last, by whichever command; it answers only who asks for what is there.
        self.plan: Plan = store.plan() if plan is None else plan
        self.store: Store = store
        self._derived = Derived(store, self.plan["measure"])
        self._states: dict[str, State] = {}
        self._unfinished: dict[str, list[dict[str, Any]]] = {}  # jobs given as graphs that a run did not end
        self._threads: dict[str, ThreadSeconds | None] = {}  # where the time of its threads went, if it had several
        self._records: dict[str, dict[str, Any]] = {}  # what of run.json is asked for, of each run that is there
        self._tables: dict[str, tuple[str, int]] = {}  # which tables it has, and when it ended
        for run_id in unique_runs(self.plan):
            self._states[run_id], about = store.state_and_record(run_id)
            if about is not None:
                self._records[run_id] = {name: about.get(name) for name in ABOUT}
                self._unfinished[run_id] = about.get("unfinished_jobs", [])
                self._threads[run_id] = about.get("thread_seconds")
                self._tables[run_id] = tables_of(about), about["end_ns"]
        self._finished = [run for run in self.plan["runs"] if self._states[run["id"]] is State.COMPLETE]

    @classmethod
    def open(cls, *directories: str | Path, with_unfaithful: bool = False) -> Self:
        """Returns the results in a directory, or in several together (see `tailcut.open_results`)."""
        from tailcut.results.together import store_of

        return cls(store_of(directories), with_unfaithful=with_unfaithful)

    def __repr__(self) -> str:
        there = f"{len(self._finished)} of {len(self.plan['runs'])} runs"
        return f"<Result {str(self.directory)!r}: {there} of {self.plan['title']!r}>"

    @property
    def finished_runs(self) -> list[PlannedRun]:
        """The runs of the plan that are there, in plan order."""
        return list(self._finished)

    @property
    def missing_runs(self) -> list[PlannedRun]:
        """The runs of the plan that are not there, or damaged."""
        there = {run["id"] for run in self._finished}
        return [run for run in self.plan["runs"] if run["id"] not in there]

    @property
    def damaged_runs(self) -> list[PlannedRun]:
        """The missing runs whose files are there and damaged."""
        return [run for run in self.plan["runs"] if self._states[run["id"]] is State.DAMAGED]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow of every finished run: scheme, the sweep's axes, seed, then the columns of flows.parquet.

        Raises:
            StoreError: TC-S013: they do not fit into memory; `scan_flows` reads what is needed of them.
        """
        rows = sum(self._records[run["id"]]["flows"] for run in self._finished)
        scans.refuse_beyond_memory(rows, {**self.label_schema, **schema("flows")})
        return self._table("flows")

    def flows_of(self, run_id: str) -> pl.DataFrame:
        """The flows of one finished run, of any backend: the columns of flows.parquet."""
        return read_parquet(self.store.path(run_id) / "flows.parquet")

    def scan_flows(self) -> pl.LazyFrame:
        """The rows of ``flows``, read when they are collected and as far as they are needed.

        For results whose flows do not fit into memory: ``result.scan_flows().filter(...).collect()``.
        """
        paths = [(self.store.path(run["id"]) / "flows.parquet", self.labels(run)) for run in self._finished]
        return scans.labelled(paths, self.label_schema, schema("flows"))

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """A row per job that has begun, of every finished run; empty where traffic makes up no jobs."""
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
    def fabric(self) -> pl.DataFrame:
        """Every port at a number of instants, as the tables ``ports`` number them; empty unless ``measure.fabric``."""
        return self._table("fabric")

    @cached_property
    def ports(self) -> pl.DataFrame:
        """The ports; empty unless ``measure.fabric``."""
        return self._table("ports")

    @cached_property
    def paths(self) -> pl.DataFrame:
        """The ports that sent packets of each flow, the slowest flows first kept; empty unless ``measure.fabric``."""
        return self._table("paths")

    @cached_property
    def tiers(self) -> pl.DataFrame:
        """A row per tier and direction of every finished run: utilisation and drops."""
        return self._table("tiers")

    @cached_property
    def series(self) -> pl.DataFrame:
        """The samples of all time series that the plan asks for; empty if it asks for none."""
        return self._table("series")

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row per finished run: its totals, wall time, speed and memory.

        A run that several schemes or points share, as their configuration is the same, is one row, under the first.
        """
        return self._runs_of_cells.unique("id", keep="first", maintain_order=True)

    @cached_property
    def _runs_of_cells(self) -> pl.DataFrame:
        """A row per scheme, point and seed that has a finished run."""
        rows = [{"id": run["id"], **self.labels(run), **self._records[run["id"]]} for run in self._finished]
        return pl.DataFrame(rows, schema={"id": pl.String(), **self.label_schema, **ABOUT})

    @property
    def thread_seconds(self) -> list[ThreadSeconds]:
        """The seconds of each thread at work, waiting and exchanging packets, of each finished run on several."""
        runs = dict.fromkeys(run["id"] for run in self._finished)
        return [times for times in map(self._threads.get, runs) if times is not None]

    @property
    def unfinished_jobs(self) -> list[str]:
        """A sentence for each job given as a graph that had not ended with its run: what waits for what."""
        return [
            f"{one['code']}: {label(run)}: job {one['job']}: {one['reason']}"
            for run in self._finished
            for one in self._unfinished[run["id"]]
        ]

    @cached_property
    def same(self) -> list[str]:
        """Sentences on schemes that carried every flow in the same nanosecond as another one did, and why."""
        times = self._derived.totals(self._tables).filter(pl.col("times") != "").select("id", "times")
        return same.observed(self.plan, dict(times.iter_rows()))

    @cached_property
    def per_seed(self) -> pl.DataFrame:
        """The statistics of each run by itself: one row per finished run, class and statistic."""
        rows = [{"id": run["id"], **self.labels(run)} for run in self._finished]
        labels = pl.DataFrame(rows, schema={"id": pl.String(), **self.label_schema})
        of_runs = self._derived.statistics(self._tables)
        return labels.join(of_runs, on="id", how="inner", maintain_order="left_right").drop("id")

    def end_ns(self, run_id: str) -> int:
        """Returns the end of a finished run, in ns of its own time."""
        return self._tables[run_id][1] if run_id in self._tables else int(self.store.run_record(run_id)["end_ns"])

    def path(self, run_id: str) -> Path:
        """The directory of a finished run."""
        return self.store.path(run_id)

    def capture_of(self, run_id: str) -> Path | None:
        """The capture of a finished run; None if it was made without."""
        path = self.store.path(run_id) / "capture.pcapng"
        return path if path.exists() else None

    @property
    def simulated(self) -> Cells:
        """The simulator's runs by scheme and point."""
        runs = [(run, (run["id"], *self._tables[run["id"]])) for run in self._finished]
        return Cells(self._derived, self.store, runs)

    @cached_property
    def _extras(self) -> dict[str, Extras]:
        return {name: kind.extras_of(self) for name, kind in KINDS.items() if kind.extras}

    @property
    def lab(self) -> "LabResults":
        """The runs over real kernels."""
        return cast("LabResults", self._extras["lab"])

    def summary(self) -> pl.DataFrame:
        """Mean, p50, p99 and p99.9 per scheme, point and class, of every backend (see ``summary_schema``)."""
        schema = summaries.summary_schema(self.plan)
        parts = []
        others = self.store.summaries(self.plan)
        extras = [one for one in self._extras.values() if one.has_runs]
        if self._finished or not (others or extras):
            parts.append(summaries.summarise(self.plan, self.simulated, groups_of(self.per_seed), "sim"))
        parts.extend(one.summary() for one in extras)
        parts.extend(rows.select(pl.col(name).cast(kind) for name, kind in schema.items()) for rows in others.values())
        return pl.concat(parts)

    def totals(self) -> pl.DataFrame:
        """Each scheme's carried and lost traffic at each point: loads are means over seeds, counts are sums."""
        axes = list(summaries.axes_schema(self.plan))
        return totals.of_cells(self._runs_of_cells, self._derived.totals(self._tables), axes)

    def bus_bandwidths(self) -> pl.DataFrame:
        """The bus bandwidth of each kind of collective operation: of each scheme at each point, over all iterations.

        As nccl-tests define it, it belongs to the mean time of the iterations.
        """
        axes = list(summaries.axes_schema(self.plan))
        jobs = self.jobs
        key = ["scheme", *axes, "kind"]
        if "busbw_gb_per_s" not in jobs.columns:
            return pl.DataFrame(schema={**{name: jobs.schema[name] for name in key}, "busbw_gb_per_s": pl.Float64()})
        took = pl.col("completion_ns")
        ended = jobs.filter(pl.col("finished"), pl.col("busbw_gb_per_s").is_not_null())
        mean = (pl.col("busbw_gb_per_s") * took).sum() / took.sum()
        return ended.group_by(key, maintain_order=True).agg(mean.alias("busbw_gb_per_s"))

    def write_summary(self) -> Path:
        """Write ``summary.parquet`` anew from what is there, without unfaithful runs: its readers asked for none."""
        path = self.store.beside("summary.parquet")
        faithful = StoredResult(self.store, self.plan) if self.with_unfaithful else self
        about = {"tailcut": self.plan["title"], "format": str(SUMMARY_FORMAT)}
        write_atomically(path, to_parquet(faithful.summary(), about))
        return path

    def changed_ns(self) -> int:
        """The time of the last change of a run, a plan or a backend's summary in the directory, in ns since 1970."""
        places = (self.directory / name for name in ("plan.json", "runs", "summaries"))
        return max(place.stat().st_mtime_ns for place in places if place.exists())

    def _table(self, name: str) -> pl.DataFrame:
        parts = []
        for run in self._finished:
            path = self.store.path(run["id"]) / f"{name}.parquet"
            if path.exists():
                parts.append(read_parquet(path).select(*self.literals(run), pl.all()))
        # Some runs of a sweep may have columns that others lack: those of collectives.
        how: Literal["diagonal", "vertical"] = "diagonal" if name == "jobs" else "vertical"
        return pl.concat(parts, how=how) if parts else pl.DataFrame(schema={**self.label_schema, **schema(name)})

    @property
    def label_schema(self) -> dict[str, pl.DataType]:
        """The columns that identify a planned run: the scheme, the sweep's axes, the seed."""
        return {"scheme": pl.String(), **summaries.axes_schema(self.plan), "seed": pl.UInt64()}

    def labels(self, run: PlannedRun) -> dict[str, Any]:
        """Returns the values of these columns for a run."""
        return {
            "scheme": run["scheme"],
            **summaries.point_columns(self.plan, run["point"]),
            "seed": run["seed"],
        }

    def literals(self, run: PlannedRun) -> list[pl.Expr]:
        """Returns these values as expressions, to be put before a run's rows."""
        kinds = self.label_schema
        return [pl.lit(value, dtype=kinds[name]).alias(name) for name, value in self.labels(run).items()]
