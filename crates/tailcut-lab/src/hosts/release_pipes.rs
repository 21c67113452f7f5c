//! What hosts tell each other beside the fabric: that it is a flow's turn, which another host sends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use crate::sys::process::pipe;

/// Bytes of what is told: a flow, and when it was due. Less than a page, so that none is torn apart.
const MESSAGE_BYTES: usize = 16;

/// A pipe for each host, which all of them write to.
pub struct ReleasePipes {
    pipes: Vec<(File, File)>,
}

impl ReleasePipes {
    /// Pipes for so many hosts, to be made before there are hosts.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(hosts: u32) -> io::Result<ReleasePipes> {
        Ok(ReleasePipes { pipes: (0..hosts).map(|_| pipe()).collect::<io::Result<_>>()? })
    }

    /// Where a host hears of its turns.
    pub fn read_end(&self, host: u32) -> &impl AsRawFd {
        &self.pipes[host as usize].0
    }

    /// Tells a host that it is a flow's turn, since `due_ns`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&self, host: u32, flow: u64, due_ns: u64) -> io::Result<()> {
        let mut told = [0; MESSAGE_BYTES];
        told[..8].copy_from_slice(&flow.to_ne_bytes());
        told[8..].copy_from_slice(&due_ns.to_ne_bytes());
        (&self.pipes[host as usize].1).write_all(&told)
    }

    /// What a host has been told, once there is something.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&self, host: u32) -> io::Result<Vec<(u64, u64)>> {
        let mut told = [0; 256 * MESSAGE_BYTES];
        let count = (&self.pipes[host as usize].0).read(&mut told)?;
        let number = |bytes: &[u8]| {
            u64::from_ne_bytes(bytes.try_into().expect("eight bytes are eight bytes"))
        };
        let each = told[..count].chunks_exact(MESSAGE_BYTES);
        Ok(each.map(|one| (number(&one[..8]), number(&one[8..]))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_receives_its_own_releases_in_order() {
        let turns = ReleasePipes::new(3).expect("there are pipes");
        for flow in 0..300 {
            turns.send(2, flow, 1_000 + flow).expect("there is room");
        }
        turns.send(1, 7, 9).expect("there is room");
        assert_eq!(turns.receive(1).expect("it is told"), [(7, 9)]);
        let mut heard = turns.receive(2).expect("it is told");
        assert_eq!(heard.len(), 256);
        heard.extend(turns.receive(2).expect("there is more"));
        assert!(heard.into_iter().eq((0..300).map(|flow| (flow, 1_000 + flow))));
    }
}
