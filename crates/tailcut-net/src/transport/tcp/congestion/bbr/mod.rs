//! BBR, version 1 (Cardwell et al., 2016; draft-cardwell-iccrg-bbr-congestion-control-00; where
//! that is silent or outdated, Linux). The largest delivery rate of ten rounds gives the bandwidth,
//! the shortest round trip of ten seconds the propagation delay. Loss is no signal; it bounds the
//! window only until it is repaired.
//!
//! As in Linux, beyond the draft: the allowance for aggregated ACKs ([`Aggregation`]), the rate of
//! a policer ([`Policer`]), unpaced first segments, and a policy for restarts after idle. Left out:
//! segments that Linux has scheduled but not sent (here none is in flight before it leaves),
//! segmentation offload (`quantum` stands for it), and Linux's millisecond clock for windows of
//! time. The start of the gain cycle is drawn from a random stream of each connection.

mod aggregation;
mod policer;
mod spec;
mod windowed;

use tailcut_engine::{RandomStream, Time};

pub use spec::BbrSpec;

use super::{AckSample, Acked, CongestionControl, Pacing, Window};
use crate::transport::tcp::CongestionState;
use aggregation::Aggregation;
use policer::{Policer, PolicerSample};
use windowed::WindowedMax;

/// Phases of the gain cycle: one that probes, one that drains, and six at the bandwidth.
const PHASES: u64 = 8;
/// The pipe is full after so many rounds in which the bandwidth has not grown by a quarter.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
/// Segments of the window while nothing is known of the round trip.
const UNKNOWN: u64 = 10;

/// The phase of the state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BbrMode {
    /// The rate doubles in every round.
    Startup,
    /// The queue that this has made is drained.
    Drain,
    /// Around the bandwidth, in this phase of the cycle.
    ProbeBandwidth(u64),
    /// The window is minimal, to measure the round trip without a queue.
    ProbeRtt,
}

/// The state of one connection. Rates are in bytes per second.
#[derive(Debug, Clone)]
pub struct Bbr {
    spec: BbrSpec,
    mode: BbrMode,
    /// The window in bytes; 0 before the connection is established.
    window: u64,
    /// The last window that neither losses nor a probe for the round trip have cut.
    good_window: u64,
    bandwidth: WindowedMax,
    round: u64,
    /// A round ends when something arrives that was sent after this had been delivered.
    round_end: u64,
    min_rtt: Time,
    min_rtt_at: Time,
    /// The earliest end of the round-trip probe; `None` until the network has drained.
    probed_at: Option<Time>,
    /// A round of it has passed.
    probed_round: bool,
    phase_at: Time,
    full: bool,
    full_bandwidth: f64,
    full_rounds: u32,
    pace: f64,
    /// The first pace comes from a round trip that was measured.
    paced_by_rtt: bool,
    /// The first round of a recovery: as much leaves as arrives.
    conserves: bool,
    /// The congestion state after the previous ACK.
    before: CongestionState,
    /// A timeout came after the last ACK.
    timed_out: bool,
    /// Data follow a silence, and nothing of them has arrived.
    restarts: bool,
    policer: Policer,
    aggregation: Aggregation,
    draws: RandomStream,
}

impl Bbr {
    fn new(spec: &BbrSpec) -> Bbr {
        Bbr {
            spec: spec.clone(),
            mode: BbrMode::Startup,
            window: 0,
            good_window: 0,
            bandwidth: WindowedMax::new(spec.bandwidth_rounds.into()),
            round: 0,
            round_end: 0,
            min_rtt: Time::NEVER,
            min_rtt_at: Time::ZERO,
            probed_at: None,
            probed_round: false,
            phase_at: Time::ZERO,
            full: false,
            full_bandwidth: 0.0,
            full_rounds: 0,
            pace: 0.0,
            paced_by_rtt: false,
            conserves: false,
            before: CongestionState::Open,
            timed_out: false,
            restarts: false,
            policer: Policer::default(),
            aggregation: Aggregation::new(),
            draws: RandomStream::new(0, 0, "bbr"),
        }
    }

    /// Returns the current phase.
    pub fn mode(&self) -> BbrMode {
        self.mode
    }

    /// The shortest round trip; [`Time::NEVER`] before the first.
    pub fn min_rtt(&self) -> Time {
        self.min_rtt
    }

    /// The bandwidth of the path, in bytes per second; 0 before the first sample.
    pub fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bandwidth.get())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup => self.spec.startup_gain,
            BbrMode::Drain => 1.0 / self.spec.startup_gain,
            BbrMode::ProbeBandwidth(_) if self.policer.rate().is_some() => 1.0,
            BbrMode::ProbeBandwidth(0) => self.spec.probe_up,
            BbrMode::ProbeBandwidth(1) => self.spec.probe_down,
            BbrMode::ProbeBandwidth(_) | BbrMode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup | BbrMode::Drain => self.spec.startup_gain,
            BbrMode::ProbeBandwidth(_) => self.spec.cwnd_gain,
            BbrMode::ProbeRtt => 1.0,
        }
    }

    /// Returns `gain` times the bandwidth-delay product plus `more` bytes and the allowance for the
    /// hosts' own needs.
    fn inflight(&self, bandwidth: f64, gain: f64, more: f64, mss: u64) -> u64 {
        let bdp = match self.min_rtt {
            Time::NEVER => (UNKNOWN * mss) as f64,
            min_rtt => bandwidth * min_rtt.0 as f64 / 1e12 * gain,
        };
        let segments = ((bdp + more) / mss as f64).ceil() as u64 + 3 * u64::from(self.spec.quantum);
        // An even number delays fewer ACKs. The probe exceeds the bandwidth-delay product even
        // where that is small.
        let probe = if self.mode == BbrMode::ProbeBandwidth(0) { 2 } else { 0 };
        (segments.next_multiple_of(2) + probe) * mss
    }

    /// Rounds, the largest rate, and the policer's. Whether a round ends.
    fn update_bandwidth(&mut self, sample: &AckSample, timed_out: bool) -> bool {
        let Some(rate) = sample.rate else { return false };
        let ends = rate.prior >= self.round_end;
        if ends {
            self.round_end = sample.total_delivered;
            self.round += 1;
            self.conserves = false;
        }
        let heard = PolicerSample {
            now: sample.now,
            lost: sample.lost > 0 || timed_out,
            app_limited: rate.app_limited,
            round: ends,
            delivered: sample.total_delivered,
            total_lost: sample.total_lost,
        };
        let cycles = matches!(self.mode, BbrMode::ProbeBandwidth(_));
        if self.spec.policers && self.policer.on_ack(&heard, cycles) {
            self.probe_bandwidth(sample.now);
        }
        // What lacked data says less than the path can do, unless it says more than was known.
        if !rate.app_limited || rate.rate() >= self.bandwidth.get() {
            self.bandwidth.update(self.round, rate.rate());
        }
        ends
    }

    fn update_phase(&mut self, sample: &AckSample, mss: u64) {
        let BbrMode::ProbeBandwidth(phase) = self.mode else { return };
        let (gain, most) = (self.pacing_gain(), self.bandwidth.get());
        let long = sample.now.since(self.phase_at) > self.min_rtt;
        let ends = if gain > 1.0 {
            let filled = || sample.flight >= self.inflight(most, gain, 0.0, mss);
            long && (sample.lost > 0 || filled())
        } else if gain < 1.0 {
            long || sample.flight <= self.inflight(most, 1.0, 0.0, mss)
        } else {
            long
        };
        if ends {
            self.mode = BbrMode::ProbeBandwidth((phase + 1) % PHASES);
            self.phase_at = sample.now;
        }
    }

    /// The cycle begins in any phase but the one that drains, so that flows do not probe together.
    fn probe_bandwidth(&mut self, now: Time) {
        let phase = (PHASES - self.draws.below(PHASES - 1)) % PHASES;
        self.mode = BbrMode::ProbeBandwidth(phase);
        self.phase_at = now;
    }

    fn check_full(&mut self, limited: bool) {
        if self.full || limited {
            return;
        }
        let most = self.bandwidth.get();
        if most >= FULL_GROWTH * self.full_bandwidth {
            (self.full_bandwidth, self.full_rounds) = (most, 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, sample: &AckSample, mss: u64) {
        if self.mode == BbrMode::Startup && self.full {
            self.mode = BbrMode::Drain;
        }
        let filled = self.inflight(self.bandwidth.get(), 1.0, 0.0, mss);
        if self.mode == BbrMode::Drain && sample.pipe <= filled {
            self.probe_bandwidth(sample.now);
        }
    }

    fn update_min_rtt(&mut self, sample: &AckSample, round_ends: bool, mss: u64) {
        let now = sample.now;
        let expired = now.since(self.min_rtt_at) > self.spec.min_rtt_window;
        // The ACK of a segment that was alone in the network may have waited for another.
        let delayed = sample.flight <= mss;
        if let Some(rtt) = sample.rtt.filter(|rtt| *rtt <= self.min_rtt || expired && !delayed) {
            (self.min_rtt, self.min_rtt_at) = (rtt, now);
        }
        let probes = self.spec.probe_rtt > Time::ZERO && expired && !self.restarts;
        if probes && self.mode != BbrMode::ProbeRtt {
            self.save_window();
            self.mode = BbrMode::ProbeRtt;
            self.probed_at = None;
        }
        if self.mode == BbrMode::ProbeRtt {
            if self.probed_at.is_some() {
                self.probed_round |= round_ends;
                if self.probed_round {
                    self.end_probe(now);
                }
            } else if sample.pipe <= u64::from(self.spec.min_window) * mss {
                self.probed_at = Some(now + self.spec.probe_rtt);
                self.probed_round = false;
                self.round_end = sample.total_delivered;
            }
        }
        self.restarts &= sample.delivered == 0;
    }

    /// The probe for the round trip is over, if it has lasted long enough.
    fn end_probe(&mut self, now: Time) {
        if self.probed_at.is_some_and(|at| now > at) {
            self.min_rtt_at = now;
            self.window = self.window.max(self.good_window);
            if self.full {
                self.probe_bandwidth(now);
            } else {
                self.mode = BbrMode::Startup;
            }
        }
    }

    fn save_window(&mut self) {
        let repairs = matches!(self.before, CongestionState::Recovery | CongestionState::Loss);
        self.good_window = match repairs || self.mode == BbrMode::ProbeRtt {
            true => self.good_window.max(self.window),
            false => self.window,
        };
    }

    fn rate(&self, bytes_per_second: f64, gain: f64) -> f64 {
        bytes_per_second * gain * (1.0 - self.spec.pacing_margin)
    }

    fn pace_by_rtt(&mut self, rtt: Option<Time>) {
        let rtt = rtt.unwrap_or(Time::from_ms(1)).max(Time::from_us(1));
        self.pace = self.rate(self.window as f64 * 1e12 / rtt.0 as f64, self.spec.startup_gain);
    }

    /// Updates the pacing rate, which only grows until the pipe is full.
    fn update_pace(&mut self, smoothed: Time) {
        if !self.paced_by_rtt && smoothed > Time::ZERO {
            self.paced_by_rtt = true;
            self.pace_by_rtt(Some(smoothed));
        }
        let pace = self.rate(self.bandwidth(), self.pacing_gain());
        if self.full || pace > self.pace {
            self.pace = pace;
        }
    }

    /// While `end` is the next segment to be sent for the first time.
    fn pacing(&self, end: u32) -> Pacing {
        let rate = (self.pace.round() as u64).max(1);
        match self.spec.unpaced.saturating_sub(end) {
            0 => Pacing::Rate(rate),
            segments => Pacing::Later { segments, rate },
        }
    }

    fn update_window(&mut self, sample: &AckSample, mss: u64) {
        let least = u64::from(self.spec.min_window) * mss;
        if sample.delivered > 0 {
            let conserved = sample.pipe + sample.delivered;
            let repairs =
                |state| matches!(state, CongestionState::Recovery | CongestionState::Loss);
            let mut window = self.window.saturating_sub(sample.lost).max(mss);
            let state = sample.state;
            if state == CongestionState::Recovery && self.before != state {
                self.conserves = true;
                self.round_end = sample.total_delivered;
                window = conserved;
            } else if repairs(self.before) && !repairs(state) {
                window = window.max(self.good_window);
                self.conserves = false;
            }
            self.before = state;
            self.window = match self.conserves {
                true => window.max(conserved),
                false => self.toward_target(window, sample, mss).max(least),
            };
        }
        if self.mode == BbrMode::ProbeRtt {
            self.window = self.window.min(least);
        }
    }

    /// Grows the window by what was delivered; once the pipe is full, up to the target.
    fn toward_target(&self, window: u64, sample: &AckSample, mss: u64) -> u64 {
        let bandwidth = self.bandwidth();
        let more = match self.full && self.spec.aggregation {
            true => self.aggregation.allowance(bandwidth),
            false => 0.0,
        };
        let target = self.inflight(bandwidth, self.cwnd_gain(), more, mss);
        let grown = window + sample.delivered;
        if self.full {
            grown.min(target)
        } else if window < target || sample.total_delivered < UNKNOWN * mss {
            grown
        } else {
            window
        }
    }

    fn put(&self, window: &mut Window) {
        window.cwnd = self.window;
        window.ssthresh = if self.full { self.window } else { u64::MAX };
    }
}

impl CongestionControl for Bbr {
    fn draw_from(&mut self, seed: u64, entity: u64) {
        self.draws = RandomStream::new(seed, entity, "bbr");
    }

    /// The handshake's round trip is the first, and the window over it the first rate.
    fn on_open(&mut self, window: &Window, _: u64, now: Time, rtt: Option<Time>) -> Option<Pacing> {
        self.window = window.cwnd;
        (self.min_rtt, self.min_rtt_at) = (rtt.unwrap_or(Time::NEVER), now);
        self.paced_by_rtt = rtt.is_some();
        self.pace_by_rtt(rtt);
        Some(self.pacing(0))
    }

    /// A fast retransmit begins: what it leaves of the window, samples say.
    fn on_loss(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        self.save_window();
        window.cwnd
    }

    fn on_timeout(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        self.save_window();
        window.cwnd
    }

    /// Marks say nothing to it.
    fn answers_echoes(&self) -> bool {
        false
    }

    /// Keeps the measurements (`bbr_undo_cwnd` of Linux): a slowdown after a needless reduction
    /// reveals neither a full pipe nor a policer. The window returns as after any recovery.
    fn take_back(&mut self, _: &Bbr) {
        (self.full_bandwidth, self.full_rounds) = (0.0, 0);
        self.policer = Policer::default();
    }

    fn echo_counts_as_loss(&self) -> bool {
        false
    }

    /// Does nothing: the window grows by samples.
    fn grow(&mut self, _: &mut Window, _: u64, _: &Acked) {}

    fn wants_samples(&self) -> bool {
        true
    }

    fn on_sample(&mut self, window: &mut Window, mss: u64, sample: &AckSample) -> Option<Pacing> {
        let timed_out = std::mem::take(&mut self.timed_out);
        let round_ends = self.update_bandwidth(sample, timed_out);
        if let (Some(_), 1..) = (sample.rate, sample.delivered) {
            let (rate, window) = (self.bandwidth(), self.window);
            self.aggregation.on_ack(sample.now, self.round, sample.delivered, rate, window);
        }
        self.update_phase(sample, mss);
        if round_ends {
            self.check_full(sample.rate.is_some_and(|rate| rate.app_limited));
        }
        self.check_drained(sample, mss);
        self.update_min_rtt(sample, round_ends, mss);
        self.update_pace(sample.smoothed);
        self.update_window(sample, mss);
        self.put(window);
        Some(self.pacing(sample.end))
    }

    /// Sends one segment and then grows up to the target by what is delivered; a pipe that is not
    /// known to be full may still grow.
    fn after_timeout(&mut self, window: &mut Window, _: u64, _: Time) -> Option<Pacing> {
        self.timed_out = true;
        self.before = CongestionState::Loss;
        self.full_bandwidth = 0.0;
        self.window = window.cwnd;
        self.put(window);
        None
    }

    /// Resumes at the estimated bandwidth.
    fn after_idle(&mut self, now: Time) -> Option<Pacing> {
        self.restarts = true;
        self.aggregation.begin(now);
        match self.mode {
            BbrMode::ProbeBandwidth(_) => self.pace = self.rate(self.bandwidth(), 1.0),
            BbrMode::ProbeRtt => self.end_probe(now),
            BbrMode::Startup | BbrMode::Drain => return None,
        }
        Some(self.pacing(u32::MAX))
    }

    /// The least window fills no path.
    fn is_self_limited(&self) -> bool {
        self.mode == BbrMode::ProbeRtt
    }
}

#[cfg(test)]
mod tests;
