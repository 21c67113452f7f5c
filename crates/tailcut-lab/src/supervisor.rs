//! One run: the processes, in namespaces that vanish with them, whatever ends them.
//!
//! The process that asks ([`run`]) enters namespaces of its own and starts the supervisor, which is PID 1 there. The
//! supervisor starts a process for each host, in a network namespace of its own, and one for the fabric. When the asking
//! process ends, or the far end of its standard input is closed, the kernel kills the supervisor, and with PID 1 whatever is
//! in its namespace; with the processes go their namespaces, and with these interfaces, routes and sysctls. Nothing
//! is ever written to a file.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tailcut_experiment::{Measured, RunPlan};
use tailcut_net::scenario::Scenario;
use tailcut_net::{foretell, Foretold};

use crate::fabric::carrier::{Carrier, FabricReport, Flows};
use crate::fabric::lateness::Lateness;
use crate::hosts::driver::{Driver, HostFlow, HostReport, Times, ACKNOWLEDGED, RECEIVED, WRONG};
use crate::hosts::payload::Payload;
use crate::hosts::repnet::{self, Ready, RepnetDriver};
use crate::hosts::setup::{self, ReadBack, HARDWARE, INTERFACE};
use crate::measured::measure;
use crate::settings::{self, HostSettings};
use crate::sys::epoll::{Epoll, READABLE, TIMER};
use crate::sys::{monotonic_ns, process};
use crate::verdict::{self, Facts};

/// Between the moment when everything is ready and the beginning of the run.
const PAUSE_NS: u64 = 50_000_000;
/// How often the run tells how far it is.
const TELL_NS: u64 = 250_000_000;
/// How long a process of ours may take to get ready, or to tell what it knows.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the asking process is told, a line each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// How far it is: nanoseconds from the beginning, and flows that are over.
    Now(u64, u64),
    /// The run is over.
    Done(Box<Outcome>),
    /// It failed, and why.
    Failed(String),
}

/// A run that was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was measured, for [`tailcut_experiment::tabulate`].
    pub measured: Measured,
    /// Why the run is not faithful; nothing if it is.
    pub unfaithful: Vec<String>,
    /// What the verdict goes by.
    pub facts: Facts,
    /// By how much frames came in after what had already happened in the fabric.
    pub entered: Lateness,
    /// Frames that hosts sent.
    pub frames: u64,
    /// Of these, frames of second connections.
    pub copied: u64,
    /// What the hosts are set to, as the kernel says it: the sysctls of all, the route of the first.
    pub hosts: ReadBack,
    /// The largest datagram, in bytes.
    pub mtu: u64,
    /// Nanoseconds from the beginning of the set-up until everything was ready.
    pub set_up_ns: u64,
    /// What carried the flows, if not the lab's own sockets.
    pub repnet: Option<Ready>,
}

/// What is to be carried out.
#[derive(Debug, Deserialize)]
struct Asked {
    /// A run of a plan.
    run: RunPlan,
    /// How `repnet-bench` is started, if it is to carry the flows.
    program: Option<Vec<String>>,
}

/// What a run needs: the scenario, what is known of its flows, and what hosts are set to.
struct Prepared {
    scenario: Scenario,
    foretold: Vec<Foretold>,
    hosts: HostSettings,
    program: Option<Vec<String>>,
}

fn prepare(asked: &str) -> Result<Prepared, String> {
    let Asked { run, program } = serde_json::from_str(asked).map_err(|error| error.to_string())?;
    let scenario = settings::scenario(&run)?;
    let checked = settings::check(&scenario, program.is_some());
    if !checked.is_possible() {
        return Err("the lab cannot realise this run; ask `tailcut check --on lab`".to_owned());
    }
    let foretold = foretell(&scenario).map_err(|error| error.to_string())?;
    Ok(Prepared { scenario, foretold, hosts: checked.hosts, program })
}

/// Carries out one run of a plan, telling standard output about it. It is asked for in JSON: `run` is an element of the plan's `runs`,
/// and `program`, where `repnet-bench` is to carry the flows, is how that is started. This process must have one thread, and is good for
/// nothing else afterwards.
///
/// # Errors
/// What kept the run from beginning.
pub fn run(asked: &str) -> Result<(), String> {
    let prepared = prepare(asked)?;
    let said = |error: io::Error| error.to_string();
    process::many_descriptors();
    process::enter_namespaces().map_err(|error| {
        format!("no namespaces can be had: {error}; ask `tailcut lab` what this kernel offers")
    })?;
    let (ours, theirs) = process::channel().map_err(said)?;
    match process::fork().map_err(said)? {
        process::Forked::Child => {
            drop(ours);
            let told = match supervise(&prepared, theirs) {
                Ok(outcome) => Told::Done(Box::new(outcome)),
                Err(error) => Told::Failed(error.to_string()),
            };
            tell(&told);
            process::exit(0);
        }
        process::Forked::Parent(child) => {
            drop(theirs);
            let ended = process::watch(child).map_err(said)?;
            let (ended, _) = process::wait_for_either(&ended, &io::stdin()).map_err(said)?;
            if !ended {
                // Nobody listens any more. Ending here ends the supervisor, and everything with it.
                process::exit(1);
            }
            match process::wait(child).map_err(said)?.as_str() {
                "" => Ok(()),
                how => Err(format!("the lab's supervisor ended with {how}")),
            }
        }
    }
}

fn tell(told: &Told) {
    let line = serde_json::to_string(told).unwrap_or_default();
    let mut out = io::stdout().lock();
    let _ = out
        .write_all(line.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
}

/// A process of the lab, and the way to talk to it.
struct Worker {
    pid: i32,
    channel: UnixStream,
}

fn start(work: impl FnOnce(UnixStream) -> io::Result<()>) -> io::Result<Worker> {
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
            Ok(Worker { pid, channel: ours })
        }
    }
}

/// A line each way, as JSON.
fn say<T: Serialize>(mut channel: &UnixStream, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    channel.write_all(&line)
}

fn hear<T: for<'de> Deserialize<'de>>(channel: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    // Each side waits for the other's answer, so that nothing follows a line that is already there.
    BufReader::with_capacity(1 << 16, channel).read_line(&mut line)?;
    // Events that nobody counts any more come before the report.
    let from = line.find(['{', '[', '"']).unwrap_or(0);
    let answer: Result<T, String> = serde_json::from_str(&line[from..])
        .map_err(|_| io::Error::other("a process of the lab has ended"))?;
    answer.map_err(io::Error::other)
}

fn answer<T: Serialize>(channel: &UnixStream, result: io::Result<T>) -> io::Result<()> {
    let told = result.as_ref().map_err(ToString::to_string);
    say(channel, &told)?;
    result.map(drop)
}

fn supervise(prepared: &Prepared, parent: UnixStream) -> io::Result<Outcome> {
    process::die_with_parent(0)?;
    parent.set_nonblocking(true)?;
    if let Ok(0) = (&parent).read(&mut [0]) {
        return Err(io::Error::other("the process that asked has ended"));
    }
    let began = monotonic_ns();
    process::own_mounts();
    let lab = Lab::build(prepared)?;
    let times = Times {
        begin_ns: monotonic_ns() + PAUSE_NS,
        arrivals_ns: prepared.scenario.horizon.arrivals.as_ns(),
    };
    lab.carry_out(times, began)
}

/// Hosts and fabric, ready.
struct Lab<'a> {
    prepared: &'a Prepared,
    hosts: Vec<Worker>,
    fabric: Worker,
    read_back: ReadBack,
    repnet: Option<Ready>,
}

impl<'a> Lab<'a> {
    fn build(prepared: &'a Prepared) -> io::Result<Lab<'a>> {
        let flows = host_flows(&prepared.foretold);
        let count = prepared.scenario.graph.hosts;
        let hosts: Vec<Worker> = (0..count)
            .map(|host| start(|channel| be_host(host, prepared, &flows, &channel)))
            .collect::<io::Result<_>>()?;
        for host in &hosts {
            hear::<()>(&host.channel)?;
        }
        setup::ip(&links(&hosts, prepared.hosts.mtu))?;
        let interfaces = (0..count)
            .map(|host| process::interface_number(&format!("e{host}")))
            .collect::<io::Result<Vec<u32>>>()?;
        let fabric = start(|channel| be_fabric(prepared, interfaces, &channel))?;
        hear::<()>(&fabric.channel)?;
        for host in &hosts {
            say(&host.channel, &())?;
        }
        let mut found = vec![];
        for host in &hosts {
            found.push(hear::<Found>(&host.channel)?);
        }
        let (read_back, repnet) = found.into_iter().next().unwrap_or_default();
        Ok(Lab { prepared, hosts, fabric, read_back, repnet })
    }

    fn carry_out(self, times: Times, began: u64) -> io::Result<Outcome> {
        let set_up_ns = monotonic_ns() - began;
        say(&self.fabric.channel, &times)?;
        for host in &self.hosts {
            say(&host.channel, &times)?;
        }
        let pressure = pressure_us();
        let end_ns = self.wait_for_end(times)?;
        let waited = pressure.zip(pressure_us()).map(|(before, after)| after - before);
        let mut reports = vec![];
        for host in &self.hosts {
            (&host.channel).write_all(b"s")?;
        }
        for host in &self.hosts {
            reports.push(hear::<HostReport>(&host.channel)?);
        }
        (&self.fabric.channel).write_all(b"s")?;
        let fabric: FabricReport = hear(&self.fabric.channel)?;
        if self.repnet.is_some() {
            let flows = host_flows(&self.prepared.foretold);
            repnet::recognise(&mut reports, &flows, &Payload::default());
        }
        let wrong: Vec<&str> =
            reports.iter().flat_map(|r| &r.wrong).map(String::as_str).take(5).collect();
        if !wrong.is_empty() {
            return Err(io::Error::other(wrong.join("; ")));
        }
        let by_repnet = self.repnet.is_some();
        let (measured, starts) =
            measure(&self.prepared.foretold, by_repnet, times, end_ns, &reports, &fabric);
        let ran_us = (monotonic_ns() - times.begin_ns) / 1_000;
        let facts = Facts {
            starts,
            released: fabric.released,
            ring_drops: fabric.ring_drops,
            refused: fabric.refused,
            strange: fabric.strange,
            pressure: waited.map(|us| us as f64 / ran_us.max(1) as f64),
        };
        Ok(Outcome {
            measured,
            unfaithful: verdict::reasons(&facts),
            facts,
            entered: fabric.entered,
            frames: fabric.frames,
            copied: fabric.copied,
            hosts: self.read_back,
            mtu: self.prepared.hosts.mtu,
            set_up_ns,
            repnet: self.repnet,
        })
    }

    /// Waits until every flow is over, or the run's time is; says when that was, in nanoseconds from the beginning.
    fn wait_for_end(&self, times: Times) -> io::Result<u64> {
        let epoll = Epoll::new()?;
        for (number, host) in self.hosts.iter().enumerate() {
            host.channel.set_nonblocking(true)?;
            epoll.add(&host.channel, READABLE, number as u64)?;
        }
        epoll.add(&self.fabric.channel, READABLE, self.hosts.len() as u64)?;
        let horizon = &self.prepared.scenario.horizon;
        let end = times.begin_ns + (horizon.arrivals + horizon.drain).as_ns();
        let flows = self.prepared.foretold.len() as u64;
        let (mut received, mut acknowledged, mut tell_at) = (0, 0, times.begin_ns + TELL_NS);
        let mut happened = vec![];
        while received < flows || acknowledged < flows {
            let now = monotonic_ns();
            if now >= end {
                break;
            }
            if now >= tell_at {
                tell(&Told::Now(now - times.begin_ns, received));
                tell_at = now + TELL_NS;
            }
            epoll.wake_at(end.min(tell_at))?;
            epoll.wait(&mut happened)?;
            for (token, _) in happened.iter().filter(|(token, _)| *token != TIMER) {
                let Some(host) = self.hosts.get(*token as usize) else {
                    return Err(io::Error::other("the fabric has ended"));
                };
                let mut events = [0; 4_096];
                let count = (&host.channel).read(&mut events)?;
                if count == 0 {
                    return Err(io::Error::other(format!("host {token} has ended")));
                }
                let of = |kind: u8| events[..count].iter().filter(|e| **e == kind).count() as u64;
                received += of(RECEIVED);
                acknowledged += of(ACKNOWLEDGED);
                if of(WRONG) > 0 {
                    return self.at_rest(times);
                }
            }
        }
        self.at_rest(times)
    }

    fn at_rest(&self, times: Times) -> io::Result<u64> {
        let now = monotonic_ns();
        for host in &self.hosts {
            host.channel.set_nonblocking(false)?;
        }
        Ok(now.saturating_sub(times.begin_ns))
    }
}

/// How long something has waited for a processor since the machine started, in microseconds.
fn pressure_us() -> Option<u64> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1;
    total.trim().parse().ok()
}

/// The links between hosts and fabric, as lines for `ip`.
fn links(hosts: &[Worker], mtu: u64) -> String {
    let hardware: Vec<String> = HARDWARE.iter().map(|byte| format!("{byte:02x}")).collect();
    let hardware = hardware.join(":");
    let mut lines = String::new();
    for (number, host) in hosts.iter().enumerate() {
        let _ = write!(
            lines,
            "link add e{number} mtu {mtu} type veth \
             peer name {INTERFACE} mtu {mtu} address {hardware} netns {}\n\
             link set e{number} up\n",
            host.pid
        );
    }
    lines
}

fn host_flows(foretold: &[Foretold]) -> Vec<HostFlow> {
    let flows = foretold.iter().enumerate().map(|(index, foretold)| {
        let flow = &foretold.record.flow;
        HostFlow {
            index: index as u64,
            src: flow.src,
            dst: flow.dst,
            bytes: flow.bytes,
            start_ns: flow.start.as_ns(),
            source_port: foretold.key.sport(),
        }
    });
    flows.collect()
}

/// What a host says once it is ready: what it is set to, and what carries its flows if it is not the lab's own sockets.
type Found = (ReadBack, Option<Ready>);

/// Who carries a host's flows.
enum Carrying<'a> {
    Sockets(Driver<'a>),
    Repnet(RepnetDriver),
}

impl<'a> Carrying<'a> {
    fn new(
        host: u32,
        prepared: &'a Prepared,
        flows: &[HostFlow],
        channel: UnixStream,
    ) -> io::Result<(Carrying<'a>, Option<Ready>)> {
        let Prepared { hosts, program, .. } = prepared;
        match (program, &hosts.repnet) {
            (Some(program), Some(how)) => {
                let (driver, ready) = RepnetDriver::new(host, program, how, flows, channel)?;
                Ok((Carrying::Repnet(driver), Some(ready)))
            }
            _ => Ok((Carrying::Sockets(Driver::new(host, hosts, flows, channel)?), None)),
        }
    }
}

/// A host, from its namespace to its report.
fn be_host(
    host: u32,
    prepared: &Prepared,
    flows: &[HostFlow],
    channel: &UnixStream,
) -> io::Result<()> {
    answer(channel, process::enter_network())?;
    plain::<()>(channel)?;
    let ready = setup::set_up(host, &prepared.hosts).and_then(|found| {
        let (carrying, ready) = Carrying::new(host, prepared, flows, channel.try_clone()?)?;
        Ok(((found, ready), carrying))
    });
    let mut carrying = match ready {
        Ok((found, carrying)) => {
            say(channel, &Ok::<Found, String>(found))?;
            carrying
        }
        Err(error) => return answer::<Found>(channel, Err(error)),
    };
    let times: Times = plain(channel)?;
    process::run_briefly(process::id());
    let report = match &mut carrying {
        Carrying::Sockets(driver) => driver.run(times),
        Carrying::Repnet(driver) => driver.run(times),
    };
    channel.set_nonblocking(false)?;
    channel.set_read_timeout(None)?;
    answer(channel, report)?;
    // Until the supervisor has heard all hosts and ends, which ends this one: what is still open would break at its other end.
    let _ = (&*channel).read(&mut [0]);
    Ok(())
}

/// The fabric, from its ring to its report.
fn be_fabric(prepared: &Prepared, interfaces: Vec<u32>, channel: &UnixStream) -> io::Result<()> {
    let keys = prepared.foretold.iter().map(|f| (f.key, f.record.flow.bytes));
    let races = prepared.hosts.repnet.as_ref().is_some_and(|how| how.mode == "syn");
    let racing = races.then_some(prepared.scenario.graph.hosts);
    let flows = Flows::new(keys, racing);
    let made = Carrier::new(&prepared.scenario, prepared.hosts.mtu, interfaces, flows);
    let carrier = match made {
        Ok(carrier) => {
            say(channel, &Ok::<_, String>(()))?;
            carrier
        }
        Err(error) => return answer::<()>(channel, Err(error)),
    };
    let times: Times = plain(channel)?;
    let report = carrier.run(times, channel.try_clone()?);
    channel.set_nonblocking(false)?;
    answer(channel, report)
}

/// What the supervisor says, a line.
fn plain<T: for<'de> Deserialize<'de>>(channel: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(channel).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}
