"""Keeps a trace in the simulator's form: a text file beside the original, named by its content."""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from tailcut.traces.settings import TraceFlow

FOLDER = ".tailcut"


def keep(flows: Iterable[TraceFlow], original: Path, *, rows: bool) -> Path:
    """Write flows as a trace that the simulator reads by itself; each in the line that it has in the original.

    Whoever can read the original can then read this, on other machines too. Where nothing can be written beside it, the
    user's cache takes it.

    Args:
        flows: what to write.
        original: the file that they are from.
        rows: their positions count rows from 0, not lines from 1.

    Raises:
        OSError: neither place takes it.
    """
    placed = {
        flow.number + rows: f"{'' if flow.id is None else flow.id},{flow.src},{flow.dst},{flow.size},{flow.start}"
        for flow in flows
    }
    content = "".join(f"{placed.get(line, '')}\n" for line in range(1, max(placed) + 1)).encode()
    stem = re.sub(r"[^\w-]+", "-", original.stem)[:40] or "trace"
    name = f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}.csv"
    try:
        return _written(original.parent / FOLDER, name, content)
    except OSError:
        return _written(platformdirs.user_cache_path("tailcut", appauthor=False) / "traces", name, content)


def _written(folder: Path, name: str, content: bytes) -> Path:
    path = folder.absolute() / name
    if path.is_file() and path.read_bytes() == content:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == FOLDER and not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    handle, scratch = tempfile.mkstemp(dir=folder, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
    except OSError:
        Path(scratch).unlink(missing_ok=True)
        raise
    return path
