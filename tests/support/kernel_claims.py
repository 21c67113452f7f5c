"""Writes experiments/lab/claims.toml from the table of `make lab-table`: `python tests/support/kernel_claims.py`."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE, CLAIMS = ROOT / "docs/validation/kernels.md", ROOT / "experiments/lab/claims.toml"
MEASURED = re.compile(r"^Measured on (?P<date>[\d-]+) by `make lab-table`: (?P<machine>.+)\.$", re.MULTILINE)
ROW = re.compile(
    r"^\| (?P<experiment>[a-z-]+) \| (?P<scheme>[^|]+) \| (?P<seeds>\d+) \| [\d,]+"
    r" \| [\d.,]+ \| (?P<mean>[\d.,]+) \| [^|]+ % ± (?P<chance>\d+)"
    r" \| [\d.,]+ \| (?P<p99>[\d.,]+) \| [^|]+ % \| \d+ \| \d+ \|$",
    re.MULTILINE,
)
"""A scheme's row: the numbers of kernels, and by how much simulator and kernels differ by chance in the mean."""
HANDSHAKES = "first handshakes of 2.4 ms, as on that machine, instead of 0.5"


def lost_syns(kernels: str, ours: int, then: str) -> str:
    """Returns what the number would be if as many flows had lost their SYN as over kernels."""
    return f"With as many lost SYNs as kernels ({kernels}, ours {ours}) it would be {then}."


BECAUSE = {
    "cubic-cubic-p99": lost_syns("13", 33, "265 ms, which the rule accepts"),
    "failed-link-drop-tail-mean": lost_syns("21", 15, f"39.9 ms, and {HANDSHAKES} add 1.9"),
    "failed-link-drop-tail-p99": lost_syns("21", 15, "157 ms; the other 56 ms are not explained"),
    "failed-link-sred-mean": lost_syns("84", 55, "49.3 ms, which the rule accepts"),
    "marks-drop-tail-mean": lost_syns("68", 85, "45.9 ms, which the rule accepts"),
    "mininet-tcp-mean": lost_syns("6 of 248 flows", 3, "113.6 ms, which the rule accepts"),
    "permutation-ecmp-p99": lost_syns("28", 24, "287 ms; 302 ms would be accepted"),
    "permutation-spraying-mean": f"With {HANDSHAKES} it is 38.1 ms, which the rule accepts.",
    "permutation-spraying-p99": f"Neither side lost a SYN; 13 ms are missing, and {HANDSHAKES} add 5 ms to the mean.",
    "spraying-spraying-p99": lost_syns("18", 10, "169 ms, which the rule accepts"),
}
"""What would have to be true for the number of kernels, by the identifier of a row that is missed."""
HEAD = """# Written by tests/support/kernel_claims.py from docs/validation/kernels.md: two rows for each scheme.
title = "Linux kernels"
source = "{machine}, measured on {date} by `make lab-table` (docs/validation/kernels.md)"

[readings.stated]
says = "The seeds of `make lab-table`, with the simulator's TCP set as kernels are."
set = {{ seeds = {seeds} }}
"""
CLAIM = """
[[claims]]
id = "{id}"
says = "{says}"
where = "kernels, {date}"
experiment = "{experiment}"
measure = {{ metric = "fct", flows = {{ size = "short" }}{statistic} }}
compare = {{ kind = "value", scheme = "{scheme}" }}
paper = {{ values = [{value}] }}
"""


class Measured(NamedTuple):
    """The table's rows, and when and where they were measured."""

    date: str
    machine: str
    rows: list[dict[str, str]]


def measured() -> Measured:
    """Returns what the page says of kernels."""
    page = PAGE.read_text("utf-8")
    found = MEASURED.search(page)
    if found is None:
        raise ValueError(f"{PAGE} does not say when `make lab-table` measured")
    return Measured(found["date"], found["machine"], [row.groupdict() for row in ROW.finditer(page)])


def text() -> str:
    """Returns the claims file that the table gives."""
    date, machine, rows = measured()
    (seeds,) = {row["seeds"] for row in rows}
    claims = []
    for row in rows:
        name = "-".join([row["experiment"], *row["scheme"].lower().replace(",", "").split()])
        of = f"{row['experiment']}: the {{}} of {row['scheme']}'s short flows is that over kernels{{}}."
        by_chance = f", which differs by chance by {row['chance']} %"
        for statistic, says, key in (
            ("mean", of.format("mean", by_chance), "mean"),
            ("p99", of.format("99th percentile", ""), "p99"),
        ):
            claim = f"{name}-{statistic}"
            claims.append(
                CLAIM.format(
                    id=claim,
                    says=says,
                    date=date,
                    experiment=row["experiment"],
                    statistic="" if statistic == "mean" else f', statistic = "{statistic}"',
                    scheme=row["scheme"],
                    value=row[key].replace(",", ""),
                )
                + (f'because = "{BECAUSE[claim]}"\n' if claim in BECAUSE else "")
            )
    return HEAD.format(date=date, machine=machine, seeds=seeds) + "".join(claims)


if __name__ == "__main__":
    CLAIMS.write_text(text(), "utf-8")
