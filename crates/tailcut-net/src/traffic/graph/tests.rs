use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::horizon::Horizon;
use crate::topology::star::Star;
use crate::traffic::TrafficSpec;
use crate::traffic::closed_loop::ClosedLoop;
use crate::traffic::demand::RowId;
use crate::traffic::mix::Mix;

fn read(file: &str, content: &str) -> Result<Demand, TrafficError> {
    let graph = Star { hosts: 4, ..Star::default() }.build().expect("valid parameters");
    let horizon = Horizon { arrivals: Time::from_ms(1), drain: Time::from_ms(1) };
    let content = content.as_bytes().to_vec();
    let spec = MessageGraph { file: file.to_owned(), over: MessageEnd::Received };
    let read = move |_: &str| Ok(content.clone());
    TrafficSpec::Graph(spec).generate(&graph, &horizon, 1, &read)
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
fn text_is_read_as_spreadsheets_and_tables_write_it() {
    let text = CHAIN.replace(",10,", ",10.0,").replace(",1,2,", ",1.00,2,");
    assert_eq!(read("g.csv", &format!("\u{feff}{text}")), read("g.csv", CHAIN));
}

#[test]
fn a_column_that_is_given_twice_is_refused() {
    let json = r#"[{"id": "a", "src": 0, "dst": 1, "bytes": 10, "src": 2}]"#;
    for (file, content, says) in [
        ("g.csv", "id,src,dst,bytes,src\na,0,1,10,2\n", "g.csv: column src is given twice"),
        ("g.json", json, "g.json: row 0: src is given twice"),
    ] {
        let error = read(file, content).expect_err("src is given twice");
        assert_eq!((error.code, &*error.message), ("graph-columns", says));
    }
}

#[test]
fn messages_keep_ids_that_are_numbers() {
    let demand = read("g.csv", "id,src,dst,bytes,after\n7,0,1,1,3\n3,1,0,1,\n").unwrap();
    let ids: Vec<u64> = demand.flows.iter().map(|flow| flow.id).collect();
    assert_eq!(ids, [3, 7]);
}

/// Imports number the rows of every job from the same number on.
#[test]
fn jobs_of_a_mix_may_have_the_same_ids() {
    let rows = "id,src,dst,bytes,after\n7,0,1,1,3\n3,1,0,1,\n";
    let graph = Star { hosts: 4, ..Star::default() }.build().expect("valid parameters");
    let part = || {
        let spec = MessageGraph { file: "g.csv".to_owned(), over: MessageEnd::Received };
        TrafficSpec::Graph(spec)
    };
    let mix = Mix { parts: vec![part(), part()] };
    let read = move |_: &str| Ok(rows.as_bytes().to_vec());
    let mix = TrafficSpec::Mix(mix);
    let demand = mix.generate(&graph, &Horizon::default(), 1, &read).expect("two jobs");
    let ids: Vec<u64> = demand.flows.iter().map(|flow| flow.id).collect();
    assert_eq!(ids, [3, 0, 7, 1]);
    let name = |at: usize| demand.jobs.row_id(Dependent::Flow(FlowIndex::at(at)));
    let names: Vec<Option<u64>> = (0..4)
        .map(|at| match name(at) {
            Some(RowId::Number(number)) => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(names, [None, Some(3), None, Some(7)]);
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
        ("b,2,1,3000000000001,,,,,\n", "graph-bytes", "line 3: bytes = 3000000000001: at most"),
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
fn messages_of_a_pool_start_in_turn() {
    let rows = "id,src,dst,bytes,pool,at_once,after\na,0,1,1,p,2,\nb,0,1,1,p,2,\nc,0,1,1,p,2,\nd,1,0,1,,,a\n";
    let demand = read("g.csv", rows).expect("a valid graph");
    let pools: Vec<u32> = demand.jobs.rules.iter().map(|rule| rule.pool).collect();
    assert_eq!(pools, [0, 0, 0, NONE]);
    assert_eq!((demand.jobs.pools.len(), demand.jobs.pools[0].at_once), (1, 2));
    assert_eq!(demand.jobs.independent, 0);
}

#[test]
fn a_message_keeps_its_place_in_a_pool_until_its_row_says() {
    for (word, on) in [
        ("", Signal::Received),
        ("sent", Signal::Sent),
        ("received", Signal::Received),
        ("acknowledged", Signal::Acknowledged),
    ] {
        let rows = format!("id,src,dst,bytes,pool,at_once,until\na,0,1,1,p,1,{word}\n");
        let demand = read("g.csv", &rows).expect("a valid graph");
        assert_eq!(demand.jobs.pools[0].on, on, "{word}");
    }
}

#[test]
fn faults_of_pools_are_refused_by_line() {
    for (row, code, what) in [
        (
            "b,0,1,1,,p,3,,,,\n",
            "graph-pool",
            "line 3: pool p has at_once = 3, until = received; before it had at_once = 2, until = received",
        ),
        (
            "b,0,1,1,,p,2,sent,,,\n",
            "graph-pool",
            "line 3: pool p has at_once = 2, until = sent; before",
        ),
        ("b,0,1,1,,p,0,,,,\n", "graph-row", "line 3: pool: a message with at_once above 0"),
        ("b,0,1,1,5,p,2,,,,\n", "graph-row", "line 3: pool: a message with at_once above 0"),
        ("b,,,,,p,2,,1,5,\n", "graph-row", "line 3: pool: a message with at_once above 0"),
        ("b,0,1,1,,,2,,,,\n", "graph-row", "line 3: it has at_once, but no pool"),
        ("b,0,1,1,,,,sent,,,\n", "graph-row", "line 3: it has until, but no pool"),
        ("b,0,1,1,,p,2,begun,,,\n", "graph-row", "line 3: until: \"begun\" is neither sent, rec"),
    ] {
        let head = "id,src,dst,bytes,start_ns,pool,at_once,until,host,duration_ns,after\na,0,1,1,,p,2,,,,\n";
        let error = read("g.csv", &format!("{head}{row}")).expect_err(code);
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.starts_with(&format!("g.csv: {what}")), "{error}");
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

/// Returns the end of a job whose messages take no time.
fn ideal_end(demand: &Demand) -> Time {
    let mut driver = ClosedLoop::new(&demand.flows, &demand.jobs, None).expect("flows wait");
    let mut next = 0;
    let mut now = Time::ZERO;
    loop {
        let listed = (next < demand.jobs.independent).then(|| FlowIndex::at(next));
        let due = listed.filter(|flow| demand.flows[flow.index()].start <= now);
        next += usize::from(due.is_some());
        if let Some(flow) = due.or_else(|| driver.take(now)) {
            driver.on_start(flow, now);
            driver.on_finished(flow, Signal::Received, now);
            driver.on_finished(flow, Signal::Acknowledged, now);
            continue;
        }
        let listed = (next < demand.jobs.independent).then(|| demand.flows[next].start);
        match listed.into_iter().chain(driver.next()).min() {
            Some(time) => now = time,
            None => break,
        }
    }
    let job = driver.records()[0];
    job.start + job.completion.expect("every row has been carried out")
}

/// The graph of two processors per host, with a message that waits for computations only.
const OVERLAP: &str = "id,src,dst,bytes,host,processor,duration_ns,after
calc1,,,,0,0,5000,
A,0,1,4096,,,,calc1
B,0,1,100,,,,calc1
calc2,,,,0,1,2000,calc1
F,2,0,300,,,,
w1,,,,1,0,1000,A
w2,,,,1,1,3000,B
O,1,2,300,,,,w1 w2
L,0,2,1,,,,calc2 F
";

#[test]
fn computations_of_two_processors_overlap() {
    let demand = read("g.csv", OVERLAP).expect("a valid graph");
    assert_eq!(ideal_end(&demand), Time::from_ns(8_000));
    let edges = demand.jobs.edges.len() + demand.jobs.computed.len();
    assert_eq!((demand.flows.len(), demand.jobs.computations.len(), edges), (5, 4, 9));
}

proptest! {
    /// Every computation has a processor of its own, so that only the waits decide.
    #[test]
    fn random_graphs_end_at_their_longest_path(
        rows in proptest::collection::vec(
            (any::<bool>(), 0u64..5_000, proptest::collection::vec(any::<usize>(), 0..4)), 1..40,
        ),
    ) {
        let mut text = "id,src,dst,bytes,host,processor,duration_ns,after\nm,0,1,1,,,,\n".to_owned();
        let mut ends: Vec<u64> = vec![];
        for (at, (is_message, duration, waits)) in rows.iter().enumerate() {
            let waits: BTreeSet<usize> =
                waits.iter().filter(|_| at > 0).map(|wait| wait % at.max(1)).collect();
            let ready = waits.iter().map(|&wait| ends[wait]).max().unwrap_or(0);
            ends.push(if *is_message { ready } else { ready + duration });
            let what = match is_message {
                true => "0,1,5,,,".to_owned(),
                false => format!(",,,0,{at},{duration}"),
            };
            let after: Vec<String> = waits.iter().map(|wait| format!("r{wait}")).collect();
            writeln!(text, "r{at},{what},{}", after.join(" ")).expect("memory suffices");
        }
        let demand = read("g.csv", &text).expect("the graph is acyclic");
        prop_assert_eq!(ideal_end(&demand), Time::from_ns(ends.into_iter().max().unwrap_or(0)));
    }
}
