//! Offered load: the totals of a list of flows, and how many of the bytes hosts can carry in time.

use tailcut_engine::{Rate, Time};

use super::Flow;
use crate::topology::HostId;

/// Totals of a list of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedLoad {
    /// Number of flows.
    pub flows: u64,
    /// Application bytes of all flows.
    pub bytes: u64,
    /// Upper bound of the bytes that host links can carry by the given time, at full rate and
    /// without headers. A heavy-tailed workload offers far more in a short run than can be carried:
    /// the carried load of the run is then below the requested load.
    pub carriable_bytes: u64,
}

/// Returns the totals of `flows`, with `carriable_bytes` counted up to `end`. `host_rates` as in
/// [`crate::topology::Graph::host_rates`]. Flows must be in order of start.
pub fn offered<'a>(
    flows: impl ExactSizeIterator<Item = &'a Flow> + Clone,
    host_rates: &[Rate],
    end: Time,
) -> OfferedLoad {
    let sent = carriable(flows.clone().map(|flow| (flow.src, flow)), host_rates, end);
    let received = carriable(flows.clone().map(|flow| (flow.dst, flow)), host_rates, end);
    OfferedLoad {
        flows: flows.len() as u64,
        bytes: flows.fold(0, |sum, flow| sum.saturating_add(flow.bytes)),
        carriable_bytes: sent.min(received),
    }
}

/// Returns the bytes that the hosts can move until `end`, if none rests while it has work.
fn carriable<'a>(
    flows: impl Iterator<Item = (HostId, &'a Flow)>,
    rates: &[Rate],
    end: Time,
) -> u64 {
    let mut busy_until = vec![0u128; rates.len()];
    let mut bytes = 0u128;
    for (host, flow) in flows.filter(|(_, flow)| flow.start < end) {
        let rate = u128::from(rates[host.index()].0);
        let busy = &mut busy_until[host.index()];
        *busy = (*busy).max(u128::from(flow.start.0))
            + u128::from(flow.bytes) * 8_000_000_000_000 / rate;
        bytes += u128::from(flow.bytes);
    }
    let late: u128 = busy_until
        .iter()
        .zip(rates)
        .map(|(busy, rate)| {
            (busy.saturating_sub(u128::from(end.0)) * u128::from(rate.0))
                .div_ceil(8_000_000_000_000)
        })
        .sum();
    bytes.saturating_sub(late) as u64
}
