//! Node is woken for long flows by 16 KB: packet by packet, reading took it half of its time.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{OwnedFd, RawFd};

use crate::sys::{process, socket};

/// Node reads so many bytes at a time, and the rest when the end of the flow comes.
const READ_BYTES: i32 = 16_384;
/// Connections are sought among as many of its descriptors as this.
const MAX_DESCRIPTORS: RawFd = 2_048;

/// The connections of a Node process that it reads in pieces.
pub struct LargeReads {
    node: OwnedFd,
    /// By which descriptors the process has, or had, them open.
    descriptors: Vec<RawFd>,
}

impl LargeReads {
    /// Those of the process with this pidfd: none so far.
    pub fn new(node: OwnedFd) -> LargeReads {
        LargeReads { node, descriptors: vec![] }
    }

    /// And the one that comes from there. A connection that is over by now is not found; nor is any where a kernel forbids to look,
    /// which costs time and nothing else.
    pub fn add(&mut self, from: SocketAddrV4) {
        let found = (0..MAX_DESCRIPTORS).find(|&descriptor| {
            self.set_low_water(descriptor, READ_BYTES, |peer| peer == from).is_ok_and(|found| found)
        });
        self.descriptors.extend(found);
    }

    /// Has the process read all that has come, and be woken for each byte from now on.
    pub fn end(&mut self) {
        for descriptor in std::mem::take(&mut self.descriptors) {
            // It may be closed by now, or another connection, which this does not change.
            let _ = self.set_low_water(descriptor, 1, |_| true);
        }
    }

    /// Whether the descriptor is a connection from a peer that is `meant`; if so, it is woken for so many bytes.
    fn set_low_water(
        &self,
        descriptor: RawFd,
        bytes: i32,
        meant: impl Fn(SocketAddrV4) -> bool,
    ) -> io::Result<bool> {
        let socket = process::duplicate_from(&self.node, descriptor)?;
        let is_meant = meant(socket::peer(&socket)?);
        if is_meant {
            socket::set_receive_low_water(&socket, bytes)?;
        }
        Ok(is_meant)
    }
}
