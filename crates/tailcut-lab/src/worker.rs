//! Processes of the lab, and messages to and from them: JSON, one line each.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sys::process;

/// The time that a process has for an answer. No machine needs as long; a process that exits is
/// noticed at once. It exceeds Node's own timeout, whose error names the cause.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(360);

/// A child process of the lab, and the channel to it.
pub struct Worker {
    /// Its name in messages to the user.
    pub name: String,
    /// The process id.
    pub pid: i32,
    /// The supervisor's end of the channel.
    pub channel: UnixStream,
}

/// Forks a child that does its work and exits. The child is killed when this process exits.
///
/// # Errors
/// The kernel's error.
pub fn start(
    name: impl Into<String>,
    work: impl FnOnce(UnixStream) -> io::Result<()>,
) -> io::Result<Worker> {
    let supervisor = process::id();
    let (ours, theirs) = process::channel()?;
    match process::fork()? {
        process::Forked::Child => {
            drop(ours);
            let worked = process::die_with_parent(supervisor).and_then(|()| work(theirs));
            process::exit(i32::from(worked.is_err()));
        }
        process::Forked::Parent(pid) => {
            drop(theirs);
            ours.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            Ok(Worker { name: name.into(), pid, channel: ours })
        }
    }
}

/// Sends a line of JSON.
///
/// # Errors
/// The kernel's error.
pub fn send_json<T: Serialize>(mut channel: &UnixStream, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    channel.write_all(&line)
}

/// Receives the result that a process sends: a line of JSON.
///
/// # Errors
/// The error that the process sent, its exit, or a timeout.
pub fn receive_result<T: for<'de> Deserialize<'de>>(worker: &Worker) -> io::Result<T> {
    let Worker { name, channel, .. } = worker;
    let mut line = String::new();
    // Each side waits for the other's answer, so nothing follows a line that is already there.
    BufReader::with_capacity(1 << 16, channel).read_line(&mut line).map_err(|error| {
        io::Error::other(match error.kind() {
            io::ErrorKind::WouldBlock => {
                format!("{name} has not answered for {} s", ANSWER_TIMEOUT.as_secs())
            }
            _ => format!("{name}: {error}"),
        })
    })?;
    // Late events, which are no longer counted, precede the report.
    let from = line.find(['{', '[', '"']).unwrap_or(0);
    let answer: Result<T, String> = serde_json::from_str(&line[from..])
        .map_err(|_| io::Error::other(format!("{name} has ended")))?;
    answer.map_err(io::Error::other)
}

/// Sends a result; an error is also returned to the caller.
///
/// # Errors
/// The error that was sent, or the kernel's error.
pub fn send_result<T: Serialize>(channel: &UnixStream, result: io::Result<T>) -> io::Result<()> {
    let told = result.as_ref().map_err(ToString::to_string);
    send_json(channel, &told)?;
    result.map(drop)
}

/// Receives a command of the supervisor: a line of JSON.
///
/// # Errors
/// The supervisor's exit.
pub fn receive_command<T: for<'de> Deserialize<'de>>(channel: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(channel).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_or_silent_worker_is_named_in_the_error() {
        let (channel, theirs) = process::channel().expect("there is one");
        let host = Worker { name: "host 3".to_owned(), pid: 0, channel };
        let heard = || receive_result::<u64>(&host).map_err(|error| error.to_string());
        send_json(&theirs, &Ok::<u64, String>(7)).expect("it is open");
        assert_eq!(heard(), Ok(7));
        send_json(&theirs, &Err::<u64, String>("it is late".to_owned())).expect("it is open");
        assert_eq!(heard(), Err("it is late".to_owned()));
        let soon = Some(Duration::from_millis(1));
        host.channel.set_read_timeout(soon).expect("it is a time");
        assert_eq!(heard(), Err("host 3 has not answered for 360 s".to_owned()));
        drop(theirs);
        assert_eq!(heard(), Err("host 3 has ended".to_owned()));
    }
}
