//! Sizes of TCP's headers, and the timestamp option.

use tailcut_engine::{Bytes, Time};

use super::{Recovery, TcpSpec};
use crate::packet::{OptionStore, Timestamps};
use crate::transport::Segment;

/// IPv4 and TCP headers without options.
const HEADERS: u64 = 40;
/// Timestamp option (RFC 7323), and padded.
const TIMESTAMP_OPTION: u64 = 10;
const TIMESTAMPS: u64 = 12;
/// Window scale option (RFC 7323).
const WINDOW_SCALE: u64 = 3;
/// SACK-permitted option (RFC 2018).
const SACK_PERMITTED: u64 = 2;
/// Maximum segment size option (RFC 9293).
const MSS_OPTION: u64 = 4;

/// The largest window of a SYN or SYN-ACK, whose 16 bits are never scaled (RFC 7323, section 2.2).
pub(crate) const UNSCALED_WINDOW: u64 = 65_535;

/// Sizes of a connection's packets on the wire, framing included.
#[derive(Debug, Clone, Copy)]
pub struct WireSizes {
    overhead: u64,
    syn: u64,
}

impl WireSizes {
    /// Creates the sizes of connections with these parameters, with `framing` bytes per frame.
    pub fn new(tcp: &TcpSpec, framing: Bytes) -> WireSizes {
        let timestamps = if tcp.timestamps { TIMESTAMPS } else { 0 };
        let overhead = HEADERS + framing.0 + timestamps;
        let options = [
            (true, WINDOW_SCALE),
            (tcp.mss_option, MSS_OPTION),
            (tcp.recovery == Recovery::SackPrr, SACK_PERMITTED),
            (tcp.timestamps, TIMESTAMP_OPTION),
        ];
        let options: u64 = options.iter().filter(|(has, _)| *has).map(|(_, bytes)| bytes).sum();
        // The options of a SYN are padded together.
        let syn = HEADERS + framing.0 + options.next_multiple_of(4);
        WireSizes { overhead, syn }
    }

    /// A data segment.
    #[inline]
    pub fn data(&self, payload: u64) -> u16 {
        (self.overhead + payload) as u16
    }
    /// The payload of a data segment.
    pub fn payload(&self, wire_bytes: u16) -> u16 {
        wire_bytes - self.overhead as u16
    }
    /// A bare ACK or reset.
    #[inline]
    pub fn bare(&self) -> u16 {
        self.overhead as u16
    }
    /// An ACK with this many SACK blocks: 2 bytes and 8 per block, padded (RFC 2018).
    pub fn ack(&self, blocks: usize) -> u16 {
        let option = if blocks == 0 { 0 } else { 4 + 8 * blocks as u64 };
        (self.overhead + option) as u16
    }
    /// A SYN or SYN-ACK.
    pub fn syn(&self) -> u16 {
        self.syn as u16
    }
}

/// The clock of the timestamp option counts ticks in 32 bits, and begins anew after the last (RFC
/// 7323 section 5.4).
fn clock(tick: Time, now: Time) -> u32 {
    (now.0 / tick.0) as u32
}

/// Returns the end of the tick named by a timestamp, which the clock had at `now` or before.
pub(crate) fn end_of_tick(tick: Time, timestamp: u32, now: Time) -> Time {
    let ago = clock(tick, now).wrapping_sub(timestamp);
    let ticks = (now.0 / tick.0).saturating_sub(ago.into()) + 1;
    Time(ticks.saturating_mul(tick.0))
}

/// From the timestamp that is echoed to that of the echo, in whole ticks.
pub(crate) fn one_way(tick: Time, timestamps: Timestamps) -> Time {
    let ticks = timestamps.value.wrapping_sub(timestamps.echo) as i32;
    Time(u64::from(ticks.max(0).unsigned_abs()).saturating_mul(tick.0))
}

/// Adds the timestamp option to a segment that leaves.
#[cold]
pub(crate) fn stamp(
    segment: &mut Segment,
    spec: &TcpSpec,
    now: Time,
    echo: u32,
    options: &mut OptionStore,
) {
    let value = clock(spec.timestamp_tick, now);
    segment.options = options.stamp(segment.options, Timestamps { value, echo });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As captured on a Linux host: an IP datagram of 60 bytes with every option, 52 without
    /// timestamps.
    #[test]
    fn a_syn_has_the_length_that_a_capture_shows() {
        let syn = |timestamps, recovery| {
            let spec = TcpSpec { timestamps, recovery, ..TcpSpec::default() };
            WireSizes::new(&spec, Bytes(0)).syn()
        };
        assert_eq!(syn(true, Recovery::SackPrr), 60);
        assert_eq!(syn(false, Recovery::SackPrr), 52);
        assert_eq!(syn(true, Recovery::Newreno), 60);
        assert_eq!(syn(false, Recovery::Newreno), 48);
    }

    const MS: Time = Time::from_ms(1);
    const US: Time = Time::from_us(1);

    /// The clock of microseconds begins anew after 4,295 s, that of milliseconds after 50 days.
    const AROUND: u64 = 1 << 32;

    #[test]
    fn a_tick_is_over_where_the_next_begins() {
        let now = Time::from_us(7_900);
        assert_eq!(end_of_tick(MS, clock(MS, now), now), Time::from_ms(8));
        assert_eq!(end_of_tick(MS, 5, now), Time::from_ms(6));
        assert_eq!(end_of_tick(US, clock(US, now), now), Time::from_us(7_901));
    }

    #[test]
    fn a_tick_from_before_the_clock_began_anew_is_long_over() {
        let (sent, now) = (Time::from_us(AROUND - 10), Time::from_us(AROUND + 30));
        assert!(clock(US, sent) > clock(US, now));
        assert_eq!(end_of_tick(US, clock(US, sent), now), Time::from_us(AROUND - 9));
    }

    #[test]
    fn delays_one_way_are_whole_ticks_though_the_clock_begins_anew() {
        for (tick, sent) in [(MS, 5), (US, 5), (MS, AROUND - 3), (US, AROUND - 3)] {
            let [echo, value] =
                [sent, sent + 7].map(|ticks| clock(tick, Time(ticks * tick.0 + tick.0 / 2)));
            assert_eq!(one_way(tick, Timestamps { value, echo }), Time(7 * tick.0));
        }
    }

    #[test]
    fn one_way_delay_is_never_negative() {
        assert_eq!(one_way(MS, Timestamps { value: 4, echo: 5 }), Time::ZERO);
    }
}
