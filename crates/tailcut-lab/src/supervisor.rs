//! A run: its processes, in namespaces that vanish with them however they end.
//!
//! The requesting process ([`run`]) enters new namespaces and starts the supervisor, which is PID 1
//! there. The supervisor starts a process per host, in its own network namespace, and one for the
//! fabric. When the requesting process exits, or the other end of its standard input is closed, the
//! kernel kills the supervisor, and with PID 1 everything in its namespace. With the processes
//! their namespaces vanish, and with these interfaces, routes and sysctls. No file is written,
//! except for a requested capture.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tailcut_experiment::MeasuredRun;

use crate::cpu_usage::CpuUsage;
use crate::fabric::lateness::Lateness;
use crate::fabric_kinds::kind::FabricKind;
use crate::hosts::drops::DropCounters;
use crate::hosts::host_flow::host_flows;
use crate::hosts::process::run_host;
use crate::hosts::release_pipes::ReleasePipes;
use crate::hosts::repnet;
use crate::idle_check::IdleCheck;
use crate::measured::{FlowStart, measure};
use crate::messages::{
    ACKNOWLEDGED, Captured, FabricCommand, FabricReport, HostCommand, HostReadBack, HostReady,
    HostReport, NodeReady, RECEIVED, RunTimes, WRONG,
};
use crate::prepared::Prepared;
use crate::request::prepare;
use crate::sys::epoll::{Epoll, READABLE, TIMER};
use crate::sys::realtime::{self, Rank};
use crate::sys::{bpf, latency, monotonic_ns, process};
use crate::tools::Tool;
use crate::verdict::{self, VerdictFacts};
use crate::worker::{Worker, receive_result, send_json, start};

/// The time between readiness and the start of the run, in nanoseconds.
const START_DELAY_NS: u64 = 50_000_000;
/// The interval of progress messages, in nanoseconds.
const PROGRESS_NS: u64 = 250_000_000;

/// A message to the requesting process: JSON, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressMessage {
    /// The progress: nanoseconds since the start, and flows received.
    Now(u64, u64),
    /// The run is complete.
    Done(Box<LabOutcome>),
    /// The run failed, for this reason.
    Failed(String),
}

/// Privileges that help a run to be in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges {
    /// Whether CPUs are kept out of idle states.
    pub awake: bool,
    /// Whether the programs are locked in memory.
    pub in_memory: bool,
    /// Whether the lab's processes have real-time priority.
    pub goes_first: bool,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabOutcome {
    /// The measurements, for [`tabulate`](mod@tailcut_experiment::tabulate).
    pub measured: MeasuredRun,
    /// The lateness of each flow's start.
    pub starts: Vec<FlowStart>,
    /// The reasons why the run is not faithful; none if it is.
    pub unfaithful: Vec<String>,
    /// The measurements on which the verdict is based.
    pub facts: VerdictFacts,
    /// The lateness of incoming frames behind events that the fabric had already carried out.
    pub entered: Lateness,
    /// Frames that hosts sent.
    pub frames: u64,
    /// The CPU time of the fabric's process during the run, in nanoseconds; 0 if no process carries
    /// frames.
    pub worked_ns: u64,
    /// Frames of second connections, included in `frames`.
    pub copied: u64,
    /// Subflows of all connections besides the first ones.
    pub joined: u64,
    /// Settings of the hosts as read back: the sysctls of all, the route of the first.
    pub hosts: HostReadBack,
    /// The size of the largest datagram in bytes.
    pub mtu: u64,
    /// The duration of the set-up in nanoseconds.
    pub set_up_ns: u64,
    /// The privileges that the run had.
    #[serde(flatten)]
    pub privileges: Privileges,
    /// The versions of Node and `repnet-bench`, if they carried the flows.
    pub repnet: Option<NodeReady>,
    /// The size of the capture, if one was requested.
    pub captured: Option<Captured>,
    /// The name of the fabric's kind.
    pub fabric: String,
    /// The counters of each switch's ports and, for kernel switches, their settings as read back.
    pub switches: serde_json::Value,
    /// The queues of all ports by the names of their links, as read back from the kernel, if it has
    /// them.
    pub queues: BTreeMap<String, serde_json::Value>,
    /// Versions of the tools and libraries used.
    pub versions: BTreeMap<String, String>,
}

/// Carries out a run of a plan, and writes [`ProgressMessage`]s to standard output. `asked` is
/// JSON:
///
/// - `run`: an element of the plan's `runs`;
///
/// - `program`: the command of `repnet-bench`, if it carries the flows;
///
/// - `guests`: the callers' programs that run on hosts;
///
/// - `capture`: the capture to write;
///
/// - `fabric`: the name of the fabric's kind;
///
/// - `programs`: the directory of compiled BPF programs.
///
/// This process must have one thread, and can do nothing else afterwards.
///
/// # Errors
/// The reason why the run could not start.
pub fn run(asked: &str) -> Result<(), String> {
    let (fabric, prepared) = prepare(asked)?;
    let said = |error: io::Error| error.to_string();
    process::raise_descriptor_limit();
    let awake = latency::disable_cpu_sleep();
    let program = prepared.program.as_ref().and_then(|program| program.first());
    let in_memory = latency::lock_files(program.map(PathBuf::from).as_slice());
    let goes_first = realtime::start_priority_helper().is_ok();
    let privileges = Privileges { awake: awake.is_ok(), in_memory: in_memory.is_ok(), goes_first };
    process::unshare_namespaces().map_err(|error| {
        format!(
            "namespaces cannot be created: {error}; `tailcut lab` lists what this kernel \
                 offers"
        )
    })?;
    let (ours, theirs) = process::channel().map_err(said)?;
    match process::fork().map_err(said)? {
        process::Forked::Child => {
            drop(ours);
            let told = match supervise(fabric, &prepared, theirs, privileges) {
                Ok(outcome) => ProgressMessage::Done(Box::new(outcome)),
                Err(error) => ProgressMessage::Failed(error.to_string()),
            };
            print_message(&told);
            process::exit(0);
        }
        process::Forked::Parent(child) => {
            drop(theirs);
            let ended = process::open_pidfd(child).map_err(said)?;
            let (ended, _) = process::wait_for_either(&ended, &io::stdin()).map_err(said)?;
            if !ended {
                // The requesting process is not listened to any more. Exiting here kills the
                // supervisor and everything else.
                process::exit(1);
            }
            match process::wait(child).map_err(said)?.as_str() {
                "" => Ok(()),
                how => Err(format!("the lab's supervisor ended with {how}")),
            }
        }
    }
}

fn print_message(told: &ProgressMessage) {
    let line = serde_json::to_string(told).unwrap_or_default();
    let mut out = io::stdout().lock();
    let _ = out
        .write_all(line.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
}

fn supervise(
    fabric: &'static dyn FabricKind,
    prepared: &Prepared,
    parent: UnixStream,
    privileges: Privileges,
) -> io::Result<LabOutcome> {
    process::die_with_parent(0)?;
    parent.set_nonblocking(true)?;
    if let Ok(0) = (&parent).read(&mut [0]) {
        return Err(io::Error::other("the process that requested the run has exited"));
    }
    let began = monotonic_ns();
    process::make_mounts_private();
    let lab = Lab::build(fabric, prepared)?;
    let set_up_ns = monotonic_ns() - began;
    latency::raise_priority(process::id(), Rank::Host)?;
    let before = lab.check_idle_fabric()?;
    lab.carry_out(before, set_up_ns, privileges)
}

/// A run whose hosts and fabric are ready.
struct Lab<'a> {
    prepared: &'a Prepared,
    fabric: &'static dyn FabricKind,
    hosts: Vec<Worker>,
    carrier: Worker,
    read_back: HostReadBack,
    repnet: Option<NodeReady>,
}

impl<'a> Lab<'a> {
    fn build(fabric: &'static dyn FabricKind, prepared: &'a Prepared) -> io::Result<Lab<'a>> {
        let flows = host_flows(&prepared.flows);
        let count = prepared.scenario.graph.hosts;
        let waits = !prepared.scenario.jobs.is_empty();
        let pipes = waits.then(|| ReleasePipes::new(count)).transpose()?;
        let pipes = pipes.as_ref();
        let hosts: Vec<Worker> = (0..count)
            .map(|host| {
                let name = format!("host {host}");
                start(name, |channel| run_host(host, prepared, &flows, pipes, &channel))
            })
            .collect::<io::Result<_>>()?;
        for host in &hosts {
            receive_result::<()>(host)?;
        }
        let carrier = fabric.build(prepared, &hosts)?;
        for host in &hosts {
            send_json(&host.channel, &())?;
        }
        let mut found = vec![];
        for host in &hosts {
            found.push(receive_result::<HostReady>(host)?);
        }
        let (read_back, repnet) = found.into_iter().next().unwrap_or_default();
        Ok(Lab { prepared, fabric, hosts, carrier, read_back, repnet })
    }

    /// Starts the empty fabric, and returns the times of its run.
    fn start_fabric(&self, crossing: FabricCommand) -> io::Result<RunTimes> {
        send_json(&self.carrier.channel, &crossing)?;
        receive_result::<()>(&self.carrier)?;
        let times = RunTimes {
            begin_ns: monotonic_ns() + START_DELAY_NS,
            arrivals_ns: self.prepared.scenario.horizon.arrivals.as_ns(),
        };
        send_json(&self.carrier.channel, &times)?;
        Ok(times)
    }

    /// Stops the fabric, and receives its report.
    fn fabric_report(&self) -> io::Result<FabricReport> {
        (&self.carrier.channel).write_all(b"s")?;
        receive_result(&self.carrier)
    }

    /// Sends the idle flows through the empty fabric, one after the other, and returns their
    /// lateness.
    fn check_idle_fabric(&self) -> io::Result<IdleCheck> {
        let plan = &self.prepared.idle;
        let times = self.start_fabric(FabricCommand::IdleFlows)?;
        let [(from, sends), (to, receives)] = plan.tasks(times.begin_ns);
        let (sender, receiver) = (&self.hosts[from as usize], &self.hosts[to as usize]);
        send_json(&receiver.channel, &HostCommand::IdleFlows(receives))?;
        receive_result::<()>(receiver)?;
        send_json(&sender.channel, &HostCommand::IdleFlows(sends))?;
        let opened = receive_result::<Vec<Option<u64>>>(sender)?;
        let read = receive_result::<Vec<Option<u64>>>(receiver)?;
        self.fabric_report()?;
        Ok(plan.check(&opened, &read, self.fabric.delays_when_idle()))
    }

    /// Whether packets of the run may still cross the fabric.
    fn may_still_send(&self, reports: &[HostReport]) -> bool {
        let Prepared { flows: predicted, guests, .. } = self.prepared;
        self.fabric.forwards_after_run()
            && (!guests.is_empty() || !all_finished(predicted.len(), reports))
    }

    fn carry_out(
        self,
        before: IdleCheck,
        set_up_ns: u64,
        privileges: Privileges,
    ) -> io::Result<LabOutcome> {
        let hosting: BTreeSet<u32> = self.prepared.guests.iter().map(|guest| guest.host).collect();
        for host in hosting {
            let host = &self.hosts[host as usize];
            send_json(&host.channel, &HostCommand::Guests)?;
            receive_result::<()>(host)?;
        }
        let times = self.start_fabric(FabricCommand::Run)?;
        for host in &self.hosts {
            send_json(&host.channel, &HostCommand::Run(times))?;
        }
        let before_run = CpuUsage::now();
        let end_ns = self.wait_for_end(times)?;
        let after_run = CpuUsage::now();
        let mut reports = vec![];
        for host in &self.hosts {
            (&host.channel).write_all(b"s")?;
        }
        for host in &self.hosts {
            reports.push(receive_result::<HostReport>(host)?);
        }
        let fabric = self.fabric_report()?;
        let after = match self.may_still_send(&reports) {
            true => IdleCheck::default(),
            false => self.check_idle_fabric()?,
        };
        let by_repnet = self.repnet.is_some();
        let misled = match by_repnet {
            true => repnet::prematurely_closed(&reports, times.begin_ns + end_ns),
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
            measure(&self.prepared.flows, by_repnet, times, end_ns, &reports, &fabric);
        let mut versions = fabric.versions.clone();
        versions.insert("iproute2".to_owned(), Tool::Ip.version()?);
        if self.prepared.uses_libbpf() {
            versions.insert("libbpf".to_owned(), bpf::version()?);
        }
        let facts = VerdictFacts {
            starts: starts.iter().map(|start| start.late_ns).collect(),
            paces: fabric.paces,
            thrown_away: kernel_drops(&reports, &fabric),
            before,
            after,
            released: fabric.released,
            changed: fabric.changed,
            ring_drops: fabric.ring_drops,
            refused: fabric.refused,
            strange: fabric.strange,
            pressure: before_run.pressure_until(&after_run),
            stolen: before_run.steal_until(&after_run),
        };
        Ok(LabOutcome {
            measured,
            starts,
            unfaithful: verdict::reasons(&facts),
            facts,
            entered: fabric.entered,
            frames: fabric.frames,
            worked_ns: fabric.worked_ns,
            copied: fabric.copied,
            joined: extra_subflows(&reports),
            hosts: self.read_back,
            mtu: self.prepared.hosts.mtu,
            set_up_ns,
            privileges,
            repnet: self.repnet,
            captured: fabric.captured,
            fabric: self.fabric.name().to_owned(),
            switches: fabric.switches,
            queues: fabric.queues,
            versions,
        })
    }

    /// Waits until every flow has finished or the run's time is over; returns when that was, in
    /// nanoseconds after the start.
    fn wait_for_end(&self, times: RunTimes) -> io::Result<u64> {
        let epoll = Epoll::new()?;
        for (number, host) in self.hosts.iter().enumerate() {
            host.channel.set_nonblocking(true)?;
            epoll.add(&host.channel, READABLE, number as u64)?;
        }
        epoll.add(&self.carrier.channel, READABLE, self.hosts.len() as u64)?;
        let horizon = &self.prepared.scenario.horizon;
        let end = times.begin_ns + (horizon.arrivals + horizon.drain).as_ns();
        let flows = self.prepared.flows.len() as u64;
        let (mut received, mut acknowledged, mut tell_at) = (0, 0, times.begin_ns + PROGRESS_NS);
        let mut happened = vec![];
        while received < flows || acknowledged < flows {
            let now = monotonic_ns();
            if now >= end {
                break;
            }
            if now >= tell_at {
                print_message(&ProgressMessage::Now(now - times.begin_ns, received));
                tell_at = now + PROGRESS_NS;
            }
            epoll.wake_at(end.min(tell_at))?;
            epoll.wait(&mut happened)?;
            for (token, _) in happened.iter().filter(|(token, _)| *token != TIMER) {
                let Some(host) = self.hosts.get(*token as usize) else {
                    // Its last message names the reason, if it could still send one.
                    receive_result::<FabricReport>(&self.carrier)?;
                    return Err(io::Error::other("the fabric's process has exited during the run"));
                };
                let mut events = [0; 4_096];
                let count = (&host.channel).read(&mut events)?;
                if count == 0 {
                    return Err(io::Error::other(format!(
                        "the process of host {token} has exited"
                    )));
                }
                let of = |kind: u8| events[..count].iter().filter(|e| **e == kind).count() as u64;
                received += of(RECEIVED);
                acknowledged += of(ACKNOWLEDGED);
                if of(WRONG) > 0 {
                    return self.stop_watching(times);
                }
            }
        }
        self.stop_watching(times)
    }

    fn stop_watching(&self, times: RunTimes) -> io::Result<u64> {
        let now = monotonic_ns();
        for host in &self.hosts {
            host.channel.set_nonblocking(false)?;
        }
        Ok(now.saturating_sub(times.begin_ns))
    }
}

/// Whether all `flows` have arrived, according to both of their hosts.
fn all_finished(flows: usize, reports: &[HostReport]) -> bool {
    let sent = reports.iter().flat_map(|report| &report.sent);
    let got = reports.iter().flat_map(|report| &report.got);
    let acknowledged = sent.filter(|sent| sent.acknowledged_ns.is_some()).count();
    let complete = got.filter(|got| got.complete_ns.is_some()).count();
    acknowledged == flows && complete == flows
}

/// Returns the number of subflows besides each flow's first.
fn extra_subflows(reports: &[HostReport]) -> u64 {
    let sent = reports.iter().flat_map(|report| &report.sent);
    sent.map(|sent| u64::from(sent.subflows.saturating_sub(1))).sum()
}

/// Returns the packets dropped by the kernels of all namespaces.
fn kernel_drops(reports: &[HostReport], fabric: &FabricReport) -> DropCounters {
    let mut all = fabric.thrown_away.clone();
    for (name, count) in reports.iter().flat_map(|report| &report.thrown_away) {
        *all.entry(name.clone()).or_default() += count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ReceiverRecord;
    use crate::messages::SenderRecord;

    #[test]
    fn a_run_is_finished_when_every_sender_and_receiver_has_reported_it() {
        let sent = |acknowledged_ns| SenderRecord { acknowledged_ns, ..SenderRecord::default() };
        let got = |complete_ns| ReceiverRecord { complete_ns, ..ReceiverRecord::default() };
        let both = |last_sent, last_got| {
            let sender =
                HostReport { sent: vec![sent(Some(5)), sent(last_sent)], ..HostReport::default() };
            let receiver =
                HostReport { got: vec![got(Some(4)), got(last_got)], ..HostReport::default() };
            [sender, receiver]
        };
        assert!(all_finished(2, &both(Some(7), Some(6))));
        assert!(!all_finished(2, &both(None, Some(6))), "the last acknowledgement is under way");
        assert!(!all_finished(2, &both(None, None)));
        assert!(!all_finished(3, &both(Some(7), Some(6))), "one was never opened");
        assert!(all_finished(0, &[]));
    }
}
