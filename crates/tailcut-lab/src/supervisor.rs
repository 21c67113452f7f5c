//! One run: the processes, in namespaces that vanish with them, whatever ends them.
//!
//! The process that asks ([`run`]) enters namespaces of its own and starts the supervisor, which is PID 1 there. The
//! supervisor starts a process for each host, in a network namespace of its own, and one for the fabric. When the asking
//! process ends, or the far end of its standard input is closed, the kernel kills the supervisor, and with PID 1 whatever is
//! in its namespace; with the processes go their namespaces, and with these interfaces, routes and sysctls. Nothing
//! is ever written to a file, but for a capture where one is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tailcut_experiment::Measured;

use crate::fabric::carrier::{Captured, FabricReport};
use crate::fabric::lateness::Lateness;
use crate::hosts::driver::{ACKNOWLEDGED, HostReport, RECEIVED, Times, WRONG};
use crate::hosts::drops::Counters;
use crate::hosts::repnet::{self, Ready};
use crate::hosts::setup::ReadBack;
use crate::hosts::turns::Turns;
use crate::lone::Alone;
use crate::measured::{Start, measure};
use crate::prepared::{Prepared, host_flows, prepare};
use crate::processors::Processors;
use crate::sys::epoll::{Epoll, READABLE, TIMER};
use crate::sys::first::{self, Rank};
use crate::sys::{bpf, in_time, monotonic_ns, process};
use crate::tools::Tool;
use crate::verdict::{self, Facts};
use crate::workers::{Crossing, Found, Order, Worker, be_host, hear, say, start};

/// Between the moment when everything is ready and the beginning of the run.
const PAUSE_NS: u64 = 50_000_000;
/// How often the run tells how far it is.
const TELL_NS: u64 = 250_000_000;

/// What the asking process is told, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// How far it is: nanoseconds from the beginning, and flows that are over.
    Now(u64, u64),
    /// The run is over.
    Done(Box<Outcome>),
    /// It failed, and why.
    Failed(String),
}

/// What helps a run to be in time and not everybody may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges {
    /// Whether idle processors are kept from sleeping.
    pub awake: bool,
    /// Whether the programs stay in memory.
    pub in_memory: bool,
    /// Whether the lab's processes go before all others of the machine, which they do where they may.
    pub goes_first: bool,
}

/// A run that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was measured, for [`tailcut_experiment::tabulate`].
    pub measured: Measured,
    /// By how much each flow started late.
    pub starts: Vec<Start>,
    /// Why the run is not faithful; nothing if it is.
    pub unfaithful: Vec<String>,
    /// What the verdict goes by.
    pub facts: Facts,
    /// By how much frames came in after what had already happened in the fabric.
    pub entered: Lateness,
    /// Frames that hosts sent.
    pub frames: u64,
    /// Nanoseconds for which the fabric's process had a processor while the run lasted; 0 where no process carries frames.
    pub worked_ns: u64,
    /// Of these, frames of second connections.
    pub copied: u64,
    /// Subflows that connections had besides their first.
    pub joined: u64,
    /// What the hosts are set to, as the kernel says it: the sysctls of all, the route of the first.
    pub hosts: ReadBack,
    /// The largest datagram, in bytes.
    pub mtu: u64,
    /// Nanoseconds from the beginning of the set-up until everything was ready.
    pub set_up_ns: u64,
    /// What the machine's root has allowed.
    #[serde(flatten)]
    pub privileges: Privileges,
    /// What carried the flows, if not the lab's own sockets.
    pub repnet: Option<Ready>,
    /// What is in the capture, if one was asked for.
    pub captured: Option<Captured>,
    /// Which fabric it was.
    pub fabric: String,
    /// Of each of its switches what the ports have counted, and, where it is a kernel, what it is set to, as that says it.
    pub switches: serde_json::Value,
    /// The queues of all ports by the names of their links, as the kernel says it, where it has them.
    pub queues: BTreeMap<String, serde_json::Value>,
    /// Versions of the tools and libraries that were used.
    pub versions: BTreeMap<String, String>,
}

/// Carries out one run of a plan, telling standard output about it. It is asked for in JSON: `run` is an element of the plan's `runs`,
/// and `program`, where `repnet-bench` is to carry the flows, is how that is started; `guests` are what else runs on hosts, `capture` is
/// what to write of what these send and receive, and `fabric` is the name of what lies between them. This process must have one thread, and is good for nothing else afterwards.
///
/// # Errors
/// What kept the run from beginning.
pub fn run(asked: &str) -> Result<(), String> {
    let prepared = prepare(asked)?;
    let said = |error: io::Error| error.to_string();
    process::many_descriptors();
    let awake = in_time::keep_awake();
    let program = prepared.program.as_ref().and_then(|program| program.first());
    let in_memory = in_time::keep_in_memory(program.map(PathBuf::from).as_slice());
    let goes_first = first::allow().is_ok();
    let privileges = Privileges { awake: awake.is_ok(), in_memory: in_memory.is_ok(), goes_first };
    process::enter_namespaces().map_err(|error| {
        format!("no namespaces can be had: {error}; ask `tailcut lab` what this kernel offers")
    })?;
    let (ours, theirs) = process::channel().map_err(said)?;
    match process::fork().map_err(said)? {
        process::Forked::Child => {
            drop(ours);
            let told = match supervise(&prepared, theirs, privileges) {
                Ok(outcome) => Told::Done(Box::new(outcome)),
                Err(error) => Told::Failed(error.to_string()),
            };
            tell(&told);
            process::exit(0);
        }
        process::Forked::Parent(child) => {
            drop(theirs);
            let ended = process::watch(child).map_err(said)?;
            let (ended, _) = process::wait_for_either(&ended, &io::stdin()).map_err(said)?;
            if !ended {
                // Nobody listens any more. Ending here ends the supervisor, and everything with it.
                process::exit(1);
            }
            match process::wait(child).map_err(said)?.as_str() {
                "" => Ok(()),
                how => Err(format!("the lab's supervisor ended with {how}")),
            }
        }
    }
}

fn tell(told: &Told) {
    let line = serde_json::to_string(told).unwrap_or_default();
    let mut out = io::stdout().lock();
    let _ = out
        .write_all(line.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
}

fn supervise(
    prepared: &Prepared,
    parent: UnixStream,
    privileges: Privileges,
) -> io::Result<Outcome> {
    process::die_with_parent(0)?;
    parent.set_nonblocking(true)?;
    if let Ok(0) = (&parent).read(&mut [0]) {
        return Err(io::Error::other("the process that asked has ended"));
    }
    let began = monotonic_ns();
    process::own_mounts();
    let lab = Lab::build(prepared)?;
    let set_up_ns = monotonic_ns() - began;
    in_time::run_at_once(process::id(), Rank::Host)?;
    let before = lab.alone()?;
    lab.carry_out(before, set_up_ns, privileges)
}

/// Hosts and fabric, ready.
struct Lab<'a> {
    prepared: &'a Prepared,
    hosts: Vec<Worker>,
    fabric: Worker,
    read_back: ReadBack,
    repnet: Option<Ready>,
}

impl<'a> Lab<'a> {
    fn build(prepared: &'a Prepared) -> io::Result<Lab<'a>> {
        let flows = host_flows(&prepared.foretold);
        let count = prepared.scenario.graph.hosts;
        let waits = !prepared.scenario.jobs.is_empty();
        let turns = waits.then(|| Turns::new(count)).transpose()?;
        let turns = turns.as_ref();
        let hosts: Vec<Worker> = (0..count)
            .map(|host| {
                let name = format!("host {host}");
                start(name, |channel| be_host(host, prepared, &flows, turns, &channel))
            })
            .collect::<io::Result<_>>()?;
        for host in &hosts {
            hear::<()>(host)?;
        }
        let fabric = prepared.fabric.build(prepared, &hosts)?;
        for host in &hosts {
            say(&host.channel, &())?;
        }
        let mut found = vec![];
        for host in &hosts {
            found.push(hear::<Found>(host)?);
        }
        let (read_back, repnet) = found.into_iter().next().unwrap_or_default();
        Ok(Lab { prepared, hosts, fabric, read_back, repnet })
    }

    /// The fabric is ready, and empty; gives when it begins.
    fn empty_fabric(&self, crossing: Crossing) -> io::Result<Times> {
        say(&self.fabric.channel, &crossing)?;
        hear::<()>(&self.fabric)?;
        let times = Times {
            begin_ns: monotonic_ns() + PAUSE_NS,
            arrivals_ns: self.prepared.scenario.horizon.arrivals.as_ns(),
        };
        say(&self.fabric.channel, &times)?;
        Ok(times)
    }

    /// What the fabric has to tell, now that nothing crosses it any more.
    fn fabric_report(&self) -> io::Result<FabricReport> {
        (&self.fabric.channel).write_all(b"s")?;
        hear(&self.fabric)
    }

    /// Sends flows through the fabric, one after the other, while nothing else is in it.
    fn alone(&self) -> io::Result<Alone> {
        let plan = &self.prepared.alone;
        let times = self.empty_fabric(Crossing::Alone)?;
        let [(from, sends), (to, receives)] = plan.tasks(times.begin_ns);
        let (sender, receiver) = (&self.hosts[from as usize], &self.hosts[to as usize]);
        say(&receiver.channel, &Order::Alone(receives))?;
        hear::<()>(receiver)?;
        say(&sender.channel, &Order::Alone(sends))?;
        let opened = hear::<Vec<Option<u64>>>(sender)?;
        let read = hear::<Vec<Option<u64>>>(receiver)?;
        self.fabric_report()?;
        Ok(plan.late(&opened, &read, self.prepared.fabric.delays_when_idle()))
    }

    /// Whether something of the run may still cross the fabric.
    fn goes_on(&self, reports: &[HostReport]) -> bool {
        let Prepared { fabric, foretold, guests, .. } = self.prepared;
        fabric.goes_on() && (!guests.is_empty() || !all_over(foretold.len(), reports))
    }

    fn carry_out(
        self,
        before: Alone,
        set_up_ns: u64,
        privileges: Privileges,
    ) -> io::Result<Outcome> {
        let hosting: BTreeSet<u32> = self.prepared.guests.iter().map(|guest| guest.host).collect();
        for host in hosting {
            let host = &self.hosts[host as usize];
            say(&host.channel, &Order::Guests)?;
            hear::<()>(host)?;
        }
        let times = self.empty_fabric(Crossing::Run)?;
        for host in &self.hosts {
            say(&host.channel, &Order::Run(times))?;
        }
        let before_run = Processors::now();
        let end_ns = self.wait_for_end(times)?;
        let after_run = Processors::now();
        let mut reports = vec![];
        for host in &self.hosts {
            (&host.channel).write_all(b"s")?;
        }
        for host in &self.hosts {
            reports.push(hear::<HostReport>(host)?);
        }
        let fabric = self.fabric_report()?;
        let after = match self.goes_on(&reports) {
            true => Alone::default(),
            false => self.alone()?,
        };
        let by_repnet = self.repnet.is_some();
        let misled = match by_repnet {
            true => repnet::misled(&reports, times.begin_ns + end_ns),
            false => vec![],
        };
        let wrong: Vec<&str> = reports
            .iter()
            .flat_map(|report| &report.wrong)
            .chain(&misled)
            .map(String::as_str)
            .take(5)
            .collect();
        if !wrong.is_empty() {
            return Err(io::Error::other(wrong.join("; ")));
        }
        let (measured, starts) =
            measure(&self.prepared.foretold, by_repnet, times, end_ns, &reports, &fabric);
        let mut versions = fabric.versions.clone();
        versions.insert("iproute2".to_owned(), Tool::Ip.version()?);
        if self.prepared.by_programs() {
            versions.insert("libbpf".to_owned(), bpf::version()?);
        }
        let facts = Facts {
            starts: starts.iter().map(|start| start.late_ns).collect(),
            paces: fabric.paces,
            thrown_away: thrown_away(&reports, &fabric),
            before,
            after,
            released: fabric.released,
            changed: fabric.changed,
            ring_drops: fabric.ring_drops,
            refused: fabric.refused,
            strange: fabric.strange,
            pressure: before_run.waited_until(&after_run),
            stolen: before_run.stolen_until(&after_run),
        };
        Ok(Outcome {
            measured,
            starts,
            unfaithful: verdict::reasons(&facts),
            facts,
            entered: fabric.entered,
            frames: fabric.frames,
            worked_ns: fabric.worked_ns,
            copied: fabric.copied,
            joined: joined(&reports),
            hosts: self.read_back,
            mtu: self.prepared.hosts.mtu,
            set_up_ns,
            privileges,
            repnet: self.repnet,
            captured: fabric.captured,
            fabric: self.prepared.fabric.name().to_owned(),
            switches: fabric.switches,
            queues: fabric.queues,
            versions,
        })
    }

    /// Waits until every flow is over, or the run's time is; says when that was, in nanoseconds from the beginning.
    fn wait_for_end(&self, times: Times) -> io::Result<u64> {
        let epoll = Epoll::new()?;
        for (number, host) in self.hosts.iter().enumerate() {
            host.channel.set_nonblocking(true)?;
            epoll.add(&host.channel, READABLE, number as u64)?;
        }
        epoll.add(&self.fabric.channel, READABLE, self.hosts.len() as u64)?;
        let horizon = &self.prepared.scenario.horizon;
        let end = times.begin_ns + (horizon.arrivals + horizon.drain).as_ns();
        let flows = self.prepared.foretold.len() as u64;
        let (mut received, mut acknowledged, mut tell_at) = (0, 0, times.begin_ns + TELL_NS);
        let mut happened = vec![];
        while received < flows || acknowledged < flows {
            let now = monotonic_ns();
            if now >= end {
                break;
            }
            if now >= tell_at {
                tell(&Told::Now(now - times.begin_ns, received));
                tell_at = now + TELL_NS;
            }
            epoll.wake_at(end.min(tell_at))?;
            epoll.wait(&mut happened)?;
            for (token, _) in happened.iter().filter(|(token, _)| *token != TIMER) {
                let Some(host) = self.hosts.get(*token as usize) else {
                    // It says why, if it still could.
                    hear::<FabricReport>(&self.fabric)?;
                    return Err(io::Error::other("the fabric has ended before the run"));
                };
                let mut events = [0; 4_096];
                let count = (&host.channel).read(&mut events)?;
                if count == 0 {
                    return Err(io::Error::other(format!("host {token} has ended")));
                }
                let of = |kind: u8| events[..count].iter().filter(|e| **e == kind).count() as u64;
                received += of(RECEIVED);
                acknowledged += of(ACKNOWLEDGED);
                if of(WRONG) > 0 {
                    return self.at_rest(times);
                }
            }
        }
        self.at_rest(times)
    }

    fn at_rest(&self, times: Times) -> io::Result<u64> {
        let now = monotonic_ns();
        for host in &self.hosts {
            host.channel.set_nonblocking(false)?;
        }
        Ok(now.saturating_sub(times.begin_ns))
    }
}

/// Whether all of so many flows have arrived, as far as both of their hosts know.
fn all_over(flows: usize, reports: &[HostReport]) -> bool {
    let sent = reports.iter().flat_map(|report| &report.sent);
    let got = reports.iter().flat_map(|report| &report.got);
    let acknowledged = sent.filter(|sent| sent.acknowledged_ns.is_some()).count();
    let complete = got.filter(|got| got.complete_ns.is_some()).count();
    acknowledged == flows && complete == flows
}

/// Subflows besides the first of each flow.
fn joined(reports: &[HostReport]) -> u64 {
    let sent = reports.iter().flat_map(|report| &report.sent);
    sent.map(|sent| u64::from(sent.subflows.saturating_sub(1))).sum()
}

/// What the kernels of all namespaces have thrown away.
fn thrown_away(reports: &[HostReport], fabric: &FabricReport) -> Counters {
    let mut all = fabric.thrown_away.clone();
    for (name, count) in reports.iter().flat_map(|report| &report.thrown_away) {
        *all.entry(name.clone()).or_default() += count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::driver::{Got, Sent};

    #[test]
    fn a_run_is_over_when_every_sender_and_every_receiver_has_said_so() {
        let sent = |acknowledged_ns| Sent { acknowledged_ns, ..Sent::default() };
        let got = |complete_ns| Got { complete_ns, ..Got::default() };
        let both = |last_sent, last_got| {
            let sender =
                HostReport { sent: vec![sent(Some(5)), sent(last_sent)], ..HostReport::default() };
            let receiver =
                HostReport { got: vec![got(Some(4)), got(last_got)], ..HostReport::default() };
            [sender, receiver]
        };
        assert!(all_over(2, &both(Some(7), Some(6))));
        assert!(!all_over(2, &both(None, Some(6))), "the last acknowledgement is under way");
        assert!(!all_over(2, &both(None, None)));
        assert!(!all_over(3, &both(Some(7), Some(6))), "one was never opened");
        assert!(all_over(0, &[]));
    }
}
