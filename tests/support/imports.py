"""Files of other programs, imported into a directory of their own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tailcut
from support.traces import Flow, flows
from tailcut import imports
from tailcut.imports import ImportRefusedError, Options
from tailcut.imports.written import write


def written(directory: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Write files."""
    for name, content in files.items():
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return [directory / name for name in files]


def imported(directory: Path, files: Mapping[str, str | bytes], options: Options | None = None) -> Path:
    """Import files. Returns where the experiment is."""
    _, found = imports.read(written(directory, files), None, options)
    write(found, directory / "out", "t", list(files))
    return directory / "out"


def graph(directory: Path) -> dict[str, Any]:
    """The network that an import wrote."""
    found: dict[str, Any] = json.loads((directory / "topology.json").read_text())
    return found


def carried(directory: Path) -> list[Flow]:
    """The flows of the experiment that an import wrote, as the simulator has them."""
    return flows(tailcut.load(directory / "experiment.toml").plan)


def finished(directory: Path) -> int:
    """Run the experiment that an import wrote. Returns how many flows finished."""
    loaded = tailcut.load(directory / "experiment.toml")
    return int(tailcut.run(loaded, out=directory / "results", jobs=1).flows["fct_ns"].count())


def refused(directory: Path, files: Mapping[str, str | bytes], options: Options | None = None) -> ImportRefusedError:
    """The outcome of importing files."""
    with pytest.raises(ImportRefusedError) as caught:
        imports.read(written(directory, files), None, options)
    return caught.value


def read_or_refused(paths: Sequence[Path]) -> bool:
    """Whether files are read; what is refused says so with a code and a remedy."""
    error = None
    try:
        imports.read(paths)
    except ImportRefusedError as refusal:
        error = refusal
    assert error is None or (error.code.startswith("TC-I") and error.hint)
    return error is None
