//! Loads and runs small experiments.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value as Json;
use tailcut_experiment::{Changes, Plan, RunPlan, load_text, no_table_reader, to_scenario};
use tailcut_net::measure::records::{FlowRecord, Outcome};
use tailcut_net::measure::story::{ActKind, JourneyOutcome, PacketKind, Story, StoryRecorder};
use tailcut_net::measure::{Observer, PacketView};
use tailcut_net::packet::Flags;
use tailcut_net::simulate_observed;
use tailcut_net::topology::HostId;

/// Returns the plan of an experiment, or the codes of its errors. Every refusal must have a hint.
pub fn loaded(experiment: &Json) -> Result<Plan, BTreeSet<String>> {
    let toml = toml::Value::try_from(experiment).expect("it has no null");
    let text = toml::to_string(&toml).expect("tables become text");
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"));
    load_text("smoke.toml", &text, directory, Changes::default(), &no_table_reader).map_err(
        |failure| {
            for diagnostic in &failure.diagnostics {
                assert!(diagnostic.hint.is_some(), "a refusal says what to do:\n{failure}");
            }
            let code = |code: &str| code.strip_prefix("TC-E100/").unwrap_or(code).to_owned();
            failure.diagnostics.iter().map(|diagnostic| code(&diagnostic.code)).collect()
        },
    )
}

/// Marks on packets that hosts received.
#[derive(Debug, Default)]
pub struct MarkCounts {
    pub marked: u64,
    pub of_flows_that_lost_paths: u64,
}

impl Observer for MarkCounts {
    fn host_receives(&mut self, _: tailcut_engine::Time, _: HostId, packet: &PacketView) {
        self.marked += u64::from(packet.flags.has(Flags::CONGESTION_EXPERIENCED));
        self.of_flows_that_lost_paths += u64::from(packet.flags.has(Flags::LOST_PATHS));
    }
}

/// Runs a plan and checks that no packet is unaccounted for, that every flow finishes, and that its
/// story is complete.
pub fn carry_out(run: &RunPlan, experiment: &Json) -> (Outcome, MarkCounts) {
    let scenario = to_scenario(run, &no_table_reader).expect("the plan is fresh");
    let flows: Vec<u64> = scenario.flows.iter().map(|flow| flow.id).collect();
    let stories = StoryRecorder::new(&scenario.graph, &flows, usize::MAX);
    let observers = (MarkCounts::default(), stories);
    let (outcome, (seen, stories)) =
        simulate_observed(&scenario, observers, &mut |_| ControlFlow::Continue(()))
            .unwrap_or_else(|error| panic!("{error}\n{experiment}"));
    let counters = &outcome.counters;
    let accounted =
        counters.delivered + counters.dropped + counters.lost_on_links + counters.in_flight;
    assert_eq!(counters.sent, accounted, "packets are lost: {experiment}");
    let unfinished = outcome.flows.iter().filter(|flow| flow.fct.is_none()).count();
    assert_eq!(unfinished, 0, "flows do not finish: {experiment}");
    check_stories(&outcome, &stories.into_stories(), experiment);
    (outcome, seen)
}

/// Checks that every packet is in one story, which ends when the flow does and has each timeout and
/// recovery.
fn check_stories(outcome: &Outcome, stories: &[Story], experiment: &Json) {
    let ended = |hows: &[JourneyOutcome]| {
        let packets = stories.iter().flat_map(|story| &story.packets);
        packets.filter(|packet| packet.end.is_some_and(|end| hows.contains(&end.how))).count()
            as u64
    };
    let counters = &outcome.counters;
    let sent: usize = stories.iter().map(|story| story.packets.len()).sum();
    assert_eq!(sent as u64, counters.sent, "{experiment}");
    assert_eq!(ended(&[JourneyOutcome::Received]), counters.delivered, "{experiment}");
    assert_eq!(ended(&[JourneyOutcome::Dropped]), counters.dropped, "{experiment}");
    let lost =
        ended(&[JourneyOutcome::DeadLink, JourneyOutcome::UnderWay, JourneyOutcome::Corrupted]);
    assert_eq!(lost, counters.lost_on_links, "{experiment}");
    for record in &outcome.flows {
        let story = stories.iter().find(|story| story.flow == record.flow.id);
        check_story(record, story.expect("every flow has a story"), experiment);
    }
}

fn check_story(record: &FlowRecord, story: &Story, experiment: &Json) {
    let end = record.flow.start + record.fct.expect("it finishes");
    let at_end = story.packets.iter().any(|packet| {
        let data = matches!(packet.kind, PacketKind::Data | PacketKind::Probe);
        data && packet.end.is_some_and(|it| it.how == JourneyOutcome::Received && it.at_ps == end.0)
    });
    assert!(at_end, "no data arrives when flow {} ends: {experiment}", story.flow);
    let count = |what| story.acts.iter().filter(|act| act.what == what).count();
    assert_eq!(count(ActKind::TimedOut), record.timeouts as usize, "{experiment}");
    assert_eq!(count(ActKind::Recovers), record.fast_recoveries as usize, "{experiment}");
    for packet in &story.packets {
        for pair in packet.hops.windows(2) {
            assert!(pair[1].at_ps >= pair[0].departs_ps, "{packet:?} {experiment}");
        }
        for hop in &packet.hops {
            assert!(hop.at_ps <= hop.begins_ps && hop.begins_ps < hop.departs_ps, "{packet:?}");
            assert!(hop.own <= hop.ahead, "{packet:?} {experiment}");
        }
    }
}
