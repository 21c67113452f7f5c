"""Runs on disk, and what is computed from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailcut.results.result import Result
    from tailcut.results.store import State, Store
    from tailcut.results.summary import summary_schema

__all__ = ["Result", "State", "Store", "open", "summary_schema"]

# Fetched when asked for: a worker process that makes runs needs no statistics.
_HOMES = {"Result": "result", "State": "store", "Store": "store", "summary_schema": "summary"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"tailcut.results.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tailcut.results' has no attribute {name!r}")


def open(directory: str | Path, *, with_unfaithful: bool = False) -> "Result":  # noqa: A001 - read as tailcut.results.open
    """The results in ``directory``, as far as they are there.

    Args:
        directory: where they are.
        with_unfaithful: whether the lab's runs that the machine could not carry in time are counted in; the summary
            and the page then say so.

    Raises:
        StoreError: it is not a directory of results.
    """
    from tailcut.results.result import Result
    from tailcut.results.store import Store

    return Result(Store.open(Path(directory)), with_unfaithful=with_unfaithful)
