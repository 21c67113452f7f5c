"""Sphinx configuration: `make docs`."""

import re
import sys
from importlib.metadata import version as _version
from pathlib import Path

from sphinx.application import Sphinx

project = "Tailcut"
release = version = _version("tailcut")
html_title = f"Tailcut {version}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
exclude_patterns = ["_build"]

html_theme = "furo"
html_show_copyright = False
html_copy_source = False
html_show_sphinx = False

sys.path.insert(0, str(Path(__file__).parent))


def fill_in(_app: Sphinx, document: str, source: list[str]) -> None:
    """Put what is made from the code in the place of the sentence that says so."""
    import generated

    if document in generated.PAGES:
        source[0] = generated.PAGES[document]()
        return
    source[0] = generated.filled(source[0])
    if document.startswith("notebook/"):
        # Dated measurements would hide what is true now among the results of a search.
        source[0] = source[0].replace("orphan: true\n", "orphan: true\nnosearch: true\n", 1)
    elif document.startswith("repnet/api/"):
        # The generator names a table's row as a target, which it is not.
        source[0] = re.sub(
            r"\]\((\w+\.md)?#[^)]*\)", lambda link: f"]({link[1] or Path(document).name + '.md'})", source[0]
        )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", fill_in)
