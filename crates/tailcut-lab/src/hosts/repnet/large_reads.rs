//! Large reads: Node is woken for long flows per 16 KB. Reading packet by packet took half of its
//! time.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{OwnedFd, RawFd};

use crate::sys::{process, socket};

/// The bytes for which Node is woken; the rest is read at the end of the flow.
const READ_BYTES: i32 = 16_384;
/// The number of Node's descriptors that are searched for a connection.
const MAX_DESCRIPTORS: RawFd = 2_048;

/// The connections of a Node process with large reads.
pub struct LargeReads {
    node: OwnedFd,
    /// The process's descriptors of these connections; some may be closed by now.
    descriptors: Vec<RawFd>,
}

impl LargeReads {
    /// Creates the set for the process of this pidfd, with no connections.
    pub fn new(node: OwnedFd) -> LargeReads {
        LargeReads { node, descriptors: vec![] }
    }

    /// Adds the connection from that peer. If it is already closed, or the kernel forbids
    /// `pidfd_getfd`, nothing happens: Node then reads packet by packet, which is only slower.
    pub fn add(&mut self, from: SocketAddrV4) {
        let found = (0..MAX_DESCRIPTORS).find(|&descriptor| {
            self.set_low_water(descriptor, READ_BYTES, |peer| peer == from).is_ok_and(|found| found)
        });
        self.descriptors.extend(found);
    }

    /// Makes the process read everything that has arrived, and wakes it for every byte from now on.
    pub fn end(&mut self) {
        for descriptor in std::mem::take(&mut self.descriptors) {
            // The descriptor may be closed by now, or another connection, which keeps its default.
            let _ = self.set_low_water(descriptor, 1, |_| true);
        }
    }

    /// Sets the low-water mark of a descriptor's connection if its peer is `meant`; returns whether
    /// it is.
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
