//! What ends slow start before a loss does, in senders of whole windows.

use crate::tcp::script::{ENDLESS, MSS, Script};
use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::Amount;
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::hystart::HystartSpec;
use tailcut_net::transport::tcp::{CongestionSpec, HostDefaults, TcpSpec};

const NOT_YET: u64 = u64::MAX / MSS;

/// A Linux with a window of 20 segments, which have just left.
fn linux() -> TcpSpec {
    TcpSpec {
        mss: Bytes(MSS),
        initial_window: Amount::Packets(20),
        receive_window: Bytes(ENDLESS * MSS),
        ..HostDefaults::Linux.defaults()
    }
}

/// The threshold before each of 20 ACKs, 100 us apart, and after the last; the first comes after a
/// round trip of 1 ms.
fn thresholds(spec: TcpSpec) -> Vec<u64> {
    let mut script = Script::established(spec, ENDLESS);
    script.pass(Time::from_us(900));
    let mut thresholds = vec![script.threshold()];
    for ack in 1..=20 {
        script.pass(Time::from_us(100));
        script.ack(ack);
        thresholds.push(script.threshold());
    }
    thresholds
}

/// Half of 1 ms and of a cushion of 1 ms is over with the twelfth ACK, 1.1 ms after the first.
/// Eleven have opened the window.
#[test]
fn linux_leaves_slow_start_by_a_train_of_acks() {
    let thresholds = thresholds(linux());
    assert_eq!((thresholds[11], thresholds[12], thresholds[20]), (NOT_YET, 31, 31));
}

#[test]
fn cubic_without_linux_hystart_keeps_slow_start() {
    for hystart in [HystartSpec::Rfc9406, HystartSpec::None] {
        let cubic = CubicSpec { hystart, ..CubicSpec::default() };
        let spec = TcpSpec { congestion: CongestionSpec::Cubic(cubic), ..linux() };
        assert_eq!(thresholds(spec)[20], NOT_YET);
    }
}

#[test]
fn an_ack_of_several_segments_opens_a_linux_window_by_all_of_them() {
    let mut script = Script::established(linux(), ENDLESS);
    script.pass(Time::from_ms(1));
    script.ack(12);
    assert_eq!(script.window(), 32);
}
