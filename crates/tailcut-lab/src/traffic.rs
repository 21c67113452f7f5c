//! Checks of a plan's flows, jobs and time series.

use std::collections::BTreeMap;

use tailcut_engine::Time;
use tailcut_net::scenario::{Scenario, SeriesSpec};
use tailcut_net::traffic::Flow;

use crate::answers::{FabricFacts, RunCheck};
use crate::dependencies::deciders;
use crate::payload::{ID_BYTES, Payload};

/// The most flows of a run: source ports identify them.
pub const MAX_FLOWS: usize = 60_000;
/// The shortest sampling interval of windows: the kernel locks a connection while it reports on it.
pub const MIN_WINDOW_INTERVAL: Time = Time::from_ms(1);

const WAITING: &str = "a host starts a dependent flow when it sees the flows it depends on finish, \
                       or when the host that sees this notifies it outside the fabric";
const ENDED: &str = "with repnet-bench a flow counts as acknowledged when its receiver, having \
                     read everything, closes: Node does not report ACKs";

pub(crate) fn check(
    checked: &mut RunCheck,
    scenario: &Scenario,
    by_repnet: bool,
    fabric: FabricFacts,
) {
    let flows = scenario.flows.len();
    match by_repnet.then(|| indistinguishable(&scenario.flows)).flatten() {
        Some((one, other)) => {
            let Flow { src, dst, bytes, .. } = scenario.flows[one];
            checked.fatal(
                "traffic",
                format!(
                    "flows {one} and {other}, both {bytes}B from host {} to host {}, are too short \
                     to tell apart: repnet-bench identifies flows by their first {ID_BYTES} bytes; \
                     make them {ID_BYTES}B or longer",
                    src.0, dst.0
                ),
            );
        }
        None => checked.done_or_fatal(
            flows <= MAX_FLOWS,
            "traffic",
            "exactly the simulator's flows, each from the simulator's source port",
            format!("{flows} flows: the lab carries at most {MAX_FLOWS}, one source port each"),
        ),
    }
    if !scenario.jobs.computations.is_empty() {
        checked.fatal("traffic.kind", "computations: the lab's hosts carry messages only");
    } else if scenario.jobs.await_sending() {
        checked
            .fatal("traffic.kind", "messages in order: the lab's hosts do not report departures");
    } else if !scenario.jobs.is_empty() {
        match deciders(&scenario.flows, &scenario.jobs) {
            Err(_) => checked.fatal(
                "traffic.kind",
                "a flow depends on events at two hosts: the lab supports dependencies that a \
                 single host can observe",
            ),
            Ok(_) if by_repnet => checked.near("traffic.kind", format!("{WAITING}; {ENDED}")),
            Ok(_) => checked.done("traffic.kind", WAITING),
        }
    }
    series(checked, &scenario.series, by_repnet, fabric);
}

/// Returns two flows that their receiver could not tell apart: the same few bytes from the same
/// host.
fn indistinguishable(flows: &[Flow]) -> Option<(usize, usize)> {
    let payload = Payload::default();
    let mut known = BTreeMap::new();
    flows.iter().enumerate().filter(|(_, flow)| flow.bytes < ID_BYTES).find_map(|(at, flow)| {
        let head = payload.head(at as u64, flow.bytes).to_vec();
        known.insert((flow.src, flow.dst, head), at).map(|before| (before, at))
    })
}

fn series(checked: &mut RunCheck, spec: &SeriesSpec, by_repnet: bool, fabric: FabricFacts) {
    let SeriesSpec { flows, links, differentials, interval, max_samples: _ } = spec;
    checked.done(
        "series",
        if spec.is_off() {
            "no time series is requested"
        } else {
            "at series.interval, up to series.max_samples"
        },
    );
    for (field, asked) in [("series.links", links), ("series.differentials", differentials)] {
        let between = fabric.sample_interval;
        match between {
            _ if asked.is_empty() => {}
            Time::ZERO => checked.done(
                field,
                "the queues of the fabric's ports, at \
                                               series.interval",
            ),
            _ => checked.near(
                field,
                format!("queue lengths read from the kernel, at most every {between}"),
            ),
        }
    }
    match flows.is_empty() {
        true => {}
        false if by_repnet => checked.near(
            "series.flows",
            "not recorded: the lab does not read the state of Node's sockets",
        ),
        false if *interval < MIN_WINDOW_INTERVAL => checked.near(
            "series.flows",
            format!(
                "window and acknowledged bytes from TCP_INFO, at most every {MIN_WINDOW_INTERVAL}"
            ),
        ),
        false => checked.done("series.flows", "window and acknowledged bytes from TCP_INFO"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailcut_net::topology::HostId;

    fn flow(src: u32, bytes: u64) -> Flow {
        Flow { src: HostId(src), dst: HostId(9), bytes, start: Time::ZERO, id: 0 }
    }

    #[test]
    fn short_flows_of_the_same_bytes_between_two_hosts_are_indistinguishable() {
        assert_eq!(indistinguishable(&[flow(0, 1_000); 300]), None);
        assert_eq!(indistinguishable(&[flow(0, ID_BYTES); 300]), None);
        // There are only 256 values of a byte.
        let (one, other) = indistinguishable(&[flow(0, 1); 300]).expect("two of them are the same");
        let payload = Payload::default();
        assert_eq!(payload.head(one as u64, 1), payload.head(other as u64, 1));
        let mut flows = [flow(0, 1); 300];
        flows[other].src = HostId(1);
        assert_ne!(indistinguishable(&flows), Some((one, other)));
        flows[other] = flow(0, 2);
        assert_ne!(indistinguishable(&flows), Some((one, other)));
    }
}
