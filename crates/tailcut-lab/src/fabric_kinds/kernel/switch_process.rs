//! The process of the kernel switches. While flows cross, it reads the queues' counters and carries
//! out failures; in the end it reports.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use serde_json::Value;
use tailcut_engine::Time;
use tailcut_net::measure::series::{LinkProbe, SeriesSampler, SeriesSpec};
use tailcut_net::network::tier_records;
use tailcut_net::port::PortCounters;
use tailcut_net::topology::{Graph, PortId};

use super::POLL_INTERVAL;
use super::busy_times::BusyTimes;
use super::host_captures::HostCaptures;
use super::incidents::Incidents;
use super::port_rate_check::PortRateCheck;
use super::queue_stats::QueueStats;
use super::switches::Switches;
use crate::fabric::lateness::Lateness;
use crate::fabric::ports::{self, near_end};
use crate::hosts::drops;
use crate::messages::{FabricCommand, FabricReport, RunTimes};
use crate::prepared::Prepared;
use crate::sys::realtime::Rank;
use crate::sys::{latency, monotonic_ns, process};
use crate::worker::{receive_command, send_result};

/// Reading counters and verifying nodes may each take at most one part in this many of the time.
const MAX_SHARE: u64 = 20;
/// The reason why the longest queues are unknown.
const NO_LONGEST: &str = "the kernel reports current queue lengths, not their maximum";

/// Runs the process of the switches, from the set-up until the supervisor exits.
///
/// # Errors
/// The supervisor's exit, or the error that was sent to it.
pub fn run_switches(prepared: &Prepared, hosts: &[i32], channel: &UnixStream) -> io::Result<()> {
    let mut switches = match Switches::build(prepared, hosts) {
        Ok(switches) => {
            send_result(channel, Ok(()))?;
            switches
        }
        Err(error) => return send_result::<()>(channel, Err(error)),
    };
    loop {
        let crossing = receive_command::<FabricCommand>(channel)?;
        // The expected times of idle flows hold for the network without failures.
        let ready = if crossing == FabricCommand::IdleFlows { switches.repair() } else { Ok(()) };
        let made = ready.and_then(|()| switches.snapshot_counters()).and_then(|before| {
            let asked = prepared.capture.as_ref().filter(|_| crossing == FabricCommand::Run);
            Ok((before, asked.map(|asked| HostCaptures::open(asked, &switches)).transpose()?))
        });
        send_result(channel, made.as_ref().map(drop).map_err(clone_error))?;
        let (before, taps) = made?;
        let report =
            switches.carry_flows(crossing, receive_command(channel)?, &before, taps, channel);
        channel.set_nonblocking(false)?;
        send_result(channel, report)?;
    }
}

fn clone_error(error: &io::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// Counters of all ports and namespaces.
struct CounterSnapshot {
    ports: BTreeMap<PortId, QueueStats>,
    thrown_away: drops::DropCounters,
}

/// Measurements of the ports while flows cross.
struct PortMonitor {
    busy: BusyTimes,
    rates: PortRateCheck,
    sampler: SeriesSampler,
    /// When the next sample is due, from the start.
    sample: Option<Time>,
}

impl PortMonitor {
    fn new(switches: &Switches<'_>, before: &CounterSnapshot) -> io::Result<PortMonitor> {
        let scenario = &switches.prepared.scenario;
        let framing = scenario.host.framing_overhead.0;
        // The hosts sample the windows.
        let links = SeriesSpec { flows: vec![], ..scenario.series.clone() };
        let sampler = SeriesSampler::new(&links, &scenario.graph, &switches.routes)
            .map_err(io::Error::other)?;
        Ok(PortMonitor {
            busy: BusyTimes::new(&before.ports, framing),
            rates: PortRateCheck::new(switches.prepared.hosts.mtu + framing, framing),
            sample: sampler.interval(),
            sampler,
        })
    }

    /// Reads the counters of all ports and adds to their busy times. Call it before a rate changes:
    /// the time since the last call is charged at the current rate.
    fn count(&mut self, switches: &mut Switches<'_>) -> io::Result<BTreeMap<PortId, QueueStats>> {
        let now = switches.read_stats()?;
        for (port, counts) in &now {
            self.busy.add(*port, switches.rate(*port), *counts);
        }
        Ok(now)
    }

    /// Reads the counters of all ports, checks their rates, and samples links that are due.
    /// `begin_ns`: the start, on the monotonic clock.
    fn poll(&mut self, begin_ns: u64, switches: &mut Switches<'_>) -> io::Result<()> {
        let now = self.count(switches)?;
        // Until this instant at most, each link has been sending.
        let at = Time(monotonic_ns().saturating_sub(begin_ns) * 1_000);
        for (port, counts) in now {
            self.rates.add(port, switches.rate(port), counts);
        }
        if self.sample.is_some_and(|sample| at >= sample) {
            if std::mem::take(&mut switches.rerouted) {
                self.sampler.reroute(&switches.prepared.scenario.graph, &switches.routes);
            }
            self.sampler.sample_links(at, &mut LastStats(&self.busy));
            self.sample = self.sampler.interval().map(|interval| at + interval);
        }
        Ok(())
    }
}

/// The ports, as of their last counters.
struct LastStats<'a>(&'a BusyTimes);

impl LinkProbe for LastStats<'_> {
    fn queue(&mut self, _now: Time, port: PortId) -> u32 {
        self.0.counts(port).waiting as u32
    }

    /// Returns the time that its rates take for the bytes sent.
    fn busy(&mut self, _now: Time, port: PortId) -> Time {
        self.0.time(port)
    }
}

impl Switches<'_> {
    /// Reads the statistics of every queue since its set-up.
    fn read_stats(&mut self) -> io::Result<BTreeMap<PortId, QueueStats>> {
        let mut all = BTreeMap::new();
        for counters in &mut self.counters {
            counters.read(|port, counts| {
                all.insert(port, counts);
            })?;
        }
        Ok(all)
    }

    fn snapshot_counters(&mut self) -> io::Result<CounterSnapshot> {
        let graph = &self.prepared.scenario.graph;
        let mut thrown_away = drops::DropCounters::new();
        for switch in graph.each_switch() {
            let node = switch.node(graph.hosts);
            // Packets to an interface that is down are lost as planned.
            let down = self.ports(node).filter(|port| self.taken_down.contains(port));
            let down: Vec<String> = down.map(|port| self.interface(port)).collect();
            for (name, count) in
                self.within(node, || Ok(drops::read_drop_counters_except(&down)))?
            {
                *thrown_away.entry(name).or_default() += count;
            }
        }
        process::join_network(&self.home)?;
        Ok(CounterSnapshot { ports: self.read_stats()?, thrown_away })
    }

    /// Lets flows cross until the supervisor writes, and returns the report.
    fn carry_flows(
        &mut self,
        crossing: FabricCommand,
        times: RunTimes,
        before: &CounterSnapshot,
        mut taps: Option<HostCaptures>,
        channel: &UnixStream,
    ) -> io::Result<FabricReport> {
        if let Some(taps) = &mut taps {
            taps.begin(times.begin_ns);
        }
        channel.set_nonblocking(true)?;
        latency::minimise_timer_slack();
        latency::raise_priority(process::id(), Rank::Fabric)?;
        let is_run = crossing == FabricCommand::Run;
        let since = |ns: u64| Time(ns.saturating_sub(times.begin_ns) * 1_000);
        let arrivals_ns = times.begin_ns + times.arrivals_ns;
        let mut in_arrivals = None;
        let mut incidents = Incidents::new(self)?;
        let mut looks = PortMonitor::new(self, before)?;
        let mut looks_ns = times.begin_ns;
        let mut reads_ns = times.begin_ns;
        let mut late = Lateness::default();
        loop {
            let counts = (is_run && in_arrivals.is_none()).then_some(arrivals_ns);
            let looks_at = is_run.then_some(looks_ns);
            // Failures at time zero are carried out before the start.
            let fails = incidents.next().filter(|_| is_run).map(|next| match next {
                Time::ZERO => 0,
                next => times.begin_ns + next.as_ns(),
            });
            let reads = (!self.unverified.is_empty()).then_some(reads_ns);
            let next = [counts, looks_at, fails, reads].into_iter().flatten().min();
            let told = latency::wait_until(channel, channel, next.map(|at| (at, false)))?;
            if told && (&*channel).read(&mut [0]).is_ok() {
                break;
            }
            if let Some(taps) = &mut taps {
                taps.poll();
            }
            let now = monotonic_ns();
            if let Some(at) = fails.filter(|at| now >= *at) {
                // Traffic until now was sent at the previous rates.
                looks.count(self)?;
                incidents.carry_out(since(now), self)?;
                // A change is complete when the switches at the ends of its link have their routes,
                // too.
                self.restore_routes()?;
                late.add(monotonic_ns().saturating_sub(at.max(times.begin_ns)));
                looks.rates.restart();
            } else if counts.is_some_and(|at| now >= at) {
                looks.count(self)?;
                in_arrivals = Some(looks.busy.within(times.begin_ns, times.arrivals_ns));
            } else if looks_at.is_some_and(|at| now >= at) {
                looks.poll(times.begin_ns, self)?;
                let took = monotonic_ns() - now;
                looks_ns = now + POLL_INTERVAL.as_ns().max(MAX_SHARE * took);
            } else if reads.is_some_and(|at| now >= at) {
                self.verify_one()?;
                reads_ns = now + MAX_SHARE * (monotonic_ns() - now);
            }
        }
        let captured = taps.map(HostCaptures::finish).transpose()?;
        while !self.unverified.is_empty() {
            self.verify_one()?;
        }
        let in_arrivals = match in_arrivals {
            Some(known) => known,
            None => {
                looks.count(self)?;
                looks.busy.within(times.begin_ns, times.arrivals_ns)
            }
        };
        let PortMonitor { rates, sampler, .. } = looks;
        let report = self.report(before, &in_arrivals)?;
        let series = sampler.into_series().into_iter().map(Into::into).collect();
        Ok(FabricReport { changed: late, paces: rates.windows(), series, captured, ..report })
    }

    /// Returns the settings of every switch, and the counters of its ports by the names of their
    /// links.
    fn switch_report(&self, counts: impl Fn(PortId) -> PortCounters) -> Vec<Value> {
        let mut told = ports::switch_counters(&self.prepared.scenario.graph, counts);
        for (switch, found) in told.iter_mut().zip(&self.initial) {
            for (name, value) in found.as_object().into_iter().flatten() {
                switch[name] = value.clone();
            }
        }
        told
    }

    fn report(
        &mut self,
        before: &CounterSnapshot,
        busy: &BTreeMap<PortId, Time>,
    ) -> io::Result<FabricReport> {
        let now = self.snapshot_counters()?;
        let scenario = &self.prepared.scenario;
        let (graph, framing) = (&scenario.graph, scenario.host.framing_overhead.0);
        let until_now = |port: PortId| {
            let counts = now.ports[&port].since(before.ports[&port]);
            PortCounters {
                packets: counts.packets,
                bytes: counts.on_wire(framing),
                drops: counts.drops,
                ..PortCounters::default()
            }
        };
        let ports: Vec<PortId> = (0..graph.links.len()).flat_map(PortId::both_directions).collect();
        let busy: Vec<Time> = ports.iter().map(|port| busy[port]).collect();
        let all =
            |what: fn(PortCounters) -> u64| ports.iter().map(|port| what(until_now(*port))).sum();
        let is_host = |port: &&PortId| graph.switch(near_end(graph, **port)).is_none();
        let hosts = ports.iter().filter(is_host);
        let mut thrown_away = drops::since(&before.thrown_away, &now.thrown_away);
        if !self.taken_down.is_empty() {
            // Packets that loop while switches learn of a failure one after the other are lost as
            // planned, too.
            thrown_away.remove("Ip InHdrErrors");
        }
        let frames: u64 = hosts.map(|port| until_now(*port).packets).sum();
        Ok(FabricReport {
            tiers: tier_records(graph, scenario.horizon.arrivals, &busy, until_now),
            packet_hops: all(|counts| counts.packets),
            dropped: all(|counts| counts.drops),
            lost: match scenario.faults.is_fault_free() {
                true => 0,
                false => lost(graph, |port| now.ports[&port].since(before.ports[&port])),
            },
            frames,
            thrown_away,
            switches: self.switch_report(until_now).into(),
            queues: self.queues.clone(),
            versions: self.versions()?,
            unknown: [("max_queue".to_owned(), NO_LONGEST.to_owned())].into(),
            ..FabricReport::default()
        })
    }
}

/// Returns the packets that hosts sent and that neither arrived, nor were dropped by a full queue,
/// nor are queued. Packets in hosts' own queues, queued or dropped, were never sent.
fn lost(graph: &Graph, counts: impl Fn(PortId) -> QueueStats) -> u64 {
    let (mut sent, mut known) = (0, 0);
    for port in (0..graph.links.len()).flat_map(PortId::both_directions) {
        let QueueStats { packets, drops, waiting, .. } = counts(port);
        match graph.switch(near_end(graph, port)) {
            None => sent += packets,
            Some(_) => known += drops + waiting,
        }
        if graph.switch(graph.far_end(port)).is_none() {
            known += packets;
        }
    }
    sent.saturating_sub(known)
}

#[cfg(test)]
mod tests {
    use tailcut_net::topology::chain::Chain;
    use tailcut_net::topology::find::find_link;

    use super::*;

    #[test]
    fn packets_queued_at_the_end_are_not_lost() {
        let chain: Chain = serde_json::from_value(serde_json::json!({})).expect("it is a chain");
        let graph = chain.build().expect("it can be built");
        let at = |name| find_link(&graph, name).expect("it is a link");
        let (of_host, between, to_host) = (at("h0>s0"), at("s0>s1"), at("s1>h1"));
        let counts = |port| match port {
            // The host's own queue holds two packets and has dropped one: these were never sent.
            port if port == of_host => {
                QueueStats { packets: 100, waiting: 2, drops: 1, ..QueueStats::default() }
            }
            port if port == between => {
                QueueStats { packets: 80, waiting: 6, drops: 5, ..QueueStats::default() }
            }
            port if port == to_host => {
                QueueStats { packets: 70, waiting: 3, drops: 4, ..QueueStats::default() }
            }
            _ => QueueStats::default(),
        };
        assert_eq!(lost(&graph, counts), 100 - (6 + 5) - (3 + 4) - 70);
    }
}
