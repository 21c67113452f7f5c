"""Experiments as dictionaries: written as the TOML that an experiment file would have."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def as_toml(document: Mapping[str, Any]) -> str:
    """A document as TOML, a line per key of its tables.

    Args:
        document: texts, numbers, booleans, lists and mappings of them; paths are written as text.

    Raises:
        TypeError: something in it that TOML has no word for; the message names the key.
    """
    plain = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(value, key)}" for key, value in plain.items()]
    for section, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(section)}]"]
            lines += [f"{_key(key)} = {_value(value, f'{section}.{key}')}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def toml_key(name: str) -> str:
    """A key as TOML has it: bare where it can be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def toml_value(value: Any, where: str = "the value") -> str:
    """Returns a value as TOML in one line; ``where`` is its name in errors.

    Raises:
        TypeError: TOML has no word for it.
    """
    return _value(value, where)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not a text")
    return _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, where: str) -> str:
    if hasattr(value, "tolist"):  # a number or array of NumPy
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | PurePath):
        return _text(str(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item, f'{where}.{key}')}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item, f"{where}[{index}]") for index, item in enumerate(value)) + "]"
    raise TypeError(f"{where}: {value!r} is neither text nor number, boolean, list or mapping")
