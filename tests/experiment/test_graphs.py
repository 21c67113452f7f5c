"""Jobs given as graphs: files as other libraries write them, and jobs that do not end."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import tailcut
from tailcut.cli import app

CHAIN = (
    "id,src,dst,bytes,host,duration_ns,after\n1,0,1,20000,,,\nsum,,,,1,500,1\n2,1,2,20000,,,sum 1\n3,2,3,20000,,,2\n"
)
EXPERIMENT = """title = "A job"
[topology]
kind = "star"
hosts = 4

[traffic]
kind = "graph"
file = "{file}"

[horizon]
arrivals = "1ms"
drain = "{drain}"

[schemes.TCP]
"""
DEAD_LINK = '[faults]\nincidents = [{ kind = "link-down", link = "h2>s0", at = "50us" }]\n'


def written(directory: Path, file: str, drain: str = "100ms", more: str = "") -> Path:
    """Writes an experiment on a graph file; returns its path."""
    path = directory / "job.toml"
    path.write_text(EXPERIMENT.format(file=file, drain=drain) + more)
    return path


def job_ns(experiment: Path, out: Path) -> int:
    """Returns how long the job of an experiment takes."""
    found = tailcut.run(tailcut.load(experiment), out=out, jobs=1).jobs["completion_ns"].to_list()
    assert len(found) == 1
    return int(found[0])


def test_a_job_with_a_dead_link_says_what_waits_for_what(tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text(CHAIN)
    experiment = written(tmp_path, "job.csv", "20ms", DEAD_LINK)
    for options in ([], ["--quiet"]):
        result = CliRunner().invoke(
            app, ["run", str(experiment), "--out", str(tmp_path / "out"), "--jobs", "1", *options]
        )
        assert result.exit_code == 0, result.output
        assert (
            "TC-R003: TCP, seed 1: job 0: graph has not ended at 21ms: message 2 (host 1 to 2, 20000 B)"
            in result.output
        )
        assert "message 3 (host 2 to 3, 20000 B) waits for that; links that are down: h2>s0" in result.output
    [run] = (tmp_path / "out").glob("**/run.json")
    [job] = json.loads(run.read_text())["unfinished_jobs"]
    assert (job["code"], job["job"]) == ("TC-R003", 0)


def test_a_job_that_ends_is_not_mentioned(tmp_path: Path) -> None:
    (tmp_path / "job.csv").write_text(CHAIN)
    result = tailcut.run(tailcut.load(written(tmp_path, "job.csv")), out=tmp_path / "out", jobs=1)
    assert result.unfinished_jobs == []


@pytest.mark.parametrize("lists", [False, True])
def test_a_parquet_file_is_the_same_job_as_its_text(tmp_path: Path, lists: bool) -> None:
    (tmp_path / "job.csv").write_text(CHAIN)
    (tmp_path / "text").mkdir()
    table = pl.read_csv(tmp_path / "job.csv", schema_overrides={"id": pl.String, "after": pl.String})
    if lists:
        table = table.with_columns(pl.col("after").fill_null("").str.split(" "))
    table.write_parquet(tmp_path / "job.parquet")
    text = job_ns(written(tmp_path, "job.csv"), tmp_path / "a")
    assert job_ns(written(tmp_path, "job.parquet"), tmp_path / "b") == text


def test_integers_with_gaps_are_floating_point_in_parquet(tmp_path: Path) -> None:
    """As pandas writes columns of which some rows have no value."""
    (tmp_path / "job.csv").write_text("id,src,dst,bytes,host,duration_ns,after\n1,0,1,20000,,,\n2,,,,1,500,1\n")
    table = pl.read_csv(tmp_path / "job.csv")
    gaps = [pl.col(name).cast(pl.Float64).fill_null(float("nan")) for name in table.columns if name != "id"]
    table.with_columns(gaps).write_parquet(tmp_path / "job.parquet")
    text = job_ns(written(tmp_path, "job.csv"), tmp_path / "a")
    assert job_ns(written(tmp_path, "job.parquet"), tmp_path / "b") == text


def test_faults_in_a_parquet_file_are_refused_by_row(tmp_path: Path) -> None:
    rows = {"id": [1, 2], "src": [0, 1], "dst": [1, 9], "bytes": [10, 10], "after": [None, "1"]}
    pl.DataFrame(rows).write_parquet(tmp_path / "job.parquet")
    with pytest.raises(tailcut.ExperimentError, match=r"row 1: dst = 9: the topology has hosts 0 to 3") as caught:
        tailcut.load(written(tmp_path, "job.parquet"))
    assert caught.value.code == "TC-E100/graph-host"


POLICIES = {
    "entropy plb": 'transport = { entropy = { kind = "plb" }, congestion = { kind = "dctcp" } }\n'
    'queue = { kind = "ecn", threshold = "20packets" }',
    **{kind: f'replicate = {{ kind = "{kind}" }}' for kind in ("none", "repflow", "repsyn", "split", "hedge")},
    **{
        f"entropy {kind}": f'transport = {{ entropy = {{ kind = "{kind}" }}, reordering = {{ kind = "rack" }} }}'
        for kind in ("random", "oblivious", "bitmap", "reps", "mixed")
    },
    **{
        f"transport {kind}": f'transport = {{ kind = "{kind}" }}'
        for kind in ("mptcp", "mmptcp", "uet", "ndp", "pfabric")
    },
}


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_wait_whatever_carries_their_messages(tmp_path: Path, policy: str) -> None:
    (tmp_path / "job.csv").write_text(CHAIN.replace("20000", "250000") + "4,0,3,3000,,,2@acknowledged\n")
    fabric = '[topology]\nkind = "leaf-spine"\nracks = 4\nhosts_per_rack = 1\nspines = 3\n\n[traffic]\n'
    text = EXPERIMENT.format(file="job.csv", drain="1s").replace(
        '[topology]\nkind = "star"\nhosts = 4\n\n[traffic]\n', fabric
    )
    (tmp_path / "job.toml").write_text(text.replace("[schemes.TCP]\n", f"[schemes.A]\n{POLICIES[policy]}\n"))
    result = tailcut.run(tailcut.load(tmp_path / "job.toml"), out=tmp_path / "out", jobs=1)
    assert result.unfinished_jobs == []
    assert result.jobs["finished"].to_list() == [True]
    flows = result.flows
    start = dict(flows.select("id", "start_ns").iter_rows())
    received = dict(flows.select("id", pl.col("start_ns") + pl.col("fct_ns")).iter_rows())
    acknowledged = dict(flows.select("id", pl.col("start_ns") + pl.col("fct_ack_ns")).iter_rows())
    assert start[2] >= received[1] + 500
    assert start[3] >= received[2]
    assert start[4] >= acknowledged[2]
    assert max(start[2] - received[1] - 500, start[3] - received[2], start[4] - acknowledged[2]) <= 1
