"""Traces as other programs write them: read exactly, or refused by line and column."""

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailcut
from support.traces import STAR, Flow, experiment, flows, read, refusal
from tailcut.traces import cells
from tailcut.traces.hosts import Hosts
from tailcut.traces.reader import read as read_file

EXPECTED = [Flow(0, 2, 5, 1500, 1_000), Flow(1, 3, 4, 7, 2_500)]


@pytest.mark.parametrize(
    "content",
    [
        "src,dst,bytes,start_us\n2,5,1500,1\n3,4,7,2.5\n",
        "\ufeffsrc,dst,bytes,start_us\r\n2,5,1500,1\r\n3,4,7,2.5\r\n",
        "src,dst,bytes,start_us\n2,5,1500,1\n3,4,7,2.5\n".encode("utf-16"),
        ",src,dst,bytes,start_us\n0,2,5,1500,1\n1,3,4,7,2.5\n",
        "Unnamed: 0,src,dst,bytes,start_ns\n0,2,5,1500.0,1000.0\n1,3,4,7.0,2500.0\n",
        '"src","dst","bytes","start_ns"\n"2","5","1500","1000"\n"3","4","7","2500"\n',
        "SRC;DST;Bytes;Start_ns\n2;5;1500;1000\n3;4;7;2500\n",
        "h2 h5 1500 1us\nhost:3 4.0 7 2.5us\n",
        "src,dst,bytes,start\n2,5,1500,1us\n3,4,7,2.5 µs\n",
        'src,dst,bytes,start_ns,note\n2,5,1.5e3,1e3,"a, b"\n3,4,7,2.5e3,c\n',
    ],
)
def test_the_same_flows_are_read_from_every_form(content: str | bytes, tmp_path: Path) -> None:
    more = 'columns = ["src", "dst", "bytes", "start"]' if str(content).startswith("h2") else ""
    assert read(tmp_path, content, more) == EXPECTED


@pytest.mark.parametrize(
    "starts",
    [
        ["2024-05-01T12:00:00.000001Z", "2024-05-01T12:00:00.000002500Z"],
        ["2024-05-01 12:00:00.000001", "2024-05-01 12:00:00.0000025"],
        ["2024-05-01T14:00:00.000001+02:00", "2024-05-01T12:00:00.0000025+0000"],
    ],
)
def test_times_of_day_count_from_the_first_flow(starts: list[str], tmp_path: Path) -> None:
    content = "src,dst,bytes,start\n" + "".join(f"0,1,9,{start}\n" for start in starts)
    assert [flow.start_ns for flow in read(tmp_path, content)] == [0, 1_500]


@pytest.mark.parametrize(("column", "digits"), [("start_s", 9), ("start_ms", 6), ("start_us", 3), ("start_ns", 0)])
def test_times_since_1970_count_from_the_first_flow_to_the_nanosecond(column: str, digits: int, tmp_path: Path) -> None:
    numbers = [1_714_564_800_000_000_001, 1_714_564_800_123_456_789]
    texts = [f"{n // 10**digits}.{n % 10**digits:0{digits}d}" if digits else str(n) for n in numbers]
    content = f"src,dst,bytes,{column}\n" + "".join(f"0,1,9,{text}\n" for text in texts)
    assert [flow.start_ns for flow in read(tmp_path, content)] == [0, 123_456_788]


@pytest.mark.parametrize(
    "columns",
    [
        {"src": ["2", "3"]},
        {"bytes": [1500.0, 7.0]},
        {"src": ["h2", "h3"], "dst": [5.0, 4.0]},
        {"start_ns": None, "start": ["1us", "2500ns"]},
        {"start_ns": None, "start_us": pl.Series([1.0, 2.5], dtype=pl.Float32)},
        {"__index_level_0__": [0, 1]},
    ],
)
def test_parquet_files_hold_the_same_in_other_types(columns: dict[str, Any], tmp_path: Path) -> None:
    table = {"src": [2, 3], "dst": [5, 4], "bytes": [1500, 7], "start_ns": [1000, 2500]} | columns
    file = io.BytesIO()
    pl.DataFrame({name: cells for name, cells in table.items() if cells is not None}).write_parquet(file)
    assert read(tmp_path, file.getvalue(), name="flows.parquet") == EXPECTED


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_parquet_times_of_day_count_from_the_first_flow(zone: str | None, tmp_path: Path) -> None:
    starts = pl.Series([5, 17], dtype=pl.Int64).cast(pl.Datetime("ns", zone))
    file = io.BytesIO()
    pl.DataFrame({"src": [0, 1], "dst": [1, 0], "bytes": [9, 9], "start": starts}).write_parquet(file)
    assert [flow.start_ns for flow in read(tmp_path, file.getvalue(), name="f.parquet")] == [0, 12]


def test_hosts_go_by_the_names_of_the_topology(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text(
        '{"nodes": [{"id": "tor", "kind": "switch"}, {"id": "web", "kind": "host"}, {"id": "db-1", "kind": "host"}],'
        ' "edges": [{"source": "web", "target": "tor", "rate": "1Gbps", "propagation": "1us"},'
        ' {"source": "tor", "target": "db-1", "rate": "1Gbps", "propagation": "1us"}]}'
    )
    net = '[topology]\nkind = "node-link"\nfile = "net.json"\n'
    assert read(tmp_path, "src,dst,bytes,start_ns\ndb-1,web,5,0\nh0,1,5,1\n", topology=net) == [
        Flow(0, 1, 0, 5, 0),
        Flow(1, 0, 1, 5, 1),
    ]


ADDRESSES = "src,dst,bytes,start_ns\n10.0.0.1,fe80::0:2,5,0\n"


@pytest.mark.parametrize(
    "mapping", ["address,host\n10.0.0.1,h4\nfe80::2,7\n", "\ufeff10.0.0.1 4 # web\n\nFE80::2 host:7\n"]
)
def test_a_mapping_file_says_which_host_has_an_address(mapping: str, tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text(mapping, encoding="utf-8")
    assert read(tmp_path, ADDRESSES, 'hosts = "hosts.csv"') == [Flow(0, 4, 7, 5, 0)]


@pytest.mark.parametrize(
    "table", ['hosts = { "10.0.0.1" = "h4", "fe80::2" = "7" }', '[traffic.hosts]\n"10.0.0.1" = "h4"\n"fe80::2" = "7"']
)
def test_a_mapping_may_stand_in_the_experiment(table: str, tmp_path: Path) -> None:
    assert read(tmp_path, ADDRESSES, table) == [Flow(0, 4, 7, 5, 0)]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("10.0.0.1\n", "hosts.csv: line 1: 1 columns where 2 are expected"),
        ("10.0.0.1,h1\n10.0.0.1,h2\n", "hosts.csv: line 2: 10.0.0.1 is already h1"),
        ("10.0.0.1,web\n", "hosts.csv: 10.0.0.1 is 'web', which is no host of the topology"),
    ],
)
def test_a_damaged_mapping_is_refused_by_line(mapping: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text(mapping)
    error = refusal(experiment(tmp_path, ADDRESSES, 'hosts = "hosts.csv"'))
    assert (error.code, error.key, error.line) == ("TC-E100/trace-hosts", "traffic.hosts", 8)
    assert error.message.startswith(message)


NS = "src,dst,bytes,start_ns\n"
AT = "src,dst,bytes,start\n"
BOM = "\ufeff"


@pytest.mark.parametrize(
    ("content", "code", "message", "hint"),
    [
        ("from,to,at\n0,1,5\n", "trace-header", "line 1: this header is not recognised (found: f", "needed: src"),
        ("source,dest,byts,start_nz\n0,1,5,0\n", "trace-header", "line 1: this header is not", "dst by dest?"),
        ("src,dst,bytes,start_us\n0,1,5,0.0005\n", "trace-start", "line 2: starts at 0.0005us, which", "nanoseconds"),
        ("src,dst,bytes,start_s\n0,1,5,1e-10\n", "trace-start", "line 2: starts at 1e-10s, which", "nanoseconds"),
        (AT + "0,1,5,2024-05-01T00:00:00.0000000001\n", "trace-start", "line 2: starts at 2024-05-01T", "nanoseconds"),
        (AT + "0,1,5,1us\n0,1,5,2024-05-01\n", "trace-row", "line 3: start: some start times", "one kind"),
        (AT + "0,1,5,17\n", "trace-row", "line 2: start: '17' has no unit", "start_ns"),
        (AT + "0,1,5,noon\n", "trace-row", "line 2: start: 'noon' is not a time", "start_ns"),
        (NS + "0,1,1.5,0\n", "trace-row", 'line 2: bytes: "1.5" is not a non-negative integer', ""),
        (NS + "0,1,nan,0\n", "trace-row", 'line 2: bytes: "nan" is not a non-negative integer', ""),
        (NS + "0,1,1e999999999,0\n", "trace-row", 'line 2: bytes: "1e999999999" is not', ""),
        (NS + "0,web,5,0\n", "trace-host", 'line 2: dst: there is no host "web"', "h3"),
        (NS + "10.0.0.7,1,5,0\n", "trace-host", 'line 2: src: there is no host "10.0.0.7"', "hosts.csv"),
        (BOM + NS + "0,1,5,0\n\n0,h99,5,0\n", "trace-host", "line 4: dst = 99: the topology has", "more hosts"),
        (NS + '"3",h3,5,0\n', "trace-self", "line 2: src and dst are both 3", "two different"),
        (NS + "h0,h1,5,0\nh0,h1,5,2e9\n", "trace-horizon", "line 3: starts at 2s, which", "lengthen"),
        (b"src,dst\xff\n", "trace-file", "cannot be read: it is not text in UTF-8 (byte 8)", "UTF-8"),
    ],
)  # fmt: skip
def test_an_error_in_a_trace_names_line_and_column(
    content: str | bytes, code: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(experiment(tmp_path, content))
    assert (error.code, error.key, error.line, error.column) == (f"TC-E100/{code}", "traffic.file", 7, 8)
    assert error.message.startswith(f"flows.csv: {message}")
    assert hint in (error.hint or "")
    assert '7 | file = "flows.csv"\n  |        ^^^^^^^^^^^\n' in error.rendered


def test_rows_of_a_parquet_file_are_named_by_row(tmp_path: Path) -> None:
    file = io.BytesIO()
    pl.DataFrame({"src": ["0", "0"], "dst": [1, 16], "bytes": [5, 5], "start_ns": [0, 0]}).write_parquet(file)
    error = refusal(experiment(tmp_path, file.getvalue(), name="f.parquet"))
    assert error.message == "f.parquet: row 1: dst = 16: the topology has hosts 0 to 15"


def test_an_error_of_an_override_stands_at_the_override(tmp_path: Path) -> None:
    path = experiment(tmp_path, "src,dst,bytes,start_ns\n0,1,5,0\n")
    (tmp_path / "other.csv").write_text("a,b\n")
    error = refusal(path, {"traffic.file": "other.csv"})
    assert (error.file, error.column, error.code) == ("--set", 14, "TC-E100/trace-header")


def test_a_plain_trace_keeps_its_run_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    plan = tailcut.load(experiment(tmp_path, "src,dst,bytes,start_us\n0,1,5,0.5\n")).plan
    assert plan["runs"][0]["files"][0]["path"] == "flows.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flows.csv", "trace.toml"]


def test_two_traces_of_the_same_flows_make_the_same_run(tmp_path: Path) -> None:
    ids = {
        tailcut.load(experiment(tmp_path, content)).plan["runs"][0]["id"]
        for content in ("src,dst,bytes,start_ns\nh0,h1,5,0\n", 'src,dst,bytes,start_ns\n"0","1",5.0,0\n')
    }
    assert len(ids) == 1


def test_a_trace_read_in_python_runs_and_keeps_its_name(tmp_path: Path) -> None:
    loaded = tailcut.load(experiment(tmp_path, "src,dst,bytes,start_ns\nh0,h1,5000,0\n"))
    assert loaded.plan["runs"][0]["config"]["traffic"]["file"] == "flows.csv (as read)"
    assert tailcut.run(loaded, out=tmp_path / "results", jobs=1).flows["bytes"].to_list() == [5000]


def test_traces_in_a_mix_are_read_each(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("src,dst,bytes,start_ns\nh0,h1,5,0\n")
    (tmp_path / "b.csv").write_text("src,dst,bytes,start_ns\n2,3,6,7\n")
    path = tmp_path / "mix.toml"
    path.write_text(
        f'title = "t"\n{STAR}[traffic]\nkind = "mix"\nparts = [{{ kind = "trace", file = "a.csv" }},'
        ' { kind = "trace", file = "b.csv" }]\n'
    )
    assert {flow[1:] for flow in flows(tailcut.load(path).plan)} == {(0, 1, 5, 0), (2, 3, 6, 7)}


def test_flows_in_the_experiment_name_hosts_too(tmp_path: Path) -> None:
    path = tmp_path / "inline.toml"
    path.write_text(
        f'title = "t"\n{STAR}[traffic]\nkind = "trace"\nflows = [\n  {{ src = "h3", dst = 4, bytes = "9B" }},\n]\n'
    )
    assert flows(tailcut.load(path).plan) == [Flow(0, 3, 4, 9, 0)]


def test_swept_traces_keep_their_names(tmp_path: Path) -> None:
    sweep = '[sweep]\n"traffic.file" = ["flows.csv", "plain.csv"]\n'
    (tmp_path / "plain.csv").write_text("src,dst,bytes,start_ns\n2,3,6,7\n")
    plan = tailcut.load(experiment(tmp_path, "src,dst,bytes,start_ns\nh0,h1,5,0\n", rest=sweep)).plan
    assert plan["sweep"] == [{"key": "traffic.file", "values": ["flows.csv", "plain.csv"]}]
    assert [flows(plan, run)[0].bytes for run in (0, 1)] == [5, 6]


@pytest.mark.parametrize("rest", ["", "[horizon]\ndrain = '2s'\n"])
def test_arrivals_end_with_the_trace_by_default(rest: str, tmp_path: Path) -> None:
    for content in ("src,dst,bytes,start_ms\n0,1,5,0\n0,1,5,900\n", "src,dst,bytes,start_ms\nh0,1,5,900\n0,1,5,0\n"):
        plan = tailcut.load(experiment(tmp_path, content, rest=rest)).plan
        assert plan["runs"][0]["config"]["horizon"]["arrivals"] == "900000001ns"


def test_a_misspelt_key_of_a_trace_is_refused_with_all_known_keys(tmp_path: Path) -> None:
    error = refusal(experiment(tmp_path, "src,dst,bytes,start_ns\n0,1,5,0\n", 'windo = ["0s", "1s"]'))
    assert error.code == "TC-E010"
    assert error.expected == "one of kind, file, columns, flows, hosts, window, origin, scale"


@settings(max_examples=60)
@given(st.integers(0, 10**18), st.sampled_from(["start_ns", "start_us", "start_ms", "start_s"]))
def test_every_whole_nanosecond_is_read_as_it_is_written(ns: int, column: str) -> None:
    unit = {"start_ns": 0, "start_us": 3, "start_ms": 6, "start_s": 9}[column]
    text = f"{ns // 10**unit}.{ns % 10**unit:0{unit}d}" if unit else str(ns)
    content = f"src,dst,bytes,{column}\n0,1,1,{text}\n"
    assert read_file(content.encode(), "f.csv", None, Hosts({})).starts == [ns]


@settings(max_examples=100)
@given(st.binary(max_size=200) | st.text("srcdstby,;\t \n\"'0123456789.eE-+:h#_start", max_size=200).map(str.encode))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    refused = ""
    try:
        read_file(content, "f.csv", None, Hosts({}))
    except cells.TraceError as error:
        refused = str(error)
    assert refused.startswith("f.csv: ") or not refused
