"""Vega, Vega-Lite and vega-embed as the one script that a page carries, from the package that also draws the files."""

import contextlib
from importlib import metadata
from pathlib import Path

import platformdirs
import vl_convert

from tailcut.report.export import VEGA_LITE
from tailcut.results.store import write_atomically


def script() -> str:
    """The script, ready to stand inside a script element; it defines ``vegaEmbed``.

    To bundle it takes two seconds, a sixth of what a page takes, and always gives the same: it is kept where the user's
    programs keep such things (``~/.cache/tailcut`` on Linux). Where nothing can be kept it is bundled for every page.
    """
    kept = kept_at()
    try:
        return kept.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
        bundle = bundle.replace("</script", "<\\/script")
    if kept.is_absolute():  # a user without a home has none: `~` would become a directory
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, bundle.encode())
    return bundle


def kept_at() -> Path:
    """Returns the cached file, one for each version of its parts."""
    bundler = metadata.version("vl-convert-python")
    return platformdirs.user_cache_path("tailcut", appauthor=False) / f"vega-lite-{VEGA_LITE}-vl-convert-{bundler}.js"
