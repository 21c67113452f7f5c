"""Imports files of other programs, each into a directory of its own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support.traces import Flow, flows
from tailcut import imports
from tailcut.imports import ImportOptions, ImportRefusedError
from tailcut.imports.written import write


def written(directory: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Writes files; returns their paths."""
    for name, content in files.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [directory / name for name in files]


def imported(directory: Path, files: Mapping[str, str | bytes], options: ImportOptions | None = None) -> Path:
    """Imports files; returns the directory of the experiment."""
    _, found = imports.read(written(directory, files), None, options)
    write(found, directory / "out", "t", list(files))
    return directory / "out"


def graph(directory: Path) -> dict[str, Any]:
    """Returns the network that an import wrote."""
    found: dict[str, Any] = json.loads((directory / "topology.json").read_text())
    return found


def carried(directory: Path) -> list[Flow]:
    """Returns the simulator's flows of the experiment that an import wrote."""
    return flows(tailcut.load(directory / "experiment.toml").plan)


def finished(directory: Path) -> int:
    """Runs the experiment that an import wrote; returns the number of finished flows."""
    loaded = tailcut.load(directory / "experiment.toml")
    return int(tailcut.run(loaded, out=directory / "results", jobs=1).flows["fct_ns"].count())


def refused(
    directory: Path, files: Mapping[str, str | bytes], options: ImportOptions | None = None
) -> ImportRefusedError:
    """Imports files that are refused; returns the error."""
    with pytest.raises(ImportRefusedError) as caught:
        imports.read(written(directory, files), None, options)
    return caught.value


def read_or_refused(paths: Sequence[Path]) -> bool:
    """Returns whether files are accepted; a refusal must have a code and a remedy."""
    error = None
    try:
        imports.read(paths)
    except ImportRefusedError as refusal:
        error = refusal
    assert error is None or (error.code.startswith("TC-I") and error.hint)
    return error is None
