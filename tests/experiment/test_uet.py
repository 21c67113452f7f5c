"""Ultra Ethernet's transport beside the consortium's public simulator; its larger cases are for `make soak`."""

import csv
import statistics
from pathlib import Path

import polars as pl
import pytest

import tailcut

ROOT = Path(__file__).parents[2]
SMALL = ("two-ways", "incast-3", "incast-15", "outcast", "permutation-16", "permutation-16-failed-1")
EXPERIMENTS = sorted(file.stem for file in (ROOT / "experiments/uet").glob("*.toml") if file.stem != "claims")
LARGE = [name for name in EXPERIMENTS if name not in SMALL]
LONG = [pytest.mark.soak, pytest.mark.timeout(3600)]


def ranges() -> dict[tuple[str, str], tuple[float, float]]:
    """The public simulator's range of the slowest flow in us, by experiment and scheme."""
    with (ROOT / "tests/oracles/uet/ranges.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(r["experiment"], r["scheme"]): (float(r["tail_min_us"]), float(r["tail_max_us"])) for r in rows}


def allowance(experiment: str, scheme: str) -> float:
    """How far beyond that range a median may lie: a path for life, a slow link and NSCC's incasts differ by luck."""
    loose = "one path" in scheme or "failed" in experiment or ("incast" in experiment and scheme == "NSCC")
    return 0.10 if loose else 0.03


@pytest.mark.parametrize("experiment", [*SMALL, *(pytest.param(name, marks=LONG) for name in LARGE)])
def test_the_slowest_flow_lies_in_the_public_simulators_range(experiment: str, tmp_path: Path) -> None:
    asked = tailcut.load(ROOT / f"experiments/uet/{experiment}.toml")
    flows = tailcut.run(asked, out=tmp_path / "results", jobs=1).flows
    ends = flows.group_by("scheme", "seed").agg(((pl.col("start_ns") + pl.col("fct_ack_ns")).max() / 1e3).alias("us"))
    for scheme in sorted({run["scheme"] for run in asked.plan["runs"]}):
        median = statistics.median(ends.filter(pl.col("scheme") == scheme)["us"].to_list())
        (low, high), more = ranges()[experiment, scheme], allowance(experiment, scheme)
        assert low * (1 - more) <= median <= high * (1 + more), scheme


def test_every_case_of_the_oracle_has_an_experiment() -> None:
    found = {
        (name, run["scheme"])
        for name in EXPERIMENTS
        for run in tailcut.load(ROOT / f"experiments/uet/{name}.toml", seeds=1).plan["runs"]
    }
    assert found == ranges().keys()
