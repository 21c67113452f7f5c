"""Sphinx configuration: `make docs`."""

from importlib.metadata import version as _version

project = "Tailcut"
release = version = _version("tailcut")
html_title = f"Tailcut {version}"

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
