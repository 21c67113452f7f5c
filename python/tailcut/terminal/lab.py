"""The kernel lab in the terminal: what a machine offers, how a plan's fields are realised, verdicts on runs."""

import json
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut.backends import FATAL_HINT, lab
from tailcut.errors import BackendError
from tailcut.lab import calibration
from tailcut.lab.doctor import Finding
from tailcut.lab.process import LabError
from tailcut.plan import Plan, label, short_keys
from tailcut.results import spread as spreads
from tailcut.results.summary import axes_schema
from tailcut.terminal.table import WholeTable
from tailcut.units import microseconds

if TYPE_CHECKING:
    from tailcut.results import StoredResult

WORDS = {"done": ("yes", "green"), "near": ("nearly", "yellow"), "fatal": ("no", "red")}


def offers(found: Sequence[Finding]) -> Table:
    """Returns the table of what the lab needs, and whether this machine has it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("what", no_wrap=True)
    table.add_column("here", no_wrap=True)
    table.add_column("what for")
    table.add_column("found, or how to get it")
    for one in found:
        here = Text("yes", "green") if one.offered else Text("no", "red")
        what = one.found if one.offered else f"{one.found}: {one.remedy}"
        table.add_row(Text(one.name), here, Text(one.needed_for), Text(what))
    return table


def fields(told: Sequence[Mapping[str, str]]) -> Table:
    """Returns the table of the outcome of each field of a plan, and the means."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("field", no_wrap=True)
    table.add_column("realised", no_wrap=True)
    table.add_column("how, or why not")
    for one in told:
        word, style = WORDS[one["answer"]]
        table.add_row(Text(one["field"]), Text(word, style), Text(one["text"]))
    return table


def check(plan: Plan, fabric: str, out: Console, to: IO[str] | None = None) -> None:
    """Prints how every field of a plan is realised with a fabric, and whether this machine carries it.

    Args:
        plan: the experiment's plan.
        fabric: the name of the fabric between the hosts.
        out: the console for the table.
        to: if given, receives the plan as JSON instead, with the table's contents under ``on``.

    Raises:
        BackendError: the lab cannot realise it here.
    """
    told = lab.field_outcomes(plan, fabric)
    fatal = [f"  {one['field']}: {one['text']}" for one in told if one["answer"] == "fatal"]
    load: dict[str, Any] | None = None
    if not fatal:
        try:
            asked = lab.measure_load(plan, fabric)
        except LabError as error:
            told.append(calibration.unknown(error))
        else:
            told.append(asked.answer())
            load = asked.told()
    if to is None:
        out.print(fields(told))
    else:
        about = {"backend": "lab", "fabric": fabric, "fields": told, "load": load}
        to.write(json.dumps({**plan, "on": about}, indent=2) + "\n")
    if fatal:
        reasons = "\n".join(fatal)
        raise BackendError("TC-B002", f"the backend 'lab' cannot realise this experiment:\n{reasons}", FATAL_HINT)


def verdicts(result: "StoredResult") -> RenderableType:
    """Returns the table of lab runs: whether each is faithful, and why not."""
    runs = result.lab.finished
    table = _titled(Table, f"Runs over real kernels: {sum(one.faithful for one in runs)} of {len(runs)} faithful")
    for name in ("run", "repeat", "fabric"):
        table.add_column(name, no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("why")
    for one in runs:
        verdict = Text("faithful", "green") if one.faithful else Text("not faithful", "yellow")
        table.add_row(
            Text(label(one.run)), str(one.repeat), one.fabric, verdict, Text("; ".join(one.about["unfaithful"]))
        )
    if result.with_unfaithful or all(one.faithful for one in runs):
        return table
    return Group(table, Text("Unfaithful runs are excluded above; --with-unfaithful includes them.", "dim"))


def spread(result: "StoredResult") -> RenderableType:
    """Returns the table of the spread over repeats of one seed and over seeds; empty without repeats."""
    rows = spreads.shown(result.lab.spread)
    if rows.height == 0:
        return Group()
    axes = list(axes_schema(result.plan))
    table = _titled(WholeTable, "Over real kernels: standard deviation over repeats of one seed, and over seeds")
    for name in [*short_keys(axes).values(), "scheme", "fabric", "of"]:
        table.add_column(name, no_wrap=True)
    for name in ("mean", "over repeats", "over seeds", "runs", "seeds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows.iter_rows(named=True):
        table.add_row(
            *(str(row[axis]) for axis in axes),
            Text(row["scheme"]),
            row["fabric"],
            row["what"],
            microseconds(row["value_us"]),
            *(_deviation(row[name], row["value_us"]) for name in ("over_repeats_us", "over_seeds_us")),
            str(row["n_runs"]),
            str(row["n_seeds"]),
        )
    return table


def _deviation(deviation_us: float | None, of_us: float) -> str:
    return "—" if deviation_us is None else f"{microseconds(deviation_us)} ({deviation_us / of_us:.0%})"


def _titled(kind: type[Table], title: str) -> Table:
    return kind(
        box=None, pad_edge=False, header_style="bold", title=f"\n{title}", title_justify="left", title_style="bold cyan"
    )
