"""The components that an experiment can name, and the backends, as `tailcut list` shows them."""

import json
from difflib import get_close_matches
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tailcut import backends
from tailcut.traces import schema

Component = dict[str, Any]
WIDTH = 100
"""Most columns of a line of `overview`."""


def known() -> list[Component]:
    """Returns the components that an experiment can name, and the backends."""
    return [*schema.described(), *backends.described()]


def overview(components: list[Component]) -> list[Text]:
    """Returns a line for every component, at most `WIDTH` columns wide, below the name of its section."""
    lines = []
    for group, members in groupby(components, key=lambda one: str(one["group"])):
        names = [(_title(one), one["summary"]) for one in members]
        width = max(len(name) for name, _ in names)
        lines.append(Text(group, style="bold cyan"))
        lines += [Text.assemble("  ", (f"{name:{width}}", "bold"), f"  {summary}") for name, summary in names]
    return lines


def _title(one: Component) -> str:
    """Returns a component's name, marked if it is the default among several."""
    return str(one["name"]) + (" (default)" if one["default"] and one["name"] != one["group"] else "")


def unknown(name: str, components: list[Component]) -> str:
    """Returns the error for an unknown section or component: similar names, and all sections."""
    groups = list(dict.fromkeys(one["group"] for one in components))
    names = [*groups, *(one["name"] for one in components)]
    near = get_close_matches(name, names, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    return f"there is no {name!r}{meant} Sections are {', '.join(groups)}."


def details(components: list[Component]) -> RenderableType:
    """Returns components with all their parameters."""
    return Group(*(part for one in components for part in _detail(one)))


def _detail(one: Component) -> list[RenderableType]:
    head = Text(f"{one['group']}: {one['name']}" if one["name"] != one["group"] else one["group"], style="bold cyan")
    about = Text(" ".join(filter(None, [one["summary"], one.get("details", "")])))
    if not one["parameters"]:
        return [head, about, Text()]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("parameter", style="bold", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("takes")
    table.add_column("meaning")
    for parameter in one["parameters"]:
        default = "required" if parameter["required"] else ""
        if parameter["default"] is not None:
            default = json.dumps(parameter["default"], ensure_ascii=False)
        table.add_row(parameter["name"], default, parameter["takes"], parameter["doc"])
    return [head, about, table]
