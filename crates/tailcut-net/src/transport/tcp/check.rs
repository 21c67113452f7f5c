//! Checks of TCP's parameters.

use tailcut_engine::{Bytes, Time};

use super::{Recovery, TcpSpec};
use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::transport::entropy::EntropySpec;

/// An IP packet has at most 65,535 bytes (RFC 791); this leaves room for all headers and framing.
const MAX_MSS: u64 = 64_000;
/// Longer timers than this are slips of the unit.
const MAX_TIMER: Time = Time::from_ms(24 * 3_600 * 1_000);
/// Shorter timeouts than this flood the queues with copies before any answer can come.
const MIN_RTO: Time = Time::from_us(1);
/// The clock of timestamps: what the finest of Linux has, and the longest tick of RFC 7323 section
/// 5.4.
const MIN_TICK: Time = Time::from_us(1);
const MAX_TICK: Time = Time::from_ms(1_000);
/// A window of more segments is a slip of the unit: 1.5 GB of full ones, a second at 10 Gbps.
const MAX_WINDOW: u64 = 1 << 20;

/// Refuses windows that hold more segments than can be meant.
pub(in crate::transport) fn check_window(
    code: &'static str,
    field: &str,
    window: Bytes,
    mss: u64,
) -> Result<(), SpecError> {
    if window.0 / mss <= MAX_WINDOW {
        return Ok(());
    }
    let message = format!("{field} = \"{window}\": at most {MAX_WINDOW} segments of {mss} B");
    Err(SpecError::new(code, field, message))
}

impl TcpSpec {
    /// Checks the parameters, alone and against each other.
    ///
    /// # Errors
    /// The first that leaves a connection unable to send, receive or recover.
    pub fn check(&self) -> Result<(), SpecError> {
        let mss = self.mss.0;
        let bad = |code, field: &str, message: String| Err(SpecError::new(code, field, message));
        if !(1..=MAX_MSS).contains(&mss) {
            return bad(
                "tcp-mss",
                "mss",
                format!("mss = \"{}\": a segment carries 1B to {MAX_MSS}B", self.mss),
            );
        }
        self.check_windows(mss)?;
        self.congestion.check()?;
        self.reordering.check()?;
        if !self.reordering.is_none() && self.recovery != Recovery::SackPrr {
            let message = "only selective acknowledgements tell how far segments were reordered";
            return Err(SpecError::new("reordering-needs-sack", "reordering", message)
                .hint("write recovery = \"sack-prr\" as well"));
        }
        self.congestion.check_recovery(self.recovery)?;
        self.check_entropy()?;
        if self.dupack_threshold == 0 {
            let message =
                "dupack_threshold = 0: every acknowledgement would be a loss; at least 1 is needed";
            return Err(SpecError::new("tcp-dupack-threshold", "dupack_threshold", message)
                .hint("RFC 5681 says 3"));
        }
        for (field, timer) in [
            ("min_rto", self.min_rto),
            ("initial_rto", self.initial_rto),
            ("max_rto", self.max_rto),
            ("first_data_rto", self.first_data_rto.unwrap_or(self.max_rto)),
        ] {
            if timer < MIN_RTO || timer > MAX_TIMER {
                let message = format!(
                    "{field} = \"{timer}\": a retransmission timeout is at least {MIN_RTO} and at most a day"
                );
                return bad("tcp-rto", field, message);
            }
            if timer > self.max_rto {
                let message =
                    format!("{field} = \"{timer}\" exceeds max_rto = \"{}\"", self.max_rto);
                return bad("tcp-rto", field, message);
            }
        }
        if self.clock_granularity > self.max_rto {
            let message = format!(
                "clock_granularity = \"{}\" exceeds max_rto = \"{}\"",
                self.clock_granularity, self.max_rto
            );
            return Err(SpecError::new("tcp-clock-granularity", "clock_granularity", message)
                .hint("RFC 6298 wants 100ms or less"));
        }
        if self.ack_every == 0 {
            return Err(SpecError::new(
                "tcp-ack-every",
                "ack_every",
                "ack_every = 0: nothing would be acknowledged",
            )
            .hint("1 acknowledges every segment, 2 every second one"));
        }
        let tick = self.timestamp_tick;
        if tick < MIN_TICK || tick > MAX_TICK {
            let message = format!(
                "timestamp_tick = \"{tick}\": a clock ticks every {MIN_TICK} to {MAX_TICK}"
            );
            return Err(SpecError::new("tcp-timestamp-tick", "timestamp_tick", message)
                .hint("RFC 7323 wants 1ms to 1s; Linux can do 1us"));
        }
        if !self.paws.is_off() && !self.timestamps {
            let message = "PAWS goes by timestamps, which segments do not carry";
            return Err(SpecError::new("tcp-paws-needs-timestamps", "paws", message)
                .hint("write timestamps = true as well"));
        }
        let delay = self.delayed_ack_timeout;
        if self.ack_every > 1 && (delay == Time::ZERO || delay > MAX_TIMER) {
            let message = format!(
                "delayed_ack_timeout = \"{delay}\": a delay lies above 0s and within a day"
            );
            return bad("tcp-delayed-ack-timeout", "delayed_ack_timeout", message);
        }
        Ok(())
    }

    /// Checks the entropy policy against the feedback that the connection has.
    fn check_entropy(&self) -> Result<(), SpecError> {
        let Some(entropy) = &self.entropy else { return Ok(()) };
        entropy
            .check()
            .map_err(|error| SpecError { field: format!("entropy.{}", error.field), ..error })?;
        if matches!(entropy, EntropySpec::Plb(_)) && !self.echoes_marks() {
            let message =
                "PLB goes by the share of marked bytes, which only DCTCP's receiver echoes";
            return Err(SpecError::new("entropy-plb-needs-dctcp", "entropy.kind", message)
                .hint("write congestion = { kind = \"dctcp\" } as well"));
        }
        Ok(())
    }

    fn check_windows(&self, mss: u64) -> Result<(), SpecError> {
        let hint = format!("write at least \"{}\" (one segment)", self.mss);
        if self.receive_window.0 < mss {
            let message = format!(
                "receive_window = \"{}\" is smaller than one segment of {mss} B: nothing could be sent",
                self.receive_window
            );
            return Err(SpecError::new("tcp-receive-window", "receive_window", message).hint(hint));
        }
        check_window("tcp-receive-window", "receive_window", self.receive_window, mss)?;
        if self.initial_window.in_bytes(mss) < mss {
            let message = format!(
                "initial_window = \"{}\" is smaller than one segment of {mss} B: nothing could be sent",
                self.initial_window
            );
            return Err(SpecError::new("tcp-initial-window", "initial_window", message).hint(hint));
        }
        match self.initial_ssthresh {
            Limit::AtMost(amount) if amount.in_bytes(mss) < 2 * mss => {
                let message = format!(
                    "initial_ssthresh = \"{amount}\" is smaller than two segments of {mss} B"
                );
                Err(SpecError::new("tcp-initial-ssthresh", "initial_ssthresh", message).hint(
                    format!(
                        "write at least \"{}\", the least that RFC 5681 allows",
                        Amount::Packets(2)
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp::{CongestionSpec, Paws};
    use tailcut_engine::Bytes;

    fn field_at_fault(change: impl FnOnce(&mut TcpSpec)) -> String {
        let mut spec = TcpSpec::default();
        change(&mut spec);
        spec.check().expect_err("the parameters do not work").field
    }

    #[test]
    fn the_defaults_work() {
        assert_eq!(TcpSpec::default().check(), Ok(()));
    }

    #[test]
    fn a_segment_carries_at_least_a_byte_and_fits_an_ip_packet() {
        assert_eq!(field_at_fault(|s| s.mss = Bytes(0)), "mss");
        assert_eq!(field_at_fault(|s| s.mss = Bytes(64_001)), "mss");
    }

    #[test]
    fn windows_hold_at_least_a_segment() {
        assert_eq!(field_at_fault(|s| s.receive_window = Bytes(1_459)), "receive_window");
        assert_eq!(field_at_fault(|s| s.initial_window = Amount::Bytes(1_459)), "initial_window");
        assert_eq!(field_at_fault(|s| s.initial_window = Amount::Packets(0)), "initial_window");
        assert_eq!(
            field_at_fault(|s| s.initial_ssthresh = Limit::AtMost(Amount::Packets(1))),
            "initial_ssthresh"
        );
    }

    #[test]
    fn paws_needs_timestamps() {
        assert_eq!(field_at_fault(|s| s.paws = Paws::Rfc7323), "paws");
    }

    #[test]
    fn timers_run_and_keep_their_order() {
        assert_eq!(field_at_fault(|s| s.min_rto = Time::ZERO), "min_rto");
        assert_eq!(field_at_fault(|s| s.max_rto = Time::from_ms(1)), "min_rto");
        assert_eq!(field_at_fault(|s| s.initial_rto = Time::from_ms(61_000)), "initial_rto");
        assert_eq!(field_at_fault(|s| s.first_data_rto = Some(Time::ZERO)), "first_data_rto");
        let longer = Some(Time::from_ms(61_000));
        assert_eq!(field_at_fault(|s| s.first_data_rto = longer), "first_data_rto");
        assert_eq!(field_at_fault(|s| s.max_rto = Time::NEVER), "max_rto");
    }

    #[test]
    fn the_clock_of_timestamps_ticks_every_microsecond_to_every_second() {
        for tick in [Time::ZERO, Time::from_ns(999), Time::from_ms(1_001)] {
            assert_eq!(field_at_fault(|s| s.timestamp_tick = tick), "timestamp_tick");
        }
        for timestamp_tick in [Time::from_us(1), Time::from_ms(1_000)] {
            assert_eq!(TcpSpec { timestamp_tick, ..TcpSpec::default() }.check(), Ok(()));
        }
    }

    #[test]
    fn an_entropy_policy_has_sound_parameters_and_plb_the_marks_of_dctcp() {
        let policy = |json| serde_json::from_value(json).expect("it is a policy");
        let odd = policy(serde_json::json!({ "kind": "reps", "values": 3 }));
        assert_eq!(field_at_fault(|s| s.entropy = Some(odd)), "entropy.values");
        let plb = policy(serde_json::json!({ "kind": "plb" }));
        assert_eq!(field_at_fault(|s| s.entropy = Some(plb.clone())), "entropy.kind");
        let congestion = CongestionSpec::Dctcp(Default::default());
        let dctcp = TcpSpec { congestion, entropy: Some(plb), ..TcpSpec::default() };
        assert_eq!(dctcp.check(), Ok(()));
    }

    #[test]
    fn refuses_zero_ack_every_dupack_threshold_and_delay() {
        assert_eq!(field_at_fault(|s| s.ack_every = 0), "ack_every");
        assert_eq!(field_at_fault(|s| s.dupack_threshold = 0), "dupack_threshold");
        let no_delay = |s: &mut TcpSpec| (s.ack_every, s.delayed_ack_timeout) = (2, Time::ZERO);
        assert_eq!(field_at_fault(no_delay), "delayed_ack_timeout");
    }
}
