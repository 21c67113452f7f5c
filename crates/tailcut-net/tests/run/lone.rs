//! A lone flow takes exactly the time of the closed form: the recurrence behind `ideal_fct`, and
//! formulas derived here independently for a source that never stalls and for one paced by a
//! window.

use proptest::prelude::*;
use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::scenario::Scenario;
use tailcut_net::transport::tcp::CongestionSpec;
use tailcut_net::transport::tcp::congestion::{
    cubic::CubicSpec, dctcp::DctcpSpec, hystart::HystartSpec,
};

use crate::run::support::{flow, limit_queues, row, run, scenario, tcp};

fn rates() -> impl Strategy<Value = Rate> {
    // At 3 and 7 Gbps a byte does not take a whole number of picoseconds.
    prop::sample::select(vec![
        Rate(50_000_000),
        Rate(1_000_000_000),
        Rate(3_000_000_000),
        Rate(7_000_000_000),
        Rate(10_000_000_000),
        Rate(100_000_000_000),
    ])
}

fn links() -> impl Strategy<Value = Vec<(Rate, Time)>> {
    prop::collection::vec((rates(), (0..50_000u64).prop_map(Time::from_ns)), 2..7)
}

fn equal_links() -> impl Strategy<Value = Vec<(Rate, Time)>> {
    let link = (rates(), (0..50_000u64).prop_map(Time::from_ns));
    (link, 2..7usize).prop_map(|(link, hops)| vec![link; hops])
}

/// Returns sizes from 1 byte to 10 MB, every order of magnitude equally likely.
fn sizes() -> impl Strategy<Value = u64> {
    (0..7u32).prop_flat_map(|exponent| 10u64.pow(exponent)..=10u64.pow(exponent + 1))
}

/// Returns one flow over `links`, whose timer never expires.
fn lone(links: &[(Rate, Time)], bytes: u64, mss: u64, initial_window: u32) -> Scenario {
    let mut scenario = scenario(row(links), vec![flow(0, 0, 1, bytes, Time::ZERO)]);
    scenario.horizon.drain = Time::from_ms(10_000_000);
    let tcp = tcp(&mut scenario);
    tcp.mss = Bytes(mss);
    tcp.initial_window = Amount::Packets(initial_window);
    tcp.receive_window = Bytes(1 << 40);
    (tcp.min_rto, tcp.initial_rto) = (Time::from_ms(20_000), Time::from_ms(20_000));
    scenario
}

fn outcome(scenario: &Scenario) -> FlowRecord {
    let outcome = run(scenario);
    assert_eq!((outcome.counters.dropped, outcome.flows[0].timeouts), (0, 0));
    outcome.flows[0].clone()
}

/// Transmission times in picoseconds on links that are all equal.
struct Line {
    hops: u64,
    propagation: u64,
    syn: u64,
    ack: u64,
    full: u64,
    last: u64,
    /// The number of full segments before the last one.
    before: u64,
}

impl Line {
    fn new(links: &[(Rate, Time)], bytes: u64, mss: u64) -> Line {
        let (rate, propagation) = links[0];
        let time = |wire: u64| rate.transmission_time(wire).0;
        // Ethernet frames (38), headers (40), SYN options (12, with SACK); no timestamps.
        let before = (bytes - 1) / mss;
        let last = bytes - before * mss;
        Line {
            hops: links.len() as u64,
            propagation: propagation.0,
            syn: time(90),
            ack: time(78),
            full: time(78 + mss),
            last: time(78 + last),
            before,
        }
    }

    /// Returns the start of the first data segment: after the handshake and behind its last ACK.
    fn start(&self) -> u64 {
        2 * self.hops * (self.syn + self.propagation) + self.ack
    }

    /// Returns the time from the start of a full segment to the arrival of its ACK.
    fn round_trip(&self) -> u64 {
        self.hops * (self.full + self.ack + 2 * self.propagation)
    }

    /// Returns the segments that leave before the first ACK, if all of `bytes` do not: the window
    /// of the SYN-ACK is not scaled (RFC 7323 2.2).
    fn first_window(&self, window: u64, mss: u64, bytes: u64) -> u64 {
        match bytes <= 65_535.min(window * mss) {
            true => self.before + 1,
            false => window.min(65_535 / mss),
        }
    }

    /// Returns the arrival of the last segment, which starts at `start`, `gap` after the full one
    /// before it.
    fn arrival(&self, start: u64, gap: u64) -> u64 {
        let alone = start + self.hops * self.last;
        let behind = (start + self.hops * self.full + self.last).saturating_sub(gap);
        alone.max(behind) + self.hops * self.propagation
    }
}

proptest! {
    #![proptest_config(crate::run::support::random_cases(256))]

    #[test]
    fn the_recurrence_holds_with_unbounded_queues(
        links in links(), bytes in sizes(), mss in 500..9_000u64, initial_window in 1..60u32,
    ) {
        let flow = outcome(&lone(&links, bytes, mss, initial_window));
        prop_assert_eq!(flow.fct, Some(flow.ideal_fct));
        prop_assert_eq!(flow.fct_ack, Some(flow.ideal_fct_ack));
    }

    #[test]
    fn the_recurrence_holds_with_windows_that_are_no_whole_segments(
        links in links(), bytes in sizes(), mss in 500..9_000u64, initial in 0..90_000u64, receive in 0..300_000u64,
    ) {
        let mut scenario = lone(&links, bytes, mss, 1);
        let tcp = tcp(&mut scenario);
        tcp.initial_window = Amount::Bytes(mss + initial);
        tcp.receive_window = Bytes(mss + receive);
        let flow = outcome(&scenario);
        prop_assert_eq!(flow.fct, Some(flow.ideal_fct));
        prop_assert_eq!(flow.fct_ack, Some(flow.ideal_fct_ack));
    }

    #[test]
    fn delayed_acknowledgements_make_no_flow_faster(
        links in links(), bytes in sizes(), initial_window in 1..60u32, ack_every in 2..5u32,
    ) {
        let mut scenario = lone(&links, bytes, 1_460, initial_window);
        let tcp = tcp(&mut scenario);
        (tcp.ack_every, tcp.delayed_ack_timeout) = (ack_every, Time::from_us(100));
        let flow = outcome(&scenario);
        prop_assert!(flow.fct >= Some(flow.ideal_fct));
        prop_assert!(flow.fct_ack >= Some(flow.ideal_fct_ack));
    }

    #[test]
    fn the_recurrence_holds_with_a_receive_window_of_64_kb_on_ports_of_100_packets(
        links in links(), bytes in sizes(), mss in 700..9_000u64, initial_window in 1..60u32,
    ) {
        let mut scenario = lone(&links, bytes, mss, initial_window);
        tcp(&mut scenario).receive_window = Bytes(64_000);
        let hundred = Limit::AtMost(Amount::Packets(100));
        scenario.host.nic_queue = hundred;
        limit_queues(&mut scenario, hundred);
        let flow = outcome(&scenario);
        prop_assert_eq!(flow.fct, Some(flow.ideal_fct));
        prop_assert_eq!(flow.fct_ack, Some(flow.ideal_fct_ack));
    }

    /// Nothing of a lone flow is lost or marked, so every algorithm stays in slow start. The window
    /// of the SYN-ACK is smaller; an algorithm that does not fill its window because of that does
    /// not grow it, and takes longer.
    #[test]
    fn the_recurrence_holds_whatever_the_congestion_control(
        links in links(), bytes in sizes(), initial_window in 1..60u32,
        congestion in prop::sample::select(vec![
            CongestionSpec::Dctcp(DctcpSpec::default()),
            CongestionSpec::Cubic(CubicSpec { hystart: HystartSpec::None, ..CubicSpec::default() }),
        ]),
    ) {
        let mut scenario = lone(&links, bytes, 1_460, initial_window);
        tcp(&mut scenario).congestion = congestion;
        let flow = outcome(&scenario);
        if initial_window * 1_460 <= 65_535 {
            prop_assert_eq!(flow.fct, Some(flow.ideal_fct));
            prop_assert_eq!(flow.fct_ack, Some(flow.ideal_fct_ack));
        } else {
            prop_assert!(flow.fct >= Some(flow.ideal_fct) && flow.fct_ack >= Some(flow.ideal_fct_ack));
        }
    }

    /// The initial window covers the round trip, so the source sends without a pause, except one
    /// until the first ACK if the window of the SYN-ACK does not cover it.
    #[test]
    fn a_source_that_never_stalls_finishes_on_a_straight_line(
        links in equal_links(), bytes in sizes(), mss in 500..9_000u64, more in 0..20u32,
    ) {
        let line = Line::new(&links, bytes, mss);
        let window = line.round_trip().div_ceil(line.full) as u32 + more;
        let flow = outcome(&lone(&links, bytes, mss, window));
        let first = line.first_window(window.into(), mss, bytes);
        let pause = line.round_trip().saturating_sub(first * line.full);
        let pause = if line.before < first { 0 } else { pause };
        let last = line.start() + line.before * line.full + pause;
        let gap = match line.before {
            0 => u64::MAX,
            before if before == first => line.full + pause,
            _ => line.full,
        };
        prop_assert_eq!(flow.fct, Some(Time(line.arrival(last, gap))));
        prop_assert_eq!(flow.ideal_fct, Time(line.arrival(last, gap)));
    }

    /// The receive window is below the bandwidth-delay product and full from the first ACK on: one
    /// window per round trip.
    #[test]
    fn a_full_receive_window_sends_one_window_per_round_trip(
        links in equal_links(), bytes in sizes(), mss in 500..9_000u64, share in 0.0..1.0f64,
    ) {
        let line = Line::new(&links, bytes, mss);
        let widest = line.round_trip() / line.full;
        let window = 1 + (share * (widest - 1) as f64) as u64;
        let mut scenario = lone(&links, bytes, mss, window as u32);
        tcp(&mut scenario).receive_window = Bytes(window * mss);
        let flow = outcome(&scenario);
        let first = line.first_window(window, mss, bytes);
        // The round, its number of segments before the last one, and the number of the previous
        // round.
        let (round, place, previous) = match line.before.checked_sub(first) {
            None => (0, line.before, 0),
            Some(later) if later < window => (1, later, first),
            Some(later) => (1 + later / window, later % window, window),
        };
        let last = line.start() + round * line.round_trip() + place * line.full;
        let gap = match (round, place) {
            (0, 0) => u64::MAX,
            (_, 0) => line.round_trip() - (previous - 1) * line.full,
            _ => line.full,
        };
        prop_assert_eq!(flow.fct, Some(Time(line.arrival(last, gap))));
        prop_assert_eq!(flow.ideal_fct, Time(line.arrival(last, gap)));
    }
}

/// Six links of 1 Gbps and 2,667 ns: RepFlow's fat-tree.
#[test]
fn the_formula_agrees_with_the_simulator_on_the_papers_fabric() {
    let links = vec![(Rate(1_000_000_000), Time::from_ns(2_667)); 6];
    for bytes in [1, 1_460, 10_000, 100_000] {
        let flow = outcome(&lone(&links, bytes, 1_460, 12));
        let line = Line::new(&links, bytes, 1_460);
        let last = line.start() + line.before * line.full;
        let gap = if line.before == 0 { u64::MAX } else { line.full };
        assert_eq!(flow.fct, Some(Time(line.arrival(last, gap))), "{bytes} bytes");
    }
}
