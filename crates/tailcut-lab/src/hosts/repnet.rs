//! A host whose flows a Node process carries: `repnet-bench lab`, over `repnet` or plain `node:net`. It is told when each flow
//! begins, since Node's own timers count whole milliseconds.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agenda::{Agenda, Due};
use super::driver::{Got, HostFlow, HostReport, Sent, Times, LISTEN};
use super::guests::command;
use super::payload::Payload;
use super::setup::{address, host_of};
use crate::replication::Replication;
use crate::sys::epoll::{Epoll, READABLE};
use crate::sys::{monotonic_ns, process};

/// How long Node may take to get ready, or to tell what it knows.
const PATIENCE: Duration = Duration::from_secs(25);

/// With room for 16 MB of new objects, and the garbage of its start collected before the run, Node collects hardly any in a run; by
/// default it stops for one to two milliseconds after each MB, and a flow that is due waits. Nor is the whole heap collected, for ten
/// milliseconds and more, because there has been little to do for eight seconds.
const NODE_ARGUMENTS: [&str; 5] = [
    "--min-semi-space-size=16",
    "--max-semi-space-size=16",
    "--single-threaded-gc",
    "--no-memory-reducer",
    "--expose-gc",
];

/// What the process is told at first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    address: Ipv4Addr,
    port: u16,
    mode: &'static str,
    threshold: u64,
    copy_delay: f64,
    payload: String,
    flows: Vec<TaskFlow>,
}

#[derive(Debug, Serialize)]
struct TaskFlow {
    index: u64,
    to: Ipv4Addr,
    bytes: u64,
    port: u16,
    place: u64,
}

/// What it says once it is ready, or why it never is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ready {
    /// Its versions.
    Versions {
        /// Of Node.
        node: String,
        /// Of `repnet-bench`.
        bench: String,
    },
    /// It cannot begin.
    Failed {
        /// Why.
        failed: String,
    },
}

/// What it knows of a flow that it sent.
#[derive(Debug, Deserialize)]
struct Opened {
    index: u64,
    opened_ns: u64,
    established_ns: Option<u64>,
    port: u16,
}

/// What a host knows of a connection that came in: not which flow it is, which the ports at both ends tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// Who sent it.
    pub from: String,
    /// The port that it came from.
    pub port: u16,
    /// Bytes read.
    pub bytes: u64,
    /// Their hash.
    pub digest: u32,
    /// When the last of them were read, in nanoseconds of the monotonic clock.
    pub last_ns: u64,
    /// Bytes read when the arrivals ended.
    pub in_arrivals: u64,
    /// Its sender has ended it.
    pub ended: bool,
}

#[derive(Debug, Deserialize)]
struct NodeReport {
    sent: Vec<Opened>,
    arrived: Vec<Arrived>,
    wrong: Vec<String>,
}

const SUPERVISOR: u64 = 1;
const NODE: u64 = 2;

/// A host, and its Node process.
pub struct RepnetDriver {
    host: u32,
    node: Child,
    channel: UnixStream,
    supervisor: UnixStream,
    agenda: Agenda,
    epoll: Epoll,
}

impl RepnetDriver {
    /// A host that is set up, whose process listens and has been told of no time yet; and what that process is.
    ///
    /// # Errors
    /// When it cannot be started, or does not get ready.
    pub fn new(
        host: u32,
        program: &[String],
        replication: &Replication,
        flows: &[HostFlow],
        supervisor: UnixStream,
    ) -> io::Result<(RepnetDriver, Ready)> {
        let payload = Payload::default();
        let own: Vec<HostFlow> = flows.iter().filter(|flow| flow.src == host).copied().collect();
        let task = task(host, replication, &own, &payload);
        let (channel, theirs) = UnixStream::pair()?;
        let node = start(program, theirs)?;
        channel.set_read_timeout(Some(PATIENCE))?;
        let epoll = Epoll::new()?;
        let mut driver =
            RepnetDriver { host, node, channel, supervisor, agenda: Agenda::new(own), epoll };
        let mut line = serde_json::to_string(&task)?;
        line.push('\n');
        driver.say(&line)?;
        match driver.hear()? {
            Ready::Failed { failed } => {
                Err(io::Error::other(format!("host {host}: repnet-bench: {failed}")))
            }
            ready @ Ready::Versions { .. } => {
                // The thread that flows wait for, and not those that compile beside it.
                process::run_briefly(driver.node.id() as i32);
                Ok((driver, ready))
            }
        }
    }

    fn say(&mut self, line: &str) -> io::Result<()> {
        self.channel.write_all(line.as_bytes()).map_err(|_| self.gone())
    }

    fn gone(&mut self) -> io::Error {
        let how = self.node.try_wait().ok().flatten();
        let how = how.map(|status| format!(" with {status}")).unwrap_or_default();
        io::Error::other(format!("the Node process of host {} has ended{how}", self.host))
    }

    /// A line of JSON; letters of events that nobody counts any more may come before it.
    fn hear<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<T> {
        let mut line = String::new();
        // Nothing follows a line before the next is asked for, but letters, which go to the supervisor.
        let read = BufReader::with_capacity(1 << 16, &self.channel).read_line(&mut line);
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let what = format!("the Node process of host {} does not answer", self.host);
                return Err(io::Error::other(what));
            }
            // A reset, where it has ended without reading what it was told.
            Err(_) => return Err(self.gone()),
            Ok(_) => {}
        }
        let from = line.find('{').ok_or_else(|| self.gone())?;
        serde_json::from_str(&line[from..]).map_err(io::Error::other)
    }

    /// Works until the supervisor says that it is enough, and tells what there is to tell. Connections stay until this is dropped.
    ///
    /// # Errors
    /// The kernel's, and the end of the Node process; what goes wrong with a flow is in the report.
    pub fn run(&mut self, times: Times) -> io::Result<HostReport> {
        self.agenda.set(times);
        self.supervisor.set_nonblocking(true)?;
        self.epoll.add(&self.supervisor, READABLE, SUPERVISOR)?;
        self.epoll.add(&self.channel, READABLE, NODE)?;
        self.wake_for_next()?;
        let mut happened = vec![];
        loop {
            self.epoll.wait(&mut happened)?;
            self.begin_what_is_due()?;
            for &(token, _) in &happened {
                match token {
                    SUPERVISOR => return self.finish(),
                    NODE => self.pass_on()?,
                    _ => {}
                }
            }
        }
    }

    fn wake_for_next(&mut self) -> io::Result<()> {
        self.agenda.next_ns().map_or(Ok(()), |next| self.epoll.wake_at(next))
    }

    fn begin_what_is_due(&mut self) -> io::Result<()> {
        let mut lines = String::new();
        while let Some(due) = self.agenda.due(monotonic_ns()) {
            match due {
                Due::Begin(at) => lines.push_str(&format!("{at}\n")),
                Due::Note => lines.push_str("note\n"),
            }
        }
        match lines.is_empty() {
            true => Ok(()),
            false => {
                self.say(&lines)?;
                self.wake_for_next()
            }
        }
    }

    /// Events are the supervisor's.
    fn pass_on(&mut self) -> io::Result<()> {
        let mut events = [0; 4_096];
        match self.channel.read(&mut events)? {
            0 => Err(self.gone()),
            // A supervisor that is gone takes this process with it.
            count => {
                let _ = self.supervisor.write(&events[..count]);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> io::Result<HostReport> {
        // What is said besides is of no concern.
        let _ = self.supervisor.read(&mut [0; 16]);
        self.say("report\n")?;
        let report: NodeReport = self.hear()?;
        let sent = report.sent.into_iter().map(|one| Sent {
            index: one.index,
            opened_ns: one.opened_ns,
            established_ns: one.established_ns,
            port: one.port,
            ..Sent::default()
        });
        Ok(HostReport {
            sent: sent.collect(),
            arrived: report.arrived,
            wrong: report.wrong,
            ..HostReport::default()
        })
    }
}

impl Drop for RepnetDriver {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

/// Node, with the far end of a channel as its standard input and output, and no settings of the user's.
fn start(program: &[String], channel: UnixStream) -> io::Result<Child> {
    let (node, arguments) =
        program.split_first().ok_or_else(|| io::Error::other("there is no Node to start"))?;
    let input = OwnedFd::from(channel.try_clone()?);
    command(node)
        .args(NODE_ARGUMENTS)
        .args(arguments)
        .arg("lab")
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(OwnedFd::from(channel)))
        .spawn()
        .map_err(|error| io::Error::other(format!("{node}: {error}")))
}

fn task(host: u32, replication: &Replication, own: &[HostFlow], payload: &Payload) -> Task {
    let flows = own.iter().map(|flow| TaskFlow {
        index: flow.index,
        to: address(flow.dst),
        bytes: flow.bytes,
        port: if replication.chooses_port(flow.bytes) { 0 } else { flow.source_port },
        place: payload.place(flow.index),
    });
    Task {
        address: address(host),
        port: LISTEN,
        mode: replication.mode,
        threshold: replication.threshold,
        copy_delay: replication.copy_delay_ns as f64 / 1e6,
        payload: payload.hex(),
        flows: flows.collect(),
    }
}

/// Finds out which flows the connections are that have come in: a flow is where it came from, where it went, and what it brought.
pub fn recognise(reports: &mut [HostReport], flows: &[HostFlow], payload: &Payload) {
    let mut known: BTreeMap<(u32, u16, u32), HostFlow> = BTreeMap::new();
    let mut twice = vec![];
    for sent in reports.iter().flat_map(|report| &report.sent).filter(|sent| sent.port != 0) {
        let flow = flows[sent.index as usize];
        if known.insert((flow.src, sent.port, flow.dst), flow).is_some() {
            twice.push(format!("flow {}: another came from port {}, too", flow.index, sent.port));
        }
    }
    for (host, report) in (0..).zip(reports.iter_mut()) {
        report.wrong.append(&mut twice);
        for arrived in std::mem::take(&mut report.arrived) {
            let from = arrived.from.parse().ok().and_then(host_of);
            let flow = from.and_then(|from| known.remove(&(from, arrived.port, host)));
            match flow.map(|flow| got(flow, &arrived, payload)) {
                Some(Ok(got)) => report.got.push(got),
                Some(Err(wrong)) => report.wrong.push(wrong),
                // A connection that lost its race before it brought anything.
                None if arrived.bytes == 0 => {}
                None => report.wrong.push(format!(
                    "{} bytes from {}:{} that no flow is known for",
                    arrived.bytes, arrived.from, arrived.port
                )),
            }
        }
    }
}

fn got(flow: HostFlow, arrived: &Arrived, payload: &Payload) -> Result<Got, String> {
    let HostFlow { index, bytes, .. } = flow;
    let wrong = |what: String| Err(format!("flow {index}: its receiver: {what}"));
    if arrived.bytes > bytes {
        return wrong("more bytes than were sent".to_owned());
    }
    if payload.digest(index, arrived.bytes) != arrived.digest {
        return wrong(format!("its {} bytes are not those that were sent", arrived.bytes));
    }
    let whole = arrived.bytes == bytes;
    if arrived.ended && !whole {
        return wrong(format!("it ended after {} of {bytes} bytes", arrived.bytes));
    }
    let complete_ns = whole.then_some(arrived.last_ns);
    Ok(Got { index, complete_ns, in_arrivals: arrived.in_arrivals })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: [HostFlow; 2] = [
        HostFlow { index: 0, src: 0, dst: 1, bytes: 5_000, start_ns: 0, source_port: 1_024 },
        HostFlow { index: 1, src: 0, dst: 1, bytes: 70_000, start_ns: 9, source_port: 1_025 },
    ];

    fn arrived(port: u16, flow: usize, bytes: u64) -> Arrived {
        let digest = Payload::default().digest(FLOWS[flow].index, bytes);
        let (from, ended) = (address(0).to_string(), true);
        Arrived { from, port, bytes, digest, last_ns: 77, in_arrivals: 9, ended }
    }

    fn recognised(ports: [u16; 2], arrived: Vec<Arrived>) -> HostReport {
        let sent = (0..).zip(ports).map(|(index, port)| Sent { index, port, ..Sent::default() });
        let sender = HostReport { sent: sent.collect(), ..HostReport::default() };
        let mut reports = [sender, HostReport { arrived, ..HostReport::default() }];
        recognise(&mut reports, &FLOWS, &Payload::default());
        let [sender, mut receiver] = reports;
        receiver.wrong.extend(sender.wrong);
        receiver
    }

    #[test]
    fn flows_are_known_by_the_port_that_they_came_from_in_the_end() {
        let report =
            recognised([40_001, 1_025], vec![arrived(1_025, 1, 70_000), arrived(40_001, 0, 5_000)]);
        let of = |index| Got { index, complete_ns: Some(77), in_arrivals: 9 };
        assert_eq!((report.got, report.wrong), (vec![of(1), of(0)], vec![]));
    }

    #[test]
    fn what_has_not_arrived_whole_is_not_complete() {
        let unfinished = Arrived { ended: false, ..arrived(1_024, 0, 3_000) };
        let report = recognised([1_024, 0], vec![unfinished]);
        assert_eq!(report.got, [Got { index: 0, complete_ns: None, in_arrivals: 9 }]);
        assert_eq!(report.wrong, [""; 0]);
    }

    #[test]
    fn a_connection_that_lost_its_race_is_no_flow() {
        let report = recognised([1_024, 0], vec![arrived(40_003, 0, 0), arrived(1_024, 0, 5_000)]);
        assert_eq!((report.got.len(), report.wrong.len()), (1, 0));
    }

    #[test]
    fn whatever_is_wrong_with_a_flow_is_told() {
        let mut differs = arrived(1_024, 0, 5_000);
        differs.digest ^= 1;
        let wrong = |arrived: Arrived| recognised([1_024, 1_025], vec![arrived]).wrong.join("; ");
        assert!(wrong(differs).contains("are not those that were sent"));
        assert!(wrong(arrived(1_025, 0, 5_000)).contains("are not those that were sent"));
        assert!(wrong(arrived(1_024, 0, 5_001)).contains("more bytes"));
        assert!(wrong(arrived(1_024, 0, 4_999)).contains("ended after 4999 of 5000"));
        assert!(wrong(arrived(2_000, 0, 5_000)).contains("no flow is known for"));
        let twice = recognised([1_024, 1_024], vec![arrived(1_024, 1, 70_000)]).wrong.join("; ");
        assert!(twice.contains("another came from port 1024"));
    }

    #[test]
    fn ports_are_the_plans_but_where_repnet_chooses_them() {
        let replication = |mode| Replication { mode, threshold: 5_000, copy_delay_ns: 1_500_000 };
        let ports = |mode| -> Vec<u16> {
            let task = task(0, &replication(mode), &FLOWS, &Payload::default());
            assert!((task.copy_delay - 1.5).abs() < 1e-9);
            task.flows.iter().map(|flow| flow.port).collect()
        };
        assert_eq!(ports("net"), [1_024, 1_025]);
        assert_eq!(ports("flow"), [1_024, 1_025]);
        assert_eq!(ports("syn"), [0, 1_025]);
    }
}
