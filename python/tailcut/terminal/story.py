"""A flow's story in the terminal: under every scheme, the one that is asked about first."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut.explain import Explained, Told
from tailcut.explain.lines import lines, longest_wait, lost
from tailcut.units import size, time_text

STYLES = {"quiet": "", "step": "", "incident": "yellow", "end": "bold"}


def story(explained: Explained, *, everything: bool = False) -> RenderableType:
    """A flow: what became of it under each scheme, and how."""
    first = explained.told[0].story
    head = Text(
        f"Flow {explained.flow}, {first['from']} to {first['to']}, {size(first['bytes'])}; {explained.place.label}",
        "bold",
    )
    parts: list[RenderableType] = [head, _beside(explained)]
    for told in explained.told:
        parts.extend([Text(f"\n{told.scheme}: {took(told.story)}", "bold"), _lines(told, everything)])
    parts.extend(Text(f"\n{scheme}: this flow did not start in its run", "dim") for scheme in explained.without)
    return Group(*parts)


def took(of: Mapping[str, Any]) -> str:
    """How long a flow took."""
    if of["fct_ps"] is None:
        return f"not finished, at least {time_text(of['until_ps'] - of['start_ps'])}"
    return time_text(of["fct_ps"])


def _beside(explained: Explained) -> Table:
    """The schemes beside each other."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "took", "times the best", "packets lost", "timers", "longest wait in a queue"):
        table.add_column(name, justify="left" if name in ("", "longest wait in a queue") else "right")
    for told in explained.told:
        of = told.story
        best = "" if of["fct_ps"] is None else f"{of['fct_ps'] / of['ideal_fct_ps']:.1f}"
        wait = longest_wait(of["packets"])
        timers = sum(act["what"] == "timed-out" for act in of["acts"])
        losses = sum(lost(packet) for packet in of["packets"])
        table.add_row(told.scheme, took(of), best, f"{losses:,}", f"{timers:,}", "none" if wait is None else str(wait))
    return table


def _lines(told: Told, everything: bool) -> Table:
    """When, which connection, what."""
    several = len({packet["copy"] for packet in told.story["packets"]}) > 1
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True, style="dim")
    if several:
        table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for line in lines(told, everything=everything):
        what = Text(line.what, STYLES[line.kind])
        which = "" if line.copy is None else f"#{line.copy + 1}"
        table.add_row(_instant(line.at_ps), *([which] if several else []), what)
    return table


def _instant(picoseconds: int) -> str:
    """Time since the start of the flow, to the microsecond, so that instants can be compared."""
    return f"{picoseconds / 1e9:,.3f} ms"
