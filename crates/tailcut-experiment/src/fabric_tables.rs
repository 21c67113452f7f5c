//! The tables of `measure.fabric`: samples of all ports, names of the ports, and the links that
//! carried each flow.

use tailcut_net::measure::paths::FlowPaths;
use tailcut_net::measure::records::{FlowRecord, PortSamples};
use tailcut_net::topology::find::node_name;
use tailcut_net::topology::{Graph, NodeId};

use crate::column::{Column, Values, clock_of, labels, ns};
use crate::file::FctClock;

/// The most rows of the table of paths. Beyond it, the links of the fastest flows are left out.
pub(crate) const MOST_PATH_ROWS: usize = 1_000_000;

/// Returns all tables of `measure.fabric` by name; none without `samples`.
pub(crate) fn fabric_tables(
    graph: &Graph,
    samples: Option<&PortSamples>,
    paths: &FlowPaths,
    flows: &[FlowRecord],
    clock: FctClock,
) -> Vec<(&'static str, Vec<Column>)> {
    let Some(samples) = samples else { return vec![] };
    vec![
        ("fabric", sample_columns(samples, 2 * graph.links.len())),
        ("ports", port_columns(graph)),
        ("paths", path_columns(paths, flows, clock, MOST_PATH_ROWS)),
    ]
}

/// Returns one row per instant and port, instant by instant.
fn sample_columns(samples: &PortSamples, ports: usize) -> Vec<Column> {
    let times = samples.times.iter().flat_map(|time| std::iter::repeat_n(ns(*time), ports));
    let numbers = samples.times.iter().flat_map(|_| 0..ports as u32);
    vec![
        Column::all("time_ns", Values::I64(times.collect())),
        Column::all("port", Values::U32(numbers.collect())),
        Column::all("queue_packets", Values::U32(samples.packets.clone())),
        Column::all("queue_bytes", Values::U32(samples.bytes.clone())),
        Column::all("busy_ns", Values::U64(samples.busy_ns.clone())),
        Column::all("drops", Values::U32(samples.drops.clone())),
    ]
}

/// Returns one row per port, in the order of their numbers.
fn port_columns(graph: &Graph) -> Vec<Column> {
    let name = |node: NodeId| node_name(graph, node);
    let ends: Vec<(NodeId, NodeId)> =
        graph.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]).collect();
    let both = || graph.links.iter().flat_map(|link| [link, link]);
    let tier = |tier: u8| graph.tiers.get(usize::from(tier)).map_or("", String::as_str);
    vec![
        Column::all("port", Values::U32((0..ends.len() as u32).collect())),
        Column::all("from", Values::U32(ends.iter().map(|end| end.0.0).collect())),
        Column::all("to", Values::U32(ends.iter().map(|end| end.1.0).collect())),
        Column::all("from_name", Values::Text(ends.iter().map(|end| name(end.0)).collect())),
        Column::all("to_name", Values::Text(ends.iter().map(|end| name(end.1)).collect())),
        Column::all("tier", labels(both().map(|link| tier(link.tier)))),
        Column::all("rate_bps", Values::U64(both().map(|link| link.rate.0).collect())),
    ]
}

/// Returns at most `most` rows, one per flow, connection and link, in the order of the flows. The
/// slowest flows are kept: unfinished ones first, then by completion time over ideal time. A flow
/// has all its links or none.
fn path_columns(
    paths: &FlowPaths,
    flows: &[FlowRecord],
    clock: FctClock,
    most: usize,
) -> Vec<Column> {
    let slowness = |flow: &FlowRecord| {
        let (took, ideal) = clock_of(clock)(flow);
        took.map_or(f64::INFINITY, |took| took.as_secs_f64() / ideal.as_secs_f64())
    };
    let mut order: Vec<(f64, u64)> = flows.iter().map(|f| (slowness(f), f.flow.id)).collect();
    order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut rows = 0;
    let fit = order.into_iter().map(|(_, id)| id).take_while(|id| {
        rows += paths.links_of(*id).len();
        rows <= most
    });
    let mut kept: Vec<u64> = fit.collect();
    kept.sort_unstable();
    let crossings =
        || kept.iter().flat_map(|&id| paths.links_of(id).iter().map(move |at| (id, at)));
    vec![
        Column::all("id", Values::U64(crossings().map(|(id, _)| id).collect())),
        Column::all("copy", Values::U8(crossings().map(|(_, at)| at.copy).collect())),
        Column::all("port", Values::U32(crossings().map(|(_, at)| at.port.0).collect())),
        Column::all("packets", Values::U32(crossings().map(|(_, at)| at.packets).collect())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_engine::Time;
    use tailcut_net::measure::{Observer, PacketView};
    use tailcut_net::packet::{Flags, SackBlocks};
    use tailcut_net::topology::HostId;
    use tailcut_net::topology::PortId;
    use tailcut_net::traffic::Flow;

    /// Returns a flow of `slowdown` times its ideal time; `None` for an unfinished one.
    fn flow(id: u64, slowdown: Option<u64>) -> FlowRecord {
        let (ideal, start) = (Time::from_us(10), Time::ZERO);
        let took = slowdown.map(|times| Time(times * ideal.0));
        FlowRecord {
            flow: Flow { src: HostId(0), dst: HostId(1), bytes: 1_000, start, id },
            connect: None,
            fct: took,
            fct_ack: took,
            ideal_fct: ideal,
            ideal_fct_ack: ideal,
            data_packets: 1,
            retransmissions: 0,
            timeouts: 0,
            fast_recoveries: 0,
            recoveries_undone: 0,
            needless_retransmissions: 0,
            copies: 1,
            winner: None,
            shared_hops: None,
            hops: 3,
            delivered_in_arrivals: 0,
        }
    }

    /// Returns a data packet of the flow, as its sender sends it.
    fn packet(flow: u64) -> PacketView {
        PacketView {
            flow,
            copy: 0,
            src: HostId(0),
            dst: HostId(1),
            sport: 1_024,
            dport: 5_000,
            seq: 0,
            ack: 0,
            flags: Flags::DATA,
            payload: 1_000,
            window: 64_000,
            mss: 1_460,
            mss_option: true,
            flow_bytes: 1_000,
            data: None,
            sack: true,
            timestamps: None,
            blocks: SackBlocks::default(),
            wire_bytes: 1_078,
        }
    }

    fn ids(columns: &[Column]) -> Vec<u64> {
        match &columns[0].values {
            Values::U64(ids) => ids.clone(),
            other => panic!("{other:?} are no numbers of flows"),
        }
    }

    #[test]
    fn the_links_of_the_slowest_flows_are_kept_as_far_as_there_is_room() {
        let mut paths = FlowPaths::default();
        for id in 0..4 {
            for link in [0, 2, 5].map(PortId) {
                paths.link_accepts(Time::ZERO, link, Time::ZERO, &packet(id));
            }
        }
        // The slowest first: the unfinished flow, then 2, 0 and 3.
        let flows = [flow(0, Some(4)), flow(1, None), flow(2, Some(9)), flow(3, Some(2))];
        let kept = |most| ids(&path_columns(&paths, &flows, FctClock::Receiver, most));
        assert_eq!(kept(12), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(kept(11), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(kept(8), [1, 1, 1, 2, 2, 2], "a flow has all its links, or none");
        assert_eq!(kept(3), [1, 1, 1]);
        assert!(kept(2).is_empty());
        assert_eq!(MOST_PATH_ROWS, 1_000_000, "the documentation says so");
    }
}
