"""Small real experiments: each runs in milliseconds."""

from pathlib import Path

ROOT = Path(__file__).parents[2] / "experiments"


def shipped(folder: str = "", pattern: str = "**/*.toml") -> list[Path]:
    """Returns the experiment files that come with Tailcut, without the papers' claims beside them."""
    return sorted(path for path in (ROOT / folder).glob(pattern) if path.name != "claims.toml")


TINY = """
title = "RepFlow against TCP over four paths"
seeds = 2

[topology]
kind = "fat-tree"
k = 4

[traffic]
kind = "poisson"
sizes = "50KB"
load = 0.3

[horizon]
arrivals = "5ms"
drain = "1s"

[schemes.TCP]

[schemes.RepFlow]
like = "TCP"
replicate = { kind = "repflow" }

[report]
baseline = "TCP"
"""


def tiny(directory: Path, more: str = "") -> Path:
    """Writes the experiment with further lines at its end; returns its path."""
    path = directory / "tiny.toml"
    path.write_text(TINY + more)
    return path
