//! What becomes of a plan's flows and jobs, and of the time series that it asks for.

use tailcut_engine::Time;
use tailcut_net::scenario::{Scenario, SeriesSpec};

use crate::fabrics::Kind;
use crate::settings::Checked;
use crate::waits::deciders;

/// Source ports tell flows apart.
pub const MOST_FLOWS: usize = 60_000;
/// The kernel is not asked more often: it stops a connection while it tells of it.
pub const LEAST_BETWEEN_WINDOWS: Time = Time::from_ms(1);

pub(crate) fn check(
    checked: &mut Checked,
    scenario: &Scenario,
    by_repnet: bool,
    fabric: &dyn Kind,
) {
    let flows = scenario.flows.len();
    checked.only(
        flows <= MOST_FLOWS,
        "traffic",
        "exactly the simulator's flows, each from the source port that the simulator hashes",
        format!("{flows} flows: source ports tell {MOST_FLOWS} apart"),
    );
    if !scenario.jobs.is_empty() {
        match deciders(&scenario.flows, &scenario.jobs) {
            _ if by_repnet => checked.fatal(
                "traffic.kind",
                "flows that wait for other flows: repnet-bench does not tell which is over",
            ),
            Err(_) => checked.fatal(
                "traffic.kind",
                "flows that wait for what two hosts see: each host goes by what it sees itself",
            ),
            Ok(_) => checked.done(
                "traffic.kind",
                "flows that wait for others are started by their hosts when these see what they wait for, or when another host, which sees \
                 it, tells them beside the fabric",
            ),
        }
    }
    series(checked, &scenario.series, by_repnet, fabric);
}

fn series(checked: &mut Checked, spec: &SeriesSpec, by_repnet: bool, fabric: &dyn Kind) {
    let SeriesSpec { flows, links, differentials, interval, max_samples: _ } = spec;
    for (field, asked) in [("series.links", links), ("series.differentials", differentials)] {
        let between = fabric.between_samples();
        match between {
            _ if asked.is_empty() => {}
            Time::ZERO => checked.done(field, "the queues of the fabric's ports, at their times"),
            _ => checked.near(
                field,
                format!("the queues as the kernel tells of them when it is asked, every {between} at the most often"),
            ),
        }
    }
    match flows.is_empty() {
        true => {}
        false if by_repnet => checked.near(
            "series.flows",
            "not recorded: Node does not give its sockets away, by which the kernel is asked",
        ),
        false if *interval < LEAST_BETWEEN_WINDOWS => checked.near(
            "series.flows",
            format!("window and acknowledged bytes by TCP_INFO, every {LEAST_BETWEEN_WINDOWS} at the most often"),
        ),
        false => checked.done("series.flows", "window and acknowledged bytes by TCP_INFO"),
    }
}
