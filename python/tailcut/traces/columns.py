"""Names and meanings of a trace's columns, and whether a first line is a header."""

from collections.abc import Sequence
from difflib import get_close_matches

from tailcut.traces.cells import TraceError, decimal

STARTS = {"start_ns": 1, "start_us": 1_000, "start_ms": 1_000_000, "start_s": 1_000_000_000}
"""Columns of start times that are numbers, and their unit in nanoseconds."""
WITHOUT_HEADER = ("id", "src", "dst", "bytes", "start_ns")
_MEANINGS = {
    "id": "id", "src": "src", "dst": "dst", "bytes": "bytes", "size_bytes": "bytes", "start": "start",
    **dict.fromkeys(STARTS, "start"),
}  # fmt: skip
KNOWN = tuple(_MEANINGS)
NEEDED = "needed: src, dst, bytes and one of start_ns, start_us, start_ms, start_s, start"


def usual(name: str) -> str:
    """Returns a column's name in lower case, without the quotes and spaces that programs put around it."""
    return name.strip().strip("\"'").strip().casefold()


def is_header(cells: Sequence[str]) -> bool:
    """Whether a line names columns: at least one of them by a name that means something."""
    return any(usual(cell) in _MEANINGS for cell in cells)


def is_flow(cells: Sequence[str]) -> bool:
    """Whether a line without header is a flow: five columns, the last two of which are numbers."""
    if len(cells) != len(WITHOUT_HEADER):
        return False
    try:
        decimal(cells[3])
        decimal(cells[4])
    except ValueError:
        return False
    return True


def unknown_header(file: str, line: int, cells: Sequence[str]) -> TraceError:
    """Return the error for a first line that is neither a header nor a flow."""
    listed = ", ".join(cell or '""' for cell in cells)
    message = f"{file}: line {line}: this header is not recognised (found: {listed})"
    return TraceError("trace-header", message, _meant(cells) or NEEDED)


def meanings(names: Sequence[str], file: str) -> dict[str, int]:
    """Find the columns that mean something: ``id``, ``src``, ``dst``, ``bytes`` and ``start``.

    Raises:
        TraceError: one is missing, or there twice.
    """
    found: dict[str, int] = {}
    listed = ", ".join(names)
    for index, name in enumerate(names):
        meaning = _MEANINGS.get(usual(name))
        if meaning in found:
            message = f"{file}: more than one column has the meaning {_called(meaning)} (found: {listed})"
            raise TraceError("trace-columns", message)
        if meaning is not None:
            found[meaning] = index
    for meaning in ("src", "dst", "bytes", "start"):
        if meaning not in found:
            message = f"{file}: no column is called {_called(meaning)} (found: {listed})"
            raise TraceError("trace-columns", message, _meant(names) or NEEDED)
    return found


def _called(meaning: str | None) -> str:
    return "start_ns" if meaning == "start" else str(meaning)


def _meant(names: Sequence[str]) -> str | None:
    for name in names:
        near = get_close_matches(usual(name), KNOWN, n=1, cutoff=0.75)
        if near and usual(name) not in _MEANINGS:
            return f"did you mean {near[0]} by {name}?"
    return None
