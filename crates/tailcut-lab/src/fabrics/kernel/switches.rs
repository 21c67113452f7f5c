//! The process that keeps the switches' namespaces: it sets them up, reads back what took, and tells what they have counted.
//! They hold no process of their own; when this one ends, they vanish.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde_json::{json, Value};
use tailcut_engine::{Rate, Time};
use tailcut_net::amount::Limit;
use tailcut_net::network::tier_records;
use tailcut_net::port::PortCounters;
use tailcut_net::topology::find::link_name;
use tailcut_net::topology::{HostId, NodeId, PortId, Routes, SwitchId};

use super::counters::{self, Counts, Queue};
use super::incidents::Incidents;
use super::lines::{fifo, interface, near_end, queue, Switch};
use super::ETHERNET;
use crate::fabric::carrier::FabricReport;
use crate::fabric::lateness::Lateness;
use crate::hosts::driver::Times;
use crate::hosts::drops;
use crate::hosts::setup::{self, address, hardware, INTERFACE, PREFIX};
use crate::prepared::Prepared;
use crate::sys::{monotonic_ns, process};
use crate::tools::Tool;
use crate::workers::{answer, plain, Crossing};

/// What every switch is set to beside its seed. The first puts others back to what they were, and so comes first.
///
/// The hash is of named fields: addresses, protocol and ports. That of the five-tuple (policy 1) would take the number that the sender's socket has given
/// to the packet, where there is one, which is the same at all switches, another for each run, and another after a timeout.
const SYSCTLS: [(&str, &str); 8] = [
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/fib_multipath_hash_policy", "3"),
    ("ipv4/fib_multipath_hash_fields", "55"),
    ("ipv4/ip_early_demux", "0"),
];

/// The namespaces, and what is in them.
pub struct Switches<'a> {
    /// The run.
    pub prepared: &'a Prepared,
    /// Of every node: first the hosts', which their own processes hold, then the switches'.
    namespaces: Vec<OwnedFd>,
    /// The process's own.
    pub home: OwnedFd,
    /// By which ports switches send, as far as routing knows.
    pub routes: Routes,
    addresses: Vec<Ipv4Addr>,
    /// The routes that each switch was last given.
    pub applied: Vec<String>,
    /// Links that are down.
    pub dead: BTreeSet<usize>,
    /// What was read back.
    found: Vec<Value>,
}

/// The process, from the set-up to its end with the supervisor's.
///
/// # Errors
/// The end of the supervisor, and what it was told, too.
pub fn be_switches(prepared: &Prepared, hosts: &[i32], channel: &UnixStream) -> io::Result<()> {
    let mut switches = match Switches::build(prepared, hosts) {
        Ok(switches) => {
            answer(channel, Ok(()))?;
            switches
        }
        Err(error) => return answer::<()>(channel, Err(error)),
    };
    loop {
        let crossing = plain::<Crossing>(channel)?;
        let before = switches.counted();
        answer(channel, before.as_ref().map(drop).map_err(said))?;
        let report = switches.cross(crossing, plain(channel)?, &before?, channel);
        channel.set_nonblocking(false)?;
        answer(channel, report)?;
    }
}

fn said(error: &io::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// What all ports and namespaces have counted, and when each was asked, by the monotonic clock.
struct Counted {
    ports: BTreeMap<PortId, (u64, Counts)>,
    thrown_away: drops::Counters,
}

impl<'a> Switches<'a> {
    fn build(prepared: &'a Prepared, hosts: &[i32]) -> io::Result<Switches<'a>> {
        let graph = &prepared.scenario.graph;
        let home = process::network()?;
        let mut namespaces =
            hosts.iter().map(|host| process::watch(*host)).collect::<io::Result<Vec<OwnedFd>>>()?;
        for _ in 0..graph.switches {
            process::enter_network()?;
            namespaces.push(process::network()?);
        }
        let mut switches = Switches {
            prepared,
            namespaces,
            home,
            routes: Routes::new(graph).map_err(io::Error::other)?,
            addresses: (0..graph.hosts).map(address).collect(),
            applied: vec![],
            dead: BTreeSet::new(),
            found: vec![],
        };
        for switch in graph.each_switch() {
            let node = switch.node(graph.hosts);
            let sysctls = switches.within(node, || switches.sysctls(switch))?;
            switches.found.push(json!({ "sysctls": sysctls }));
        }
        process::enter(&switches.home)?;
        Tool::Ip.does(&switches.links(hosts))?;
        for node in graph.each_node() {
            let found = switches.within(node, || switches.set_up(node))?;
            if let (Some(switch), Some(found)) = (graph.switch(node), found) {
                let of = &mut switches.found[switch.index()];
                of["routes"] = found;
            }
        }
        process::enter(&switches.home)?;
        switches.applied =
            graph.each_switch().map(|number| switches.switch(number).routes()).collect();
        Ok(switches)
    }

    /// Does something in a node's namespace.
    ///
    /// # Errors
    /// The kernel's, and the node's own.
    pub fn within<T>(&self, node: NodeId, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        process::enter(&self.namespaces[node.index()])?;
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", self.name(node)));
        act().map_err(named)
    }

    fn name(&self, node: NodeId) -> String {
        match self.prepared.scenario.graph.switch(node) {
            None => format!("host {node}"),
            Some(switch) => format!("switch {switch}"),
        }
    }

    /// A switch as it is to be now.
    pub fn switch(&self, number: SwitchId) -> Switch<'_> {
        let scenario = &self.prepared.scenario;
        Switch {
            number,
            seed: scenario.seed,
            balance: &scenario.scheme.balance,
            routes: &self.routes,
            addresses: &self.addresses,
            dead: &self.dead,
        }
    }

    fn sysctls(&self, switch: SwitchId) -> io::Result<Vec<(String, String)>> {
        let seed = self.switch(switch).hash_seed().to_string();
        let fixed = SYSCTLS.map(|(name, value)| (name, value.to_owned()));
        setup::set(&[&fixed[..], &[("ipv4/fib_multipath_hash_seed", seed)]].concat())
    }

    /// The interface by which a node sends to a directed link.
    pub fn interface(&self, port: PortId) -> String {
        let graph = &self.prepared.scenario.graph;
        match graph.switch(near_end(graph, port)) {
            None => INTERFACE.to_owned(),
            Some(_) => interface(port),
        }
    }

    /// The links, as lines for `ip`. With ARP off all interfaces take their own hardware address for that of the far end, and so
    /// all have the same.
    fn links(&self, hosts: &[i32]) -> String {
        let (graph, mtu) = (&self.prepared.scenario.graph, self.prepared.hosts.mtu);
        let place = |node: NodeId| match hosts.get(node.index()) {
            Some(host) => host.to_string(),
            None => format!("/proc/self/fd/{}", self.namespaces[node.index()].as_raw_fd()),
        };
        let mut lines = String::new();
        for link in 0..graph.links.len() {
            let [one, other] = PortId::of(link).map(|port| {
                let place = place(near_end(graph, port));
                let (name, hardware) = (self.interface(port), hardware());
                format!("{name} mtu {mtu} address {hardware} netns {place}")
            });
            let _ = writeln!(lines, "link add {one} type veth peer name {other}");
        }
        lines
    }

    /// The ports by which a node sends.
    fn ports(&self, node: NodeId) -> impl Iterator<Item = PortId> + '_ {
        let graph = &self.prepared.scenario.graph;
        let all = (0..graph.links.len()).flat_map(PortId::of);
        all.filter(move |port| near_end(graph, *port) == node)
    }

    /// The rate and the limit that a port is built with.
    pub fn rate_and_limit(&self, port: PortId) -> (Rate, Limit) {
        let scenario = &self.prepared.scenario;
        let link = &scenario.graph.links[port.link()];
        let limit = match scenario.graph.switch(near_end(&scenario.graph, port)) {
            None => scenario.host.nic_queue,
            Some(_) => link.queue_limit.unwrap_or(scenario.scheme.queue.limit()),
        };
        (link.rate, limit)
    }

    /// Sets up the namespace that this process is in; what routes a switch has then.
    fn set_up(&self, node: NodeId) -> io::Result<Option<Value>> {
        let mtu = self.prepared.hosts.mtu;
        let framing = self.prepared.scenario.host.framing_overhead.0;
        let mut queues = String::new();
        for port in self.ports(node) {
            let (rate, limit) = self.rate_and_limit(port);
            queues += &queue(&self.interface(port), rate, limit, mtu, framing);
        }
        Tool::Tc.does(&queues)?;
        let found = self.read(node)?;
        for port in self.ports(node) {
            let name = self.interface(port);
            let (rate, limit) = self.rate_and_limit(port);
            let (kind, limit) = fifo(limit);
            let queue = found.get(&name).cloned().unwrap_or_default();
            let Queue { rate: is, overhead, .. } = queue;
            if (is, overhead) != (rate.0 / 8, framing - ETHERNET)
                || (queue.kind.as_str(), queue.limit) != (kind, limit)
            {
                let text =
                    format!("the queue of {name} is {queue:?}, not {rate} and {kind} of {limit}");
                return Err(io::Error::other(text));
            }
        }
        let Some(number) = self.prepared.scenario.graph.switch(node) else {
            return Ok(None);
        };
        let mut lines = String::new();
        for port in self.ports(node) {
            let _ = writeln!(lines, "link set {} arp off up", interface(port));
        }
        // What has lost its route is lost, and so is what goes round while one switch after the other learns of a failure. Nobody is told:
        // a switch says nothing of its own.
        let _ =
            writeln!(lines, "route add blackhole {PREFIX}\nrule add priority 100 iif lo blackhole");
        let switch = self.switch(number);
        Tool::Ip.does(&(lines + &switch.routes() + &switch.rules()))?;
        if switch.marks() {
            Tool::Nft.does(&switch.marking())?;
        }
        self.routes_as_read(number).map(Some)
    }

    /// By which interfaces a switch sends to each host, in the hosts' order; all are as they should be.
    fn routes_as_read(&self, switch: SwitchId) -> io::Result<Value> {
        let said: Vec<Value> = serde_json::from_str(&Tool::Ip.says(&["-json", "route", "show"])?)?;
        let devices = |route: &Value| -> Vec<String> {
            let hops =
                route["nexthops"].as_array().map_or(std::slice::from_ref(route), Vec::as_slice);
            hops.iter().filter_map(|hop| hop["dev"].as_str()).map(str::to_owned).collect()
        };
        let found: BTreeMap<&str, Vec<String>> = said
            .iter()
            .filter_map(|route| Some((route["dst"].as_str()?, devices(route))))
            .collect();
        let mut all = vec![];
        for (host, address) in self.addresses.iter().enumerate() {
            let there = found.get(address.to_string().as_str()).cloned().unwrap_or_default();
            let ports = self.switch(switch).ports(HostId::at(host));
            let wanted: Vec<String> = ports.into_iter().map(interface).collect();
            if there != wanted {
                let text = format!("the route to host {host} is {there:?}, not {wanted:?}");
                return Err(io::Error::other(text));
            }
            all.push(there.join(" "));
        }
        Ok(all.into())
    }

    /// What `tc` says of the queues of the namespace that this process is in.
    fn read(&self, _node: NodeId) -> io::Result<BTreeMap<String, Queue>> {
        counters::read(&Tool::Tc.says(&["-s", "-json", "qdisc", "show"])?)
    }

    fn counted(&self) -> io::Result<Counted> {
        let graph = &self.prepared.scenario.graph;
        let (mut ports, mut thrown_away) = (BTreeMap::new(), drops::Counters::new());
        for node in graph.each_node() {
            let found = self.within(node, || self.read(node))?;
            for port in self.ports(node) {
                let queue = found.get(&self.interface(port)).cloned().unwrap_or_default();
                ports.insert(port, (monotonic_ns(), queue.counts));
            }
            if graph.switch(node).is_some() {
                for (name, count) in drops::counted() {
                    *thrown_away.entry(name).or_default() += count;
                }
            }
        }
        process::enter(&self.home)?;
        Ok(Counted { ports, thrown_away })
    }

    /// Lets flows cross until the supervisor says that it is enough, and tells what there is to tell.
    fn cross(
        &mut self,
        crossing: Crossing,
        times: Times,
        before: &Counted,
        channel: &UnixStream,
    ) -> io::Result<FabricReport> {
        channel.set_nonblocking(true)?;
        let arrivals_ns = times.begin_ns + times.arrivals_ns;
        let mut at_arrivals = None;
        let mut incidents = Incidents::new(self)?;
        let mut late = Lateness::default();
        loop {
            let (counts, fails) = match crossing {
                Crossing::Alone => (None, None),
                Crossing::Run => (
                    at_arrivals.is_none().then_some(arrivals_ns),
                    // What is broken from the beginning is so before it.
                    incidents.next().map(|next| match next {
                        Time::ZERO => 0,
                        next => times.begin_ns + next.as_ns(),
                    }),
                ),
            };
            let next = counts.into_iter().chain(fails).min();
            let told = process::wait_until(channel, channel, next)?;
            if told && (&*channel).read(&mut [0]).is_ok() {
                break;
            }
            let now = monotonic_ns();
            if let Some(at) = fails.filter(|at| now >= *at) {
                incidents.carry_out(Time(now.saturating_sub(times.begin_ns) * 1_000), self)?;
                late.add(monotonic_ns().saturating_sub(at.max(times.begin_ns)));
            } else if counts.is_some_and(|at| now >= at) {
                at_arrivals = Some(self.counted()?);
            }
        }
        let report = self.report(times, before, at_arrivals)?;
        Ok(FabricReport { changed: late, ..report })
    }

    /// What every switch was set to, and what its ports have counted, by the names of their links.
    fn told(&self, counts: impl Fn(PortId) -> PortCounters) -> Vec<Value> {
        let graph = &self.prepared.scenario.graph;
        let mut found = self.found.clone();
        for (switch, of) in graph.each_switch().zip(&mut found) {
            for port in self.ports(switch.node(graph.hosts)) {
                let PortCounters { packets, bytes, drops, .. } = counts(port);
                of["ports"][link_name(graph, port)] =
                    json!({ "packets": packets, "bytes": bytes, "drops": drops });
            }
        }
        found
    }

    fn report(
        &self,
        times: Times,
        before: &Counted,
        at_arrivals: Option<Counted>,
    ) -> io::Result<FabricReport> {
        let now = self.counted()?;
        let scenario = &self.prepared.scenario;
        let (graph, framing) = (&scenario.graph, scenario.host.framing_overhead.0);
        let since = |counted: &Counted, port: PortId| {
            let counts = counted.ports[&port].1.since(before.ports[&port].1);
            let bytes = counts.bytes + counts.packets * (framing - ETHERNET);
            PortCounters {
                packets: counts.packets,
                bytes,
                drops: counts.drops,
                ..PortCounters::default()
            }
        };
        let ports: Vec<PortId> = (0..graph.links.len()).flat_map(PortId::of).collect();
        // A namespace after the other is asked when the arrivals end: what was sent since then is taken off in proportion.
        let busy = |port: &PortId| {
            let rate = graph.links[port.link()].rate;
            let Some(counted) = &at_arrivals else {
                return rate.transmission_time(since(&now, *port).bytes);
            };
            let asked_ns = counted.ports[port].0 - times.begin_ns;
            let sent = u128::from(since(counted, *port).bytes) * u128::from(times.arrivals_ns);
            rate.transmission_time((sent / u128::from(asked_ns.max(1))) as u64)
        };
        let busy: Vec<Time> = ports.iter().map(busy).collect();
        let all =
            |what: fn(PortCounters) -> u64| ports.iter().map(|port| what(since(&now, *port))).sum();
        let is_host = |port: &&PortId| graph.switch(near_end(graph, **port)).is_none();
        let hosts = ports.iter().filter(is_host);
        let mut thrown_away = drops::since(&before.thrown_away, &now.thrown_away);
        if !scenario.faults.is_quiet() {
            // What comes to an interface that is down is lost as the plan says, and so is what goes round while one switch after the other
            // learns of it.
            thrown_away
                .retain(|name, _| !name.starts_with("interface") && name != "Ip InHdrErrors");
        }
        let frames: u64 = hosts.clone().map(|port| since(&now, *port).packets).sum();
        let dropped = all(|counts| counts.drops);
        // What hosts have sent and were not sent, and no full queue has dropped; their own queues' drops were never sent.
        let at_hosts: u64 = hosts.clone().map(|port| since(&now, *port).drops).sum();
        let handed: u64 = hosts.map(|port| since(&now, port.reversed()).packets).sum();
        let gone = frames.saturating_sub(handed + dropped - at_hosts);
        Ok(FabricReport {
            tiers: tier_records(graph, scenario.horizon.arrivals, &busy, |port| since(&now, port)),
            packet_hops: all(|counts| counts.packets),
            dropped,
            lost: if scenario.faults.is_quiet() { 0 } else { gone },
            frames,
            thrown_away,
            switches: self.told(|port| since(&now, port)).into(),
            unknown: vec!["max_queue".to_owned()],
            ..FabricReport::default()
        })
    }
}
