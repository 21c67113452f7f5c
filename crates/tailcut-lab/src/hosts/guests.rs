//! Programs of the caller's on a host, beside the flows of the plan: a service and its clients, say.

use std::io;
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::sys::latency;

/// A program, and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Guest {
    /// On which host.
    pub host: u32,
    /// It and its arguments; no shell has a part in it.
    pub command: Vec<String>,
}

/// The guests of one host. They end with the lab, as everything in its PID namespace does.
#[derive(Default)]
pub struct Guests(Vec<(String, Child)>);

impl Guests {
    /// Starts those of a host.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(&mut self, host: u32, guests: &[Guest]) -> io::Result<()> {
        for guest in guests.iter().filter(|guest| guest.host == host) {
            let (name, arguments) = guest
                .command
                .split_first()
                .ok_or_else(|| io::Error::other("a guest has no command"))?;
            // Standard output is where the lab tells its caller what it does.
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

    /// Those that have failed so far.
    pub fn failed(&mut self) -> Vec<String> {
        let failed = self.0.iter_mut().filter_map(|(name, child)| {
            let status = child.try_wait().ok().flatten()?;
            (!status.success()).then(|| format!("the guest {name} has ended with {status}"))
        });
        failed.collect()
    }
}

/// A guest's program. It gives way to the fabric and to the lab's own part of the host.
pub fn command(program: &str) -> Command {
    let mut command = command_without_node_settings(program);
    latency::lower_priority(&mut command);
    command
}

/// A program without the settings that the user has for Node and repnet.
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
