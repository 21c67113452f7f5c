"""Experiments from files of other programs: HPCC's simulator, htsim, containerlab, GOAL.

A format is one file of this folder with a `Format`, and one line in `FORMATS`.
"""

from collections.abc import Sequence
from pathlib import Path

from tailcut.imports import containerlab, goal, hpcc, htsim
from tailcut.imports.network import Format, Imported, ImportOptions
from tailcut.imports.source import ImportRefusedError, Source

__all__ = ["FORMATS", "Format", "ImportOptions", "ImportRefusedError", "Imported", "Source", "read"]

FORMATS: tuple[Format, ...] = (
    hpcc.FORMAT,
    htsim.FORMAT,
    containerlab.FORMAT,
    goal.FORMAT,
)  # fmt: skip


def read(
    paths: Sequence[Path], name: str | None = None, options: ImportOptions | None = None
) -> tuple[Format, Imported]:
    """Read files of another program.

    Args:
        paths: the files.
        name: their format; by default the one that their names are of.
        options: what is asked besides.

    Raises:
        ImportRefusedError: there is no such format, or the files are none of it, or say what has no place here.
    """
    known = "; ".join(f"{one.name}: {one.about}" for one in FORMATS)
    fitting = [one for one in FORMATS if (one.fits(paths) if name is None else one.name == name)]
    if not fitting:
        told = ", ".join(map(str, paths)) if name is None else repr(name)
        raise ImportRefusedError("TC-I004", f"{told}: the format is not known", f"name it with --format ({known})")
    return fitting[0], fitting[0].read(paths, options or ImportOptions())
