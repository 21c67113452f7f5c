"""Experiments with traces: Python reads every trace, and hands the core any unusual one in plain form."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailcut._core import ExperimentError
from tailcut.diagnosis import experiment_error, together
from tailcut.document import toml_value
from tailcut.plan import Plan
from tailcut.toml_text import REMOVED, TomlText, descend, dotted, key_path
from tailcut.toml_text import Path as Keys
from tailcut.traces import cells, kept, settings, sweeps
from tailcut.traces.cells import TraceError
from tailcut.traces.document import TraceAxis, keys_of, overridden
from tailcut.traces.hosts import Hosts, names_of
from tailcut.traces.mapping import read_mapping
from tailcut.traces.reader import read

_VARIED = ("file", "columns", *settings.KEYS)
_ARRIVALS: Keys = ("horizon", "arrivals")
_PLAIN = re.compile(rb"(?:(?:id|src|dst|bytes|size_bytes|start_ns)[ \t,;\r]*)*\n[0-9 \t,;\r\n]*\Z", re.DOTALL)
_LONG = re.compile(rb"[0-9]{16}")


@dataclass(slots=True)
class _Reading:
    """A trace read with one value of each of its keys."""

    file: str
    label: str
    path: str | None
    rows: bool
    end: int


@dataclass(slots=True)
class Prepared:
    """An experiment whose traces the core can read.

    Attributes:
        text: the experiment file.
        overrides: the overrides that are left for the core.
    """

    name: str
    original: TomlText
    changed: TomlText
    overrides: list[tuple[str, str]]
    given: list[tuple[str, str]]
    traces: list[Keys] = field(default_factory=list)
    order: list[Keys] = field(default_factory=list)
    readings: list[_Reading] = field(default_factory=list)
    combined: dict[str, sweeps.Combined] = field(default_factory=dict)
    errors: list[ExperimentError] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text for the core."""
        return self.changed.text()

    def restored(self, plan: Plan) -> Plan:
        """Returns a plan that names traces as the experiment does."""
        labels = {one.path: one.label for one in self.readings if one.path is not None}
        if not labels:
            return plan
        for run in plan["runs"]:
            for use in run["files"]:
                use["path"] = labels.get(use["path"], use["path"])
            for table in _tables(run["config"]["traffic"], ()):
                if table[1].get("file") in labels:
                    table[1]["file"] = labels[table[1]["file"]]
        return sweeps.restored(plan, self.combined, self.order)

    def retold(self, error: ExperimentError) -> ExperimentError:
        """An error of the core in the words of the experiment: its files, and its keys."""
        told = [self._retold(entry) for entry in error.errors if not self._is_of_stand_in(entry)]
        if told == error.errors and not self.errors:
            return error
        return together([*(entry for found in self.errors for entry in found.errors), *told])

    def _is_of_stand_in(self, entry: Mapping[str, Any]) -> bool:
        """Whether an error is of the flow that stands for a trace that cannot be read."""
        traces = {dotted(path) for path in self.traces} if self.errors else set()
        return str(entry["code"]).startswith("TC-E100/trace-") and str(entry["key"]).rpartition(".")[0] in traces

    def _retold(self, entry: dict[str, Any]) -> dict[str, Any]:
        expected = entry["expected"] or ""
        if entry["code"] in ("TC-E010", "TC-E030") and "file, columns, flows" in expected:
            more = {"expected": f"{expected}, {', '.join(settings.KEYS)}"}
            return entry | more | {"rendered": entry["rendered"].replace(expected, more["expected"])}
        message = entry["message"]
        for one in self.readings:
            if one.path is None or one.path not in message:
                continue
            if one.rows:
                message = re.sub(
                    rf"(?<={re.escape(one.path)}: )line (\d+)", lambda found: f"row {int(found[1]) - 1}", message
                )
            message = message.replace(one.path, one.file)
        if message == entry["message"]:
            return entry
        return self.error(entry["code"], message, key_path(entry["key"]), entry["hint"]).errors[0]

    def error(self, code: str, message: str, path: Keys, hint: str | None) -> ExperimentError:
        """An error at a key: where the experiment says its value, or the command line."""
        key = dotted(path)
        for name, value in reversed(self.given):
            if keys_of(name) == path:
                given = (1, len(name) + 2, value)
                return experiment_error(code, message, "--set", given, f"{name}={value}", key, hint)
        place = self.original.place(path)
        line = "" if place is None else self.original.lines[place[0] - 1].removesuffix("\r")
        return experiment_error(code, message, self.name, place, line, key, hint)


def prepare(text: str, name: str, directory: Path, overrides: Sequence[tuple[str, str]]) -> Prepared | None:
    """An experiment with its traces as the core reads them; none where it has no trace, or is no TOML.

    Args:
        text: the experiment file.
        name: what it is called in messages.
        directory: where the files are that it names.
        overrides: keys and values as with ``--set``.

    Returns:
        With the errors of traces that cannot be read as the experiment says; a flow stands for each of these, so that
        the core finds what else is wrong.
    """
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return None
    axes = overridden(document, overrides)
    found = [path for path, table in _tables(document.get("traffic"), ("traffic",)) if table.get("kind") == "trace"]
    if not found:
        return None
    prepared = Prepared(name, TomlText(text), TomlText(text), list(overrides), list(overrides), found)
    prepared.order = [axis.path for axis in axes]
    hosts = _Names(document, axes, directory)
    settle = [_Trace(prepared, document, axes, path, directory, hosts) for path in found]
    timed = descend(document, _ARRIVALS) is not None or any(axis.path == _ARRIVALS for axis in axes)
    ends = [one.settle(timed=timed) for one in settle]
    if prepared.errors and not timed:
        prepared.overrides.append(("horizon.arrivals", '"1s"'))
    kinds = [table.get("kind") for _, table in _tables(document.get("traffic"), ("traffic",))]
    if not timed and all(kind in ("trace", "mix", None) for kind in kinds) and all(end is not None for end in ends):
        last = max(end for end in ends if end is not None)
        prepared.overrides.append(("horizon.arrivals", f'"{cells.written(last + 1)}"'))
    return prepared


class _Names:
    """The hosts of the topology, which traces may name."""

    def __init__(self, document: Mapping[str, Any], axes: Sequence[TraceAxis], directory: Path) -> None:
        topology = document.get("topology")
        swept = any(axis.path[:1] == ("topology",) and axis.path[-1] in ("file", "kind") for axis in axes)
        self._directory = directory
        self._known = names_of(topology, directory) if isinstance(topology, Mapping) and not swept else {}

    def hosts(self, mapping: object) -> Hosts:
        if mapping is None:
            return Hosts(self._known)
        if isinstance(mapping, Mapping):
            return Hosts(self._known, {str(name): str(host) for name, host in mapping.items()}, "hosts")
        if not isinstance(mapping, str):
            message = f"hosts = {mapping!r}: the path of a file is needed, or a table"
            raise TraceError("trace-hosts", message, 'write hosts = "hosts.csv"', field="hosts")
        return Hosts(self._known, read_mapping(self._directory / mapping, mapping), mapping)


class _Trace:
    """A trace of an experiment."""

    def __init__(
        self,
        prepared: Prepared,
        document: Mapping[str, Any],
        axes: Sequence[TraceAxis],
        path: Keys,
        directory: Path,
        names: _Names,
    ) -> None:
        self._prepared = prepared
        self._path = path
        self._table: dict[str, Any] = descend(document, path)
        self._axes = [axis for axis in axes if axis.path[:-1] == path and axis.path[-1] in _VARIED]
        self._directory = directory
        self._names = names

    def settle(self, *, timed: bool) -> int | None:
        """Reads the trace and replaces it by its plain form; returns the start of its last flow, if known."""
        before = len(self._prepared.errors)
        last = self._inline() if "file" not in self._table and not self._axes else self._settle(timed=timed)
        if len(self._prepared.errors) > before:
            self._stand_in()
            return None
        return last

    def _settle(self, *, timed: bool) -> int | None:
        known = len(self._prepared.errors)
        readings = [self._read(variant, timed=timed) for variant in sweeps.variants(self._table, self._axes)]
        if len(self._prepared.errors) > known:
            return None
        there = [one for one in readings if one is not None]
        if any(one.path is not None for one in there):
            self._replace(readings)
        elif not any(axis.path[-1] in settings.KEYS for axis in self._axes):
            self._remove(settings.KEYS)
        self._prepared.readings += there
        return max(one.end for one in there) if there and len(there) == len(readings) else None

    def _read(self, variant: sweeps.Variant, *, timed: bool) -> _Reading | None:
        table = variant.table
        file = table.get("file")
        own = {key: table[key] for key in settings.KEYS if key in table}
        names = table.get("columns")
        if not isinstance(file, str) or not (names is None or isinstance(names, list)):
            return None
        try:
            content = (self._directory / file).read_bytes()
        except OSError as error:
            if any(axis.path[-1] in settings.KEYS for axis in self._axes):
                message = f"{file}: cannot be read: {error.strerror}"
                self._refuse(TraceError("trace-file", message, "paths are relative to the experiment file"), variant.at)
            return None  # without swept keys of Python's the core says why
        except ValueError:
            return None
        other = own or any(axis.path[-1] != "file" for axis in self._axes)
        if timed and not other and names is None and _PLAIN.match(content) and not _LONG.search(content):
            return _Reading(file, file, None, rows=False, end=0)
        try:
            trace = read(content, file, names, self._names.hosts(own.get("hosts")))
            if trace.plain and not other:
                return _Reading(file, file, None, rows=False, end=max(trace.starts))
            flows = settings.flows(trace, own)
        except TraceError as error:
            self._refuse(error, variant.at)
            return None
        path = kept.keep(flows, (self._directory / file).absolute(), rows=trace.place == "row")
        return _Reading(file, _label(file, own), str(path), rows=trace.place == "row", end=flows[-1].start)

    def _replace(self, readings: Sequence[_Reading | None]) -> None:
        """Replaces the experiment's trace by the read one; swept keys become one axis of files."""
        files = [str(variant.table.get("file")) for variant in sweeps.variants(self._table, self._axes)]
        found = [file if one is None else one.path or one.file for one, file in zip(readings, files, strict=True)]
        paths = sweeps.told_apart(found)
        self._remove(("columns", *settings.KEYS))
        for one, path in zip(readings, paths, strict=True):
            if one is not None and one.path is not None:
                one.path = path
        if not self._axes:
            self._put((*self._path, "file"), paths[0])
            return
        self._remove(("file",) if any(axis.path[-1] == "file" for axis in self._axes) else ())
        first, *others = self._axes
        removed = all(self._prepared.changed.change(axis.written, REMOVED) for axis in others)
        done = removed and self._rename(first, paths)
        if not done:
            message = "a swept key of a trace stands on a line of its own"
            hint = f'write "{".".join(map(str, first.path))}" = [...] below [sweep]'
            self._refuse(TraceError("trace-sweep", message, hint, field=str(first.path[-1])))
        self._prepared.combined[".".join(map(str, (*self._path, "file")))] = sweeps.combined(self._axes, paths)

    def _rename(self, axis: TraceAxis, paths: Sequence[str]) -> bool:
        prefix = ".".join(map(str, (*self._path, "file")))
        last = prefix if "." in str(axis.written[-1]) else "file"
        return self._prepared.changed.rename(axis.written, last, list(paths))

    def _stand_in(self) -> None:
        """Put one flow in the place of a trace that cannot be read."""
        for axis in self._axes:
            self._prepared.changed.change(axis.written, REMOVED)
        self._remove(("columns", "file", "flows", *settings.KEYS))
        flow = '[{ src = 0, dst = 1, bytes = "1B" }]'
        self._prepared.overrides.append((".".join(map(str, (*self._path, "flows"))), flow))

    def _remove(self, keys: Sequence[str]) -> None:
        """Removes keys that the core does not know, or that a read trace does not need."""
        prepared = self._prepared
        for key in keys:
            path = (*self._path, key)
            prepared.overrides = [one for one in prepared.overrides if keys_of(one[0]) != path]
            prepared.changed.change(path, REMOVED)

    def _put(self, path: Keys, value: Any) -> None:
        prepared = self._prepared
        for index, (name, _) in reversed(list(enumerate(prepared.overrides))):
            if keys_of(name) == path:
                prepared.overrides[index] = (name, toml_value(value))
                return
        if not prepared.changed.change(path, value):
            prepared.overrides.append((".".join(map(str, path)), toml_value(value)))

    def _inline(self) -> int | None:
        """Flows that stand in the experiment: names of hosts become numbers, and settings apply."""
        rows = self._table.get("flows")
        own = {key: self._table[key] for key in settings.KEYS if key in self._table}
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            return None
        try:
            hosts = self._names.hosts(own.get("hosts"))
            flows = [self._flow(index, dict(row), hosts) for index, row in enumerate(rows)]
            starts = [_start(row) for row in flows]
            if own and None in starts:
                raise TraceError("trace-row", "a start is no time", None, field="flows")
            known = [start for start in starts if start is not None]
            if own and known:
                indices, origin, scale = settings.Times(known, of_day=False).settled(own)
                flows = [flows[index] for index in indices]
                starts = [int((known[index] - origin) * scale) for index in indices]
                if min(known[index] for index in indices) < origin:
                    raise TraceError("trace-origin", "a flow starts before origin", None, field="origin")
                flows = [row | {"start": f"{start}ns"} for row, start in zip(flows, starts, strict=True)]
        except TraceError as error:
            self._refuse(error)
            return None
        if flows != rows:
            self._put((*self._path, "flows"), flows)
        self._remove(settings.KEYS)
        ends = [start for start in starts if start is not None]
        return max(ends) if ends and len(ends) == len(starts) else None

    def _flow(self, index: int, row: dict[str, Any], hosts: Hosts) -> dict[str, Any]:
        for end in ("src", "dst"):
            name = row.get(end)
            if isinstance(name, str):
                number = hosts.number(name)
                if number is None:
                    message = f'flows[{index}]: {end}: there is no host "{name}"'
                    raise TraceError("trace-host", message, hosts.remedy(name), field="flows")
                row[end] = number
        return row

    def _refuse(self, error: TraceError, at: Sequence[int] = ()) -> None:
        """Note an error, where the experiment says the value; ``at`` has the position in each axis."""
        found = self._told(error, at)
        if all(found.rendered != known.rendered for known in self._prepared.errors):
            self._prepared.errors.append(found)

    def _told(self, error: TraceError, at: Sequence[int]) -> ExperimentError:
        path: Keys = (*self._path, error.field)
        prepared = self._prepared
        for place, axis in enumerate(self._axes):
            if axis.path == path and axis.override is None:
                written = prepared.original.place((*axis.written, *at[place : place + 1]))
                line = "" if written is None else prepared.original.lines[written[0] - 1]
                key = dotted(path)
                return experiment_error(
                    f"TC-E100/{error.code}", str(error), prepared.name, written, line, key, error.hint
                )
        return prepared.error(f"TC-E100/{error.code}", str(error), path, error.hint)


def _start(row: Mapping[str, Any]) -> int | None:
    start = row.get("start", "0ns")
    try:
        exact = cells.time(start) if isinstance(start, str) else None
    except ValueError:
        return None
    return int(exact) if exact is not None and exact.denominator == 1 and exact >= 0 else None


def _label(file: str, own: Mapping[str, Any]) -> str:
    """Return the name in plans of a trace that is not taken as its file has it."""
    said = ", ".join(f"{key} {toml_value(_plain(own[key]))}" for key in settings.KEYS if key in own)
    return f"{file} ({said})" if said else f"{file} (as read)"


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | Mapping) else str(value)


def _tables(value: Any, path: Keys) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """The traffic of an experiment: itself, and its parts."""
    if isinstance(value, dict):
        yield path, value
        parts = value.get("parts")
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _tables(part, (*path, "parts", index))
