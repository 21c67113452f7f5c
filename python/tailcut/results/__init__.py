"""Runs on disk, and what is computed from them."""

from pathlib import Path

from tailcut.results.result import Result
from tailcut.results.store import State, Store
from tailcut.results.summary import summary_schema

__all__ = ["Result", "State", "Store", "open", "summary_schema"]


def open(directory: str | Path) -> Result:  # noqa: A001 - read as tailcut.results.open
    """The results in ``directory``, as far as they are there.

    Raises:
        StoreError: it is not a directory of results.
    """
    return Result(Store.open(Path(directory)))
