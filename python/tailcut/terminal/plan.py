"""A plan as `tailcut check` shows it: how much work it is, and every value that decides the results."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut.document import toml_key, toml_value
from tailcut.plan import Plan, PlannedRun, canonical, flatten, title, unique_runs
from tailcut.results import disk_space, same
from tailcut.units import count, duration, size

LONGEST_LIST = 100
"""Characters of the values of a key that is swept by another, where they are listed."""


def plan_view(plan: Plan, jobs: int) -> RenderableType:
    """The plan for people.

    Args:
        plan: what `tailcut._core.load` made of the file.
        jobs: how many runs will be made at a time.
    """
    parts: list[RenderableType] = [Text(title(plan), style="bold")]
    if plan["question"]:
        parts.append(Text(plan["question"], style="italic"))
    decided = dict.fromkeys(note for run in plan["runs"] for note in run["facts"].get("notes", ()))
    notes = [Text(sentence, style="yellow") for sentence in [*same.foreseen(plan), *decided]]
    return Group(*parts, _work(plan, jobs), *notes, *([Text("")] if notes else []), _config(plan))


def _work(plan: Plan, jobs: int) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan")
    table.add_column()
    runs = list(unique_runs(plan).values())
    product = [f"{_many(plan['schemes'], 'scheme')} ({', '.join(plan['schemes'])})"]
    product += [
        f"{_many(axis['values'], 'value')} of {axis['key']} ({_list(axis['values'])})" for axis in plan["sweep"]
    ]
    product.append(f"{_many(plan['seeds'], 'seed')} ({_list(plan['seeds'])})")
    same = len(plan["runs"]) - len(runs)
    table.add_row("runs", f"{len(runs)}" + (f" (and {same} that are the same as others)" if same else ""))
    for factor in product:
        table.add_row("", f"× {factor}")
    table.add_row("hosts", _range(run["facts"]["hosts"] for run in runs))
    table.add_row("switches", _range(run["facts"]["switches"] for run in runs))
    table.add_row("links", _range(run["facts"]["links"] for run in runs))
    table.add_row("flows per run", _range(run["facts"]["flows"] for run in runs))
    for label, lines in (("transport", _hosts(runs)), ("routing", _routing(runs))):
        for number, line in enumerate(lines):
            table.add_row("" if number else label, line)
    packets = sum(run["facts"]["expected_packets"] for run in runs)
    hops = sum(run["facts"]["expected_packet_hops"] for run in runs)
    table.add_row("expected packets", f"{count(packets)}, crossing {count(hops)} links in all")
    table.add_row("estimated time", f"{duration(_makespan(runs, jobs))} with {_many(range(jobs), 'run')} at a time")
    table.add_row(
        "estimated memory", f"{size(max(run['facts']['estimated_memory_bytes'] for run in runs))} for the largest run"
    )
    table.add_row("estimated disk", f"{size(sum(disk_space.expected_bytes(run) for run in runs))} for all results")
    table.add_row("baseline", plan["baseline"])
    table.add_row("", "")
    return table


def _hosts(runs: Iterable[PlannedRun]) -> list[str]:
    """Yields lines on the hosts: their defaults (plain or Linux), and the timeouts that decide the tail."""
    found: dict[str, list[str]] = {}
    for run in runs:
        transport = flatten(run["config"]["scheme"]["transport"])
        least, first = (_last(transport, key) for key in ("min_rto", "initial_rto"))
        if least is None or first is None:
            continue
        kind = _last(transport, "hosts") or "plain"
        line = f"{kind} hosts, minimum timeout {least}, first timeout {first}"
        schemes = found.setdefault(line, [])
        if run["scheme"] not in schemes:
            schemes.append(run["scheme"])
    if len(found) == 1:
        return list(found)
    return [f"{line} ({', '.join(schemes)})" for line, schemes in found.items()]


def _last(values: Mapping[str, Any], key: str) -> Any:
    """The value of a key, wherever in the tables it is."""
    return next((value for name, value in values.items() if name.rpartition(".")[2] == key), None)


def _routing(runs: Iterable[PlannedRun]) -> list[str]:
    """Returns when routing learns of each link or switch that fails."""
    return list(dict.fromkeys(line for run in runs for line in run["facts"].get("routing", ())))


def _many(things: Sized, name: str) -> str:
    """Returns the number of things in words: 1 scheme, 2 schemes."""
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _makespan(runs: Iterable[PlannedRun], jobs: int) -> float:
    """Wall time if the longest run always goes to the worker that is free first."""
    free = [0.0] * jobs
    for seconds in sorted((run["facts"]["estimated_seconds"] for run in runs), reverse=True):
        free.sort()
        free[0] += seconds
    return max(free)


def _range(values: Iterable[int]) -> str:
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _list(values: Iterable[Any]) -> str:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return ", ".join(texts) if len(texts) <= 12 else f"{', '.join(texts[:3])}, …, {texts[-1]}"


def _config(plan: Plan) -> Text:
    """Yields every value of every run as TOML: first those shared by all runs, then those of each scheme."""
    swept = {axis["key"] for axis in plan["sweep"]}
    points: dict[str, dict[str, dict[str, Any]]] = {}
    for run in plan["runs"]:
        points.setdefault(run["scheme"], {}).setdefault(canonical(run["point"]), _sections(run))
    names = [name for name in plan["schemes"] if name in points]
    by_scheme = {name: _at_all_points(list(points[name].values())) for name in names}
    shared = {
        key: values
        for key, values in by_scheme[names[0]].items()
        if all(of_scheme.get(key) == values for of_scheme in by_scheme.values())
    }
    measure = {f"measure.{key}": [value] for key, value in flatten(plan["measure"]).items()}
    common = sorted(((_split(key), key, values) for key, values in (shared | measure).items()), key=_place)
    own = [
        ((f"schemes.{toml_key(name)}.{_split(key)[0]}", _split(key)[1]), f"schemes.{toml_key(name)}.{key}", values)
        for name in names
        for key, values in sorted(by_scheme[name].items(), key=lambda item: _split(item[0])[0])
        if key not in shared
    ]
    text = Text("").join(_toml([*common, *own], swept))
    text.rstrip()
    return text


_Entry: TypeAlias = tuple[tuple[str, str], str, list[Any]]
"""A table and the name of a value in it, the key of both, and the values."""


def _at_all_points(configurations: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """By key the values that it has at the points of a sweep, one each: a single one where it is the same at all."""
    keys = dict.fromkeys(key for one in configurations for key in one)
    found = {}
    for key in keys:
        values = [one.get(key) for one in configurations]
        found[key] = values[:1] if all(value == values[0] for value in values) else values
    return found


def _split(key: str) -> tuple[str, str]:
    table, _, name = key.rpartition(".")
    return table, name


def _place(entry: _Entry) -> str:
    return entry[0][0]


def _sections(run: PlannedRun) -> dict[str, Any]:
    """The configuration by dotted key as in the experiment file, where a scheme's parts are sections of their own."""
    config = dict(run["config"])
    scheme = config.pop("scheme")
    config.pop("labels", None)  # shown as measure
    return flatten({**config, **scheme})


def _toml(entries: Iterable[_Entry], swept: set[str]) -> Iterator[Text]:
    section = None
    for (table, name), key, values in entries:
        if table != section:
            yield Text(f"[{table}]\n" if section is None else f"\n[{table}]\n", style="bold cyan")
            section = table
        shown = Text(f"{name} = ")
        if values == [None]:
            yield Text(f"# {name} is not set\n", style="dim")
        elif key in swept:
            yield shown.append("swept\n", style="yellow")
        elif len(values) > 1:
            yield shown.append(f"swept{_each(values)}\n", style="yellow")
        else:
            yield shown.append(f"{_written(values[0])}\n", style="green")


def _each(values: Iterable[Any]) -> str:
    """The different values that a key has because of others that are swept, if they are few."""
    texts = list(dict.fromkeys("none" if value is None else _written(value) for value in values))
    listed = ", ".join(texts)
    return f": {listed}" if len(listed) <= LONGEST_LIST else ""


def _written(value: Any) -> str:
    """Returns a value as TOML, without unset keys, which TOML cannot express."""
    return toml_value(_set(value))


def _set(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _set(one) for key, one in value.items() if one is not None}
    return [_set(one) for one in value] if isinstance(value, list) else value
