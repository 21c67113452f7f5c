//! A host at work: opens its flows at their times, carries their bytes, and takes in those of others.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};
use tailcut_experiment::tabulate::MeasuredSeries;
use tailcut_net::scenario::Scenario;
use tailcut_net::traffic::demand::Signal;

use super::agenda::{Agenda, Due};
use super::drops::Counters;
use super::receiving::{Incoming, Step};
use super::sending::Outgoing;
use super::setup::{address, further_addresses, host_of};
use super::turns::Turns;
use super::waiting::WaitingFlows;
use super::windows::Windows;
use crate::payload::Payload;
use crate::settings::HostSettings;
use crate::sys::epoll::{Epoll, READABLE, TIMER, WRITABLE};
use crate::sys::{first, monotonic_ns, socket};
use crate::transports::{self, Beside, Transport};
use crate::waits::listed;

/// Where hosts listen: beyond the source ports of flows, and those that the kernel chooses. The second copy of a flow goes to
/// the port after it.
pub const LISTEN: u16 = 62_000;
/// Connections of a flow, at most.
pub const COPIES: u16 = 2;

/// A flow, as a host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostFlow {
    /// Its place among the flows of the run.
    pub index: u64,
    /// Who sends.
    pub src: u32,
    /// Who receives.
    pub dst: u32,
    /// Application bytes.
    pub bytes: u64,
    /// When it starts, in nanoseconds from the beginning of the run.
    pub start_ns: u64,
    /// The source port of its connection.
    pub source_port: u16,
}

/// When things happen, by the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The beginning of the run.
    pub begin_ns: u64,
    /// From the beginning to the end of the arrivals.
    pub arrivals_ns: u64,
}

/// What a sender tells of a flow, in nanoseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sent {
    /// Its place among the flows of the run.
    pub index: u64,
    /// When the connection was due, if the flow waited for others.
    pub due_ns: Option<u64>,
    /// When the connection was opened.
    pub opened_ns: u64,
    /// When it was established.
    pub established_ns: Option<u64>,
    /// When the last byte was acknowledged.
    pub acknowledged_ns: Option<u64>,
    /// Data segments sent.
    pub data_packets: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// What the receiver had already.
    pub duplicates: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Whether the kernel counts them.
    pub counts_timeouts: bool,
    /// Connections at the end: the subflows, where it has several.
    pub subflows: u32,
}

/// What a receiver tells of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Got {
    /// Its place among the flows of the run.
    pub index: u64,
    /// When the last byte was read, in nanoseconds of the monotonic clock.
    pub complete_ns: Option<u64>,
    /// Bytes read when the arrivals ended.
    pub in_arrivals: u64,
}

/// What a host tells at the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// Of the flows that it sent.
    pub sent: Vec<Sent>,
    /// Of the flows that it received.
    pub got: Vec<Got>,
    /// Windows and rates of the flows that the plan names.
    pub series: Vec<MeasuredSeries>,
    /// What went wrong, if anything: bytes that differ, connections that broke.
    pub wrong: Vec<String>,
    /// What its kernel has thrown away.
    pub thrown_away: Counters,
}

/// One event, told to the supervisor as it happens.
pub const RECEIVED: u8 = b'r';
/// See [`RECEIVED`].
pub const ACKNOWLEDGED: u8 = b'a';
/// Something is wrong: the report says what.
pub const WRONG: u8 = b'w';

const SUPERVISOR: u64 = TIMER - 1;
const LISTENER: u64 = TIMER - 2;
const TURNS: u64 = TIMER - 3;
const BESIDE: u64 = TIMER - 4;
/// Tokens from here on are those of connections that came in.
const INCOMING: u64 = 1 << 32;

/// A host.
pub struct Driver<'a> {
    host: u32,
    settings: &'a HostSettings,
    payload: Payload,
    epoll: Epoll,
    listener: TcpListener,
    supervisor: UnixStream,
    agenda: Agenda,
    waiting: WaitingFlows<'a>,
    transport: &'static dyn Transport,
    /// What it does for its connections besides, where the transport takes something.
    beside: Option<Box<dyn Beside>>,
    /// What others send it, by source and port.
    expected: BTreeMap<(u32, u16), HostFlow>,
    /// None once nothing more comes of one, so that its descriptor is free.
    outgoing: Vec<Option<Outgoing>>,
    incoming: Vec<Option<Incoming>>,
    windows: Windows,
    report: HostReport,
}

impl<'a> Driver<'a> {
    /// A host that is set up, listens, and has been told of no time yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(
        host: u32,
        settings: &'a HostSettings,
        flows: &[HostFlow],
        scenario: &Scenario,
        turns: Option<&'a Turns>,
        supervisor: UnixStream,
    ) -> io::Result<Driver<'a>> {
        let transport = transports::named(settings.transport);
        let listener = socket::listen((address(host), LISTEN), transport.protocol())?;
        let epoll = Epoll::new()?;
        epoll.add(&listener, READABLE, LISTENER)?;
        let waiting = WaitingFlows::new(host, flows, scenario, turns);
        if let Some(told) = waiting.told() {
            epoll.add(told, READABLE, TURNS)?;
        }
        let beside = transport.beside(further_addresses(host, settings))?;
        if let Some(beside) = &beside {
            epoll.add(&beside.as_fd(), READABLE, BESIDE)?;
        }
        let own = flows[..listed(scenario)].iter().filter(|flow| flow.src == host);
        let towards = flows.iter().filter(|flow| flow.dst == host);
        Ok(Driver {
            host,
            settings,
            payload: Payload::default(),
            epoll,
            listener,
            supervisor,
            agenda: Agenda::new(own.copied().collect()),
            waiting,
            transport,
            beside,
            expected: towards.map(|flow| ((flow.src, flow.source_port), *flow)).collect(),
            outgoing: vec![],
            incoming: vec![],
            windows: Windows::new(host, scenario),
            report: HostReport::default(),
        })
    }

    /// Works until the supervisor says that it is enough, and tells what there is to tell. Connections stay until this is dropped: a
    /// host that has told everything must not break those of one that has not.
    ///
    /// # Errors
    /// The kernel's; what goes wrong with a flow is in the report.
    pub fn run(&mut self, times: Times) -> io::Result<HostReport> {
        self.agenda.set(times);
        self.windows.set(times.begin_ns);
        self.waiting.set(times.begin_ns);
        self.supervisor.set_nonblocking(true)?;
        self.epoll.add(&self.supervisor, READABLE, SUPERVISOR)?;
        self.wake_for_next()?;
        let mut happened = vec![];
        let goes_first = first::goes(0);
        loop {
            if goes_first {
                first::let_equals_run();
            }
            self.epoll.wait(&mut happened)?;
            self.begin_what_is_due()?;
            for &(token, events) in &happened {
                match token {
                    TIMER => {}
                    SUPERVISOR => return self.finish(),
                    LISTENER => self.accept()?,
                    TURNS => self.hear_of_turns()?,
                    BESIDE => self.beside.iter().try_for_each(|one| one.happened(LISTEN))?,
                    token if token >= INCOMING => self.take_in((token - INCOMING) as usize)?,
                    token => self.carry_on(token as usize, events)?,
                }
            }
        }
    }

    fn tell(&mut self, event: u8) {
        // A supervisor that is gone takes this process with it.
        let _ = self.supervisor.write(&[event]);
    }

    fn wrong(&mut self, flow: u64, what: &str) {
        self.report.wrong.push(format!("flow {flow}, host {}: {what}", self.host));
        self.tell(WRONG);
    }

    fn wake_for_next(&mut self) -> io::Result<()> {
        let Driver { agenda, waiting, windows, .. } = self;
        let next = [agenda.next_ns(), waiting.next_ns(), windows.next_ns()];
        let next = next.into_iter().flatten().min();
        next.map_or(Ok(()), |next| self.epoll.wake_at(next))
    }

    /// A flow is over, as far as this host sees: others may have waited for that.
    fn over(&mut self, flow: u64, signal: Signal, at_ns: Option<u64>) -> io::Result<()> {
        match at_ns.is_some_and(|at_ns| self.waiting.over(flow, signal, at_ns)) {
            true => self.wake_for_next(),
            false => Ok(()),
        }
    }

    fn begin_what_is_due(&mut self) -> io::Result<()> {
        let mut any = false;
        while let Some(due) = self.agenda.due(monotonic_ns()) {
            any = true;
            match due {
                Due::Begin(at) => self.open(self.agenda.flow(at), None),
                Due::Note => self.incoming.iter_mut().flatten().for_each(Incoming::note),
            }
        }
        while let Some((flow, due_ns)) = self.waiting.due(monotonic_ns()) {
            any = true;
            match flow.src == self.host {
                true => self.open(flow, Some(due_ns)),
                false => self.waiting.tell(flow, due_ns)?,
            }
        }
        if self.windows.due(monotonic_ns()) {
            any = true;
            self.sample();
        }
        if any {
            self.wake_for_next()?;
        }
        Ok(())
    }

    fn sample(&mut self) {
        for outgoing in self.outgoing.iter().flatten() {
            let Sent { index, opened_ns, established_ns, .. } = outgoing.told;
            if established_ns.is_none() || !self.windows.wants(index) {
                continue;
            }
            if let Ok((known, _)) = outgoing.known() {
                self.windows.take(index, opened_ns, monotonic_ns(), &known);
            }
        }
    }

    /// Other hosts have seen that it is the turn of flows of this one.
    fn hear_of_turns(&mut self) -> io::Result<()> {
        for (flow, due_ns) in self.waiting.hear()? {
            self.open(flow, Some(due_ns));
        }
        Ok(())
    }

    /// `due_ns`: when it was due, if it waited for others.
    fn open(&mut self, flow: HostFlow, due_ns: Option<u64>) {
        let from: (Ipv4Addr, u16) = (address(self.host), flow.source_port);
        let opened = Outgoing::open(flow, due_ns, from, (address(flow.dst), LISTEN), self.settings);
        let token = self.outgoing.len() as u64;
        match opened {
            Ok(outgoing) => match self.epoll.add(&outgoing.stream, READABLE | WRITABLE, token) {
                Ok(()) => self.outgoing.push(Some(outgoing)),
                Err(error) => self.wrong(flow.index, &format!("it cannot be watched: {error}")),
            },
            Err(error) => self.wrong(flow.index, &format!("it cannot be opened: {error}")),
        }
    }

    fn carry_on(&mut self, at: usize, events: u32) -> io::Result<()> {
        let Some(outgoing) = &mut self.outgoing[at] else { return Ok(()) };
        let index = outgoing.flow.index;
        let was_acknowledged = outgoing.is_acknowledged();
        let outcome = outgoing.on(events, &self.payload, self.settings);
        let wants = outgoing.wants();
        let watched = match wants == outgoing.watched || outgoing.over {
            true => Ok(()),
            false => self.epoll.change(&outgoing.stream, wants, at as u64),
        };
        outgoing.watched = wants;
        let acknowledged = outgoing.is_acknowledged() && !was_acknowledged;
        let acknowledged_ns = outgoing.told.acknowledged_ns;
        let failed = outcome.and(watched);
        if outgoing.over || failed.is_err() {
            outgoing.look();
            self.report.sent.push(outgoing.told);
            self.outgoing[at] = None;
        }
        if acknowledged {
            self.tell(ACKNOWLEDGED);
            self.over(index, Signal::Acknowledged, acknowledged_ns)?;
        }
        match failed {
            // A SYN that was sent as often as the plan says: the flow does not finish, here as in the simulator.
            Err(error) if error.kind() != io::ErrorKind::TimedOut => {
                self.wrong(index, &format!("its sender: {error}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => self.admit(stream, from)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let SocketAddr::V4(v4) = from else { return Ok(()) };
        let flow = host_of(*v4.ip()).and_then(|src| self.expected.remove(&(src, v4.port())));
        let Some(flow) = flow else {
            let what = format!("a connection from {from} that no flow is known for");
            self.report.wrong.push(what);
            self.tell(WRONG);
            return Ok(());
        };
        let token = INCOMING + self.incoming.len() as u64;
        self.epoll.add(&stream, READABLE, token)?;
        let ends_first = self.transport.receivers_end();
        self.incoming.push(Some(Incoming::new(flow, stream, self.agenda.noted(), ends_first)));
        self.take_in(self.incoming.len() - 1)
    }

    fn take_in(&mut self, at: usize) -> io::Result<()> {
        let Some(incoming) = &mut self.incoming[at] else { return Ok(()) };
        let index = incoming.flow.index;
        let outcome = incoming.read(&self.payload);
        let complete_ns = incoming.told.complete_ns;
        if incoming.over {
            incoming.note();
            self.report.got.push(incoming.told);
            self.incoming[at] = None;
        }
        match outcome {
            Ok(Step::Complete) => {
                self.tell(RECEIVED);
                self.over(index, Signal::Received, complete_ns)?;
            }
            Ok(Step::More) => {}
            Err(error) => self.wrong(index, &format!("its receiver: {error}")),
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<HostReport> {
        // What is said besides is of no concern.
        let mut ignored = [0; 16];
        let _ = self.supervisor.read(&mut ignored);
        for outgoing in self.outgoing.iter_mut().flatten() {
            outgoing.look();
            self.report.sent.push(outgoing.told);
        }
        for incoming in self.incoming.iter_mut().flatten() {
            incoming.note();
            self.report.got.push(incoming.told);
        }
        self.report.series = self.windows.told();
        Ok(std::mem::take(&mut self.report))
    }
}
