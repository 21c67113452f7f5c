//! Entropy policies in experiment files: what is noted of them, and what is refused.

use crate::common::{failure, plan_with};

const POLICY: &str = r#"title = "a policy"
[topology]
kind = "fat-tree"
k = 4
[transport]
kind = "tcp"
entropy = { kind = "reps", values = 8 }
[traffic]
kind = "trace"
flows = [ { src = 0, dst = 15, bytes = "200KB" } ]
[horizon]
arrivals = "20ms"
"#;

fn notes(changes: &[(&str, &str)]) -> Vec<String> {
    plan_with(POLICY, changes).runs[0].facts.notes.clone()
}

#[test]
fn notes_how_many_paths_the_values_reach() {
    let rack = ("transport.reordering.kind", "\"rack\"");
    let found = notes(&[rack, ("transport.entropy.values", "1024")]);
    let expected = "transport.entropy: its 1024 values reach 4.0 of the 4 shortest paths between hosts far apart, on average over the switches' salts.";
    assert_eq!(found, [expected]);
    let uet = notes(&[("transport", "{ kind = \"uet\" }")]);
    assert!(uet[0].starts_with("transport.entropy: its 64 values reach"), "{uet:?}");
    let found = notes(&[rack]);
    assert!(found[0].starts_with("transport.entropy: its 8 values reach 3."), "{found:?}");
}

#[test]
fn notes_switches_that_do_not_hash_ports_and_reordering_that_is_taken_for_loss() {
    let spray = ("balance.kind", "\"spray\"");
    let found = notes(&[spray]);
    assert!(found[0].contains("only where switches hash ports"), "{found:?}");
    assert!(found[1].contains("duplicate ACKs take for loss"), "{found:?}");
    let ncr = ("transport.reordering.kind", "\"ncr\"");
    let found = notes(&[ncr]);
    assert!(found[0].contains("the window does not grow"), "as under spraying: {found:?}");
}

#[test]
fn says_that_the_seed_decides_ports() {
    let fixed = ("balance.salt", "\"fixed\"");
    assert!(plan_with(POLICY, &[fixed]).runs[0].facts.draws);
}

#[test]
fn a_wrong_parameter_is_shown_at_its_place() {
    let text = POLICY.replace("values = 8", "values = 9");
    let failure = failure(&text).to_string();
    assert!(failure.contains("must be a power of two from 1 to 65536"), "{failure}");
    assert!(failure.contains("transport.entropy.values"), "{failure}");
}
