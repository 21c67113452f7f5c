"""Swept keys of a trace: read with each value, one axis of files for the core, and told as they are written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tailcut.document import toml_value
from tailcut.plan import Axis as PlanAxis
from tailcut.plan import Plan, Value
from tailcut.toml_text import Path as Keys
from tailcut.traces.document import TraceAxis, keys_of


@dataclass(frozen=True, slots=True)
class Variant:
    """A trace with one value of each swept key.

    Attributes:
        table: the trace.
        at: the position of the value in each axis.
    """

    table: dict[str, Any]
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Combined:
    """Axes that the core has as one.

    Attributes:
        keys: their keys, in order.
        points: their values, by the file that stands for them.
        values: all values of each.
    """

    keys: tuple[str, ...]
    points: Mapping[str, tuple[Value, ...]]
    values: tuple[list[Value], ...]


def variants(table: Mapping[str, Any], axes: Sequence[TraceAxis]) -> Iterator[Variant]:
    """Every combination of the values of the axes, the first varying slowest."""
    for at in product(*(range(len(axis.values)) for axis in axes)):
        values = {str(axis.path[-1]): axis.values[place] for axis, place in zip(axes, at, strict=True)}
        yield Variant({**table, **values}, at)


def told_apart(paths: Sequence[str]) -> list[str]:
    """Spells each path in its own way, where several have the same flows: an axis has no value twice."""
    times: dict[str, int] = {}
    found = []
    for path in paths:
        times[path] = again = times.get(path, -1) + 1
        folder, slash, name = path.rpartition("/")
        found.append(f"{folder}{slash}{'./' * again}{name}")
    return found


def combined(axes: Sequence[TraceAxis], paths: Sequence[str]) -> Combined:
    """The axes as one; ``paths`` has a file for each combination of their values."""
    values = tuple([_shown(value) for value in axis.values] for axis in axes)
    points = dict(zip(paths, product(*values), strict=True))
    return Combined(tuple(".".join(map(str, axis.path)) for axis in axes), points, values)


def restored(plan: Plan, found: Mapping[str, Combined], order: Sequence[Keys]) -> Plan:
    """A plan with the axes that the experiment has, in its order, in place of those that the core was given."""
    if not found:
        return plan
    axes = [each for axis in plan["sweep"] for each in _axes(axis, found.get(axis["key"]))]
    axes.sort(key=lambda axis: _place(axis["key"], order))
    plan["sweep"] = axes
    places = {axis["key"]: {repr(value): place for place, value in enumerate(axis["values"])} for axis in axes}
    for run in plan["runs"]:
        point: dict[str, Value] = {}
        for key, value in run["point"].items():
            of = found.get(key)
            point |= {key: value} if of is None else dict(zip(of.keys, of.points[str(value)], strict=True))
        run["point"] = {axis["key"]: point[axis["key"]] for axis in axes if axis["key"] in point}
    plan["runs"].sort(key=lambda run: [places[key][repr(value)] for key, value in run["point"].items()])
    return plan


def _axes(axis: PlanAxis, of: Combined | None) -> list[PlanAxis]:
    if of is None:
        return [axis]
    return [{"key": key, "values": each} for key, each in zip(of.keys, of.values, strict=True)]


def _place(key: str, order: Sequence[Keys]) -> int:
    path = keys_of(key)
    return order.index(path) if path in order else len(order)


def _shown(value: Any) -> Value:
    return value if isinstance(value, str | int | float) else toml_value(value)
