"""The playground as `make playground` builds it."""

import shutil
import subprocess
from pathlib import Path

from support.skipping import missing

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "target/playground/tailcut.wasm"
NODE = ROOT / "packages/playground/node.mjs"
PAGE = ROOT / "docs/playground/index.html"


def no_scripts() -> str | None:
    """Returns why the page's scripts cannot be run, or None."""
    if shutil.which("node") is None:
        return "no node"
    made = NODE.parent / "dist/engine.js"
    if not made.exists():
        return "the playground's scripts have not been built"
    if any(source.stat().st_mtime > made.stat().st_mtime for source in (NODE.parent / "src").iterdir()):
        return "the playground's scripts were built from other sources"
    return None


def no_module() -> str | None:
    """Returns why there is no WebAssembly module of these sources, or None."""
    if not MODULE.exists():
        return "the playground has not been built"
    now = subprocess.run([ROOT / ".ci/playground-module", "--digest"], check=True, capture_output=True, text=True)
    if now.stdout != (MODULE.parent / "built-from").read_text():
        return "the playground was built from other sources"
    return no_scripts()


def module() -> Path:
    """Returns the WebAssembly module; skips the test if it was not built from these sources."""
    if reason := no_module():
        missing(reason, "make playground")
    return MODULE
