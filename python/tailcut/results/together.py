"""Several directories of results read as one: a plan of all their runs, and a store that finds each run where it is."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl

from tailcut.errors import StoreError
from tailcut.plan import Plan, PlannedRun, Value, canonical, flatten
from tailcut.results import lab_runs
from tailcut.results.store import State, Store
from tailcut.results.summary import axes_schema, point_columns, summary_schema

DIRECTORY = "results"
"""The axis that names directories which differ in several values, or in none that a plan shows."""
ABSENT = "–"
"""The value of a swept key for runs whose configuration lacks it."""


class Together(Store):
    """The finished runs of several directories; only derived files are written, into the directory of their runs.

    Raises:
        StoreError: TC-S011: a run is in two of them with different tables; TC-S014: they measure differently;
            TC-S015: two of them have different runs of the lab for the same repeat.
    """

    def __init__(self, parts: Sequence[Store]) -> None:
        super().__init__(parts[0].directory)
        self._parts = parts
        self._homes: dict[str, Store] = {}
        self._plan, self._points = together({name: part.plan() for name, part in zip(names(parts), parts, strict=True)})
        for run_id in self._shared():
            first, *others = [part for part in parts if part.state(run_id) is State.COMPLETE]
            for other in others:
                _compare(first, other, run_id)

    def plan(self) -> Plan:
        """The plan of all runs of the directories' plans."""
        return self._plan

    def home(self, run_id: str) -> Store:
        """The first store that has a run as it was written, or else in any state."""
        if run_id not in self._homes:
            there = [part for part in self._parts if part.path(run_id).exists()]
            whole = (part for part in there if part.state(run_id) is State.COMPLETE)
            self._homes[run_id] = next(whole, next(iter(there), self._parts[0]))
        return self._homes[run_id]

    def path(self, run_id: str) -> Path:
        """The directory of a finished run."""
        return self.home(run_id).directory / "runs" / run_id

    def runs(self) -> list[str]:
        """Returns the ids of all runs, complete or damaged, of any plan."""
        return sorted({run_id for part in self._parts for run_id in part.runs()})

    def beside(self, name: str) -> Path:
        """Return the path of a file that is of all directories: in the first, called after the others."""
        file = Path(name)
        others = "-".join(name.replace("/", "-") for name in names(self._parts)[1:])
        return self.directory / f"{file.stem}-with-{others}{file.suffix}"

    def summaries(self, plan: Plan) -> dict[str, pl.DataFrame]:
        """The rows of backends that keep no runs, as far as they answer the plan of their directory."""
        kinds = axes_schema(plan)
        found: dict[str, list[pl.DataFrame]] = {}
        for part, points in zip(self._parts, self._points, strict=True):
            for backend, rows in part.summaries(part.plan()).items():
                axes = [
                    pl.col("scheme").replace_strict(
                        {scheme: point_columns(plan, point)[key] for scheme, point in points.items()},
                        default=None,
                        return_dtype=kind,
                    ).alias(key)
                    for key, kind in kinds.items()
                    if key not in rows.columns
                ]  # fmt: skip
                columns = (pl.col(name).cast(kind) for name, kind in summary_schema(plan).items())
                found.setdefault(backend, []).append(rows.with_columns(axes).select(columns))
        return {backend: pl.concat(parts).unique(maintain_order=True) for backend, parts in found.items()}

    def _shared(self) -> list[str]:
        runs = [run_id for part in self._parts for run_id in part.runs()]
        return sorted({run_id for run_id in runs if runs.count(run_id) > 1}) if len(set(runs)) < len(runs) else []


def names(parts: Sequence[Store]) -> list[str]:
    """Return names for directories: their last parts where these tell them apart."""
    short = [part.directory.resolve().name for part in parts]
    return short if len(set(short)) == len(parts) else [str(part.directory) for part in parts]


def _compare(one: Store, other: Store, run_id: str) -> None:
    """Refuse a run that is in two stores and is not the same in both."""
    records = one.run_record(run_id), other.run_record(run_id)
    digests = [{name: file["sha256"] for name, file in record["files"].items()} for record in records]
    if not lab_runs.is_of_lab(run_id):
        one.compare(run_id, records[1])
    elif digests[0] != digests[1]:
        raise StoreError(
            "TC-S015",
            f"{one.directory} and {other.directory} hold different runs of the lab as {run_id}",
            f"tailcut merge {one.directory} {other.directory} makes further repeats of the second's",
        )


# --- one plan of several --------------------------------------------------------------------------


def together(plans: Mapping[str, Plan]) -> tuple[Plan, list[dict[str, dict[str, Value]]]]:
    """Returns one plan with the runs of several, by the name of each.

    What is swept in any of them is swept in it. Where their configurations differ in one more key, that is an axis,
    too; where they differ in several, or nobody knows in what, the name is (``DIRECTORY``).

    Returns:
        The plan and, of each of the given ones, a point by scheme, of which the axes count that it does not sweep.

    Raises:
        StoreError: TC-S014: they measure differently, so that their numbers are of different things.
    """
    first = next(iter(plans.values()))
    for name, plan in plans.items():
        apart = [key for key in first["measure"] if first["measure"][key] != plan["measure"].get(key)]
        if apart:
            raise StoreError(
                "TC-S014",
                f"{name} has measure.{apart[0]} = {plan['measure'].get(apart[0])}, {next(iter(plans))} has"
                f" {first['measure'][apart[0]]}",
                "run both with the same; finished runs are kept",
            )
    swept = list(dict.fromkeys(axis["key"] for plan in plans.values() for axis in plan["sweep"]))
    told_apart = _told_apart(list(plans.values()), swept)
    keys = [*told_apart, *swept]
    runs: dict[str, PlannedRun] = {}
    points: list[dict[str, dict[str, Value]]] = []
    for name, plan in plans.items():
        points.append({})
        for run in plan["runs"]:
            point = {key: name if key == DIRECTORY else _value(run, key) for key in keys}
            points[-1].setdefault(run["scheme"], point)
            runs.setdefault(canonical([run["scheme"], point, run["seed"]]), {**run, "point": point})
    sweep = [{"key": key, "values": _in_order([run["point"][key] for run in runs.values()])} for key in keys]
    schemes = list(dict.fromkeys(scheme for plan in plans.values() for scheme in plan["schemes"]))
    places = [{canonical(value): place for place, value in enumerate(axis["values"])} for axis in sweep]

    def order(run: PlannedRun) -> tuple[Any, ...]:
        at = [place[canonical(run["point"][key])] for key, place in zip(keys, places, strict=True)]
        return (at, schemes.index(run["scheme"]), run["seed"])

    def every(key: str) -> list[str]:
        return list(dict.fromkeys(str(plan.get(key, "")) for plan in plans.values()))

    whole = {
        **first,
        "title": " and ".join(every("title")),
        "question": first["question"] if len(every("question")) == 1 else "",
        "source_file": " and ".join(every("source_file")),
        "schemes": schemes,
        "sweep": sweep,
        "seeds": sorted({seed for plan in plans.values() for seed in plan["seeds"]}),
        "overrides": {
            key: value
            for key, value in first.get("overrides", {}).items()
            if all(plan.get("overrides", {}).get(key) == value for plan in plans.values())
        },
        "parts": [
            {"directory": name, **{key: plan.get(key) for key in ("source_file", "version", "overrides")}}
            for name, plan in plans.items()
        ],
        "runs": sorted(runs.values(), key=order),
    }
    return cast("Plan", whole), points


def _told_apart(plans: Sequence[Plan], swept: Sequence[str]) -> list[str]:
    """Returns the further axis that keeps different runs apart, as a list; empty if none is needed."""
    common = set.intersection(*({run["scheme"] for run in plan["runs"]} for plan in plans)) if plans else set()
    of_plans = [_settings(plan, common) for plan in plans]
    known = dict.fromkeys(key for settings in of_plans for key in settings if key not in swept)
    apart = [key for key in known if len({frozenset(settings.get(key, ())) for settings in of_plans}) > 1]
    if len(apart) == 1 and all(len(settings.get(apart[0], ())) == 1 for settings in of_plans):
        return apart
    if apart:
        return [DIRECTORY]
    ids: dict[str, set[str]] = {}
    for plan in plans:
        for run in plan["runs"]:
            point = {key: _value(run, key) for key in swept}
            ids.setdefault(canonical([run["scheme"], point, run["seed"]]), set()).add(run["id"])
    return [DIRECTORY] if any(len(found) > 1 for found in ids.values()) else []


def _settings(plan: Plan, schemes: Iterable[str]) -> dict[str, set[str]]:
    """The values of each key of a plan's configurations, those of schemes only of the given ones."""
    found: dict[str, set[str]] = {}
    for run in plan["runs"]:
        for key, value in _flat(run, of_scheme=run["scheme"] in schemes).items():
            found.setdefault(key, set()).add(canonical(value))
    return found


def _flat(run: PlannedRun, *, of_scheme: bool = True) -> dict[str, Any]:
    """A run's configuration by the keys that an experiment file has for it."""
    config = {key: value for key, value in run["config"].items() if key not in ("scheme", "labels")}
    return flatten(config) | (flatten(run["config"].get("scheme", {})) if of_scheme else {})


def _value(run: PlannedRun, key: str) -> Value:
    if key in run["point"]:
        return run["point"][key]
    value = _flat(run).get(key, ABSENT)
    return value if isinstance(value, str | int | float) else json.dumps(value)


def _in_order(values: Sequence[Value]) -> list[Value]:
    """Each value once, numbers from the least up."""
    once = list({canonical(value): value for value in values}.values())
    numbers = [value for value in once if not isinstance(value, str | bool)]
    return [*sorted(numbers)] if len(numbers) == len(once) else once


def store_of(directories: Sequence[str | Path]) -> Store:
    """Returns the store in a directory, or of several directories together.

    Raises:
        StoreError: one is not a directory of results, or they cannot be taken together (TC-S011, TC-S014, TC-S015).
    """
    first, *further = {Path(one).resolve(): Store.open(Path(one)) for one in directories}.values()
    return Together([first, *further]) if further else first
