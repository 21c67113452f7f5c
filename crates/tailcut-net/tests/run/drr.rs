//! Deficit round robin: the share of a flow does not depend on what others send.

use tailcut_engine::{Bytes, Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::component::OneOrEach;
use tailcut_net::queue::{QueueSpec, drop_tail::DropTail, drr::Drr};
use tailcut_net::topology::dumbbell::{Dumbbell, DumbbellValues};
use tailcut_net::traffic::Flow;

use crate::run::support::*;

const BOTTLENECK: Rate = Rate(1_000_000_000);
/// The transmission time of a full packet at the bottleneck.
const TURN: Time = Time::from_ns(12_304);
const LIMIT: Limit = Limit::AtMost(Amount::Packets(100));

fn queues() -> [QueueSpec; 2] {
    [
        QueueSpec::DropTail(DropTail { limit: LIMIT, ..DropTail::default() }),
        QueueSpec::Drr(Drr { limit: LIMIT, ..Drr::default() }),
    ]
}

/// Returns the arrival times of flows through one bottleneck of 1 Gbps, by their position; `None`
/// for a flow that has not arrived.
fn arrivals(queue: &QueueSpec, pairs: u32, flows: Vec<Flow>) -> Vec<Option<Time>> {
    let fast = Rate(4 * BOTTLENECK.0);
    let graph = Dumbbell {
        pairs,
        rate: OneOrEach::Each(DumbbellValues { host: fast, bottleneck: BOTTLENECK }),
        propagation: OneOrEach::One(Time::from_us(5)),
        bottleneck_queue: None,
    };
    let mut scenario = scenario(graph.build().expect("it is a dumbbell"), flows);
    scenario.scheme.queue = queue.clone();
    tcp(&mut scenario).receive_window = Bytes(1 << 20);
    run(&scenario).flows.iter().map(|flow| flow.fct).collect()
}

#[test]
fn with_drr_a_mouse_waits_one_turn_per_packet_and_not_for_the_elephants_queue() {
    let mouse = |start| flow(1, 1, 3, 20_440, start);
    let late = Time::from_ms(20);
    let [behind, apart] = queues().map(|queue| {
        let alone = arrivals(&queue, 2, vec![mouse(Time::ZERO)])[0].expect("it finishes");
        let flows = vec![flow(0, 0, 2, 50_000_000, Time::ZERO), mouse(late)];
        let beside = arrivals(&queue, 2, flows)[1].expect("it finishes");
        beside.since(alone).0 / TURN.0
    });
    assert!(behind > 100, "drop-tail: {behind} packets");
    // The SYN and 14 packets of data each find one packet on the link and one ahead of them.
    assert!(apart <= 2 * 15, "deficit round robin: {apart} packets");
}

#[test]
fn with_drr_equal_flows_that_start_together_end_together() {
    let size = 2_000_000;
    let flows = || {
        (0..8)
            .map(|id| flow(id, u32::from(id == 7), 2 + u32::from(id == 7), size, Time::ZERO))
            .collect()
    };
    let spread = |queue: &QueueSpec| {
        let done: Vec<Time> =
            arrivals(queue, 2, flows()).into_iter().map(|at| at.expect("all finish")).collect();
        let (first, last) = (done.iter().min().expect("eight"), done.iter().max().expect("eight"));
        first.0 as f64 / last.0 as f64
    };
    let [behind, apart] = queues().map(|queue| spread(&queue));
    assert!(apart > 0.9, "deficit round robin: the first is done at {apart} of the last");
    assert!(behind < apart, "drop-tail: {behind}");
}
