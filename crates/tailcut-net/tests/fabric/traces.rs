//! Traces: the same flows from an inline list, from text and from Parquet.

use std::io;

use serde_json::{Value, json};
use tailcut_engine::Time;
use tailcut_net::component::SpecError;
use tailcut_net::files::{Cells, FileReader, TableColumn};
use tailcut_net::scenario::Horizon;
use tailcut_net::topology::{HostId, TopologySpec};
use tailcut_net::traffic::{Flow, TrafficSpec};

fn trace(spec: Value, file: &[u8]) -> Result<Vec<Flow>, SpecError> {
    generate(spec, &|path: &str| match path {
        "absent.csv" => Err(io::ErrorKind::NotFound.into()),
        _ => Ok(file.to_vec()),
    })
}

fn generate(spec: Value, read: &dyn FileReader) -> Result<Vec<Flow>, SpecError> {
    let topology: TopologySpec =
        serde_json::from_value(json!({"kind": "star", "hosts": 16})).unwrap();
    let graph = topology.build(&|_: &str| unreachable!()).unwrap();
    let horizon = Horizon { arrivals: Time::from_ms(100), drain: Time::ZERO };
    let spec: TrafficSpec = serde_json::from_value(spec).unwrap();
    spec.generate(&graph, &horizon, 1, read).map(|demand| demand.flows)
}

/// A table file whose columns have been read by another reader.
struct Table(Vec<(&'static str, Cells)>);

impl FileReader for Table {
    fn file(&self, path: &str) -> io::Result<Vec<u8>> {
        Ok(path.as_bytes().to_vec())
    }

    fn columns(&self, content: &[u8], wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
        assert_eq!(content, b"flows.parquet");
        let column = |(name, cells): &(&str, Cells)| TableColumn {
            name: (*name).to_owned(),
            cells: wanted.contains(name).then(|| cells.clone()),
        };
        Ok(self.0.iter().map(column).collect())
    }
}

fn table(columns: Vec<(&'static str, Cells)>) -> Result<Vec<Flow>, SpecError> {
    generate(json!({"kind": "trace", "file": "flows.parquet"}), &Table(columns))
}

fn unsigned(cells: &[u64]) -> Cells {
    Cells::Unsigned(cells.iter().copied().map(Some).collect())
}

/// Returns two flows, with other cells in one column.
fn two_flows_but(name: &'static str, cells: Cells) -> Result<Vec<Flow>, SpecError> {
    let columns = ["id", "src", "dst", "bytes", "start_ns"];
    let right = [[7, 9], [2, 15], [5, 10], [7_861, 45_923], [246_918, 2_695_947]];
    let mut columns: Vec<_> =
        columns.into_iter().zip(right).map(|(name, cells)| (name, unsigned(&cells))).collect();
    match columns.iter_mut().find(|column| column.0 == name) {
        Some(column) => column.1 = cells,
        None if name.starts_with("start") => columns[4] = (name, cells),
        None => columns.push((name, cells)),
    }
    table(columns)
}

fn text(file: &str) -> Result<Vec<Flow>, SpecError> {
    trace(json!({"kind": "trace", "file": "flows.csv"}), file.as_bytes())
}

fn flow(id: u64, src: u32, dst: u32, bytes: u64, start_ns: u64) -> Flow {
    Flow { src: HostId(src), dst: HostId(dst), bytes, start: Time::from_ns(start_ns), id }
}

#[test]
fn the_same_flows_are_read_from_every_form() {
    let expected = [flow(7, 2, 5, 7_861, 246_918), flow(9, 15, 10, 45_923, 2_695_947)];
    let inline = json!({"kind": "trace", "flows": [
        {"id": 7, "src": 2, "dst": 5, "bytes": "7861B", "start": "246918ns"},
        {"id": 9, "src": 15, "dst": 10, "bytes": "45923B", "start": "2.695947ms"},
    ]});
    assert_eq!(trace(inline, b"").unwrap(), expected);
    for file in [
        "id,src,dst,bytes,start_ns\n7,2,5,7861,246918\n9,15,10,45923,2695947\n",
        "id,src,dst,bytes,start_us\r\n7,2,5,7861,246.918\r\n9,15,10,45923,2695.947\r\n",
        "start_s;dst;src;size_bytes;id;note\n0.000246918;5;2;7861;7;a\n0.002695947;10;15;45923;9;\n",
        "id\tsrc\tdst\tbytes\tstart\n7\t2\t5\t7861\t246.918us\n9\t15\t10\t45923\t2.695947ms\n",
        "# a comment; id src dst size_bytes start_ns\n7 2 5 7861 246918\n\n9 15 10 45923 2695947 # the last\n",
    ] {
        assert_eq!(text(file).unwrap(), expected, "{file}");
    }
}

#[test]
fn a_file_without_a_header_has_the_columns_that_the_experiment_names() {
    let spec = json!({"kind": "trace", "file": "flows.txt", "columns": ["src", "dst", "start_ms", "bytes"]});
    assert_eq!(trace(spec, b"1 2 50 700").unwrap(), [flow(0, 1, 2, 700, 50_000_000)]);
}

#[test]
fn flows_come_in_order_of_start_and_keep_their_ids() {
    let flows = text("id,src,dst,bytes,start_ns\n4,0,1,10,500\n5,0,1,10,100\n").unwrap();
    assert_eq!(flows, [flow(5, 0, 1, 10, 100), flow(4, 0, 1, 10, 500)]);
    let unnamed = text("src,dst,bytes,start_ns\n0,1,10,500\n2,1,10,100\n").unwrap();
    assert_eq!(unnamed, [flow(0, 2, 1, 10, 100), flow(1, 0, 1, 10, 500)]);
}

#[test]
fn the_ns3_flow_lists_are_traces() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fabric/data/ns3_k4_load_0.5.txt");
    let flows = text(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(flows.len(), 57);
    assert_eq!(flows[0], flow(0, 2, 5, 7_861, 246_918));
}

#[test]
fn a_table_gives_the_flows_of_its_rows_whatever_the_types_of_its_columns() {
    let expected = vec![flow(7, 2, 5, 7_861, 246_918), flow(9, 15, 10, 45_923, 2_695_947)];
    let text = |cells: [&str; 2]| Cells::Text(cells.map(|cell| Some(cell.to_owned())).to_vec());
    for (name, cells) in [
        ("src", Cells::Signed(vec![Some(2), Some(15)])),
        ("start_us", Cells::Real(vec![Some(246.918), Some(2695.947)])),
        ("start_ns", Cells::Signed(vec![Some(246_918), Some(2_695_947)])),
        ("start", text(["246918ns", "2.695947ms"])),
        ("note", text(["is", "ignored"])),
        ("note", Cells::Other(vec![None, None])),
    ] {
        assert_eq!(two_flows_but(name, cells.clone()), Ok(expected.clone()), "{name}: {cells:?}");
    }
}

#[test]
fn errors_in_a_table_name_row_and_column() {
    let text = |cell: &str| Some(cell.to_owned());
    for (name, cells, message) in [
        (
            "bytes",
            Cells::Signed(vec![Some(1), Some(-10)]),
            "row 1: bytes: -10 is not a non-negative integer",
        ),
        (
            "bytes",
            Cells::Unsigned(vec![Some(1), None]),
            "row 1: bytes: null is not a non-negative integer",
        ),
        (
            "bytes",
            Cells::Real(vec![Some(1.0), Some(2.0)]),
            "row 0: bytes: 1.0 is not a non-negative integer",
        ),
        (
            "id",
            Cells::Text(vec![text("7"), text("9")]),
            "row 0: id: \"7\" is not a non-negative integer",
        ),
        (
            "src",
            Cells::Other(vec![text("true"), text("false")]),
            "row 0: src: true is not a non-negative integer",
        ),
        ("dst", unsigned(&[5, 1 << 32]), "row 1: dst: 4294967296 is not a host number"),
        (
            "start_s",
            Cells::Text(vec![text("1s"), text("2s")]),
            "row 0: start_s: \"1s\" is not a number",
        ),
        (
            "start_s",
            Cells::Real(vec![Some(0.0), Some(-0.5)]),
            "row 1: start_s: -0.5 is not a start time of 0 or later",
        ),
        ("start", unsigned(&[0, 5]), "row 0: start: 0 has no unit"),
    ] {
        let error = two_flows_but(name, cells).unwrap_err();
        let expected = format!("flows.parquet: {message}");
        assert_eq!((error.code, error.to_string()), ("trace-row", expected));
    }
    let error = two_flows_but("dst", unsigned(&[5, 16])).unwrap_err();
    let expected = "flows.parquet: row 1: dst = 16: the topology has hosts 0 to 15";
    assert_eq!((error.code, error.to_string().as_str()), ("trace-host", expected));
    let error = table(vec![("src", unsigned(&[]))]).unwrap_err();
    let expected = "flows.parquet: no column is called dst (found: src)";
    assert_eq!((error.code, error.to_string().as_str()), ("trace-columns", expected));
}

#[test]
fn a_table_without_a_reader_is_an_error() {
    let error = trace(json!({"kind": "trace", "file": "flows.parquet"}), b"PAR1").unwrap_err();
    assert_eq!((error.code, error.field.as_str()), ("trace-file", "file"));
}

#[test]
fn errors_in_a_trace_name_the_line() {
    let header = "id,src,dst,bytes,start_ns\n";
    for (row, code, message) in [
        (
            "0,1,2,10",
            "trace-row",
            "flows.csv: line 2: 4 columns where 5 are expected (id, src, dst, bytes, start_ns)",
        ),
        (
            "0,1,2,-10,0",
            "trace-row",
            "flows.csv: line 2: bytes: \"-10\" is not a non-negative integer",
        ),
        ("0,1,x,10,0", "trace-row", "flows.csv: line 2: dst: \"x\" is not a host number"),
        (
            "0,1,2,10,-5",
            "trace-row",
            "flows.csv: line 2: start_ns: -5 is not a start time of 0 or later",
        ),
        (
            "0,1,16,10,0",
            "trace-host",
            "flows.csv: line 2: dst = 16: the topology has hosts 0 to 15",
        ),
        ("0,1,1,10,0", "trace-self", "flows.csv: line 2: src and dst are both 1"),
        ("0,1,2,0,0", "trace-bytes", "flows.csv: line 2: bytes = 0"),
        (
            "0,1,2,10,100000000",
            "trace-horizon",
            "flows.csv: line 2: starts at 100ms, which is not before horizon.arrivals = \"100ms\"",
        ),
        (
            "3,1,2,10,0\n3,1,2,10,5",
            "trace-id",
            "flows.csv: line 3: id 3 is already that of flows.csv: line 2",
        ),
    ] {
        let error = text(&format!("{header}{row}\n")).unwrap_err();
        assert_eq!((error.code, error.to_string().as_str()), (code, message));
    }
}

#[test]
fn a_trace_needs_each_column_once_and_with_its_unit() {
    let missing = text("id,src,dst,start_ns\n0,1,2,0\n").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "flows.csv: no column is called bytes (found: id, src, dst, start_ns)"
    );
    let misspelt = text("id,src,dst,byte,start_ns\n0,1,2,3,0\n").unwrap_err();
    assert_eq!(misspelt.hint.as_deref(), Some("did you mean bytes instead of byte?"));
    let twice = text("src,dst,bytes,start_ns,start_us\n1,2,3,0,0\n").unwrap_err();
    assert!(twice.to_string().contains("more than one column"), "{twice}");
    let unitless = text("src,dst,bytes,start\n1,2,3,500\n").unwrap_err();
    assert!(unitless.to_string().contains("has no unit"), "{unitless}");
    assert!(unitless.hint.unwrap().contains("start_ns"));
}

#[test]
fn a_trace_has_one_source() {
    for (spec, field) in [
        (json!({"kind": "trace"}), "file"),
        (
            json!({"kind": "trace", "file": "a.csv", "flows": [{"src": 0, "dst": 1, "bytes": "1B"}]}),
            "flows",
        ),
    ] {
        let error = trace(spec, b"").unwrap_err();
        assert_eq!((error.code, error.field.as_str()), ("trace-source", field));
    }
    let absent = trace(json!({"kind": "trace", "file": "absent.csv"}), b"").unwrap_err();
    assert!(absent.to_string().starts_with("absent.csv: cannot be read"), "{absent}");
    assert_eq!(text("# nothing\n").unwrap_err().code, "trace-empty");
}
