//! Notes on what an experiment decides without a word, told before it runs.

use tailcut_engine::{Rate, Time};
use tailcut_net::faults::Incident;
use tailcut_net::queue::{QueueSpec, Ties};
use tailcut_net::scenario::Scheme;
use tailcut_net::topology::{Graph, PortId, Routes};
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::{CongestionSpec, ReorderingSpec};

use crate::sections::Config;

/// Sentences on one configuration and its network, where `round_trip` is that of a SYN over the longest path of a flow.
/// `choice`: some flows have several paths.
pub fn notes(
    config: &Config,
    graph: &Graph,
    routes: &Routes,
    round_trip: Time,
    choice: bool,
) -> Vec<String> {
    let timeout = first_timeout(config, round_trip);
    [
        unread(graph),
        shares(config, graph, routes),
        timeout,
        standing_window(config, choice),
        false_recoveries(config, choice),
        ties_without_effect(config),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A window that does not grow while packets overtake each other, where they do so all the time.
fn standing_window(config: &Config, choice: bool) -> Option<String> {
    reordered(config, choice, |reordering| {
        matches!(reordering, ReorderingSpec::Ncr(_)).then_some(())
    })?;
    Some("With reordering.kind = \"ncr\" the window stays where it was when reordering began, for as long as packets overtake each other all the time (RFC 4653, steps T.2 and T.3): they do on several paths. reordering.kind = \"adaptive\" or \"rack\" goes on growing.".into())
}

/// The share of reordering that RR-TCP takes for loss, where packets overtake each other all the time.
fn false_recoveries(config: &Config, choice: bool) -> Option<String> {
    let share = reordered(config, choice, |reordering| match reordering {
        ReorderingSpec::RrTcp(spec) if spec.percentile < 1.0 => Some(1.0 - spec.percentile),
        _ => None,
    })?;
    Some(format!(
        "With reordering.kind = \"rr-tcp\" a share of {share:.2} of the reordering is still taken for loss, again and again on several paths (64 MB over two sprayed paths of 10 and 15 ms took three times as long as with \"adaptive\"). reordering.percentile = 1.0 spares all of it."
    ))
}

/// A chosen order at one instant that the ports never ask for.
fn ties_without_effect(config: &Config) -> Option<String> {
    let queue = &config.scheme.queue;
    let paused = config.switch.flow_control().is_some();
    if queue.ties() == Ties::default() || !(paused || queue.schedules_departures()) {
        return None;
    }
    let why = if paused { "with flow control" } else { "of this kind of queue" };
    Some(format!(
        "queue.ties has no effect: a port {why} chooses the next packet when a transmission ends, after all arrivals of that instant."
    ))
}

/// Returns the first `wanted` among the reordering methods of a scheme whose packets may overtake each other on several
/// paths.
fn reordered<T>(
    config: &Config,
    choice: bool,
    wanted: impl Fn(&ReorderingSpec) -> Option<T>,
) -> Option<T> {
    if !choice || config.scheme.balance.is_per_connection() {
        return None;
    }
    let carriers = config.scheme.transport.carriers();
    carriers.iter().find_map(|carrier| wanted(&carrier.segment_spec().reordering))
}

/// Whether the seed decides anything but the flows, some of which may have a choice of paths.
pub fn draws(config: &Config, graph: &Graph, choice: bool) -> bool {
    let Scheme { queue, balance, transport, .. } = &config.scheme;
    let faults = &config.faults;
    let loses = |incident: &Incident| matches!(incident, Incident::Loss { .. });
    let lossy = graph.is_lossy() || faults.active && faults.incidents.iter().any(loses);
    let of_queues = queue.drops_early() || matches!(queue, QueueSpec::Trimming(_));
    let of_transport = match transport {
        TransportSpec::Mixed(_) | TransportSpec::Mmptcp(_) => true,
        other => matches!(other.segment_spec().congestion, CongestionSpec::Bbr(_)),
    };
    lossy || of_queues || of_transport || choice && balance.draws()
}

/// Attributes of a graph's file that no one reads.
fn unread(graph: &Graph) -> Option<String> {
    let (last, others) = graph.ignored.split_last()?;
    let listed = match others {
        [] => format!("the attribute {last} is"),
        others => format!("the attributes {} and {last} are", others.join(", ")),
    };
    Some(format!("Of the graph's file {listed} not read."))
}

/// Equal shares where links have different rates.
fn shares(config: &Config, graph: &Graph, routes: &Routes) -> Option<String> {
    let one_rate = graph.links.iter().all(|link| link.rate == graph.links[0].rate);
    if one_rate || !config.scheme.balance.has_equal_shares() {
        return None;
    }
    let hosts = graph.each_host().collect::<Vec<_>>();
    let mut pairs =
        graph.each_switch().flat_map(|switch| hosts.iter().map(move |host| (switch, *host)));
    let rate = |port: &PortId| graph.links[port.link()].rate;
    let (switch, ports) = pairs.find_map(|(switch, host)| {
        let ports = routes.candidates(switch, host);
        let differ = ports.iter().any(|port| rate(port) != rate(&ports[0]));
        differ.then(|| (switch, ports.to_vec()))
    })?;
    let name = graph.names.get(switch.node(graph.hosts).index());
    let name = name.cloned().unwrap_or_else(|| format!("s{switch}"));
    let mut rates: Vec<Rate> = ports.iter().map(rate).collect();
    rates.sort_unstable();
    rates.dedup();
    let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
    Some(format!(
        "ECMP gives links of {} equal shares, at {name} for one: balance.weights = \"rate\" gives shares by rate.",
        rates.join(" and ")
    ))
}

/// A first timeout that a handshake meets although nothing is lost.
fn first_timeout(config: &Config, round_trip: Time) -> Option<String> {
    let shakes_hands = |carrier: &&TransportSpec| {
        !matches!(carrier, TransportSpec::Pfabric(_) | TransportSpec::Ndp(_))
    };
    let carriers = config.scheme.transport.carriers().into_iter().filter(shakes_hands);
    let first = carriers.map(|carrier| carrier.segment_spec().initial_rto).min()?;
    if first >= Time(3 * round_trip.0) {
        return None;
    }
    let consequence = match first <= round_trip {
        true => "every SYN on that path is sent again though none is lost",
        false => "a SYN that waits in queues is sent again though it is not lost",
    };
    Some(format!(
        "The first timeout, {first}, is less than three round trips of the longest path, {}: {consequence}. transport.initial_rto sets it.",
        Time(3 * round_trip.0)
    ))
}

/// When routing learns of each link or switch that fails, in the words of the file.
pub fn routing(config: &Config) -> Vec<String> {
    let faults = &config.faults;
    let incidents = if faults.active { faults.incidents.as_slice() } else { &[] };
    let told = |incident: &Incident| {
        let (what, at, until) = match incident {
            Incident::LinkDown { link, at, until } => (format!("link {link}"), at, until),
            Incident::SwitchDown { switch, at, until } => (format!("switch {switch}"), at, until),
            Incident::Rate { .. } | Incident::Loss { .. } | Incident::Delay { .. } => return None,
        };
        let learned = match faults.learned(*at) {
            Time::ZERO => "known when the run begins".to_owned(),
            later => format!("learned of at {later}"),
        };
        let again = until
            .map(|until| format!("; up at {until}, used again from {}", faults.learned(until)))
            .unwrap_or_default();
        let at = if *at == Time::ZERO { "0s".to_owned() } else { at.to_string() };
        Some(format!("{what} down at {at}, {learned}{again}"))
    };
    incidents.iter().filter_map(told).collect()
}
