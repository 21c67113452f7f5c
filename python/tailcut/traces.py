"""Traces as Parquet files: Polars reads them, so that the core needs no reader of its own."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

KINDS = {
    **dict.fromkeys(("UInt8", "UInt16", "UInt32", "UInt64"), "unsigned"),
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64"), "signed"),
    **dict.fromkeys(("Float32", "Float64"), "real"),
    "String": "text",
}
"""What the core calls the cells of a column, by the column's type in Polars."""


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


def _column(name: str, table: "pl.DataFrame") -> tuple[str, str, list[Any] | None]:
    if name not in table.columns:
        return name, "unread", None
    kind = KINDS.get(str(table.schema[name]), "other")
    cells = table[name].to_list()
    return name, kind, cells if kind != "other" else [None if cell is None else str(cell) for cell in cells]
