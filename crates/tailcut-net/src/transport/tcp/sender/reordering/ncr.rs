//! Non-congestion robustness (RFC 4653): recovery waits for about a window of
//! duplicate ACKs, and new segments keep the ACK clock going meanwhile (extended limited transmit).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use super::{LossDetector, LossVerdict, Method, Parameters, SendChoice, judge_by_count, split};
use crate::packet::SackBlocks;
use crate::transport::tcp::TcpSpec;
use crate::transport::tcp::sender::{CongestionState, Sender};

/// Parameters of NCR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NcrSpec {
    /// The amount sent while it waits.
    pub variant: NcrVariant,
}

impl Default for NcrSpec {
    fn default() -> Self {
        NcrSpec { variant: NcrVariant::Careful }
    }
}

/// The two variants of RFC 4653 section 3: about a window of data leaves the network before
/// recovery under either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NcrVariant {
    /// Sends a new segment for every two that arrive; recovers late.
    ///
    /// Recovery begins after duplicate ACKs for two thirds of what is then in flight.
    Careful,
    /// Sends a new segment for each that arrives; recovers earlier.
    ///
    /// Recovery begins after duplicate ACKs for half of what is then in flight.
    Aggressive,
}

impl Parameters for NcrSpec {}

impl Method for NcrSpec {
    type State = Ncr;

    fn new_state(&self) -> Ncr {
        Ncr { variant: self.variant, flight_before: 0, end_before: 0 }
    }
}

/// Extended limited transmit of one connection.
#[derive(Debug, Clone)]
pub(in crate::transport::tcp) struct Ncr {
    variant: NcrVariant,
    /// Bytes in flight when the first duplicate ACK arrived (`FlightSizePrev`).
    flight_before: u64,
    /// End of what had been sent then, or when a hole was last filled.
    end_before: u32,
}

impl Ncr {
    /// The threshold when so many segments are in flight (steps I.3 and E.5).
    fn threshold(&self, segments: u32) -> u32 {
        let share = match self.variant {
            NcrVariant::Careful => (2 * segments).div_ceil(3),
            NcrVariant::Aggressive => segments.div_ceil(2),
        };
        share.max(3)
    }

    /// Segments that have arrived beyond the hole and for which none is sent: the careful variant
    /// lets one go by for each that it sends. `end` is the end of what has been sent.
    fn skipped(&self, end: u32) -> u32 {
        match self.variant {
            NcrVariant::Careful => end - self.end_before,
            NcrVariant::Aggressive => 0,
        }
    }
}

impl LossDetector for Ncr {
    fn before_ack(
        &mut self,
        sender: &mut Sender,
        _: Time,
        ack: u32,
        blocks: &SackBlocks,
    ) -> SackBlocks {
        let (duplicate, blocks) = split(ack, blocks);
        if let Some((start, end)) = duplicate {
            sender.counters.duplicates_reported += u64::from(end - start);
        }
        // Steps I.3 and E.5: whatever limited transmit has sent counts, so that about a window must
        // have left.
        let undecided = matches!(sender.state, CongestionState::Open | CongestionState::Disorder);
        if undecided && !blocks.is_empty() {
            sender.threshold = self.threshold(sender.board.end() - ack.max(sender.una));
        }
        blocks
    }

    /// A share of what is in flight is always in reach.
    fn detect_losses(
        &mut self,
        sender: &mut Sender,
        _: &TcpSpec,
        _: Time,
        _: u32,
        duplicate: bool,
    ) -> LossVerdict {
        judge_by_count(sender, sender.threshold, duplicate)
    }

    /// Steps I.1 and I.2.
    fn disorder_begins(&mut self, sender: &Sender, spec: &TcpSpec) {
        self.flight_before = sender.flight(spec).max(2 * spec.mss.0);
        self.end_before = sender.board.end();
    }

    /// Ends disorder: the former flight becomes the threshold and bounds the burst (steps T.2 and
    /// T.3). Where holes are left, limited transmit continues from here (step T.4).
    fn disorder_ends(&mut self, sender: &mut Sender, spec: &TcpSpec) -> bool {
        self.end_before = sender.board.end();
        sender.window.cwnd = (sender.flight(spec) + spec.mss.0).min(self.flight_before);
        sender.window.ssthresh = self.flight_before;
        true
    }

    fn flight_at_loss(&self, _: u64) -> u64 {
        self.flight_before
    }

    /// Bytes that may leave though the window has room, while duplicate ACKs are not yet taken for
    /// loss (step E.2).
    fn choose(&mut self, sender: &mut Sender, spec: &TcpSpec, room: u64) -> SendChoice {
        let mut room = room;
        if sender.state == CongestionState::Disorder {
            let former = self.flight_before.saturating_sub(sender.pipe(spec));
            let skipped = u64::from(self.skipped(sender.board.end())) * spec.mss.0;
            room = room.min(former).saturating_sub(skipped);
        }
        SendChoice::Within { room, in_doubt: true }
    }
}
