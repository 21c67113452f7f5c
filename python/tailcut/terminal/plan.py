"""A plan as `tailcut check` shows it: how much work it is, and every value that decides the results."""

import json
from collections.abc import Iterable, Iterator, Sized
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut.plan import Plan, PlannedRun, flatten, unique_runs
from tailcut.results import room
from tailcut.units import count, duration, size


def plan_view(plan: Plan, jobs: int) -> RenderableType:
    """The plan for people.

    Args:
        plan: what `tailcut._core.load` made of the file.
        jobs: how many runs will be made at a time.
    """
    parts: list[RenderableType] = [Text(plan["title"], style="bold")]
    if plan["question"]:
        parts.append(Text(plan["question"], style="italic"))
    return Group(*parts, _work(plan, jobs), _config(plan))


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
    packets = sum(run["facts"]["expected_packets"] for run in runs)
    hops = sum(run["facts"]["expected_packet_hops"] for run in runs)
    table.add_row("expected packets", f"{count(packets)}, crossing {count(hops)} links in all")
    table.add_row("estimated time", f"{duration(_makespan(runs, jobs))} with {_many(range(jobs), 'run')} at a time")
    table.add_row(
        "estimated memory", f"{size(max(run['facts']['estimated_memory_bytes'] for run in runs))} for the largest run"
    )
    table.add_row("estimated disk", f"{size(sum(room.expected_bytes(run) for run in runs))} for all results")
    table.add_row("baseline", plan["baseline"])
    table.add_row("", "")
    return table


def _many(things: Sized, name: str) -> str:
    """How many there are: 1 scheme, 2 schemes."""
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
    """Every value of every run as TOML: what all runs share first, then what each scheme has of its own."""
    swept = {axis["key"] for axis in plan["sweep"]}
    by_scheme: dict[str, dict[str, Any]] = {}
    for run in plan["runs"]:
        by_scheme.setdefault(run["scheme"], _sections(run))
    names = [name for name in plan["schemes"] if name in by_scheme]
    first = by_scheme[names[0]]
    shared = {
        key: value
        for key, value in first.items()
        if all(name_values.get(key, ...) == value for name_values in by_scheme.values())
    }
    measure = {f"measure.{key}": value for key, value in flatten(plan["measure"]).items()}
    own = {
        f"schemes.{name}.{key}": value for name in names for key, value in by_scheme[name].items() if key not in shared
    }
    order = [*sorted(shared | measure, key=_table), *own]
    text = Text("").join(_toml({key: (shared | measure | own)[key] for key in order}, swept))
    text.rstrip()
    return text


def _table(key: str) -> str:
    return key.rpartition(".")[0]


def _sections(run: PlannedRun) -> dict[str, Any]:
    """The configuration by dotted key as in the experiment file, where a scheme's parts are sections of their own."""
    config = dict(run["config"])
    scheme = config.pop("scheme")
    config.pop("labels", None)  # shown as measure
    return flatten({**config, **scheme})


def _toml(values: dict[str, Any], swept: set[str]) -> Iterator[Text]:
    section = None
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        if table != section:
            yield Text(f"[{table}]\n" if section is None else f"\n[{table}]\n", style="bold cyan")
            section = table
        shown = Text(f"{name} = ")
        if key in swept:
            yield shown.append("swept\n", style="yellow")
        else:
            yield shown.append(f"{json.dumps(value, ensure_ascii=False)}\n", style="green")
