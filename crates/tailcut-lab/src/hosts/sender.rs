//! The sending end of a flow.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, TcpStream};

use crate::host_settings::HostSettings;
use crate::hosts::host_flow::HostFlow;
use crate::messages::SenderRecord;
use crate::payload::Payload;
use crate::sys::epoll::{READABLE, WRITABLE};
use crate::sys::{monotonic_ns, realtime_ns, socket};
use crate::transports::{self, KernelTransport};

/// The bytes of a flow that are handed to the kernel before other flows get a turn. Filling the
/// kernel's buffer of 4 MB takes 10 ms and more. While there is room, the flow's next turn comes at
/// once.
const TURN_BYTES: u64 = 256 * 1024;

/// A connection that this host opened, and the flow that it carries.
pub struct Outgoing {
    /// The flow.
    pub flow: HostFlow,
    /// The connection.
    pub stream: TcpStream,
    /// The sender's record of the flow.
    pub record: SenderRecord,
    /// The events that are watched for.
    pub watched_events: u32,
    /// Whether the connection is closed.
    pub is_closed: bool,
    transport: &'static dyn KernelTransport,
    established: bool,
    /// Retransmissions of the handshake, which do not count as data.
    syn_retransmissions: u32,
    sent: u64,
}

impl Outgoing {
    /// Opens the connection of a flow.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(
        flow: HostFlow,
        due_ns: Option<u64>,
        from: (Ipv4Addr, u16),
        to: (Ipv4Addr, u16),
        settings: &HostSettings,
    ) -> io::Result<Outgoing> {
        let opened_ns = monotonic_ns();
        let transport = transports::by_name(settings.transport);
        let stream = socket::connect(from, to, transport.protocol(), |socket| {
            transport.configure(socket, settings)
        })?;
        Ok(Outgoing {
            flow,
            stream,
            record: SenderRecord {
                index: flow.index,
                due_ns,
                opened_ns,
                ..SenderRecord::default()
            },
            watched_events: READABLE | WRITABLE,
            is_closed: false,
            transport,
            established: false,
            syn_retransmissions: 0,
            sent: 0,
        })
    }

    /// Whether the sender knows that every byte has arrived.
    pub fn is_acknowledged(&self) -> bool {
        self.record.acknowledged_ns.is_some()
    }

    /// Returns the events to watch for.
    pub fn interest(&self) -> u32 {
        match self.sent < self.flow.bytes {
            true => READABLE | WRITABLE,
            false => READABLE,
        }
    }

    /// Handles events of the connection.
    ///
    /// # Errors
    /// The kernel's error, for instance if the connection could not be established.
    pub fn on_event(
        &mut self,
        events: u32,
        payload: &Payload,
        settings: &HostSettings,
    ) -> io::Result<()> {
        if !self.established {
            if events & WRITABLE == 0 {
                return Ok(());
            }
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            self.establish(settings)?;
        }
        self.read_ack_timestamps()?;
        self.send(payload, settings)?;
        if events & READABLE != 0 {
            self.notice_end()?;
        }
        Ok(())
    }

    fn establish(&mut self, settings: &HostSettings) -> io::Result<()> {
        self.record.established_ns = Some(monotonic_ns());
        self.established = true;
        self.syn_retransmissions = self.tcp_info()?.0.retransmissions;
        let congestion = socket::congestion_control(&self.stream)?;
        if congestion != settings.congestion {
            let message =
                format!("its congestion control is {congestion}, not {}", settings.congestion);
            return Err(io::Error::other(message));
        }
        match self.transport.is_closed_by_receiver() {
            true => Ok(()),
            false => socket::enable_ack_timestamps(&self.stream),
        }
    }

    fn send(&mut self, payload: &Payload, settings: &HostSettings) -> io::Result<()> {
        let receivers_end = self.transport.is_closed_by_receiver();
        let turn_ends = self.sent + TURN_BYTES;
        while self.sent < self.flow.bytes.min(turn_ends) {
            let left = self.flow.bytes - self.sent;
            let part = payload.slice(self.flow.index, self.sent, left.min(turn_ends - self.sent));
            let last = part.len() as u64 == left;
            // The last segment is held back until the connection is closed, so that it carries the
            // FIN.
            let closes = settings.closes && !receivers_end;
            match socket::send(&self.stream, part, !last || closes, last && !receivers_end) {
                Ok(taken) => self.sent += taken as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.sent == self.flow.bytes && closes {
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        Ok(())
    }

    /// Reads the requested ACK timestamps.
    fn read_ack_timestamps(&mut self) -> io::Result<()> {
        while !self.transport.is_closed_by_receiver() {
            match socket::next_ack_timestamp(&self.stream) {
                Ok(Some((byte, real_ns))) if byte == (self.flow.bytes - 1) as u32 => {
                    let ago = realtime_ns().saturating_sub(real_ns);
                    self.record.acknowledged_ns.get_or_insert(monotonic_ns().saturating_sub(ago));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Handles the end of the receiver's stream; receivers send no data.
    fn notice_end(&mut self) -> io::Result<()> {
        let mut found = [0; 16];
        match self.stream.read(&mut found) {
            Ok(0) => {
                self.read_ack_timestamps()?;
                if self.transport.is_closed_by_receiver() && self.sent == self.flow.bytes {
                    self.record.acknowledged_ns = Some(monotonic_ns());
                }
                self.is_closed = true;
                Ok(())
            }
            Ok(_) => Err(io::Error::other("the receiver has sent something")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads the kernel's counters, summed over all subflows, and the number of subflows.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn tcp_info(&self) -> io::Result<(socket::TcpInfo, u32)> {
        self.transport.tcp_info(&self.stream)
    }

    /// Reads the kernel's counters into the record, at the end of the flow.
    pub fn read_final_counters(&mut self) {
        if let Ok((known, subflows)) = self.tcp_info() {
            self.record.subflows = subflows;
            self.record.data_packets = u64::from(known.data_segments);
            self.record.retransmissions = match self.established {
                true => u64::from(known.retransmissions.saturating_sub(self.syn_retransmissions)),
                false => 0,
            };
            self.record.duplicates = u64::from(known.duplicates);
            self.record.timeouts = u32::from(known.timeouts.unwrap_or(0));
            self.record.counts_timeouts = known.timeouts.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::sys::epoll::Epoll;
    use crate::sys::epoll::TIMER;

    #[test]
    fn a_long_flow_sends_at_most_one_turn_at_a_time() {
        let home = Ipv4Addr::LOCALHOST;
        let listener = TcpListener::bind((home, 0)).expect("a port is free");
        let to = listener.local_addr().expect("it has an address").port();
        let flow = HostFlow { bytes: 10_000_000, ..HostFlow::default() };
        let mut settings = HostSettings { transport: "tcp", ..HostSettings::default() };
        let opened = Outgoing::open(flow, None, (home, 0), (home, to), &settings);
        let mut outgoing = opened.expect("somebody listens");
        settings.congestion = socket::congestion_control(&outgoing.stream).expect("it has one");
        let (_reader, _) = listener.accept().expect("it has just connected");
        let payload = Payload::default();
        let mut before = 0;
        for _ in 0..3 {
            outgoing.on_event(WRITABLE, &payload, &settings).expect("it is established");
            assert!(outgoing.sent - before <= TURN_BYTES, "{} bytes", outgoing.sent - before);
            before = outgoing.sent;
        }
        assert!(before > 0);
    }
    #[test]
    fn retransmitted_syns_are_not_counted_as_data_retransmissions() {
        const TICK_NS: u64 = 10_000_000;
        let home = Ipv4Addr::LOCALHOST;
        let listener = TcpListener::bind((home, 0)).expect("a port is free");
        socket::set_backlog_of_one(&listener).expect("it listens");
        let at = listener.local_addr().expect("it has an address");
        let _first = TcpStream::connect(at).expect("somebody listens");
        let (epoll, mut happened) = (Epoll::new().expect("it can be had"), vec![]);
        epoll.add(&listener, READABLE, 0).expect("it is open");
        epoll.wait(&mut happened).expect("it waits");

        let flow = HostFlow { bytes: 1_000, ..HostFlow::default() };
        let mut settings = HostSettings { transport: "tcp", ..HostSettings::default() };
        let opened = Outgoing::open(flow, None, (home, 0), (home, at.port()), &settings);
        let mut outgoing = opened.expect("it need not be established");
        settings.congestion = socket::congestion_control(&outgoing.stream).expect("it has one");
        let again =
            |outgoing: &Outgoing| outgoing.tcp_info().expect("it is open").0.retransmissions;
        let epoll = Epoll::new().expect("it can be had");
        epoll.add(&outgoing.stream, WRITABLE, 0).expect("it is open");
        while again(&outgoing) == 0 {
            epoll.wake_at(monotonic_ns() + TICK_NS).expect("it is a time");
            epoll.wait(&mut happened).expect("it waits");
            assert!(happened.iter().all(|(token, _)| *token == TIMER), "its SYN found room");
        }
        outgoing.read_final_counters();
        assert_eq!(outgoing.record.retransmissions, 0);

        let (_taken, _) = listener.accept().expect("the first waits");
        while !happened.iter().any(|(token, _)| *token != TIMER) {
            epoll.wait(&mut happened).expect("it waits");
        }
        outgoing.on_event(WRITABLE, &Payload::default(), &settings).expect("it is established");
        outgoing.read_final_counters();
        assert!(again(&outgoing) > 0);
        assert_eq!(outgoing.record.retransmissions, 0);
    }
}
