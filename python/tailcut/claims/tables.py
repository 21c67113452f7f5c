"""Reads the tables of claims files: every key once, by type, and none that nobody read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tailcut.errors import ClaimsError

HINT = "docs/reference/claim-files.md lists the words that a claims.toml may have"


class ClaimTable:
    """A table of a claims file; `done` refuses keys that were not read."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self._left = dict(content)
        self.where = where

    def fail(self, why: str) -> ClaimsError:
        """Returns the error that says why the table is refused, and where it is."""
        return ClaimsError("TC-K001", f"claims of {self.where}: {why}", HINT)

    def take(self, key: str, kinds: type | tuple[type, ...], default: Any = None) -> Any:
        """Returns the value of a key; the default, if there is one, where the key is missing."""
        if key not in self._left:
            if default is None:
                raise self.fail(f"{key} is missing")
            return default
        found = self._left.pop(key)
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in _tuple(kinds)):
            raise self.fail(f"{key} = {found!r} has the wrong type")
        return found

    def text(self, key: str, default: str | None = None) -> str:
        """Returns a text."""
        return str(self.take(key, str, default))

    def number(self, key: str, default: float | None = None) -> float:
        """Returns a number."""
        return float(self.take(key, (int, float), default))

    def count(self, key: str) -> int:
        """Returns a number of at least one; one where the key is missing."""
        found = int(self.take(key, int, 1))
        if found < 1:
            raise self.fail(f"{key} = {found} must be at least 1")
        return found

    def word(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        """Returns a text that is one of the known words."""
        found, known = self.text(key, default), [*known]
        if found not in known:
            raise self.fail(f"{key} = {found!r} must be one of {', '.join(known)}")
        return found

    def whole(self, key: str) -> tuple[int, ...]:
        """Returns a list of whole numbers; empty where the key is missing."""
        return tuple(self.take(key, list, []))

    def texts(self, key: str, default: Sequence[str]) -> tuple[str, ...]:
        """Returns a list of texts."""
        return tuple(self.take(key, list, [*default]))

    def table(self, key: str) -> "ClaimTable":
        """Returns a table; empty where the key is missing."""
        return ClaimTable(self.take(key, dict, {}), f"{self.where}, {key}")

    def tables(self, key: str) -> "Iterable[tuple[str, ClaimTable]]":
        """Yields the tables of a table, with their names."""
        for name, content in self.take(key, dict, {}).items():
            yield name, ClaimTable(content, f"{self.where}, {key}.{name}")

    def list_of_tables(self, key: str) -> "Iterable[ClaimTable]":
        """Yields the tables of a list."""
        for place, content in enumerate(self.take(key, list)):
            yield ClaimTable(content, f"{self.where}, {content.get('id', f'{key}[{place}]')}")

    def has(self, key: str) -> bool:
        """Returns whether there is a key that was not read yet."""
        return key in self._left

    def rest(self) -> dict[str, Any]:
        """Returns all that was not read yet, as read."""
        left, self._left = self._left, {}
        return left

    def done(self) -> None:
        """Refuses keys that were not read."""
        if self._left:
            raise self.fail(f"{', '.join(self._left)}: unknown key")


def _tuple(kinds: type | tuple[type, ...]) -> tuple[type, ...]:
    return kinds if isinstance(kinds, tuple) else (kinds,)
