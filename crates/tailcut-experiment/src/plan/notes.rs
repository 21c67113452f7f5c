//! Notes about effects of an experiment that its author may not expect, shown before it runs.

use tailcut_engine::{Rate, Time};
use tailcut_net::faults::Incident;
use tailcut_net::queue::{QueueSpec, Ties};
use tailcut_net::scenario::Scheme;
use tailcut_net::topology::{Graph, PortId, Routes};
use tailcut_net::traffic::Flow;
use tailcut_net::transport::TransportSpec;
use tailcut_net::transport::tcp::{CongestionSpec, ReorderingSpec, TcpSpec};
use tailcut_net::{PathReach, path_reach};

use crate::sections::Config;

/// Returns the notes on a configuration and its network. `round_trip` is that of a SYN over the
/// longest path of a flow; `choice` says whether some flows have several paths.
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
        old_timestamps(config, choice),
        ties_without_effect(config),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Notes how many paths the values of an entropy policy reach, for a flow over the longest path,
/// and parameters that do not go with the policy.
pub fn entropy(config: &Config, graph: &Graph, routes: &Routes, flow: &Flow) -> Vec<String> {
    let Scheme { balance, transport, .. } = &config.scheme;
    let carriers = transport.carriers();
    let Some((carrier, entropy)) =
        carriers.iter().find_map(|carrier| Some((carrier, carrier.entropy()?)))
    else {
        return vec![];
    };
    let mut notes = vec![];
    let values = entropy.values();
    if balance.is_per_connection() {
        let PathReach { paths, reached } = path_reach(graph, routes, balance, flow, values);
        notes.push(format!(
            "transport.entropy: its {values} values reach {reached:.1} of the {paths} shortest paths between hosts far apart, on average over the switches' salts."
        ));
    } else {
        notes.push("transport.entropy chooses paths only where switches hash ports: balance.kind = \"ecmp\" does.".into());
    }
    let tcp = matches!(carrier, TransportSpec::Tcp(_));
    if tcp && entropy.scatters() && carrier.segment_spec().reordering.is_none() {
        notes.push("transport.entropy lets packets overtake each other, which duplicate ACKs take for loss. reordering.kind = \"rack\" tells one from the other.".into());
    }
    notes
}

/// Notes a window that does not grow because packets overtake each other all the time.
fn standing_window(config: &Config, choice: bool) -> Option<String> {
    reordered(config, choice, |reordering| {
        matches!(reordering, ReorderingSpec::Ncr(_)).then_some(())
    })?;
    Some("With reordering.kind = \"ncr\" the window does not grow while packets overtake each other (RFC 4653, steps T.2 and T.3), as they always do on several paths. It grows with reordering.kind = \"adaptive\" or \"rack\".".into())
}

/// Notes the share of reordering that RR-TCP takes for loss, because packets overtake each other
/// all the time.
fn false_recoveries(config: &Config, choice: bool) -> Option<String> {
    let share = reordered(config, choice, |reordering| match reordering {
        ReorderingSpec::RrTcp(spec) if spec.percentile < 1.0 => Some(1.0 - spec.percentile),
        _ => None,
    })?;
    Some(format!(
        "With reordering.kind = \"rr-tcp\" a share of {share:.2} of reordered segments is still taken for lost, again and again on several paths: 64 MB over two sprayed paths of 10 and 15 ms took three times as long as with \"adaptive\". reordering.percentile = 1.0 avoids this."
    ))
}

/// Notes that PAWS discards segments that a retransmission overtakes on another path.
fn old_timestamps(config: &Config, choice: bool) -> Option<String> {
    on_several_paths(config, choice, |spec| (!spec.paws.is_off()).then_some(()))?;
    Some("transport.paws discards what a retransmission overtakes: on several paths, segments that are merely late. They are sent again, and such flows may take longer.".into())
}

/// Notes an order of simultaneous packets (`queue.ties`) that has no effect.
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

/// Returns the first `Some` of `wanted` among the scheme's reordering methods, if packets of a
/// connection may take several paths; `None` otherwise.
fn reordered<T>(
    config: &Config,
    choice: bool,
    wanted: impl Fn(&ReorderingSpec) -> Option<T>,
) -> Option<T> {
    on_several_paths(config, choice, |spec| wanted(&spec.reordering))
}

/// Returns the first `Some` of `wanted` among the scheme's TCPs, if packets of a connection may take
/// several paths; `None` otherwise.
fn on_several_paths<T>(
    config: &Config,
    choice: bool,
    wanted: impl Fn(&TcpSpec) -> Option<T>,
) -> Option<T> {
    let Scheme { balance, interface, .. } = &config.scheme;
    let one_path = balance.is_per_connection() && interface.is_per_connection();
    let carriers = config.scheme.transport.carriers();
    let mut reordered = carriers.iter().filter(|carrier| {
        choice && (!one_path || carrier.entropy().is_some_and(|entropy| entropy.scatters()))
    });
    reordered.find_map(|carrier| wanted(&carrier.segment_spec()))
}

/// Returns whether the seed decides anything but the flows. `choice` says whether some flows have
/// several paths.
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
    let ports = transport.carriers().iter().any(|carrier| carrier.entropy().is_some());
    lossy || of_queues || of_transport || choice && (balance.draws() || ports)
}

/// Notes the attributes of a graph file that are not read.
fn unread(graph: &Graph) -> Option<String> {
    let (last, others) = graph.ignored.split_last()?;
    let listed = match others {
        [] => format!("attribute {last} is"),
        others => format!("attributes {} and {last} are", others.join(", ")),
    };
    Some(format!("The graph file's {listed} not read."))
}

/// Notes equal shares among links of different rates.
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
        "ECMP gives equal shares to links of {}, for example at {name}. balance.weights = \"rate\" gives shares in proportion to rate.",
        rates.join(" and ")
    ))
}

/// Notes a first timeout so short that it may expire during a handshake without loss.
fn first_timeout(config: &Config, round_trip: Time) -> Option<String> {
    let shakes_hands = |carrier: &&TransportSpec| {
        !matches!(
            carrier,
            TransportSpec::Pfabric(_) | TransportSpec::Ndp(_) | TransportSpec::Uet(_)
        )
    };
    let carriers = config.scheme.transport.carriers().into_iter().filter(shakes_hands);
    let first = carriers.map(|carrier| carrier.segment_spec().initial_rto).min()?;
    if first >= Time(3 * round_trip.0) {
        return None;
    }
    let consequence = match first <= round_trip {
        true => "every SYN on that path is retransmitted, though none is lost",
        false => "a SYN that waits in queues is retransmitted, though it is not lost",
    };
    Some(format!(
        "The first timeout, {first}, is less than three round trips of the longest path, {}: {consequence}. transport.initial_rto sets it.",
        Time(3 * round_trip.0)
    ))
}

/// Returns a sentence for each link or switch that fails: when it does, and when routing learns of
/// it. Names are as in the file.
pub fn routing(config: &Config) -> Vec<String> {
    let faults = &config.faults;
    let incidents = if faults.active { faults.incidents.as_slice() } else { &[] };
    let sentence = |incident: &Incident| {
        let (what, at, until) = match incident {
            Incident::LinkDown { link, at, until } => (format!("link {link}"), at, until),
            Incident::SwitchDown { switch, at, until } => (format!("switch {switch}"), at, until),
            Incident::PlaneDown { plane, at, until } => (format!("plane {plane}"), at, until),
            Incident::RailDown { rail, at, until } => (format!("rail {rail}"), at, until),
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
    incidents.iter().filter_map(sentence).collect()
}
