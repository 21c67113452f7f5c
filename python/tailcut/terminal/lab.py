"""The kernel lab in the terminal: what a machine offers, and what becomes of a plan's fields."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailcut.backends import lab
from tailcut.errors import BackendError
from tailcut.lab.doctor import Finding
from tailcut.plan import Plan

WORDS = {"done": ("as it says", "green"), "near": ("nearly", "yellow"), "fatal": ("not at all", "red")}


def offers(found: Sequence[Finding]) -> Table:
    """What the lab needs, and whether it is there."""
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
    """What becomes of each field of a plan, and by what means."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("field", no_wrap=True)
    table.add_column("realised", no_wrap=True)
    table.add_column("how, or why not")
    for one in told:
        word, style = WORDS[one["answer"]]
        table.add_row(Text(one["field"]), Text(word, style), Text(one["text"]))
    return table


def check(plan: Plan, fabric: str, out: Console) -> None:
    """Print what becomes of every field of a plan, with a fabric.

    Raises:
        BackendError: the lab cannot realise it.
    """
    told = lab.fields(plan, fabric)
    out.print(fields(told))
    fatal = [f"  {one['field']}: {one['text']}" for one in told if one["answer"] == "fatal"]
    if fatal:
        reasons = "\n".join(fatal)
        raise BackendError("TC-B002", f"the backend 'lab' cannot realise this experiment:\n{reasons}")
