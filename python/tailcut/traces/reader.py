"""Reads a trace: the flows of a text or Parquet file exactly, or an error with line and column."""

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tailcut.traces import cells, columns
from tailcut.traces.cells import TraceError
from tailcut.traces.hosts import Hosts

EPOCH_NS = 10**8 * 10**9
"""Start times from here on (1973) count from 1970: no run is that long."""
MAX_ROWS = 20_000_000
"""The limit of flows of a run."""


@dataclass(slots=True)
class Trace:
    """The flows of a file, in its order.

    Attributes:
        file: what the file is called in messages.
        place: what a flow's position in the file is called: ``line`` or ``row``.
        numbers: that position of each flow.
        ids: their numbers, where the trace numbers them.
        src: their sending hosts.
        dst: their receiving hosts.
        sizes: their bytes.
        starts: when they start by the trace's clock, in nanoseconds.
        of_day: whether that clock tells times of day, as nanoseconds since 1970.
        plain: whether the simulator reads the same flows from the file by itself.
    """

    file: str
    place: str
    numbers: Sequence[int]
    ids: list[int] | None
    src: list[int]
    dst: list[int]
    sizes: list[int]
    starts: list[int]
    of_day: bool
    plain: bool

    def where(self, index: int) -> str:
        """Return the place of a flow, for messages: ``flows.csv: line 7``."""
        return f"{self.file}: {self.place} {self.numbers[index]}"


def read(content: bytes, file: str, names: Sequence[str] | None, hosts: Hosts) -> Trace:
    """The flows of a trace.

    Args:
        content: the file.
        file: its name.
        names: its columns, where it has no header.
        hosts: finds hosts.

    Raises:
        TraceError: the first thing that is wrong in it.
    """
    if file.endswith(".parquet"):
        from tailcut.traces import parquet

        header, found, exact = parquet.texts(content, file)
        table = _Table(file, "row", range(max(map(len, found), default=0)), header, found, exact)
    else:
        table = _text(content, file, names)
    return table.trace(hosts)


def _decoded(content: bytes, file: str) -> tuple[str, bool]:
    """A text, and whether it is UTF-8 without a mark before it."""
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    encoding = next((name for mark, name in marks if content.startswith(mark)), None)
    try:
        return content.decode(encoding or "utf-8"), encoding is None
    except UnicodeDecodeError as error:
        message = f"{file}: cannot be read: it is not text in UTF-8 (byte {error.start + 1})"
        raise TraceError("trace-file", message, "save it as UTF-8") from None


def _text(content: bytes, file: str, names: Sequence[str] | None) -> "_Table":
    text, plain = _decoded(content, file)
    plain = plain and '"' not in text
    numbers: list[int] = []
    rows: list[list[str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = cells.fields(line.partition("#")[0].strip())
        if fields:
            numbers.append(number)
            rows.append(fields)
    if not rows:
        raise TraceError("trace-empty", f"{file}: contains no flow")
    if columns.is_header(rows[0]):
        if names is not None:
            message = f"{file}: line {numbers[0]} names the columns, and so does traffic.columns"
            hint = "leave columns out: the file's own header decides"
            raise TraceError("trace-columns", message, hint, field="columns")
        names = rows.pop(0)
        plain = plain and names[0][:1].isalpha() and all(columns.usual(name) == name for name in names)
        numbers.pop(0)
    elif names is None:
        if not columns.is_flow(rows[0]) and not rows[0][0].isdigit():
            raise columns.unknown_header(file, numbers[0], rows[0])
        names = columns.WITHOUT_HEADER
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != len(names):
            listed = ", ".join(names)
            message = f"{file}: line {number}: {len(row)} columns where {len(names)} are expected ({listed})"
            raise TraceError("trace-row", message)
    return _Table(file, "line", numbers, list(names), [list(column) for column in zip(*rows, strict=True)], plain)


@dataclass(slots=True)
class _Table:
    """A file as columns of texts."""

    file: str
    place: str
    numbers: Sequence[int]
    names: list[str]
    columns: list[list[str]]
    plain: bool

    def trace(self, hosts: Hosts) -> Trace:
        where = columns.meanings(self.names, self.file)
        if not self.numbers:
            raise TraceError("trace-empty", f"{self.file}: contains no flow")
        if len(self.numbers) > MAX_ROWS:
            message = f"{self.file}: {len(self.numbers):,} flows, and a run has at most {MAX_ROWS:,}"
            raise TraceError("trace-rows", message, "take a part of it")
        ids = self._whole(where["id"]) if "id" in where else None
        src, dst = (self._hosts(where[end], hosts) for end in ("src", "dst"))
        sizes = self._whole(where["bytes"])
        starts, of_day = self._starts(where["start"])
        trace = Trace(
            self.file, self.place, self.numbers, ids, src, dst, sizes, starts, of_day, self.plain and not of_day
        )
        _check(trace)
        return trace

    def _bad(self, index: int, column: int, what: str, hint: str | None = None, rule: str = "trace-row") -> TraceError:
        message = f"{self.file}: {self.place} {self.numbers[index]}: {self.names[column]}: {what}"
        return TraceError(rule, message, hint)

    def _each(self, column: int, number: Callable[[str], int], what: str) -> list[int]:
        """The whole numbers of a column; those that are not written as digits alone by ``number``."""
        found = []
        for index, cell in enumerate(self.columns[column]):
            if cell.isascii() and cell.isdigit() and len(cell) < 20:
                found.append(int(cell))
                continue
            try:
                found.append(number(cell))
            except ValueError:
                raise self._bad(index, column, f"{_shown(cell)} is not {what}") from None
            self.plain = False
        return found

    def _whole(self, column: int) -> list[int]:
        return self._each(column, cells.whole, "a non-negative integer")

    def _hosts(self, column: int, hosts: Hosts) -> list[int]:
        found = []
        for index, cell in enumerate(self.columns[column]):
            number = hosts.number(cell)
            if number is None or number >= 2**32:
                if _numeric(cell):
                    raise self._bad(index, column, f"{_shown(cell)} is not a host number")
                what = f"there is no host {_shown(cell)}"
                raise self._bad(index, column, what, hosts.remedy(cell), "trace-host")
            if not (cell.isascii() and cell.isdigit()) or int(cell) != number:
                self.plain = False
            found.append(number)
        return found

    def _starts(self, column: int) -> tuple[list[int], bool]:
        """The start times in nanoseconds, and whether they are times of day."""
        unit = columns.STARTS.get(columns.usual(self.names[column]))
        found: list[int] = []
        days = 0
        for index, cell in enumerate(self.columns[column]):
            if unit is not None and cell.isascii() and cell.isdigit() and len(cell) < 30:
                found.append(int(cell) * unit)
                continue
            exact = self._start(index, column, cell, unit)
            if exact is None:
                exact = cells.time_of_day(cell)
                days += 1
            if exact is None:
                raise self._bad(index, column, f"{_shown(cell)} is not a {'number' if unit else 'time'}")
            if exact < 0:
                raise self._bad(index, column, f"{_shown(cell)} is not a start time of 0 or later")
            if exact.denominator != 1:
                message = f"{self.file}: {self.place} {self.numbers[index]}: starts at {_with_unit(cell, unit)}"
                raise TraceError(
                    "trace-start",
                    f"{message}, which is not a whole number of nanoseconds",
                    "results hold times in nanoseconds",
                )
            found.append(int(exact))
        if days and days != len(found):
            of_day = [cells.time_of_day(cell) is not None for cell in self.columns[column]]
            odd = of_day.index(not of_day[0])
            raise self._bad(odd, column, "some start times have a date and some have none", "write all of one kind")
        return found, bool(days) or min(found) >= EPOCH_NS

    def _start(self, index: int, column: int, cell: str, unit: int | None) -> Fraction | None:
        """A start time that is no time of day; None where it may be one."""
        try:
            if unit is not None:
                return cells.nanoseconds(cell, unit)
            return cells.time(cell)
        except ValueError as error:
            if unit is None and (_numeric(cell) or cells.time_of_day(cell) is None):
                raise self._bad(index, column, f"{error}", cells.NO_UNIT) from None
            return None


def _check(trace: Trace) -> None:
    """Refuse flows that are none; what hangs on the topology and the horizon is checked with them."""
    for index, (src, dst, size) in enumerate(zip(trace.src, trace.dst, trace.sizes, strict=True)):
        if src == dst:
            message = f"{trace.where(index)}: src and dst are both {src}"
            raise TraceError("trace-self", message, "a flow needs two different hosts")
        if size == 0:
            message = f"{trace.where(index)}: bytes = 0"
            raise TraceError("trace-bytes", message, "a flow must have at least 1 byte")
    if trace.ids is not None and len(set(trace.ids)) != len(trace.ids):
        seen: dict[int, int] = {}
        for index, number in enumerate(trace.ids):
            if number in seen:
                message = f"{trace.where(index)}: id {number} is already that of {trace.where(seen[number])}"
                raise TraceError("trace-id", message, "every flow needs an id of its own")
            seen[number] = index


def _numeric(cell: str) -> bool:
    try:
        cells.decimal(cell)
    except ValueError:
        return False
    return True


def _with_unit(cell: str, unit: int | None) -> str:
    return cell if unit is None else cell + next(name[6:] for name, each in columns.STARTS.items() if each == unit)


def _shown(cell: str) -> str:
    return '"' + cell.replace('"', '\\"') + '"'
