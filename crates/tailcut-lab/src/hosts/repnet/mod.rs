//! A host whose flows a Node process carries: `repnet-bench lab`, over `repnet` or plain
//! `node:net`. The host triggers the start of each flow, since Node's own timers count whole
//! milliseconds.

mod events;
mod large_reads;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tailcut_net::scenario::Scenario;

use crate::dependencies::scheduled_flows;
use crate::host_settings::Replication;
use crate::hosts::agenda::{Due, FlowAgenda};
use crate::hosts::dependent_flows::DependentFlows;
use crate::hosts::guests::command_without_node_settings;
use crate::hosts::host_flow::HostFlow;
use crate::hosts::release_pipes::ReleasePipes;
use crate::messages::{HostReport, NodeReady, RunTimes, SenderRecord};
use crate::payload::Payload;
use crate::sys::epoll::{Epoll, READABLE};
use crate::sys::realtime::{self, Rank};
use crate::sys::{latency, monotonic_ns, process};
use events::NodeEvent;
use large_reads::LargeReads;
use task::{NodeReport, start_line, task};

/// The time that Node has to get ready or to report. At low priority on busy CPUs it can need half
/// a minute; a process that exits is noticed at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// Garbage collection hardly happens in a run with room for 64 MB of new objects, as much as 900
/// flows sent and 900 received fill, and a collection before the start. By default Node stops for 1
/// to 2 ms after each MB, and due flows wait. The memory reducer would collect the whole heap, for
/// 10 ms and more, after eight idle seconds.
const NODE_ARGUMENTS: [&str; 5] = [
    "--min-semi-space-size=64",
    "--max-semi-space-size=64",
    "--single-threaded-gc",
    "--no-memory-reducer",
    "--expose-gc",
];

/// The lead with which Node receives the start of a flow; it sleeps until just before the due time.
/// Waking, and finishing work for other flows, takes it up to a millisecond.
const AHEAD_NS: u64 = 1_000_000;

const SUPERVISOR: u64 = 1;
const NODE: u64 = 2;
const TURNS: u64 = 3;

/// A host whose flows a Node process carries.
pub struct RepnetDriver<'a> {
    host: u32,
    node: Child,
    long_flows: LargeReads,
    channel: UnixStream,
    /// The beginning of an incomplete line.
    unread: Vec<u8>,
    supervisor: UnixStream,
    /// The flows that the host sends, in the order of their indices.
    own: Vec<HostFlow>,
    agenda: FlowAgenda,
    dependent: DependentFlows<'a>,
    /// The due times of dependent flows, by index.
    due: BTreeMap<u64, u64>,
    epoll: Epoll,
}

impl<'a> RepnetDriver<'a> {
    /// Starts the Node process of a host that is set up; returns the driver, and Node's versions,
    /// once the process listens.
    ///
    /// # Errors
    /// The process cannot be started, or does not get ready.
    pub fn new(
        host: u32,
        program: &[String],
        replication: &Replication,
        flows: &[HostFlow],
        scenario: &Scenario,
        pipes: Option<&'a ReleasePipes>,
        supervisor: UnixStream,
    ) -> io::Result<(RepnetDriver<'a>, NodeReady)> {
        let sends = |flow: &&HostFlow| flow.src == host;
        let own: Vec<HostFlow> = flows.iter().filter(sends).copied().collect();
        let at_their_times =
            flows[..scheduled_flows(scenario)].iter().filter(sends).copied().collect();
        let waiting = DependentFlows::new(host, flows, scenario, pipes);
        let task = task(host, replication, flows, &Payload::default());
        let (channel, theirs) = UnixStream::pair()?;
        let node = start(program, theirs)?;
        channel.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let epoll = Epoll::new()?;
        if let Some(told) = waiting.releases() {
            epoll.add(told, READABLE, TURNS)?;
        }
        let mut driver = RepnetDriver {
            host,
            long_flows: LargeReads::new(process::open_pidfd(node.id() as i32)?),
            node,
            channel,
            unread: vec![],
            supervisor,
            own,
            agenda: FlowAgenda::new(at_their_times).ahead(AHEAD_NS),
            dependent: waiting,
            due: BTreeMap::new(),
            epoll,
        };
        let mut line = serde_json::to_string(&task)?;
        line.push('\n');
        driver.send(&line)?;
        match driver.receive()? {
            NodeReady::Failed { failed } => {
                Err(io::Error::other(format!("host {host}: repnet-bench: {failed}")))
            }
            ready @ NodeReady::Versions { .. } => {
                // Only the main thread, for which flows wait, and not the compiler threads.
                let node = driver.node.id() as i32;
                latency::raise_priority(node, Rank::Host).map_err(|error| {
                    let what = format!(
                        "the Node process of host {host} did not get real-time \
                                        priority"
                    );
                    io::Error::other(format!("{what}, although the lab may grant it: {error}"))
                })?;
                latency::idle_helper_threads(driver.node.id())?;
                Ok((driver, ready))
            }
        }
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.channel.write_all(line.as_bytes()).map_err(|_| self.ended_error())
    }

    fn ended_error(&mut self) -> io::Error {
        let how = self.node.try_wait().ok().flatten();
        let how = how.map(|status| format!(" with {status}")).unwrap_or_default();
        io::Error::other(format!("the Node process of host {} has exited{how}", self.host))
    }

    /// Reads from the process, and returns the complete lines.
    fn read_lines(&mut self) -> io::Result<Vec<String>> {
        let mut found = [0; 1 << 16];
        match self.channel.read(&mut found) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let what = format!("the Node process of host {} does not answer", self.host);
                Err(io::Error::other(what))
            }
            // A reset, if the process exited without reading its input.
            Ok(0) | Err(_) => Err(self.ended_error()),
            Ok(count) => {
                let found = &found[..count];
                let whole = found.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                self.unread.extend_from_slice(&found[..whole]);
                let lines = match whole {
                    0 => vec![],
                    _ => String::from_utf8_lossy(&std::mem::take(&mut self.unread))
                        .lines()
                        .map(str::to_owned)
                        .collect(),
                };
                self.unread.extend_from_slice(&found[whole..]);
                Ok(lines)
            }
        }
    }

    /// Reads a line of JSON; late events, which are no longer counted, may precede it.
    fn receive<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<T> {
        loop {
            // Nothing follows such a line before the next request.
            if let Some(line) = self.read_lines()?.iter().find(|line| line.starts_with('{')) {
                return serde_json::from_str(line).map_err(io::Error::other);
            }
        }
    }

    /// Runs the flows until the supervisor writes, and returns the report. Connections stay open
    /// until the driver is dropped.
    ///
    /// # Errors
    /// The kernel's error, or the exit of the Node process. Errors of flows are in the report.
    pub fn run(&mut self, times: RunTimes) -> io::Result<HostReport> {
        self.agenda.start(times);
        self.dependent.start(times.begin_ns);
        self.supervisor.set_nonblocking(true)?;
        self.epoll.add(&self.supervisor, READABLE, SUPERVISOR)?;
        self.epoll.add(&self.channel, READABLE, NODE)?;
        self.arm_timer()?;
        let mut happened = vec![];
        loop {
            self.epoll.wait(&mut happened)?;
            self.start_due()?;
            for &(token, _) in &happened {
                match token {
                    SUPERVISOR => return self.finish(),
                    NODE => self.handle_node_events()?,
                    TURNS => self.start_released()?,
                    _ => {}
                }
            }
        }
    }

    fn arm_timer(&mut self) -> io::Result<()> {
        let next = [self.agenda.next_ns(), self.dependent.next_ns()].into_iter().flatten().min();
        next.map_or(Ok(()), |next| self.epoll.wake_at(next))
    }

    fn start_due(&mut self) -> io::Result<()> {
        let mut lines = String::new();
        let mut any = false;
        while let Some(due) = self.agenda.due(monotonic_ns()) {
            match due {
                Due::Begin(at) => {
                    let flow = self.agenda.flow(at);
                    lines.push_str(&start_line(&self.own, flow, self.agenda.begins_ns(flow)));
                }
                Due::EndArrivals => {
                    // Makes Node count the bytes that have arrived.
                    self.long_flows.end();
                    lines.push_str("note\n");
                }
            }
        }
        while let Some((flow, due_ns)) = self.dependent.due(monotonic_ns()) {
            any = true;
            match flow.src == self.host {
                true => {
                    self.due.insert(flow.index, due_ns);
                    lines.push_str(&start_line(&self.own, flow, due_ns));
                }
                false => self.dependent.release(flow, due_ns)?,
            }
        }
        if !lines.is_empty() {
            any = true;
            self.send(&lines)?;
        }
        match any {
            true => self.arm_timer(),
            false => Ok(()),
        }
    }

    /// Starts the flows that other hosts have released.
    fn start_released(&mut self) -> io::Result<()> {
        let mut lines = String::new();
        for (flow, due_ns) in self.dependent.released()? {
            self.due.insert(flow.index, due_ns);
            lines.push_str(&start_line(&self.own, flow, due_ns));
        }
        self.send(&lines)
    }

    /// Handles the events of Node: the supervisor counts them, and flows may depend on them.
    fn handle_node_events(&mut self) -> io::Result<()> {
        let mut letters = vec![];
        for line in self.read_lines()? {
            let event = NodeEvent::parse(&line).ok_or_else(|| {
                let host = self.host;
                io::Error::other(format!(
                    "the Node process of host {host} sent an unknown event: \
                                          {line:?}"
                ))
            })?;
            letters.extend(event.letter());
            match event {
                NodeEvent::Over(flow, signal, at_ns) => {
                    self.dependent.on_finished(flow, signal, at_ns);
                }
                NodeEvent::Long(from) => self.long_flows.add(from),
                NodeEvent::Wrong => {}
            }
        }
        self.start_due()?;
        // If the supervisor has exited, this process is killed, too.
        let _ = self.supervisor.write(&letters);
        self.arm_timer()
    }

    fn finish(&mut self) -> io::Result<HostReport> {
        // The content of the supervisor's message does not matter.
        let _ = self.supervisor.read(&mut [0; 16]);
        self.send("report\n")?;
        let report: NodeReport = self.receive()?;
        let sent = report.sent.into_iter().map(|one| SenderRecord {
            index: one.index,
            due_ns: self.due.get(&one.index).copied(),
            opened_ns: one.opened_ns,
            established_ns: one.established_ns,
            acknowledged_ns: one.acknowledged_ns,
            ..SenderRecord::default()
        });
        Ok(HostReport {
            sent: sent.collect(),
            got: report.got,
            wrong: report.wrong,
            ..HostReport::default()
        })
    }
}

impl Drop for RepnetDriver<'_> {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

/// Starts Node with a channel as its standard input and output, and without the user's settings.
fn start(program: &[String], channel: UnixStream) -> io::Result<Child> {
    let (node, arguments) = program.split_first().ok_or_else(|| {
        io::Error::other(
            "the command that starts Node is \
                                                              empty",
        )
    })?;
    let input = OwnedFd::from(channel.try_clone()?);
    let mut command = command_without_node_settings(node);
    // With real-time priority, Node gets it, too, once it is ready.
    if !realtime::may_set_realtime() {
        latency::lower_priority(&mut command);
    }
    command
        .args(NODE_ARGUMENTS)
        .args(arguments)
        .arg("lab")
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(OwnedFd::from(channel)))
        .spawn()
        .map_err(|error| io::Error::other(format!("{node}: {error}")))
}

/// Returns an error message for each flow that its sender took for delivered by `by_ns`, and its
/// receiver did not: the receiver closed a connection that was not the flow's.
pub fn prematurely_closed(reports: &[HostReport], by_ns: u64) -> Vec<String> {
    let whole: BTreeSet<u64> = reports
        .iter()
        .flat_map(|report| &report.got)
        .filter(|got| got.complete_ns.is_some())
        .map(|got| got.index)
        .collect();
    let ended = |sent: &&SenderRecord| sent.acknowledged_ns.is_some_and(|at_ns| at_ns <= by_ns);
    let sent = reports.iter().flat_map(|report| &report.sent).filter(ended);
    sent.filter(|sent| !whole.contains(&sent.index))
        .map(|sent| {
            format!(
                "flow {}: its sender took it for delivered, but its receiver never had \
                             all bytes",
                sent.index
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::ReceiverRecord;

    #[test]
    fn a_flow_acknowledged_before_its_receiver_had_it_is_reported() {
        let sent = |index, acknowledged_ns| SenderRecord {
            index,
            acknowledged_ns,
            ..SenderRecord::default()
        };
        let sender = HostReport {
            sent: vec![sent(0, Some(50)), sent(1, Some(60)), sent(2, None), sent(3, Some(99))],
            ..HostReport::default()
        };
        let got = |index, complete_ns| ReceiverRecord { index, complete_ns, in_arrivals: 0 };
        let receiver =
            HostReport { got: vec![got(0, Some(40)), got(1, None)], ..HostReport::default() };
        let misled = prematurely_closed(&[sender, receiver], 90);
        assert_eq!(
            misled,
            ["flow 1: its sender took it for delivered, but its receiver never had all bytes"]
        );
    }
}
