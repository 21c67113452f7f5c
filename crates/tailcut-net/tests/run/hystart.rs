//! Slow start over a bottleneck of 1 Gbps behind links of 4 Gbps.

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::OneOrEach;
use tailcut_net::queue::{QueueSpec, drop_tail::DropTail};
use tailcut_net::topology::dumbbell::{Dumbbell, DumbbellValues};
use tailcut_net::transport::tcp::congestion::cubic::CubicSpec;
use tailcut_net::transport::tcp::congestion::hystart::HystartSpec;
use tailcut_net::transport::tcp::{CongestionSpec, HostDefaults};

use crate::run::support::{flow, run, scenario, tcp};

/// Returns the packets that one flow of 5 MB loses at a queue of 200 packets, and its completion
/// time.
fn lost(hystart: HystartSpec) -> (u64, Time) {
    let rate = Rate(1_000_000_000);
    let graph = Dumbbell {
        pairs: 1,
        rate: OneOrEach::Each(DumbbellValues { host: Rate(4 * rate.0), bottleneck: rate }),
        propagation: OneOrEach::One(Time::from_us(1)),
        bottleneck_queue: None,
    };
    let rows = vec![flow(0, 0, 1, 5_000_000, Time::ZERO)];
    let mut scenario = scenario(graph.build().unwrap(), rows);
    scenario.scheme.queue = QueueSpec::DropTail(DropTail {
        limit: Limit::AtMost(Amount::Packets(200)),
        ..DropTail::default()
    });
    let spec = tcp(&mut scenario);
    *spec = HostDefaults::Linux.defaults();
    spec.congestion = CongestionSpec::Cubic(CubicSpec { hystart, ..CubicSpec::default() });
    let outcome = run(&scenario);
    (outcome.counters.dropped, outcome.flows[0].fct.expect("it ends"))
}

/// The queue lengthens the round trip by at most 2.5 ms, too little for RFC 9406: its slow start
/// overflows the queue by half a window.
#[test]
fn ack_trains_end_slow_start_at_queues_too_short_for_rfc_9406() {
    let [linux, standard, none] =
        [HystartSpec::Linux, HystartSpec::Rfc9406, HystartSpec::None].map(lost);
    println!("linux {linux:?}, RFC 9406 {standard:?}, none {none:?}");
    assert_eq!(linux.0, 0);
    assert!(standard.0 > 50 && none.0 > 50, "{standard:?}, {none:?}");
}
