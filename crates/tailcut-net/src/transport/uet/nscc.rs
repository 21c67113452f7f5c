//! NSCC, the sender's window: it grows where delays are short and packets unmarked, shrinks by the
//! mean delay where they are long and marked, and falls to what arrives after losses.

use tailcut_engine::Time;

use super::UetSpec;

/// Gain of the increase where queues are long but unmarked, in packets per packet.
const FAIR: f64 = 5.0;
/// Gain of the increase in proportion to the distance from the target delay.
const PROPORTIONAL: f64 = 4.0;
/// Gain of the fast increase, per byte that has arrived.
const FAST: f64 = 0.25;
/// A delay below which a queue counts as empty, in ps.
const EMPTY: f64 = 1e6;
/// Share of a packet by which the window grows in each round trip in any case.
const ALWAYS: f64 = 0.15;
/// Share of the excess of the mean delay by which the window shrinks, and the least that is left.
const DECREASE: f64 = 0.8;
const LEAST_LEFT: f64 = 0.5;
/// Weight of a new sample in the mean delay.
const WEIGHT: f64 = 0.0125;
/// Packets that arrive before what was gathered is added to the window.
const GATHERED_PACKETS: u64 = 8;
/// BDP and target delay that the gains are meant for.
const REFERENCE_BDP: f64 = 150_000.0;
const REFERENCE_DELAY: f64 = 12e6;

/// The window of one connection. Windows count bytes on the wire, delays ps.
#[derive(Debug, Clone)]
pub(super) struct Nscc {
    window: f64,
    base_rtt: Time,
    mean_delay: f64,
    /// Increases that wait to be divided by the window, in bytes squared.
    gathered: f64,
    /// Bytes that have arrived since they were last added.
    arrived: u64,
    /// The time of the last growth that comes in any case.
    grown_at: Time,
    /// Bytes that have arrived in a row without a queue.
    unqueued: f64,
    is_fast: bool,
    decreased_at: Option<Time>,
    /// The end of the period in which arrivals are counted, and their bytes.
    period_end: Option<Time>,
    period_bytes: u64,
    /// A packet was trimmed since the window last fell to what arrives.
    trimmed: bool,
    /// Bytes that were under way when it did, of which so many have been heard of since.
    to_ignore: u64,
    ignored: u64,
}

impl Nscc {
    pub fn new(spec: &UetSpec, now: Time) -> Nscc {
        Nscc {
            window: spec.derived.initial_window as f64,
            base_rtt: spec.derived.round_trip,
            mean_delay: 0.0,
            gathered: 0.0,
            arrived: 0,
            grown_at: now,
            unqueued: 0.0,
            is_fast: false,
            decreased_at: None,
            period_end: None,
            period_bytes: 0,
            trimmed: false,
            to_ignore: 0,
            ignored: 0,
        }
    }

    /// The window in bytes.
    pub fn window(&self) -> u64 {
        self.window as u64
    }

    /// Takes the round trip of a packet that was sent once; returns its queueing delay in ps.
    pub fn sample(&mut self, round_trip: Time) -> f64 {
        self.base_rtt = self.base_rtt.min(round_trip);
        (round_trip.0 - self.base_rtt.0) as f64
    }

    /// An acknowledgement reports `bytes` more than those before. `delay` is that of its packet,
    /// if it was sent once.
    pub fn on_ack(
        &mut self,
        spec: &UetSpec,
        now: Time,
        delay: Option<f64>,
        marked: bool,
        bytes: u64,
        in_flight: u64,
    ) {
        let target = spec.derived.target_delay.0 as f64;
        if let Some(delay) = delay {
            let sample =
                if delay > target && !marked { self.base_rtt.0 as f64 / 4.0 } else { delay };
            self.average(sample);
        }
        let delay = delay.unwrap_or(self.mean_delay);
        if self.adapt(spec, now, bytes, delay, marked, false, in_flight) {
            return;
        }
        let (gain, payload, bytes_f) = (spec.gain(), spec.mss.0 as f64, bytes as f64);
        match (marked, delay >= target) {
            (false, true) => self.gathered += FAIR * payload * gain * bytes_f,
            (false, false) => {
                if !self.grows_fast(delay, bytes_f, gain) {
                    self.is_fast = false;
                    let slope = PROPORTIONAL * payload * gain / REFERENCE_DELAY;
                    self.gathered += slope * bytes_f * (target - delay);
                }
            }
            (true, true) => self.decrease(now, target),
            (true, false) => {}
        }
        self.bound(spec);
        self.arrived += bytes;
        self.grow(spec, now, payload * gain);
    }

    /// Grows by a share of what arrives, once a whole window has arrived without a queue.
    fn grows_fast(&mut self, delay: f64, bytes: f64, gain: f64) -> bool {
        if delay >= EMPTY {
            self.unqueued = 0.0;
            return false;
        }
        self.unqueued += bytes;
        if self.unqueued <= self.window && !self.is_fast {
            return false;
        }
        self.is_fast = true;
        self.window += FAST * gain * bytes;
        true
    }

    /// Shrinks by the mean delay beyond the target, once in a round trip.
    fn decrease(&mut self, now: Time, target: f64) {
        (self.unqueued, self.is_fast) = (0.0, false);
        let recent = self.decreased_at.is_some_and(|at| now <= at + self.base_rtt);
        if self.mean_delay > target && !recent {
            let excess = (self.mean_delay - target) / self.mean_delay;
            self.window *= (1.0 - DECREASE * excess).max(LEAST_LEFT);
            self.decreased_at = Some(now);
        }
    }

    /// Adds what was gathered, and in each round trip a little in any case.
    fn grow(&mut self, spec: &UetSpec, now: Time, payload: f64) {
        let round_trip = spec.derived.round_trip;
        let enough = self.arrived > GATHERED_PACKETS * spec.full_packet();
        if enough || now > self.grown_at + round_trip {
            self.window += self.gathered / self.window;
            (self.gathered, self.arrived) = (0.0, 0);
            if now >= self.grown_at + round_trip {
                self.window += ALWAYS * payload;
                self.grown_at = now;
            }
            self.bound(spec);
        }
    }

    /// A packet of `bytes` was trimmed. `counts`: the window shrinks by it.
    pub fn on_trimmed(
        &mut self,
        spec: &UetSpec,
        now: Time,
        delay: Option<f64>,
        bytes: u64,
        counts: bool,
        in_flight: u64,
    ) {
        self.average(spec.derived.round_trip.0 as f64);
        let delay = delay.unwrap_or(self.mean_delay);
        self.trimmed = true;
        if !self.adapt(spec, now, 0, delay, false, true, in_flight) && counts {
            self.shrink(spec, bytes);
        }
        self.ignored += bytes;
    }

    /// A packet of `bytes` is lost.
    pub fn on_timeout(&mut self, spec: &UetSpec, bytes: u64) {
        self.shrink(spec, bytes);
    }

    fn shrink(&mut self, spec: &UetSpec, bytes: u64) {
        self.window -= bytes as f64;
        self.bound(spec);
    }

    /// Lets the window fall to what arrives in a period, where that is little and packets were
    /// trimmed or waited for long. Until what was under way then has been heard of, marks and
    /// trimmed packets change nothing. Returns true if this acknowledgement is settled.
    #[allow(clippy::too_many_arguments)]
    fn adapt(
        &mut self,
        spec: &UetSpec,
        now: Time,
        bytes: u64,
        delay: f64,
        marked: bool,
        trimmed: bool,
        in_flight: u64,
    ) -> bool {
        let ignores = self.ignored < self.to_ignore && (marked || trimmed);
        self.ignored += bytes;
        self.period_bytes += bytes;
        let target = spec.derived.target_delay;
        let Some(end) = self.period_end else {
            self.period_end = Some(now + self.base_rtt + target);
            return self.settle(ignores);
        };
        let mut falls = false;
        if now >= end {
            let late = self.trimmed || delay > 4.0 * target.0 as f64;
            falls = late && (self.period_bytes as f64) < self.most(spec) / 8.0;
            if falls {
                self.window = self.period_bytes.max(spec.full_packet()) as f64;
                (self.to_ignore, self.ignored, self.trimmed) = (in_flight, 0, false);
            }
            self.period_bytes = 0;
            self.period_end = Some(now + self.base_rtt + target);
        }
        self.settle(falls || ignores)
    }

    fn settle(&mut self, stops: bool) -> bool {
        if stops {
            (self.gathered, self.arrived) = (0.0, 0);
        }
        stops
    }

    fn average(&mut self, sample: f64) {
        self.mean_delay += WEIGHT * (sample - self.mean_delay);
    }

    /// The largest window: 1.5 times what is under way in the shortest round trip.
    fn most(&self, spec: &UetSpec) -> f64 {
        1.5 * spec.derived.rate.0 as f64 / 8e12 * self.base_rtt.0 as f64
    }

    fn bound(&mut self, spec: &UetSpec) {
        self.window = self.window.min(self.most(spec)).max(spec.full_packet() as f64);
    }
}

impl UetSpec {
    /// The factor of all gains, by which they follow the bandwidth-delay product.
    fn gain(&self) -> f64 {
        self.derived.bdp as f64 / REFERENCE_BDP
    }
}
