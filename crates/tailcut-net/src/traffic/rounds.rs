//! Patterns that repeat: when each round starts.

use tailcut_engine::Time;

use super::{TrafficError, check_flow_count};

/// Rounds as an experiment gives them.
pub(super) struct Rounds {
    /// How many; as many as start in time when left out.
    pub count: Option<u32>,
    pub period: Time,
    pub jitter: Time,
    /// Flows of one round.
    pub flows: u32,
}

impl Rounds {
    /// Start times of the rounds, all of whose flows start before `arrivals`.
    pub fn starts(&self, arrivals: Time) -> Result<Vec<Time>, TrafficError> {
        let Rounds { count, period, jitter, flows } = *self;
        if count == Some(0) {
            let error = "rounds = 0: at least one round is needed";
            return Err(TrafficError::new("traffic-rounds", "rounds", error));
        }
        if count != Some(1) && period.as_ns() == 0 {
            let error = format!("period = \"{period}\": rounds are at least 1ns apart");
            return Err(TrafficError::new("traffic-period", "period", error));
        }
        let (period_ns, jitter_ns) = (period.as_ns().max(1), jitter.as_ns());
        let room_ns = arrivals.as_ns().saturating_sub(jitter_ns);
        let fitting = room_ns.div_ceil(period_ns);
        let wanted = count.map_or(fitting.max(1), u64::from);
        if wanted > fitting {
            let error = format!(
                "{wanted} rounds {period} apart and {jitter} of jitter do not start before horizon.arrivals = \"{arrivals}\""
            );
            return Err(TrafficError::new("traffic-horizon", "rounds", error)
                .hint("lengthen horizon.arrivals, or shorten period, jitter or rounds"));
        }
        check_flow_count(wanted as f64 * f64::from(flows), "rounds")?;
        Ok((0..wanted).map(|round| Time::from_ns(round * period_ns)).collect())
    }
}
