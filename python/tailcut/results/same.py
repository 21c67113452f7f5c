"""Schemes that do the same: those that carry every flow in the same nanosecond, and knobs that cannot act."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tailcut.plan import Plan, PlannedRun, canonical, flatten, short_keys, written
from tailcut.units import amount_bytes

MOST_NAMED = 3
"""Points and keys that a sentence names."""
ONE_PATH = "there is one path"
AMOUNT = re.compile(r"([0-9]+)(packets|B|KB|MB|GB|KiB|MiB|GiB)")

_At = Mapping[str, Mapping[int, PlannedRun]]
"""The runs of a point by scheme and seed."""


def observed(plan: Plan, times: Mapping[str, str]) -> list[str]:
    """Returns sentences on schemes that carried every flow as another one did.

    Args:
        plan: what was asked.
        times: of the runs that are there, by identifier, what identifies the completion times of all of their flows;
            runs without flows are left out.
    """
    return _sentences(plan, [run for run in plan["runs"] if run["id"] in times], _Observed(times))


def foreseen(plan: Plan) -> list[str]:
    """Returns sentences on parts of a plan that can make no difference, as far as known before it runs."""
    alike = _sentences(plan, plan["runs"], _Foreseen())
    return [*alike, *_idle_seeds(plan), *_unreached_axes(plan), *_unreached_thresholds(plan)]


class _Observed:
    """Finds runs with equal completion times of all flows."""

    equal = "equals", "equal"

    def __init__(self, times: Mapping[str, str]) -> None:
        self._times = times

    def same(self, one: PlannedRun, other: PlannedRun) -> bool:
        return self._times[one["id"]] == self._times[other["id"]]


class _Foreseen:
    """Predicts runs with equal completion times of all flows."""

    equal = "will equal", "will equal"

    def same(self, one: PlannedRun, other: PlannedRun) -> bool:
        return one["id"] == other["id"] or _only_paths_differ(one, other)


def _sentences(plan: Plan, runs: Iterable[PlannedRun], by: _Observed | _Foreseen) -> list[str]:
    points: dict[str, dict[str, dict[int, PlannedRun]]] = {}
    for run in runs:
        points.setdefault(canonical(run["point"]), {}).setdefault(run["scheme"], {})[run["seed"]] = run
    schemes = sorted(plan["schemes"], key=lambda scheme: scheme != plan["baseline"])
    where: dict[tuple[str, str], list[str]] = {}
    for point, at in points.items():
        firsts: list[str] = []
        for scheme in (one for one in schemes if one in at):
            first = next((one for one in firsts if _same_at(at, one, scheme, by)), None)
            if first is None:
                firsts.append(scheme)
            else:
                where.setdefault((first, scheme), []).append(point)
    said: dict[tuple[str, str, str], list[str]] = {}
    for (first, scheme), found in where.items():
        both = [point for point, at in points.items() if first in at and scheme in at]
        runs_of = [(points[point][first], points[point][scheme]) for point in found]
        place = "" if len(found) == len(both) else f" at {_places(plan, found, points, first, len(both))}"
        said.setdefault((first, place, _why(runs_of)), []).append(scheme)
    return [
        f"{_listed(names)} {by.equal[len(names) > 1]} {first} flow by flow{place}: {why}."
        for (first, place, why), names in said.items()
    ]


def _same_at(at: _At, one: str, other: str, by: _Observed | _Foreseen) -> bool:
    seeds = at[one].keys() & at[other].keys()
    return bool(seeds) and all(by.same(at[one][seed], at[other][seed]) for seed in seeds)


def _why(pairs: Sequence[tuple[Mapping[int, PlannedRun], Mapping[int, PlannedRun]]]) -> str:
    both = [(ours[seed], theirs[seed]) for ours, theirs in pairs for seed in ours.keys() & theirs.keys()]
    if all(one["id"] == other["id"] for one, other in both):
        return "they are the same configuration"
    if all(_only_paths_differ(one, other) for one, other in both):
        return ONE_PATH
    keys = _components({key for one, other in both for key in _differences(one, other)})
    named = _listed(keys) if len(keys) <= MOST_NAMED else f"{', '.join(keys[:MOST_NAMED])} and others"
    return f"their difference ({named}) had no effect"


def _only_paths_differ(one: PlannedRun, other: PlannedRun) -> bool:
    """Whether two runs differ in how they choose among paths alone, and no flow has a choice."""
    return (
        all(_has_one_path(run) for run in (one, other))
        and one["seed"] == other["seed"]
        and bool(changed := _differences(one, other))
        and all(key.startswith("balance.") for key in changed)
    )


def _has_one_path(run: PlannedRun) -> bool:
    faults = run["config"].get("faults", {})
    fails = faults.get("active", True) and faults.get("incidents")
    # Plans of older versions do not say how many flows have a choice.
    return run["facts"]["flows"] > 0 and run["facts"].get("flows_with_choice", 1) == 0 and not fails


def _differences(one: PlannedRun, other: PlannedRun) -> set[str]:
    """The keys, as in the experiment file, in which the configurations of two runs differ."""
    ours, theirs = (_sections(run["config"]) for run in (one, other))
    return {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}


def _sections(config: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in config.items() if key != "scheme"}
    return flatten({**plain, **config.get("scheme", {})})


def _components(keys: set[str]) -> list[str]:
    """Keys in which configurations differ; components that are of another kind stand for all of their keys."""
    tables = [key.removesuffix(".kind") for key in keys if key.endswith(".kind")]
    within = [key for key in keys if not any(key.startswith(f"{table}.") for table in tables)]
    outermost = [one for one in tables if not any(one.startswith(f"{table}.") for table in tables)]
    return sorted([*outermost, *within])


def _places(plan: Plan, found: Sequence[str], points: Mapping[str, _At], scheme: str, of: int) -> str:
    if len(found) > MOST_NAMED:
        return f"{len(found)} of {of} points"
    names = short_keys(axis["key"] for axis in plan["sweep"])
    at = [next(iter(points[point][scheme].values()))["point"] for point in found]
    return _listed([", ".join(f"{names[key]} {written(value)}" for key, value in one.items()) for one in at])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _idle_seeds(plan: Plan) -> list[str]:
    """Schemes of which all seeds will give one result, since neither the flows nor anything else is drawn."""
    flows: dict[tuple[str, str], set[int | None]] = {}
    for run in plan["runs"]:
        facts = run["facts"]
        given = None if facts.get("draws", True) else facts.get("demand")
        flows.setdefault((run["scheme"], canonical(run["point"])), set()).add(given)
    idle = set(plan["schemes"])
    idle -= {scheme for (scheme, _), demands in flows.items() if len(demands) > 1 or None in demands}
    if len(plan["seeds"]) < 2 or not idle:
        return []
    names = [name for name in plan["schemes"] if name in idle]
    of = "" if len(names) == len(plan["schemes"]) else f" of {_listed(names)}"
    return [f"Seeds change nothing{of}: the flows are given, and nothing else is drawn. One seed is enough."]


def _unreached_axes(plan: Plan) -> list[str]:
    """Returns notes on axes of the sweep that do not change a scheme's run."""
    said = []
    for axis in plan["sweep"]:
        others: dict[str, dict[str, set[str]]] = {}
        for run in plan["runs"]:
            rest = {key: value for key, value in run["point"].items() if key != axis["key"]}
            place = canonical([rest, run["seed"]])
            others.setdefault(run["scheme"], {}).setdefault(place, set()).add(run["id"])
        idle = [name for name in plan["schemes"] if all(len(ids) == 1 for ids in others.get(name, {}).values())]
        if idle and len(axis["values"]) > 1:
            said.append(f"{axis['key']} changes nothing for {_listed(idle)}: one run stands for all of its values.")
    return said


def _unreached_thresholds(plan: Plan) -> list[str]:
    """Thresholds of queues that are above the queue's limit."""
    said: dict[str, None] = {}
    for run in plan["runs"]:
        queue = flatten(run["config"].get("scheme", {}).get("queue", {}))
        limit = _amount(queue.get("limit"))
        for key, value in queue.items():
            threshold = _amount(value) if "threshold" in key else None
            if limit and threshold and threshold[1] == limit[1] and threshold[0] > limit[0]:
                said.setdefault(
                    f"queue.{key} = {value} of {run['scheme']} is above queue.limit = {queue['limit']}: it is never"
                    " reached."
                )
    return list(said)


def _amount(value: Any) -> tuple[int, str] | None:
    """Returns the number and the unit of an amount of packets or bytes; None if it is no such amount."""
    found = AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    packets = found[2] == "packets"
    return (int(found[1]) if packets else amount_bytes(value)), "packets" if packets else "B"
