"""The text of a TOML file: where each value stands, and single values changed without moving a line."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tailcut.document import toml_key, toml_value

Path = tuple[str | int, ...]
"""Keys from the root of a document to a value; numbers count the elements of lists."""

REMOVED: Final = object()
"""In the place of a value: the key is taken out."""

_QUOTED = r""" "(?:[^"\\]|\\.)*" | '[^']*' """
_KEY = re.compile(rf"(?> {_QUOTED} | [^='\"\#] )*? =", re.VERBOSE)
_ELEMENT = re.compile(r"\[(\d+)\]")
_CLOSING = ("]", "}", '"""', "'''")


@dataclass(slots=True)
class Statement:
    """A ``key = value`` of a text.

    Attributes:
        first: index of its first line.
        count: how many lines it has.
        table: path of the table that it stands in.
        path: path of the value.
        column: where the value begins in the first line, from 0.
    """

    first: int
    count: int
    table: Path
    path: Path
    column: int


class TomlText:
    """A text that is TOML, by its statements."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.headers: dict[int, Path] = {}
        self.statements = list(_statements(self.lines, self.headers))

    def place(self, path: Path) -> tuple[int, int, str] | None:
        """Returns line and column of a value, from 1, and its source text; None if it is not in the text."""
        found = self._around(path)
        if found is None:
            return None
        line = self.lines[found.first]
        written = line[found.column :].rstrip()
        if found.path == path and found.count == 1:
            written = _without_comment(written)
            return found.first + 1, found.column + 1, written
        inner = descend(_value(self._source(found)), path[len(found.path) :])
        text = toml_value(inner) if inner is not None else written
        for offset in range(found.count):
            column = self.lines[found.first + offset].find(text)
            if column >= 0:
                return found.first + offset + 1, column + 1, text
        return found.first + 1, found.column + 1, written

    def change(self, path: Path, new: object) -> bool:
        """Put a value in the place of another, or take it out (`REMOVED`); False where it is not written.

        No other line moves: a statement that becomes shorter is followed by empty lines.
        """
        found = self._around(path)
        if found is None:
            return new is REMOVED and self._remove_table(path)
        if found.path == path:
            head = self.lines[found.first][: found.column]
            line = "" if new is REMOVED else head + toml_value(new)
        else:
            value = _value(self._source(found))
            if new is REMOVED and descend(value, path[len(found.path) :]) is None:
                return False
            _put(value, path[len(found.path) :], new)
            line = self.lines[found.first][: found.column] + toml_value(value)
        self._write(found, line)
        return True

    def rename(self, path: Path, last: str, new: object) -> bool:
        """Replaces a statement's last key and value; returns false if the value has no statement of its own."""
        found = next((one for one in self.statements if one.path == path), None)
        if found is None:
            return False
        keys = [*(str(key) for key in path[len(found.table) : -1]), last]
        self._write(found, f"{'.'.join(map(toml_key, keys))} = {toml_value(new)}")
        found.path = (*path[:-1], last)
        return True

    def text(self) -> str:
        """The edited text."""
        return "\n".join(self.lines)

    def _remove_table(self, path: Path) -> bool:
        """Removes a table that has its own header, with everything below it."""
        below = [one for one in self.statements if one.path[: len(path)] == path]
        for one in below:
            self._write(one, "")
        headers = [line for line, keys in self.headers.items() if keys[: len(path)] == path]
        for line in headers:
            self.lines[line] = ""
        return bool(below or headers)

    def _write(self, statement: Statement, line: str) -> None:
        self.lines[statement.first : statement.first + statement.count] = [line, *[""] * (statement.count - 1)]

    def _source(self, statement: Statement) -> str:
        return "\n".join(self.lines[statement.first : statement.first + statement.count])

    def _around(self, path: Path) -> Statement | None:
        holds = (one for one in self.statements if path[: len(one.path)] == one.path)
        return max(holds, key=lambda one: len(one.path), default=None)


def key_path(key: str) -> Path:
    """A dotted key as a path; parts that are numbers, and numbers in brackets, count elements.

    Raises:
        ValueError: it is no key.
    """
    key = _ELEMENT.sub(r".\1", key)
    return tuple(int(part) if str(part).isdigit() else part for part in _flat(tomllib.loads(f"{key} = 0")))


def dotted(path: Path) -> str:
    """A path as errors name it: ``traffic.parts[0].file``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def scalar(text: str) -> Any:
    """A value as ``--set`` takes it: TOML, or a text without its quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _statements(lines: list[str], headers: dict[int, Path]) -> Iterator[Statement]:
    table: Path = ()
    counts: dict[Path, int] = {}
    index = 0
    while index < len(lines):
        first = lines[index].lstrip("\ufeff")
        stripped = first.strip()
        if not stripped or stripped.startswith("#"):
            index += 1
            continue
        if stripped.startswith("["):
            inner = stripped[: stripped.rindex("]") + 1].strip()
            several = inner.startswith("[[")
            keys = _resolved(_flat(tomllib.loads(f"{inner.strip('[]')} = 0")), counts)
            if several:
                counts[keys] = counts.get(keys, -1) + 1
                keys = (*keys, counts[keys])
            table = headers[index] = keys
            index += 1
            continue
        count = 1
        while not _parses("\n".join([first, *lines[index + 1 : index + count]])):
            count += 1
            while index + count < len(lines) and not any(mark in lines[index + count - 1] for mark in _CLOSING):
                count += 1
        head = _KEY.match(lines[index])
        end = head.end() if head else 0
        column = end + len(lines[index][end:]) - len(lines[index][end:].lstrip())
        keys = _flat(tomllib.loads("\n".join([first, *lines[index + 1 : index + count]])), _depth(lines[index][:end]))
        yield Statement(index, count, table, (*table, *keys), column)
        index += count


def _resolved(keys: Path, counts: Mapping[Path, int]) -> Path:
    """A header's path through lists of tables: into the last element of each, but for the header's own."""
    path: Path = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if path in counts and position + 1 < len(keys):
            path = (*path, counts[path])
    return path


def _depth(key: str) -> int:
    return len(_flat(tomllib.loads(f"{key.lstrip(chr(0xFEFF))} 0")))


def _flat(document: Any, depth: int | None = None) -> Path:
    """Returns the path of keys to the only value of a document."""
    keys: list[str | int] = []
    while isinstance(document, dict) and len(document) == 1 and (depth is None or len(keys) < depth):
        ((key, document),) = document.items()
        keys.append(key)
    return tuple(keys)


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _value(source: str) -> Any:
    head = _KEY.match(source)
    return descend(tomllib.loads(source), tuple(_flat(tomllib.loads(f"{source[: head.end() if head else 0]} 0"))))


def descend(value: Any, path: Path) -> Any:
    """Return the value at a path; None where there is none."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _put(value: Any, path: Path, new: object) -> None:
    parent = descend(value, path[:-1])
    if new is REMOVED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = new


def _without_comment(written: str) -> str:
    """A value of one line without the comment behind it."""
    for match in re.finditer("#", written):
        if _parses(f"value = {written[: match.start()]}"):
            return written[: match.start()].rstrip()
    return written
