use super::*;
use crate::horizon::Horizon;
use crate::topology::star::Star;

fn read(file: &str, content: &str) -> Result<Demand, TrafficError> {
    let graph = Star { hosts: 4, ..Star::default() }.build().expect("valid parameters");
    let horizon = Horizon { arrivals: Time::from_ms(1), drain: Time::from_ms(1) };
    let content = content.as_bytes().to_vec();
    let spec = MessageGraph { file: file.to_owned(), over: MessageEnd::Received };
    let read = move |_: &str| Ok(content.clone());
    super::super::TrafficSpec::Graph(spec).generate(&graph, &horizon, 1, &read)
}

const CHAIN: &str = "id,src,dst,bytes,host,duration_ns,after
a,0,1,10,,,
b,1,2,20,,,c a@acknowledged
c,,,,1,500,a
";

#[test]
fn rows_wait_for_messages_and_computations() {
    let demand = read("g.csv", CHAIN).expect("a valid graph");
    assert_eq!((demand.flows.len(), demand.jobs.independent), (2, 1));
    let on: Vec<(Signal, Dependent)> = demand.jobs.edges.iter().map(|e| (e.on, e.to)).collect();
    let b = Dependent::Flow(FlowIndex(1));
    let expected = [(Signal::Acknowledged, b), (Signal::Received, Dependent::Computation(0))];
    assert_eq!(on, expected);
    assert_eq!(demand.jobs.computed, [(0, b)]);
    assert_eq!(demand.jobs.computations[0].duration, Time::from_ns(500));
}

#[test]
fn json_says_the_same_as_text() {
    let rows = r#"[{"id": "a", "src": 0, "dst": 1, "bytes": 10},
        {"id": "b", "src": 1, "dst": 2, "bytes": 20, "after": ["c", "a@acknowledged"]},
        {"id": "c", "host": 1, "duration_ns": 500, "after": "a"}]"#;
    assert_eq!(read("g.json", rows), read("g.csv", CHAIN));
}

#[test]
fn messages_keep_ids_that_are_numbers() {
    let demand = read("g.csv", "id,src,dst,bytes,after\n7,0,1,1,3\n3,1,0,1,\n").unwrap();
    let ids: Vec<u64> = demand.flows.iter().map(|flow| flow.id).collect();
    assert_eq!(ids, [3, 7]);
}

#[test]
fn faults_are_refused_by_line() {
    let head = "id,src,dst,bytes,start_ns,host,processor,duration_ns,after\n";
    let ok = "a,0,1,1,,,,,\n";
    for (rows, code, message) in [
        (
            "a,0,1,1,,,,,b\nb,1,0,1,,,,,c\nc,,,,,1,0,5,a\n",
            "graph-cycle",
            "line 3: a waits for b (line 4), which waits for c (line 5), which waits for a (line 3)",
        ),
        ("b,0,1,1,,,,,b\n", "graph-cycle", "line 3: b waits for b (line 3)"),
        ("b,0,1,1,,,,,x\n", "graph-after", "line 3: b waits for x, which no row has as id"),
        ("a,0,2,1,,,,,\n", "graph-id", "line 3: id a is already that of line 2"),
        ("b,0,4,1,,,,,\n", "graph-host", "line 3: dst = 4: the topology has hosts 0 to 3"),
        ("b,,,,,9,,5,\n", "graph-host", "line 3: host = 9"),
        ("b,2,2,1,,,,,\n", "graph-self", "line 3: src and dst are both 2"),
        ("b,2,1,0,,,,,\n", "graph-bytes", "line 3: bytes = 0"),
        ("b,2,1,1,5,,,,a\n", "graph-row", "line 3: it has both start_ns and after"),
        ("b,2,1,1,,2,,,\n", "graph-row", "line 3: it is neither a message"),
        ("b,2,1,1.5,,,,,\n", "graph-row", "line 3: bytes: \"1.5\" is not a non-negative"),
        ("b,2,1,1,2000000,,,,\n", "graph-horizon", "line 3: starts at 2ms"),
        ("b,2,1,1,,,,,a@sent\n", "graph-row", "line 3: after: \"sent\" is neither"),
        ("b,2,1\n", "graph-row", "line 3: 3 columns where 9 are expected"),
    ] {
        let first =
            if code == "graph-cycle" && rows.starts_with('a') { "z,0,1,1,,,,,\n" } else { ok };
        let error = read("g.csv", &format!("{head}{first}{rows}")).expect_err(code);
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.starts_with(&format!("g.csv: {message}")), "{error}");
    }
}

#[test]
fn a_graph_without_messages_is_refused() {
    for content in ["", "id,host,duration_ns\na,1,5\n"] {
        assert_eq!(read("g.csv", content).expect_err("no message").code, "graph-empty");
    }
    let error = read("g.csv", "id,scr,dst,bytes\n").expect_err("an unknown column");
    assert_eq!((error.code, error.hint.as_deref()), ("graph-columns", Some("did you mean src?")));
}
