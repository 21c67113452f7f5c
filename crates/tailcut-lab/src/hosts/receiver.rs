//! The receiving end of a flow.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};

use crate::hosts::host_flow::HostFlow;
use crate::messages::ReceiverRecord;
use crate::payload::Payload;
use crate::sys::monotonic_ns;

/// The result of reading from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The last byte of the flow has just been read.
    Complete,
    /// The flow is not complete, or was complete before.
    More,
}

/// An accepted connection, and the flow that it carries.
pub struct Incoming {
    /// The flow.
    pub flow: HostFlow,
    /// The receiver's record of the flow.
    pub record: ReceiverRecord,
    /// Whether the connection is closed.
    pub is_closed: bool,
    stream: TcpStream,
    read: u64,
    arrivals_ended: bool,
    /// Whether this end closes the connection when it has read everything, before the sender does.
    closes_first: bool,
}

impl Incoming {
    /// Creates the receiver of a connection just accepted; `noted`: whether the arrivals have
    /// ended.
    pub fn new(flow: HostFlow, stream: TcpStream, noted: bool, ends_first: bool) -> Incoming {
        let told = ReceiverRecord { index: flow.index, ..ReceiverRecord::default() };
        Incoming {
            flow,
            record: told,
            stream,
            read: 0,
            is_closed: false,
            arrivals_ended: noted,
            closes_first: ends_first,
        }
    }

    /// Records the bytes read so far, when the arrivals end.
    pub fn end_arrivals(&mut self) {
        if !self.arrivals_ended {
            self.arrivals_ended = true;
            self.record.in_arrivals = self.read;
        }
    }

    /// Reads the available bytes, and compares them with the flow's payload.
    ///
    /// # Errors
    /// Bytes differ from the payload, are missing or superfluous, or the kernel's error.
    pub fn read(&mut self, payload: &Payload) -> io::Result<ReadOutcome> {
        let mut step = ReadOutcome::More;
        let mut found = [0; 65_536];
        while !self.is_closed {
            match self.stream.read(&mut found) {
                Ok(0) => {
                    self.is_closed = true;
                    if self.read < self.flow.bytes {
                        let message = format!(
                            "the connection was closed after {} of {} bytes",
                            self.read, self.flow.bytes
                        );
                        return Err(io::Error::other(message));
                    }
                    let _ = self.stream.shutdown(Shutdown::Both);
                }
                Ok(count) => {
                    self.check(payload, &found[..count])?;
                    if self.record.complete_ns.is_none() && self.read == self.flow.bytes {
                        self.record.complete_ns = Some(monotonic_ns());
                        step = ReadOutcome::Complete;
                        if self.closes_first {
                            self.stream.shutdown(Shutdown::Write)?;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.is_closed = true;
                    return Err(error);
                }
            }
        }
        Ok(step)
    }

    fn check(&mut self, payload: &Payload, found: &[u8]) -> io::Result<()> {
        let wrong = payload.mismatch(self.flow.index, self.read, found);
        self.read += found.len() as u64;
        let message = match wrong {
            Some(at) => format!("byte {at} is not the one that was sent"),
            None if self.read > self.flow.bytes => "more bytes than were sent".to_owned(),
            None => return Ok(()),
        };
        self.is_closed = true;
        Err(io::Error::other(message))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    const BYTES: u64 = 4_000;

    /// Returns the result of reading these bytes and the end of the connection.
    fn reads(bytes: &[u8]) -> Result<ReadOutcome, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let place = listener.local_addr().expect("it has an address");
        let mut sender = TcpStream::connect(place).expect("it listens");
        let (stream, _) = listener.accept().expect("it has just connected");
        sender.write_all(bytes).expect("there is room");
        drop(sender);
        let flow = HostFlow { index: 3, bytes: BYTES, ..HostFlow::default() };
        let mut incoming = Incoming::new(flow, stream, false, false);
        incoming.read(&Payload::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_flow_is_complete_and_wrong_repeated_or_lost_bytes_are_errors() {
        let payload = Payload::default();
        let sent = payload.slice(3, 0, BYTES);
        assert_eq!(reads(sent), Ok(ReadOutcome::Complete));
        let wrong = |at: u64| Err(format!("byte {at} is not the one that was sent"));
        let mut corrupted = sent.to_vec();
        corrupted[1_500] ^= 0x10;
        assert_eq!(reads(&corrupted), wrong(1_500));
        let first = |bytes: &[u8], other: &[u8]| {
            let differs = bytes.iter().zip(other).position(|(one, other)| one != other);
            differs.expect("they differ") as u64
        };
        let doubled = [&sent[..2_001], &sent[2_000..]].concat();
        assert_eq!(reads(&doubled), wrong(first(&doubled, sent)));
        let lost = [&sent[..2_000], &sent[2_001..]].concat();
        assert_eq!(reads(&lost), wrong(first(&lost, sent)));
        let again = [sent, payload.slice(3, BYTES, 1)].concat();
        assert_eq!(reads(&again), Err("more bytes than were sent".to_owned()));
        assert_eq!(
            reads(&sent[..3_999]),
            Err("the connection was closed after 3999 of 4000 bytes".to_owned())
        );
    }
}
