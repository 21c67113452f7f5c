"""Traces as Parquet files, read by Polars for the core."""

import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tailcut
from tailcut import _core
from tailcut.traces import read_table

DATA = Path(__file__).parent / "data"

EXPERIMENT = """
title = "a trace"
[topology]
kind = "star"
hosts = 16
[traffic]
kind = "trace"
file = "{file}"
[horizon]
arrivals = "1s"
[schemes.TCP]
"""

FLOWS = {"src": [2, 15], "dst": [5, 10], "bytes": [7861, 45923], "start_ns": [246918, 2695947]}


def experiment(directory: Path, file: str | Path) -> Path:
    path = directory / "trace.toml"
    path.write_text(EXPERIMENT.format(file=file))
    return path


def started(flows: pl.DataFrame) -> list[tuple[Any, ...]]:
    return flows.select("id", "src", "dst", "bytes", "start_ns").rows()


@pytest.mark.parametrize("file", ["flow_table_polars.parquet", "pyarrow.parquet"])
def test_files_of_polars_and_pyarrow_hold_the_flows_that_they_were_made_from(file: str, tmp_path: Path) -> None:
    """The first file is a flow table of a store; the second has starts in microseconds and narrower integers."""
    original = pl.read_parquet(DATA / "flow_table_polars.parquet")
    result = tailcut.run(tailcut.load(experiment(tmp_path, DATA / file)), out=tmp_path / "results", jobs=1)
    assert started(result.flows) == started(original)


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_a_trace_may_be_compressed_by_any_codec(compression: Any, tmp_path: Path) -> None:
    pl.DataFrame(FLOWS).write_parquet(tmp_path / "flows.parquet", compression=compression)
    (run,) = tailcut.load(experiment(tmp_path, "flows.parquet")).plan["runs"]
    assert (run["facts"]["flows"], run["facts"]["offered_bytes"]) == (2, 7861 + 45923)


def test_only_the_columns_that_mean_something_are_read() -> None:
    file = io.BytesIO()
    table = pl.DataFrame(
        {
            "a": pl.Series([1, None], dtype=pl.UInt8),
            "b": pl.Series([-1, 2], dtype=pl.Int16),
            "c": pl.Series([0.5, 1.0], dtype=pl.Float32),
            "d": pl.Series(["x", None]),
            "e": pl.Series([True, None]),
            "f": pl.Series([[1], [2, 3]]),
        }
    )
    table.write_parquet(file)
    assert read_table(file.getvalue(), ["a", "b", "c", "d", "e", "g"]) == [
        ("a", "unsigned", [1, None]),
        ("b", "signed", [-1, 2]),
        ("c", "real", [0.5, 1.0]),
        ("d", "text", ["x", None]),
        ("e", "other", ["True", None]),
        ("f", "unread", None),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes": [1, -10]}, 'flows.parquet: row 1: bytes: "-10" is not a non-negative integer'),
        ({"bytes": [1, None]}, "flows.parquet: row 1: bytes: null is not a non-negative integer"),
        ({"bytes": [1.0, 2.5]}, 'flows.parquet: row 1: bytes: "2.5" is not a non-negative integer'),
        ({"src": [True, False]}, 'flows.parquet: row 0: src: there is no host "True"'),
        ({"dst": [1, 2**32]}, 'flows.parquet: row 1: dst: "4294967296" is not a host number'),
        ({"dst": [1, 16]}, "flows.parquet: row 1: dst = 16: the topology has hosts 0 to 15"),
        ({"start_ns": ["1ms", "2ms"]}, 'flows.parquet: row 0: start_ns: "1ms" is not a number'),
        ({"start_us": [1, 2]}, "flows.parquet: more than one column has the meaning start_ns"),
    ],
)
def test_an_error_in_a_parquet_trace_names_row_and_column(
    change: dict[str, list[Any]], message: str, tmp_path: Path
) -> None:
    pl.DataFrame(FLOWS | change).write_parquet(tmp_path / "flows.parquet")
    with pytest.raises(tailcut.ExperimentError, match=re.escape(message)) as caught:
        tailcut.load(experiment(tmp_path, "flows.parquet"))
    assert (caught.value.key, caught.value.line) == ("traffic.file", 8)


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"src,dst,bytes,start_ns\n0,1,10,0\n"])
def test_a_file_that_is_no_parquet_file_is_an_error_of_its_key(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "flows.parquet").write_bytes(content)
    with pytest.raises(tailcut.ExperimentError, match=r"flows\.parquet: not a readable Parquet file: ") as caught:
        tailcut.load(experiment(tmp_path, "flows.parquet"))
    assert caught.value.key == "traffic.file"


def test_a_run_refuses_a_trace_that_changed_since_planning(tmp_path: Path) -> None:
    pl.DataFrame(FLOWS).write_parquet(tmp_path / "flows.parquet")
    (run,) = tailcut.load(experiment(tmp_path, "flows.parquet")).plan["runs"]
    made = _core.run(json.dumps(run), read_table=read_table)
    assert list(made["flows"]["bytes"]["values"]) == FLOWS["bytes"]
    pl.DataFrame(FLOWS | {"bytes": [1, 2]}).write_parquet(tmp_path / "flows.parquet")
    with pytest.raises(ValueError, match="has changed since the plan was made"):
        _core.run(json.dumps(run), read_table=read_table)


def test_a_defect_of_the_reader_is_not_reported_as_an_error_of_the_file(tmp_path: Path) -> None:
    def broken(_content: bytes, _wanted: object) -> list[tuple[str, str, list[Any] | None]]:
        raise ZeroDivisionError("a defect")

    pl.DataFrame(FLOWS).write_parquet(tmp_path / "flows.parquet")
    with pytest.raises(ZeroDivisionError, match="a defect"):
        _core.load(experiment(tmp_path, "flows.parquet"), [], broken)
