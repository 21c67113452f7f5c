//! Commands that set up a switch, for `ip`, `tc` and `nft`. They consist of numbers and names that
//! the lab itself has chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use tailcut_engine::{RandomStream, Rate};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::topology::{HostId, PortId, Routes, SwitchId};

use super::ETHERNET;
use super::balance::PathSelector;
use super::readback::MarkingRules;

/// The limit of a queue without limit, in packets.
pub const UNLIMITED: u64 = 1_000_000;
/// The base of routing tables: packets with mark n use table 1,000 + n. The kernel's own tables are
/// 253 to 255.
const TABLES: u32 = 1_000;
/// The granularity of tbf's burst in nanoseconds.
const TICK_NS: u64 = 64;
/// The lateness of its timer that tbf may make up for, in nanoseconds. The port loses the traffic
/// of any longer delay.
const LATE_TIMER_NS: u64 = 300_000;

/// Returns the name of the interface by which a switch sends into a directed link.
pub fn interface(port: PortId) -> String {
    format!("p{}", port.index())
}

/// Returns the kind and limit of a port's queue.
pub fn fifo(limit: Limit) -> (&'static str, u64) {
    match limit {
        Limit::Unlimited => ("pfifo", UNLIMITED),
        Limit::AtMost(Amount::Packets(packets)) => ("pfifo", u64::from(packets)),
        Limit::AtMost(Amount::Bytes(bytes)) => ("bfifo", bytes),
    }
}

/// Returns the commands for `tc` that set the rate and queue of an interface. tbf counts the
/// framing of packets. Its burst is one packet plus the traffic of 300 us: with room for the packet
/// alone, each late timer would slow the port down.
pub fn queue(interface: &str, rate: Rate, limit: Limit, mtu: u64, framing: u64) -> String {
    set_queue("add", interface, rate, limit, mtu, framing)
}

/// Returns the commands that change the rate. tbf then resets the limit of its queue, which is set
/// again.
pub fn change_rate(interface: &str, rate: Rate, limit: Limit, mtu: u64, framing: u64) -> String {
    set_queue("change", interface, rate, limit, mtu, framing)
}

fn set_queue(
    verb: &str,
    interface: &str,
    rate: Rate,
    limit: Limit,
    mtu: u64,
    framing: u64,
) -> String {
    let latency = u128::from(rate.0) * u128::from(TICK_NS + LATE_TIMER_NS) / 8_000_000_000 + 1;
    let (overhead, burst) = (framing - ETHERNET, u128::from(mtu + framing) + latency);
    let (kind, limit) = fifo(limit);
    format!(
        "qdisc {verb} dev {interface} root handle 1: tbf rate {}bit burst {burst}b overhead {overhead} limit 1000000b\n\
         qdisc {verb} dev {interface} parent 1:1 handle 2: {kind} limit {limit}\n",
        rate.0
    )
}

/// The routing and marking tables of a switch.
#[derive(Clone, Copy)]
pub struct SwitchTables<'a> {
    /// The switch.
    pub number: SwitchId,
    /// The seed of the run.
    pub seed: u64,
    /// The mechanism that selects among equal-cost ports.
    pub selector: PathSelector,
    /// Current routes.
    pub routes: &'a Routes,
    /// The hosts' addresses.
    pub addresses: &'a [Ipv4Addr],
    /// Links that are down, by their indices in the graph; they carry no routes.
    pub down: &'a BTreeSet<usize>,
}

impl SwitchTables<'_> {
    /// Iterates over the hosts, with the switch's ports towards each.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &Ipv4Addr, Vec<PortId>)> {
        self.addresses.iter().enumerate().map(|(host, address)| {
            let host = HostId::at(host);
            (host, address, self.ports(host))
        })
    }

    /// Returns the live ports towards a host.
    pub fn ports(&self, host: HostId) -> Vec<PortId> {
        let all = self.routes.candidates(self.number, host).iter();
        all.copied().filter(|port| !self.down.contains(&port.link())).collect()
    }

    /// Whether incoming packets are marked.
    pub fn marks(&self) -> bool {
        self.selector != PathSelector::Hash
    }

    /// Returns the commands for `ip` that set the routes to every host, over all equal-cost ports.
    /// Packets without a route are dropped silently.
    pub fn routes(&self) -> String {
        let mut lines = String::new();
        for (_, address, ports) in self.hosts() {
            let _ = match &ports[..] {
                [] => writeln!(lines, "route replace blackhole {address}/32"),
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

    /// Returns the routes of marked packets: destination, routing table of the mark, egress port.
    /// Mark n selects the n-th port, starting from the host's first turn.
    pub fn mark_routes(&self) -> Vec<(Ipv4Addr, u32, PortId)> {
        let mut all = vec![];
        for (host, address, ports) in self.choices() {
            let begin = self.first_turn(host, ports.len());
            for (slot, table) in (0..ports.len()).zip(TABLES + 1..) {
                all.push((*address, table, ports[(begin + slot) % ports.len()]));
            }
        }
        all
    }

    /// Iterates over the hosts whose packets are marked: those with several ports, if the balancer
    /// marks packets.
    pub fn choices(&self) -> impl Iterator<Item = (HostId, &Ipv4Addr, Vec<PortId>)> {
        self.hosts().filter(|(_, _, ports)| self.marks() && ports.len() > 1)
    }

    fn marked_routes(&self) -> String {
        let line = |(address, table, port)| {
            format!("route replace {address}/32 dev {} table {table}\n", interface(port))
        };
        self.mark_routes().into_iter().map(line).collect()
    }

    /// Returns the marks, and the routing tables that rules map them to.
    pub fn tables(&self) -> BTreeMap<u32, u32> {
        let most = self.choices().map(|(_, _, ports)| ports.len() as u32).max().unwrap_or(0);
        (1..=most).map(|mark| (mark, TABLES + mark)).collect()
    }

    /// Returns the commands for `ip` that add rules for marks above `given`.
    pub fn rules(&self, given: u32) -> String {
        let rule =
            |(mark, table)| format!("rule add priority {mark} fwmark {mark} lookup {table}\n");
        self.tables().into_iter().filter(|(mark, _)| *mark > given).map(rule).collect()
    }

    /// Returns the largest mark; 0 if nothing is marked.
    pub fn largest_mark(&self) -> u32 {
        self.tables().into_keys().next_back().unwrap_or(0)
    }

    /// Returns the port at which the turns of a host begin, so that hosts do not move in step.
    fn first_turn(&self, host: HostId, ports: usize) -> usize {
        match self.selector {
            PathSelector::Turn => {
                let entity = u64::from(self.number.0) << 32 | u64::from(host.0);
                RandomStream::new(self.seed, entity, "turns of kernels").below(ports as u64)
                    as usize
            }
            _ => 0,
        }
    }

    /// Returns the commands for `nft` that replace the marking rules.
    pub fn marking(&self) -> String {
        const NONE: &str = "table ip tailcut\ndelete table ip tailcut\n";
        let choices = || self.choices();
        if choices().next().is_none() {
            return NONE.to_owned();
        }
        let (mut chains, mut rules) = (String::new(), String::new());
        if self.selector == PathSelector::Turn {
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
            for count in 2..=self.tables().len() {
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
        format!(
            "{NONE}table ip tailcut {{\n{chains}\
             chain choice {{\ntype filter hook prerouting priority mangle\n{rules}}}\n}}\n"
        )
    }

    /// Returns what [`marking`](Self::marking) sets, as it is read back.
    pub fn expected_marks(&self) -> MarkingRules {
        let mut marks = MarkingRules::default();
        let turns = self.selector == PathSelector::Turn;
        for (_, address, ports) in self.choices() {
            marks.to.insert(*address);
            let of = marks.generators.entry((!turns, ports.len() as u64)).or_default();
            // Hosts have counters of their own, and share random draws over as many ports.
            *of = if turns { *of + 1 } else { 1 };
        }
        marks
    }

    /// Returns the seed of the switch's hash; it is never 0, with which the kernel would draw one.
    pub fn hash_seed(&self) -> u32 {
        let drawn =
            RandomStream::new(self.seed, u64::from(self.number.0), "hash of kernels").bits();
        (drawn >> 32) as u32 | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tailcut_net::topology::Graph;
    use tailcut_net::topology::leaf_spine::LeafSpine;

    fn graph() -> Graph {
        let asked = json!({ "racks": 2, "hosts_per_rack": 2, "spines": 3, "rate": "20Mbps" });
        let spec: LeafSpine = serde_json::from_value(asked).expect("it is a leaf-spine");
        spec.build().expect("it can be built")
    }

    /// Applies `ask` to the tables of the first switch, with these links down.
    fn told<T>(by: PathSelector, dead: &[usize], ask: impl Fn(&SwitchTables<'_>) -> T) -> T {
        let graph = graph();
        let routes = Routes::new(&graph).expect("it is connected");
        let addresses: Vec<Ipv4Addr> = (0..4).map(|host| Ipv4Addr::new(10, 0, 0, host)).collect();
        let dead = dead.iter().copied().collect();
        ask(&SwitchTables {
            number: SwitchId(0),
            seed: 1,
            selector: by,
            routes: &routes,
            addresses: &addresses,
            down: &dead,
        })
    }

    #[test]
    fn routes_use_one_port_to_own_hosts_and_all_live_ports_elsewhere() {
        let lines = |dead: &[usize]| -> Vec<String> {
            told(PathSelector::Hash, dead, |switch| switch.routes())
                .lines()
                .map(str::to_owned)
                .collect()
        };
        let whole = lines(&[]);
        assert_eq!(whole[0], "route replace 10.0.0.0/32 dev p1");
        assert_eq!(
            whole[3],
            "route replace 10.0.0.3/32 nexthop dev p8 nexthop dev p10 nexthop dev p12"
        );
        assert_eq!(lines(&[4])[3], "route replace 10.0.0.3/32 nexthop dev p10 nexthop dev p12");
        assert_eq!(lines(&[4, 5])[3], "route replace 10.0.0.3/32 dev p12");
        assert_eq!(lines(&[4, 5, 6])[3], "route replace blackhole 10.0.0.3/32");
    }

    #[test]
    fn spraying_marks_packets_and_gives_each_mark_its_route() {
        let routes = told(PathSelector::Draw, &[], |switch| switch.routes());
        for (port, table) in [("p8", 1_001), ("p10", 1_002), ("p12", 1_003)] {
            assert!(
                routes.contains(&format!("route replace 10.0.0.2/32 dev {port} table {table}\n"))
            );
        }
        let marking = told(PathSelector::Draw, &[], |switch| switch.marking());
        let rule = "ip daddr { 10.0.0.2, 10.0.0.3 } meta mark set numgen random mod 3 offset 1\n";
        assert!(marking.contains(rule), "{marking}");
        assert!(
            told(PathSelector::Draw, &[4], |switch| switch.marking())
                .contains("random mod 2 offset 1")
        );
        assert!(
            !told(PathSelector::Draw, &[4, 5], |switch| switch.marking()).contains("chain"),
            "there is no choice"
        );
        let rules = told(PathSelector::Draw, &[], |switch| switch.rules(0));
        assert_eq!(rules.lines().count(), 3);
        assert!(rules.contains("rule add priority 2 fwmark 2 lookup 1002\n"));
        assert_eq!(told(PathSelector::Hash, &[], |switch| switch.rules(0)), "");
    }

    #[test]
    fn only_rules_for_new_marks_are_added() {
        let beyond = |given| told(PathSelector::Turn, &[], |switch| switch.rules(given));
        assert_eq!(beyond(2), "rule add priority 3 fwmark 3 lookup 1003\n");
        assert_eq!(beyond(3), "");
        assert_eq!(
            told(PathSelector::Draw, &[4], |switch| switch.largest_mark()),
            2,
            "two of three ports are left"
        );
        assert_eq!(told(PathSelector::Draw, &[4, 5], |switch| switch.largest_mark()), 0);
    }

    #[test]
    fn the_highest_rate_has_a_valid_burst() {
        let lines = queue("p1", Rate(100_000_000_000_000), Limit::Unlimited, 1_500, 38);
        assert!(lines.contains("rate 100000000000000bit burst 3750801539b"), "{lines}");
    }

    #[test]
    fn turns_are_counted_for_each_host() {
        let marking = told(PathSelector::Turn, &[], |switch| switch.marking());
        for host in [2, 3] {
            let chain = format!("chain h{host} {{\nmeta mark set numgen inc mod 3 offset 1\n}}\n");
            assert!(marking.contains(&chain), "{marking}");
            assert!(marking.contains(&format!("10.0.0.{host} : jump h{host}")), "{marking}");
        }
    }

    #[test]
    fn the_burst_holds_one_packet_and_300_us_of_traffic() {
        let lines = queue("p1", Rate(20_000_000), Limit::Unlimited, 1_500, 38);
        let wanted = "qdisc add dev p1 root handle 1: tbf rate 20000000bit burst 2289b overhead 24 limit 1000000b\n\
                      qdisc add dev p1 parent 1:1 handle 2: pfifo limit 1000000\n";
        assert_eq!(lines, wanted);
        let bytes = Limit::AtMost(Amount::Bytes(9_000));
        assert!(queue("p1", Rate(1), bytes, 1_500, 38).ends_with("bfifo limit 9000\n"));
        let changed = change_rate("p1", Rate(8), Limit::AtMost(Amount::Packets(7)), 1_500, 38);
        assert!(changed.starts_with("qdisc change dev p1 root") && changed.ends_with("limit 7\n"));
    }
}
