//! CUBIC (RFC 9438): the window is a cubic function of the time since the last
//! congestion event, so that round trips of different length share alike.
//! Windows here are in segments and times in seconds, as in the RFC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::hystart::{HyStart, HystartSpec};
use super::{Acked, CongestionAlgorithm, CongestionControl, Window};
use crate::component::SpecError;

/// Parameters of CUBIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CubicSpec {
    /// Factor of the window at a congestion event (RFC 9438: 0.7).
    pub beta: f64,
    /// Growth constant in segments per second cubed (RFC 9438: 0.4).
    pub c: f64,
    /// Give way sooner when the window shrinks from event to event (section 4.7).
    pub fast_convergence: bool,
    /// Whether the window grows at least as fast as NewReno's (section 4.3), which decides it where
    /// round trips are short.
    pub tcp_friendly: bool,
    /// Criterion that ends slow start before packets are lost.
    pub hystart: HystartSpec,
}

impl Default for CubicSpec {
    fn default() -> Self {
        CubicSpec {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            tcp_friendly: true,
            hystart: HystartSpec::Rfc9406,
        }
    }
}

impl CubicSpec {
    /// Returns Linux's parameters.
    pub fn linux() -> CubicSpec {
        CubicSpec { hystart: HystartSpec::Linux, ..CubicSpec::default() }
    }
}

impl CongestionAlgorithm for CubicSpec {
    type State = Cubic;
    fn new_state(&self) -> Cubic {
        Cubic::new(self)
    }
    fn check(&self) -> Result<(), SpecError> {
        if !(self.beta > 0.0 && self.beta < 1.0) {
            let message = format!("beta = {}: lies between 0 and 1", self.beta);
            return Err(
                SpecError::new("cubic-beta", "congestion.beta", message).hint("RFC 9438 says 0.7")
            );
        }
        if !(self.c > 0.0 && self.c.is_finite()) {
            let message = format!("c = {}: lies above 0", self.c);
            return Err(
                SpecError::new("cubic-c", "congestion.c", message).hint("RFC 9438 says 0.4")
            );
        }
        Ok(())
    }
}

/// The state of one connection (section 4.1.2).
#[derive(Debug, Clone)]
pub struct Cubic {
    spec: CubicSpec,
    /// The window before the last reduction, lowered by fast convergence; 0 before any reduction
    /// and after a timeout.
    w_max: f64,
    /// Window before the last reduction.
    cwnd_prior: f64,
    /// Congestion avoidance since then.
    epoch: Option<Epoch>,
    hystart: Option<HyStart>,
    /// The fraction of a byte left over from earlier increases.
    carry: f64,
}

#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// Start of the epoch, moved later by the time in which the window did not limit the sender.
    start: Time,
    /// The last ACK that counts.
    last: Time,
    /// The plateau of the cubic function, and when it is reached.
    origin: f64,
    k: f64,
    /// The window of a NewReno flow with the same mean.
    w_est: f64,
}

impl Cubic {
    fn new(spec: &CubicSpec) -> Cubic {
        Cubic {
            spec: spec.clone(),
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            hystart: HyStart::start(spec.hystart),
            carry: 0.0,
        }
    }

    /// Excludes the time in which the window did not limit the sender from the epoch (sections 4.2
    /// and 5.8).
    fn pass_over(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += now - epoch.last;
            epoch.last = now;
        }
    }

    /// Sections 4.2 to 4.5: by how many segments the window grows when `segments` are acknowledged.
    fn increase(&mut self, cwnd: f64, segments: f64, acked: &Acked) -> f64 {
        let c = self.spec.c;
        let (w_max, now) = (self.w_max, acked.now);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            last: now,
            origin: w_max.max(cwnd),
            k: cube_root((w_max - cwnd).max(0.0) / c),
            w_est: cwnd,
        });
        epoch.last = now;
        let w_cubic = |time: f64| {
            let t = time - epoch.k;
            c * t * t * t + epoch.origin
        };
        let t = seconds(now.since(epoch.start));
        if self.spec.tcp_friendly {
            let beta = self.spec.beta;
            let caught_up = epoch.w_est >= self.cwnd_prior;
            let alpha = if caught_up { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
            let w_est = epoch.w_est + alpha * segments / cwnd;
            let reno_friendly = w_cubic(t) < w_est;
            epoch.w_est = w_est;
            if reno_friendly {
                return (w_est - cwnd).max(0.0);
            }
        }
        let target = w_cubic(t + seconds(acked.smoothed)).clamp(cwnd, 1.5 * cwnd);
        (target - cwnd) / cwnd * segments
    }

    /// Sections 4.6 and 4.7: the new threshold, of `flight` bytes in the network.
    fn reduce(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        let cwnd = window.cwnd as f64 / mss as f64;
        let gives_way = self.spec.fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_way { cwnd * (1.0 + self.spec.beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        HyStart::reduced(&mut self.hystart, false);
        ((flight as f64 * self.spec.beta) as u64).max(2 * mss)
    }
}

impl CongestionControl for Cubic {
    /// Grows only while the window is what bounds the sender (section 5.8).
    fn grow(&mut self, window: &mut Window, mss: u64, acked: &Acked) {
        if let Some(hystart) = &mut self.hystart {
            hystart.look(window, mss, acked, self.epoch.map(|epoch| epoch.start));
        }
        if acked.flight + mss <= window.cwnd {
            return self.pass_over(acked.now);
        }
        let mut bytes = acked.bytes;
        if window.cwnd < window.ssthresh {
            bytes = HyStart::grow(&mut self.hystart, window, mss, acked);
            if bytes == 0 {
                return;
            }
        }
        let cwnd = window.cwnd as f64 / mss as f64;
        let increase = self.increase(cwnd, bytes as f64 / mss as f64, acked);
        self.carry += increase * mss as f64;
        let whole = self.carry.floor();
        window.cwnd += whole as u64;
        self.carry -= whole;
    }

    fn on_loss(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        self.reduce(window, flight, mss)
    }

    fn on_echo(&mut self, window: &Window, mss: u64) -> u64 {
        self.reduce(window, window.cwnd, mss)
    }

    /// Sections 4.9.1 and 4.9.2: growth goes on where it was.
    fn take_back(&mut self, before: &Cubic) {
        self.clone_from(before);
    }

    /// Section 4.8: the next congestion avoidance starts on its own plateau.
    fn on_timeout(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        let ssthresh = self.reduce(window, flight, mss);
        self.w_max = 0.0;
        HyStart::reduced(&mut self.hystart, true);
        ssthresh
    }
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 * 1e-12
}

/// Returns the cube root by Newton's method; the C library's result differs between machines.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    loop {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1_000;

    /// Returns the window after two seconds of growth with a pause in the middle in which little is
    /// sent.
    fn window_after_a_pause(pause: Time) -> u64 {
        let spec =
            CubicSpec { tcp_friendly: false, hystart: HystartSpec::None, ..CubicSpec::default() };
        let mut cubic = Cubic::new(&spec);
        let before = Window { cwnd: 100 * MSS, ssthresh: u64::MAX };
        let ssthresh = cubic.reduce(&before, before.cwnd, MSS);
        let mut window = Window { cwnd: ssthresh, ssthresh };
        let mut now = Time::ZERO;
        let mut acked = |now: Time, bytes: u64, flight: Option<u64>, window: &mut Window| {
            let (flight, smoothed) = (flight.unwrap_or(window.cwnd), Time::from_ms(10));
            let acked = Acked {
                now,
                bytes,
                by_delivery: false,
                flight,
                rtt: None,
                smoothed,
                una: 1,
                end: 2,
            };
            cubic.grow(window, MSS, &acked);
        };
        for round in 0..200 {
            now += Time::from_ms(10);
            let bytes = window.cwnd;
            acked(now, bytes, None, &mut window);
            if round == 100 && pause > Time::ZERO {
                now += pause;
                acked(now, MSS, Some(MSS), &mut window);
            }
        }
        window.cwnd
    }

    /// Sections 4.2 and 5.8: without this the window would leap after the pause.
    #[test]
    fn time_in_which_the_application_bounds_the_sender_does_not_count() {
        let steady = window_after_a_pause(Time::ZERO);
        assert_eq!(window_after_a_pause(Time::from_ms(30_000)), steady);
        assert!(steady < 100 * MSS, "still below the plateau");
    }

    proptest! {
        #[test]
        fn the_cube_root_cubed_is_the_number(x in 1e-9..1e12f64) {
            let root = cube_root(x);
            prop_assert!((root * root * root / x - 1.0).abs() < 1e-12);
        }
    }
}
