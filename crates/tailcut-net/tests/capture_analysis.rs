//! Compares tshark's TCP analysis of captured runs with the simulator's counters.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use crate::common::ns3::{Setting, chain};
use crate::common::tshark::{Row, tshark};
use tailcut_engine::{Rate, Time};
use tailcut_net::capture::pcapng::START_OF_RUN;
use tailcut_net::capture::{Capture, CaptureError, CaptureSpec, CaptureSummary};
use tailcut_net::faults::{FaultsSpec, Incident};
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::{Loss, Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::queue::{QueueSpec, ecn::Ecn};
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::replicate::repflow::RepFlow;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{HostId, PortId};
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::{Close, CongestionSpec, Recovery, Sender};
use tailcut_net::{simulate, simulate_observed};

const FIELDS: [&str; 26] = [
    "frame.time_epoch",
    "frame.len",
    "frame.interface_name",
    "frame.packet_flags_direction",
    "tcp.stream",
    "tcp.dstport",
    "tcp.len",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags.str",
    "tcp.analysis.flags",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.ack_rtt",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.checksum.status",
    "ip.checksum.status",
    "ip.dsfield.ecn",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
];

/// The categories in which tshark puts a retransmission. At the sender only a retransmission can be
/// out of order: tshark says so of one that follows new data within a round trip.
const SENT_AGAIN: [&str; 4] = [
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
];

/// tshark's severity of warnings; errors have a higher one.
const WARNING: u32 = 0x0060_0000;

/// The simulator's own record of the packets that host 0 sends.
#[derive(Default)]
struct Truth {
    retransmissions: Vec<(u64, u64)>,
    wire_bytes: Vec<u16>,
    duplicate_acks: u64,
    smoothed_rtt: Time,
}

struct Watch<'a> {
    capture: Capture<&'a mut Vec<u8>>,
    truth: Truth,
}

impl Observer for Watch<'_> {
    fn host_sends(&mut self, now: Time, host: HostId, packet: &PacketView) {
        self.capture.host_sends(now, host, packet);
        if host == HostId(0) {
            self.truth.wire_bytes.push(packet.wire_bytes);
            if packet.flags.has(Flags::DATA | Flags::RETRANSMISSION) {
                self.truth.retransmissions.push((now.as_ns(), packet.seq));
            }
        }
    }
    fn host_receives(&mut self, now: Time, host: HostId, packet: &PacketView) {
        self.capture.host_receives(now, host, packet);
    }
    fn link_accepts(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        self.capture.link_accepts(now, link, departs, packet);
    }
    fn lost(&mut self, now: Time, link: PortId, loss: Loss, packet: &PacketView) {
        self.capture.lost(now, link, loss, packet);
    }
    fn link_changes(&mut self, now: Time, link: PortId, rate: Rate, propagation: Time) {
        self.capture.link_changes(now, link, rate, propagation);
    }
    fn tcp_sender_acted(&mut self, _: Time, _: u64, _: u8, sender: &Sender) {
        self.truth.duplicate_acks = sender.counters().duplicate_acks;
        self.truth.smoothed_rtt = sender.rtt().smoothed();
    }
}

struct Captured {
    outcome: Outcome,
    truth: Truth,
    rows: Vec<Row>,
}

impl Captured {
    /// Returns the frames that host 0 sent or received.
    fn direction(&self, direction: char) -> impl Iterator<Item = &Row> {
        let of = move |row: &&Row| row["frame.packet_flags_direction"].ends_with(direction);
        self.rows.iter().filter(of)
    }
    fn sent(&self) -> impl Iterator<Item = &Row> {
        self.direction('2')
    }
    fn received(&self) -> impl Iterator<Item = &Row> {
        self.direction('1')
    }
}

/// Returns the time of a frame's capture in nanoseconds of simulated time.
fn time(row: &Row) -> u64 {
    nanoseconds(&row["frame.time_epoch"]) - START_OF_RUN * 1_000_000_000
}

fn nanoseconds(seconds: &str) -> u64 {
    let (whole, fraction) = seconds.split_once('.').unwrap();
    whole.parse::<u64>().unwrap() * 1_000_000_000
        + format!("{fraction:0<9}").parse::<u64>().unwrap()
}

fn spec(points: &[&str]) -> CaptureSpec {
    let points = points.iter().map(|&point| point.to_owned()).collect();
    CaptureSpec { points, ..CaptureSpec::default() }
}

fn captured(scenario: &Scenario, points: &[&str]) -> Captured {
    let mut file = vec![];
    let capture = Capture::new(&spec(points), &scenario.graph, &mut file).unwrap();
    let watch = Watch { capture, truth: Truth::default() };
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let (outcome, watch) = simulate_observed(scenario, watch, go_on).unwrap();
    watch.capture.finish(outcome.counters.end).unwrap();
    Captured { outcome, truth: watch.truth, rows: tshark(&file, &FIELDS) }
}

/// Returns one flow from host 0 over a bottleneck of a tenth of the hosts' rate.
fn bottleneck(recovery: Recovery, queue: &'static str, bytes: u64) -> Scenario {
    let setting = Setting { recovery, queue, close: Close::Fin, ..Setting::default() };
    let mut graph = chain();
    graph.links[1].rate = Rate(100_000_000);
    let mut scenario = setting.scenario(
        graph,
        vec![Flow { id: 0, src: HostId(0), dst: HostId(1), bytes, start: Time::ZERO }],
    );
    let TransportSpec::Tcp(tcp) = &mut scenario.scheme.transport else {
        panic!("TCP is the default")
    };
    tcp.mss_option = true;
    scenario
}

/// Returns runs with light, heavy and extreme loss, made once for all tests.
fn lossy() -> &'static [Captured] {
    static RUNS: OnceLock<Vec<Captured>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let recoveries = [Recovery::Newreno, Recovery::SackPrr].into_iter();
        let cases = recoveries.flat_map(|r| ["20packets", "5packets", "1packets"].map(|q| (r, q)));
        let runs = cases.map(|(recovery, queue)| {
            let run = captured(&bottleneck(recovery, queue, 1_000_000), &["host:0"]);
            assert!(run.outcome.flows[0].retransmissions > 20, "{recovery:?} {queue}");
            run
        });
        runs.collect()
    })
}

#[test]
fn tshark_finds_every_retransmission_and_no_other() {
    for run in lossy() {
        let again = |row: &&Row| {
            row["tcp.len"] != "0" && SENT_AGAIN.iter().any(|&category| !row[category].is_empty())
        };
        let found: Vec<(u64, u64)> = run
            .sent()
            .filter(again)
            .map(|row| (time(row), row["tcp.seq_raw"].parse().unwrap()))
            .collect();
        assert_eq!(found, run.truth.retransmissions);
        assert_eq!(found.len() as u64, run.outcome.flows[0].retransmissions);
    }
}

#[test]
fn tshark_counts_the_duplicate_acks_that_the_sender_does() {
    for run in lossy() {
        let found =
            run.received().filter(|row| !row["tcp.analysis.duplicate_ack"].is_empty()).count();
        assert_eq!(found as u64, run.truth.duplicate_acks);
    }
}

#[test]
fn every_byte_of_the_flow_is_there_and_sent_as_often_as_counted() {
    for run in lossy() {
        let mut times_sent = vec![0u64; 1_000_001];
        for row in run.sent().filter(|row| row["tcp.len"] != "0") {
            let (first, length): (usize, usize) =
                (row["tcp.seq_raw"].parse().unwrap(), row["tcp.len"].parse().unwrap());
            times_sent[first..first + length].iter_mut().for_each(|count| *count += 1);
        }
        assert!(times_sent[1..].iter().all(|&count| count >= 1));
        let again: u64 = times_sent[1..].iter().map(|count| count - 1).sum();
        let segments = run.truth.retransmissions.iter();
        let expected: u64 = segments.map(|&(_, seq)| 1460.min(1_000_001 - seq)).sum();
        assert_eq!(again, expected);
    }
}

#[test]
fn no_frame_is_malformed_and_both_checksums_of_every_frame_are_good() {
    for run in lossy() {
        assert!(run.rows.iter().all(|row| row["_ws.malformed"].is_empty()));
        assert!(run.rows.iter().all(|row| row["ip.checksum.status"] == "1"));
        assert!(run.rows.iter().all(|row| row["tcp.checksum.status"] == "1"));
    }
}

/// RFC 3168: ECE and CWR on the SYN, ECE on the SYN-ACK. Only new data is ECN-capable (ECT(0) = 2).
/// A marking queue sets congestion experienced (3) on some of it, which is echoed and answered by
/// CWR.
#[test]
fn tshark_finds_ecn_as_in_rfc_3168() {
    let dctcp = CongestionSpec::Dctcp(Default::default());
    for congestion in [CongestionSpec::default(), dctcp] {
        let mut scenario = bottleneck(Recovery::Newreno, "1000packets", 1_000_000);
        scenario.scheme.queue = QueueSpec::Ecn(Ecn::default());
        let TransportSpec::Tcp(tcp) = &mut scenario.scheme.transport else {
            panic!("TCP is the default")
        };
        (tcp.ecn, tcp.congestion) = (true, congestion);
        let run = captured(&scenario, &["host:0", "host:1"]);
        let of = |interface: &'static str, direction: char| {
            run.rows.iter().filter(move |row| {
                row["frame.interface_name"] == interface
                    && row["frame.packet_flags_direction"].ends_with(direction)
            })
        };
        let flags = |row: &Row| ["C", "E", "S"].map(|flag| row["tcp.flags.str"].contains(flag));
        let code = |row: &Row| row["ip.dsfield.ecn"].clone();
        let syn = of("h0", '2').next().unwrap();
        assert_eq!((flags(syn), code(syn).as_str()), ([true, true, true], "0"));
        let syn_ack = of("h0", '1').next().unwrap();
        assert_eq!((flags(syn_ack), code(syn_ack).as_str()), ([false, true, true], "0"));
        assert!(of("h0", '2').all(|row| (code(row) == "2") == (row["tcp.len"] != "0")));
        let marked = of("h1", '1').filter(|row| code(row) == "3").count();
        let echoed = of("h0", '1').skip(1).filter(|row| flags(row)[1]).count();
        let answered = of("h0", '2').skip(1).filter(|row| flags(row)[0]).count();
        assert!(marked > 10 && echoed >= marked && answered > 1, "{marked} {echoed} {answered}");
        assert!(of("h1", '2').all(|row| code(row) == "0"));
        assert!(run.rows.iter().all(|row| row["ip.checksum.status"] == "1"));
        assert!(run.rows.iter().all(|row| row["tcp.checksum.status"] == "1"));
    }
}

#[test]
fn tshark_reports_no_warning_without_loss() {
    let run = captured(&bottleneck(Recovery::Newreno, "1000packets", 1_000_000), &["host:0"]);
    // Below warnings, tshark notes the beginning and the end of a connection.
    let warned = |row: &&Row| {
        let severities = row["_ws.expert.severity"].split(',').map(str::parse::<u32>);
        severities.flatten().any(|severity| severity >= WARNING)
    };
    let warnings = run.rows.iter().filter(warned).map(|row| row["_ws.expert.message"].as_str());
    assert_eq!(warnings.collect::<Vec<_>>(), [""; 0]);
    let remarks = run.rows.iter().map(|row| row["tcp.analysis.flags"].as_str());
    assert_eq!(remarks.filter(|flags| !flags.is_empty()).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_handshake_takes_as_long_as_the_simulator_says() {
    let run = captured(&bottleneck(Recovery::SackPrr, "100packets", 1_000), &["host:0"]);
    let flags: Vec<_> = run.rows[..3].iter().map(|row| row["tcp.flags.str"].as_str()).collect();
    assert_eq!(flags, ["··········S·", "·······A··S·", "·······A····"]);
    let connect = run.outcome.flows[0].connect.unwrap().as_ns();
    assert_eq!(nanoseconds(&run.rows[2]["tcp.analysis.initial_rtt"]), connect);
}

#[test]
fn tsharks_round_trips_give_the_senders_smoothed_ones() {
    let run = captured(&bottleneck(Recovery::Newreno, "1000packets", 1_000_000), &["host:0"]);
    let rtt = |row: &Row| nanoseconds(&row["tcp.analysis.ack_rtt"]) as f64;
    let acks = run.received().filter(|row| !row["tcp.analysis.ack_rtt"].is_empty());
    let smoothed = acks.map(rtt).reduce(|smoothed, rtt| smoothed + (rtt - smoothed) / 8.0).unwrap();
    let ours = run.truth.smoothed_rtt.as_ns() as f64;
    assert!((smoothed - ours).abs() < 10.0, "tshark's {smoothed} ns, the sender's {ours} ns");
}

#[test]
fn a_connection_ends_with_a_fin_in_each_direction_and_one_more_ack() {
    let run = captured(&bottleneck(Recovery::Newreno, "1000packets", 10_000), &["host:0"]);
    let flags: Vec<_> = run.rows.iter().map(|row| row["tcp.flags.str"].as_str()).collect();
    let fins: Vec<_> = flags.iter().filter(|flags| flags.ends_with('F')).collect();
    assert_eq!(fins, [&"·······AP··F", &"·······A···F"]);
    let last = &run.rows[run.rows.len() - 1];
    assert_eq!((last["tcp.seq_raw"].as_str(), last["tcp.ack_raw"].as_str()), ("10002", "2"));
    assert_eq!(last["tcp.flags.str"], "·······A····");
}

#[test]
fn captured_frames_have_the_length_of_the_simulated_packets() {
    for (recovery, timestamps, mss_option) in [
        (Recovery::Newreno, false, false),
        (Recovery::Newreno, true, true),
        (Recovery::SackPrr, false, true),
        (Recovery::SackPrr, true, true),
    ] {
        let mut scenario = bottleneck(recovery, "5packets", 200_000);
        let TransportSpec::Tcp(tcp) = &mut scenario.scheme.transport else {
            panic!("TCP is the default")
        };
        (tcp.timestamps, tcp.mss_option) = (timestamps, mss_option);
        let run = captured(&scenario, &["host:0"]);
        let framing = scenario.host.framing_overhead.0;
        let wire = run.sent().map(|row| row["frame.len"].parse::<u64>().unwrap() - 14 + framing);
        let expected: Vec<u64> = run.truth.wire_bytes.iter().map(|&bytes| bytes.into()).collect();
        assert_eq!(wire.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn an_ack_echoes_the_timestamp_of_the_segment_that_advanced_it() {
    let mut scenario = bottleneck(Recovery::Newreno, "1000packets", 2_000_000);
    let TransportSpec::Tcp(tcp) = &mut scenario.scheme.transport else {
        panic!("TCP is the default")
    };
    tcp.timestamps = true;
    let run = captured(&scenario, &["host:0"]);
    let stamp = |row: &Row, field| row[field].parse::<u64>().unwrap();
    // The end of a segment in sequence space, in which a SYN and a FIN take one number each.
    let end = |row: &Row| {
        let flags = &row["tcp.flags.str"];
        let marks = u64::from(flags.contains('S')) + u64::from(flags.contains('F'));
        stamp(row, "tcp.seq_raw") + stamp(row, "tcp.len") + marks
    };
    let takes_space = |row: &&Row| end(row) > stamp(row, "tcp.seq_raw");
    let sent_at: BTreeMap<u64, u64> = run
        .sent()
        .filter(takes_space)
        .map(|row| (end(row), stamp(row, "tcp.options.timestamp.tsval")))
        .collect();
    let acks: Vec<_> = run.received().filter(|row| row["tcp.len"] == "0").collect();
    assert!(acks.len() > 1_000);
    for ack in acks {
        let acknowledged = stamp(ack, "tcp.ack_raw");
        assert_eq!(stamp(ack, "tcp.options.timestamp.tsecr"), sent_at[&acknowledged]);
    }
}

#[test]
fn a_link_sends_frames_one_after_the_other_at_its_rate() {
    let run = captured(
        &bottleneck(Recovery::Newreno, "20packets", 300_000),
        &["link:s0>s1", "link:s1>s0"],
    );
    let times: Vec<_> = run.rows.iter().map(time).collect();
    assert!(times.is_sorted());
    let forward: Vec<_> =
        run.rows.iter().filter(|row| row["frame.interface_name"] == "s0>s1").collect();
    let data = |row: &&&Row| row["tcp.len"] != "0";
    let arrived = run.outcome.flows[0].data_packets - run.outcome.counters.dropped;
    assert_eq!(forward.iter().filter(data).count() as u64, arrived);
    for pair in forward.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(time);
        let bytes = pair[1]["frame.len"].parse::<u64>().unwrap() - 14 + 2;
        assert!(after - before >= bytes * 80 - 1, "{bytes} bytes take 80 ns each");
    }
}

/// Packets in the queue of a link that goes down never leave it, and were never on it.
#[test]
fn a_capture_shows_no_frame_of_a_link_after_it_fails() {
    let mut scenario = bottleneck(Recovery::Newreno, "20packets", 300_000);
    let at = Time::from_ms(10);
    let incidents = vec![Incident::LinkDown { link: "s0>s1".to_owned(), at, until: None }];
    scenario.faults = FaultsSpec { incidents, ..FaultsSpec::default() };
    let run = captured(&scenario, &["link:s0>s1"]);
    assert!(run.outcome.counters.lost_on_links > 10, "packets waited");
    let last = run.rows.iter().map(time).max().expect("the link carried some");
    assert!(last <= at.as_ns(), "{last} ns");
}

/// Packets in the queue leave at the new rate.
#[test]
fn after_a_change_of_its_rate_a_link_sends_frames_at_the_new_one() {
    let mut scenario = bottleneck(Recovery::Newreno, "20packets", 300_000);
    let at = Time::from_ms(10);
    let (link, rate) = ("s0>s1".to_owned(), Rate(50_000_000));
    let incidents = vec![Incident::Rate { link, one_way: false, rate, at, until: None }];
    scenario.faults = FaultsSpec { incidents, ..FaultsSpec::default() };
    let run = captured(&scenario, &["link:s0>s1"]);
    let after: Vec<_> = run.rows.iter().filter(|row| time(row) > at.as_ns()).collect();
    assert!(after.len() > 20, "{}", after.len());
    for pair in after.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(time);
        let bytes = pair[1]["frame.len"].parse::<u64>().unwrap() - 14 + 2;
        assert!(after - before >= bytes * 160 - 1, "{bytes} bytes take 160 ns each");
    }
}

#[test]
fn the_copies_of_a_flow_are_connections_to_neighbouring_ports_and_the_loser_is_reset() {
    let mut scenario = bottleneck(Recovery::Newreno, "100packets", 50_000);
    scenario.scheme.replicate = ReplicateSpec::Repflow(RepFlow::default());
    let run = captured(&scenario, &["host:0"]);
    let mut ports: Vec<_> = run.sent().map(|row| row["tcp.dstport"].as_str()).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports, ["40000", "40001"]);
    let reset = |row: &&Row| row["tcp.flags.str"].contains('R');
    let streams: Vec<_> =
        run.rows.iter().filter(reset).map(|row| row["tcp.stream"].as_str()).collect();
    let winner = run.outcome.flows[0].winner.unwrap();
    assert!(!streams.is_empty());
    assert!(streams.iter().all(|&stream| stream != winner.to_string()));
}

#[test]
fn a_capture_does_not_change_the_run() {
    let scenario = bottleneck(Recovery::SackPrr, "5packets", 1_000_000);
    let alone = simulate(&scenario, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(captured(&scenario, &["host:0", "link:s0>s1"]).outcome, alone);
}

#[test]
fn a_full_file_says_how_much_it_left_out() {
    let scenario = bottleneck(Recovery::Newreno, "100packets", 100_000);
    let whole = captured(&scenario, &["host:0"]).rows.len() as u64;
    let spec = CaptureSpec { max_packets: 10, ..spec(&["host:0"]) };
    let capture = Capture::new(&spec, &scenario.graph, vec![]).unwrap();
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let (outcome, capture) = simulate_observed(&scenario, capture, go_on).unwrap();
    let summary = capture.finish(outcome.counters.end).unwrap();
    assert_eq!(summary, CaptureSummary { packets: 10, left_out: whole - 10 });
}

#[test]
fn an_unknown_capture_point_is_reported_by_name() {
    let complaint = |point: &str| {
        Capture::new(&spec(&[point]), &chain(), vec![])
            .err()
            .map(|error: CaptureError| error.to_string())
    };
    let found = ["host:2", "x", "link:h0>s1"].map(complaint).map(Option::unwrap);
    assert_eq!(
        found,
        [
            "the topology has no host \"2\"; write \"host:0\" to \"host:1\", or a link such as \"link:h0>s0\"",
            "the topology has no host \"x\"; write \"host:0\" to \"host:1\", or a link such as \"link:h0>s0\"",
            "the topology has no link \"h0>s1\"; write \"from>to\" with node names or numbers, such as \"h0>s0\"",
        ]
    );
}

/// A file on a full disk.
#[derive(Debug)]
struct FullDisk {
    room: usize,
}

impl std::io::Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.room = self.room.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_fails_the_capture_but_not_the_run() {
    let scenario = bottleneck(Recovery::Newreno, "100packets", 100_000);
    let capture =
        Capture::new(&spec(&["host:0"]), &scenario.graph, FullDisk { room: 5_000 }).unwrap();
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let (outcome, capture) = simulate_observed(&scenario, capture, go_on).unwrap();
    assert!(outcome.flows[0].fct.is_some());
    assert!(matches!(capture.finish(outcome.counters.end), Err(CaptureError::Io(_))));
}
