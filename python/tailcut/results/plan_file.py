"""``plan.json``, which makes a directory one of results: reading it, and refusing the directory of something else."""

import json
from pathlib import Path
from typing import Any

from tailcut.errors import StoreError
from tailcut.plan import Plan
from tailcut.results import location

PLAN_FORMAT = 1


def read_plan(directory: Path) -> dict[str, Any]:
    """Returns a directory's ``plan.json``: the plan and, under ``location.ORIGIN``, the experiment's file.

    Raises:
        StoreError: it is damaged or of another version.
    """
    path = directory / "plan.json"
    try:
        held: dict[str, Any] = json.loads(path.read_bytes())
        format_ = held["format"]
    except (ValueError, KeyError, TypeError):
        raise StoreError("TC-S003", f"{path} is damaged", "run the experiment again; finished runs are kept") from None
    check_format(path, format_, PLAN_FORMAT)
    return held


def check_format(path: Path, found: object, known: int) -> None:
    """Refuses a file of another format.

    Raises:
        StoreError: TC-S004.
    """
    if found != known:
        raise StoreError(
            "TC-S004",
            f"{path} has format {found}; this version reads {known}",
            "use the Tailcut that wrote it, or name another directory with --out",
        )


def refuse_another(directory: Path, plan: Plan, file: Path | None) -> None:
    """Refuses a directory whose plan is another experiment's (TC-S005)."""
    try:
        held = read_plan(directory)
    except FileNotFoundError:
        return
    except StoreError as error:
        if error.code == "TC-S003":  # the new plan replaces the damaged one
            return
        raise
    if not location.is_of(held, plan, file, directory):
        raise StoreError(
            "TC-S005",
            f"{directory} holds the results of another experiment, {held.get('source_file')}",
            "name another directory with --out",
        )


def is_foreign(directory: Path) -> bool:
    """Whether a directory has files but no ``plan.json``, so that it holds something other than results.

    Hidden files do not count: file managers leave them, and so does another process that is writing the plan.
    """
    names = {path.name for path in directory.iterdir()}
    return "plan.json" not in names and any(not name.startswith(".") for name in names)
