//! The system's tools that set namespaces up. They are told what to do by their standard input, and no shell has a part in it.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const PLACES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// A tool, and the package that it comes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Interfaces, addresses, routes and rules.
    Ip,
    /// Queues.
    Tc,
    /// What marks packets.
    Nft,
}

impl Tool {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Tool::Ip => ("ip", "iproute2"),
            Tool::Tc => ("tc", "iproute2"),
            Tool::Nft => ("nft", "nftables"),
        }
    }

    fn command(self) -> io::Result<Command> {
        let (name, package) = self.names();
        let mut places = PLACES.iter().map(|place| Path::new(place).join(name));
        places.find(|path| path.exists()).map(Command::new).ok_or_else(|| {
            io::Error::other(format!("there is no `{name}`: install the package {package}"))
        })
    }

    /// Does what the lines say; nothing in them comes from outside the lab.
    ///
    /// # Errors
    /// What it said.
    pub fn run_batch(self, lines: &str) -> io::Result<()> {
        let arguments: &[&str] = match self {
            Tool::Ip | Tool::Tc => &["-batch", "-"],
            Tool::Nft => &["-f", "-"],
        };
        let mut child = self
            .command()?
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        // A tool that ends at its first line breaks the pipe of the others: what it says counts.
        let told = child.stdin.take().map_or(Ok(()), |mut to| to.write_all(lines.as_bytes()));
        let done = child.wait_with_output()?;
        match done.status.success() {
            true => told,
            false => Err(self.error(&done.stderr)),
        }
    }

    /// What it says.
    ///
    /// # Errors
    /// When it is not there, or fails.
    pub fn output(self, arguments: &[&str]) -> io::Result<String> {
        let done = self.command()?.args(arguments).stdin(Stdio::null()).output()?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(self.error(&done.stderr)),
        }
    }

    /// Its version, as it says it.
    ///
    /// # Errors
    /// When it is not there.
    pub fn version(self) -> io::Result<String> {
        let asked = match self {
            Tool::Ip | Tool::Tc => "-Version",
            Tool::Nft => "--version",
        };
        Ok(self.output(&[asked])?.trim().to_owned())
    }

    fn error(self, said: &[u8]) -> io::Error {
        let said = String::from_utf8_lossy(said);
        io::Error::other(format!("{}: {}", self.names().0, said.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_tool_is_reported_when_it_stops_reading_its_input() {
        let lines = "wrong\n".repeat(50_000);
        let error = Tool::Ip.run_batch(&lines).expect_err("`ip` knows no such object").to_string();
        assert!(error.starts_with("ip: ") && error.contains("wrong"), "{error}");
    }
}
