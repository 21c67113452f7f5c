"""Runs on disk, and the statistics computed from them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailcut.results.result import StoredResult
    from tailcut.results.store import State, Store
    from tailcut.results.summary import summary_schema

__all__ = ["State", "Store", "StoredResult", "summary_schema"]

# Fetched when asked for: a worker process that makes runs needs no statistics.
_HOMES = {"State": "store", "Store": "store", "StoredResult": "result", "summary_schema": "summary"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"tailcut.results.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tailcut.results' has no attribute {name!r}")
