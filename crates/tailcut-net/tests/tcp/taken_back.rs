//! State after a recovery or a timeout that is taken back: window and threshold return, what
//! congestion has said since then stays (RFC 3168 section 6.1.2, RFC 4015 section 3.2, RFC 8257
//! section 3.3). A round trip takes 1 ms.

use crate::tcp::pair::{Pair, What};
use crate::tcp::script::{ENDLESS, MSS, Script, newreno, sack};
use What::Data;
use tailcut_engine::{Bytes, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::transport::tcp::congestion::dctcp::DctcpSpec;
use tailcut_net::transport::tcp::reordering::{adaptive, rack, rr_tcp};
use tailcut_net::transport::tcp::{Congestion, CongestionSpec, ReorderingSpec, TcpSpec};

/// Without probes of the tail.
fn rack() -> ReorderingSpec {
    ReorderingSpec::Rack(rack::RackSpec { tail_loss_probe: false, ..Default::default() })
}

/// Every method that takes recoveries back.
fn methods() -> [ReorderingSpec; 3] {
    let adaptive = ReorderingSpec::Adaptive(adaptive::AdaptiveSpec::default());
    let rr_tcp = ReorderingSpec::RrTcp(rr_tcp::RrTcpSpec::default());
    [adaptive, rack(), rr_tcp]
}

/// A recovery of ten segments, of which the first was late and was sent again, is about to end.
fn recovering(reordering: ReorderingSpec, ecn: bool) -> Script {
    let spec = TcpSpec { ecn, reordering, ..sack(10) };
    let mut script = Script::established(spec, ENDLESS);
    script.pass(Time::from_us(1_000));
    for end in 2..=10 {
        script.sack(0, &[(1, end)]);
    }
    assert_eq!(script.sender.counters().fast_recoveries, 1);
    script.pass(Time::from_us(100));
    script
}

#[test]
fn a_needless_recovery_gives_window_and_threshold_back() {
    for method in methods() {
        let mut script = recovering(method.clone(), false);
        for ack in 10..=15 {
            script.ack(ack);
        }
        let halved = script.sender.cwnd();
        script.sack(15, &[(0, 1)]);
        let Script { sender, .. } = &script;
        assert_eq!((sender.cwnd(), sender.ssthresh()), (10 * MSS, u64::MAX), "{method:?}");
        assert!(halved < 8 * MSS, "{method:?}: {halved}");
        assert_eq!(sender.counters().recoveries_undone, 1, "{method:?}");
    }
}

#[test]
fn an_echo_after_it_keeps_its_reduction() {
    for method in methods() {
        let mut script = recovering(method.clone(), true);
        for ack in 10..=20 {
            script.ack(ack);
        }
        script.echo(21);
        let (echoed, threshold) = (script.sender.cwnd(), script.sender.ssthresh());
        assert_eq!(script.sender.counters().echo_reductions, 1, "{method:?}");
        script.sack(21, &[(0, 1)]);
        let after = (script.sender.cwnd(), script.sender.ssthresh());
        assert_eq!(after, (echoed, threshold), "{method:?}");
    }
}

/// The window was reduced already, and the echo needs it to be.
#[test]
fn an_echo_within_it_keeps_the_reduction() {
    for method in methods() {
        let mut script = recovering(method.clone(), true);
        script.hear(0, &[(1, 11)], true);
        for ack in 10..=15 {
            script.ack(ack);
        }
        let before = (script.sender.cwnd(), script.sender.ssthresh());
        script.sack(15, &[(0, 1)]);
        let after = (script.sender.cwnd(), script.sender.ssthresh());
        assert_eq!(after, before, "{method:?}");
        assert_eq!(script.sender.counters().echo_reductions, 0, "{method:?}: it had its own");
    }
}

fn alpha(script: &Script) -> f64 {
    let Congestion::Dctcp(state) = script.sender.congestion() else { panic!("not DCTCP") };
    state.alpha()
}

#[test]
fn marks_within_it_stay_in_the_estimate_of_dctcp() {
    for reordering in methods() {
        let dctcp = DctcpSpec { g: 1.0, initial_alpha: 0.0, ..DctcpSpec::default() };
        let spec = TcpSpec {
            congestion: CongestionSpec::Dctcp(dctcp),
            initial_ssthresh: Limit::AtMost(Amount::Packets(10)),
            reordering: reordering.clone(),
            ..sack(10)
        };
        let mut script = Script::established(spec, ENDLESS);
        script.pass(Time::from_us(900));
        for end in 2..=10 {
            script.sack(0, &[(1, end)]);
        }
        script.pass(Time::from_us(100));
        script.echo(10);
        assert_eq!(alpha(&script), 1.0, "{reordering:?}");
        script.hear(10, &[(0, 1)], true);
        assert_eq!(alpha(&script), 1.0, "{reordering:?}");
    }
}

/// The last of a flight is lost, and the probe that repairs it costs a reduction; then an earlier
/// recovery proves needless.
#[test]
fn a_probe_that_repaired_a_loss_keeps_its_reduction() {
    let rack = rack::RackSpec { max_ack_delay: Time::ZERO, ..rack::RackSpec::default() };
    let spec = TcpSpec { reordering: ReorderingSpec::Rack(rack), ..sack(10) };
    let mut script = Script::established(spec, 30);
    script.pass(Time::from_us(1_000));
    for end in 2..=10 {
        script.sack(0, &[(1, end)]);
    }
    script.pass(Time::from_us(100));
    let mut ack = 10;
    // All but the last segment arrive.
    while ack < 29 {
        script.ack(ack);
        ack += 1;
    }
    script.ack(29);
    let before = script.sender.cwnd();
    // The probe of the tail leaves, and is acknowledged: nobody had it before.
    assert_eq!(script.expire().len(), 1, "the last segment is sent again");
    script.pass(Time::from_us(500));
    let _ = before;
    script.ack(30);
    let reduced = script.sender.cwnd();
    script.sack(30, &[(0, 1)]);
    assert_eq!(script.sender.cwnd(), reduced);
}

/// Everything that is under way at some time is late by more than the timeout.
#[test]
fn a_timeout_that_is_taken_back_is_no_recovery() {
    for f_rto in [false, true] {
        for window in [1, 2, 4, 8] {
            let rack = rack::RackSpec {
                tail_loss_probe: false,
                f_rto,
                max_ack_delay: Time::ZERO,
                ..Default::default()
            };
            let spec = TcpSpec {
                reordering: ReorderingSpec::Rack(rack),
                receive_window: Bytes(window * MSS),
                ..sack(window as u32)
            };
            let late = |pair: Pair, seq| pair.delay(Data(seq), Time::from_ms(15));
            let pair = (40..40 + window as u32).fold(Pair::new(spec, 100), late).run_loosely();
            let counters = pair.counters();
            assert_eq!(counters.recoveries_undone, 0, "{f_rto} {window}");
            assert_eq!(counters.timeouts_undone, 1, "{f_rto} {window}");
        }
    }
}

/// How long a lost segment waits in microseconds, after reordering, a duplicate report, and so many
/// recoveries of a kind.
fn patience(recoveries: u32, by_timer: bool) -> u64 {
    let rack = rack::RackSpec {
        tail_loss_probe: false,
        f_rto: false,
        undo: false,
        max_ack_delay: Time::ZERO,
    };
    let spec = TcpSpec {
        reordering: ReorderingSpec::Rack(rack),
        receive_window: Bytes(8 * MSS),
        ..sack(8)
    };
    let mut pair = Pair::new(spec, 10_000)
        .delay(Data(6), Time::from_us(200))
        .delay(Data(206), Time::from_us(300));
    for n in 0..recoveries {
        let at = 1_000 + 200 * n;
        for seq in at..at + if by_timer { 8 } else { 1 } {
            pair = pair.lose(Data(seq));
        }
    }
    let pair = pair.lose(Data(9_000)).run();
    let times = pair.times(Data(9_000));
    times[1] - times[0]
}

/// RFC 8985 section 6.2, step 4: "exiting Fast or RTO recovery".
#[test]
fn the_reordering_window_narrows_by_recoveries_of_either_kind() {
    let waits = |by_timer| [0, 10, 20, 40].map(|recoveries| patience(recoveries, by_timer));
    assert_eq!(waits(false), [1_500, 1_500, 1_250, 1_250]);
    assert_eq!(waits(true), [1_500, 1_500, 1_250, 1_250]);
}

/// Windows of more than 2^32 bytes, which 2^20 segments of 9,000 bytes are: one segment leaves for
/// every second ACK.
#[test]
fn the_largest_windows_are_reduced_in_proportion() {
    let mss = 64_000;
    let spec = TcpSpec {
        mss: Bytes(mss),
        initial_window: Amount::Packets(140_000),
        receive_window: Bytes(mss * 1_000_000),
        ..sack(10)
    };
    assert_eq!(spec.check(), Ok(()));
    let mut script = Script::established(spec, 300_000);
    script.pass(Time::from_us(900));
    // The window of the SYN-ACK let one segment go; its acknowledgement opens the whole one.
    assert_eq!(script.ack(1).len(), 140_001);
    let sent: usize = (3..120_001).map(|end| script.sack(1, &[(2, end)]).len()).sum();
    assert!((59_000..=60_010).contains(&sent), "{sent}");
}

#[test]
fn the_first_data_waits_no_longer_than_the_longest_timeout() {
    let spec = TcpSpec {
        initial_rto: Time::from_ms(20),
        max_rto: Time::from_ms(20),
        min_rto: Time::from_ms(10),
        ..newreno(4)
    };
    assert_eq!(spec.check(), Ok(()));
    let mut script = Script::opening(spec, ENDLESS);
    script.expire();
    script.pass(Time::from_ms(1));
    script.syn_ack();
    assert_eq!(script.timer(), Time::from_ms(20));
    script.expire();
    assert_eq!(script.timer(), Time::from_ms(20));
}
