//! Random early detection of all packets ([`red_core`](super::red_core)).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::RandomStream;

use super::environment::QueueEnvironment;
use super::red_core::{Early, EarlyState};
use super::{Never, PortContext, PortQueue, QueueKind, Ties};
use crate::amount::Limit;
use crate::component::SpecError;

/// Parameters of RED. The average counts packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Red {
    /// Most that may wait behind the packet in transmission, which is not counted.
    pub limit: Limit,
    /// Order of an arrival at a full queue and the end of a transmission at the same instant.
    /// Applies to the hosts' interfaces too.
    pub ties: Ties,
    /// Average queue, in packets, below which nothing is dropped (RPS: 10).
    pub min: f64,
    /// Average queue, in packets, from which on everything is dropped (RPS: 20).
    pub max: f64,
    /// Drop probability as the average reaches `max` (RPS: 0.1).
    pub max_probability: f64,
    /// Weight of the newest sample in the average. The spraying paper does not give it; 0.002 is
    /// Floyd and Jacobson's.
    pub weight: f64,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
    pub mark: bool,
}

impl Default for Red {
    fn default() -> Self {
        let Early { limit, min, max, max_probability, weight, mark } = Early::default();
        Red { limit, ties: Ties::default(), min, max, max_probability, weight, mark }
    }
}

impl Red {
    fn early(&self) -> Early {
        let &Red { limit, min, max, max_probability, weight, mark, .. } = self;
        Early { limit, min, max, max_probability, weight, mark }
    }
}

impl QueueKind for Red {
    fn check(&self) -> Result<(), SpecError> {
        self.early().check()
    }

    fn check_thresholds(&self, around: &QueueEnvironment) -> Result<(), SpecError> {
        self.early().check_thresholds(around)
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn ties(&self) -> Ties {
        self.ties
    }

    fn marks_packets(&self) -> bool {
        self.mark
    }

    fn drops_early(&self) -> bool {
        true
    }
    fn admits_by_backlog(&self) -> bool {
        false
    }
}

impl PortQueue for Red {
    type Admission = Box<EarlyState>;
    type Schedule = Never;

    fn admission(&self, at: &PortContext) -> Option<Box<EarlyState>> {
        let stream = RandomStream::new(at.seed, u64::from(at.number), "red");
        (!at.host).then(|| Box::new(EarlyState::new(&self.early(), stream)))
    }
    fn schedule(&self, _: &PortContext) -> Option<Never> {
        None
    }
}
