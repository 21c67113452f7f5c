"""The lab's part of a result: its runs with their verdicts, as Polars frames, and its rows of the summary."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tailcut.lab import fabrics
from tailcut.lab.fabrics import FABRICS
from tailcut.results import kernel_comparison, lab_runs
from tailcut.results import spread as spreads
from tailcut.results import summary as summaries
from tailcut.results.cells import Cells, groups_of
from tailcut.results.derived import Derived, tables_of
from tailcut.results.tables import read_parquet, schema

if TYPE_CHECKING:
    from tailcut.results import StoredResult

ABOUT: dict[str, pl.DataType] = {
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
"""Fields of run.json that are columns of ``runs``."""
HEAD: dict[str, pl.DataType] = {"repeat": pl.UInt32(), "fabric": pl.String(), "faithful": pl.Boolean()}
"""Columns that tell apart the runs of the lab of one planned run, and the verdict on each."""
NO_FAITHFUL_RUN = "no faithful run of this cell is there"


class LabResults:
    """The runs over real kernels of a result.

    Attributes:
        with_unfaithful: whether runs that are not faithful are counted in.
    """

    def __init__(self, result: "StoredResult") -> None:
        self._result = result
        self._derived = Derived(result.store, result.plan["measure"], "lab-")
        self.with_unfaithful: bool = result.with_unfaithful

    @property
    def has_runs(self) -> bool:
        """Whether any run of the lab is there."""
        return bool(self._of_lab)

    def path(self, run: lab_runs.LabRun) -> Path:
        """Returns the directory of a finished run."""
        return self._result.path(run.id)

    @property
    def unfaithful(self) -> int:
        """Number of finished runs that are not faithful."""
        return sum(not one.faithful for one in self._of_lab)

    @cached_property
    def _of_lab(self) -> list[lab_runs.LabRun]:
        return lab_runs.of_plan(self._result.store, self._result.plan["runs"])

    @property
    def finished(self) -> list[lab_runs.LabRun]:
        """The runs of the lab that are there, in plan order and by repeat."""
        return list(self._of_lab)

    @property
    def counted(self) -> list[lab_runs.LabRun]:
        """The runs of the lab that statistics are of: the faithful ones, or all if that is asked for."""
        return [one for one in self._of_lab if one.faithful or self.with_unfaithful]

    def _head(self, run: lab_runs.LabRun) -> dict[str, Any]:
        """Returns the columns that identify a run, with their values."""
        return {
            "id": run.id,
            **self._result.labels(run.run),
            "repeat": run.repeat,
            "fabric": run.fabric,
            "faithful": run.faithful,
        }

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row per finished run of the lab: its verdict, with the reasons if it is not faithful, and its totals."""
        rows = [
            {
                **self._head(one),
                "unfaithful": one.about["unfaithful"],
                **{name: one.about[name] for name in ABOUT},
            }
            for one in self._of_lab
        ]
        head = {"id": pl.String(), **self._result.label_schema, **HEAD}
        return pl.DataFrame(rows, schema={**head, "unfaithful": pl.List(pl.String()), **ABOUT})

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow of every finished run of the lab: as ``flows``, with the repeat and the run's verdict.

        Its last column, ``start_late_ns``, says how late the flow started; runs of older versions did not record it.
        """
        return self._table("flows", beside="starts")

    @cached_property
    def jobs(self) -> pl.DataFrame:
        """A row per job that has begun, of every finished run of the lab: as ``jobs``, and as ``flows``."""
        return self._table("jobs")

    @cached_property
    def series(self) -> pl.DataFrame:
        """The samples of time series of every finished run of the lab: as ``series``, and as ``flows``."""
        return self._table("series")

    @cached_property
    def tiers(self) -> pl.DataFrame:
        """A row per tier and direction of every finished run of the lab: as ``tiers``, and as ``flows``."""
        return self._table("tiers")

    def _table(self, name: str, beside: str | None = None) -> pl.DataFrame:
        """A table of every run; ``beside`` names one with further columns of the same rows, by their ``id``."""
        further = {} if beside is None else {key: kind for key, kind in schema(beside).items() if key != "id"}
        parts = []
        for one in self._of_lab:
            path = self._result.store.path(one.id) / f"{name}.parquet"
            if path.exists():
                repeat = pl.lit(one.repeat, dtype=pl.UInt32()).alias("repeat")
                fabric = pl.lit(one.fabric).alias("fabric")
                verdict = pl.lit(one.faithful).alias("faithful")
                rows = read_parquet(path)
                if beside is not None:
                    more = self._result.store.path(one.id) / f"{beside}.parquet"
                    known = read_parquet(more) if more.exists() else pl.DataFrame(schema=schema(beside))
                    rows = rows.join(known, on="id", how="left", maintain_order="left")
                parts.append(rows.select(*self._result.literals(one.run), repeat, fabric, verdict, pl.all()))
        head = {**self._result.label_schema, **HEAD}
        return pl.concat(parts) if parts else pl.DataFrame(schema={**head, **schema(name), **further})

    @cached_property
    def per_repeat(self) -> pl.DataFrame:
        """The statistics of each counted run of the lab: one row per run, class and statistic.

        Repeats of one seed are as far apart as kernels make them (``spread``); the summary takes all for one run.
        """
        counted = self.counted
        rows = [self._head(one) for one in counted]
        head = {"id": pl.String(), **self._result.label_schema, **HEAD}
        labels = pl.DataFrame(rows, schema=head)
        of_runs = self._derived.statistics({one.id: (tables_of(one.about), one.about["end_ns"]) for one in counted})
        return labels.join(of_runs, on="id", how="inner", maintain_order="left_right").drop("id")

    @cached_property
    def spread(self) -> pl.DataFrame:
        """The spread over repeats of one seed, and over seeds: a row per cell, class and statistic.

        Columns: ``fabric``, scheme, the sweep's axes, and those of `tailcut.results.spread.lab_spread`.
        """
        return spreads.lab_spread(self.per_repeat, ["fabric", "scheme", *summaries.axes_schema(self._result.plan)])

    @cached_property
    def against(self) -> pl.DataFrame:
        """The difference of real kernels from the simulator (`tailcut.results.kernel_comparison.compare_with_kernels`).

        A column ``backend`` comes first.
        """
        rows = kernel_comparison.compare_with_kernels(
            self._result.plan, self._result.simulated, self._over_kernels(fabrics.ENGINE)
        )
        return rows.select(pl.lit(fabrics.backend(fabrics.ENGINE)).alias("backend"), pl.all())

    def _over_kernels(self, fabric: str) -> Cells:
        counted = [one for one in self.counted if one.fabric == fabric]
        runs = [(one.run, (one.id, tables_of(one.about), int(one.about["end_ns"]))) for one in counted]
        return Cells(self._derived, self._result.store, runs)

    def summary(self) -> pl.DataFrame:
        """The lab's rows of the summary, a fabric after the other: all counted repeats of a seed are its flows."""
        cell = ["scheme", *summaries.axes_schema(self._result.plan)]
        parts = []
        for fabric in [name for name in FABRICS if any(one.fabric == name for one in self._of_lab)]:
            of_runs = self.per_repeat.filter(fabric=fabric)
            rows = summaries.summarise(
                self._result.plan,
                self._over_kernels(fabric),
                groups_of(of_runs),
                fabrics.backend(fabric),
                NO_FAITHFUL_RUN,
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
            base = verdicts.get((self._result.plan["baseline"], *axes)) if row["change"] is not None else None
            counted = [faithful for part in (own, base) if part is not None for faithful in part]
            caveats = [row["reason"]] if lab_runs.is_caveat(row["reason"]) else []
            if not all(counted):
                caveats.append(lab_runs.unfaithful(counted.count(False), len(counted)))
            said.append("; ".join(caveats) or row["reason"])
        return rows.with_columns(reason=pl.Series("reason", said, dtype=pl.String))
