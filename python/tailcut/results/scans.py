"""Lazy scans over the tables of many runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tailcut.errors import StoreError
from tailcut.results import machine
from tailcut.results.tables import scan_parquet

PLACE = ".file"


def refuse_beyond_memory(rows: int, columns: Mapping[str, pl.DataType]) -> None:
    """Checks that a table of flows fits into the free memory.

    Raises:
        StoreError: TC-S013: it does not.
    """
    needed = 2 * rows * sum(16 if kind == pl.String() else 8 for kind in columns.values())  # the parts, then the whole
    available = machine.available_memory()
    if available is not None and needed > available:
        raise StoreError(
            "TC-S013",
            f"{rows:,} flows take about {needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are free",
            "read what you need of them: result.scan_flows().filter(...).collect()",
        )


def labelled(
    files: Sequence[tuple[Path, Mapping[str, Any]]],
    labels: Mapping[str, pl.DataType],
    columns: Mapping[str, pl.DataType],
) -> pl.LazyFrame:
    """Returns the rows of all files, each after the labels of its file.

    Args:
        files: paths with the values of their labels; one path may come several times, with other labels.
        labels: the labels' types.
        columns: the files' columns, for a scan of no file.
    """
    parts: list[dict[Path, Mapping[str, Any]]] = []
    for path, values in files:
        if not parts or path in parts[-1]:  # one scan has each file once
            parts.append({})
        parts[-1][path] = values
    return pl.concat(_scan(part, labels) for part in parts) if parts else pl.LazyFrame(schema={**labels, **columns})


def _scan(files: Mapping[Path, Mapping[str, Any]], labels: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Scans files at once: a scan for each takes a megabyte of memory."""
    named = pl.LazyFrame(
        [{PLACE: str(path), **values} for path, values in files.items()], schema={PLACE: pl.String(), **labels}
    )
    joined = scan_parquet(*files, place=PLACE).join(named, on=PLACE, how="left", maintain_order="left")
    return joined.select(*labels, pl.exclude(PLACE, *labels))
