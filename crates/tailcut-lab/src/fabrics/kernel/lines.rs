//! What the tools are told of a switch: lines for `ip`, `tc` and `nft`, of numbers and names that the lab itself has made.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use tailcut_engine::{Rate, Stream};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::balance::BalanceSpec;
use tailcut_net::topology::{Graph, HostId, NodeId, PortId, Routes, SwitchId};

use super::ETHERNET;

/// What waits at a port without limit, in packets.
pub const UNLIMITED: u64 = 1_000_000;
/// Packets with mark n go by routing table 100 + n.
const TABLES: u32 = 100;
/// The granularity with which the kernel is told how much tbf may send at once.
const TICK_NS: u64 = 64;

/// The node that a directed link leaves.
pub fn near_end(graph: &Graph, port: PortId) -> NodeId {
    graph.far_end(port.reversed())
}

/// The name of the interface by which a switch sends to a directed link.
pub fn interface(port: PortId) -> String {
    format!("p{}", port.index())
}

/// How the queue of a port is made: its kind, and its limit.
pub fn fifo(limit: Limit) -> (&'static str, u64) {
    match limit {
        Limit::Unlimited => ("pfifo", UNLIMITED),
        Limit::AtMost(Amount::Packets(packets)) => ("pfifo", u64::from(packets)),
        Limit::AtMost(Amount::Bytes(bytes)) => ("bfifo", bytes),
    }
}

/// The rate of an interface, and its queue: for `tc`. tbf lets one whole packet go at once, and counts what is around it on the wire.
pub fn queue(interface: &str, rate: Rate, limit: Limit, mtu: u64, framing: u64) -> String {
    let in_tick = rate.0 * TICK_NS / 8_000_000_000 + 1;
    let (overhead, burst) = (framing - ETHERNET, mtu + framing + in_tick);
    let (kind, limit) = fifo(limit);
    format!(
        "qdisc add dev {interface} root handle 1: tbf rate {}bit burst {burst}b overhead {overhead} limit 1000000b\n\
         qdisc add dev {interface} parent 1:1 handle 2: {kind} limit {limit}\n",
        rate.0
    )
}

/// A switch, and the ports that it has towards every host.
pub struct Switch<'a> {
    /// Its number.
    pub number: SwitchId,
    /// Of the run.
    pub seed: u64,
    /// How it chooses among ports.
    pub balance: &'a BalanceSpec,
    /// Where it finds them.
    pub routes: &'a Routes,
    /// The hosts' addresses.
    pub addresses: &'a [Ipv4Addr],
}

impl Switch<'_> {
    fn hosts(&self) -> impl Iterator<Item = (HostId, &Ipv4Addr, &[PortId])> {
        self.addresses.iter().enumerate().map(|(host, address)| {
            let host = HostId::at(host);
            (host, address, self.routes.candidates(self.number, host))
        })
    }

    /// Whether packets are marked on their way in.
    fn marks(&self) -> bool {
        !matches!(self.balance, BalanceSpec::Ecmp(_))
    }

    fn most_ports(&self) -> usize {
        self.hosts().map(|(_, _, ports)| ports.len()).max().unwrap_or(0)
    }

    /// Its routes, for `ip`: to every host by all ports that are as short.
    pub fn routes(&self) -> String {
        let mut lines = String::new();
        for (_, address, ports) in self.hosts() {
            let _ = match ports {
                [only] => writeln!(lines, "route replace {address}/32 dev {}", interface(*only)),
                ports => {
                    let hop = |port: &PortId| format!(" nexthop dev {}", interface(*port));
                    let hops: String = ports.iter().map(hop).collect();
                    writeln!(lines, "route replace {address}/32{hops}")
                }
            };
        }
        lines + &self.marked_routes()
    }

    /// The rules and routes of marked packets: mark n is for the n-th port, counted from where the host's turns begin.
    fn marked_routes(&self) -> String {
        let mut lines = String::new();
        if !self.marks() {
            return lines;
        }
        for (host, address, ports) in self.hosts().filter(|(_, _, ports)| ports.len() > 1) {
            let begin = self.begin(host, ports.len());
            for (slot, table) in (0..ports.len()).zip(TABLES + 1..) {
                let port = interface(ports[(begin + slot) % ports.len()]);
                let _ = writeln!(lines, "route replace {address}/32 dev {port} table {table}");
            }
        }
        lines
    }

    /// The rules that take marked packets to their routes, for `ip`.
    pub fn rules(&self) -> String {
        let most = if self.marks() { self.most_ports() as u32 } else { 0 };
        let rule = |mark: u32| {
            format!("rule add priority {mark} fwmark {mark} lookup {}\n", TABLES + mark)
        };
        (1..=most).filter(|_| most > 1).map(rule).collect()
    }

    /// Where the turns of a host begin, so that hosts do not move in step.
    fn begin(&self, host: HostId, ports: usize) -> usize {
        match self.balance {
            BalanceSpec::RoundRobin(_) => {
                let entity = u64::from(self.number.0) << 32 | u64::from(host.0);
                Stream::new(self.seed, entity, "turns of kernels").below(ports as u64) as usize
            }
            _ => 0,
        }
    }

    /// What marks packets, for `nft`; nothing where no packet is marked.
    pub fn marking(&self) -> Option<String> {
        let choices = || self.hosts().filter(|(_, _, ports)| ports.len() > 1);
        if !self.marks() || choices().next().is_none() {
            return None;
        }
        let (mut chains, mut rules) = (String::new(), String::new());
        if let BalanceSpec::RoundRobin(_) = self.balance {
            for (host, _, ports) in choices() {
                let _ = writeln!(
                    chains,
                    "chain h{host} {{\nmeta mark set numgen inc mod {} offset 1\n}}",
                    ports.len()
                );
            }
            let jumps: Vec<String> =
                choices().map(|(host, address, _)| format!("{address} : jump h{host}")).collect();
            let _ = writeln!(rules, "ip daddr vmap {{ {} }}", jumps.join(", "));
        } else {
            for count in 2..=self.most_ports() {
                let of = choices().filter(|(_, _, ports)| ports.len() == count);
                let hosts: Vec<String> = of.map(|(_, address, _)| address.to_string()).collect();
                if !hosts.is_empty() {
                    let _ = writeln!(
                        rules,
                        "ip daddr {{ {} }} meta mark set numgen random mod {count} offset 1",
                        hosts.join(", ")
                    );
                }
            }
        }
        Some(format!(
            "table ip tailcut\ndelete table ip tailcut\ntable ip tailcut {{\n{chains}\
             chain choice {{\ntype filter hook prerouting priority mangle\n{rules}}}\n}}\n"
        ))
    }

    /// The seed of its hash; 0 would let the kernel draw one.
    pub fn hash_seed(&self) -> u32 {
        let drawn = Stream::new(self.seed, u64::from(self.number.0), "hash of kernels").bits();
        (drawn >> 32) as u32 | 1
    }
}
