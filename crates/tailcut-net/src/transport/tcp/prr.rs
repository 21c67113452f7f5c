//! Proportional rate reduction (RFC 6937) with the slow-start reduction bound.

/// The state of one recovery, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prr {
    /// Flight size when recovery began.
    recover_flight: u64,
    /// Bytes delivered since.
    delivered: u64,
    /// Bytes sent since.
    sent: u64,
}

impl Prr {
    /// Recovery begins with this much in flight.
    pub fn begin(recover_flight: u64) -> Prr {
        Prr { recover_flight, delivered: 0, sent: 0 }
    }

    /// Bytes left the sender.
    pub fn on_send(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// An ACK told of `delivered` new bytes while `pipe` bytes are in flight:
    /// how many bytes may be sent now.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        let allowance = if pipe > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.recover_flight.max(1)).saturating_sub(self.sent)
        } else {
            let bound = self.delivered.saturating_sub(self.sent).max(delivered) + mss;
            bound.min(ssthresh - pipe)
        };
        // The fast retransmit that begins recovery is always allowed.
        if self.sent == 0 {
            allowance.max(mss)
        } else {
            allowance
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 section 4: one loss in 20 segments, halving: about every other ACK sends.
    #[test]
    fn while_above_the_target_it_sends_in_proportion() {
        let mss = 1_000;
        let mut prr = Prr::begin(20 * mss);
        let mut pipe = 20 * mss;
        let mut sent = 0;
        for _ in 0..10 {
            pipe -= mss;
            let allowed = prr.on_ack(mss, pipe, 10 * mss, mss);
            if allowed >= mss {
                prr.on_send(mss);
                pipe += mss;
                sent += 1;
            }
        }
        assert_eq!(sent, 5);
    }

    #[test]
    fn below_the_target_it_grows_no_faster_than_slow_start() {
        let mut prr = Prr::begin(20_000);
        prr.on_send(1_000);
        assert_eq!(prr.on_ack(1_000, 2_000, 10_000, 1_000), 2_000);
    }
}
