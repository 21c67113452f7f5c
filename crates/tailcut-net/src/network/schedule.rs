//! An estimate of when each flow is under way, before the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tailcut_engine::{Rate, Time};

use super::starts::FlowStarts;
use crate::traffic::demand::{Jobs, Signal};
use crate::traffic::{Flow, FlowIndex};

/// The time in which a flow is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSpan {
    /// Its start.
    pub from: Time,
    /// Its end.
    pub until: Time,
    /// The flows that share a link with it as it starts, itself among them: of its hosts' links, the
    /// one with more.
    pub sharers: u32,
}

impl FlowSpan {
    /// Returns the share of the span that lies before `end`.
    pub fn share_until(&self, end: Time) -> f64 {
        let FlowSpan { from, until, .. } = *self;
        if from >= end {
            return 0.0;
        }
        if until <= end {
            return 1.0;
        }
        (end.0 - from.0) as f64 / (until.0 - from.0) as f64
    }
}

/// Returns when each flow is under way, if only hosts' links limit it: a flow has its share of the
/// links of both hosts as it starts, and keeps it. `host_rates` as in
/// [`crate::topology::Graph::host_rates`]; `latency` returns the time that a bit of a flow takes. A
/// flow that would not start before `end` begins and ends then.
pub fn schedule(
    flows: &[Flow],
    jobs: &Jobs,
    host_rates: &[Rate],
    latency: &dyn Fn(FlowIndex) -> Time,
    end: Time,
) -> Vec<FlowSpan> {
    let mut starts = FlowStarts::new(flows, jobs, None);
    let mut spans = vec![FlowSpan { from: end, until: end, sharers: 1 }; flows.len()];
    // Flows under way from and to each host.
    let mut shared = vec![[0u64; 2]; host_rates.len()];
    // The times at which flows under way are sent, and those at which they end.
    let mut ends: BinaryHeap<Reverse<(Time, FlowIndex, bool)>> = BinaryHeap::new();
    loop {
        let over = ends.peek().map(|Reverse((time, ..))| *time);
        let Some(now) = starts.next().into_iter().chain(over).min().filter(|now| *now < end) else {
            return spans;
        };
        while let Some(&Reverse((time, flow, is_sent))) = ends.peek()
            && time <= now
        {
            ends.pop();
            if is_sent {
                let Flow { src, dst, .. } = flows[flow.index()];
                shared[src.index()][0] -= 1;
                shared[dst.index()][1] -= 1;
                starts.note_over(flow, Signal::Sent, now);
                ends.push(Reverse((spans[flow.index()].until, flow, false)));
            } else {
                starts.note_over(flow, Signal::Received, now);
                starts.note_over(flow, Signal::Acknowledged, now);
            }
        }
        while let Some(index) = starts.take_listed(now).or_else(|| starts.take_driven(now)) {
            starts.note_start(index, now);
            let flow = &flows[index.index()];
            shared[flow.src.index()][0] += 1;
            shared[flow.dst.index()][1] += 1;
            let sharers = [(flow.src, 0), (flow.dst, 1)].map(|(host, side)| {
                let rate = host_rates[host.index()];
                (rate.transmission_time(flow.bytes), shared[host.index()][side])
            });
            let takes = sharers.map(|(alone, sharers)| alone.0.saturating_mul(sharers));
            let sent = Time(now.0.saturating_add(takes[0].max(takes[1])));
            spans[index.index()] = FlowSpan {
                from: now,
                until: Time(sent.0.saturating_add(latency(index).0)),
                sharers: sharers[0].1.max(sharers[1].1) as u32,
            };
            ends.push(Reverse((sent, index, true)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostId;
    use crate::traffic::demand::{Demand, Dependent, NONE, StartRule};

    /// Hosts of 8 Gbps: a byte takes a nanosecond.
    const RATES: [Rate; 3] = [Rate(8_000_000_000); 3];

    fn flow(src: u32, dst: u32, bytes: u64, start_ns: u64) -> Flow {
        let (src, dst) = (HostId(src), HostId(dst));
        Flow { src, dst, bytes, start: Time::from_ns(start_ns), id: 0 }
    }

    /// Returns starts and ends of flows in nanoseconds, with a latency of 10 ns.
    fn spans(flows: &[Flow], jobs: &Jobs, end_ns: u64) -> Vec<(u64, u64)> {
        let latency = |_| Time::from_ns(10);
        let spans = schedule(flows, jobs, &RATES, &latency, Time::from_ns(end_ns));
        spans.iter().map(|span| (span.from.0 / 1_000, span.until.0 / 1_000)).collect()
    }

    #[test]
    fn flows_share_the_links_of_their_hosts() {
        let flows = [flow(0, 1, 100, 0), flow(0, 2, 100, 50), flow(1, 0, 100, 50)];
        let expected = [(0, 110), (50, 260), (50, 160)];
        assert_eq!(spans(&flows, &Jobs::default(), 1_000), expected);
    }

    #[test]
    fn a_chain_is_under_way_one_message_after_another_until_the_end() {
        let mut demand = Demand::default();
        let rule = StartRule { job: NONE, pool: NONE, delay: Time::from_ns(5) };
        let links: Vec<_> = (0..3).map(|_| demand.flow(rule, flow(0, 1, 100, 0))).collect();
        demand.wait(Dependent::Flow(links[1]), links[0], Signal::Received);
        demand.wait(Dependent::Flow(links[2]), links[1], Signal::Sent);
        let demand = demand.numbered();
        let found = spans(&demand.flows, &demand.jobs, 1_000);
        // The last one starts 5 ns after the one before is sent.
        assert_eq!(found, [(0, 110), (115, 225), (220, 330)]);
        assert_eq!(spans(&demand.flows, &demand.jobs, 150), [(0, 110), (115, 225), (150, 150)]);
    }

    #[test]
    fn a_span_is_shared_at_the_end() {
        let span = FlowSpan { from: Time(10), until: Time(30), sharers: 1 };
        let shares = [5, 10, 15, 30, 40].map(|end| span.share_until(Time(end)));
        assert_eq!(shares, [0.0, 0.0, 0.25, 1.0, 1.0]);
        let never = FlowSpan { from: Time(30), until: Time(30), sharers: 1 };
        assert_eq!(never.share_until(Time(30)), 0.0);
    }
}
