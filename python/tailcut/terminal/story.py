"""A flow's story in the terminal: under every scheme, the one that is asked about first."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut.explain import Explained, FlowStory
from tailcut.explain.lines import lines, longest_wait, lost
from tailcut.units import size, time_text

STYLES = {"quiet": "", "step": "", "incident": "yellow", "end": "bold"}


def story(explained: Explained, *, everything: bool = False) -> RenderableType:
    """Returns a flow's story under each scheme."""
    first = explained.stories[0].story
    head = Text(
        f"Flow {explained.flow}, {first['from']} to {first['to']}, {size(first['bytes'])}; {explained.selection.label}",
        "bold",
    )
    parts: list[RenderableType] = [head]
    if explained.selection.lab:
        parts.extend(Text(text, style) for text, style in _captured(explained))
        parts.append(_frames_beside(explained))
    else:
        parts.append(_beside(explained))
    for told in explained.stories:
        parts.extend([Text(f"\n{told.scheme}: {took(told.story)}", "bold"), _lines(told, everything)])
    parts.extend(Text(f"\n{scheme}: {why}", "dim") for scheme, why in explained.without.items())
    return Group(*parts)


def took(of: Mapping[str, Any]) -> str:
    """Returns a flow's completion time in words."""
    if of["fct_ps"] is None:
        return f"not finished, at least {time_text(of['until_ps'] - of['start_ps'])}"
    return time_text(of["fct_ps"])


def _beside(explained: Explained) -> Table:
    """Returns the table of schemes side by side."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "took", "times the best", "packets lost", "timers", "longest wait in a queue"):
        table.add_column(name, justify="left" if name in ("", "longest wait in a queue") else "right")
    for told in explained.stories:
        of = told.story
        best = "" if of["fct_ps"] is None else f"{of['fct_ps'] / of['ideal_fct_ps']:.1f}"
        wait = longest_wait(of["packets"])
        timers = sum(act["what"] == "timed-out" for act in of["acts"])
        losses = sum(lost(packet) for packet in of["packets"])
        table.add_row(told.scheme, took(of), best, f"{losses:,}", f"{timers:,}", "none" if wait is None else str(wait))
    return table


def _captured(explained: Explained) -> Iterator[tuple[str, str]]:
    """Yields sentences on where the frames were captured and what that leaves unknown."""
    seen = explained.stories[0].story["capture"]
    yield f"From the frames of {' and '.join(seen['hosts'])}: where they waited between hosts is not known.", "dim"
    first = explained.stories[0].story
    if not seen["receiver"]:
        yield f"{first['to']} was not captured: whether a frame reached it is not known.", "dim"
    if not seen["sender"]:
        yield (
            f"{first['from']} was not captured: times are those of arrival, and what did not arrive is not seen.",
            "dim",
        )
    for told in explained.stories:
        if not told.story["capture"]["faithful"]:
            yield f"{told.scheme}: this run is not faithful: the machine caused some of its waits.", "yellow"


def _frames_beside(explained: Explained) -> Table:
    """Returns the table of schemes side by side, with what captured frames show."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "took", "times the best", "frames lost", "sent again", "longest silence"):
        table.add_column(name, justify="left" if not name else "right")
    for told in explained.stories:
        of = told.story
        both = of["capture"]["sender"] and of["capture"]["receiver"]
        best = "" if of["fct_ps"] is None else f"{of['fct_ps'] / of['ideal_fct_ps']:.1f}"
        losses = f"{sum(lost(packet) for packet in of['packets']):,}" if both else "not known"
        again = f"{sum(packet['again'] for packet in of['packets']):,}" if of["capture"]["sender"] else "not known"
        silence = max((act["lasts_ps"] for act in of["acts"]), default=0)
        table.add_row(told.scheme, took(of), best, losses, again, time_text(silence) if silence else "none")
    return table


def _lines(told: FlowStory, everything: bool) -> Table:
    """Returns the table of times, connections and events."""
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
