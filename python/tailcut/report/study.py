"""A store as the report sees it: the plan, its axes, and the runs that are there."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tailcut.errors import ReportError
from tailcut.lab.fabrics import backend
from tailcut.plan import Plan, PlannedRun, Value, canonical, short_keys, written
from tailcut.results.tables import scan_parquet
from tailcut.units import number

if TYPE_CHECKING:
    from tailcut.lab.results import LabResults
    from tailcut.results import StoredResult

LOAD_KEY = re.compile(r"traffic\.(?:parts\.(\d+)\.)?load$")
"""The key of a load, of all traffic or of a part of a mix."""
LOAD_TITLES = {
    "host-links": "offered load (fraction of host link capacity)",
    "bisection": "offered load (fraction of bisection bandwidth)",
}
CLOCKS = {
    "receiver": ("fct_ns", "from the SYN handed to the NIC to the last in-order byte at the receiving application"),
    "sender": ("fct_ack_ns", "from the SYN handed to the NIC to the ACK of the last byte back at the sender"),
}


@dataclass(frozen=True)
class Axis:
    """An axis of the sweep.

    Attributes:
        key: its key in the plan.
        name: the key as a word (see ``tailcut.plan.short_keys``).
        title: what an axis of a figure is called.
        values: its values in the order of the plan.
    """

    key: str
    name: str
    title: str
    values: tuple[Value, ...]

    @cached_property
    def _labels(self) -> dict[str, str]:
        labels: dict[str, str] = {}
        for value in self.values:
            label = spell(value) if spell(value) not in labels.values() else written(value)
            labels.setdefault(canonical(value), label if label not in labels.values() else f"{label} ({len(labels)})")
        return labels

    def label(self, value: Value) -> str:
        """Returns the label of a value; labels differ, since tables are joined by them."""
        return self._labels[canonical(value)]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the values."""
        return tuple(map(self.label, self.values))

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, so that a line between two of them means something."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)


@dataclass(frozen=True)
class Run:
    """A planned run that a backend has made and that is in the store."""

    planned: PlannedRun
    directory: Path
    backend: str = "sim"

    @cached_property
    def record(self) -> dict[str, Any]:
        """The content of ``run.json``."""
        return cast("dict[str, Any]", json.loads((self.directory / "run.json").read_text("utf-8")))

    def table(self, name: str) -> pl.LazyFrame | None:
        """Returns one of the run's tables; None where the backend writes no such table."""
        path = self.directory / f"{name}.parquet"
        return scan_parquet(path) if path.is_file() else None


@dataclass(frozen=True)
class Study:
    """An experiment's results.

    Attributes:
        plan: the resolved experiment.
        runs: the planned runs that have finished, in plan order; schemes with the same configuration share a directory.
        summary: statistics per scheme, point and class, of every backend (see ``tailcut.results.summary_schema``).
        totals: what each scheme carried and lost at each point.
        lab: the runs over real kernels.
        same: which schemes carried every flow as another one did (`Result.same`).
    """

    plan: Plan
    runs: tuple[Run, ...]
    summary: pl.DataFrame
    totals: pl.DataFrame
    lab: "LabResults"
    same: tuple[str, ...] = ()

    @classmethod
    def of(cls, result: "StoredResult") -> "Study":
        """Returns the study of a result.

        Raises:
            ReportError: no run has finished, and no backend has filled the summary.
        """
        plan = result.plan
        runs = tuple(Run(planned, result.path(planned["id"])) for planned in result.finished_runs)
        summary = result.summary()
        if not runs and not result.lab.has_runs and summary["value_us"].null_count() == summary.height:
            raise ReportError(
                "TC-P001",
                f"{result.directory} holds a plan of {len(plan['runs'])} runs and none of them has finished",
                f"tailcut run {shlex.quote(plan['source_file'])}",
            )
        return cls(
            plan,
            runs,
            summary,
            result.totals(),
            result.lab,
            tuple(result.same),
        )

    @property
    def schemes(self) -> tuple[str, ...]:
        """Every scheme of the plan, in its order."""
        return tuple(self.plan["schemes"])

    @property
    def baseline(self) -> str | None:
        """The scheme that the others are held against, if the plan names one."""
        baseline = self.plan.get("baseline")
        return baseline if baseline in self.schemes else None

    def changed_side(self, scheme: str) -> str:
        """Returns which devices a scheme changes against the baseline: ``hosts``, ``switches``, ``both`` or ``–``."""
        configured: dict[str, dict[str, Any]] = {}
        for run in self.plan["runs"]:
            configured.setdefault(run["scheme"], run["config"].get("scheme", {}))
        ours, base = configured.get(scheme, {}), configured.get(self.baseline or "", {})
        hosts = any(ours.get(section) != base.get(section) for section in ("transport", "replicate"))
        switches = any(ours.get(section) != base.get(section) for section in ("queue", "balance"))
        return {(True, False): "hosts", (False, True): "switches", (True, True): "both"}.get((hosts, switches), "–")

    @property
    def missing(self) -> int:
        """Number of planned runs that are not in the store; 0 where all numbers are other backends'."""
        return len(self.plan["runs"]) - len(self.runs) if self.runs else 0

    @property
    def measured(self) -> tuple[Run, ...]:
        """The runs that numbers are of, the simulator's first; the model has none."""
        return self.runs + self.over_kernels

    @cached_property
    def over_kernels(self) -> tuple[Run, ...]:
        """The runs over real kernels that statistics are of, by fabric, in plan order and by repeat."""
        return tuple(Run(one.run, self.lab.path(one), backend(one.fabric)) for one in self.lab.counted)

    @property
    def by_model_alone(self) -> bool:
        """Whether all numbers are the queueing model's."""
        return self.backends == ("model",)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The swept axes; figures draw the first from left to right: the load, else the first of numbers."""
        swept = [axis for axis in self.plan["sweep"] if len(axis["values"]) > 1]
        names = short_keys(axis["key"] for axis in swept)
        axes = [
            Axis(key, name, LOAD_TITLES[self.load_of] if LOAD_KEY.match(key) else name, tuple(axis["values"]))
            for axis, (key, name) in zip(swept, names.items(), strict=True)
        ]
        return tuple(sorted(axes, key=lambda axis: (not LOAD_KEY.match(axis.key), not axis.numeric)))

    @property
    def x(self) -> Axis | None:
        """The axis that figures draw from left to right; none without a sweep."""
        return self.axes[0] if self.axes else None

    @property
    def load_of(self) -> str:
        """The reference of the load: ``host-links`` or ``bisection``."""
        named = self.loaded.get("load_of", "host-links")
        return named if named in LOAD_TITLES else "host-links"

    @property
    def loaded(self) -> dict[str, Any]:
        """The traffic that has a load; of a mix the part whose load is swept, or the only one that has a load."""
        traffic: dict[str, Any] = self.configuration.get("traffic", {})
        parts: list[dict[str, Any]] = traffic.get("parts", [])
        for axis in self.plan["sweep"]:
            if (found := LOAD_KEY.match(axis["key"])) and found[1]:
                return parts[int(found[1])]
        loaded = [part for part in parts if "load" in part]
        return loaded[0] if len(loaded) == 1 else traffic

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration of the first run."""
        return self.plan["runs"][0]["config"] if self.plan["runs"] else {}

    @property
    def clock(self) -> str:
        """The clock of completion times: ``receiver`` or ``sender``."""
        named = self.plan["measure"].get("clock", "receiver")
        return named if named in CLOCKS else "receiver"

    @property
    def unfinished_policy(self) -> str:
        """The treatment of unfinished flows in means and percentiles: ``exclude``, ``censored`` or ``by``."""
        policy = self.plan["measure"].get("unfinished", "censored")
        return policy if isinstance(policy, str) else "by"

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that have filled some cell of the summary, the simulator first."""
        filled = self.summary.filter(pl.col("value_us").is_not_null())["backend"].unique(maintain_order=True)
        return tuple(sorted(filled.to_list(), key=lambda name: name != "sim"))

    def class_title(self, name: str) -> str:
        """A class of flows as a panel's title names it."""
        bound = spell(self.plan["measure"].get("short", ""))
        sizes = {"short": f" (≤ {bound})", "long": f" (> {bound})"} if bound else {}
        return f"{name.capitalize()} flows{sizes.get(name, '')}"

    def point(self, at: dict[str, Value]) -> str:
        """The label of a point on the axis drawn from left to right."""
        return self.x.label(at[self.x.key]) if self.x else ""

    def cell(self, at: dict[str, Value]) -> str:
        """The label of a point on all other axes together; empty with one axis."""
        return ", ".join(f"{axis.name} {axis.label(at[axis.key])}" for axis in self.axes[1:])

    @cached_property
    def points(self) -> tuple[str, ...]:
        """The labels along the axis drawn from left to right; one empty label without a sweep."""
        return tuple(dict.fromkeys(self.x.labels)) if self.x else ("",)

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The labels of all combinations of the other axes, in plan order; one empty label if there are none."""
        return tuple(dict.fromkeys(self.cell(run["point"]) for run in self.plan["runs"])) or ("",)

    def groups(self, of: "tuple[Run, ...] | None" = None) -> Iterator[tuple[dict[str, Any], list[Run]]]:
        """The runs that differ by nothing but the seed, with what they have in common as columns of a table.

        Those of the simulator, unless others are given.
        """
        groups: dict[tuple[str, str, str], list[Run]] = {}
        for run in self.runs if of is None else of:
            at = run.planned["point"]
            groups.setdefault((run.planned["scheme"], self.cell(at), self.point(at)), []).append(run)
        for (scheme, cell, point), runs in groups.items():
            at = runs[0].planned["point"]
            columns = {"scheme": scheme, "cell": cell, "point": point}
            yield columns | {"x": float(at[self.x.key]) if self.x and self.x.numeric else None}, runs


def spell(value: object) -> str:
    """A value of the plan as text: numbers without needless digits, units apart, tables as ``key value`` pairs."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        return " ".join(f"{key} {spell(item)}" for key, item in value.items())
    return re.sub(r"^(\d+(?:\.\d+)?)([A-Za-z]+)$", r"\1 \2", str(value))
