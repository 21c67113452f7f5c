"""Hosts of a trace by number, by name, or by address through a mapping."""

import ipaddress
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailcut.traces.cells import TraceError, whole


class Hosts:
    """Finds the number of a host by its name in the trace.

    Args:
        names: numbers of the hosts that the topology names.
        mapping: what the trace calls a host, and its number or name here.
        source: what the mapping is called in messages; none without one.
    """

    def __init__(
        self, names: Mapping[str, int], mapping: Mapping[str, str] | None = None, source: str | None = None
    ) -> None:
        self._names = names
        self._source = source
        self._found: dict[str, int] = {}
        for name, host in (mapping or {}).items():
            number = self._usual(host)
            if number is None:
                message = f"{source}: {name} is {host!r}, which is no host of the topology"
                raise TraceError("trace-hosts", message, self._known(), field="hosts")
            self._found[address(name)] = number

    def number(self, text: str) -> int | None:
        """The number of a host; None where there is none of that name."""
        found = self._found.get(text)
        if found is None:
            found = self._found.get(address(text))
            if found is None:
                found = self._usual(text)
            if found is not None:
                self._found[text] = found
        return found

    def remedy(self, text: str) -> str:
        """Return the remedy for a host that is not found."""
        if self._source is not None:
            return f"add {text} to {self._source}, or {self._known()}"
        if address(text) != text or _is_address(text):
            return 'say which host has which address: hosts = "hosts.csv", with a line such as 10.0.0.1,h0 for each'
        return self._known()

    def _known(self) -> str:
        if self._names:
            first = ", ".join(list(self._names)[:3])
            return f"hosts go by number (3), as h3, or by the topology's names ({first}, …)"
        return "hosts go by number (3) or as h3"

    def _usual(self, text: str) -> int | None:
        """A host as experiments name it: by the topology's name, as ``h3`` or ``host:3``, or by number."""
        if text in self._names:
            return self._names[text]
        digits = text.removeprefix("host:") if text.startswith("host:") else text.removeprefix("h")
        if digits.isascii() and digits.isdigit():
            return int(digits)
        try:
            return whole(text)
        except ValueError:
            return None


def address(text: str) -> str:
    """Returns an IP address in its canonical form; other texts unchanged."""
    if "." not in text and ":" not in text:
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def names_of(topology: Mapping[str, Any], directory: Path) -> dict[str, int]:
    """The numbers of the hosts that a topology names: those of a graph from a file, and no others."""
    file = topology.get("file")
    if topology.get("kind") != "node-link" or not isinstance(file, str):
        return {}
    try:
        nodes = json.loads((directory / file).read_text(encoding="utf-8"))["nodes"]
        hosts = [node["id"] for node in nodes if node["kind"] == "host"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # whoever builds the graph says what is wrong with it
    # A number in a trace counts hosts, whatever the graph calls them.
    return {name: index for index, name in enumerate(hosts) if isinstance(name, str) and not name.isdigit()}
