//! A flow at its sender.

use std::io::{self, Read};
use std::net::Shutdown;
use std::net::{Ipv4Addr, TcpStream};

use super::driver::{HostFlow, Sent};
use crate::payload::Payload;
use crate::settings::HostSettings;
use crate::sys::epoll::{READABLE, WRITABLE};
use crate::sys::{monotonic_ns, realtime_ns, socket};
use crate::transports::{self, Transport};

/// So many bytes of a flow are handed to the kernel before others get their turn. A buffer of the kernel's has room for 4 MB, which take
/// ten milliseconds and more. While there is room, its turn comes again at once.
const TURN: u64 = 256 * 1024;

/// A connection that this host opened.
pub struct Outgoing {
    /// What it carries.
    pub flow: HostFlow,
    /// The connection.
    pub stream: TcpStream,
    /// What is known of it.
    pub told: Sent,
    /// What is watched for.
    pub watched: u32,
    /// Nothing more comes of it.
    pub over: bool,
    transport: &'static dyn Transport,
    established: bool,
    /// Retransmissions of the handshake, which are none of data.
    syns_again: u32,
    sent: u64,
}

impl Outgoing {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(
        flow: HostFlow,
        due_ns: Option<u64>,
        from: (Ipv4Addr, u16),
        to: (Ipv4Addr, u16),
        settings: &HostSettings,
    ) -> io::Result<Outgoing> {
        let opened_ns = monotonic_ns();
        let transport = transports::named(settings.transport);
        let stream = socket::connect(from, to, transport.protocol(), |socket| {
            transport.prepare(socket, settings)
        })?;
        Ok(Outgoing {
            flow,
            stream,
            told: Sent { index: flow.index, due_ns, opened_ns, ..Sent::default() },
            watched: READABLE | WRITABLE,
            over: false,
            transport,
            established: false,
            syns_again: 0,
            sent: 0,
        })
    }

    /// Whether the sender knows that every byte has arrived.
    pub fn is_acknowledged(&self) -> bool {
        self.told.acknowledged_ns.is_some()
    }

    /// What is to be watched for.
    pub fn wants(&self) -> u32 {
        match self.sent < self.flow.bytes {
            true => READABLE | WRITABLE,
            false => READABLE,
        }
    }

    /// Something happened to it.
    ///
    /// # Errors
    /// The kernel's, such as a connection that could not be established.
    pub fn on(
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
        self.hear()?;
        self.send(payload, settings)?;
        if events & READABLE != 0 {
            self.notice_end()?;
        }
        Ok(())
    }

    fn establish(&mut self, settings: &HostSettings) -> io::Result<()> {
        self.told.established_ns = Some(monotonic_ns());
        self.established = true;
        self.syns_again = self.known()?.0.retransmissions;
        let congestion = socket::congestion(&self.stream)?;
        if congestion != settings.congestion {
            let message =
                format!("its congestion control is {congestion}, not {}", settings.congestion);
            return Err(io::Error::other(message));
        }
        match self.transport.receivers_end() {
            true => Ok(()),
            false => socket::count_acknowledgements(&self.stream),
        }
    }

    fn send(&mut self, payload: &Payload, settings: &HostSettings) -> io::Result<()> {
        let receivers_end = self.transport.receivers_end();
        let turn_ends = self.sent + TURN;
        while self.sent < self.flow.bytes.min(turn_ends) {
            let left = self.flow.bytes - self.sent;
            let part = payload.of(self.flow.index, self.sent, left.min(turn_ends - self.sent));
            let last = part.len() as u64 == left;
            // The last segment waits for the end of the connection, which it then carries.
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

    /// Takes in the acknowledgements that were asked for.
    fn hear(&mut self) -> io::Result<()> {
        while !self.transport.receivers_end() {
            match socket::acknowledgement(&self.stream) {
                Ok(Some((byte, real_ns))) if byte == (self.flow.bytes - 1) as u32 => {
                    let ago = realtime_ns().saturating_sub(real_ns);
                    self.told.acknowledged_ns.get_or_insert(monotonic_ns().saturating_sub(ago));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The receiver has closed the connection, or sent what it has no reason to send.
    fn notice_end(&mut self) -> io::Result<()> {
        let mut found = [0; 16];
        match self.stream.read(&mut found) {
            Ok(0) => {
                self.hear()?;
                if self.transport.receivers_end() && self.sent == self.flow.bytes {
                    self.told.acknowledged_ns = Some(monotonic_ns());
                }
                self.over = true;
                Ok(())
            }
            Ok(_) => Err(io::Error::other("the receiver has sent something")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the kernel knows, of all its subflows together, and how many there are.
    ///
    /// # Errors
    /// The kernel's.
    pub fn known(&self) -> io::Result<(socket::Known, u32)> {
        self.transport.known(&self.stream)
    }

    /// Asks the kernel what it knows, for the last time.
    pub fn look(&mut self) {
        if let Ok((known, subflows)) = self.known() {
            self.told.subflows = subflows;
            self.told.data_packets = u64::from(known.data_segments);
            self.told.retransmissions = match self.established {
                true => u64::from(known.retransmissions.saturating_sub(self.syns_again)),
                false => 0,
            };
            self.told.duplicates = u64::from(known.duplicates);
            self.told.timeouts = u32::from(known.timeouts.unwrap_or(0));
            self.told.counts_timeouts = known.timeouts.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::sys::epoll::{Epoll, TIMER};

    #[test]
    fn a_long_flow_leaves_others_their_turn() {
        let home = Ipv4Addr::LOCALHOST;
        let listener = TcpListener::bind((home, 0)).expect("a port is free");
        let to = listener.local_addr().expect("it has an address").port();
        let flow = HostFlow { bytes: 10_000_000, ..HostFlow::default() };
        let mut settings = HostSettings { transport: "tcp", ..HostSettings::default() };
        let opened = Outgoing::open(flow, None, (home, 0), (home, to), &settings);
        let mut outgoing = opened.expect("somebody listens");
        settings.congestion = socket::congestion(&outgoing.stream).expect("it has one");
        let (_reader, _) = listener.accept().expect("it has just connected");
        let payload = Payload::default();
        let mut before = 0;
        for _ in 0..3 {
            outgoing.on(WRITABLE, &payload, &settings).expect("it is established");
            assert!(outgoing.sent - before <= TURN, "{} bytes", outgoing.sent - before);
            before = outgoing.sent;
        }
        assert!(before > 0);
    }
    #[test]
    fn syns_that_are_sent_again_are_no_retransmissions_of_data() {
        const TICK_NS: u64 = 10_000_000;
        let home = Ipv4Addr::LOCALHOST;
        let listener = TcpListener::bind((home, 0)).expect("a port is free");
        socket::let_one_wait(&listener).expect("it listens");
        let at = listener.local_addr().expect("it has an address");
        let _first = TcpStream::connect(at).expect("somebody listens");
        let (epoll, mut happened) = (Epoll::new().expect("it can be had"), vec![]);
        epoll.add(&listener, READABLE, 0).expect("it is open");
        epoll.wait(&mut happened).expect("it waits");

        let flow = HostFlow { bytes: 1_000, ..HostFlow::default() };
        let mut settings = HostSettings { transport: "tcp", ..HostSettings::default() };
        let opened = Outgoing::open(flow, None, (home, 0), (home, at.port()), &settings);
        let mut outgoing = opened.expect("it need not be established");
        settings.congestion = socket::congestion(&outgoing.stream).expect("it has one");
        let again = |outgoing: &Outgoing| outgoing.known().expect("it is open").0.retransmissions;
        let epoll = Epoll::new().expect("it can be had");
        epoll.add(&outgoing.stream, WRITABLE, 0).expect("it is open");
        while again(&outgoing) == 0 {
            epoll.wake_at(monotonic_ns() + TICK_NS).expect("it is a time");
            epoll.wait(&mut happened).expect("it waits");
            assert!(happened.iter().all(|(token, _)| *token == TIMER), "its SYN found room");
        }
        outgoing.look();
        assert_eq!(outgoing.told.retransmissions, 0);

        let (_taken, _) = listener.accept().expect("the first waits");
        while !happened.iter().any(|(token, _)| *token != TIMER) {
            epoll.wait(&mut happened).expect("it waits");
        }
        outgoing.on(WRITABLE, &Payload::default(), &settings).expect("it is established");
        outgoing.look();
        assert!(again(&outgoing) > 0);
        assert_eq!(outgoing.told.retransmissions, 0);
    }
}
