//! Packets that the kernel of a network namespace has dropped. Packets should be dropped in the
//! fabric's queues only, as planned.

use std::collections::BTreeMap;
use std::fs;

/// Counters by name.
pub type DropCounters = BTreeMap<String, u64>;

/// The counters of `/proc/net/snmp` and `/proc/net/netstat` that report packets dropped for lack of
/// room or for their contents.
const COUNTERS: [(&str, &[&str]); 3] = [
    ("Ip", &["InHdrErrors", "InDiscards", "OutDiscards"]),
    // InErrs also counts needless retransmissions of a SYN.
    ("Tcp", &["InCsumErrors"]),
    (
        "TcpExt",
        &[
            "ListenOverflows",
            "TCPReqQFullDrop",
            "TCPBacklogDrop",
            "TCPRcvQDrop",
            "RcvPruned",
            "OfoPruned",
            "PFMemallocDrop",
        ],
    ),
];

/// Reads the counters of this process's namespace; empty if they cannot be read.
pub fn read_drop_counters() -> DropCounters {
    read_drop_counters_except(&[])
}

/// Reads the counters, without those of the listed interfaces.
pub fn read_drop_counters_except(interfaces: &[String]) -> DropCounters {
    let read = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let mut counters = of_protocols(&(read("snmp") + &read("netstat")));
    counters.extend(of_interfaces(&read("dev"), interfaces));
    counters
}

/// Parses pairs of lines: names, then values.
fn of_protocols(text: &str) -> DropCounters {
    let lines: Vec<(&str, Vec<&str>)> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(protocol, rest)| (protocol, rest.split_whitespace().collect()))
        .collect();
    let mut found = DropCounters::new();
    for pair in lines.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let wanted = COUNTERS.iter().find(|(protocol, _)| *protocol == pair[0].0);
        for (name, value) in pair[0].1.iter().zip(&pair[1].1) {
            let named = wanted.is_some_and(|(_, names)| names.contains(name));
            if let (true, Ok(value)) = (named, value.parse()) {
                found.insert(format!("{} {name}", pair[0].0), value);
            }
        }
    }
    found
}

/// Adds up the receive and send errors and drops of all interfaces but the listed ones.
fn of_interfaces(text: &str, but: &[String]) -> DropCounters {
    const PLACES: [(usize, &str); 4] =
        [(2, "receive errors"), (3, "receive drops"), (10, "send errors"), (11, "send drops")];
    let mut found = DropCounters::new();
    let named = text.lines().filter_map(|line| line.split_once(':'));
    for (_, values) in named.filter(|(name, _)| !but.iter().any(|one| one == name.trim())) {
        let values: Vec<u64> = values.split_whitespace().filter_map(|v| v.parse().ok()).collect();
        for (at, name) in PLACES {
            *found.entry(format!("interface {name}")).or_default() +=
                values.get(at).copied().unwrap_or(0);
        }
    }
    found
}

/// Returns the counters that have grown since `before`, and by how much.
pub fn since(before: &DropCounters, now: &DropCounters) -> DropCounters {
    let more = |(name, now): (&String, &u64)| {
        let more = now.saturating_sub(before.get(name).copied().unwrap_or(0));
        (more > 0).then(|| (name.clone(), more))
    };
    now.iter().filter_map(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name_in_any_column() {
        let text = "Ip: Forwarding InDiscards OutRequests\nIp: 1 7 55\n\
                    TcpExt: SyncookiesSent TCPBacklogDrop PAWSActive\nTcpExt: 4 3 2\n";
        let found = of_protocols(text);
        let expected = [("Ip InDiscards", 7), ("TcpExt TCPBacklogDrop", 3)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(of_protocols("Ip: InDiscards\n"), DropCounters::new());
        assert_eq!(of_protocols(""), DropCounters::new());
    }

    const INTERFACES: &str = "Inter-|   Receive |  Transmit\n face |bytes packets errs drop\n\
                    eth0: 90 9 1 2 0 0 0 0 80 8 3 4 0 0 0 0\n  lo: 1 1 0 10 0 0 0 0 1 1 0 0 0 0 0 0\n";

    #[test]
    fn counters_of_all_interfaces_are_added() {
        let found = of_interfaces(INTERFACES, &[]);
        assert_eq!(found["interface receive errors"], 1);
        assert_eq!(found["interface receive drops"], 12);
        assert_eq!((found["interface send errors"], found["interface send drops"]), (3, 4));
    }

    #[test]
    fn excluded_interfaces_are_not_counted() {
        let found = of_interfaces(INTERFACES, &["eth0".to_owned(), "p7".to_owned()]);
        let told = |name: &str| found[&format!("interface {name}")];
        assert_eq!([told("receive errors"), told("receive drops")], [0, 10]);
        assert_eq!([told("send errors"), told("send drops")], [0, 0]);
    }

    #[test]
    fn only_counters_that_grew_are_returned() {
        let of = |values: [u64; 2]| -> DropCounters {
            ["a", "b"].into_iter().map(str::to_owned).zip(values).collect()
        };
        assert_eq!(since(&of([1, 2]), &of([1, 2])), DropCounters::new());
        assert_eq!(since(&of([1, 2]), &of([1, 5])), [("b".to_owned(), 3)].into());
    }
}
