"""``run.json``, the record of a finished run: reading it, and holding the run's files to it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailcut.results.plan_file import check_format

RUN_FORMAT = 1


def read_record(path: Path, run_id: str, *, whole: bool) -> dict[str, Any] | None:
    """Returns a directory's ``run.json``, if it is of that run and every listed file is as it was written; else None.

    Args:
        path: the directory.
        run_id: the run.
        whole: whether to read every byte; otherwise size and time of a file suffice.

    Raises:
        StoreError: another version of Tailcut wrote it.
    """
    try:
        about: dict[str, Any] = json.loads((path / "run.json").read_bytes())
        if about["id"] != run_id:
            return None
        check_format(path / "run.json", about["format"], RUN_FORMAT)
        same = all(_matches(path / name, file, whole=whole) for name, file in about["files"].items())
        return about if same else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def same_files(here: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether two runs, given as ``run.json``, have the same files with the same captures."""
    asked = ("capture", "capture_bounds")
    digests = [{name: file["sha256"] for name, file in run["files"].items()} for run in (here, made)]
    return digests[0] == digests[1] and all(here.get(key) == made.get(key) for key in asked)


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _matches(path: Path, expected: dict[str, Any], *, whole: bool) -> bool:
    """Whether a file has the size and content that ``run.json`` lists; unless ``whole``, its time vouches for it."""
    found = path.stat()
    if found.st_size != expected["bytes"]:
        return False
    untouched = found.st_mtime_ns == expected.get("modified_ns")  # older versions did not write it
    return bool((untouched and not whole) or digest(path) == expected["sha256"])
