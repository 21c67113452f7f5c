//! The order at one instant: a packet reaches a full queue at the very picosecond at which a transmission ends.
//!
//! Behind links of one rate a busy port leaves in step with the input that began its busy period, so that every packet of
//! that input arrives at such an instant. Where the departure always goes first, that input never loses and newcomers do;
//! where the arrival does, the reverse. Clocks of real devices drift: the coin favours nobody.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::RandomStream;

/// The order of an arrival at a full queue and the end of a transmission at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// The waiting packet begins to be transmitted and makes room: the arriving one waits in its place.
    Departure,
    /// The arriving packet finds the queue still full.
    Arrival,
    /// Either, by the toss of a coin of the port's own.
    #[default]
    Coin,
}

/// The same at one port.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    Departure,
    Arrival,
    Coin(RandomStream),
    /// As ns-3's scheduler: whichever event was scheduled first. The arrival at hand was in this picosecond.
    Scheduled(u64),
}

impl Order {
    /// The order at port `number` of a run.
    pub fn at(ties: Ties, seed: u64, number: u32) -> Order {
        match ties {
            Ties::Departure => Order::Departure,
            Ties::Arrival => Order::Arrival,
            Ties::Coin => Order::Coin(RandomStream::new(seed, u64::from(number), "ties")),
        }
    }

    /// Whether an arrival goes before the end of a transmission that began at `began`; tosses the coin.
    pub fn arrival_goes_first(&mut self, began: u64) -> bool {
        match self {
            Order::Departure => false,
            Order::Arrival => true,
            Order::Coin(stream) => stream.bits() >> 63 == 0,
            Order::Scheduled(arrival) => *arrival < began,
        }
    }
}
