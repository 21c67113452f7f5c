//! The processes of a run: what they are told, and what they do.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tailcut_net::Foretold;
use tailcut_net::packet::FlowKey;
use tailcut_net::topology::NodeId;

use crate::fabric::carrier::{Carrier, Flows, RING};
use crate::fabric::ports::near_end;
use crate::hosts::alone::{Plan, Task};
use crate::hosts::driver::{Driver, HostFlow, Times};
use crate::hosts::drops;
use crate::hosts::guests::Guests;
use crate::hosts::repnet::{Ready, RepnetDriver};
use crate::hosts::setup::{self, INTERFACE, ReadBack};
use crate::hosts::turns::Turns;
use crate::prepared::Prepared;
use crate::sys::first::Rank;
use crate::sys::in_time;
use crate::sys::packets::{Frames, Seen};
use crate::sys::process;

/// How long a process of ours may take to get ready, or to tell what it knows: longer than any machine needs, since one that ends
/// is noticed at once, and longer than Node may take, which says what it was.
const PATIENCE: Duration = Duration::from_secs(360);

/// What a host is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Its part in the flows alone.
    Alone(Task),
    /// Its guests begin.
    Guests,
    /// The run.
    Run(Times),
}

/// What the fabric is told to do, before it is told when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Crossing {
    /// Let flows alone cross.
    Alone,
    /// Let those of the run cross.
    Run,
}

/// A process of the lab, and the way to talk to it.
pub struct Worker {
    /// What it is, as whoever reads of it knows it.
    pub name: String,
    /// Its number.
    pub pid: i32,
    /// By which it is told what to do.
    pub channel: UnixStream,
}

/// A child of this process that does its work and ends; it is killed when this process ends.
///
/// # Errors
/// The kernel's.
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
            ours.set_read_timeout(Some(PATIENCE))?;
            Ok(Worker { name: name.into(), pid, channel: ours })
        }
    }
}

/// A line to the other side, as JSON.
///
/// # Errors
/// The kernel's.
pub fn say<T: Serialize>(mut channel: &UnixStream, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    channel.write_all(&line)
}

/// What a process says, a line, or why it cannot.
///
/// # Errors
/// That, its end, and that it has said nothing for too long.
pub fn hear<T: for<'de> Deserialize<'de>>(worker: &Worker) -> io::Result<T> {
    let Worker { name, channel, .. } = worker;
    let mut line = String::new();
    // Each side waits for the other's answer, so that nothing follows a line that is already there.
    BufReader::with_capacity(1 << 16, channel).read_line(&mut line).map_err(|error| {
        io::Error::other(match error.kind() {
            io::ErrorKind::WouldBlock => {
                format!("{name} has not answered for {} s", PATIENCE.as_secs())
            }
            _ => format!("{name}: {error}"),
        })
    })?;
    // Events that nobody counts any more come before the report.
    let from = line.find(['{', '[', '"']).unwrap_or(0);
    let answer: Result<T, String> = serde_json::from_str(&line[from..])
        .map_err(|_| io::Error::other(format!("{name} has ended")))?;
    answer.map_err(io::Error::other)
}

/// The result to the other side; an error is an error here, too.
///
/// # Errors
/// That, and the kernel's.
pub fn answer<T: Serialize>(channel: &UnixStream, result: io::Result<T>) -> io::Result<()> {
    let told = result.as_ref().map_err(ToString::to_string);
    say(channel, &told)?;
    result.map(drop)
}

/// What a host says once it is ready: what it is set to, and what carries its flows if it is not the lab's own sockets.
pub type Found = (ReadBack, Option<Ready>);

/// Who carries a host's flows.
enum Carrying<'a> {
    Sockets(Box<Driver<'a>>),
    Repnet(Box<RepnetDriver<'a>>),
}

impl<'a> Carrying<'a> {
    fn new(
        host: u32,
        prepared: &'a Prepared,
        flows: &[HostFlow],
        turns: Option<&'a Turns>,
        channel: UnixStream,
    ) -> io::Result<(Carrying<'a>, Option<Ready>)> {
        let Prepared { hosts, program, scenario, .. } = prepared;
        match (program, &hosts.repnet) {
            (Some(program), Some(how)) => {
                let (driver, ready) =
                    RepnetDriver::new(host, program, how, flows, scenario, turns, channel)?;
                Ok((Carrying::Repnet(Box::new(driver)), Some(ready)))
            }
            _ => {
                let driver = Driver::new(host, hosts, flows, scenario, turns, channel)?;
                Ok((Carrying::Sockets(Box::new(driver)), None))
            }
        }
    }
}

/// A host, from its namespace to its report.
///
/// # Errors
/// The end of the supervisor, and what it was told, too.
pub fn be_host(
    host: u32,
    prepared: &Prepared,
    flows: &[HostFlow],
    turns: Option<&Turns>,
    channel: &UnixStream,
) -> io::Result<()> {
    answer(channel, process::enter_network())?;
    plain::<()>(channel)?;
    let ready = setup::set_up(host, &prepared.hosts).and_then(|found| {
        let (carrying, ready) = Carrying::new(host, prepared, flows, turns, channel.try_clone()?)?;
        let down = taken_down(host, prepared)?;
        in_time::run_at_once(process::id(), Rank::Host)?;
        Ok(((found, ready), (carrying, down)))
    });
    let (mut carrying, down) = match ready {
        Ok((found, ready)) => {
            say(channel, &Ok::<Found, String>(found))?;
            ready
        }
        Err(error) => return answer::<Found>(channel, Err(error)),
    };
    let mut guests = Guests::default();
    loop {
        // In the end the supervisor ends, and this process with it; until then connections stay: what is still open would break
        // at its other end.
        match plain(channel)? {
            Order::Alone(task) => {
                let listens = || answer(channel, Ok(()));
                answer(channel, task.carry_out(listens))?;
            }
            Order::Guests => answer(channel, guests.start(host, &prepared.guests))?,
            Order::Run(times) => {
                let before = drops::counted_but_of(&down);
                let mut report = match &mut carrying {
                    Carrying::Sockets(driver) => driver.run(times),
                    Carrying::Repnet(driver) => driver.run(times),
                };
                if let Ok(report) = &mut report {
                    report.thrown_away = drops::since(&before, &drops::counted_but_of(&down));
                    report.wrong.extend(guests.failed());
                }
                channel.set_nonblocking(false)?;
                channel.set_read_timeout(None)?;
                answer(channel, report)?;
            }
        }
    }
}

/// The interface of a host, if its link is taken down in the run.
fn taken_down(host: u32, prepared: &Prepared) -> io::Result<Vec<String>> {
    let Prepared { scenario, fabric, .. } = prepared;
    let down = fabric.taken_down(scenario)?;
    let its = down.iter().any(|port| near_end(&scenario.graph, *port) == NodeId(host));
    Ok(its.then(|| INTERFACE.to_owned()).into_iter().collect())
}

/// The fabric, from its ring to its report.
///
/// # Errors
/// The end of the supervisor, and what it was told, too.
pub fn be_fabric(
    prepared: &Prepared,
    interfaces: Vec<u32>,
    channel: &UnixStream,
) -> io::Result<()> {
    let keys = |foretold: &'_ [Foretold]| -> Vec<(FlowKey, u64)> {
        foretold.iter().map(|one| (one.key, one.record.flow.bytes)).collect()
    };
    let races = prepared.hosts.repnet.as_ref().is_some_and(|how| how.kernel_chooses_ports);
    let racing = races.then_some(prepared.scenario.graph.hosts);
    let mut frames = Frames::new(Seen::Incoming, prepared.hosts.mtu as usize, RING);
    loop {
        let crossing = plain(channel)?;
        let (scenario, flows) = match crossing {
            Crossing::Alone => {
                let Plan { scenario, foretold } = &prepared.alone;
                (scenario, Flows::alone(keys(foretold).into_iter()))
            }
            Crossing::Run => {
                let flows = Flows::new(keys(&prepared.foretold).into_iter(), racing);
                (&prepared.scenario, flows.with_guests(!prepared.guests.is_empty()))
            }
        };
        let captured = match (crossing, &prepared.capture) {
            (Crossing::Run, Some(asked)) => asked.open(&scenario.graph).map(Some),
            _ => Ok(None),
        };
        let made = match &mut frames {
            Ok(frames) => captured
                .map_err(io::Error::other)
                .and_then(|tap| Carrier::new(scenario, frames, &interfaces, flows, tap)),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
        let carrier = match made {
            Ok(carrier) => {
                answer(channel, Ok(()))?;
                carrier
            }
            Err(error) => return answer::<()>(channel, Err(error)),
        };
        let report = carrier.run(plain(channel)?, channel.try_clone()?);
        channel.set_nonblocking(false)?;
        answer(channel, report)?;
    }
}

/// What the supervisor says, a line.
///
/// # Errors
/// Its end.
pub fn plain<T: for<'de> Deserialize<'de>>(channel: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(channel).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_or_says_nothing_is_named() {
        let (channel, theirs) = process::channel().expect("there is one");
        let host = Worker { name: "host 3".to_owned(), pid: 0, channel };
        let heard = || hear::<u64>(&host).map_err(|error| error.to_string());
        say(&theirs, &Ok::<u64, String>(7)).expect("it is open");
        assert_eq!(heard(), Ok(7));
        say(&theirs, &Err::<u64, String>("it is late".to_owned())).expect("it is open");
        assert_eq!(heard(), Err("it is late".to_owned()));
        let soon = Some(Duration::from_millis(1));
        host.channel.set_read_timeout(soon).expect("it is a time");
        assert_eq!(heard(), Err("host 3 has not answered for 360 s".to_owned()));
        drop(theirs);
        assert_eq!(heard(), Err("host 3 has ended".to_owned()));
    }
}
