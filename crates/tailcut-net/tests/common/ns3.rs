//! The networks, parameters and files of the ns-3 oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::Amount;
use tailcut_net::balance::BalanceSpec;
use tailcut_net::balance::ecmp::{Ecmp, Spread};
use tailcut_net::balance::hash::Salting;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::measure::records::Outcome;
use tailcut_net::measure::{Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::queue::{QueueSpec, drop_tail::DropTail};
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::{Graph, HostId, Link, NodeId};
use tailcut_net::traffic::Flow;
use tailcut_net::traffic::demand::Jobs;
use tailcut_net::transport::ConnectionState;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::{Close, CongestionState, Imitation, Recovery, Sender, TcpSpec};

/// The parameters that the oracle's cases vary.
pub struct Setting {
    pub nic_queue: &'static str,
    pub queue: &'static str,
    pub min_rto: Time,
    pub recovery: Recovery,
    pub limited_transmit: bool,
    pub close: Close,
    pub imitate: Imitation,
    pub drain: Time,
}

impl Default for Setting {
    fn default() -> Self {
        Setting {
            nic_queue: "100000packets",
            queue: "100packets",
            min_rto: Time::from_ms(10),
            recovery: Recovery::Newreno,
            limited_transmit: true,
            close: Close::None,
            imitate: Imitation::NONE,
            drain: Time::from_ms(6_000),
        }
    }
}

impl Setting {
    pub fn scenario(&self, graph: Graph, flows: Vec<Flow>) -> Scenario {
        let transport = TcpSpec {
            initial_window: Amount::Packets(8),
            receive_window: Bytes(1 << 20),
            recovery: self.recovery,
            limited_transmit: self.limited_transmit,
            min_rto: self.min_rto,
            initial_rto: self.min_rto,
            mss_option: false,
            close: self.close,
            imitate: self.imitate,
            ..TcpSpec::default()
        };
        Scenario {
            faults: FaultsSpec::default(),
            switch: SwitchSpec::default(),
            graph,
            host: HostSpec {
                nic_queue: self.nic_queue.parse().unwrap(),
                framing_overhead: Bytes(2),
                ..HostSpec::default()
            },
            scheme: Scheme {
                transport: TransportSpec::Tcp(transport),
                queue: QueueSpec::DropTail(DropTail {
                    limit: self.queue.parse().unwrap(),
                    ..DropTail::default()
                }),
                // As in the ns-3 runs from which the paths of its flows were taken.
                balance: BalanceSpec::Ecmp(Ecmp {
                    salt: Salting::Fixed,
                    spread: Spread::Modulo,
                    ..Ecmp::default()
                }),
                ..Scheme::default()
            },
            flows,
            horizon: Horizon { arrivals: Time::ZERO, drain: self.drain },
            seed: 1,
            jobs: Jobs::default(),
            series: SeriesSpec::default(),
            max_port_samples: 0,
        }
    }
}

fn link(a: u32, b: u32) -> Link {
    Link::new(NodeId(a), NodeId(b), Rate(1_000_000_000), Time::from_ns(2000), 0)
}

/// h0 - s0 - s1 - h1.
pub fn chain() -> Graph {
    Graph {
        hosts: 2,
        switches: 2,
        tiers: vec!["all".into()],
        links: vec![link(0, 2), link(2, 3), link(1, 3)],
        ..Graph::default()
    }
}

/// h0, h1 - s0 - s1 - h2, h3.
pub fn dumbbell() -> Graph {
    Graph {
        hosts: 4,
        switches: 2,
        tiers: vec!["all".into()],
        links: vec![link(0, 4), link(1, 4), link(4, 5), link(2, 5), link(3, 5)],
        ..Graph::default()
    }
}

/// h0 to h5 - s0 - s1 - h6 to h11, each host at a different distance, so that no two events share
/// an instant.
pub fn six_pairs() -> Graph {
    let at = |a: u32, b: u32, ns: u64| Link { propagation: Time::from_ns(ns), ..link(a, b) };
    let host = |h: u32| at(h, 12 + h / 6, 2000 + 377 * u64::from(h * h) + 131 * u64::from(h));
    Graph {
        hosts: 12,
        switches: 2,
        tiers: vec!["all".into()],
        links: (0..12).map(host).chain([at(12, 13, 2011)]).collect(),
        ..Graph::default()
    }
}

pub fn run(scenario: &Scenario) -> Outcome {
    tailcut_net::simulate(scenario, &mut |_| ControlFlow::Continue(()))
        .expect("the scenario is valid")
}

pub fn oracle_file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracles/ns3").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rows(text: &str) -> impl Iterator<Item = Vec<u64>> + '_ {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let number = |field: &str| if field == "-1" { u64::MAX } else { field.parse().unwrap() };
    lines.map(move |line| line.split_whitespace().map(number).collect())
}

pub fn oracle_flows(name: &str) -> Vec<Flow> {
    let text = oracle_file(&format!("flows/{name}.txt"));
    let flow = |row: Vec<u64>| Flow {
        id: row[0],
        src: HostId(row[1] as u32),
        dst: HostId(row[2] as u32),
        bytes: row[3],
        start: Time::from_ns(row[4]),
    };
    rows(&text).map(flow).collect()
}

pub struct OracleRow {
    pub id: u64,
    pub bytes: u64,
    pub start_ns: u64,
    pub fct_rx_ns: u64,
    pub fct_ack_ns: u64,
    pub data_packets: u64,
    pub retransmissions: u64,
    pub timeouts: u32,
    pub fast_recoveries: u32,
}

pub fn oracle_rows(case: &str) -> Vec<OracleRow> {
    let text = oracle_file(&format!("{case}.fct.txt"));
    let row = |row: Vec<u64>| OracleRow {
        id: row[0],
        bytes: row[3],
        start_ns: row[4],
        fct_rx_ns: row[5],
        fct_ack_ns: row[6],
        data_packets: row[7],
        retransmissions: row[8],
        timeouts: row[9] as u32,
        fast_recoveries: row[10] as u32,
    };
    rows(&text).map(row).collect()
}

/// Returns the packets that switches and interfaces dropped.
pub fn oracle_drops(case: &str) -> u64 {
    let text = oracle_file("counters.txt");
    let line = text.lines().find(|line| line.split(' ').next() == Some(case)).expect(case);
    let counter = |name: &str| -> u64 {
        let word = line.split(' ').find_map(|word| word.strip_prefix(name)).expect(name);
        word.parse().expect("a number")
    };
    counter("dropsSwitch=") + counter("dropsHostNic=")
}

/// Records the sender's events in the oracle's format: segments sent, window changes, states.
#[derive(Default)]
pub struct EventLog {
    text: String,
    cwnd: BTreeMap<u64, u64>,
    state: BTreeMap<u64, CongestionState>,
}

impl Observer for EventLog {
    fn host_sends(&mut self, now: Time, _: HostId, packet: &PacketView) {
        if packet.flags.has(Flags::TO_SENDER) {
            return;
        }
        let at = now.as_ns();
        let &PacketView { flow, seq, payload, .. } = packet;
        writeln!(self.text, "{at} {flow} tx seq {seq} len {payload}").unwrap();
        if packet.flags.has(Flags::RETRANSMISSION | Flags::DATA) {
            writeln!(self.text, "{at} {flow} retx").unwrap();
        }
    }

    fn tcp_sender_acted(&mut self, now: Time, flow: u64, _: u8, sender: &Sender) {
        if matches!(sender.phase(), ConnectionState::Closed | ConnectionState::SynSent) {
            return;
        }
        let at = now.as_ns();
        let before = self.state.insert(flow, sender.state());
        if before.is_some_and(|before| before != sender.state()) {
            let name = format!("{:?}", sender.state()).to_uppercase();
            writeln!(self.text, "{at} {flow} state CA_{name}").unwrap();
        }
        if self.cwnd.insert(flow, sender.cwnd()) != Some(sender.cwnd()) {
            writeln!(self.text, "{at} {flow} cwnd {}", sender.cwnd()).unwrap();
        }
    }
}

impl EventLog {
    pub fn of(scenario: &Scenario) -> EventLog {
        let go_on = &mut |_: &_| ControlFlow::Continue(());
        tailcut_net::simulate_observed(scenario, EventLog::default(), go_on)
            .expect("the scenario is valid")
            .1
    }

    /// Fails at the first line that differs, with the lines before it.
    pub fn assert_equals(&self, case: &str) {
        let expected = oracle_file(&format!("{case}.events.txt"));
        let (ours, theirs) = (settled(&self.text, case), settled(&expected, case));
        if let Some(at) = (0..ours.len().max(theirs.len())).find(|&i| ours.get(i) != theirs.get(i))
        {
            let around = at.saturating_sub(8);
            let show = |lines: &[&str]| {
                lines[around.min(lines.len())..(at + 4).min(lines.len())].join("\n")
            };
            panic!("{case}, line {}\nours:\n{}\nns-3:\n{}", at + 1, show(&ours), show(&theirs));
        }
    }

    /// Returns the number of equal lines before the first difference, and that line on both sides.
    pub fn agreement(&self, case: &str) -> (usize, String, String) {
        let expected = oracle_file(&format!("{case}.events.txt"));
        let (ours, theirs) = (settled(&self.text, case), settled(&expected, case));
        let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        let line = |lines: &[&str]| lines.get(same).copied().unwrap_or("(end)").to_owned();
        (same, line(&ours), line(&theirs))
    }
}

/// Sorts lines by time and flow, because events of two flows at one instant have no order. Of
/// several states or windows of a flow at one instant only the last is kept, which is all that an
/// observer here sees. The window that the last ACK leads to is left out.
fn settled<'a>(text: &'a str, case: &str) -> Vec<&'a str> {
    let rows = oracle_rows(case);
    let words = |line: &str| -> (u64, u64, String) {
        let mut words = line.split(' ');
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("time, flow");
        (number(), number(), words.next().expect("kind").to_owned())
    };
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| {
        let (time, flow, _) = words(line);
        (time, flow)
    });
    let mut passed = BTreeSet::new();
    lines.reverse();
    lines.retain(|line| {
        let event = words(line);
        let row = rows.iter().find(|row| row.id == event.1).expect("a flow of the case");
        match event.2.as_str() {
            "cwnd" if event.0 >= row.start_ns + row.fct_ack_ns => false,
            "state" | "cwnd" => passed.insert(event),
            _ => true,
        }
    });
    lines.reverse();
    lines
}
