//! Entropy: the value that a host gives each packet of a connection for switches to hash.
//!
//! Switches keep ECMP; the source port, or the flow label, carries the value and so chooses the
//! path. A policy yields the value of the next packet and hears what became of packets that carried
//! its values. A new policy is one file here and one line in the list below.

pub mod bitmap;
pub mod mixed;
pub mod oblivious;
pub mod plb;
pub mod random;
pub mod reps;
mod walk;

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

use crate::component::SpecError;
use crate::registry::{Inline, registry};
use crate::topology::Graph;

/// What became of a packet that carried a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// Acknowledged, and not marked.
    Good,
    /// Acknowledged, and marked as having met congestion.
    Marked,
    /// Trimmed to its header by a full queue (NACK).
    Trimmed,
    /// Not acknowledged before the retransmission timeout.
    Lost,
}

/// The network and transport around a connection, from which parameters that are left out follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// Full packets of a bandwidth-delay product.
    pub bdp_packets: u32,
    /// The round-trip time without queues.
    pub base_rtt: Time,
    /// The least retransmission timeout.
    pub rto: Time,
    /// Whether full queues trim packets, so that a timeout is a failure and not congestion.
    pub trims: bool,
}

impl Surroundings {
    /// Returns the surroundings of connections in a network. `full` and `answer` are the bytes of a
    /// full packet and of its acknowledgement on the wire.
    pub fn of(graph: &Graph, full: u16, answer: u16, rto: Time, trims: bool) -> Surroundings {
        let base_rtt = graph.farthest(|link| {
            let bytes = u64::from(full) + u64::from(answer);
            link.rate.transmission_time(bytes) + link.propagation + link.propagation
        });
        let slowest = graph.links.iter().map(|link| link.rate).min().unwrap_or_default();
        let packet = slowest.transmission_time(u64::from(full)).0.max(1);
        let bdp_packets = u32::try_from(base_rtt.0.div_ceil(packet)).unwrap_or(u32::MAX);
        Surroundings { bdp_packets, base_rtt, rto, trims }
    }
}

/// The parameters of a policy.
pub trait EntropyPolicy {
    /// State of one connection.
    type State: ChooseValue
    where
        Self: Sized;

    /// Checks the parameters.
    ///
    /// # Errors
    /// When no connection could work with them.
    fn check(&self) -> Result<(), SpecError>;

    /// Returns the number of values.
    fn values(&self) -> u32;

    /// Returns whether the values of consecutive packets differ, so that packets may overtake each
    /// other.
    fn scatters(&self) -> bool {
        true
    }

    /// Fills in the parameters that are left out and follow from the network.
    fn fit(&mut self, _: &Surroundings) {}

    /// Creates the state of a connection.
    fn state(&self, stream: RandomStream) -> Self::State
    where
        Self: Sized;
}

/// A policy at work on one connection.
pub trait ChooseValue: Debug {
    /// Returns the value of the next packet.
    fn next(&mut self, now: Time) -> u16;

    /// Takes note of what became of a packet. `value` is `None` where the sender does not know
    /// which value the packet carried.
    fn feedback(&mut self, now: Time, value: Option<u16>, what: Feedback);

    /// Ends a round: all that was in flight at its beginning is acknowledged. In it `delivered`
    /// bytes were acknowledged, `marked` of them with an echo of congestion.
    fn end_round(&mut self, _now: Time, _delivered: u64, _marked: u64) {}

    /// Announces the first packet after a time with nothing in flight.
    fn restart_after_idle(&mut self, _now: Time) {}

    /// Takes note of a SYN that was not answered in time.
    fn on_handshake_timeout(&mut self, _now: Time) {}

    /// Takes note of a round-trip time.
    fn note_rtt(&mut self, _now: Time, _rtt: Time) {}
}

registry! {
    /// The value that each packet carries for switches to hash.
    pub enum EntropySpec: EntropyPolicy {
        /// A random value for every packet.
        Random(random::Random),
        /// Every value once in each round, in an order drawn for the round.
        Oblivious(oblivious::Oblivious),
        /// Every value once in each round, but for those with penalties (bitmap).
        ///
        /// Marks, trimmed packets and losses add to a value's penalty.
        Bitmap(bitmap::Bitmap),
        /// Recycles values whose packets came back unmarked; else random ones (REPS).
        Reps(reps::Reps),
        /// Recycles values whose packets came back unmarked; else bitmap's.
        Mixed(mixed::Mixed),
        /// One value until several rounds in a row were congested (PLB).
        Plb(plb::Plb),
    }

    /// The policy of one connection.
    pub(crate) enum EntropyState: ChooseValue = Inline<EntropyPolicy::State>, state(stream: RandomStream) {
        /// Returns the value of the next packet.
        static pub fn next(&mut self, now: Time) -> u16;
        /// Takes note of what became of a packet.
        static pub fn feedback(&mut self, now: Time, value: Option<u16>, what: Feedback);
    }
}

impl EntropySpec {
    /// Creates the state of a connection; `stream` is seeded by the run's seed and the connection.
    pub(crate) fn state(&self, stream: RandomStream) -> EntropyState {
        EntropyState::of(self, stream).expect("every policy has a state")
    }

    /// Returns the parameters with those filled in that follow from the network.
    #[must_use]
    pub fn fitted(mut self, around: &Surroundings) -> EntropySpec {
        match &mut self {
            EntropySpec::Reps(reps) => reps.fit(around),
            EntropySpec::Plb(plb) => plb.fit(around),
            _ => {}
        }
        self
    }
}

/// The most values: those of 16 bits.
pub const MOST_VALUES: u32 = 1 << 16;

/// Refuses numbers of values that are no power of two, or more than 16 bits can hold.
fn check_values(values: u32) -> Result<(), SpecError> {
    if values.is_power_of_two() && values <= MOST_VALUES {
        return Ok(());
    }
    let message = format!("values = {values}: must be a power of two from 1 to {MOST_VALUES}");
    Err(SpecError::new("entropy-values", "values", message).hint("write values = 64"))
}

/// Refuses a parameter outside `range`.
fn check_range(
    code: &'static str,
    field: &'static str,
    value: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Result<(), SpecError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    let message = format!("{field} = {value}: must be from {least} to {most}");
    Err(SpecError::new(code, field, message))
}

#[cfg(test)]
mod tests;
