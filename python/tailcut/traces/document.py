"""An experiment as a document: with overrides put in, and with the axes of its sweep."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tailcut.toml_text import Path as Keys
from tailcut.toml_text import key_path, scalar


@dataclass(slots=True)
class TraceAxis:
    """A swept key.

    Attributes:
        path: the key.
        written: where the file says it.
        override: which override says it instead; none where the file does.
        values: its values.
    """

    path: Keys
    written: Keys
    override: int | None
    values: list[Any]


def overridden(document: dict[str, Any], overrides: Sequence[tuple[str, str]]) -> list[TraceAxis]:
    """Puts overrides into a document; returns the axes of its sweep afterwards."""
    axes = [TraceAxis(path, written, None, values) for path, written, values in _swept(document.get("sweep"), (), ())]
    for index, (key, text) in enumerate(overrides):
        path = keys_of(key)
        if path is None:
            continue
        value = scalar(text)
        swept = next((axis for axis in axes if axis.path == path), None)
        if swept is not None and isinstance(value, list):
            swept.override, swept.values = index, value
            continue
        if swept is not None:
            axes.remove(swept)
        _set(document, path, value)
    return axes


def _swept(value: Any, path: Keys, written: Keys) -> Iterator[tuple[Keys, Keys, list[Any]]]:
    if isinstance(value, list):
        yield path, ("sweep", *written), copy.deepcopy(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            keys = keys_of(key)
            if keys is not None:
                yield from _swept(inner, (*path, *keys), (*written, key))


def keys_of(key: str) -> Keys | None:
    """A dotted key as a path; none where it is no key."""
    try:
        return key_path(key)
    except (ValueError, RecursionError):
        return None


def _set(document: Any, path: Keys, value: Any) -> None:
    for position, key in enumerate(path):
        last = position + 1 == len(path)
        if isinstance(document, dict):
            document[key] = value if last else document.get(key, {})
        elif isinstance(document, list) and isinstance(key, int) and key < len(document):
            document[key] = value if last else document[key]
        else:
            return
        document = document[key]
