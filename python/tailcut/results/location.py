"""Directories of results, and the experiment that each belongs to."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailcut.plan import Plan

ORIGIN = "experiment_file"
"""Entry of ``plan.json``: the experiment's file relative to the directory of results; null where there is no file."""


def default_directory(file: Path) -> Path:
    """``results/`` and the file's path below the working directory, without its suffix.

    A leading ``experiments/`` is left out: ``experiments/papers/rps/fig7b.toml`` gives ``results/papers/rps/fig7b``. A
    file that is not below the working directory gives its name alone.
    """
    here = Path.cwd()
    spelled = Path(os.path.normpath(here / file))
    real = spelled.parent.resolve() / spelled.name
    below = next((path.relative_to(here) for path in (spelled, real) if path.is_relative_to(here)), Path(file.name))
    parts = below.with_suffix("").parts
    return Path("results", *(parts[1:] if len(parts) > 1 and parts[0] == "experiments" else parts))


def origin(file: Path | None, directory: Path) -> str | None:
    """Returns the path of the experiment's file for ``plan.json``; it holds when file and results move together."""
    if file is None:
        return None
    real = file.resolve()
    try:
        return Path(os.path.relpath(real, directory.resolve())).as_posix()
    except ValueError:  # on another drive
        return real.as_posix()


def is_of(held: Mapping[str, Any], plan: Plan, file: Path | None, directory: Path) -> bool:
    """Whether a directory is of this experiment.

    It is if its plan came from the same file, whatever the file said then; or if that file is gone and had the same
    title, since then it was renamed or moved.

    Args:
        held: the contents of the directory's ``plan.json``.
        plan: the experiment's plan.
        file: its file; none if there is no file, then the name decides.
        directory: the directory of results.
    """
    if file is None:
        return bool(held.get(ORIGIN) is None and held.get("source_file") == plan["source_file"])
    if ORIGIN not in held:
        return _may_be(str(held.get("source_file")), file)
    if held[ORIGIN] is None:
        return False
    home = Path(os.path.normpath(directory.resolve() / held[ORIGIN]))
    return home == file.resolve() or (not home.exists() and held.get("title") == plan["title"])


def _may_be(written: str, file: Path) -> bool:
    """Whether ``file`` may be the path that an older version stored as typed, relative to an unknown directory."""
    parts = [part for part in Path(written).parts if part not in (".", "..")]
    return tuple(parts) == file.resolve().parts[-len(parts) :]
