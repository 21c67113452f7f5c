//! A flow at its receiver.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};

use super::driver::{Got, HostFlow};
use super::payload::Payload;
use crate::sys::monotonic_ns;

/// What has become of a flow by reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its last byte has just been read.
    Complete,
    /// Nothing of note.
    More,
}

/// A connection that another host opened.
pub struct Incoming {
    /// What it carries.
    pub flow: HostFlow,
    /// What is known of it.
    pub told: Got,
    /// Nothing more comes of it.
    pub over: bool,
    stream: TcpStream,
    read: u64,
    noted: bool,
    /// It ends the connection when it has read everything, and does not wait for the sender's end.
    ends_first: bool,
}

impl Incoming {
    /// Just accepted; `noted` when the arrivals have ended.
    pub fn new(flow: HostFlow, stream: TcpStream, noted: bool, ends_first: bool) -> Incoming {
        let told = Got { index: flow.index, ..Got::default() };
        Incoming { flow, told, stream, read: 0, over: false, noted, ends_first }
    }

    /// The arrivals have ended.
    pub fn note(&mut self) {
        if !self.noted {
            self.noted = true;
            self.told.in_arrivals = self.read;
        }
    }

    /// Reads what there is, and compares it with what was sent.
    ///
    /// # Errors
    /// Bytes that are not what was sent, or too many or too few of them; the kernel's errors.
    pub fn read(&mut self, payload: &Payload) -> io::Result<Step> {
        let mut step = Step::More;
        let mut found = [0; 65_536];
        while !self.over {
            match self.stream.read(&mut found) {
                Ok(0) => {
                    self.over = true;
                    if self.read < self.flow.bytes {
                        let message =
                            format!("it ended after {} of {} bytes", self.read, self.flow.bytes);
                        return Err(io::Error::other(message));
                    }
                    let _ = self.stream.shutdown(Shutdown::Both);
                }
                Ok(count) => {
                    self.check(payload, &found[..count])?;
                    if self.told.complete_ns.is_none() && self.read == self.flow.bytes {
                        self.told.complete_ns = Some(monotonic_ns());
                        step = Step::Complete;
                        if self.ends_first {
                            self.stream.shutdown(Shutdown::Write)?;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.over = true;
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
        self.over = true;
        Err(io::Error::other(message))
    }
}
