//! Random early detection (Floyd and Jacobson 1993; RFC 7567 names it): packets are dropped, or
//! marked, with a probability that grows with the average queue. Each kind of queue decides which
//! packets these are.

use tailcut_engine::RandomStream;

use super::environment::QueueEnvironment;
use super::{Admit, Arrival, Verdict, check_limit};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;

/// Parameters of random early detection. Averages count packets.
#[derive(Debug, Clone)]
pub(super) struct Early {
    /// Most that may wait.
    pub limit: Limit,
    /// The average below which nothing is dropped, and the one from which on everything is.
    pub min: f64,
    pub max: f64,
    /// Drop probability as the average reaches `max`.
    pub max_probability: f64,
    /// Weight of the newest sample in the average.
    pub weight: f64,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
    pub mark: bool,
}

/// The defaults of RPS. RPS gives no weight; this one is Floyd and Jacobson's.
impl Default for Early {
    fn default() -> Self {
        Early {
            limit: Limit::AtMost(Amount::Packets(100)),
            min: 10.0,
            max: 20.0,
            max_probability: 0.1,
            weight: 0.002,
            mark: false,
        }
    }
}

impl Early {
    /// Refuses a limit of 0, thresholds out of order, and fractions outside (0, 1].
    pub fn check(&self) -> Result<(), SpecError> {
        check_limit("red-limit", "limit", self.limit)?;
        if !(self.min >= 0.0 && self.max > self.min) {
            let message = format!(
                "min = {} and max = {}: min must be at least 0 and less than max",
                self.min, self.max
            );
            return Err(SpecError::new("red-thresholds", "min", message));
        }
        for (field, value) in [("max_probability", self.max_probability), ("weight", self.weight)] {
            if !(value > 0.0 && value <= 1.0) {
                let message = format!("{field} = {value}: must be greater than 0 and at most 1");
                return Err(SpecError::new("red-fraction", field, message));
            }
        }
        Ok(())
    }

    /// Refuses a `min` that the average cannot exceed, because no packet finds as many waiting:
    /// then nothing is ever dropped early.
    pub fn check_thresholds(&self, around: &QueueEnvironment) -> Result<(), SpecError> {
        let refuse = |written: String, hint: &str| {
            let message = format!(
                "min = {}, {written}: a queue that is full before its average exceeds min never drops early",
                self.min
            );
            Err(SpecError::new("red-thresholds", "min", message).hint(hint))
        };
        let limit = around.limit(self.limit);
        if self.min >= around.port(limit).packets as f64 {
            let hint = "give a lower min or a higher limit, at least two packets apart; for a queue without early drops write kind = \"drop-tail\"";
            return refuse(format!("limit = \"{limit}\""), hint);
        }
        if self.min >= around.shared().packets as f64 {
            let hint = "give a lower min, or more switch.shared_buffer or switch.alpha";
            return refuse(around.shared_in_words(), hint);
        }
        Ok(())
    }
}

/// Random early detection at one port.
#[derive(Debug, Clone)]
pub(crate) struct EarlyState {
    spec: Early,
    average: f64,
    /// Packets admitted since the last early drop, or since the average rose above the lower
    /// threshold.
    since_drop: Option<u32>,
    stream: RandomStream,
}

impl EarlyState {
    pub(super) fn new(spec: &Early, stream: RandomStream) -> EarlyState {
        EarlyState { spec: spec.clone(), average: 0.0, since_drop: None, stream }
    }

    /// Updates the average on an arrival. An idle queue ages as if small packets had kept arriving
    /// (section 4 of the paper).
    fn update_average(&mut self, arrival: &Arrival) {
        if arrival.idle_packets > 0 {
            self.average *= libm::pow(1.0 - self.spec.weight, arrival.idle_packets as f64);
        }
        self.average += self.spec.weight * (f64::from(arrival.waiting) - self.average);
    }

    #[cfg(test)]
    pub fn weigh(&mut self, weight: f64) {
        self.spec.weight = weight;
    }

    #[cfg(test)]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Returns the probability of dropping this packet, which spaces drops evenly.
    fn probability(&mut self) -> f64 {
        let Early { min, max, max_probability, .. } = self.spec;
        if self.average < min {
            self.since_drop = None;
            return 0.0;
        }
        if self.average >= max {
            self.since_drop = None;
            return 1.0;
        }
        let base = max_probability * (self.average - min) / (max - min);
        let count = self.since_drop.map_or(0, |n| n + 1);
        self.since_drop = Some(count);
        let spacing = 1.0 - f64::from(count) * base;
        if spacing <= base { 1.0 } else { base / spacing }
    }
}

impl Admit for EarlyState {
    fn active_from_backlog(&self) -> Option<u32> {
        None
    }

    fn counts_bytes(&self) -> bool {
        false
    }

    fn counts_marked(&self, _: bool) -> bool {
        false
    }

    fn admit(&mut self, arrival: &Arrival) -> Verdict {
        self.update_average(arrival);
        let probability = self.probability();
        let early = probability > 0.0 && self.stream.unit() < probability;
        if early {
            self.since_drop = None;
        }
        match early {
            true if self.spec.mark && arrival.ecn_capable && self.average < self.spec.max => {
                Verdict::Mark
            }
            true => Verdict::Drop,
            false => Verdict::Accept,
        }
    }

    /// Counts the arrival in the average, which covers all arrivals (Floyd and Jacobson, section 4)
    /// and rises most where the queue overflows.
    fn on_overflow(&mut self, arrival: &Arrival) {
        self.admit(arrival);
    }

    /// Does nothing: the port counts idle time.
    fn link_changed(&mut self, _: u64, _: Option<u64>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchSpec;

    fn arrival(waiting: u32) -> Arrival {
        Arrival { waiting, ..Arrival::default() }
    }

    /// Returns a port whose average has settled on a constant queue.
    fn settled(queue: u32) -> EarlyState {
        let spec = Early { weight: 1.0, ..Early::default() };
        let mut red = EarlyState::new(&spec, RandomStream::new(1, 0, "red"));
        red.admit(&arrival(queue));
        red
    }

    fn drop_rate(queue: u32) -> f64 {
        let mut red = settled(queue);
        let drops = (0..100_000).filter(|_| red.admit(&arrival(queue)) == Verdict::Drop).count();
        drops as f64 / 100_000.0
    }

    #[test]
    fn nothing_is_dropped_below_the_lower_threshold() {
        assert_eq!(drop_rate(9), 0.0);
    }

    #[test]
    fn everything_is_dropped_above_the_upper_threshold() {
        assert_eq!(drop_rate(20), 1.0);
    }

    /// Uniform spacing over 1..1/p packets has a mean gap of (1/p + 1) / 2 (Floyd and Jacobson,
    /// section 7).
    #[test]
    fn drops_are_evenly_spaced_between_the_thresholds() {
        let base: f64 = 0.1 * 5.0 / 10.0;
        let expected = 2.0 / (1.0 / base + 1.0);
        let rate = drop_rate(15);
        assert!((rate - expected).abs() < 0.05 * expected, "{rate} against {expected}");
    }

    fn refusal(min: f64, limit: &str, shared_buffer: &str) -> Option<&'static str> {
        let limit = limit.parse().expect("it is a limit");
        let shared_buffer = shared_buffer.parse().expect("it is a limit");
        let switch = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
        let around = QueueEnvironment {
            link_limit: None,
            threshold: None,
            full_packet: 1_538,
            nic_queue: Limit::Unlimited,
            switch,
        };
        let spec = Early { min, max: 2.0 * min, limit, ..Early::default() };
        spec.check_thresholds(&around).err().map(|error| error.code)
    }

    #[test]
    fn refuses_a_lower_threshold_that_the_average_cannot_exceed() {
        let refused = Some("red-thresholds");
        assert_eq!(refusal(10.0, "5packets", "unlimited"), refused);
        assert_eq!(refusal(10.0, "11packets", "unlimited"), refused);
        assert_eq!(refusal(10.0, "12packets", "unlimited"), None);
        assert_eq!(refusal(10.0, "18KB", "unlimited"), refused);
        assert_eq!(refusal(10.0, "19KB", "unlimited"), None);
        assert_eq!(refusal(10.0, "unlimited", "30KB"), refused);
        assert_eq!(refusal(10.0, "unlimited", "40KB"), None);
    }

    #[test]
    fn packets_that_find_the_queue_full_raise_the_average() {
        let mut red = EarlyState::new(&Early::default(), RandomStream::new(1, 0, "red"));
        for _ in 0..500 {
            red.on_overflow(&arrival(100));
        }
        assert!((red.average - 100.0 * (1.0 - 0.998f64.powi(500))).abs() < 1e-9);
        assert_eq!(red.admit(&arrival(50)), Verdict::Drop);
    }

    #[test]
    fn idle_time_decays_the_average() {
        let spec = Early::default();
        let mut red = EarlyState::new(&spec, RandomStream::new(1, 0, "red"));
        red.average = 15.0;
        red.update_average(&Arrival { idle_packets: 1000, ..arrival(0) });
        assert!((red.average - 15.0 * 0.998f64.powi(1001)).abs() < 1e-9);
    }
}
