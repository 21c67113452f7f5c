//! A flow alone, before a run and after it: whether an idle fabric still takes the time that it should on this machine.
//! It goes from the first host to the last by the lab's own sockets, whoever carries the flows of the run.

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

/// How often it is sent, before and after.
const FLOWS: u64 = 5;
/// The share of its ideal time by which its median may be late: SYNs may be a little longer than the plan's.
const SHARE: u64 = 100;
/// The median may be late by this, too.
const LATE_NS: u64 = 300_000;
/// How long they may take in all beside what they should.
const GIVE_UP_NS: u64 = 5_000_000_000;
/// What each has beside twice its ideal time before the next.
const GAP: Time = Time::from_ms(10);

/// What the lone flows are, and how long each takes at best.
pub struct IdlePlan {
    /// They and the fabric that they cross, as it is before anything fails.
    pub scenario: Scenario,
    /// What is known of each.
    pub foretold: Vec<PredictedFlow>,
}

impl IdlePlan {
    /// The lone flows of a run, each of one segment, by plain TCP.
    ///
    /// # Errors
    /// When nothing can be foretold of them.
    pub fn new(scenario: &Scenario, segment: u64) -> Result<IdlePlan, SimError> {
        let mut alone = scenario.clone();
        alone.faults = Default::default();
        alone.jobs = Default::default();
        alone.series = Default::default();
        alone.scheme.replicate = ReplicateSpec::None;
        let mut plain = scenario.scheme.transport.segment_spec();
        if plain.timestamps {
            // A kernel's SYN has room for what it says of SACK beside the time.
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
        let foretold = predict_flows(&alone)?;
        Ok(IdlePlan { scenario: alone, foretold })
    }

    /// What the two hosts are to do, when it begins at this time of the monotonic clock: the sender first.
    pub fn tasks(&self, begin_ns: u64) -> [(u32, IdleTask); 2] {
        let flows = self.foretold.iter().map(|one| (&one.record.flow, one.key.sport()));
        let starts: Vec<(u64, u16)> =
            flows.map(|(flow, port)| (begin_ns + flow.start.as_ns(), port)).collect();
        let last = &self.foretold[self.foretold.len() - 1].record;
        let (from, to) = (last.flow.src, last.flow.dst);
        let give_up_ns = begin_ns + (last.flow.start + last.ideal_fct).as_ns() + GIVE_UP_NS;
        [(from, false), (to, true)].map(|(host, receives)| {
            let (starts, bytes) = (starts.clone(), last.flow.bytes);
            (host.0, IdleTask { receives, ends: (from.0, to.0), starts, bytes, give_up_ns })
        })
    }

    /// By how much they were late: when each was opened and read whole, by the monotonic clock. Where idle ports do not delay
    /// packets, the kernels' own time alone is what they may take.
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
        let ideals = self.foretold.iter().map(|one| ideal(one) as i64);
        let times = opened.iter().zip(read);
        let late = ideals.zip(times).map(|(ideal, (opened, read))| {
            let (opened, read) = ((*opened)?, (*read)?);
            Some(read as i64 - opened as i64 - ideal)
        });
        let ideal_ns = self.foretold.first().map_or(0, ideal);
        IdleCheck { late_ns: late.collect(), allowed_ns: LATE_NS + ideal_ns / SHARE }
    }
}

impl IdleTask {
    /// Does it, as this host; `ready` is told once it listens. Gives when each flow was opened, or read whole.
    ///
    /// # Errors
    /// The kernel's.
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
                // What fails shows at the receiver, by what does not come.
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
                    // Reset, so that neither end has anything to say any more.
                    *stream = None;
                }
            }
        }
        Ok(read)
    }
}

/// Waits for something to happen to a connection until a time of the monotonic clock; whether it has.
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
