//! Stories of flows all of whose times are known in advance.

use std::ops::ControlFlow;

use tailcut_engine::{Rate, Time};
use tailcut_net::amount::{Amount, Limit};
use tailcut_net::faults::Incident;
use tailcut_net::measure::records::FlowRecord;
use tailcut_net::measure::story::{ActKind, JourneyOutcome, PacketKind, Story, StoryRecorder};
use tailcut_net::queue::QueueSpec;
use tailcut_net::queue::drr::Drr;
use tailcut_net::scenario::Scenario;
use tailcut_net::simulate_observed;
use tailcut_net::topology::Graph;
use tailcut_net::topology::find::find_link;
use tailcut_net::topology::star::Star;

use crate::run::support::{flow, limit_queues, row, run, run_observed, scenario, tcp};

const NANOSECOND: u64 = 1_000;

/// Returns the records and stories of all flows of a scenario.
fn stories_of(scenario: &Scenario) -> Vec<(FlowRecord, Story)> {
    let flows: Vec<u64> = scenario.flows.iter().map(|flow| flow.id).collect();
    let stories = StoryRecorder::new(&scenario.graph, &flows, usize::MAX);
    let (outcome, stories) = run_observed(scenario, stories);
    assert_eq!(outcome.flows, run(scenario).flows, "who looks changes nothing");
    outcome.flows.into_iter().zip(stories.into_stories()).collect()
}

/// Returns a star of 1 Gbps (8 ns per byte) with wires of a microsecond.
fn gigabit(hosts: u32) -> Graph {
    let rate = Rate(1_000_000_000);
    Star { hosts, rate, propagation: Time::from_us(1) }.build().expect("hosts are enough")
}

/// Returns the only data packet of a flow.
fn data(story: &Story) -> &tailcut_net::measure::story::Journey {
    story.packets.iter().find(|packet| packet.kind == PacketKind::Data).expect("it sends data")
}

#[test]
fn the_story_of_a_lone_flow_has_no_waits_at_switches() {
    let scenario = scenario(
        row(&[(Rate(1_000_000_000), Time::from_us(1)); 2]),
        vec![flow(7, 0, 1, 1_000, Time::from_us(5))],
    );
    let (record, story) = stories_of(&scenario).remove(0);
    assert_eq!((story.flow, story.left_out), (7, 0));
    let kinds: Vec<_> = story.packets.iter().map(|packet| packet.kind).collect();
    assert_eq!(
        kinds[..4],
        [PacketKind::Syn, PacketKind::SynAck, PacketKind::Ack, PacketKind::Data]
    );
    // Packets of a handshake have 90 bytes on the wire, data 1,078, acknowledgements 78; times in
    // ns over two wires.
    let one_way = |bytes: u64| 2 * (8 * bytes + 1_000);
    let sent: Vec<u64> = story.packets.iter().map(|packet| packet.sent_ps / NANOSECOND).collect();
    let back = 5_000 + 2 * one_way(90);
    assert_eq!(sent[..4], [5_000, 5_000 + one_way(90), back, back]);
    // The data waits in its host's interface for the handshake's acknowledgement.
    let first = data(&story).hops[0];
    assert_eq!(
        (first.ahead, first.own, first.begins_ps - first.at_ps),
        (1, 1, 8 * 78 * NANOSECOND)
    );
    let second = data(&story).hops[1];
    assert_eq!((second.ahead, second.begins_ps), (0, second.at_ps));
    let end = data(&story).end.expect("it arrives");
    assert_eq!(
        (end.how, Some(Time(end.at_ps - 5_000 * NANOSECOND))),
        (JourneyOutcome::Received, record.fct)
    );
    assert_eq!(end.at_ps, second.departs_ps + 1_000 * NANOSECOND);
}

#[test]
fn a_story_shows_the_later_of_two_flows_waiting() {
    let flows = vec![flow(0, 0, 2, 1_000, Time::ZERO), flow(1, 1, 2, 1_000, Time::from_ns(100))];
    let stories = stories_of(&scenario(gigabit(3), flows));
    let port = find_link(&gigabit(3), "s0>h2").expect("it is there");
    let at_port = |(_, story): &(FlowRecord, Story)| {
        data(story).hops.iter().copied().find(|hop| hop.link == port).expect("it passes")
    };
    let (first, second) = (at_port(&stories[0]), at_port(&stories[1]));
    assert_eq!((first.ahead, second.ahead, second.own), (0, 1, 0));
    assert_eq!(second.begins_ps, first.departs_ps);
    // The second flow's SYN came 100 ns later and waited, so everything is later by the 720 ns of a
    // SYN.
    assert_eq!(second.at_ps - first.at_ps, 8 * 90 * NANOSECOND);
}

#[test]
fn a_story_counts_the_packets_served_before_in_a_scheduled_queue() {
    let flows = (0..3).map(|n| flow(n, n as u32, 3, 3_000 - 1_000 * n, Time::from_ns(n))).collect();
    let mut scenario = scenario(gigabit(4), flows);
    scenario.scheme.queue = QueueSpec::Drr(Drr::default());
    for (_, story) in stories_of(&scenario) {
        for hop in story.packets.iter().flat_map(|packet| &packet.hops) {
            // On a link of one rate, a packet that waits has others ahead of it, and one that does
            // not begins at once.
            assert_eq!(hop.ahead > 0, hop.begins_ps > hop.at_ps, "{hop:?}");
            assert!(hop.own <= hop.ahead && hop.departs_ps > hop.begins_ps, "{hop:?}");
        }
    }
}

#[test]
fn a_story_shows_the_timer_of_a_lost_syn() {
    let mut scenario = scenario(gigabit(3), vec![flow(0, 0, 2, 1_000, Time::from_us(2))]);
    tcp(&mut scenario).initial_rto = Time::from_ms(3);
    let link = "s0>h2".to_owned();
    let (at, until) = (Time::ZERO, Some(Time::from_ms(1)));
    scenario.faults.incidents = vec![Incident::LinkDown { link, at, until }];
    let (record, story) = stories_of(&scenario).remove(0);
    let port = find_link(&scenario.graph, "s0>h2").ok();
    let [first, again] = [0, 1].map(|n| &story.packets[n]);
    assert_eq!(
        (first.kind, first.again, again.kind, again.again),
        (PacketKind::Syn, false, PacketKind::Syn, true)
    );
    let end = first.end.expect("it is lost");
    assert_eq!(
        (end.how, end.link, end.at_ps / NANOSECOND),
        (JourneyOutcome::DeadLink, port, 2_000 + 8 * 90 + 1_000)
    );
    let acts: Vec<_> = story.acts.iter().filter(|act| act.what == ActKind::TimedOut).collect();
    let timer = Time::from_ms(3).0;
    assert_eq!(acts.len(), 1);
    assert_eq!((acts[0].at_ps, acts[0].timer_ps), (first.sent_ps + timer, Some(timer)));
    assert_eq!(again.sent_ps, first.sent_ps + timer);
    assert_eq!(record.timeouts, 1);
}

#[test]
fn a_story_shows_a_drop_and_its_recovery() {
    let flows = (0..4).map(|n| flow(n, n as u32, 4, 60_000, Time::ZERO)).collect();
    let mut scenario = scenario(gigabit(5), flows);
    limit_queues(&mut scenario, Limit::AtMost(Amount::Packets(12)));
    let stories = stories_of(&scenario);
    let port = find_link(&scenario.graph, "s0>h4").ok();
    for (record, story) in &stories {
        let lost: Vec<_> = story
            .packets
            .iter()
            .filter_map(|p| p.end)
            .filter(|end| end.how == JourneyOutcome::Dropped)
            .collect();
        assert!(lost.iter().all(|end| end.link == port), "{lost:?}");
        let acts = |what| story.acts.iter().filter(|act| act.what == what).count();
        assert_eq!(acts(ActKind::TimedOut), record.timeouts as usize);
        assert_eq!(acts(ActKind::Recovers), record.fast_recoveries as usize);
        let again = story.packets.iter().filter(|p| p.again && p.kind == PacketKind::Data).count();
        assert_eq!(again as u64, record.retransmissions);
        assert!(lost.is_empty() || again > 0);
    }
    assert!(
        stories.iter().any(|(_, story)| story.acts.iter().any(|act| act.what == ActKind::Recovers))
    );
}

#[test]
fn a_story_shows_departures_at_the_changed_rate() {
    let mut scenario = scenario(gigabit(3), vec![flow(0, 0, 2, 14_000, Time::ZERO)]);
    let link = "h0>s0".to_owned();
    let at = Time::from_us(20);
    scenario.faults.incidents =
        vec![Incident::Rate { link, one_way: true, rate: Rate(100_000_000), at, until: None }];
    let (record, story) = stories_of(&scenario).remove(0);
    let data: Vec<_> = story.packets.iter().filter(|p| p.kind == PacketKind::Data).collect();
    let ends: Vec<u64> = data.iter().map(|p| p.end.expect("it arrives").at_ps).collect();
    for pair in data.windows(2) {
        assert_eq!(pair[1].hops[0].begins_ps, pair[0].hops[0].departs_ps);
    }
    for (packet, end) in data.iter().zip(&ends) {
        let [first, second] = packet.hops[..] else { panic!("two links") };
        assert_eq!(second.at_ps, first.departs_ps + 1_000 * NANOSECOND);
        assert_eq!(*end, second.departs_ps + 1_000 * NANOSECOND);
    }
    assert_eq!(ends.iter().max().copied().map(Time), record.fct);
}

#[test]
fn a_story_has_at_most_the_requested_packets() {
    let scenario = scenario(gigabit(3), vec![flow(0, 0, 2, 100_000, Time::ZERO)]);
    let whole = stories_of(&scenario).remove(0).1;
    let (_, cut) = run_observed(&scenario, StoryRecorder::new(&scenario.graph, &[0], 10));
    let cut = cut.into_stories().remove(0);
    assert_eq!(cut.packets[..], whole.packets[..10]);
    assert_eq!(cut.left_out as usize, whole.packets.len() - 10);
}

#[test]
fn an_interrupted_run_keeps_its_stories() {
    let scenario = scenario(gigabit(3), vec![flow(0, 0, 2, 100_000, Time::ZERO)]);
    let mut stories = StoryRecorder::new(&scenario.graph, &[0], usize::MAX);
    let _ = simulate_observed(&scenario, &mut stories, &mut |_| ControlFlow::Break(()));
    assert!(!stories.into_stories()[0].packets.is_empty());
}
