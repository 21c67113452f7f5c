//! The driver of a host's flows over the lab's own sockets: opens flows at their times, sends and
//! receives their bytes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use tailcut_net::scenario::Scenario;
use tailcut_net::traffic::demand::Signal;

use super::agenda::{Due, FlowAgenda};
use super::dependent_flows::DependentFlows;
use super::receiver::{Incoming, ReadOutcome};
use super::release_pipes::ReleasePipes;
use super::sender::Outgoing;
use super::window_sampler::WindowSampler;
use crate::addressing::{LISTEN_PORT, address, extra_addresses, host_of};
use crate::dependencies::scheduled_flows;
use crate::host_settings::HostSettings;
use crate::hosts::host_flow::HostFlow;
use crate::messages::{ACKNOWLEDGED, HostReport, RECEIVED, RunTimes, SenderRecord, WRONG};
use crate::payload::Payload;
use crate::sys::epoll::{Epoll, READABLE, TIMER, WRITABLE};
use crate::sys::{monotonic_ns, realtime, socket};
use crate::transports::{self, KernelTransport, TransportService};

const SUPERVISOR: u64 = TIMER - 1;
const LISTENER: u64 = TIMER - 2;
const TURNS: u64 = TIMER - 3;
const BESIDE: u64 = TIMER - 4;
/// The first token of accepted connections.
const INCOMING: u64 = 1 << 32;

/// A host that carries its flows over the lab's own sockets.
pub struct SocketDriver<'a> {
    host: u32,
    settings: &'a HostSettings,
    payload: Payload,
    epoll: Epoll,
    listener: TcpListener,
    supervisor: UnixStream,
    agenda: FlowAgenda,
    dependent: DependentFlows<'a>,
    transport: &'static dyn KernelTransport,
    /// The background service of the transport, if it has one.
    service: Option<Box<dyn TransportService>>,
    /// The flows that others send to this host, by sender and source port.
    expected: BTreeMap<(u32, u16), HostFlow>,
    /// Opened connections; none once closed, so that its descriptor is free.
    outgoing: Vec<Option<Outgoing>>,
    incoming: Vec<Option<Incoming>>,
    windows: WindowSampler,
    report: HostReport,
}

impl<'a> SocketDriver<'a> {
    /// Creates the driver of a host that is set up; it listens, and the start of the run is not yet
    /// known.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(
        host: u32,
        settings: &'a HostSettings,
        flows: &[HostFlow],
        scenario: &Scenario,
        pipes: Option<&'a ReleasePipes>,
        supervisor: UnixStream,
    ) -> io::Result<SocketDriver<'a>> {
        let transport = transports::by_name(settings.transport);
        let listener = socket::listen((address(host), LISTEN_PORT), transport.protocol())?;
        let epoll = Epoll::new()?;
        epoll.add(&listener, READABLE, LISTENER)?;
        let waiting = DependentFlows::new(host, flows, scenario, pipes);
        if let Some(told) = waiting.releases() {
            epoll.add(told, READABLE, TURNS)?;
        }
        let beside = transport.start_service(extra_addresses(host, settings.further_addresses))?;
        if let Some(beside) = &beside {
            epoll.add(&beside.as_fd(), READABLE, BESIDE)?;
        }
        let own = flows[..scheduled_flows(scenario)].iter().filter(|flow| flow.src == host);
        let towards = flows.iter().filter(|flow| flow.dst == host);
        Ok(SocketDriver {
            host,
            settings,
            payload: Payload::default(),
            epoll,
            listener,
            supervisor,
            agenda: FlowAgenda::new(own.copied().collect()),
            dependent: waiting,
            transport,
            service: beside,
            expected: towards.map(|flow| ((flow.src, flow.source_port), *flow)).collect(),
            outgoing: vec![],
            incoming: vec![],
            windows: WindowSampler::new(host, scenario),
            report: HostReport::default(),
        })
    }

    /// Runs the flows until the supervisor writes, and returns the report. Connections stay open
    /// until the driver is dropped: a host that has reported must not break the connections of one
    /// that has not.
    ///
    /// # Errors
    /// The kernel's error. Errors of flows are in the report.
    pub fn run(&mut self, times: RunTimes) -> io::Result<HostReport> {
        self.agenda.start(times);
        self.windows.start(times.begin_ns);
        self.dependent.start(times.begin_ns);
        self.supervisor.set_nonblocking(true)?;
        self.epoll.add(&self.supervisor, READABLE, SUPERVISOR)?;
        self.arm_timer()?;
        let mut happened = vec![];
        let goes_first = realtime::is_realtime(0);
        loop {
            if goes_first {
                realtime::yield_to_equal_priority();
            }
            self.epoll.wait(&mut happened)?;
            self.start_due()?;
            for &(token, events) in &happened {
                match token {
                    TIMER => {}
                    SUPERVISOR => return self.finish(),
                    LISTENER => self.accept()?,
                    TURNS => self.start_released()?,
                    BESIDE => {
                        self.service.iter().try_for_each(|one| one.on_readable(LISTEN_PORT))?
                    }
                    token if token >= INCOMING => {
                        self.on_receiver_event((token - INCOMING) as usize)?
                    }
                    token => self.on_sender_event(token as usize, events)?,
                }
            }
        }
    }

    fn notify_supervisor(&mut self, event: u8) {
        // If the supervisor has exited, this process is killed, too.
        let _ = self.supervisor.write(&[event]);
    }

    fn report_error(&mut self, flow: u64, what: &str) {
        self.report.wrong.push(format!("flow {flow}, host {}: {what}", self.host));
        self.notify_supervisor(WRONG);
    }

    fn arm_timer(&mut self) -> io::Result<()> {
        let SocketDriver { agenda, dependent: waiting, windows, .. } = self;
        let next = [agenda.next_ns(), waiting.next_ns(), windows.next_ns()];
        let next = next.into_iter().flatten().min();
        next.map_or(Ok(()), |next| self.epoll.wake_at(next))
    }

    /// Records that a flow finished, as far as this host observes: others may depend on it.
    fn note_flow_done(&mut self, flow: u64, signal: Signal, at_ns: Option<u64>) -> io::Result<()> {
        match at_ns.is_some_and(|at_ns| self.dependent.on_finished(flow, signal, at_ns)) {
            true => self.arm_timer(),
            false => Ok(()),
        }
    }

    fn start_due(&mut self) -> io::Result<()> {
        let mut any = false;
        while let Some(due) = self.agenda.due(monotonic_ns()) {
            any = true;
            match due {
                Due::Begin(at) => self.open(self.agenda.flow(at), None),
                Due::EndArrivals => {
                    self.incoming.iter_mut().flatten().for_each(Incoming::end_arrivals)
                }
            }
        }
        while let Some((flow, due_ns)) = self.dependent.due(monotonic_ns()) {
            any = true;
            match flow.src == self.host {
                true => self.open(flow, Some(due_ns)),
                false => self.dependent.release(flow, due_ns)?,
            }
        }
        if self.windows.due(monotonic_ns()) {
            any = true;
            self.sample();
        }
        if any {
            self.arm_timer()?;
        }
        Ok(())
    }

    fn sample(&mut self) {
        for outgoing in self.outgoing.iter().flatten() {
            let SenderRecord { index, opened_ns, established_ns, .. } = outgoing.record;
            if established_ns.is_none() || !self.windows.is_sampled(index) {
                continue;
            }
            if let Ok((known, _)) = outgoing.tcp_info() {
                self.windows.add(index, opened_ns, monotonic_ns(), &known);
            }
        }
    }

    /// Starts the flows that other hosts have released.
    fn start_released(&mut self) -> io::Result<()> {
        for (flow, due_ns) in self.dependent.released()? {
            self.open(flow, Some(due_ns));
        }
        Ok(())
    }

    /// Opens a flow. `due_ns`: when it was due, if it depends on others.
    fn open(&mut self, flow: HostFlow, due_ns: Option<u64>) {
        let from: (Ipv4Addr, u16) = (address(self.host), flow.source_port);
        let opened =
            Outgoing::open(flow, due_ns, from, (address(flow.dst), LISTEN_PORT), self.settings);
        let token = self.outgoing.len() as u64;
        match opened {
            Ok(outgoing) => match self.epoll.add(&outgoing.stream, READABLE | WRITABLE, token) {
                Ok(()) => self.outgoing.push(Some(outgoing)),
                Err(error) => self.report_error(
                    flow.index,
                    &format!(
                        "its connection cannot be watched: \
                                                            {error}"
                    ),
                ),
            },
            Err(error) => self.report_error(
                flow.index,
                &format!(
                    "its connection cannot be opened: \
                                                                  {error}"
                ),
            ),
        }
    }

    fn on_sender_event(&mut self, at: usize, events: u32) -> io::Result<()> {
        let Some(outgoing) = &mut self.outgoing[at] else { return Ok(()) };
        let index = outgoing.flow.index;
        let was_acknowledged = outgoing.is_acknowledged();
        let outcome = outgoing.on_event(events, &self.payload, self.settings);
        let wants = outgoing.interest();
        let watched = match wants == outgoing.watched_events || outgoing.is_closed {
            true => Ok(()),
            false => self.epoll.modify(&outgoing.stream, wants, at as u64),
        };
        outgoing.watched_events = wants;
        let acknowledged = outgoing.is_acknowledged() && !was_acknowledged;
        let acknowledged_ns = outgoing.record.acknowledged_ns;
        let failed = outcome.and(watched);
        if outgoing.is_closed || failed.is_err() {
            outgoing.read_final_counters();
            self.report.sent.push(outgoing.record);
            self.outgoing[at] = None;
        }
        if acknowledged {
            self.notify_supervisor(ACKNOWLEDGED);
            self.note_flow_done(index, Signal::Acknowledged, acknowledged_ns)?;
        }
        match failed {
            // The SYN was retransmitted as often as planned: the flow does not finish, here as in
            // the simulator.
            Err(error) if error.kind() != io::ErrorKind::TimedOut => {
                self.report_error(index, &format!("its sender: {error}"));
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
            let what = format!("a connection from {from} matches no planned flow");
            self.report.wrong.push(what);
            self.notify_supervisor(WRONG);
            return Ok(());
        };
        let token = INCOMING + self.incoming.len() as u64;
        self.epoll.add(&stream, READABLE, token)?;
        let ends_first = self.transport.is_closed_by_receiver();
        self.incoming.push(Some(Incoming::new(
            flow,
            stream,
            self.agenda.arrivals_ended(),
            ends_first,
        )));
        self.on_receiver_event(self.incoming.len() - 1)
    }

    fn on_receiver_event(&mut self, at: usize) -> io::Result<()> {
        let Some(incoming) = &mut self.incoming[at] else { return Ok(()) };
        let index = incoming.flow.index;
        let outcome = incoming.read(&self.payload);
        let complete_ns = incoming.record.complete_ns;
        if incoming.is_closed {
            incoming.end_arrivals();
            self.report.got.push(incoming.record);
            self.incoming[at] = None;
        }
        match outcome {
            Ok(ReadOutcome::Complete) => {
                self.notify_supervisor(RECEIVED);
                self.note_flow_done(index, Signal::Received, complete_ns)?;
            }
            Ok(ReadOutcome::More) => {}
            Err(error) => self.report_error(index, &format!("its receiver: {error}")),
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<HostReport> {
        // The content of the supervisor's message does not matter.
        let mut ignored = [0; 16];
        let _ = self.supervisor.read(&mut ignored);
        for outgoing in self.outgoing.iter_mut().flatten() {
            outgoing.read_final_counters();
            self.report.sent.push(outgoing.record);
        }
        for incoming in self.incoming.iter_mut().flatten() {
            incoming.end_arrivals();
            self.report.got.push(incoming.record);
        }
        self.report.series = self.windows.into_series();
        Ok(std::mem::take(&mut self.report))
    }
}
