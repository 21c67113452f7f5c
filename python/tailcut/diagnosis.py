"""Errors of an experiment that Python finds, in the form of the core's errors."""

from collections.abc import Iterable
from typing import Any

from tailcut._core import ExperimentError


def experiment_error(
    code: str, message: str, file: str, place: tuple[int, int, str] | None, line: str, key: str, hint: str | None
) -> ExperimentError:
    """An error of an experiment file.

    Args:
        code: stable, as in ``docs/reference/errors.md``.
        message: what is wrong.
        file: the experiment file, or ``--set``.
        place: line and column of the value, from 1, and the value as it is written; none where it is not written.
        line: the whole line.
        key: the dotted key.
        hint: what to do.
    """
    shown = [f"error[{code}]: {message}"]
    if place is not None:
        number, column, written = place
        margin = " " * len(str(number))
        shown += [f"{margin}--> {file}:{number}:{column}", f"{margin} |", f"{number} | {line}"]
        # Tabs stay what they are, so that the marks stand below the value.
        before = "".join(one if one == "\t" else " " for one in line[: column - 1])
        shown += [f"{margin} | {before}{'^' * max(1, len(written))}", f"{margin} |"]
    margin = " " * len(str(place[0] if place else 1))
    shown.append(f"{margin} = key: {key}")
    if hint is not None:
        shown.append(f"{margin} = hint: {hint}")
    rendered = "\n".join(shown)
    only = {
        "code": code, "message": message, "file": file, "line": place and place[0], "column": place and place[1],
        "key": key, "expected": None, "hint": hint, "rendered": rendered,
    }  # fmt: skip
    return together([only])


def together(entries: Iterable[dict[str, Any]]) -> ExperimentError:
    """Several errors as one: those of the file by line, and then those of overrides and of no line."""
    of_file = sorted(entries, key=lambda one: (one["file"] == "--set", one["line"] is None, one["line"] or 0))
    error = ExperimentError("\n\n".join(one["rendered"] for one in of_file))
    for name, value in {**of_file[0], "rendered": str(error), "errors": of_file}.items():
        setattr(error, name, value)
    return error
