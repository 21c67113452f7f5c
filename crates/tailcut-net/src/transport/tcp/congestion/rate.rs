//! Delivery rates (draft-cheng-iccrg-delivery-rate-estimation-02): the bytes delivered between the
//! sending of a segment and its acknowledgement.

use std::collections::VecDeque;

use tailcut_engine::Time;

/// The rate at which the network delivered lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes that arrived.
    pub delivered: u64,
    /// Bytes that had been delivered when the first of them was sent: what rounds are counted by.
    pub prior: u64,
    /// The interval: the longer of the sending and the acknowledging time.
    pub interval: Time,
    /// The sender had no more to send at some time of it: the network may be faster.
    pub app_limited: bool,
}

impl RateSample {
    /// Bytes per second.
    pub fn rate(&self) -> f64 {
        self.delivered as f64 * 1e12 / self.interval.0 as f64
    }
}

/// The sampler's state when a segment left.
#[derive(Debug, Clone, Copy)]
struct SendRecord {
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    app_limited: bool,
}

/// The rate sampler of one connection.
#[derive(Debug, Clone, Default)]
pub struct RateSampler {
    /// Records of the outstanding segments; the first is segment `base`.
    departures: VecDeque<SendRecord>,
    base: u32,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// The delivered count up to which segments were sent application-limited.
    app_limited: Option<u64>,
    /// The departure of the latest segment that the ACK in hand tells of.
    latest: Option<SendRecord>,
}

impl RateSampler {
    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Segment `seq` leaves; `idle` says that nothing was in the network.
    pub fn on_send(&mut self, seq: u32, now: Time, idle: bool) {
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let departure = SendRecord {
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            app_limited: self.app_limited.is_some(),
        };
        match self.departures.get_mut((seq - self.base) as usize) {
            Some(known) => *known = departure,
            None => self.departures.push_back(departure),
        }
    }

    /// Segment `seq` with `bytes` is known to have arrived.
    pub fn on_delivered(&mut self, seq: u32, bytes: u64, now: Time) {
        let known = seq.checked_sub(self.base).and_then(|at| self.departures.get(at as usize));
        let Some(departure) = known.copied() else { return };
        self.delivered += bytes;
        self.delivered_at = now;
        let later = |latest: SendRecord| departure.sent >= latest.sent;
        if self.latest.is_none_or(later) {
            self.latest = Some(departure);
            self.first_sent = departure.sent;
        }
    }

    /// Ends the reading of an ACK: everything below `una` has arrived. Returns the rate if its
    /// interval is at least `min_rtt`, so that no burst inflates it.
    pub fn sample(&mut self, una: u32, min_rtt: Time) -> Option<RateSample> {
        while self.base < una && self.departures.pop_front().is_some() {
            self.base += 1;
        }
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let departure = self.latest.take()?;
        let sending = departure.sent - departure.first_sent;
        let hearing = self.delivered_at - departure.delivered_at;
        let interval = sending.max(hearing);
        (interval >= min_rtt && interval > Time::ZERO).then(|| RateSample {
            delivered: self.delivered - departure.delivered,
            prior: departure.delivered,
            interval,
            app_limited: departure.app_limited,
        })
    }

    /// Returns whether the rate of segments sent now will underestimate the network.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// The sender has room for more than it has to send while `in_network` bytes are under way.
    pub fn on_lack_of_data(&mut self, in_network: u64) {
        self.app_limited = Some((self.delivered + in_network).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1_000;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    /// Segments `from..to` leave at once.
    fn sent(sampler: &mut RateSampler, from: u32, to: u32, now: Time, idle: bool) {
        for seq in from..to {
            sampler.on_send(seq, now, idle && seq == from);
        }
    }

    #[test]
    fn a_window_per_round_trip_is_the_rate() {
        let mut sampler = RateSampler::default();
        sent(&mut sampler, 0, 10, Time::ZERO, true);
        (0..10).for_each(|seq| sampler.on_delivered(seq, BYTES, us(100)));
        let sample = sampler.sample(10, us(100)).expect("it says a rate");
        assert_eq!((sample.delivered, sample.interval), (10 * BYTES, us(100)));
        assert!((sample.rate() - 1e8).abs() < 1.0);
    }

    /// Sent at 100 B/us, the ACKs arrive all at once.
    #[test]
    fn compressed_acks_do_not_feign_a_rate_that_was_never_sent() {
        let mut sampler = RateSampler::default();
        for seq in 0..10 {
            sampler.on_send(seq, us(u64::from(seq) * 10), seq == 0);
        }
        sampler.on_delivered(0, BYTES, us(100));
        sampler.sample(1, us(100));
        for seq in 10..20 {
            sampler.on_send(seq, us(u64::from(seq) * 10), false);
        }
        for seq in 1..20 {
            sampler.on_delivered(seq, BYTES, us(300));
        }
        let sample = sampler.sample(20, us(100)).expect("it says a rate");
        assert!(sample.rate() <= 1.0e8, "{}", sample.rate());
    }

    #[test]
    fn less_than_a_round_trip_says_nothing() {
        let mut sampler = RateSampler::default();
        sampler.on_send(0, Time::ZERO, true);
        sampler.on_delivered(0, BYTES, us(50));
        assert_eq!(sampler.sample(1, us(100)), None);
    }

    #[test]
    fn a_lack_of_data_marks_what_was_in_the_network_then_and_no_more() {
        let mut sampler = RateSampler::default();
        sampler.on_send(0, Time::ZERO, true);
        sampler.on_lack_of_data(BYTES);
        sampler.on_send(1, us(10), false);
        sampler.on_delivered(0, BYTES, us(100));
        assert!(!sampler.sample(1, us(1)).unwrap().app_limited);
        sampler.on_delivered(1, BYTES, us(110));
        assert!(sampler.sample(2, us(1)).unwrap().app_limited);
        sampler.on_send(2, us(120), true);
        sampler.on_delivered(2, BYTES, us(220));
        assert!(!sampler.sample(3, us(1)).unwrap().app_limited);
    }

    #[test]
    fn a_segment_sent_again_counts_from_its_second_sending() {
        let mut sampler = RateSampler::default();
        sent(&mut sampler, 0, 2, Time::ZERO, true);
        sampler.on_delivered(1, BYTES, us(100));
        sampler.sample(0, us(1));
        sampler.on_send(0, us(100), false);
        sampler.on_delivered(0, BYTES, us(200));
        let sample = sampler.sample(2, us(1)).unwrap();
        assert_eq!((sample.delivered, sample.interval), (BYTES, us(100)));
    }
}
