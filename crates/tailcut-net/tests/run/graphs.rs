//! Jobs given as graphs: messages and computations end when the closed forms say.
//!
//! A star of 400 Gbps, 1 us per link, payload 4096 B, 64 B of headers and framing, no handshake,
//! and a window above the bandwidth-delay product.

use serde_json::json;
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::measure::records::Outcome;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::split::Split;
use tailcut_net::scenario::{Horizon, Scenario};
use tailcut_net::topology::star::Star;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::uet::UetSpec;

use crate::run::support::{run, scenario};

fn carried(over: &str, content: &str) -> Outcome {
    run(&planned(over, content))
}

fn planned(over: &str, content: &str) -> Scenario {
    let star = Star { hosts: 8, rate: Rate(400_000_000_000), propagation: Time::from_us(1) };
    let graph = star.build().expect("the parameters are valid");
    let horizon = Horizon { arrivals: Time::from_ms(1), drain: Time::from_ms(100) };
    let spec = json!({"kind": "graph", "file": "job.csv", "over": over});
    let spec: TrafficSpec = serde_json::from_value(spec).expect("well-formed traffic");
    let content = content.as_bytes().to_vec();
    let read = move |_: &str| Ok(content.clone());
    let demand = spec.generate(&graph, &horizon, 1, &read).expect("a valid graph");
    let mut scenario = Scenario { jobs: demand.jobs, horizon, ..scenario(graph, demand.flows) };
    scenario.host.framing_overhead = Bytes(24);
    let uet = UetSpec { mss: Bytes(4096), ..UetSpec::default() };
    scenario.scheme.transport = TransportSpec::Uet(uet);
    scenario
}

/// Returns the end of a job in picoseconds.
fn end_ps(outcome: &Outcome) -> u64 {
    assert_eq!(outcome.jobs.len(), 1);
    (outcome.jobs[0].start + outcome.jobs[0].completion.expect("it ends")).0
}

#[test]
fn a_lone_message_ends_at_the_closed_form() {
    for (bytes, ps) in
        [(1, 2_002_600), (4_096, 2_166_400), (4_097, 2_167_700), (1_000_000, 22_396_800)]
    {
        let outcome = carried("received", &format!("id,src,dst,bytes\na,0,1,{bytes}\n"));
        assert_eq!(end_ps(&outcome), ps, "{bytes} B");
    }
}

/// The second message starts at 22,397 ns, the first whole nanosecond, behind the last
/// acknowledgement of the first, which takes 1.28 ns.
#[test]
fn a_message_behind_another_waits_for_the_last_acknowledgement() {
    let rows = "id,src,dst,bytes,after\na,0,1,1000000,\nb,1,2,1000000,a\n";
    assert_eq!(end_ps(&carried("received", rows)), 44_794_880);
}

/// A reduce-scatter of 10,001 bytes on three hosts, 100 ns of computation after each message.
#[test]
fn a_ring_of_three_hosts_ends_with_its_last_computation() {
    let rows = "id,src,dst,bytes,host,duration_ns,after
m00,0,1,3333,,,
m01,0,1,3334,,,c0
m10,1,2,3334,,,
m11,1,2,3333,,,c1
m20,2,0,3334,,,
m21,2,0,3334,,,c2
c0,,,,0,100,m20
c1,,,,1,100,m00
c2,,,,2,100,m10
d0,,,,0,100,m21
d1,,,,1,100,m01
d2,,,,2,100,m11
";
    let outcome = carried("received", rows);
    let last = outcome.flows.iter().map(|flow| flow.flow.start + flow.fct.expect("it ends")).max();
    assert_eq!((last, end_ps(&outcome)), (Some(Time(4_371_920)), 4_471_920));
}

#[test]
fn waiting_for_the_acknowledgement_takes_longer_than_for_the_last_byte() {
    let rows = "id,src,dst,bytes,after\na,0,1,4096,\nb,0,2,4096,a\n";
    let starts = ["received", "acknowledged"].map(|over| carried(over, rows).flows[1].flow.start);
    assert_eq!(starts[0], Time::from_ns(2_167));
    assert!(starts[1] >= Time::from_ns(4_169), "{:?}", starts[1]);
}

/// The link of host 2 fails for good before the message from host 1 to host 2 is over.
#[test]
fn a_job_whose_link_dies_names_what_waits_for_what() {
    let rows = "id,src,dst,bytes,host,duration_ns,after
0,0,1,1000000,,,
1,1,2,1000000,,,0
c,,,,2,500,1
2,2,3,1000000,,,c
3,3,4,1000000,,,2
";
    let mut scenario = planned("received", rows);
    let (link, at) = ("h2>s0".to_owned(), Time::from_us(30));
    let incidents = vec![Incident::LinkDown { link, at, until: None }];
    scenario.faults = FaultsSpec { incidents, ..FaultsSpec::default() };
    let outcome = run(&scenario);
    assert_eq!(outcome.jobs[0].completion, None);
    let reasons: Vec<&str> = outcome.unfinished.iter().map(|job| &*job.reason).collect();
    let expected = "graph has not ended at 101ms: message 1 (host 1 to 2, 1000000 B) has started at 22397ns \
                    and is not received; computation c of 500ns (host 2, processor 0) waits for \
                    that; 2 further wait in turn; links that are down: h2>s0";
    assert_eq!(reasons, [expected]);
}

/// Message `first` never arrives; texts as ids are those of the file.
#[test]
fn an_unfinished_job_names_the_ids_of_its_file() {
    let rows = "id,src,dst,bytes,after\nthird,2,3,9,second\nfirst,0,1,9,\nsecond,1,2,9,first\n";
    let mut scenario = planned("received", rows);
    let (link, at) = ("h0>s0".to_owned(), Time::ZERO);
    let incidents = vec![Incident::LinkDown { link, at, until: None }];
    scenario.faults = FaultsSpec { incidents, ..FaultsSpec::default() };
    let [job] = &run(&scenario).unfinished[..] else { panic!("one job") };
    let says = "message first (host 0 to 1, 9 B) has started at 0ps and is not received; message \
                second (host 1 to 2, 9 B) waits for that; 1 further waits in turn";
    assert!(job.reason.contains(says), "{}", job.reason);
}

/// The last of 245 packets of 4,160 B is handed over when 244 have left, after 20,300.8 ns; it arrives
/// after 22,396.8 ns, and its acknowledgement after 24,399.36.
#[test]
fn messages_of_a_pool_start_when_the_one_before_is_sent_received_or_acknowledged() {
    for (until, starts) in [("sent", 20_301), ("received", 22_397), ("acknowledged", 24_400)] {
        let rows = format!(
            "id,src,dst,bytes,pool,at_once,until\n0,0,1,1000000,p,1,{until}\n1,0,2,1,p,1,{until}\n"
        );
        let outcome = carried("received", &rows);
        assert_eq!(outcome.flows[1].flow.start, Time::from_ns(starts), "{until}");
    }
}

/// A piece begins when the one before is acknowledged, after a round trip of more than 4 us.
#[test]
fn a_split_message_is_sent_with_its_last_piece() {
    let rows = "id,src,dst,bytes,pool,at_once,until\n0,0,1,12000,p,1,sent\n1,0,2,1,p,1,sent\n";
    let mut scenario = planned("received", rows);
    scenario.scheme.transport = TransportSpec::default();
    let split = Split { threshold: Bytes(4_000), piece: Bytes(4_000) };
    scenario.scheme.replicate = ReplicateSpec::Split(split);
    let outcome = run(&scenario);
    let (last_piece, received) = (Time::from_us(8), outcome.flows[0].fct.expect("it ends"));
    let start = outcome.flows[1].flow.start;
    assert!(last_piece < start && start < received, "{start}, received after {received}");
}

/// The link of host 0 is dead while the acknowledgement of the first message travels.
#[test]
fn a_message_that_waits_for_room_in_its_pool_is_named() {
    for (until, bytes, us, cause) in [
        ("acknowledged", 4_096, 3, "is not acknowledged"),
        ("received", 1_000_000, 10, "has started at 0ps and is not received"),
        ("sent", 1_000_000, 10, "has started at 0ps and is not received"),
    ] {
        let rows = format!(
            "id,src,dst,bytes,pool,at_once,until,after\na,0,1,{bytes},p,1,{until},\n\
             b,0,2,1,p,1,{until},\nc,2,3,1,,,,b\n"
        );
        let mut scenario = planned("received", &rows);
        let (link, at) = ("h0>s0".to_owned(), Time::from_us(us));
        let incidents = vec![Incident::LinkDown { link, at, until: None }];
        scenario.faults = FaultsSpec { incidents, ..FaultsSpec::default() };
        let [job] = &run(&scenario).unfinished[..] else { panic!("one job") };
        let says = format!(
            "message a (host 0 to 1, {bytes} B) {cause}; message b (host 0 to 2, 1 B) waits for that; \
             1 further waits in turn"
        );
        assert!(job.reason.contains(&says), "{until}: {}", job.reason);
    }
}

#[test]
fn a_computation_that_waits_for_its_processor_is_named() {
    let rows = "id,src,dst,bytes,host,duration_ns,after
c,,,,0,900000000,
d,,,,0,5,
m,0,1,1,,,d
";
    let [job] = &carried("received", rows).unfinished[..] else { panic!("one job") };
    let says = "computation c of 900ms (host 0, processor 0) runs until 900ms; computation d of 5ns \
                (host 0, processor 0) waits for that; 1 further waits in turn";
    assert!(job.reason.contains(says), "{}", job.reason);
}

#[test]
fn a_job_that_ends_has_nothing_unfinished() {
    let outcome = carried("received", "id,src,dst,bytes,after\na,0,1,1,\nb,1,2,1,a\n");
    assert_eq!(outcome.unfinished, []);
}
