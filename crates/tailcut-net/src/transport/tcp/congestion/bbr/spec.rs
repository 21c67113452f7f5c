//! BBR's parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::super::CongestionAlgorithm;
use super::Bbr;
use crate::component::SpecError;
use crate::transport::tcp::Recovery;

/// Parameters of BBR. The defaults are Linux's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BbrSpec {
    /// Gain of pacing and window in startup; its inverse drains the queue afterwards. 2/ln 2
    /// doubles the rate in every round.
    pub startup_gain: f64,
    /// Gain of the window later: BDPs that may be in the network.
    pub cwnd_gain: f64,
    /// Gain of pacing in the phase that probes for bandwidth.
    pub probe_up: f64,
    /// Gain of the phase after the probe, which drains the probe's queue.
    pub probe_down: f64,
    /// Rounds over which the largest delivery rate is the bandwidth.
    pub bandwidth_rounds: u32,
    /// Age after which the shortest round trip is measured anew.
    pub min_rtt_window: Time,
    /// Time, and at least a round, with a minimal window to measure the round trip. 0s: never.
    pub probe_rtt: Time,
    /// The least window, in segments.
    pub min_window: u32,
    /// The part by which pacing stays below the bandwidth, so that queues empty.
    pub pacing_margin: f64,
    /// Segments that leave unpaced when a connection begins.
    pub unpaced: u32,
    /// Segments that a host hands over at once: three times as many are allowed beyond the BDP.
    pub quantum: u32,
    /// Whether the window allows for aggregated ACKs.
    pub aggregation: bool,
    /// Whether a policer's rate is detected and kept to.
    pub policers: bool,
}

impl Default for BbrSpec {
    fn default() -> Self {
        BbrSpec {
            startup_gain: 2.885,
            cwnd_gain: 2.0,
            probe_up: 1.25,
            probe_down: 0.75,
            bandwidth_rounds: 10,
            min_rtt_window: Time::from_ms(10_000),
            probe_rtt: Time::from_ms(200),
            min_window: 4,
            pacing_margin: 0.01,
            unpaced: 10,
            quantum: 1,
            aggregation: true,
            policers: true,
        }
    }
}

impl CongestionAlgorithm for BbrSpec {
    type State = Bbr;
    fn min_window_segments(&self) -> u32 {
        self.min_window
    }
    fn new_state(&self) -> Bbr {
        Bbr::new(self)
    }
    fn check_recovery(&self, recovery: Recovery) -> Result<(), SpecError> {
        if recovery == Recovery::SackPrr {
            return Ok(());
        }
        let message = "bbr measures what selective acknowledgements say has arrived";
        Err(SpecError::new("bbr-needs-sack", "congestion", message)
            .hint("write recovery = \"sack-prr\" as well"))
    }

    fn check(&self) -> Result<(), SpecError> {
        let numbers = [
            ("startup_gain", self.startup_gain, 1.1, 10.0),
            ("cwnd_gain", self.cwnd_gain, 1.0, 10.0),
            ("probe_up", self.probe_up, 1.0, 10.0),
            ("probe_down", self.probe_down, 0.1, 1.0),
            ("pacing_margin", self.pacing_margin, 0.0, 0.5),
            ("bandwidth_rounds", self.bandwidth_rounds.into(), 1.0, 10_000.0),
            ("min_window", self.min_window.into(), 1.0, 1_000.0),
            ("quantum", self.quantum.into(), 0.0, 1_000.0),
        ];
        for (field, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                let message = format!("{field} = {value}: {least} to {most}");
                return Err(SpecError::new(
                    "bbr-parameters",
                    format!("congestion.{field}"),
                    message,
                ));
            }
        }
        if self.min_rtt_window == Time::ZERO || self.min_rtt_window > Time::from_ms(3_600_000) {
            let message = format!(
                "min_rtt_window = \"{}\": above 0s and at most an hour",
                self.min_rtt_window
            );
            return Err(SpecError::new("bbr-times", "congestion.min_rtt_window", message));
        }
        if self.probe_rtt > self.min_rtt_window {
            let message = format!("probe_rtt = \"{}\": at most min_rtt_window", self.probe_rtt);
            return Err(SpecError::new("bbr-times", "congestion.probe_rtt", message));
        }
        Ok(())
    }
}
