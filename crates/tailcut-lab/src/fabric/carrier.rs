//! The simulator's fabric in real time: frames of hosts enter, cross the engine, and leave when
//! their last hop is due.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::os::unix::net::UnixStream;

use tailcut_engine::Time;
use tailcut_net::capture::Capture;
use tailcut_net::capture::pcapng::Direction;
use tailcut_net::measure::series::{SeriesSampler, SeriesSpec};
use tailcut_net::network::subflow_key;
use tailcut_net::packet::{ConnectionId, Flags, FlowKey, SERVICE_PORT};
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{HostId, PortId};

use super::engine::{DepartedPacket, FabricEngine, Fate};
use super::frame::{ParsedFrame, packet_for, parse, set_ce};
use super::ports;
use super::rate_check::HostRateCheck;
use crate::addressing::{IDLE_FLOW_PORT, LISTEN_PORT, MAX_COPIES, host_and_number};
use crate::hosts::drops::{self, DropCounters};
use crate::messages::{Captured, FabricReport, RunTimes};
use crate::sys::packet_ring::{PacketRing, ReceivedFrame};
use crate::sys::realtime::Rank;
use crate::sys::{cpu_time_ns, latency, monotonic_ns, process, real_ahead_ns};

/// The least number of frames that the ring holds.
pub const RING_FRAMES: usize = 8_192;

/// The first port that kernels choose for clients (`ip_local_port_range`).
const EPHEMERAL_PORTS: u16 = 32_768;

/// A capture that is being written.
pub type FrameCapture = Capture<BufWriter<File>>;

/// A table of planned flows, which finds the flow of a frame.
#[derive(Debug, Clone, Default)]
pub struct FlowTable {
    /// The port on which receivers listen; second copies go to the port after it.
    listen: u16,
    /// The key of the first connection and the size of the flow, by sender and source port.
    planned: BTreeMap<(HostId, u16), (FlowKey, u64)>,
    /// The number of hosts whose kernels also choose source ports, if any do.
    racing: Option<u32>,
    /// Whether there are connections of guests, which no plan lists.
    guests: bool,
}

impl FlowTable {
    /// Creates a table of planned flows with the simulator's source ports. `racing`: the number of
    /// hosts whose kernels also choose source ports themselves (RepSYN).
    pub fn new(flows: impl Iterator<Item = (FlowKey, u64)>, racing: Option<u32>) -> FlowTable {
        let planned = flows.map(|(key, bytes)| ((key.src(), key.sport()), (key, bytes)));
        FlowTable { listen: LISTEN_PORT, planned: planned.collect(), racing, guests: false }
    }

    /// Accepts connections of guests, from any port to any port, if `any`.
    pub fn with_guests(self, any: bool) -> FlowTable {
        FlowTable { guests: any, ..self }
    }

    /// Creates the table of the idle flows before or after a run.
    pub fn alone(flows: impl Iterator<Item = (FlowKey, u64)>) -> FlowTable {
        FlowTable { listen: IDLE_FLOW_PORT, ..FlowTable::new(flows, None) }
    }

    /// Returns the number of the copy that uses a port of the receiver.
    fn copy(&self, port: u16) -> Option<u16> {
        let copies = if self.listen == IDLE_FLOW_PORT { 1 } else { MAX_COPIES };
        port.checked_sub(self.listen).filter(|copy| *copy < copies)
    }

    /// Returns the key by which a guest's packets are hashed, in their own direction, and whether
    /// they go back to the client (a port below the ephemeral range sends them).
    fn guest(&self, from: (HostId, u16), to: (HostId, u16)) -> Option<(FlowKey, bool)> {
        self.guests.then(|| (FlowKey::new(from.0, to.0, from.1, to.1), from.1 < EPHEMERAL_PORTS))
    }

    /// Looks up the flow key (from sender to receiver) and size of a connection. As in the
    /// simulator, a copy's key is that of the first connection with the destination port advanced
    /// by the copy.
    fn find(&self, sender: (HostId, u16), receiver: HostId, copy: u16) -> Option<(FlowKey, u64)> {
        if let Some(&(key, bytes)) = self.planned.get(&sender) {
            let copied = FlowKey::new(key.src(), key.dst(), key.sport(), key.dport() + copy);
            return (key.dst() == receiver).then_some((copied, bytes));
        }
        // The flow of a racing connection is unknown; it is short, so that no switch treats it as
        // an elephant.
        let known = self.racing.is_some_and(|hosts| receiver.0 < hosts);
        known.then(|| (FlowKey::new(sender.0, receiver, sender.1, SERVICE_PORT + copy), 1))
    }
}

/// A frame whose packet is crossing the fabric.
struct HeldFrame {
    bytes: Vec<u8>,
    ecn: u8,
}

/// The fabric of a run, with the frames that cross it.
pub struct FabricCarrier<'a> {
    scenario: &'a Scenario,
    engine: FabricEngine<'a>,
    frames: &'a mut PacketRing,
    /// The interface of each host, and the host of each interface.
    interfaces: &'a [u32],
    hosts: BTreeMap<u32, u32>,
    flows: FlowTable,
    frames_held: Vec<HeldFrame>,
    vacant: Vec<u32>,
    left: Vec<DepartedPacket>,
    busy: Vec<Time>,
    pace: HostRateCheck,
    capture: Option<FrameCapture>,
    sampler: SeriesSampler,
    /// When links are sampled next, if at all.
    sample: Option<Time>,
    /// The counts of dropped frames and packets before the run.
    before: (u64, DropCounters),
    report: FabricReport,
}

impl<'a> FabricCarrier<'a> {
    /// Creates the fabric of a run behind these interfaces, one per host.
    ///
    /// # Errors
    /// The fabric cannot be built.
    pub fn new(
        scenario: &'a Scenario,
        frames: &'a mut PacketRing,
        interfaces: &'a [u32],
        flows: FlowTable,
        capture: Option<FrameCapture>,
    ) -> io::Result<FabricCarrier<'a>> {
        let hosts = interfaces.iter().enumerate().map(|(host, &index)| (index, host as u32));
        let engine = FabricEngine::new(scenario).map_err(io::Error::other)?;
        // The hosts sample the windows.
        let links = SeriesSpec { flows: vec![], ..scenario.series.clone() };
        let sampler = SeriesSampler::new(&links, &scenario.graph, engine.fabric().routes())
            .map_err(io::Error::other)?;
        let changes = scenario.faults.changes(&scenario.graph).map_err(io::Error::other)?;
        Ok(FabricCarrier {
            scenario,
            engine,
            sample: sampler.interval(),
            sampler,
            before: (frames.dropped()?, drops::read_drop_counters()),
            pace: HostRateCheck::new(&scenario.graph, &changes),
            capture,
            frames,
            hosts: hosts.collect(),
            flows,
            interfaces,
            frames_held: vec![],
            vacant: vec![],
            left: vec![],
            busy: vec![],
            report: FabricReport::default(),
        })
    }

    /// Carries frames until the supervisor writes, and returns the report.
    ///
    /// # Errors
    /// The kernel's error, or routes that overflow after a failure.
    pub fn run(mut self, times: RunTimes, mut supervisor: UnixStream) -> io::Result<FabricReport> {
        supervisor.set_nonblocking(true)?;
        latency::minimise_timer_slack();
        latency::raise_priority(process::id(), Rank::Fabric)?;
        let had_ns = cpu_time_ns();
        let mut control = [0; 1];
        loop {
            self.receive_frames(times)?;
            self.advance(monotonic_ns().saturating_sub(times.begin_ns))?;
            self.hand_over(times);
            let next = self.engine.next();
            let next = next.map(|(time, exactly)| (times.begin_ns + time.as_ns(), exactly));
            let told = latency::wait_until(self.frames, &supervisor, next)?;
            if told && supervisor.read(&mut control).is_ok() {
                break;
            }
        }
        let report = self.report(times)?;
        Ok(FabricReport { worked_ns: cpu_time_ns() - had_ns, ..report })
    }

    /// Advances the fabric to `ns` after the start, and records the busy times at the end of
    /// arrivals.
    fn advance(&mut self, ns: u64) -> io::Result<()> {
        let arrivals = self.scenario.horizon.arrivals;
        let until = Time(ns * 1_000);
        if self.busy.is_empty() && until >= arrivals {
            self.run_and_sample(arrivals)?;
            self.note_busy(arrivals);
        }
        self.run_and_sample(until)
    }

    /// Advances the fabric to `until`, sampling links on the way.
    fn run_and_sample(&mut self, until: Time) -> io::Result<()> {
        while let Some(at) = self.sample.filter(|at| *at <= until) {
            self.engine.run(at, &mut self.left).map_err(io::Error::other)?;
            self.engine.sample(at, &mut self.sampler);
            self.sample = self.sampler.interval().map(|interval| at + interval);
        }
        self.engine.run(until, &mut self.left).map_err(io::Error::other)
    }

    fn note_busy(&mut self, at: Time) {
        let fabric = self.engine.fabric();
        self.busy =
            (0..fabric.port_count()).map(|port| fabric.busy_time(at, PortId(port))).collect();
    }

    /// Reads all frames in the ring, each at the time at which the kernel received it.
    fn receive_frames(&mut self, times: RunTimes) -> io::Result<()> {
        let ahead = real_ahead_ns();
        loop {
            let (mut taken, mut lone) = (None, false);
            let (flows, hosts) = (&self.flows, &self.hosts);
            let any = self.frames.receive(|received| {
                let known = identify(&received, flows, hosts);
                lone = known.is_none() && is_idle_flow(received.bytes);
                taken = known.map(|known| (received.real_ns, known, received.bytes.to_vec()));
            });
            if !any {
                return Ok(());
            }
            // Leftovers of idle flows do not belong to the run.
            if lone {
                continue;
            }
            self.report.frames += 1;
            let Some((real_ns, (host, parsed, key, to_sender, flow_bytes), bytes)) = taken else {
                self.report.strange += 1;
                continue;
            };
            let service = if to_sender { key.sport() } else { key.dport() };
            self.report.copied += u64::from(service != SERVICE_PORT);
            let came_ns = real_ns.saturating_sub(ahead).min(monotonic_ns());
            let came_ns = came_ns.saturating_sub(times.begin_ns);
            let now_ns = self.engine.now().as_ns();
            self.report.entered.add(now_ns.saturating_sub(came_ns));
            self.advance(came_ns.max(now_ns))?;
            // Frames that have left the fabric by then precede it in a capture.
            self.hand_over(times);
            if let Some(capture) = &mut self.capture {
                let now = self.engine.now().max(Time(came_ns * 1_000));
                capture.frame(now, host, Direction::Outbound, &bytes);
            }
            let slot = self.store(HeldFrame { bytes, ecn: parsed.ecn });
            let framing = self.scenario.host.framing_overhead.0 as u16;
            let packet = packet_for(&parsed, key, to_sender, framing, ConnectionId(slot));
            let now = self.engine.now().max(Time(came_ns * 1_000));
            self.engine.send(now, host, packet, flow_bytes, &mut self.left);
            self.hand_over(times);
        }
    }

    fn store(&mut self, held: HeldFrame) -> u32 {
        match self.vacant.pop() {
            Some(slot) => {
                self.frames_held[slot as usize] = held;
                slot
            }
            None => {
                self.frames_held.push(held);
                self.frames_held.len() as u32 - 1
            }
        }
    }

    /// Hands over the frames that have reached their host, and discards the others.
    fn hand_over(&mut self, times: RunTimes) {
        for left in self.left.drain(..) {
            let ConnectionId(slot) = left.packet.connection;
            let held = &mut self.frames_held[slot as usize];
            if let Fate::Delivered(host) = left.fate {
                if left.packet.flags.has(Flags::CONGESTION_EXPERIENCED) && held.ecn != 3 {
                    set_ce(&mut held.bytes);
                }
                if let Some(capture) = &mut self.capture {
                    capture.frame(left.at, host, Direction::Inbound, &held.bytes);
                }
                let interface = self.interfaces[host.index()];
                if self.frames.send(interface, &held.bytes).is_err() {
                    self.report.refused += 1;
                }
                let handed_ns = monotonic_ns().saturating_sub(times.begin_ns);
                let due_ns = left.at.as_ns();
                self.report.released.add(handed_ns.saturating_sub(due_ns));
                self.pace.add(host.0, u64::from(left.packet.wire_bytes), due_ns, handed_ns);
            }
            held.bytes = vec![];
            self.vacant.push(slot);
        }
    }

    fn report(mut self, times: RunTimes) -> io::Result<FabricReport> {
        if self.busy.is_empty() {
            let now = Time(monotonic_ns().saturating_sub(times.begin_ns) * 1_000);
            self.note_busy(now);
        }
        self.report.ring_drops = self.frames.dropped()? - self.before.0;
        self.report.thrown_away = drops::since(&self.before.1, &drops::read_drop_counters());
        self.report.paces = self.pace.windows();
        if let Some(capture) = self.capture.take() {
            let made = capture.finish(self.engine.now()).map_err(io::Error::other)?;
            let (packets, left_out) = (made.packets, made.left_out);
            self.report.captured = Some(Captured { packets, left_out });
        }
        (self.report.packet_hops, self.report.dropped, self.report.lost) = self.engine.counts();
        let fabric = self.engine.fabric();
        self.report.tiers = tailcut_net::network::tier_records(
            &self.scenario.graph,
            self.scenario.horizon.arrivals,
            &self.busy,
            |port| fabric.counters(port),
        );
        let graph = &self.scenario.graph;
        self.report.switches = ports::switch_counters(graph, |port| fabric.counters(port)).into();
        self.report.series = self.sampler.into_series().into_iter().map(Into::into).collect();
        Ok(self.report)
    }
}

/// The sender of a frame, its header fields, the key of its flow, whether it goes back to the
/// sender, and the size of the flow.
type IdentifiedFrame = (HostId, ParsedFrame, FlowKey, bool, u64);

fn identify(
    received: &ReceivedFrame<'_>,
    flows: &FlowTable,
    hosts: &BTreeMap<u32, u32>,
) -> Option<IdentifiedFrame> {
    let parsed = parse(received.bytes)?;
    let host = HostId(*hosts.get(&received.interface)?);
    let end_at = |address| host_and_number(address).map(|(host, subflow)| (HostId(host), subflow));
    let (source, from_which) = end_at(parsed.source.0)?;
    let (destination, to_which) = end_at(parsed.destination.0)?;
    let (from, to) = ((source, parsed.source.1), (destination, parsed.destination.1));
    if source != host {
        return None;
    }
    let (to_sender, copy, sender, subflow, receiver) = match (flows.copy(from.1), flows.copy(to.1))
    {
        (Some(copy), None) => (true, copy, to, to_which, source),
        (None, Some(copy)) => (false, copy, from, from_which, destination),
        _ => return flows.guest(from, to).map(|(key, back)| (host, parsed, key, back, 1)),
    };
    let (first, bytes) = flows.find(sender, receiver, copy)?;
    let key = if subflow == 0 { first } else { subflow_key(first, subflow) };
    let key = if to_sender { key.reversed() } else { key };
    Some((host, parsed, key, to_sender, bytes))
}

/// Whether a frame belongs to an idle flow.
fn is_idle_flow(frame: &[u8]) -> bool {
    parse(frame)
        .is_some_and(|parsed| [parsed.source.1, parsed.destination.1].contains(&IDLE_FLOW_PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_flows_and_copies_have_the_simulators_keys_and_others_their_own() {
        let key = FlowKey::new(HostId(3), HostId(7), 1_030, SERVICE_PORT);
        let flows = |racing| FlowTable::new([(key, 900)].into_iter(), racing);
        let planned = flows(None);
        assert_eq!(planned.find((HostId(3), 1_030), HostId(7), 0), Some((key, 900)));
        let copy = FlowKey::new(HostId(3), HostId(7), 1_030, SERVICE_PORT + 1);
        assert_eq!(planned.find((HostId(3), 1_030), HostId(7), 1), Some((copy, 900)));
        assert_eq!(planned.find((HostId(3), 1_030), HostId(8), 0), None, "it goes elsewhere");
        assert_eq!(planned.find((HostId(3), 40_000), HostId(7), 1), None);
        let raced = FlowKey::new(HostId(3), HostId(7), 40_000, SERVICE_PORT + 1);
        assert_eq!(flows(Some(9)).find((HostId(3), 40_000), HostId(7), 1), Some((raced, 1)));
        assert_eq!(
            flows(Some(7)).find((HostId(3), 40_000), HostId(7), 1),
            None,
            "there is no such host"
        );
        assert_eq!(flows(Some(9)).find((HostId(3), 1_030), HostId(7), 1), Some((copy, 900)));
        let (client, server) = ((HostId(3), 40_000), (HostId(7), 5_432));
        assert_eq!(planned.guest(client, server), None);
        let there = FlowKey::new(HostId(3), HostId(7), 40_000, 5_432);
        let open = planned.with_guests(true);
        assert_eq!(open.guest(client, server), Some((there, false)));
        assert_eq!(open.guest(server, client), Some((there.reversed(), true)));
    }
}
