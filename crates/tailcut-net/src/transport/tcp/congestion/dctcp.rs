//! DCTCP (RFC 8257): the window falls in proportion to the share of marked bytes. Loss is handled
//! as in RFC 5681, and so is growth, on ACKs without an echo (RFC 3168 section 6.1.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionAlgorithm, CongestionControl, Window};
use crate::component::SpecError;

/// Parameters of DCTCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DctcpSpec {
    /// Weight of the latest window in the estimate of congestion (RFC 8257: 1/16).
    pub g: f64,
    /// The estimate of a new connection (RFC 8257: 1, so that a first mark halves the window).
    pub initial_alpha: f64,
    /// Whether the window also grows on ACKs with an echo, as in the paper's analysis (Alizadeh et
    /// al. 2010, section 3). By RFC 3168, to which RFC 8257 refers, and in Linux it does not.
    pub grows_under_echoes: bool,
}

impl Default for DctcpSpec {
    fn default() -> Self {
        DctcpSpec { g: 1.0 / 16.0, initial_alpha: 1.0, grows_under_echoes: false }
    }
}

impl CongestionAlgorithm for DctcpSpec {
    type State = Dctcp;
    fn echoes_marks(&self) -> bool {
        true
    }
    fn respects_ssthresh(&self) -> bool {
        true
    }
    fn new_state(&self) -> Dctcp {
        let (g, alpha, grows) = (self.g, self.initial_alpha, self.grows_under_echoes);
        Dctcp { g, alpha, grows, acknowledged: 0, marked: 0, window_end: 0 }
    }
    fn check(&self) -> Result<(), SpecError> {
        if !(self.g > 0.0 && self.g <= 1.0) {
            let message = format!("g = {}: a weight lies above 0 and is at most 1", self.g);
            return Err(
                SpecError::new("dctcp-g", "congestion.g", message).hint("RFC 8257 says 0.0625")
            );
        }
        if !(0.0..=1.0).contains(&self.initial_alpha) {
            let message = format!(
                "initial_alpha = {}: the share of marked bytes lies between 0 and 1",
                self.initial_alpha
            );
            return Err(SpecError::new("dctcp-alpha", "congestion.initial_alpha", message)
                .hint("RFC 8257 says 1"));
        }
        Ok(())
    }
}

/// The estimate of congestion (section 3.3).
#[derive(Debug, Clone)]
pub struct Dctcp {
    g: f64,
    alpha: f64,
    /// The window grows on ACKs with an echo.
    grows: bool,
    /// Bytes acknowledged in this observation window, and how many of them with an ECN echo.
    acknowledged: u64,
    marked: u64,
    /// The observation window ends when more than this is acknowledged (`DCTCP.WindowEnd`).
    window_end: u32,
}

impl Dctcp {
    /// The estimated share of bytes that met congestion.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl CongestionControl for Dctcp {
    /// Steps 1 to 8: the share of one window of data enters the estimate.
    fn on_ecn_feedback(&mut self, bytes: u64, echo: bool, ack: u32, end: u32) {
        self.acknowledged += bytes;
        self.marked += if echo { bytes } else { 0 };
        if ack <= self.window_end {
            return;
        }
        let share = self.marked as f64 / self.acknowledged.max(1) as f64;
        self.alpha = self.alpha * (1.0 - self.g) + self.g * share;
        (self.acknowledged, self.marked, self.window_end) = (0, 0, end);
    }

    /// Step 9, and two segments at least, as RFC 5681 wants of any threshold.
    fn on_echo(&mut self, window: &Window, mss: u64) -> u64 {
        ((window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64).max(2 * mss)
    }

    fn echo_pauses_growth(&self) -> bool {
        !self.grows
    }

    /// The answer to an echo is smaller than to a loss (section 3.5).
    fn echo_counts_as_loss(&self) -> bool {
        false
    }
}
