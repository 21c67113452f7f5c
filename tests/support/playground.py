"""The playground as `make playground` leaves it."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "target/playground/tailcut.wasm"
NODE = ROOT / "packages/playground/node.mjs"


def why_not() -> str | None:
    """Why there is nothing to test, or none."""
    if not MODULE.exists():
        return "the playground has not been built: make playground"
    now = subprocess.run(
        [ROOT / ".ci/playground-module", "--digest"], check=True, capture_output=True, text=True
    ).stdout
    if now != (MODULE.parent / "built-from").read_text():
        return "the playground was built from other sources: make playground"
    if shutil.which("node") is None or not (NODE.parent / "dist/engine.js").exists():
        return "the playground's scripts have not been built: make playground"
    return None


def module() -> Path:
    """The WebAssembly module; skips where it has not been built from these sources."""
    if reason := why_not():
        pytest.skip(reason)
    return MODULE
