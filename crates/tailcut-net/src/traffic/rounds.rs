//! Start times of patterns that repeat in rounds.

use tailcut_engine::Time;

use super::{TrafficError, check_flow_count};

/// The rounds of a pattern.
pub(super) struct Rounds {
    /// Number of rounds; by default as many as start in time.
    pub count: Option<u32>,
    pub period: Time,
    pub jitter: Time,
    /// Flows of one round.
    pub flows: u32,
}

impl Rounds {
    /// Returns the start times of the rounds. Refuses rounds whose flows do not all start before
    /// `arrivals`.
    pub fn starts(&self, arrivals: Time) -> Result<Vec<Time>, TrafficError> {
        let Rounds { count, period, jitter, flows } = *self;
        if count == Some(0) {
            let error = "rounds = 0: must be at least 1";
            return Err(TrafficError::new("traffic-rounds", "rounds", error));
        }
        if count != Some(1) && period.as_ns() == 0 {
            let error = format!("period = \"{period}\": must be at least 1ns between rounds");
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
