//! Proportional rate reduction (RFC 9937, which replaced RFC 6937).

/// The state of one recovery, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prr {
    /// Bytes in flight when recovery began that were not known to have arrived (`RecoverFS`).
    recover_flight: u64,
    /// Bytes delivered since (`prr_delivered`).
    delivered: u64,
    /// Bytes sent since (`prr_out`), but for what was conceded.
    sent: u64,
    /// Bytes that may be sent without counting as sent.
    conceded: u64,
}

impl Prr {
    /// Recovery begins with this much to recover, at least one segment.
    pub fn begin(recover_flight: u64) -> Prr {
        Prr { recover_flight, delivered: 0, sent: 0, conceded: 0 }
    }

    /// Bytes left the sender.
    pub fn on_send(&mut self, bytes: u64) {
        let conceded = self.conceded.min(bytes);
        self.conceded -= conceded;
        self.sent += bytes - conceded;
    }

    /// An ACK told of so many bytes delivered and speaks against the reduction, which pauses: as
    /// many may leave.
    pub fn concede(&mut self, delivered: u64) {
        self.conceded += delivered;
    }

    /// An ACK told of `delivered` new bytes, more than none, while `pipe` bytes are in flight: how
    /// many may be sent now. A `safe` ACK advances and tells of no further loss: only then may the
    /// window regrow by slow start.
    pub fn on_ack(
        &mut self,
        delivered: u64,
        pipe: u64,
        ssthresh: u64,
        mss: u64,
        safe: bool,
    ) -> u64 {
        self.delivered += delivered;
        let allowance = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let share = share.div_ceil(u128::from(self.recover_flight));
            // Less than what was delivered, unless more was delivered than had to be recovered.
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(self.sent)
        } else {
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            let bound = if safe { conserved + mss } else { conserved };
            bound.min(ssthresh - pipe)
        };
        // The fast retransmit that begins recovery is always allowed.
        if self.sent == 0 { allowance.max(mss) } else { allowance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// Section 4: one loss in 20 segments, halving: about every other ACK sends.
    #[test]
    fn above_the_target_it_sends_in_proportion() {
        let mut prr = Prr::begin(20 * MSS);
        let mut pipe = 20 * MSS;
        let mut sent = 0;
        for _ in 0..10 {
            pipe -= MSS;
            let allowed = prr.on_ack(MSS, pipe, 10 * MSS, MSS, false);
            if allowed >= MSS {
                prr.on_send(MSS);
                pipe += MSS;
                sent += 1;
            }
        }
        assert_eq!(sent, 5);
    }

    #[test]
    fn the_largest_windows_are_reduced_in_proportion_as_well() {
        let (window, mss) = (67_000_000_000, 64_000);
        let mut prr = Prr::begin(window);
        prr.on_send(mss);
        assert_eq!(
            prr.on_ack(window / 2, window / 2 + 2 * mss, window / 2, mss, false),
            window / 4 - mss
        );
    }

    #[test]
    fn below_the_target_it_conserves_packets_while_losses_go_on() {
        let mut prr = Prr::begin(20 * MSS);
        prr.on_send(MSS);
        assert_eq!(prr.on_ack(MSS, 2 * MSS, 10 * MSS, MSS, false), MSS);
    }

    #[test]
    fn below_the_target_it_slow_starts_on_acks_that_tell_of_no_further_loss() {
        let mut prr = Prr::begin(20 * MSS);
        prr.on_send(MSS);
        assert_eq!(prr.on_ack(MSS, 2 * MSS, 10 * MSS, MSS, true), 2 * MSS);
    }

    #[test]
    fn never_sends_beyond_ssthresh() {
        let mut prr = Prr::begin(20 * MSS);
        prr.on_send(MSS);
        assert_eq!(prr.on_ack(9 * MSS, 8 * MSS, 10 * MSS, MSS, true), 2 * MSS);
    }

    #[test]
    fn conceded_bytes_do_not_count_against_the_reduction() {
        let mut prr = Prr::begin(20 * MSS);
        prr.on_send(MSS);
        prr.concede(3 * MSS);
        prr.on_send(3 * MSS);
        assert_eq!(prr.on_ack(4 * MSS, 19 * MSS, 10 * MSS, MSS, false), MSS);
    }

    #[test]
    fn the_first_retransmission_is_always_allowed() {
        assert_eq!(Prr::begin(20 * MSS).on_ack(1, 19 * MSS, 10 * MSS, MSS, false), MSS);
    }
}
