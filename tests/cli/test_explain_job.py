"""``tailcut explain --job``: the critical path of a collective operation."""

import json
from pathlib import Path

import polars as pl
import pytest

import tailcut as package

from .conftest import Tailcut

EXPERIMENT = """
title = "Two iterations of a ring"
seeds = 1
[topology]
kind = "star"
hosts = 4
[transport]
kind = "tcp"
[traffic]
kind = "mix"
[[traffic.parts]]
kind = "collective"
operation = "all-reduce"
bytes = "1MB"
slices = 2
repeat = 2
compute = "20us"
[[traffic.parts]]
kind = "pings"
[horizon]
arrivals = "1ms"
drain = "1s"
[schemes.TCP]
[schemes.CUBIC]
transport = { congestion = { kind = "cubic" } }
"""


@pytest.fixture
def results(tailcut: Tailcut) -> Path:
    """A ring beside pings, under two schemes."""
    Path("ring.toml").write_text(EXPERIMENT)
    ran = tailcut("run", "ring.toml", "-o", "results", "-q")
    assert ran.exit_code == 0, ran.stderr
    return Path("results")


def test_parts_of_the_critical_path_add_up_to_the_iteration(tailcut: Tailcut, results: Path) -> None:
    jobs = package.open_results(results).jobs.filter(pl.col("kind") == "all-reduce")
    assert jobs["iteration"].to_list() == [0, 1, 0, 1]
    for job in (0, 1):
        paths = json.loads(tailcut("explain", results, "--job", job, "--json").stdout)
        assert list(paths) == ["TCP", "CUBIC"]
        for scheme, path in paths.items():
            row = jobs.filter(pl.col("scheme") == scheme, pl.col("id") == job).row(0, named=True)
            parts = path["parts"]
            assert sum(part["to_ps"] - part["from_ps"] for part in parts) == path["completion_ps"]
            assert [part["from_ps"] for part in parts[1:]] == [part["to_ps"] for part in parts[:-1]]
            assert path["completion_ps"] // 1000 == row["completion_ns"]
            assert row["algbw_gb_per_s"] == pytest.approx(1e6 / row["completion_ns"], rel=1e-6)
            assert row["busbw_gb_per_s"] == pytest.approx(row["algbw_gb_per_s"] * 1.5)


def test_the_critical_path_names_the_last_message(tailcut: Tailcut, results: Path) -> None:
    found = tailcut("explain", results, "--job", 1)
    assert found.exit_code == 0, found.stderr
    assert found.stdout.startswith("Job 1, all-reduce; seed 1")
    assert found.stdout.count("Last was message ") == 2


def test_an_unknown_job_is_refused(tailcut: Tailcut, results: Path) -> None:
    found = tailcut("explain", results, "--job", 99)
    assert found.exit_code == 2
    assert "TC-X003" in found.stderr


def test_links_of_a_ring_carry_its_bytes_evenly(tailcut: Tailcut, results: Path) -> None:
    paths = json.loads(tailcut("explain", results, "--job", 0, "--json").stdout)
    for path in paths.values():
        links = path["links"]
        assert len(links) == 8
        busy = [link["busy_ps"] for link in links]
        assert busy == sorted(busy, reverse=True)
        for link in links:
            assert link["busy_ps"] == link["wire_bytes"] * 8 * 1000, "1 Gbps"
            assert link["busy_ps"] <= path["completion_ps"]
        # A host sends 2(n-1)/n of the array: packets of 1,460 B have 78 B more, and each has an acknowledgement.
        sent = sum(link["wire_bytes"] for link in links if link["from"].startswith("h"))
        received = sum(link["wire_bytes"] for link in links if link["to"].startswith("h"))
        assert sent == received
        assert 4 * 1.5e6 * 1538 / 1460 < sent < 4 * 1.5e6 * (1538 + 84) / 1460 * 1.01
    shown = tailcut("explain", results, "--job", 0).stdout
    assert shown.count("Busiest links, of 8:") == 2
    assert "of the time" in shown


def test_the_summary_has_the_bus_bandwidth_of_collectives(tailcut: Tailcut, results: Path) -> None:
    found = package.open_results(results)
    rows = found.bus_bandwidths()
    assert rows["kind"].to_list() == ["all-reduce"] * 2
    jobs = found.jobs.filter(pl.col("kind") == "all-reduce", pl.col("scheme") == "TCP")
    took = jobs["completion_ns"].to_list()
    # 2(n-1)/n of 1 MB over the mean time of the iterations.
    expected = pytest.approx(1.5e6 / (sum(took) / len(took)), rel=1e-6)
    assert rows.filter(pl.col("scheme") == "TCP")["busbw_gb_per_s"].item() == expected
    shown = tailcut("summary", results).stdout
    assert "GB/s" in shown
    assert f"{rows['busbw_gb_per_s'][0]:.3g}" in shown
    assert shown.count("GB/s") == 1, "pings have no bus"


def test_the_critical_path_of_a_graph_names_the_ids_of_its_file(tailcut: Tailcut) -> None:
    Path("job.csv").write_text(
        "id,src,dst,bytes,host,duration_ns,after\nback,1,0,9,,,sum\nthere,0,1,9,,,\nsum,,,,1,500,there\n"
    )
    parts = EXPERIMENT.partition("[traffic]")
    traffic = 'kind = "graph"\nfile = "job.csv"\n[horizon]' + parts[2].partition("[horizon]")[2]
    Path("job.toml").write_text(f"{parts[0]}[traffic]\n{traffic}")
    assert tailcut("run", "job.toml", "-o", "out", "-q").exit_code == 0
    shown = tailcut("explain", "out", "--job", 0).stdout
    places = [shown.index(name) for name in ("message there, h0", "computation sum at h1", "message back, h1")]
    assert places == sorted(places)
