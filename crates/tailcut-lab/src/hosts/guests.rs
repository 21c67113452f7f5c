//! Guests: programs of the caller on a host beside the plan's flows, for instance a service and its
//! clients.

use std::io;
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::sys::latency;

/// A program to run on a host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Guest {
    /// The host.
    pub host: u32,
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
}

/// The running guests of one host. They exit with the lab, like everything in its PID namespace.
#[derive(Default)]
pub struct Guests(Vec<(String, Child)>);

impl Guests {
    /// Starts the guests of a host.
    ///
    /// # Errors
    /// A guest cannot be started.
    pub fn start(&mut self, host: u32, guests: &[Guest]) -> io::Result<()> {
        for guest in guests.iter().filter(|guest| guest.host == host) {
            let (name, arguments) = guest
                .command
                .split_first()
                .ok_or_else(|| io::Error::other("a guest has no command"))?;
            // Standard output carries the lab's messages to its caller.
            let child = command(name)
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| io::Error::other(format!("{name}: {error}")))?;
            self.0.push((name.clone(), child));
        }
        Ok(())
    }

    /// Returns an error message for each guest that has failed.
    pub fn failed(&mut self) -> Vec<String> {
        let failed = self.0.iter_mut().filter_map(|(name, child)| {
            let status = child.try_wait().ok().flatten()?;
            (!status.success()).then(|| format!("the guest {name} has failed: {status}"))
        });
        failed.collect()
    }
}

/// Prepares a guest's program, with a lower priority than the fabric and the lab's own part of the
/// host.
pub fn command(program: &str) -> Command {
    let mut command = command_without_node_settings(program);
    latency::lower_priority(&mut command);
    command
}

/// Prepares a program without the user's environment variables for Node and repnet.
pub fn command_without_node_settings(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("NODE_") || name.starts_with("REPNET_") {
            command.env_remove(name.as_ref());
        }
    }
    command
}
