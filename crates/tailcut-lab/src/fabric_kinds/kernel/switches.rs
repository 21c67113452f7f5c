//! The namespaces of the switches: set-up, and verification by reading back. No process lives in
//! them: they vanish with the process that holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use serde_json::{Value, json};
use tailcut_engine::Rate;
use tailcut_net::amount::Limit;
use tailcut_net::topology::find::link_name;
use tailcut_net::topology::{HostId, NodeId, PortId, Routes, SwitchId};

use super::balance::{self, PathSelector};
use super::commands::{SwitchTables, fifo, interface, queue};
use super::queue_stats::QueueStatsReader;
use super::readback::{self, QueueReadBack};
use super::{ETHERNET, switch_programs};
use crate::addressing::{INTERFACE, PREFIX, address, hardware_address};
use crate::fabric::ports::near_end;
use crate::prepared::Prepared;
use crate::sys::bpf::BpfObject;
use crate::sys::process;
use crate::sys::sysctl::set_sysctls;
use crate::tools::Tool;

/// Sysctls of every switch, besides the seed. The first one resets others, so it comes first.
///
/// The hash covers named fields: addresses, protocol and ports. Policy 1, a hash of the five-tuple,
/// would use the number that the sending socket has given to the packet, if any. That number is the
/// same at all switches, differs between runs, and changes after a timeout.
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

/// The state read back of a node: its queues by the names of their links, and a switch's routes.
type NodeReadBack = (BTreeMap<String, Value>, Option<Value>);

/// The namespaces of all nodes, and their current state.
pub struct Switches<'a> {
    /// The run.
    pub prepared: &'a Prepared,
    /// The namespaces of all nodes: first those of the hosts' processes, then those of the
    /// switches.
    namespaces: Vec<OwnedFd>,
    /// The namespace of this process.
    pub home: OwnedFd,
    /// Current routes of the routing protocol (failures appear after reconvergence).
    pub routes: Routes,
    /// Whether routes have changed since the last sample of the time series.
    pub rerouted: bool,
    addresses: Vec<Ipv4Addr>,
    /// The routes last installed on each switch.
    pub applied: Vec<String>,
    /// The largest mark for which each switch has a rule.
    pub ruled: Vec<u32>,
    /// Links that are down.
    pub down: BTreeSet<usize>,
    /// Directed links that are down at some time of the run.
    pub taken_down: BTreeSet<PortId>,
    /// Rates of ports that differ from the initial ones.
    pub rates: BTreeMap<PortId, Rate>,
    /// Initial state read from each switch.
    pub initial: Vec<Value>,
    /// Initial queues of all ports as read back, by the names of their links.
    pub queues: BTreeMap<String, Value>,
    /// Switches from which the kernel has removed routes.
    pub stale: BTreeSet<SwitchId>,
    /// Nodes changed but not yet verified.
    pub unverified: BTreeSet<NodeId>,
    /// The reader of each node's queue statistics.
    pub counters: Vec<QueueStatsReader>,
    /// The attachments of the switches' programs.
    attached: Vec<OwnedFd>,
}

impl<'a> Switches<'a> {
    /// Creates all switches and links, between the hosts with these pids.
    ///
    /// # Errors
    /// The kernel's error, or a setting that did not take effect.
    pub fn build(prepared: &'a Prepared, hosts: &[i32]) -> io::Result<Switches<'a>> {
        let graph = &prepared.scenario.graph;
        let home = process::open_network()?;
        let mut namespaces = hosts
            .iter()
            .map(|host| process::open_pidfd(*host))
            .collect::<io::Result<Vec<OwnedFd>>>()?;
        for _ in 0..graph.switches {
            process::unshare_network()?;
            namespaces.push(process::open_network()?);
        }
        let mut switches = Switches {
            prepared,
            namespaces,
            home,
            routes: Routes::new(graph).map_err(io::Error::other)?,
            addresses: (0..graph.hosts).map(address).collect(),
            rerouted: false,
            applied: vec![],
            ruled: vec![0; graph.switches as usize],
            down: BTreeSet::new(),
            taken_down: prepared.taken_down.clone(),
            rates: BTreeMap::new(),
            initial: vec![],
            queues: BTreeMap::new(),
            stale: BTreeSet::new(),
            unverified: BTreeSet::new(),
            counters: vec![],
            attached: vec![],
        };
        for switch in graph.each_switch() {
            let node = switch.node(graph.hosts);
            let sysctls = switches.within(node, || switches.sysctls(switch))?;
            switches.initial.push(json!({ "sysctls": sysctls }));
        }
        process::join_network(&switches.home)?;
        Tool::Ip.run_batch(&switches.links(hosts))?;
        for node in graph.each_node() {
            let ((queues, found), attached, counters) = switches.within(node, || {
                let (found, interfaces) = (switches.set_up(node)?, switches.interfaces(node)?);
                let attached = switches.attach(node, &interfaces)?;
                Ok((found, attached, QueueStatsReader::new(interfaces)?))
            })?;
            switches.queues.extend(queues);
            switches.attached.extend(attached);
            switches.counters.push(counters);
            if let (Some(switch), Some(found)) = (graph.switch(node), found) {
                let of = &mut switches.initial[switch.index()];
                of["routes"] = found;
            }
        }
        process::join_network(&switches.home)?;
        for number in graph.each_switch() {
            let (routes, most) = {
                let switch = switches.switch(number);
                (switch.routes(), switch.largest_mark())
            };
            switches.applied.push(routes);
            switches.ruled[number.index()] = most;
        }
        Ok(switches)
    }

    /// Runs `act` in a node's namespace, and stays there.
    ///
    /// # Errors
    /// The kernel's error, or that of `act` with the node's name.
    pub fn within<T>(&self, node: NodeId, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        process::join_network(&self.namespaces[node.index()])?;
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", self.name(node)));
        act().map_err(named)
    }

    fn name(&self, node: NodeId) -> String {
        match self.prepared.scenario.graph.switch(node) {
            None => format!("host {node}"),
            Some(switch) => format!("switch {switch}"),
        }
    }

    /// Returns the current tables of a switch.
    pub fn switch(&self, number: SwitchId) -> SwitchTables<'_> {
        let scenario = &self.prepared.scenario;
        SwitchTables {
            number,
            seed: scenario.seed,
            selector: balance::find(&scenario.scheme.balance)
                .map_or(PathSelector::Hash, |choice| choice.selector()),
            routes: &self.routes,
            addresses: &self.addresses,
            down: &self.down,
        }
    }

    fn sysctls(&self, switch: SwitchId) -> io::Result<Vec<(String, String)>> {
        let seed = self.switch(switch).hash_seed().to_string();
        let fixed = SYSCTLS.map(|(name, value)| (name, value.to_owned()));
        set_sysctls(&[&fixed[..], &[("ipv4/fib_multipath_hash_seed", seed)]].concat())
    }

    /// Returns the name of the interface by which a node sends into a directed link.
    pub fn interface(&self, port: PortId) -> String {
        let graph = &self.prepared.scenario.graph;
        match graph.switch(near_end(graph, port)) {
            None => INTERFACE.to_owned(),
            Some(_) => interface(port),
        }
    }

    /// Returns the commands for `ip` that create the links. With ARP off an interface uses its own
    /// hardware address for the far end, so all have the same.
    fn links(&self, hosts: &[i32]) -> String {
        let (graph, mtu) = (&self.prepared.scenario.graph, self.prepared.hosts.mtu);
        let place = |node: NodeId| match hosts.get(node.index()) {
            Some(host) => host.to_string(),
            None => format!("/proc/self/fd/{}", self.namespaces[node.index()].as_raw_fd()),
        };
        let mut lines = String::new();
        for link in 0..graph.links.len() {
            let [one, other] = PortId::both_directions(link).map(|port| {
                let place = place(near_end(graph, port));
                let (name, hardware) = (self.interface(port), hardware_address());
                format!("{name} mtu {mtu} address {hardware} netns {place}")
            });
            let _ = writeln!(lines, "link add {one} type veth peer name {other}");
        }
        lines
    }

    /// Returns the interface indices and ports of a node in the current namespace.
    fn interfaces(&self, node: NodeId) -> io::Result<Vec<(u32, PortId)>> {
        let number =
            |port| process::interface_index(&self.interface(port)).map(|number| (number, port));
        self.ports(node).map(number).collect()
    }

    /// Iterates over the ports by which a node sends.
    pub fn ports(&self, node: NodeId) -> impl Iterator<Item = PortId> + '_ {
        let graph = &self.prepared.scenario.graph;
        let all = (0..graph.links.len()).flat_map(PortId::both_directions);
        all.filter(move |port| near_end(graph, *port) == node)
    }

    /// Returns the current rate of a port.
    pub fn rate(&self, port: PortId) -> Rate {
        self.rates.get(&port).copied().unwrap_or_else(|| self.rate_and_limit(port).0)
    }

    /// Returns the initial rate and limit of a port.
    pub fn rate_and_limit(&self, port: PortId) -> (Rate, Limit) {
        let scenario = &self.prepared.scenario;
        let link = &scenario.graph.links[port.link()];
        let limit = match scenario.graph.switch(near_end(&scenario.graph, port)) {
            None => scenario.host.nic_queue,
            Some(_) => link.queue_limit.unwrap_or(scenario.scheme.queue.limit()),
        };
        (link.rate, limit)
    }

    /// Sets up the current namespace as that of a node, and returns its state as read back.
    fn set_up(&self, node: NodeId) -> io::Result<NodeReadBack> {
        let mtu = self.prepared.hosts.mtu;
        let framing = self.prepared.scenario.host.framing_overhead.0;
        let mut queues = String::new();
        for port in self.ports(node) {
            let (rate, limit) = self.rate_and_limit(port);
            queues += &queue(&self.interface(port), rate, limit, mtu, framing);
        }
        Tool::Tc.run_batch(&queues)?;
        let Some(number) = self.prepared.scenario.graph.switch(node) else {
            return self.verify_node(node);
        };
        let mut lines = String::new();
        for port in self.ports(node) {
            let _ = writeln!(lines, "link set {} arp off up", interface(port));
        }
        // Packets without a route, and those that loop while switches learn of a failure one after
        // the other, are dropped silently: a switch sends nothing of its own.
        let _ =
            writeln!(lines, "route add blackhole {PREFIX}\nrule add priority 100 iif lo blackhole");
        Tool::Ip.run_batch(&lines)?;
        self.set_routes(number)?;
        self.verify_node(node)
    }

    /// Installs the current routes on a switch in whose namespace this process is, and rules for
    /// marks that are new.
    pub fn set_routes(&self, number: SwitchId) -> io::Result<()> {
        let switch = self.switch(number);
        Tool::Ip.run_batch(&(switch.routes() + &switch.rules(self.ruled[number.index()])))?;
        match self.program(number) {
            Some(program) => switch_programs::write_path_counts(program, &switch),
            None if switch.marks() => Tool::Nft.run_batch(&switch.marking()),
            None => Ok(()),
        }
    }

    /// Returns the versions of the tools used besides iproute2.
    ///
    /// # Errors
    /// A tool has been removed.
    pub fn versions(&self) -> io::Result<BTreeMap<String, String>> {
        let graph = &self.prepared.scenario.graph;
        let by_nft = self.prepared.programs.is_empty()
            && graph.each_switch().any(|number| self.switch(number).marks());
        let nft = by_nft.then(|| Ok(("nftables".to_owned(), Tool::Nft.version()?)));
        nft.into_iter().collect()
    }

    /// Returns the BPF program that marks the packets of a switch, if any.
    fn program(&self, number: SwitchId) -> Option<&BpfObject> {
        self.prepared.programs.get(number.index())
    }

    /// Attaches a switch's program, if it has one, to the ingress of its interfaces.
    fn attach(&self, node: NodeId, interfaces: &[(u32, PortId)]) -> io::Result<Vec<OwnedFd>> {
        let number = self.prepared.scenario.graph.switch(node);
        match number.and_then(|number| self.program(number)) {
            Some(program) => switch_programs::attach(program, &self.prepared.scenario, interfaces),
            None => Ok(vec![]),
        }
    }

    /// Verifies the state of a node in whose namespace this process is, and returns it.
    fn verify_node(&self, node: NodeId) -> io::Result<NodeReadBack> {
        let queues = self.verify_queues(node)?;
        let Some(number) = self.prepared.scenario.graph.switch(node) else {
            return Ok((queues, None));
        };
        self.verify_links(node)?;
        Ok((queues, Some(self.verify_routes(number)?)))
    }

    /// Verifies one of the changed nodes, if there is any.
    ///
    /// # Errors
    /// The kernel's error, or a setting that did not take effect.
    pub fn verify_one(&mut self) -> io::Result<()> {
        let Some(node) = self.unverified.pop_first() else { return Ok(()) };
        self.within(node, || self.verify_node(node))?;
        process::join_network(&self.home)
    }

    /// Verifies the rates and queues of a node's ports, and returns them by the names of their
    /// links.
    fn verify_queues(&self, node: NodeId) -> io::Result<BTreeMap<String, Value>> {
        let graph = &self.prepared.scenario.graph;
        let mut told = BTreeMap::new();
        let framing = self.prepared.scenario.host.framing_overhead.0;
        let found = readback::queues(&Tool::Tc.output(&["-json", "qdisc", "show"])?)?;
        for port in self.ports(node) {
            let (name, rate) = (self.interface(port), self.rate(port));
            let (kind, limit) = fifo(self.rate_and_limit(port).1);
            let queue = found.get(&name).cloned().unwrap_or_default();
            let QueueReadBack { rate: is, overhead, .. } = queue;
            if (is, overhead) != (rate.0 / 8, framing - ETHERNET)
                || (queue.kind.as_str(), queue.limit) != (kind, limit)
            {
                let text =
                    format!("the queue of {name} is {queue:?}, not {rate} and {kind} of {limit}");
                return Err(io::Error::other(text));
            }
            told.insert(link_name(graph, port), queue.said.into());
        }
        Ok(told)
    }

    /// Verifies which links of a switch are up.
    fn verify_links(&self, node: NodeId) -> io::Result<()> {
        let up = readback::up(&Tool::Ip.output(&["-json", "link", "show"])?)?;
        for port in self.ports(node) {
            let (name, dead) = (self.interface(port), self.down.contains(&port.link()));
            if up.contains(&name) == dead {
                let (is, not) = if dead { ("up", "down") } else { ("down", "up") };
                return Err(io::Error::other(format!("{name} is {is}, not {not}")));
            }
        }
        Ok(())
    }

    /// Verifies the routes and marks of a switch, and returns its egress interfaces to each host,
    /// in the hosts' order.
    fn verify_routes(&self, number: SwitchId) -> io::Result<Value> {
        let found =
            readback::routes(&Tool::Ip.output(&["-json", "route", "show", "table", "all"])?)?;
        let switch = self.switch(number);
        let mut wanted = readback::RouteDevices::new();
        for (host, address) in self.addresses.iter().enumerate() {
            let ports = switch.ports(HostId::at(host));
            wanted.insert((0, *address), ports.into_iter().map(interface).collect());
        }
        for (address, table, port) in switch.mark_routes() {
            wanted.insert((table, address), vec![interface(port)]);
        }
        for (place @ (table, address), devices) in &wanted {
            let there = found.get(place);
            if there != Some(devices) {
                let text = format!(
                    "the route to {address} in table {table} uses {there:?}, not {devices:?}"
                );
                return Err(io::Error::other(text));
            }
        }
        if switch.marks() {
            self.verify_marks(&switch)?;
        }
        let to_host = |address: &Ipv4Addr| Value::from(wanted[&(0, *address)].join(" "));
        Ok(self.addresses.iter().map(to_host).collect())
    }

    /// Verifies the marking rules (or BPF map) and the policy routing rules of a switch. After a
    /// failure, rules for unused marks may remain.
    fn verify_marks(&self, switch: &SwitchTables<'_>) -> io::Result<()> {
        let rules = readback::rules(&Tool::Ip.output(&["-json", "rule", "show"])?)?;
        let tables = switch.tables();
        if tables.iter().any(|(mark, table)| rules.get(mark) != Some(table)) {
            let text = format!("rules map marks to the tables {rules:?}, not {tables:?}");
            return Err(io::Error::other(text));
        }
        if tables.is_empty() {
            return Ok(());
        }
        if let Some(program) = self.program(switch.number) {
            return switch_programs::verify_path_counts(program, switch);
        }
        let said = Tool::Nft.output(&["-j", "list", "table", "ip", "tailcut"])?;
        let (marks, wanted) = (readback::marks(&said)?, switch.expected_marks());
        if marks != wanted {
            return Err(io::Error::other(format!(
                "the marking rules are {marks:?}, not {wanted:?}"
            )));
        }
        Ok(())
    }
}
