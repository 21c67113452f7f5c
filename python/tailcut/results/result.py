"""The contents of a directory of results, as Polars frames."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tailcut.errors import StoreError
from tailcut.lab import fabrics
from tailcut.lab.fabrics import FABRICS
from tailcut.plan import SUMMARY_FORMAT, Plan, PlannedRun, unique_runs
from tailcut.results import derived, kernel_comparison, lab_runs, machine, same, spread
from tailcut.results import summary as summaries
from tailcut.results.cells import Cells, groups_of
from tailcut.results.derived import Derived, tables_of
from tailcut.results.store import State, Store, write_atomically
from tailcut.results.tables import read_parquet, scan_parquet, schema, to_parquet

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
    "pauses",
    "deadlocked_links",
    "headers_returned",
    "headers_dropped",
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
    **dict.fromkeys(("flows", "unfinished_flows", "sent", "delivered"), pl.Int64()),
    **dict.fromkeys(SUMS, pl.UInt64()),
}

LAB_ABOUT: dict[str, pl.DataType] = {
    "offered_load": pl.Float64(),
    "carried_load": pl.Float64(),
    "wall_seconds": pl.Float64(),
    "end_ns": pl.Int64(),
    "flows": pl.Int64(),
    "unfinished_flows": pl.Int64(),
    "packet_hops": pl.Int64(),
    "dropped": pl.Int64(),
    "lost_on_links": pl.Int64(),
}
"""Fields of run.json that go into Result.lab_runs."""
LAB_HEAD: dict[str, pl.DataType] = {"repeat": pl.UInt32(), "fabric": pl.String()}
"""Columns that identify the runs of the lab of one planned run."""
NO_FAITHFUL_RUN = "no faithful run of this cell is there"


class Result:
    """The results of an experiment, as far as they are there.

    Attributes:
        directory: where they are; of several directories the first.
        plan: what was asked.
        with_unfaithful: whether the lab's runs that are not faithful are counted in.
    """

    def __init__(self, store: Store, plan: Plan | None = None, *, with_unfaithful: bool = False) -> None:
        self.directory: Path = store.directory
        self.with_unfaithful = with_unfaithful
        # The plan on disk is the one asked for last, by whichever command; it answers only who asks for what is there.
        self.plan: Plan = store.plan() if plan is None else plan
        self._store = store
        self._derived = Derived(store, self.plan["measure"])
        self._lab_derived = Derived(store, self.plan["measure"], "lab-")
        self._states: dict[str, State] = {}
        self._records: dict[str, dict[str, Any]] = {}  # what of run.json is asked for, of each run that is there
        self._tables: dict[str, tuple[str, int]] = {}  # which tables it has, and when it ended
        for run_id in unique_runs(self.plan):
            self._states[run_id], about = store.state_and_record(run_id)
            if about is not None:
                self._records[run_id] = {name: about.get(name) for name in ABOUT}
                self._tables[run_id] = tables_of(about), about["end_ns"]
        self._there = [run for run in self.plan["runs"] if self._states[run["id"]] is State.COMPLETE]

    def __repr__(self) -> str:
        there = f"{len(self._there)} of {len(self.plan['runs'])} runs"
        return f"<Result {str(self.directory)!r}: {there} of {self.plan['title']!r}>"

    def _repr_html_(self) -> str:
        """Returns a notebook's view: the findings in sentences, the summary and one figure."""
        from tailcut.report import notebook

        return notebook.html(self)

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
        """The missing runs whose files are there and damaged."""
        return [run for run in self.plan["runs"] if self._states[run["id"]] is State.DAMAGED]

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow of every finished run: scheme, the sweep's axes, seed, then the columns of flows.parquet.

        Raises:
            StoreError: TC-S013: they do not fit into memory; `scan_flows` reads what is needed of them.
        """
        rows = sum(self._records[run["id"]]["flows"] for run in self._there)
        columns = {**self._label_schema, **schema("flows")}.values()
        needed = 2 * rows * sum(16 if kind == pl.String() else 8 for kind in columns)  # the parts, and then the whole
        available = machine.available_memory()
        if available is not None and needed > available:
            raise StoreError(
                "TC-S013",
                f"{rows:,} flows take about {needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are free",
                "read what you need of them: result.scan_flows().filter(...).collect()",
            )
        return self._table("flows")

    def flows_of(self, run: PlannedRun | lab_runs.LabRun) -> pl.DataFrame:
        """The flows of one finished run, of the simulator or the lab: the columns of flows.parquet."""
        run_id = run.id if isinstance(run, lab_runs.LabRun) else run["id"]
        return read_parquet(self._store.path(run_id) / "flows.parquet")

    def scan_flows(self) -> pl.LazyFrame:
        """The rows of ``flows``, read when they are collected and as far as they are needed.

        For results whose flows do not fit into memory: ``result.scan_flows().filter(...).collect()``.
        """
        parts: list[dict[str, PlannedRun]] = []
        for run in self._there:
            if not parts or run["id"] in parts[-1]:  # one scan has each file once; schemes that are the same share one
                parts.append({})
            parts[-1][run["id"]] = run
        empty = pl.LazyFrame(schema={**self._label_schema, **schema("flows")})
        return pl.concat([self._scan(part) for part in parts]) if parts else empty

    def _scan(self, runs: Mapping[str, PlannedRun]) -> pl.LazyFrame:
        """The flows of these runs by one scan: one per run takes a megabyte each."""
        place = ".file"
        paths = [self._store.path(run_id) / "flows.parquet" for run_id in runs]
        labels = [{place: str(path), **self._labels(run)} for path, run in zip(paths, runs.values(), strict=True)]
        named = pl.LazyFrame(labels, schema={place: pl.String(), **self._label_schema})
        rows = scan_parquet(*paths, place=place)
        joined = rows.join(named, on=place, how="left", maintain_order="left")
        return joined.select(*self._label_schema, pl.exclude(place, *self._label_schema))

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
        rows = [{"id": run["id"], **self._labels(run), **self._records[run["id"]]} for run in self._there]
        return pl.DataFrame(rows, schema={"id": pl.String(), **self._label_schema, **ABOUT})

    @cached_property
    def same(self) -> list[str]:
        """Sentences on schemes that carried every flow in the same nanosecond as another one did, and why."""
        times = self._derived.totals(self._tables).filter(pl.col("times") != "").select("id", "times")
        return same.observed(self.plan, dict(times.iter_rows()))

    @cached_property
    def per_seed(self) -> pl.DataFrame:
        """The statistics of each run by itself: one row per finished run, class and statistic."""
        rows = [{"id": run["id"], **self._labels(run)} for run in self._there]
        labels = pl.DataFrame(rows, schema={"id": pl.String(), **self._label_schema})
        of_runs = self._derived.statistics(self._tables)
        return labels.join(of_runs, on="id", how="inner", maintain_order="left_right").drop("id")

    @cached_property
    def _of_lab(self) -> list[lab_runs.LabRun]:
        return lab_runs.of_plan(self._store, self.plan["runs"])

    @property
    def finished_lab_runs(self) -> list[lab_runs.LabRun]:
        """The runs of the lab that are there, in plan order and by repeat."""
        return list(self._of_lab)

    @property
    def counted_lab_runs(self) -> list[lab_runs.LabRun]:
        """The runs of the lab that statistics are of: the faithful ones, or all if that is asked for."""
        return [one for one in self._of_lab if one.faithful or self.with_unfaithful]

    def end_ns(self, run: PlannedRun | lab_runs.LabRun) -> int:
        """Returns the end of a finished run, of the simulator or the lab."""
        return int(run.about["end_ns"] if isinstance(run, lab_runs.LabRun) else self._tables[run["id"]][1])

    def path(self, run_id: str) -> Path:
        """The directory of a finished run."""
        return self._store.path(run_id)

    def capture_of(self, run: lab_runs.LabRun) -> Path | None:
        """The capture of one finished run of the lab; None if it was made without."""
        path = self._store.path(run.id) / "capture.pcapng"
        return path if path.exists() else None

    @cached_property
    def lab_runs(self) -> pl.DataFrame:
        """A row per finished run of the lab: its verdict, with the reasons if it is not faithful, and its totals."""
        rows = [
            {
                "id": one.id,
                **self._labels(one.run),
                "repeat": one.repeat,
                "fabric": one.fabric,
                "faithful": one.faithful,
                "unfaithful": one.about["unfaithful"],
                **{name: one.about[name] for name in LAB_ABOUT},
            }
            for one in self._of_lab
        ]
        head = {"id": pl.String(), **self._label_schema, **LAB_HEAD, "faithful": pl.Boolean()}
        return pl.DataFrame(rows, schema={**head, "unfaithful": pl.List(pl.String()), **LAB_ABOUT})

    @cached_property
    def lab_flows(self) -> pl.DataFrame:
        """A row per flow of every finished run of the lab: as ``flows``, with the repeat and the run's verdict.

        Its last column, ``start_late_ns``, says how late the flow started; runs of older versions did not record it.
        """
        return self._lab_table("flows", beside="starts")

    @cached_property
    def lab_jobs(self) -> pl.DataFrame:
        """A row per job that has begun, of every finished run of the lab: as ``jobs``, and as ``lab_flows``."""
        return self._lab_table("jobs")

    @cached_property
    def lab_series(self) -> pl.DataFrame:
        """The samples of time series of every finished run of the lab: as ``series``, and as ``lab_flows``."""
        return self._lab_table("series")

    @cached_property
    def lab_tiers(self) -> pl.DataFrame:
        """A row per tier and direction of every finished run of the lab: as ``tiers``, and as ``lab_flows``."""
        return self._lab_table("tiers")

    def _lab_table(self, name: str, beside: str | None = None) -> pl.DataFrame:
        """A table of every run; ``beside`` names one with further columns of the same rows, by their ``id``."""
        further = {} if beside is None else {key: kind for key, kind in schema(beside).items() if key != "id"}
        parts = []
        for one in self._of_lab:
            path = self._store.path(one.id) / f"{name}.parquet"
            if path.exists():
                repeat = pl.lit(one.repeat, dtype=pl.UInt32()).alias("repeat")
                fabric = pl.lit(one.fabric).alias("fabric")
                verdict = pl.lit(one.faithful).alias("faithful")
                rows = read_parquet(path)
                if beside is not None:
                    more = self._store.path(one.id) / f"{beside}.parquet"
                    known = read_parquet(more) if more.exists() else pl.DataFrame(schema=schema(beside))
                    rows = rows.join(known, on="id", how="left", maintain_order="left")
                parts.append(rows.select(*self._literals(one.run), repeat, fabric, verdict, pl.all()))
        head = {**self._label_schema, **LAB_HEAD, "faithful": pl.Boolean()}
        return pl.concat(parts) if parts else pl.DataFrame(schema={**head, **schema(name), **further})

    @cached_property
    def lab_per_repeat(self) -> pl.DataFrame:
        """The statistics of each counted run of the lab: one row per run, class and statistic.

        Repeats of one seed are as far apart as kernels make them (``lab_spread``); the summary takes all for one run.
        """
        counted = self.counted_lab_runs
        rows = [
            {
                "id": one.id,
                **self._labels(one.run),
                "repeat": one.repeat,
                "fabric": one.fabric,
                "faithful": one.faithful,
            }
            for one in counted
        ]
        head = {"id": pl.String(), **self._label_schema, **LAB_HEAD, "faithful": pl.Boolean()}
        labels = pl.DataFrame(rows, schema=head)
        of_runs = self._lab_derived.statistics({one.id: (tables_of(one.about), one.about["end_ns"]) for one in counted})
        return labels.join(of_runs, on="id", how="inner", maintain_order="left_right").drop("id")

    @property
    def lab_spread(self) -> pl.DataFrame:
        """The spread over repeats of one seed, and over seeds: a row per cell, class and statistic.

        Columns: ``fabric``, scheme, the sweep's axes, and those of `tailcut.results.spread.lab_spread`.
        """
        return spread.lab_spread(self.lab_per_repeat, ["fabric", "scheme", *summaries.axes_schema(self.plan)])

    @property
    def lab_against(self) -> pl.DataFrame:
        """The difference of real kernels from the simulator (`tailcut.results.kernel_comparison.compare_with_kernels`).

        A column ``backend`` comes first.
        """
        rows = kernel_comparison.compare_with_kernels(self.plan, self._simulated, self._over_kernels(fabrics.ENGINE))
        return rows.select(pl.lit(fabrics.backend(fabrics.ENGINE)).alias("backend"), pl.all())

    @property
    def _simulated(self) -> Cells:
        runs = [(run, (run["id"], *self._tables[run["id"]])) for run in self._there]
        return Cells(self._derived, self._store, runs)

    def _over_kernels(self, fabric: str) -> Cells:
        counted = [one for one in self.counted_lab_runs if one.fabric == fabric]
        runs = [(one.run, (one.id, tables_of(one.about), int(one.about["end_ns"]))) for one in counted]
        return Cells(self._lab_derived, self._store, runs)

    def _lab_summary(self) -> pl.DataFrame:
        """The lab's rows of the summary, a fabric after the other: all counted repeats of a seed are its flows."""
        cell = ["scheme", *summaries.axes_schema(self.plan)]
        parts = []
        for fabric in [name for name in FABRICS if any(one.fabric == name for one in self._of_lab)]:
            of_runs = self.lab_per_repeat.filter(fabric=fabric)
            rows = summaries.summarise(
                self.plan, self._over_kernels(fabric), groups_of(of_runs), fabrics.backend(fabric), NO_FAITHFUL_RUN
            )
            if not FABRICS[fabric].delays_when_idle:
                # Of long flows alone the time does not hang on what idle ports do.
                falsified = pl.col("value_us").is_not_null() & (pl.col("class") != "long")
                rows = rows.with_columns(reason=pl.when(falsified).then(pl.lit(fabrics.TOO_FAST)).otherwise("reason"))
            parts.append(self._marked(rows, of_runs, cell))
        return pl.concat(parts)

    def _marked(self, rows: pl.DataFrame, of_runs: pl.DataFrame, cell: list[str]) -> pl.DataFrame:
        """The rows of the summary, of which those say so that have unfaithful runs in them.

        Those may be the baseline's, which are in the change alone.
        """
        runs = of_runs.unique([*cell, "seed", "repeat"])
        verdicts = {key: value["faithful"] for key, value in runs.group_by(cell)}
        said = []
        for row in rows.iter_rows(named=True):
            _, *axes = place = tuple(row[name] for name in cell)
            own = verdicts.get(place) if row["value_us"] is not None else None
            base = verdicts.get((self.plan["baseline"], *axes)) if row["change"] is not None else None
            counted = [faithful for part in (own, base) if part is not None for faithful in part]
            caveats = [row["reason"]] if lab_runs.is_caveat(row["reason"]) else []
            if not all(counted):
                caveats.append(lab_runs.unfaithful(counted.count(False), len(counted)))
            said.append("; ".join(caveats) or row["reason"])
        return rows.with_columns(reason=pl.Series("reason", said, dtype=pl.String))

    def summary(self) -> pl.DataFrame:
        """Mean, p50, p99 and p99.9 per scheme, point and class, of every backend (see ``summary_schema``)."""
        schema = summaries.summary_schema(self.plan)
        parts = []
        others = self._store.summaries(self.plan)
        if self._there or not (others or self._of_lab):
            parts.append(summaries.summarise(self.plan, self._simulated, groups_of(self.per_seed), "sim"))
        if self._of_lab:
            parts.append(self._lab_summary())
        parts.extend(rows.select(pl.col(name).cast(kind) for name, kind in schema.items()) for rows in others.values())
        return pl.concat(parts)

    def totals(self) -> pl.DataFrame:
        """Each scheme's carried and lost traffic at each point: loads are means over seeds, counts are sums."""
        axes = list(summaries.axes_schema(self.plan))
        counts = derived.SUMS
        per_run = self._derived.totals(self._tables)
        return (
            self._runs_of_cells.join(per_run, on="id", how="left", maintain_order="left")
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

    def write_summary(self) -> Path:
        """Write ``summary.parquet`` anew from what is there, without unfaithful runs: its readers asked for none."""
        path = self._store.beside("summary.parquet")
        faithful = Result(self._store, self.plan) if self.with_unfaithful else self
        about = {"tailcut": self.plan["title"], "format": str(SUMMARY_FORMAT)}
        write_atomically(path, to_parquet(faithful.summary(), about))
        return path

    def changed_ns(self) -> int:
        """The time of the last change of a run, a plan or a backend's summary in the directory, in ns since 1970."""
        places = (self.directory / name for name in ("plan.json", "runs", "summaries"))
        return max(place.stat().st_mtime_ns for place in places if place.exists())

    def report(self, path: str | Path | None = None, slow_flows: int = 0, slow_seeds: Sequence[int] = ()) -> list[Path]:
        """Write the page, by default ``report.html`` beside the results, and its figures; the page comes first.

        With ``slow_flows`` it tells so many of the slowest flows of each scheme, as ``tailcut explain`` does, at every
        point of the sweep with the first seed, or with ``slow_seeds``.
        """
        from tailcut.report import write

        return write(
            self, Path(path) if path is not None else self._store.beside("report.html"), slow_flows, slow_seeds
        )

    def _table(self, name: str) -> pl.DataFrame:
        parts = []
        for run in self._there:
            path = self._store.path(run["id"]) / f"{name}.parquet"
            if path.exists():
                parts.append(read_parquet(path).select(*self._literals(run), pl.all()))
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
