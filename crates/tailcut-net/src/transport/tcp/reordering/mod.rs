//! Telling reordering from loss, on top of selective acknowledgements.
//!
//! A method here moves the number of duplicate ACKs that start recovery. Two
//! kinds of news feed it: holes that fill without having been resent, with the
//! number of segments that had arrived beyond them (their extent); and
//! duplicates that the receiver reports (D-SACK, RFC 2883), which show that the
//! last filling of a resent hole was reordering as well. A new method is one
//! file, one variant of [`ReorderingSpec`] and one of [`Method`].

pub mod adaptive;
pub mod ncr;
pub mod rr_tcp;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::adaptive::{Adaptive, AdaptiveSpec};
use self::ncr::{Ncr, NcrSpec};
use self::rr_tcp::{RrTcp, RrTcpSpec};
use super::scoreboard::Scoreboard;
use super::sender::rack::{Rack, RackSpec};
use crate::component::SpecError;
use crate::packet::SackBlocks;

/// How a sender tells reordering from loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReorderingSpec {
    /// By a fixed number of duplicate ACKs (RFC 5681).
    None {},
    /// A threshold that grows to the reordering seen, and undo of spurious recoveries: as in Linux without RACK.
    Adaptive(AdaptiveSpec),
    /// A threshold at a percentile of the reordering seen (RR-TCP).
    RrTcp(RrTcpSpec),
    /// A threshold of about a window of data (RFC 4653).
    Ncr(NcrSpec),
    /// Time, with probes of the tail and F-RTO (RFC 8985, 5682): what Linux does.
    Rack(RackSpec),
}

impl Default for ReorderingSpec {
    fn default() -> Self {
        ReorderingSpec::None {}
    }
}

impl ReorderingSpec {
    /// True for a fixed threshold.
    #[inline]
    pub fn is_none(&self) -> bool {
        matches!(self, ReorderingSpec::None {})
    }

    /// Whether a segment may leave that the window does not allow, to probe the tail of a flight.
    pub fn probes(&self) -> bool {
        matches!(self, ReorderingSpec::Rack(rack) if rack.tail_loss_probe)
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// When a threshold with them means nothing.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            ReorderingSpec::None {} | ReorderingSpec::Ncr(_) => Ok(()),
            ReorderingSpec::Adaptive(spec) => spec.check(),
            ReorderingSpec::RrTcp(spec) => spec.check(),
            ReorderingSpec::Rack(spec) => spec.check(),
        }
    }

    /// The state of a new connection; none for a fixed threshold.
    pub(super) fn start(&self) -> Option<Box<Reordering>> {
        let method = match self {
            ReorderingSpec::None {} => return None,
            ReorderingSpec::Adaptive(spec) => Method::Adaptive(Adaptive::new(spec)),
            ReorderingSpec::RrTcp(spec) => Method::RrTcp(RrTcp::new(spec)),
            ReorderingSpec::Ncr(spec) => Method::Ncr(Ncr::new(spec)),
            ReorderingSpec::Rack(spec) => Method::Rack(Rack::new(spec)),
        };
        Some(Box::new(Reordering { method, filled: VecDeque::new() }))
    }
}

pub(super) fn check_max(max: u32) -> Result<(), SpecError> {
    if max == 0 {
        let message = "max = 0: every acknowledgement would be a loss; at least 1 is needed";
        return Err(
            SpecError::new("reordering-max", "reordering.max", message).hint("Linux allows 300")
        );
    }
    Ok(())
}

/// The method in use.
#[derive(Debug, Clone)]
pub(super) enum Method {
    Adaptive(Adaptive),
    RrTcp(RrTcp),
    Ncr(Ncr),
    Rack(Rack),
}

/// How many fillings of resent holes are remembered.
const REMEMBERED: usize = 64;

/// What a sender knows of reordering.
#[derive(Debug, Clone)]
pub(super) struct Reordering {
    pub method: Method,
    /// Resent segments that arrived lately, with their extent.
    filled: VecDeque<(u32, u32)>,
}

impl Reordering {
    /// How late segment `seq` is when it fills a hole now: the segments beyond it that have arrived. Linux counts
    /// the holes among them in.
    pub fn extent(&self, board: &Scoreboard, seq: u32) -> u32 {
        match self.method {
            Method::Adaptive(_) => board.sacked_end() - seq - 1,
            Method::RrTcp(_) => board.sacked_beyond(seq),
            Method::Ncr(_) | Method::Rack(_) => 0,
        }
    }

    /// A hole of this extent filled: the new threshold, if it moves.
    pub fn filled(&mut self, seq: u32, resent: bool, extent: u32, threshold: u32) -> u32 {
        if resent {
            if self.filled.len() == REMEMBERED {
                self.filled.pop_front();
            }
            self.filled.push_back((seq, extent));
            return threshold;
        }
        self.learn(extent, threshold)
    }

    /// The receiver had segment `seq` already: what filled the hole before was late, not resent.
    pub fn was_duplicate(&mut self, seq: u32, threshold: u32) -> u32 {
        if let Method::Adaptive(adaptive) = &mut self.method {
            adaptive.was_duplicate(seq);
        }
        match self.filled.iter().position(|&(known, _)| known == seq) {
            Some(at) => {
                let (_, extent) = self.filled.remove(at).expect("it was found");
                self.learn(extent, threshold)
            }
            None => threshold,
        }
    }

    /// What a recovery from disorder halves, where `flight` is what is outstanding without limited transmit.
    pub fn flight_at_loss(&self, flight: u64) -> u64 {
        match &self.method {
            Method::Ncr(ncr) => ncr.flight_before,
            _ => flight,
        }
    }

    fn learn(&mut self, extent: u32, threshold: u32) -> u32 {
        match &mut self.method {
            Method::Adaptive(adaptive) => adaptive.learn(extent + 1, threshold),
            Method::RrTcp(histogram) => histogram.learn(extent, threshold),
            Method::Ncr(_) | Method::Rack(_) => threshold,
        }
    }
}

/// Parts a duplicate report (RFC 2883 section 4) from the blocks proper.
pub(super) fn split(ack: u32, blocks: &SackBlocks) -> (Option<(u32, u32)>, SackBlocks) {
    let reported = match blocks.as_slice() {
        [first, ..] if first.1 <= ack => true,
        [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
        _ => false,
    };
    if !reported {
        return (None, *blocks);
    }
    let mut rest = SackBlocks::default();
    blocks.as_slice()[1..].iter().for_each(|&(start, end)| rest.push(start, end));
    (Some(blocks.as_slice()[0]), rest)
}
