"""Runs on disk, and the statistics computed from them."""

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


def open(  # noqa: A001 - read as tailcut.results.open
    directory: str | Path, *others: str | Path, with_unfaithful: bool = False
) -> "Result":
    """Opens the results in one directory or several; runs may be missing.

    Args:
        directory: where they are.
        others: further directories, whose results are added: the plan then has the schemes, points and seeds of all,
            and as a further axis the key in which they differ, or the directory if that is more than one.
        with_unfaithful: whether the lab's runs that the machine could not carry in time are counted in; the summary
            and the page then say so.

    Raises:
        StoreError: one is not a directory of results, or they cannot be taken together (TC-S011, TC-S014, TC-S015).
    """
    from tailcut.results.result import Result
    from tailcut.results.store import Store

    stores = {Path(one).resolve(): Store.open(Path(one)) for one in (directory, *others)}
    store, *further = stores.values()
    if further:
        from tailcut.results.together import Together

        store = Together([store, *further])
    return Result(store, with_unfaithful=with_unfaithful)
