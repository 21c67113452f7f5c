"""Location of `repnet-bench`, which carries the flows of plans with replication: in this repository, or installed."""

import shutil
from pathlib import Path

BUILT = Path(__file__).parents[3] / "packages" / "repnet-bench" / "dist" / "main.js"
INSTALL = "run `make setup-lab` in the repository, or npm install --global repnet-bench; it takes Node 20 or later"
"""How to obtain it."""
NO_NODE = "there is no program `node`"
NO_BENCH = "there is no program `repnet-bench`"


class MissingError(Exception):
    """`repnet-bench` cannot be started here, for the given reason; `INSTALL` is the remedy."""


def program() -> list[str]:
    """Returns the command that starts `repnet-bench`.

    Raises:
        MissingError: it is not there.
    """
    node = shutil.which("node")
    if node is None:
        raise MissingError(NO_NODE)
    if BUILT.exists():
        return [node, str(BUILT)]
    installed = shutil.which("repnet-bench")
    if installed is None:
        raise MissingError(NO_BENCH)
    return [node, str(Path(installed).resolve())]
