//! Timeouts that mean a failure, and not a packet dropped by a full queue.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::super::Surroundings;
use crate::component::SpecError;

/// Timeouts that mean a failure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Failure {
    /// All.
    Timeout {},
    /// Those before which round-trip times were low (REPS's artifact).
    ///
    /// For queues that drop, where a timeout may be congestion.
    QuietTimeout {
        /// The most that a round-trip time may be, as a multiple of `base_rtt`.
        #[serde(default = "low")]
        most: f64,
        /// The time before the timeout for which that holds; by default two of the least
        /// retransmission timeout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Time>,
        /// The round-trip time without queues; by default that of the longest path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base_rtt: Option<Time>,
    },
    /// None: connections never freeze.
    Never {},
}

fn low() -> f64 {
    1.65
}

impl Failure {
    /// Timeouts at low round-trip times, with the artifact's bound.
    pub(super) fn quiet_timeout() -> Failure {
        Failure::QuietTimeout { most: low(), within: None, base_rtt: None }
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        match *self {
            Failure::QuietTimeout { most, .. } if !(1.0..=1_000.0).contains(&most) => {
                let message = format!("most = {most}: must be from 1 to 1000");
                Err(SpecError::new("entropy-reps", "failure.most", message)
                    .hint("REPS's artifact has 1.65"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn fit(&mut self, around: &Surroundings) {
        if let Failure::QuietTimeout { within, base_rtt, .. } = self {
            within.get_or_insert(Time(around.rto.0.saturating_mul(2)));
            base_rtt.get_or_insert(around.base_rtt);
        }
    }
}

/// Tells which timeouts of one connection mean a failure.
#[derive(Debug, Clone)]
pub(super) enum FailureDetector {
    Always,
    Quiet(Box<QuietTimes>),
    Never,
}

/// The largest round-trip time of the last while.
#[derive(Debug, Clone)]
pub(super) struct QuietTimes {
    /// The round-trip time from which on a timeout means congestion.
    bound: Time,
    within: Time,
    /// Samples, with times that rise and round-trip times that fall.
    samples: VecDeque<(Time, Time)>,
}

impl FailureDetector {
    pub fn new(spec: Option<&Failure>) -> FailureDetector {
        match spec {
            None | Some(Failure::Timeout {}) => FailureDetector::Always,
            Some(Failure::Never {}) => FailureDetector::Never,
            Some(&Failure::QuietTimeout { most, within, base_rtt }) => {
                let bound = Time((base_rtt.unwrap_or(Time::ZERO).0 as f64 * most) as u64);
                let within = within.unwrap_or(Time::ZERO);
                FailureDetector::Quiet(Box::new(QuietTimes {
                    bound,
                    within,
                    samples: VecDeque::new(),
                }))
            }
        }
    }

    pub fn note_rtt(&mut self, now: Time, rtt: Time) {
        let FailureDetector::Quiet(times) = self else { return };
        while times.samples.back().is_some_and(|&(_, smaller)| smaller <= rtt) {
            times.samples.pop_back();
        }
        times.samples.push_back((now, rtt));
        times.forget(now);
    }

    /// Returns whether a timeout now means a failure.
    pub fn is_failure(&mut self, now: Time) -> bool {
        match self {
            FailureDetector::Always => true,
            FailureDetector::Never => false,
            FailureDetector::Quiet(times) => {
                times.forget(now);
                times.samples.front().is_none_or(|&(_, largest)| largest < times.bound)
            }
        }
    }
}

impl QuietTimes {
    fn forget(&mut self, now: Time) {
        while self.samples.front().is_some_and(|&(at, _)| now.since(at) > self.within) {
            self.samples.pop_front();
        }
    }
}
