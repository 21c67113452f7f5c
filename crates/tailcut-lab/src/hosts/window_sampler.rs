//! Congestion windows and rates of the flows that the plan names, read from the sender's kernel
//! (`TCP_INFO`).

use std::collections::BTreeMap;

use tailcut_experiment::tabulate::MeasuredSeries;
use tailcut_net::measure::records::Sampled;
use tailcut_net::scenario::{Scenario, SeriesSpec};

use tailcut_net::topology::HostId;

use crate::sys::socket::TcpInfo;
use crate::traffic::MIN_WINDOW_INTERVAL;

/// The samples of a flow: its window and its rate.
#[derive(Debug, Clone, Default)]
struct FlowSamples {
    /// The time of the last sample, and the bytes acknowledged by then.
    before: (u64, u64),
    window: MeasuredSeries,
    rate: MeasuredSeries,
}

/// Samples of the flows that a host sends.
#[derive(Debug, Clone, Default)]
pub struct WindowSampler {
    interval_ns: u64,
    most: usize,
    begin_ns: u64,
    next_ns: Option<u64>,
    /// The sampled flows, by index.
    flows: BTreeMap<u64, FlowSamples>,
}

impl WindowSampler {
    /// Selects the flows that the plan names and this host sends.
    pub fn new(host: u32, scenario: &Scenario) -> WindowSampler {
        let SeriesSpec { flows, interval, max_samples, .. } = &scenario.series;
        let own = scenario.flows.iter().zip(0..).filter(|(flow, _)| flow.src == HostId(host));
        let chosen = own.filter(|(flow, _)| flows.contains(&flow.id)).map(|(flow, index)| {
            let named = |what: &str| MeasuredSeries {
                name: format!("flow {} {what}", flow.id),
                of: Some(Sampled { flow: flow.id, copy: 0 }),
                ..MeasuredSeries::default()
            };
            let (window, rate) = (named("cwnd_bytes"), named("rate_bps"));
            (index, FlowSamples { window, rate, ..FlowSamples::default() })
        });
        WindowSampler {
            interval_ns: (*interval).max(MIN_WINDOW_INTERVAL).as_ns(),
            most: *max_samples as usize,
            flows: chosen.collect(),
            ..WindowSampler::default()
        }
    }

    /// Sets the start of the run, on the monotonic clock.
    pub fn start(&mut self, begin_ns: u64) {
        self.begin_ns = begin_ns;
        self.next_ns = (!self.flows.is_empty()).then_some(begin_ns + self.interval_ns);
    }

    /// Returns when the next samples are due, on the monotonic clock.
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Returns whether samples are due, and advances to the next interval. Missed samples are
    /// skipped.
    pub fn due(&mut self, now_ns: u64) -> bool {
        let Some(next) = self.next_ns.filter(|next| *next <= now_ns) else { return false };
        let missed = (now_ns - next) / self.interval_ns;
        self.next_ns = Some(next + (missed + 1) * self.interval_ns);
        true
    }

    /// Whether a flow is sampled.
    pub fn is_sampled(&self, flow: u64) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Adds a sample of a flow whose connection was opened at `opened_ns`.
    pub fn add(&mut self, flow: u64, opened_ns: u64, now_ns: u64, known: &TcpInfo) {
        let Some(of) = self.flows.get_mut(&flow) else { return };
        let (at, acknowledged) = of.before;
        let since_ns = now_ns.saturating_sub(at.max(opened_ns)).max(1);
        let bits = 8 * known.acknowledged.saturating_sub(acknowledged);
        of.before = (now_ns, known.acknowledged);
        let time_ns = now_ns.saturating_sub(self.begin_ns);
        let window = u64::from(known.window) * u64::from(known.segment);
        let rate = bits as f64 * 1e9 / since_ns as f64;
        for (series, value) in [(&mut of.window, window as f64), (&mut of.rate, rate)] {
            if series.times_ns.len() < self.most {
                series.times_ns.push(time_ns);
                series.values.push(value);
            } else {
                series.truncated = true;
            }
        }
    }

    /// Returns the series of each flow: its window, then its rate.
    pub fn into_series(&mut self) -> Vec<MeasuredSeries> {
        let flows = std::mem::take(&mut self.flows);
        flows.into_values().flat_map(|of| [of.window, of.rate]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(most: usize) -> WindowSampler {
        let mut windows =
            WindowSampler { interval_ns: 1_000_000, most, ..WindowSampler::default() };
        windows.flows.insert(3, FlowSamples::default());
        windows.start(5_000_000);
        windows
    }

    fn known(acknowledged: u64) -> TcpInfo {
        TcpInfo { acknowledged, window: 10, segment: 1_460, ..TcpInfo::default() }
    }

    #[test]
    fn samples_are_due_at_every_interval_and_missed_ones_are_skipped() {
        let mut windows = windows(9);
        assert_eq!((windows.next_ns(), windows.due(5_999_999)), (Some(6_000_000), false));
        assert!(windows.due(6_000_000));
        assert_eq!(windows.next_ns(), Some(7_000_000));
        assert!(windows.due(9_300_000));
        assert_eq!((windows.next_ns(), windows.due(9_999_999)), (Some(10_000_000), false));
        let mut nothing = WindowSampler { interval_ns: 1, ..WindowSampler::default() };
        nothing.start(5);
        assert_eq!((nothing.next_ns(), nothing.due(100)), (None, false));
    }

    #[test]
    fn rates_relate_to_the_time_since_the_last_sample() {
        let mut windows = windows(2);
        assert!(windows.is_sampled(3) && !windows.is_sampled(4));
        windows.add(4, 0, 1, &known(1));
        windows.add(3, 5_500_000, 6_000_000, &known(1_000));
        windows.add(3, 5_500_000, 8_000_000, &known(5_000));
        windows.add(3, 5_500_000, 9_000_000, &known(6_000));
        let [window, rate] = windows.into_series().try_into().expect("there are two");
        assert_eq!(
            (window.values, window.times_ns),
            (vec![14_600.0; 2], vec![1_000_000, 3_000_000])
        );
        // 1,000 bytes in 0.5 ms, 4,000 in 2 ms; there is no room for a third sample.
        assert_eq!((rate.values, rate.truncated), (vec![16e6, 16e6], true));
    }
}
