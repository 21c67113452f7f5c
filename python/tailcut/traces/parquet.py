"""Traces as Parquet files: Polars reads them, so that the core needs no Parquet reader."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tailcut.traces import columns
from tailcut.traces.cells import TraceError

if TYPE_CHECKING:
    import polars as pl

KINDS = {
    **dict.fromkeys(("UInt8", "UInt16", "UInt32", "UInt64"), "unsigned"),
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64"), "signed"),
    **dict.fromkeys(("Float32", "Float64"), "real"),
    "String": "text",
}
"""The core's words for the cells of a column, by the column's type in Polars."""


def read_table(content: bytes, wanted: Sequence[str]) -> list[tuple[str, str, list[Any] | None]]:
    """The columns of a Parquet file, as `tailcut._core.load` and `run` want them.

    Args:
        content: the file.
        wanted: the columns whose cells are of interest.

    Returns:
        Name, kind and cells of each column, in the order of the file. The kinds are ``unsigned``, ``signed``, ``real``,
        ``text``, ``other`` (cells as they are written in a message) and ``unread`` (no cells).

    Raises:
        ValueError: it is no Parquet file, or a damaged one.
    """
    import polars as pl

    try:
        names = list(pl.read_parquet_schema(io.BytesIO(content)))
        table = pl.read_parquet(io.BytesIO(content), columns=[name for name in names if name in wanted])
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        raise ValueError(first) from None
    return [_column(name, table) for name in names]


def texts(content: bytes, file: str) -> tuple[list[str], list[list[str]], bool]:
    """The columns of a Parquet file that mean something to a trace, as texts.

    Returns:
        Names and cells, and whether every cell is of the kind that the core takes for it.

    Raises:
        TraceError: it is no Parquet file, or a damaged one, or lacks a value.
    """
    import polars as pl

    try:
        names = list(pl.read_parquet_schema(io.BytesIO(content)))
        known = [name for name in names if columns.usual(name) in columns.KNOWN]
        table = pl.read_parquet(io.BytesIO(content), columns=known)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        hint = "write it as Parquet, or name a text file without the suffix .parquet"
        raise TraceError("trace-file", f"{file}: not a readable Parquet file: {first}", hint) from None
    for name in known:
        missing = table[name].is_null().arg_true()
        if len(missing):
            what = "is not a number" if name.startswith("start") else "is not a non-negative integer"
            raise TraceError("trace-row", f"{file}: row {missing[0]}: {name}: null {what}")
    exact = all(_is_exact(name, table.schema[name]) for name in known)
    cells = {name: _texts(table[name]) for name in known}
    return names, [cells.get(name, []) for name in names], exact


def _is_exact(name: str, kind: "pl.DataType") -> bool:
    """Whether the core accepts the cells of a column unchanged."""
    core = KINDS.get(str(kind), "other")
    if name not in columns.KNOWN:
        return False
    if name == "start":
        return core == "text"
    return core in ("unsigned", "signed") or (core == "real" and name in columns.STARTS)


def _texts(column: "pl.Series") -> list[str]:
    import polars as pl

    if isinstance(column.dtype, pl.Datetime):
        if column.dtype.time_zone is not None:
            column = column.dt.convert_time_zone("UTC")
        return column.dt.to_string("%Y-%m-%dT%H:%M:%S%.9f").to_list()
    if column.dtype.is_numeric():
        return column.cast(pl.String).to_list()
    return [str(cell).strip() for cell in column.to_list()]


def _column(name: str, table: "pl.DataFrame") -> tuple[str, str, list[Any] | None]:
    if name not in table.columns:
        return name, "unread", None
    import polars as pl

    column = table[name]
    if isinstance(column.dtype, pl.List):
        column = column.cast(pl.List(pl.String)).list.join(" ")
    kind = KINDS.get(str(column.dtype), "other")
    cells = column.to_list()
    return name, kind, cells if kind != "other" else [None if cell is None else str(cell) for cell in cells]
