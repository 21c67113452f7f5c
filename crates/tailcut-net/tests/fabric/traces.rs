//! Traces: the same flows from an inline list, from text and from Parquet.

use serde_json::{json, Value};
use tailcut_engine::Time;
use tailcut_net::component::SpecError;
use tailcut_net::scenario::Horizon;
use tailcut_net::topology::TopologySpec;
use tailcut_net::traffic::{Flow, TrafficSpec};

fn trace(spec: Value, file: &[u8]) -> Result<Vec<Flow>, SpecError> {
    let topology: TopologySpec =
        serde_json::from_value(json!({"kind": "star", "hosts": 16})).unwrap();
    let graph = topology.build(&|_| unreachable!()).unwrap();
    let horizon = Horizon { arrivals: Time::from_ms(100), drain: Time::ZERO };
    let spec: TrafficSpec = serde_json::from_value(spec).unwrap();
    spec.generate(&graph, &horizon, 1, &|path| match path {
        "absent.csv" => Err(std::io::ErrorKind::NotFound.into()),
        _ => Ok(file.to_vec()),
    })
    .map(|demand| demand.flows)
}

fn text(file: &str) -> Result<Vec<Flow>, SpecError> {
    trace(json!({"kind": "trace", "file": "flows.csv"}), file.as_bytes())
}

fn flow(id: u64, src: u32, dst: u32, bytes: u64, start_ns: u64) -> Flow {
    Flow { src, dst, bytes, start: Time::from_ns(start_ns), id }
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

/// One is a flow table as the results store holds it, written by Polars with its defaults (zstd);
/// the other is PyArrow's with its own (Snappy), with starts in microseconds and narrower integers.
#[test]
fn flow_tables_and_other_parquet_files_hold_the_flows_that_they_were_made_from() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fabric/data/");
    let list = std::fs::read_to_string(format!("{data}ns3_k4_load_0.5.txt")).unwrap();
    let expected = text(&list).unwrap();
    for name in ["flow_table_polars.parquet", "pyarrow.parquet"] {
        let bytes = std::fs::read(format!("{data}{name}")).unwrap();
        let flows = trace(json!({"kind": "trace", "file": name}), &bytes).unwrap();
        assert_eq!(flows, expected, "{name}");
    }
}

#[test]
fn a_broken_parquet_file_is_an_error() {
    let spec = json!({"kind": "trace", "file": "flows.parquet"});
    let error = trace(spec, b"PAR1 and no more").unwrap_err();
    assert_eq!((error.code, error.field.as_str()), ("trace-file", "file"));
}

#[test]
fn what_is_wrong_in_a_trace_is_named_by_line() {
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
            "flows.csv: line 2: bytes: \"-10\" is not a whole number from 0 on",
        ),
        ("0,1,x,10,0", "trace-row", "flows.csv: line 2: dst: \"x\" is not a host number"),
        (
            "0,1,2,10,-5",
            "trace-row",
            "flows.csv: line 2: start_ns: -5 is not a start time from 0 on",
        ),
        (
            "0,1,16,10,0",
            "trace-host",
            "flows.csv: line 2: dst = 16: the topology has hosts 0 to 15",
        ),
        ("0,1,1,10,0", "trace-self", "flows.csv: line 2: src and dst are both 1"),
        ("0,1,2,0,0", "trace-bytes", "flows.csv: line 2: a flow of 0 bytes"),
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
fn columns_must_say_what_they_are() {
    let missing = text("id,src,dst,start_ns\n0,1,2,0\n").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "flows.csv: no column is called bytes (found: id, src, dst, start_ns)"
    );
    let misspelt = text("id,src,dst,byte,start_ns\n0,1,2,3,0\n").unwrap_err();
    assert_eq!(misspelt.hint.as_deref(), Some("did you mean bytes by byte?"));
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
