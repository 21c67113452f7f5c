//! Recycled entropy packet spraying (Bonato et al., EuroSys 2026, arXiv 2407.21625 v6, sections 3 and
//! 4.7, appendix A): a ring keeps the last values whose packets came back unmarked; each is used
//! again once, the oldest first. Without one, a packet takes a random value.
//!
//! A failure freezes the connection: it uses the values of the ring again and again, which are known
//! to work, and draws none. The defaults are the paper's. `frozen = "in-turn"`, `thaw = { kind =
//! "clear" }` and 64 `values` are those of Ultra Ethernet's public simulator.

mod failure;
mod ring;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{RandomStream, Time};

pub use self::failure::Failure;
use self::failure::FailureDetector;
use self::ring::Ring;
use super::{
    ChooseValue, EntropyPolicy, Feedback, MOST_VALUES, Surroundings, check_range, check_values,
};
use crate::component::SpecError;

/// Parameters of REPS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reps {
    /// Number of values, a power of two.
    #[schemars(range(min = 1, max = 65_536))]
    pub values: u32,
    /// Values that the ring keeps.
    #[schemars(range(min = 1, max = 65_536))]
    pub ring: u32,
    /// Packets that use a recycled value. More than 1 makes up for acknowledgements that report one
    /// value for several packets.
    #[schemars(range(min = 1, max = 65_536))]
    pub uses: u32,
    /// Least time for which a failure freezes a connection.
    pub freeze: Time,
    /// Values that a frozen connection uses.
    pub frozen: FrozenOrder,
    /// End of a freeze.
    pub thaw: Thaw,
    /// Timeouts that mean a failure. By default all where queues trim packets, else those at low
    /// round-trip times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Values that a frozen connection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrozenOrder {
    /// Those not used again yet, the oldest first; then all in turn.
    FreshFirst,
    /// All in turn, whether used again or not.
    InTurn,
}

/// End of a freeze, once it has lasted `freeze`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Thaw {
    /// At the first unmarked acknowledgement; the ring is kept.
    ///
    /// Then every n-th packet takes a random value for a while.
    Explore {
        /// Packets of that while; by default a bandwidth-delay product.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packets: Option<u32>,
        /// Which of them take a random value: every n-th.
        #[serde(default = "eighth")]
        every: u32,
    },
    /// At the first feedback of any kind, which empties the ring.
    ///
    /// Then some packets take random values.
    Clear {
        /// Packets that take random values.
        #[serde(default = "sixteen")]
        packets: u32,
    },
}

fn eighth() -> u32 {
    8
}

fn sixteen() -> u32 {
    16
}

impl Default for Reps {
    fn default() -> Self {
        Reps {
            values: MOST_VALUES,
            ring: 8,
            uses: 1,
            freeze: Time::from_ms(10),
            frozen: FrozenOrder::FreshFirst,
            thaw: Thaw::Explore { packets: None, every: eighth() },
            failure: None,
        }
    }
}

impl EntropyPolicy for Reps {
    type State = Recycling;

    fn check(&self) -> Result<(), SpecError> {
        check_values(self.values)?;
        check_range("entropy-reps", "ring", self.ring, 1..=MOST_VALUES)?;
        check_range("entropy-reps", "uses", self.uses, 1..=MOST_VALUES)?;
        if let Thaw::Explore { every, .. } = self.thaw {
            check_range("entropy-reps", "thaw.every", every, 1..=MOST_VALUES)?;
        }
        self.failure.as_ref().map_or(Ok(()), Failure::check)
    }

    fn values(&self) -> u32 {
        self.values
    }

    fn fit(&mut self, around: &Surroundings) {
        if let Thaw::Explore { packets, .. } = &mut self.thaw {
            packets.get_or_insert(around.bdp_packets);
        }
        let default = match around.trims {
            true => Failure::Timeout {},
            false => Failure::quiet_timeout(),
        };
        self.failure.get_or_insert(default).fit(around);
    }

    fn state(&self, stream: RandomStream) -> Recycling {
        let (every, explored) = match self.thaw {
            Thaw::Explore { packets, every } => (every, packets.unwrap_or(0)),
            Thaw::Clear { packets } => (1, packets),
        };
        Recycling {
            ring: Ring::new(self.ring, self.uses),
            frozen_until: None,
            explores: 0,
            values: u64::from(self.values),
            freeze: self.freeze,
            in_turn: self.frozen == FrozenOrder::InTurn,
            clears: matches!(self.thaw, Thaw::Clear { .. }),
            every,
            explored,
            detector: FailureDetector::new(self.failure.as_ref()),
            stream,
        }
    }
}

/// The recycled values of one connection.
#[derive(Debug, Clone)]
pub struct Recycling {
    ring: Ring,
    /// The end of the freeze at the earliest, while frozen.
    frozen_until: Option<Time>,
    /// Packets left of those among which every n-th takes a random value.
    explores: u32,
    values: u64,
    freeze: Time,
    in_turn: bool,
    clears: bool,
    every: u32,
    explored: u32,
    detector: FailureDetector,
    stream: RandomStream,
}

impl Recycling {
    fn draw(&mut self) -> u16 {
        self.stream.below(self.values) as u16
    }

    fn thaw(&mut self) {
        self.frozen_until = None;
        self.explores = self.explored;
        if self.clears {
            self.ring.clear();
        }
    }
}

impl ChooseValue for Recycling {
    fn next(&mut self, _: Time) -> u16 {
        if self.explores > 0 {
            self.explores -= 1;
            if self.explores.is_multiple_of(self.every) {
                return self.draw();
            }
        }
        let frozen = self.frozen_until.is_some();
        let recycled = match frozen && self.in_turn {
            true => self.ring.take_in_turn(),
            false => self.ring.take_fresh(),
        };
        let again = || if frozen { self.ring.take_in_turn() } else { None };
        recycled.or_else(again).unwrap_or_else(|| self.draw())
    }

    fn feedback(&mut self, now: Time, value: Option<u16>, what: Feedback) {
        if self.frozen_until.is_some_and(|until| now > until)
            && (self.clears || what == Feedback::Good)
        {
            self.thaw();
        }
        match (what, value) {
            (Feedback::Good, Some(value)) => self.ring.write(value),
            (Feedback::Lost, _)
                if self.frozen_until.is_none()
                    && self.explores == 0
                    && self.detector.is_failure(now) =>
            {
                self.frozen_until = Some(now + self.freeze);
                self.ring.begin_turn();
            }
            _ => {}
        }
    }

    fn note_rtt(&mut self, now: Time, rtt: Time) {
        self.detector.note_rtt(now, rtt);
    }
}

#[cfg(test)]
mod tests;
