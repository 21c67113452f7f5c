//! The simulator's fabric with its pending events, for a caller who advances the time.

use std::collections::{BTreeSet, VecDeque};

use tailcut_engine::Time;
use tailcut_net::fabric::{Consequence, Fabric, FabricError, ForwardOutcome, OfferOutcome};
use tailcut_net::measure::series::SeriesSampler;
use tailcut_net::packet::Packet;
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{Graph, HostId, PortId, RouteError};

/// The end of a packet's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has reached this host.
    Delivered(HostId),
    /// A full queue dropped it.
    Dropped,
    /// A failure lost it.
    Lost,
}

/// A packet that has left the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepartedPacket {
    /// The time of departure.
    pub at: Time,
    /// The packet as it left: a queue may have marked it.
    pub packet: Packet,
    /// The way in which it left.
    pub fate: Fate,
}

// Kinds of events, in the order in which they are carried out at one instant.
const ARRIVES: u8 = 0;
const FAILS: u8 = 1;
const IDLE: u8 = 2;
const NO_PORT: PortId = PortId(u32::MAX);

/// A fabric and its pending events.
pub struct FabricEngine<'a> {
    graph: &'a Graph,
    fabric: Fabric,
    now: Time,
    due: BTreeSet<(Time, u8, PortId)>,
    /// When each port's next arrival and its idle transmitter are due.
    times: [Vec<Option<Time>>; 2],
    /// Packets to be offered: the egress port, the link by which it arrived, and the packet.
    offers: VecDeque<(PortId, Option<PortId>, Packet)>,
    packet_hops: u64,
    dropped: u64,
    lost: u64,
    /// Whether routes have changed since the last sample.
    rerouted: bool,
}

impl<'a> FabricEngine<'a> {
    /// Creates the idle fabric of a run.
    ///
    /// # Errors
    /// The fabric cannot be built.
    pub fn new(scenario: &'a Scenario) -> Result<FabricEngine<'a>, FabricError> {
        let graph = &scenario.graph;
        let fabric = Fabric::new(&scenario.fabric_spec())?;
        let ports = fabric.port_count() as usize;
        let mut engine = FabricEngine {
            graph,
            now: Time::ZERO,
            due: BTreeSet::new(),
            times: [vec![None; ports], vec![None; ports]],
            offers: VecDeque::new(),
            packet_hops: 0,
            dropped: 0,
            lost: 0,
            rerouted: false,
            fabric,
        };
        engine.schedule_incident();
        Ok(engine)
    }

    /// The time of the last event; no earlier event can follow.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns when the next event is due, and whether it is the arrival of a packet at a host.
    pub fn next(&self) -> Option<(Time, bool)> {
        let (time, kind, port) = *self.due.first()?;
        let at_host = || self.graph.switch(self.graph.far_end(port)).is_none();
        Some((time, kind == ARRIVES && at_host()))
    }

    /// The fabric's state.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the packets times links crossed, the packets dropped by full queues, and the packets
    /// lost to failures.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.packet_hops, self.dropped, self.lost)
    }

    /// Samples the links at `at`; all events due by then must have been carried out.
    pub fn sample(&mut self, at: Time, sampler: &mut SeriesSampler) {
        if std::mem::take(&mut self.rerouted) {
            sampler.reroute(self.graph, self.fabric.routes());
        }
        self.now = self.now.max(at);
        sampler.sample_links(at, &mut self.fabric);
    }

    /// Sends a packet from a host, of a flow of `flow_bytes`. All events due before `now` must have
    /// been carried out.
    pub fn send(
        &mut self,
        now: Time,
        host: HostId,
        mut packet: Packet,
        flow_bytes: u64,
        left: &mut Vec<DepartedPacket>,
    ) {
        self.now = self.now.max(now);
        if self.fabric.marks_packets() {
            self.fabric.mark(&mut packet, flow_bytes);
        }
        self.offers.push_back((self.fabric.host_port(host), None, packet));
        self.offer_all(left);
    }

    /// Carries out all events due by `until`, and appends the packets that leave.
    ///
    /// # Errors
    /// A table of routes overflows after a failure.
    pub fn run(&mut self, until: Time, left: &mut Vec<DepartedPacket>) -> Result<(), RouteError> {
        while let Some((time, kind, port)) = self.due.first().copied().filter(|due| due.0 <= until)
        {
            self.due.pop_first();
            self.now = time;
            match kind {
                ARRIVES => self.arrive(port, left),
                FAILS => self.incident(left)?,
                _ => self.idle(port, left),
            }
            self.offer_all(left);
        }
        Ok(())
    }

    fn schedule(&mut self, kind: u8, port: PortId, at: Option<Time>) {
        let known = &mut self.times[usize::from(kind == IDLE)][port.index()];
        if let Some(before) = std::mem::replace(known, at) {
            self.due.remove(&(before, kind, port));
        }
        if let Some(at) = at {
            self.due.insert((at, kind, port));
        }
    }

    fn schedule_incident(&mut self) {
        if let Some(at) = self.fabric.next_incident() {
            self.due.insert((at, FAILS, NO_PORT));
        }
    }

    fn arrive(&mut self, port: PortId, left: &mut Vec<DepartedPacket>) {
        self.times[0][port.index()] = None;
        self.packet_hops += 1;
        let (mut packet, next) = self.fabric.take_arrived(port);
        self.schedule(ARRIVES, port, next);
        match self.fabric.forward(self.now, port, &mut packet) {
            ForwardOutcome::Host(host) => {
                let fate = Fate::Delivered(host);
                left.push(DepartedPacket { at: self.now, packet, fate });
            }
            ForwardOutcome::Switch { egress, .. } => {
                self.offers.push_back((egress, Some(port), packet))
            }
            ForwardOutcome::Lost => self.lose(packet, left),
        }
    }

    fn idle(&mut self, port: PortId, left: &mut Vec<DepartedPacket>) {
        self.times[1][port.index()] = None;
        if let Some(dequeued) = self.fabric.on_transmitter_idle(self.now, port) {
            self.schedule(IDLE, port, dequeued.idle);
            self.handle_offer(port, dequeued.packet, dequeued.offered, left);
        }
    }

    fn incident(&mut self, left: &mut Vec<DepartedPacket>) -> Result<(), RouteError> {
        for consequence in self.fabric.apply_incidents(self.now, self.graph)? {
            match consequence {
                Consequence::Lost { packet, .. } => self.lose(packet, left),
                Consequence::Arrives { port, at } => self.schedule(ARRIVES, port, at),
                Consequence::Idle { port, at } => self.schedule(IDLE, port, at),
                Consequence::Changed { .. } => {}
                Consequence::Rerouted => self.rerouted = true,
            }
        }
        self.schedule_incident();
        Ok(())
    }

    /// Offers the waiting packets to their egress ports.
    fn offer_all(&mut self, left: &mut Vec<DepartedPacket>) {
        while let Some((port, ingress, packet)) = self.offers.pop_front() {
            let offered = self.fabric.offer(self.now, port, ingress, packet);
            self.handle_offer(port, packet, offered, left);
            while let Some(packet) = self.fabric.displaced() {
                self.drop(packet, left);
            }
        }
    }

    fn handle_offer(
        &mut self,
        port: PortId,
        packet: Packet,
        offered: OfferOutcome,
        left: &mut Vec<DepartedPacket>,
    ) {
        match offered {
            OfferOutcome::AcceptedFirst(at) => self.schedule(ARRIVES, port, Some(at)),
            OfferOutcome::AcceptedBehind => {}
            OfferOutcome::Queued(at) => {
                if at.is_some() {
                    self.schedule(IDLE, port, at);
                }
            }
            // The lab supports no trimming queues.
            OfferOutcome::Returned | OfferOutcome::Dropped => self.drop(packet, left),
            OfferOutcome::Lost => self.lose(packet, left),
        }
    }

    fn drop(&mut self, packet: Packet, left: &mut Vec<DepartedPacket>) {
        self.dropped += 1;
        left.push(DepartedPacket { at: self.now, packet, fate: Fate::Dropped });
    }

    fn lose(&mut self, packet: Packet, left: &mut Vec<DepartedPacket>) {
        self.lost += 1;
        left.push(DepartedPacket { at: self.now, packet, fate: Fate::Lost });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tailcut_net::host::HostSpec;
    use tailcut_net::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS, SeqField};
    use tailcut_net::scenario::{Horizon, Scheme, SeriesSpec};
    use tailcut_net::switch::SwitchSpec;
    use tailcut_net::topology::chain::Chain;
    use tailcut_net::traffic::demand::Jobs;

    /// Returns a chain of two hosts and two switches, with links of 2 us and queues of four
    /// packets: 1,250 bytes take 10 us on the links of hosts, and 100 us between the switches.
    fn scenario(faults: serde_json::Value) -> Scenario {
        let rates = json!({ "rate": ["1Gbps", "100Mbps", "1Gbps"] });
        let chain: Chain = serde_json::from_value(rates).expect("it is a chain");
        let queue = json!({ "queue": { "kind": "drop-tail", "limit": "4packets" } });
        Scenario {
            graph: chain.build().expect("it can be built"),
            host: HostSpec::default(),
            switch: SwitchSpec::default(),
            faults: serde_json::from_value(faults).expect("they are faults"),
            scheme: serde_json::from_value::<Scheme>(queue).expect("it is a scheme"),
            flows: vec![],
            jobs: Jobs::default(),
            horizon: Horizon::default(),
            seed: 1,
            series: SeriesSpec::default(),
            max_port_samples: 0,
        }
    }

    fn packet(number: u32) -> Packet {
        let key = FlowKey::new(HostId(0), HostId(1), 1_024, 5_000);
        let (options, flags) = (NO_OPTIONS, Flags(0));
        Packet {
            key,
            connection: ConnectionId(number),
            seq: SeqField::new(0),
            options,
            wire_bytes: 1_250,
            flags,
        }
    }

    /// Sends a burst at time zero, and advances in steps of `step` microseconds.
    fn burst(
        scenario: &Scenario,
        packets: u32,
        step: u64,
    ) -> (Vec<DepartedPacket>, (u64, u64, u64)) {
        let mut engine = FabricEngine::new(scenario).expect("it can be built");
        let mut left = vec![];
        for number in 0..packets {
            engine.send(Time::ZERO, HostId(0), packet(number), 1, &mut left);
        }
        for at in (0..=2_100).step_by(step as usize) {
            engine.run(Time::from_us(at), &mut left).expect("routes fit");
        }
        (left, engine.counts())
    }

    #[test]
    fn a_single_packet_arrives_after_transmission_and_propagation() {
        let (left, counts) = burst(&scenario(json!({})), 1, 2_100);
        let fate = Fate::Delivered(HostId(1));
        assert_eq!(
            left,
            [DepartedPacket { at: Time::from_us(10 + 100 + 10 + 6), packet: packet(0), fate }]
        );
        assert_eq!(counts, (3, 0, 0));
    }

    #[test]
    fn an_event_is_carried_out_at_its_time_and_not_before() {
        let scenario = scenario(json!({}));
        let mut engine = FabricEngine::new(&scenario).expect("it can be built");
        let mut left = vec![];
        engine.send(Time::from_us(5), HostId(0), packet(0), 1, &mut left);
        assert!(engine.next().is_some_and(|(_, at_host)| !at_host), "a switch comes first");
        engine.run(Time::from_us(130), &mut left).expect("routes fit");
        assert_eq!((left.len(), engine.next()), (0, Some((Time::from_us(131), true))));
        engine.run(Time::from_us(131), &mut left).expect("routes fit");
        assert_eq!((left.len(), engine.next()), (1, None));
    }

    #[test]
    fn a_full_queue_drops_and_the_rest_departs_at_the_links_rate() {
        let (left, (hops, dropped, lost)) = burst(&scenario(json!({})), 12, 2_100);
        let delivered: Vec<Time> =
            left.iter().filter(|l| l.fate == Fate::Delivered(HostId(1))).map(|l| l.at).collect();
        // One packet in service and four behind it; a sixth arrives when the first has left.
        assert_eq!((delivered.len() as u64, dropped, lost), (6, 6, 0));
        assert!(delivered.windows(2).all(|pair| pair[1] - pair[0] == Time::from_us(100)));
        assert_eq!(hops, 12 + 2 * 6);
    }

    #[test]
    fn the_step_in_which_time_advances_changes_nothing() {
        let scenario = scenario(json!({}));
        let at_once = burst(&scenario, 12, 2_100);
        for step in [1, 7, 90] {
            assert_eq!(burst(&scenario, 12, step), at_once, "{step}");
        }
    }

    /// Returns for each port its busy time by each millisecond, and when it sent the last bit of
    /// each packet. Host 0 sends `bursts[n]` packets of 1,250 bytes in millisecond n.
    fn busy_and_sent(scenario: &Scenario, bursts: &[u32]) -> Vec<(Vec<Time>, Vec<Time>)> {
        let mut engine = FabricEngine::new(scenario).expect("it can be built");
        let mut known = vec![(vec![], vec![]); engine.fabric().port_count() as usize];
        let mut left = vec![];
        for (ms, &packets) in bursts.iter().enumerate() {
            let now = Time::from_ms(ms as u64);
            while let Some((time, kind, port)) =
                engine.due.first().copied().filter(|(time, ..)| *time <= now)
            {
                if kind == ARRIVES {
                    let propagation = scenario.graph.links[port.link()].propagation;
                    known[port.index()].1.push(Time(time.0 - propagation.0));
                }
                engine.run(time, &mut left).expect("routes fit");
            }
            for (port, (busy, _)) in known.iter_mut().enumerate() {
                busy.push(engine.fabric().busy_time(now, PortId(port as u32)));
            }
            for number in 0..packets {
                engine.send(now, HostId(0), packet(number), 1, &mut left);
            }
        }
        known
    }

    /// Asserts that every busy port sends 0.98 to 1.00 of its rate, plus or minus a packet, over
    /// the 50 ms that begin with each millisecond. Returns the number of busy windows.
    fn judged(scenario: &Scenario, bursts: &[u32]) -> usize {
        const WINDOW_MS: usize = 50;
        let mut judged = 0;
        for (port, (busy, sent)) in busy_and_sent(scenario, bursts).iter().enumerate() {
            let rate = scenario.graph.links[PortId(port as u32).link()].rate;
            let whole = rate.0 as f64 / 8.0 * WINDOW_MS as f64 / 1e3;
            for from in 0..busy.len() - WINDOW_MS {
                let window = [from, from + WINDOW_MS];
                let [before, after] = window.map(|ms| busy[ms]);
                if after - before < Time::from_ms(WINDOW_MS as u64) {
                    continue;
                }
                judged += 1;
                let [before, after] = window
                    .map(|ms| sent.partition_point(|at| *at <= Time::from_ms(ms as u64)) as f64);
                let bytes = 1_250.0 * (after - before);
                assert!(bytes >= 0.98 * whole - 1_250.0, "port {port}: {bytes} of {whole}");
                assert!(bytes <= whole + 1_250.0, "port {port}: {bytes} of {whole}");
            }
        }
        judged
    }

    #[test]
    fn a_port_busy_for_50_ms_sends_at_its_rate() {
        let mut scenario = scenario(json!({}));
        let queue = json!({ "queue": { "kind": "drop-tail", "limit": "2000packets" } });
        scenario.scheme = serde_json::from_value(queue).expect("it is a scheme");
        // The slow link carries ten packets per millisecond; in the pauses it runs dry.
        let bursts: Vec<u32> =
            (0..600).map(|ms| if ms % 150 < 70 { 3 + ms * ms % 23 } else { 0 }).collect();
        assert!(judged(&scenario, &bursts) > 50);
        // A hundred packets per millisecond keep the fast link before it busy, too.
        let busy = judged(&scenario, &[101; 200]);
        assert!(busy > 2 * 140, "{busy}");
    }

    #[test]
    fn packets_on_a_failing_link_are_lost_and_reported() {
        let down = json!({ "kind": "link-down", "link": "s0>s1", "at": "150us" });
        let (left, (_, dropped, lost)) = burst(&scenario(json!({ "incidents": [down] })), 4, 2_100);
        let delivered =
            left.iter().filter(|left| left.fate == Fate::Delivered(HostId(1))).count() as u64;
        assert_eq!((delivered, dropped, lost), (1, 0, 3));
        assert_eq!(left.len(), 4);
    }
}
