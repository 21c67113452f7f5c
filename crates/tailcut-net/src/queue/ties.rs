//! The order at one instant: a packet reaches a full queue at the very picosecond at which a
//! transmission ends.
//!
//! Behind links of one rate, a busy port sends in step with the input that began its busy period,
//! so that every packet of that input arrives at such an instant. If departures always go first,
//! that input never loses and newcomers do; if arrivals go first, the reverse. Clocks of real
//! devices drift: the coin favours neither.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::RandomStream;

/// The order of an arrival at a full queue and the end of a transmission at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// The waiting packet begins transmission; the arriving packet takes its place.
    Departure,
    /// The arriving packet finds the queue still full.
    Arrival,
    /// Either, by a coin that each port tosses for itself.
    #[default]
    Coin,
}

/// The order at one port.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    Departure,
    Arrival,
    Coin(RandomStream),
    /// As in ns-3's scheduler: whichever event was scheduled first. The current arrival was
    /// scheduled in this picosecond.
    Scheduled(u64),
}

impl Order {
    /// Creates the order of port `number` in a run with this `seed`.
    pub fn at(ties: Ties, seed: u64, number: u32) -> Order {
        match ties {
            Ties::Departure => Order::Departure,
            Ties::Arrival => Order::Arrival,
            Ties::Coin => Order::Coin(RandomStream::new(seed, u64::from(number), "ties")),
        }
    }

    /// Returns whether an arrival goes before the end of a transmission that began at `began`, in
    /// picoseconds. Tosses the coin with [`Ties::Coin`].
    pub fn arrival_goes_first(&mut self, began: u64) -> bool {
        match self {
            Order::Departure => false,
            Order::Arrival => true,
            Order::Coin(stream) => stream.bits() >> 63 == 0,
            Order::Scheduled(arrival) => *arrival < began,
        }
    }
}
