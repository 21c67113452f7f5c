//! The fabric in real time: frames of hosts come in, cross the engine, and go out when their last hop says so.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tailcut_engine::Time;
use tailcut_experiment::tabulate::MeasuredSeries;
use tailcut_net::capture::Capture;
use tailcut_net::capture::pcapng::Direction;
use tailcut_net::measure::records::TierRecord;
use tailcut_net::measure::series::{Sampler, SeriesSpec};
use tailcut_net::network::subflow_key;
use tailcut_net::packet::{ConnectionId, Flags, FlowKey, SERVICE_PORT};
use tailcut_net::scenario::Scenario;
use tailcut_net::topology::{HostId, PortId};

use super::engine::{Engine, Fate, Left};
use super::frame::{Parsed, mark, packet, parse};
use super::lateness::Lateness;
use super::pace::{Pace, Paces};
use super::ports;
use crate::hosts::alone::ALONE;
use crate::hosts::driver::{COPIES, LISTEN, Times};
use crate::hosts::drops::{self, Counters};
use crate::hosts::setup::end_of;
use crate::sys::first::Rank;
use crate::sys::in_time;
use crate::sys::packets::{Frames, Received};
use crate::sys::process;
use crate::sys::{monotonic_ns, processor_ns, real_ahead_ns};

/// Frames that the ring holds at least.
pub const RING: usize = 8_192;

/// Ports that kernels choose for those who open connections begin here (`ip_local_port_range`).
const CHOSEN: u16 = 32_768;

/// What the fabric tells at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FabricReport {
    /// One record per tier and direction.
    pub tiers: Vec<TierRecord>,
    /// Packets times links crossed.
    pub packet_hops: u64,
    /// Packets that found a queue full.
    pub dropped: u64,
    /// Packets lost to failures.
    pub lost: u64,
    /// Frames that came in.
    pub frames: u64,
    /// Of these, frames of second connections.
    pub copied: u64,
    /// Frames that found no room on their way to the fabric, which no plan has.
    pub ring_drops: u64,
    /// Frames that could not be handed to a host, which no plan has.
    pub refused: u64,
    /// Frames that no flow is known for.
    pub strange: u64,
    /// From the time at which a frame was to be at its host until it was handed over.
    pub released: Lateness,
    /// By how much frames came in after what had already happened in the fabric.
    pub entered: Lateness,
    /// What hosts were handed while the links to them were busy.
    pub paces: Paces,
    /// What the kernel has thrown away on its way in or out.
    pub thrown_away: Counters,
    /// What is in the capture, if one was asked for.
    pub captured: Option<Captured>,
    /// Of each switch what its ports have counted, and, where it is a kernel, what it is set to, as that says it.
    pub switches: Value,
    /// The queues of all ports by the names of their links, as the kernel says it, where it has them.
    pub queues: BTreeMap<String, Value>,
    /// Versions of what the switches were set up with besides iproute2.
    pub versions: BTreeMap<String, String>,
    /// How long after its time each change to the network was carried out, where kernels carry it out.
    pub changed: Lateness,
    /// Columns of the tables that are not known, and why.
    pub unknown: BTreeMap<String, String>,
    /// Queues and utilisation of the links that the plan names.
    pub series: Vec<MeasuredSeries>,
    /// Nanoseconds for which the fabric's process had a processor; 0 where no process carries frames.
    pub worked_ns: u64,
}

/// What became of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Captured {
    /// Frames in the file.
    pub packets: u64,
    /// Frames after the file was full, and those that came faster than they were looked at.
    pub left_out: u64,
}

/// A capture under way.
pub type Tap = Capture<BufWriter<File>>;

/// Which connections there are.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    /// Where their receivers listen: the second copies' at the port after it.
    listen: u16,
    /// By who sends and the source port: key of the first connection, and size.
    planned: BTreeMap<(HostId, u16), (FlowKey, u64)>,
    /// Hosts, if there are also connections from ports that kernels choose.
    racing: Option<u32>,
    /// Whether there are also connections that no plan knows.
    guests: bool,
}

impl Flows {
    /// Those with these keys and sizes, from the ports that the simulator hashes; where `racing`, these hosts' kernels choose others,
    /// too.
    pub fn new(flows: impl Iterator<Item = (FlowKey, u64)>, racing: Option<u32>) -> Flows {
        let planned = flows.map(|(key, bytes)| ((key.src(), key.sport()), (key, bytes)));
        Flows { listen: LISTEN, planned: planned.collect(), racing, guests: false }
    }

    /// With connections that no plan knows, from any port to any, if `any`.
    pub fn with_guests(self, any: bool) -> Flows {
        Flows { guests: any, ..self }
    }

    /// Those that are alone, before a run or after it.
    pub fn alone(flows: impl Iterator<Item = (FlowKey, u64)>) -> Flows {
        Flows { listen: ALONE, ..Flows::new(flows, None) }
    }

    /// Which copy goes to a port.
    fn copy(&self, port: u16) -> Option<u16> {
        let copies = if self.listen == ALONE { 1 } else { COPIES };
        port.checked_sub(self.listen).filter(|copy| *copy < copies)
    }

    /// What the packets of a guest's connection go by, in their own direction, and whether that is back to who opened it. They are
    /// hashed by what they are, as those that race; whoever opened a connection has the port that its kernel chose.
    fn guest(&self, from: (HostId, u16), to: (HostId, u16)) -> Option<(FlowKey, bool)> {
        self.guests.then(|| (FlowKey::new(from.0, to.0, from.1, to.1), from.1 < CHOSEN))
    }

    /// What the packets of a connection go by, from sender to receiver, and the size of its flow. The copies' keys are the
    /// simulator's: that of the first connection, to a port of their own.
    fn find(&self, sender: (HostId, u16), receiver: HostId, copy: u16) -> Option<(FlowKey, u64)> {
        if let Some(&(key, bytes)) = self.planned.get(&sender) {
            let copied = FlowKey::new(key.src(), key.dst(), key.sport(), key.dport() + copy);
            return (key.dst() == receiver).then_some((copied, bytes));
        }
        // Of a flow that races it is not known which it is, only that it is short: no switch takes it for an elephant.
        let known = self.racing.is_some_and(|hosts| receiver.0 < hosts);
        known.then(|| (FlowKey::new(sender.0, receiver, sender.1, SERVICE_PORT + copy), 1))
    }
}

/// A frame on its way.
struct Held {
    bytes: Vec<u8>,
    ecn: u8,
}

/// The fabric, its frames and its hosts.
pub struct Carrier<'a> {
    scenario: &'a Scenario,
    engine: Engine<'a>,
    frames: &'a mut Frames,
    /// The interface of each host, and the host of each interface.
    interfaces: &'a [u32],
    hosts: BTreeMap<u32, u32>,
    flows: Flows,
    held: Vec<Held>,
    vacant: Vec<u32>,
    left: Vec<Left>,
    busy: Vec<Time>,
    pace: Pace,
    capture: Option<Tap>,
    sampler: Sampler,
    /// When links are sampled next, if at all.
    sample: Option<Time>,
    /// What the kernel had thrown away before.
    before: (u64, Counters),
    report: FabricReport,
}

impl<'a> Carrier<'a> {
    /// The fabric of a run behind these interfaces, one for each host.
    ///
    /// # Errors
    /// When the fabric cannot be built.
    pub fn new(
        scenario: &'a Scenario,
        frames: &'a mut Frames,
        interfaces: &'a [u32],
        flows: Flows,
        capture: Option<Tap>,
    ) -> io::Result<Carrier<'a>> {
        let hosts = interfaces.iter().enumerate().map(|(host, &index)| (index, host as u32));
        let engine = Engine::new(scenario).map_err(io::Error::other)?;
        // Windows are the hosts' to tell.
        let links = SeriesSpec { flows: vec![], ..scenario.series.clone() };
        let sampler = Sampler::new(&links, &scenario.graph, engine.fabric().routes())
            .map_err(io::Error::other)?;
        let changes = scenario.faults.changes(&scenario.graph).map_err(io::Error::other)?;
        Ok(Carrier {
            scenario,
            engine,
            sample: sampler.interval(),
            sampler,
            before: (frames.dropped()?, drops::counted()),
            pace: Pace::new(&scenario.graph, &changes),
            capture,
            frames,
            hosts: hosts.collect(),
            flows,
            interfaces,
            held: vec![],
            vacant: vec![],
            left: vec![],
            busy: vec![],
            report: FabricReport::default(),
        })
    }

    /// Works until the supervisor says that it is enough, and tells what there is to tell.
    ///
    /// # Errors
    /// The kernel's, and routes that overflow after a failure.
    pub fn run(mut self, times: Times, mut supervisor: UnixStream) -> io::Result<FabricReport> {
        supervisor.set_nonblocking(true)?;
        in_time::exact_timers();
        in_time::run_at_once(process::id(), Rank::Fabric)?;
        let had_ns = processor_ns();
        let mut control = [0; 1];
        loop {
            self.take_in(times)?;
            self.advance(monotonic_ns().saturating_sub(times.begin_ns))?;
            self.release(times);
            let next = self.engine.next();
            let next = next.map(|(time, exactly)| (times.begin_ns + time.as_ns(), exactly));
            let told = in_time::wait_until(self.frames, &supervisor, next)?;
            if told && supervisor.read(&mut control).is_ok() {
                break;
            }
        }
        let report = self.report(times)?;
        Ok(FabricReport { worked_ns: processor_ns() - had_ns, ..report })
    }

    /// Lets everything happen that is due `ns` after the beginning.
    fn advance(&mut self, ns: u64) -> io::Result<()> {
        let arrivals = self.scenario.horizon.arrivals;
        let until = Time(ns * 1_000);
        if self.busy.is_empty() && until >= arrivals {
            self.run_and_sample(arrivals)?;
            self.note_busy(arrivals);
        }
        self.run_and_sample(until)
    }

    /// Lets everything happen that is due by then, and samples links at their times.
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
        self.busy = (0..fabric.ports()).map(|port| fabric.busy(at, PortId(port))).collect();
    }

    /// Takes in every frame that is there, each at the time at which the kernel had it.
    fn take_in(&mut self, times: Times) -> io::Result<()> {
        let ahead = real_ahead_ns();
        loop {
            let (mut taken, mut lone) = (None, false);
            let (flows, hosts) = (&self.flows, &self.hosts);
            let any = self.frames.receive(|received| {
                let known = identify(&received, flows, hosts);
                lone = known.is_none() && is_alone(received.bytes);
                taken = known.map(|known| (received.real_ns, known, received.bytes.to_vec()));
            });
            if !any {
                return Ok(());
            }
            // What lone flows have left behind is not the run's.
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
            // What has left the fabric by then comes before it in a capture.
            self.release(times);
            if let Some(capture) = &mut self.capture {
                let now = self.engine.now().max(Time(came_ns * 1_000));
                capture.frame(now, host, Direction::Outbound, &bytes);
            }
            let slot = self.hold(Held { bytes, ecn: parsed.ecn });
            let framing = self.scenario.host.framing_overhead.0 as u16;
            let packet = packet(&parsed, key, to_sender, framing, ConnectionId(slot));
            let now = self.engine.now().max(Time(came_ns * 1_000));
            self.engine.send(now, host, packet, flow_bytes, &mut self.left);
            self.release(times);
        }
    }

    fn hold(&mut self, held: Held) -> u32 {
        match self.vacant.pop() {
            Some(slot) => {
                self.held[slot as usize] = held;
                slot
            }
            None => {
                self.held.push(held);
                self.held.len() as u32 - 1
            }
        }
    }

    /// Hands over what has reached its host, and forgets what has not.
    fn release(&mut self, times: Times) {
        for left in self.left.drain(..) {
            let ConnectionId(slot) = left.packet.connection;
            let held = &mut self.held[slot as usize];
            if let Fate::Delivered(host) = left.fate {
                if left.packet.flags.has(Flags::CONGESTION_EXPERIENCED) && held.ecn != 3 {
                    mark(&mut held.bytes);
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

    fn report(mut self, times: Times) -> io::Result<FabricReport> {
        if self.busy.is_empty() {
            let now = Time(monotonic_ns().saturating_sub(times.begin_ns) * 1_000);
            self.note_busy(now);
        }
        self.report.ring_drops = self.frames.dropped()? - self.before.0;
        self.report.thrown_away = drops::since(&self.before.1, &drops::counted());
        self.report.paces = self.pace.judge();
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
        self.report.switches = ports::told(graph, |port| fabric.counters(port)).into();
        self.report.series = self.sampler.into_series().into_iter().map(Into::into).collect();
        Ok(self.report)
    }
}

/// Who sends a frame, what it says, and the flow that it belongs to.
type Known = (HostId, Parsed, FlowKey, bool, u64);

fn identify(received: &Received<'_>, flows: &Flows, hosts: &BTreeMap<u32, u32>) -> Option<Known> {
    let parsed = parse(received.bytes)?;
    let host = HostId(*hosts.get(&received.interface)?);
    let end_at = |address| end_of(address).map(|(host, subflow)| (HostId(host), subflow));
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

/// Whether a frame is of a flow alone.
fn is_alone(frame: &[u8]) -> bool {
    parse(frame).is_some_and(|parsed| [parsed.source.1, parsed.destination.1].contains(&ALONE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_the_simulators_keys_and_races_those_of_their_own_ports() {
        let key = FlowKey::new(HostId(3), HostId(7), 1_030, SERVICE_PORT);
        let flows = |racing| Flows::new([(key, 900)].into_iter(), racing);
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
