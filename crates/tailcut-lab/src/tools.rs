//! Tools of the system that set up namespaces. Their input is standard input; no shell is involved.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const PLACES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// A tool, and the package that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// `ip`: interfaces, addresses, routes and rules.
    Ip,
    /// `tc`: queues.
    Tc,
    /// `nft`: packet marks.
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
            io::Error::other(format!("`{name}` is not installed: install the package {package}"))
        })
    }

    /// Runs a batch of commands. The commands must not contain text from outside the lab.
    ///
    /// # Errors
    /// The tool's error messages.
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
        // A tool that exits at an early line breaks the pipe for the rest: its own error counts.
        let told = child.stdin.take().map_or(Ok(()), |mut to| to.write_all(lines.as_bytes()));
        let done = child.wait_with_output()?;
        match done.status.success() {
            true => told,
            false => Err(self.error(&done.stderr)),
        }
    }

    /// Runs the tool and returns its standard output.
    ///
    /// # Errors
    /// The tool is missing or fails.
    pub fn output(self, arguments: &[&str]) -> io::Result<String> {
        let done = self.command()?.args(arguments).stdin(Stdio::null()).output()?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(self.error(&done.stderr)),
        }
    }

    /// Returns the tool's version string.
    ///
    /// # Errors
    /// The tool is missing.
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
