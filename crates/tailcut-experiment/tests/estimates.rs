//! Estimates of a run's packets, compared with what it counts.

use std::ops::ControlFlow;

use tailcut_experiment::{no_table_reader, run};

use crate::common::jobs::{JOBS, UET, with_job};
use crate::common::plan_with;

/// Returns the estimated packet-hops of an experiment's only run over those that it counts.
fn ratio(text: &str, overrides: &[(&str, &str)]) -> f64 {
    let plan = plan_with(text, overrides);
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let result = run(&planned, None, &no_table_reader, &mut |_| ControlFlow::Continue(()));
    let counted = result.expect("it runs").counters.packet_hops;
    plan.runs[0].facts.expected_packet_hops as f64 / counted as f64
}

/// Checks that the estimate is within a factor of what the run counts.
fn check(name: &str, text: &str, overrides: &[(&str, &str)], factor: f64) -> Option<String> {
    let ratio = ratio(text, overrides);
    println!("{name}: {ratio:.3}");
    (ratio.max(1.0 / ratio) > factor).then(|| format!("{name}: {ratio:.3}"))
}

/// Returns a scheme with Ultra Ethernet's transport under this control.
fn uet(control: &str) -> String {
    UET.replace("\"uet\"", &format!("\"uet\", control = \"{control}\""))
}

/// Retransmissions are beyond the estimate.
#[test]
fn packet_hops_of_jobs_are_about_their_estimate() {
    let schemes = [
        ("tcp", String::new()),
        ("nscc", UET.into()),
        ("rccc", uet("rccc")),
        ("ndp", UET.replace("\"uet\"", "\"ndp\"")),
        ("mptcp", "transport = { kind = \"mptcp\" }".into()),
    ];
    let mut beyond = vec![];
    for (job, traffic) in JOBS {
        for (scheme, text) in &schemes {
            let text = with_job(traffic, text);
            beyond.extend(check(&format!("{job}, {scheme}"), &text, &[], 1.3));
        }
    }
    assert!(beyond.is_empty(), "estimated over counted: {beyond:?}");
}

/// A run that ends before its job carries no more than the messages that have begun.
#[test]
fn a_job_that_is_broken_off_counts_until_then() {
    let mut beyond = vec![];
    for (job, traffic) in JOBS.iter().take(3) {
        let short = [("horizon.drain", "\"0s\""), ("horizon.arrivals", "\"400us\"")];
        beyond.extend(check(job, &with_job(traffic, UET), &short, 1.5));
    }
    assert!(beyond.is_empty(), "estimated over counted: {beyond:?}");
}

#[test]
fn packet_hops_of_lone_flows_are_those_of_each_transport() {
    for (bytes, factor) in [("1B", 1.01), ("40KB", 1.01), ("10MB", 1.01)] {
        let traffic =
            format!("kind = \"trace\"\nflows = [{{ src = 0, dst = 9, bytes = \"{bytes}\" }}]");
        for (name, scheme) in [
            ("tcp", String::new()),
            ("nscc", UET.into()),
            ("ndp", UET.replace("\"uet\"", "\"ndp\"")),
        ] {
            let beyond =
                check(&format!("{name}, {bytes}"), &with_job(&traffic, &scheme), &[], factor);
            assert_eq!(beyond, None);
        }
    }
}
