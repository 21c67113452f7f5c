//! Idle flows: single flows before and after a run, which show whether the idle fabric takes its
//! expected time on this machine.
//!
//! They go from the first host to the last over the lab's own sockets, whatever carries the flows
//! of the run.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use tailcut_engine::Time;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::Scenario;
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::Recovery;
use tailcut_net::{PredictedFlow, SimError, predict_flows};

use tailcut_net::topology::HostId;

use crate::addressing::{IDLE_FLOW_PORT, address};
use crate::idle_check::IdleCheck;
use crate::messages::IdleTask;
use crate::sys::epoll::{Epoll, READABLE, TIMER, WRITABLE};
use crate::sys::{monotonic_ns, socket};

/// The number of idle flows, before and after.
const FLOWS: u64 = 5;
/// The part of the ideal time by which the median may be late: SYNs may be a little longer than
/// planned.
const SHARE: u64 = 100;
/// The fixed part of the permitted lateness, in nanoseconds.
const LATE_NS: u64 = 300_000;
/// The time after the last flow's ideal end at which the check gives up, in nanoseconds.
const GIVE_UP_NS: u64 = 5_000_000_000;
/// The pause after twice a flow's ideal time before the next flow.
const GAP: Time = Time::from_ms(10);

/// The idle flows of a run, with their ideal times.
pub struct IdlePlan {
    /// The idle flows, and the fabric without failures.
    pub scenario: Scenario,
    /// The predicted record and key of each flow.
    pub flows: Vec<PredictedFlow>,
}

impl IdlePlan {
    /// Creates the idle flows of a run: one segment each, over plain TCP.
    ///
    /// # Errors
    /// The flows cannot be predicted.
    pub fn new(scenario: &Scenario, segment: u64) -> Result<IdlePlan, SimError> {
        let mut alone = scenario.clone();
        alone.faults = Default::default();
        alone.jobs = Default::default();
        alone.series = Default::default();
        alone.scheme.replicate = ReplicateSpec::None;
        let mut plain = scenario.scheme.transport.segment_spec();
        if plain.timestamps {
            // A kernel's SYN packs SACK-permitted into the padding of the timestamp option.
            plain.recovery = Recovery::Newreno;
        }
        let segment = segment.min(plain.mss.0);
        alone.scheme.transport = TransportSpec::Tcp(plain);
        let (src, dst) = (HostId(0), HostId(scenario.graph.hosts - 1));
        let flow = |id, start| Flow { src, dst, bytes: segment, start, id };
        alone.flows = vec![flow(0, Time::ZERO)];
        let each = predict_flows(&alone)?[0].record.ideal_fct;
        let apart = |id| Time(id * (2 * each.0 + GAP.0));
        alone.flows = (0..FLOWS).map(|id| flow(id, apart(id))).collect();
        let predicted = predict_flows(&alone)?;
        Ok(IdlePlan { scenario: alone, flows: predicted })
    }

    /// Returns the tasks of the two hosts, the sender first, for a start at `begin_ns` (monotonic).
    pub fn tasks(&self, begin_ns: u64) -> [(u32, IdleTask); 2] {
        let flows = self.flows.iter().map(|one| (&one.record.flow, one.key.sport()));
        let starts: Vec<(u64, u16)> =
            flows.map(|(flow, port)| (begin_ns + flow.start.as_ns(), port)).collect();
        let last = &self.flows[self.flows.len() - 1].record;
        let (from, to) = (last.flow.src, last.flow.dst);
        let give_up_ns = begin_ns + (last.flow.start + last.ideal_fct).as_ns() + GIVE_UP_NS;
        [(from, false), (to, true)].map(|(host, receives)| {
            let (starts, bytes) = (starts.clone(), last.flow.bytes);
            (host.0, IdleTask { receives, ends: (from.0, to.0), starts, bytes, give_up_ns })
        })
    }

    /// Returns the lateness of the idle flows, from the times (monotonic) at which each was opened
    /// and completely read. If idle ports add no transmission time, the ideal is 0.
    pub fn check(
        &self,
        opened: &[Option<u64>],
        read: &[Option<u64>],
        delays_when_idle: bool,
    ) -> IdleCheck {
        let ideal = |one: &PredictedFlow| match delays_when_idle {
            true => one.record.ideal_fct.as_ns(),
            false => 0,
        };
        let ideals = self.flows.iter().map(|one| ideal(one) as i64);
        let times = opened.iter().zip(read);
        let late = ideals.zip(times).map(|(ideal, (opened, read))| {
            let (opened, read) = ((*opened)?, (*read)?);
            Some(read as i64 - opened as i64 - ideal)
        });
        let ideal_ns = self.flows.first().map_or(0, ideal);
        IdleCheck { late_ns: late.collect(), allowed_ns: LATE_NS + ideal_ns / SHARE }
    }
}

impl IdleTask {
    /// Carries out the task of this host, and calls `ready` once it listens. Returns when each flow
    /// was opened, or completely read.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn carry_out(
        &self,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Vec<Option<u64>>> {
        match self.receives {
            true => self.receive(ready),
            false => self.send(),
        }
    }

    fn send(&self) -> io::Result<Vec<Option<u64>>> {
        let (from, to) = self.ends;
        let content = vec![b'a'; self.bytes as usize];
        let (mut opened, mut streams) = (vec![], vec![]);
        for &(start_ns, port) in &self.starts {
            while monotonic_ns() < start_ns {
                wait_for_event(None, start_ns)?;
            }
            opened.push(Some(monotonic_ns()));
            let (from, to) = ((address(from), port), (address(to), IDLE_FLOW_PORT));
            let mut stream = socket::connect(from, to, libc::IPPROTO_TCP, |_| Ok(()))?;
            socket::reset_on_close(&stream)?;
            if wait_for_event(Some((&stream, WRITABLE)), self.give_up_ns)? {
                // A failed flow shows at the receiver, where it does not arrive.
                let _ = stream.write_all(&content);
            }
            streams.push(stream);
        }
        if let Some(last) = streams.last() {
            wait_for_event(Some((last, READABLE)), self.give_up_ns)?;
        }
        Ok(opened)
    }

    fn receive(&self, ready: impl FnOnce() -> io::Result<()>) -> io::Result<Vec<Option<u64>>> {
        const LISTENER: u64 = TIMER - 1;
        let listener = TcpListener::bind((address(self.ends.1), IDLE_FLOW_PORT))?;
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&listener, READABLE, LISTENER)?;
        epoll.wake_at(self.give_up_ns)?;
        ready()?;
        let mut happened = vec![];
        let mut streams: Vec<(Option<TcpStream>, usize, u64)> = vec![];
        let mut read = vec![None; self.starts.len()];
        let mut buffer = vec![0; self.bytes as usize];
        while monotonic_ns() < self.give_up_ns && read.contains(&None) {
            epoll.wait(&mut happened)?;
            for &(token, _) in happened.iter().filter(|(token, _)| *token != TIMER) {
                if token == LISTENER {
                    let Ok((stream, from)) = listener.accept() else { continue };
                    let flow = self.starts.iter().position(|(_, port)| *port == from.port());
                    let Some(flow) = flow else { continue };
                    stream.set_nonblocking(true)?;
                    socket::reset_on_close(&stream)?;
                    epoll.add(&stream, READABLE, streams.len() as u64)?;
                    streams.push((Some(stream), flow, 0));
                    continue;
                }
                let (stream, flow, bytes) = &mut streams[token as usize];
                let count = stream.as_mut().map_or(Ok(0), |stream| stream.read(&mut buffer));
                *bytes += count.unwrap_or(0) as u64;
                if *bytes == self.bytes {
                    read[*flow] = Some(monotonic_ns());
                    // Closing resets the connection, so that neither end sends anything more.
                    *stream = None;
                }
            }
        }
        Ok(read)
    }
}

/// Waits for an event of a connection, up to a time of the monotonic clock; returns whether it
/// happened.
fn wait_for_event(what: Option<(&TcpStream, u32)>, until_ns: u64) -> io::Result<bool> {
    let epoll = Epoll::new()?;
    if let Some((stream, events)) = what {
        epoll.add(stream, events, 0)?;
    }
    epoll.wake_at(until_ns)?;
    let mut happened = vec![];
    epoll.wait(&mut happened)?;
    Ok(happened.iter().any(|(token, _)| *token != TIMER))
}
