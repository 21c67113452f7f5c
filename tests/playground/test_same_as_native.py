"""The simulator as WebAssembly plans and runs as the native one does, to the last byte."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tailcut
from support import playground
from tailcut import _core

HEAD = """
title = "the same everywhere"
[topology]
kind = "fat-tree"
k = 4
[traffic]
kind = "mix"
[[traffic.parts]]
kind = "poisson"
load = 0.4
[[traffic.parts]]
kind = "partition-aggregate"
[faults]
incidents = [{ kind = "loss", link = "s0>s8", probability = 0.01, at = "2ms" }]
[horizon]
arrivals = "10ms"
drain = "50ms"
[series]
flows = [1]
links = ["h0>s0"]
[measure]
segments = true
throughput = true
"""
SCHEMES = {
    "TCP": "",
    "Linux": 'transport = { hosts = "linux" }',
    "DCTCP": 'transport = { congestion = { kind = "dctcp" } }\nqueue = { kind = "ecn" }',
    "Swift": 'transport = { congestion = { kind = "swift" } }',
    "BBR": 'transport = { congestion = { kind = "bbr" } }',
    "RepFlow": 'replicate = { kind = "repflow" }\nqueue = { kind = "red", mark = true }',
    "RepSYN": 'replicate = { kind = "repsyn" }\nbalance = { kind = "by-tier" }',
    "hedge": 'replicate = { kind = "hedge" }',
    "split": 'replicate = { kind = "split" }\nbalance = { kind = "flowlet" }',
    "spray": 'balance = { kind = "spray" }\nqueue = { kind = "selective-red" }',
    "round robin": 'balance = { kind = "round-robin" }\nqueue = { kind = "drr" }',
    "CONGA": 'balance = { kind = "conga" }',
    "DRILL": 'balance = { kind = "drill" }\ntransport = { reordering = { kind = "adaptive" } }',
    "TinyFlow": 'balance = { kind = "tinyflow", sample_every = "20KB" }',
    "pFabric": 'transport = { kind = "pfabric" }\nqueue = { kind = "pfabric" }',
    "NDP": 'transport = { kind = "ndp" }\nqueue = { kind = "trimming" }\nbalance = { kind = "spray" }',
    "Ultra Ethernet": 'transport = { kind = "uet" }\nqueue = { kind = "trimming", returns = false }',
    "mixed": 'transport = { kind = "mixed", parts = [{ transport.kind = "tcp" }, { transport.kind = "mptcp" }] }',
    "MPTCP": 'transport = { kind = "mptcp" }',
    "MMPTCP": 'transport = { kind = "mmptcp" }',
}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("same") / "same.toml"
    file.write_text(HEAD + "".join(f'[schemes."{name}"]\n{changes}\n' for name, changes in SCHEMES.items()))
    return file


@pytest.fixture(scope="module")
def out(experiment: Path) -> Path:
    """Runs the experiment in Node; returns the directory with its plan and the tables of each run."""
    module = playground.module()
    out = experiment.parent / "out"
    out.mkdir()
    command = ["node", str(playground.NODE), "run", str(module), experiment.name, str(out)]
    subprocess.run(command, check=True, cwd=experiment.parent)
    return out


def unpacked(answer: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(answer[:4], "little")
    return json.loads(answer[4 : 4 + length]), answer[4 + length :]


def test_the_compared_schemes_cover_every_component() -> None:
    named = set(re.findall(r'kind = "([a-z-]+)"', " ".join(SCHEMES.values())))
    defaults = {"tcp", "drop-tail", "ecmp", "none"}
    groups = ("transport", "queue", "balance", "replicate")
    known = {each["name"] for each in json.loads(_core.describe()) if each["group"] in groups}
    assert known <= named | defaults


def test_plans_are_the_same_text(experiment: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(experiment.parent)
    assert (out / "plan.json").read_text() == _core.load(experiment.name)


def test_tables_are_the_same_bytes(out: Path) -> None:
    runs = json.loads((out / "plan.json").read_text())["runs"]
    assert [run["scheme"] for run in runs] == sorted(SCHEMES, key=list(SCHEMES).index)
    for run in runs:
        native = _core.run(json.dumps(run))
        header, cells = unpacked((out / f"{run['id']}.bin").read_bytes())
        native_tables = {"flows": native["flows"], "tiers": native["tiers"], **native["further"]}
        assert list(header["tables"]) == list(native_tables)
        for name, table in native_tables.items():
            assert [column["name"] for column in header["tables"][name]] == list(table)
            for column in header["tables"][name]:
                expected = table[column["name"]]
                where = (run["scheme"], name, column["name"])
                values = np.asarray(expected["values"]).tobytes()
                assert cells[column["at"] : column["at"] + len(values)] == values, where
                assert column["rows"] == len(expected["values"]), where
                assert column["categories"] == expected["categories"], where
                if expected["valid"] is None:
                    assert column["valid"] is None, where
                else:
                    valid = np.asarray(expected["valid"]).tobytes()
                    assert cells[column["valid"] : column["valid"] + len(valid)] == valid, where
        assert header["counters"] == native["counters"]
        assert header["facts"] == native["facts"]
        assert [{**s, "time_ns": list(s["time_ns"]), "value": list(s["value"])} for s in native["series"]] == header[
            "series"
        ]


def test_the_command_line_keeps_the_same_flows(experiment: Path, out: Path) -> None:
    result = tailcut.run(tailcut.load(experiment), out=experiment.parent / "results")
    for run in result.finished_runs:
        kept = pl.read_parquet(result.directory / "runs" / run["id"] / "flows.parquet")
        header, cells = unpacked((out / f"{run['id']}.bin").read_bytes())
        (fct,) = (column for column in header["tables"]["flows"] if column["name"] == "fct_ns")
        times = np.frombuffer(cells, np.int64, fct["rows"], fct["at"])
        valid = np.frombuffer(cells, np.bool_, fct["rows"], fct["valid"])
        assert kept["fct_ns"].to_list() == [int(t) if v else None for t, v in zip(times, valid, strict=True)]
