//! Parsers of the state of a switch, as `tc`, `ip` and `nft` print it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// The rate and queue of an interface.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueReadBack {
    /// The rate of tbf in bytes per second.
    pub rate: u64,
    /// The framing that tbf adds to each packet, in bytes.
    pub overhead: u64,
    /// The kind of the inner queue.
    pub kind: String,
    /// The limit of the inner queue.
    pub limit: u64,
    /// All options of both as printed, without their statistics.
    pub said: Vec<Value>,
}

/// Parses the output of `tc -j qdisc show` into the queues by interface.
///
/// # Errors
/// The output is not of that form.
pub fn queues(said: &str) -> io::Result<BTreeMap<String, QueueReadBack>> {
    let found: Vec<Value> = serde_json::from_str(said)?;
    let mut queues: BTreeMap<String, QueueReadBack> = BTreeMap::new();
    for one in &found {
        let Some(interface) = one["dev"].as_str() else { continue };
        let option = |name: &str| one["options"][name].as_u64().unwrap_or(0);
        let kind = one["kind"].as_str().unwrap_or("");
        if kind != "tbf" && !kind.ends_with("fifo") {
            continue;
        }
        let queue = queues.entry(interface.to_owned()).or_default();
        if kind == "tbf" {
            (queue.rate, queue.overhead) = (option("rate"), option("overhead"));
        } else {
            (queue.kind, queue.limit) = (kind.to_owned(), option("limit"));
        }
        queue.said.push(json!({ "kind": kind, "options": one["options"] }));
    }
    Ok(queues)
}

/// Parses the output of `ip -j link show` into the interfaces that are up.
///
/// # Errors
/// The output is not of that form.
pub fn up(said: &str) -> io::Result<BTreeSet<String>> {
    let found: Vec<Value> = serde_json::from_str(said)?;
    let is_up =
        |one: &&Value| one["flags"].as_array().is_some_and(|all| all.contains(&"UP".into()));
    Ok(found
        .iter()
        .filter(is_up)
        .filter_map(|one| one["ifname"].as_str())
        .map(str::to_owned)
        .collect())
}

/// The egress interfaces by routing table and destination; table 0 is the main table.
pub type RouteDevices = BTreeMap<(u32, Ipv4Addr), Vec<String>>;

/// Parses the output of `ip -j route show table all`.
///
/// # Errors
/// The output is not of that form.
pub fn routes(said: &str) -> io::Result<RouteDevices> {
    let found: Vec<Value> = serde_json::from_str(said)?;
    let mut routes = RouteDevices::new();
    for one in &found {
        let to = one["dst"].as_str().and_then(|to| to.parse().ok());
        let table = one["table"].as_str().map_or(Some(0), |table| table.parse().ok());
        let (Some(to), Some(table)) = (to, table) else { continue };
        let hops = one["nexthops"].as_array().map_or(std::slice::from_ref(one), Vec::as_slice);
        let devices = hops.iter().filter_map(|hop| hop["dev"].as_str()).map(str::to_owned);
        routes.insert((table, to), devices.collect());
    }
    Ok(routes)
}

/// Parses the output of `ip -j rule show` into the routing tables by mark.
///
/// # Errors
/// The output is not of that form.
pub fn rules(said: &str) -> io::Result<BTreeMap<u32, u32>> {
    let found: Vec<Value> = serde_json::from_str(said)?;
    let number = |value: &Value| {
        let text = value.as_str()?;
        match text.strip_prefix("0x") {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
            None => text.parse().ok(),
        }
    };
    Ok(found
        .iter()
        .filter_map(|one| Some((number(&one["fwmark"])?, number(&one["table"])?)))
        .collect())
}

/// The marking rules of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MarkingRules {
    /// The destinations whose packets are marked.
    pub to: BTreeSet<Ipv4Addr>,
    /// The number of generators, by kind (`true`: random, `false`: counting) and number of values.
    pub generators: BTreeMap<(bool, u64), u64>,
}

/// Parses the output of `nft -j list table`.
///
/// # Errors
/// The output is not of that form.
pub fn marks(said: &str) -> io::Result<MarkingRules> {
    let mut marks = MarkingRules::default();
    let said: Value = serde_json::from_str(said)?;
    let mut open = vec![&said];
    while let Some(one) = open.pop() {
        if let Some(generator) = one.get("numgen") {
            let drawn = generator["mode"] == "random";
            let of = generator["mod"].as_u64().unwrap_or(0);
            *marks.generators.entry((drawn, of)).or_default() += 1;
        }
        match one {
            Value::Array(all) => open.extend(all),
            Value::Object(all) => open.extend(all.values()),
            Value::String(text) => marks.to.extend(text.parse::<Ipv4Addr>().ok()),
            _ => {}
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_queue_are_parsed_from_tc() {
        let said = r#"[{"kind":"noqueue","dev":"lo","options":{}},
            {"kind":"tbf","handle":"1:","dev":"p0","options":{"rate":2500000,"burst":2318,"lat":9,"overhead":24}},
            {"kind":"pfifo","handle":"2:","dev":"p0","options":{"limit":50}}]"#;
        let queues = queues(said).expect("it is JSON");
        let queue = &queues["p0"];
        assert_eq!((queues.len(), queue.rate, queue.overhead), (1, 2_500_000, 24));
        assert_eq!((queue.kind.as_str(), queue.limit), ("pfifo", 50));
        assert_eq!(queue.said[0]["options"]["burst"], 2318);
        assert_eq!(queue.said[1], json!({ "kind": "pfifo", "options": { "limit": 50 } }));
    }

    #[test]
    fn only_interfaces_with_the_up_flag_are_up() {
        let said = r#"[{"ifname":"lo","flags":["LOOPBACK"]},
            {"ifname":"p0","flags":["NO-CARRIER","BROADCAST","UP"]},
            {"ifname":"p3","flags":["BROADCAST"]}]"#;
        assert_eq!(up(said).expect("it is JSON"), BTreeSet::from(["p0".to_owned()]));
        assert!(up("Device does not exist").is_err());
    }
}
