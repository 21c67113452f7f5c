//! Pipes between host processes, outside the fabric: the host that decides about a dependent flow
//! releases it at its sender.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use crate::sys::process::pipe;

/// The size of a message: flow index and due time. Below PIPE_BUF, so writes are atomic.
const MESSAGE_BYTES: usize = 16;

/// A pipe per host, to which all hosts write.
pub struct ReleasePipes {
    pipes: Vec<(File, File)>,
}

impl ReleasePipes {
    /// Creates the pipes, before the processes of hosts are forked.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new(hosts: u32) -> io::Result<ReleasePipes> {
        Ok(ReleasePipes { pipes: (0..hosts).map(|_| pipe()).collect::<io::Result<_>>()? })
    }

    /// Returns the end from which a host reads.
    pub fn read_end(&self, host: u32) -> &impl AsRawFd {
        &self.pipes[host as usize].0
    }

    /// Releases a flow at a host, due since `due_ns`.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send(&self, host: u32, flow: u64, due_ns: u64) -> io::Result<()> {
        let mut told = [0; MESSAGE_BYTES];
        told[..8].copy_from_slice(&flow.to_ne_bytes());
        told[8..].copy_from_slice(&due_ns.to_ne_bytes());
        (&self.pipes[host as usize].1).write_all(&told)
    }

    /// Reads the flows released at a host, and when each was due; blocks until there are some.
    ///
    /// # Errors
    /// The kernel's error.
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
