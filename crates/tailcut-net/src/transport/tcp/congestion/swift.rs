//! Swift (Kumar et al., SIGCOMM 2020): the window steers the round trip to a target that grows with
//! the length of the path and with the number of flows. Below one segment, pacing stands for the
//! window. Windows are in segments and times in seconds, as in the paper.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::{AckSample, Acked, CongestionAlgorithm, CongestionControl, Pacing, Window};
use crate::component::SpecError;
use crate::horizon::LONGEST;
use crate::transport::tcp::Recovery;

/// Parameters of Swift. The times are for links of 1 Gbps, on which a full segment takes 12 us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwiftSpec {
    /// The target of a path without switches.
    pub base_target: Time,
    /// Addition to the target per switch of the path (topology-based scaling).
    pub per_hop: Time,
    /// Largest addition to the target for small windows (flow-based scaling). 0s: none.
    pub flow_scaling: Time,
    /// Window in segments at and below which all of that is added.
    pub scaling_min_window: f64,
    /// Window in segments from which nothing is added.
    pub scaling_max_window: f64,
    /// Segments by which the window grows in a round trip below the target.
    pub additive_increase: f64,
    /// Strength of the decrease by excess delay.
    pub beta: f64,
    /// The largest share of the window that is given up at once.
    pub max_decrease: f64,
    /// The least window, in segments.
    pub min_window: f64,
    /// The largest, in segments.
    pub max_window: f64,
    /// Consecutive timeouts after which the window is minimal.
    pub reset_after: u32,
}

impl Default for SwiftSpec {
    fn default() -> Self {
        SwiftSpec {
            base_target: Time::from_us(50),
            per_hop: Time::from_us(25),
            flow_scaling: Time::from_us(250),
            scaling_min_window: 0.1,
            scaling_max_window: 100.0,
            additive_increase: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            min_window: 0.001,
            max_window: 1_000.0,
            reset_after: 5,
        }
    }
}

impl CongestionAlgorithm for SwiftSpec {
    type State = Swift;
    fn new_state(&self) -> Swift {
        Swift::new(self)
    }
    fn check_recovery(&self, recovery: Recovery) -> Result<(), SpecError> {
        if recovery == Recovery::SackPrr {
            return Ok(());
        }
        let message = "swift repairs losses by selective acknowledgements";
        Err(SpecError::new("swift-needs-sack", "congestion", message)
            .hint("write recovery = \"sack-prr\" as well"))
    }

    fn check(&self) -> Result<(), SpecError> {
        let bad = |field: &str, value: f64, wanted: &str| {
            let message = format!("{field} = {value}: {wanted}");
            Err(SpecError::new("swift-parameters", format!("congestion.{field}"), message))
        };
        let share = |value: f64| value > 0.0 && value < 1.0;
        if self.base_target == Time::ZERO || self.base_target > Time::from_ms(1_000) {
            let message =
                format!("base_target = \"{}\": above 0s and at most a second", self.base_target);
            return Err(SpecError::new("swift-target", "congestion.base_target", message)
                .hint("a little more than the round trip without queues"));
        }
        if self.per_hop.max(self.flow_scaling) > Time::from_ms(1_000) {
            let message = "per_hop and flow_scaling are at most a second each";
            return Err(SpecError::new("swift-target", "congestion.per_hop", message));
        }
        if !(self.scaling_min_window > 0.0 && self.scaling_min_window < self.scaling_max_window) {
            let wanted = "above 0, and less than scaling_max_window";
            return bad("scaling_min_window", self.scaling_min_window, wanted);
        }
        if !self.scaling_max_window.is_finite() {
            return bad("scaling_max_window", self.scaling_max_window, "a number of segments");
        }
        if !(self.additive_increase > 0.0 && self.additive_increase <= 1.0) {
            return bad("additive_increase", self.additive_increase, "above 0, and at most 1");
        }
        if !(self.beta > 0.0 && self.beta <= 1.0) {
            return bad("beta", self.beta, "above 0, and at most 1");
        }
        if !share(self.max_decrease) {
            return bad("max_decrease", self.max_decrease, "lies between 0 and 1");
        }
        if !(self.min_window >= 1e-6 && self.min_window <= 1.0) {
            return bad("min_window", self.min_window, "a millionth of a segment to one segment");
        }
        if !(self.max_window >= 1.0 && self.max_window <= 1_048_576.0) {
            return bad("max_window", self.max_window, "1 to 1,048,576 segments");
        }
        if self.reset_after == 0 {
            let message = "reset_after = 0: every acknowledgement would reset the window";
            return Err(SpecError::new("swift-reset", "congestion.reset_after", message));
        }
        Ok(())
    }
}

/// The state of one connection (the paper's algorithm 1, without the endpoint's window).
#[derive(Debug, Clone)]
pub struct Swift {
    spec: SwiftSpec,
    /// The window in segments; `None` before the first ACK.
    window: Option<f64>,
    /// Switches on the path.
    switches: u32,
    /// The time of the last reduction.
    reduced: Option<Time>,
    timeouts: u32,
    /// A fast retransmit has begun: the ACK in hand reduces the window.
    lost: bool,
    /// The smoothed round-trip time.
    rtt: Time,
}

impl Swift {
    fn new(spec: &SwiftSpec) -> Swift {
        Swift {
            spec: spec.clone(),
            window: None,
            switches: 0,
            reduced: None,
            timeouts: 0,
            lost: false,
            rtt: Time::ZERO,
        }
    }

    /// The window in segments.
    pub fn window(&self) -> Option<f64> {
        self.window
    }

    /// Algorithm 2: the delay that a window of so many segments is to meet.
    pub fn target(&self, window: f64) -> Time {
        let spec = &self.spec;
        let fixed = spec.base_target.0 + spec.per_hop.0 * u64::from(self.switches);
        let root = |window: f64| 1.0 / window.sqrt();
        let least = root(spec.scaling_max_window);
        let share = (root(window) - least) / (root(spec.scaling_min_window) - least);
        Time(fixed + (spec.flow_scaling.0 as f64 * share.clamp(0.0, 1.0)) as u64)
    }

    /// Returns whether a round trip has passed since the last reduction.
    fn may_decrease(&self, now: Time) -> bool {
        self.reduced.is_none_or(|reduced| now.since(reduced) >= self.rtt)
    }

    fn keep(&mut self, before: f64, after: f64, now: Time) {
        let after = after.clamp(self.spec.min_window, self.spec.max_window);
        if after < before {
            self.reduced = Some(now);
        }
        self.window = Some(after);
    }

    /// Sets the window. A window below one segment is one segment at a time, with a gap of the
    /// round trip over the window.
    fn put(&self, window: &mut Window, mss: u64) -> Pacing {
        let segments = self.window.unwrap_or(1.0);
        window.cwnd = (segments.max(1.0) * mss as f64) as u64;
        window.ssthresh = window.cwnd;
        match segments < 1.0 {
            true => Pacing::Gap(Time((self.rtt.0 as f64 / segments) as u64).min(LONGEST)),
            false => Pacing::None,
        }
    }
}

impl CongestionControl for Swift {
    /// The path has so many switches: what the paper reads off the time to live.
    fn set_switches(&mut self, switches: u32) {
        self.switches = switches;
    }

    /// A fast retransmit begins.
    fn on_loss(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        self.lost = true;
        self.timeouts = 0;
        window.cwnd
    }

    /// Keeps Swift's own window, which [`Swift::after_timeout`](CongestionControl::after_timeout)
    /// sets.
    fn on_timeout(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        window.cwnd
    }

    /// An echo has changed nothing.
    fn echo_counts_as_loss(&self) -> bool {
        false
    }

    /// Returns false: only delay counts.
    fn answers_echoes(&self) -> bool {
        false
    }

    /// The window is kept here in fractions of a segment.
    fn take_back(&mut self, before: &Swift) {
        self.lost = false;
        if let (Some(window), Some(before)) = (&mut self.window, before.window) {
            *window = window.max(before);
        }
    }

    /// Does nothing: the window grows by samples.
    fn grow(&mut self, _: &mut Window, _: u64, _: &Acked) {}

    fn wants_samples(&self) -> bool {
        true
    }

    /// Any ACK: algorithm 1, "on receiving ACK" and "on fast recovery".
    fn on_sample(&mut self, window: &mut Window, mss: u64, sample: &AckSample) -> Option<Pacing> {
        self.rtt = sample.smoothed;
        let before = *self.window.get_or_insert(window.cwnd as f64 / mss as f64);
        let mut now = before;
        if sample.delivered > 0 {
            self.timeouts = 0;
        }
        let may_decrease = self.may_decrease(sample.now);
        if std::mem::take(&mut self.lost) {
            if may_decrease {
                now *= 1.0 - self.spec.max_decrease;
            }
        } else if let Some(delay) = sample.rtt {
            let target = self.target(before);
            if delay < target {
                let acked = sample.delivered as f64 / mss as f64;
                now += self.spec.additive_increase * acked / before.max(1.0);
            } else if may_decrease {
                let excess = (delay.0 - target.0) as f64 / delay.0 as f64;
                now *= (1.0 - self.spec.beta * excess).max(1.0 - self.spec.max_decrease);
            }
        }
        self.keep(before, now, sample.now);
        Some(self.put(window, mss))
    }

    /// "On retransmit timeout".
    fn after_timeout(&mut self, window: &mut Window, mss: u64, now: Time) -> Option<Pacing> {
        let before = *self.window.get_or_insert(window.cwnd as f64 / mss as f64);
        self.timeouts += 1;
        self.lost = false;
        let mut after = before;
        if self.timeouts >= self.spec.reset_after {
            after = self.spec.min_window;
        } else if self.may_decrease(now) {
            after *= 1.0 - self.spec.max_decrease;
        }
        self.keep(before, after, now);
        Some(self.put(window, mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp::CongestionState;

    const MSS: u64 = 1_000;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn sample(now: Time, rtt: Time) -> AckSample {
        AckSample {
            now,
            delivered: MSS,
            marked: 0,
            rtt: Some(rtt),
            min_rtt: us(20),
            smoothed: rtt,
            one_way: None,
            rate: None,
            total_delivered: MSS,
            lost: 0,
            total_lost: 0,
            flight: MSS,
            pipe: MSS,
            una: 1,
            end: 2,
            state: CongestionState::Open,
        }
    }

    /// Creates a flow at a window of `segments`, with one switch, a target of 75 us and no flow
    /// scaling.
    fn at(segments: f64) -> (Swift, Window) {
        let spec = SwiftSpec { flow_scaling: Time::ZERO, ..SwiftSpec::default() };
        let mut swift = Swift::new(&spec);
        swift.set_switches(1);
        swift.window = Some(segments);
        (swift, Window { cwnd: (segments * MSS as f64) as u64, ssthresh: u64::MAX })
    }

    #[test]
    fn below_the_target_a_window_grows_by_a_segment_per_round_trip() {
        let (mut swift, mut window) = at(10.0);
        for ack in 0..10 {
            swift.on_sample(&mut window, MSS, &sample(us(ack), us(70)));
        }
        assert!((10_900..=11_000).contains(&window.cwnd), "{window:?}");
    }

    /// An echo changes nothing, so that a loss in the same window of data has had no reduction yet.
    #[test]
    fn an_echo_is_no_reduction() {
        let (swift, _) = at(10.0);
        assert!(!swift.answers_echoes() && !swift.echo_counts_as_loss());
    }

    #[test]
    fn what_is_taken_back_of_a_loss_is_the_window() {
        let (mut swift, mut window) = at(10.0);
        let before = swift.clone();
        swift.on_loss(&window, MSS, MSS);
        swift.on_sample(&mut window, MSS, &sample(us(1_000), us(50)));
        swift.take_back(&before);
        assert_eq!((swift.window(), swift.rtt), (Some(10.0), us(50)));
    }

    /// 2^64 ps are 213 days.
    #[test]
    fn the_gap_between_segments_stays_within_time_itself() {
        let (mut swift, mut window) = at(1e-6);
        swift.spec.min_window = 1e-6;
        let long = Time::from_ms(60_000);
        let pacing = swift.on_sample(&mut window, MSS, &sample(long, long));
        assert_eq!(pacing, Some(Pacing::Gap(LONGEST)));
    }

    #[test]
    fn a_window_below_a_segment_grows_with_each_ack() {
        let (mut swift, mut window) = at(0.1);
        let spec = SwiftSpec { additive_increase: 0.25, ..swift.spec.clone() };
        swift.spec = spec;
        swift.on_sample(&mut window, MSS, &sample(us(1), us(70)));
        assert!((swift.window().unwrap() - 0.35).abs() < 1e-9);
    }

    /// 1 - 0.8 * (100 - 75) / 100.
    #[test]
    fn above_the_target_shrinks_in_proportion_once_per_round_trip() {
        let (mut swift, mut window) = at(10.0);
        for now in [us(100), us(150), us(199)] {
            swift.on_sample(&mut window, MSS, &sample(now, us(100)));
            assert_eq!(window.cwnd, 8_000);
        }
        swift.on_sample(&mut window, MSS, &sample(us(200), us(100)));
        assert_eq!(window.cwnd, 6_400);
    }

    #[test]
    fn never_shrinks_by_more_than_half_at_once() {
        let (mut swift, mut window) = at(10.0);
        swift.on_sample(&mut window, MSS, &sample(us(1), us(10_000)));
        assert_eq!(window.cwnd, 5_000);
    }

    #[test]
    fn a_loss_and_a_timeout_halve_the_window() {
        let (mut swift, mut window) = at(8.0);
        swift.on_loss(&window, MSS, MSS);
        swift.on_sample(&mut window, MSS, &sample(us(1_000), us(50)));
        assert_eq!(window.cwnd, 4_000);
        swift.after_timeout(&mut window, MSS, us(2_000));
        assert_eq!(window.cwnd, 2_000);
    }

    #[test]
    fn timeouts_in_a_row_leave_the_least_window() {
        let (mut swift, mut window) = at(8.0);
        for ms in 1..=5 {
            swift.after_timeout(&mut window, MSS, Time::from_ms(ms));
        }
        assert_eq!(swift.window(), Some(0.001));
    }

    #[test]
    fn a_window_below_a_segment_is_paced() {
        let (mut swift, mut window) = at(0.5);
        swift.reduced = Some(us(999));
        let pacing = swift.on_sample(&mut window, MSS, &sample(us(1_000), us(100)));
        assert_eq!((window.cwnd, pacing), (MSS, Some(Pacing::Gap(us(200)))));
    }

    #[test]
    fn the_target_grows_with_the_path_and_as_windows_shrink() {
        let mut swift = Swift::new(&SwiftSpec::default());
        swift.set_switches(5);
        let fixed = us(50 + 5 * 25);
        assert_eq!((swift.target(100.0), swift.target(1_000.0)), (fixed, fixed));
        assert_eq!((swift.target(0.1), swift.target(0.001)), (fixed + us(250), fixed + us(250)));
        assert!(swift.target(1.0) > swift.target(10.0));
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
        let wrong = [
            SwiftSpec { base_target: Time::ZERO, ..SwiftSpec::default() },
            SwiftSpec { beta: 0.0, ..SwiftSpec::default() },
            SwiftSpec { max_decrease: 1.0, ..SwiftSpec::default() },
            SwiftSpec { min_window: 0.0, ..SwiftSpec::default() },
            SwiftSpec { scaling_min_window: 200.0, ..SwiftSpec::default() },
            SwiftSpec { additive_increase: f64::NAN, ..SwiftSpec::default() },
        ];
        assert!(wrong.iter().all(|spec| spec.check().is_err()));
        assert_eq!(SwiftSpec::default().check(), Ok(()));
    }
}
