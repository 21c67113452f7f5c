"""Writes experiments/uet/claims.toml from the public simulator's ranges: `python tests/support/uet_claims.py`."""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]
RANGES, CLAIMS = ROOT / "tests/oracles/uet/ranges.csv", ROOT / "experiments/uet/claims.toml"
SIMULATOR = "The Ultra Ethernet Consortium's public simulator at 40ccb05, ten seeds of each case, made in November 2026"
HEAD = f"""# Written by tests/support/uet_claims.py from tests/oracles/uet/ranges.csv: a row for each case.
title = "Ultra Ethernet"
source = "{SIMULATOR} (tests/oracles/uet)"
"""
ROW = """
[[claims]]
id = "{id}"
says = "{experiment}: the slowest flow of {scheme} is acknowledged within the public simulator's range."
where = "tests/oracles/uet/ranges.csv"
experiment = "{experiment}"
measure = {{ metric = "slowest", statistic = "p50" }}
compare = {{ kind = "value", scheme = "{scheme}" }}
paper = {{ range = [{low}, {high}], read = "{read}" }}
"""


def is_by_luck(experiment: str, scheme: str) -> bool:
    """Whether single draws decide a case: a path for life, a slow link, an incast under NSCC."""
    return "one path" in scheme or "failed" in experiment or ("incast" in experiment and scheme == "NSCC")


def text() -> str:
    """Returns the claims file that the ranges give."""
    with RANGES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return HEAD + "".join(
        ROW.format(
            id="-".join([row["experiment"], *row["scheme"].lower().replace(",", "").split()]),
            experiment=row["experiment"],
            scheme=row["scheme"],
            low=f"{float(row['tail_min_us']) / 1000:.9g}",
            high=f"{float(row['tail_max_us']) / 1000:.9g}",
            read="simulated, by luck" if is_by_luck(row["experiment"], row["scheme"]) else "simulated",
        )
        for row in rows
    )


if __name__ == "__main__":
    CLAIMS.write_text(text(), "utf-8")
