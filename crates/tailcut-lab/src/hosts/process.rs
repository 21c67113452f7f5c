//! The process of a host.

use std::io;
use std::os::unix::net::UnixStream;

use tailcut_net::topology::NodeId;

use crate::addressing::INTERFACE;
use crate::fabric::ports::near_end;
use crate::hosts::guests::Guests;
use crate::hosts::host_flow::HostFlow;
use crate::hosts::release_pipes::ReleasePipes;
use crate::hosts::repnet::RepnetDriver;
use crate::hosts::socket_driver::SocketDriver;
use crate::hosts::{drops, setup};
use crate::messages::{HostCommand, HostReady, NodeReady};
use crate::prepared::Prepared;
use crate::sys::realtime::Rank;
use crate::sys::{latency, process};
use crate::worker::{receive_command, send_json, send_result};

/// The driver that carries a host's flows.
enum HostDriver<'a> {
    Sockets(Box<SocketDriver<'a>>),
    Repnet(Box<RepnetDriver<'a>>),
}

impl<'a> HostDriver<'a> {
    fn new(
        host: u32,
        prepared: &'a Prepared,
        flows: &[HostFlow],
        pipes: Option<&'a ReleasePipes>,
        channel: UnixStream,
    ) -> io::Result<(HostDriver<'a>, Option<NodeReady>)> {
        let Prepared { hosts, program, scenario, .. } = prepared;
        match (program, &hosts.repnet) {
            (Some(program), Some(how)) => {
                let (driver, ready) =
                    RepnetDriver::new(host, program, how, flows, scenario, pipes, channel)?;
                Ok((HostDriver::Repnet(Box::new(driver)), Some(ready)))
            }
            _ => {
                let driver = SocketDriver::new(host, hosts, flows, scenario, pipes, channel)?;
                Ok((HostDriver::Sockets(Box::new(driver)), None))
            }
        }
    }
}

/// Runs the process of a host, from its namespace to its reports.
///
/// # Errors
/// The supervisor's exit, or the error that was sent to it.
pub fn run_host(
    host: u32,
    prepared: &Prepared,
    flows: &[HostFlow],
    pipes: Option<&ReleasePipes>,
    channel: &UnixStream,
) -> io::Result<()> {
    send_result(channel, process::unshare_network())?;
    receive_command::<()>(channel)?;
    let ready = setup::set_up(host, &prepared.hosts).and_then(|found| {
        let (carrying, ready) =
            HostDriver::new(host, prepared, flows, pipes, channel.try_clone()?)?;
        let down = taken_down(host, prepared);
        latency::raise_priority(process::id(), Rank::Host)?;
        Ok(((found, ready), (carrying, down)))
    });
    let (mut carrying, down) = match ready {
        Ok((found, ready)) => {
            send_json(channel, &Ok::<HostReady, String>(found))?;
            ready
        }
        Err(error) => return send_result::<HostReady>(channel, Err(error)),
    };
    let mut guests = Guests::default();
    loop {
        // The process runs until the supervisor exits. Its connections stay open until then:
        // closing them would break their other ends.
        match receive_command(channel)? {
            HostCommand::IdleFlows(task) => {
                let listens = || send_result(channel, Ok(()));
                send_result(channel, task.carry_out(listens))?;
            }
            HostCommand::Guests => send_result(channel, guests.start(host, &prepared.guests))?,
            HostCommand::Run(times) => {
                let before = drops::read_drop_counters_except(&down);
                let mut report = match &mut carrying {
                    HostDriver::Sockets(driver) => driver.run(times),
                    HostDriver::Repnet(driver) => driver.run(times),
                };
                if let Ok(report) = &mut report {
                    report.thrown_away =
                        drops::since(&before, &drops::read_drop_counters_except(&down));
                    report.wrong.extend(guests.failed());
                }
                channel.set_nonblocking(false)?;
                channel.set_read_timeout(None)?;
                send_result(channel, report)?;
            }
        }
    }
}

/// Returns the host's interface, if its link is taken down during the run.
fn taken_down(host: u32, prepared: &Prepared) -> Vec<String> {
    let Prepared { scenario, taken_down, .. } = prepared;
    let its = taken_down.iter().any(|port| near_end(&scenario.graph, *port) == NodeId(host));
    its.then(|| INTERFACE.to_owned()).into_iter().collect()
}
