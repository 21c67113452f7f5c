//! Descriptions of components and error codes are complete.

#[test]
fn every_parameter_is_documented() {
    for component in tailcut_experiment::describe() {
        assert!(!component.summary.is_empty(), "{} {}", component.group, component.name);
        for parameter in &component.parameters {
            let name = format!("{} {} {}", component.group, component.name, parameter.name);
            assert!(!parameter.doc.is_empty(), "{name} has no documentation");
            assert!(!parameter.takes.is_empty(), "{name} takes nothing");
        }
    }
}

#[test]
fn every_code_is_explained() {
    let page = include_str!("../../../docs/reference/errors.md");
    for code in tailcut_experiment::diagnostic::Code::ALL {
        let rows = page.lines().filter(|l| l.starts_with(&format!("| {}", code.text()))).count();
        assert_eq!(rows, 1, "{} in docs/reference/errors.md", code.text());
    }
}

#[test]
fn components_of_every_group_are_listed() {
    let names: Vec<_> =
        tailcut_experiment::describe().iter().map(|c| format!("{}/{}", c.group, c.name)).collect();
    for expected in [
        "topology/fat-tree",
        "transport/tcp",
        "transport.congestion/dctcp",
        "transport.reordering/rr-tcp",
        "faults.incidents/link-down",
        "replicate/repflow",
        "replicate/repsyn",
        "sizes/web-search",
    ] {
        assert!(names.iter().any(|n| n == expected), "{expected} among {names:?}");
    }
}

/// The words that parameters take are listed as components, too.
#[test]
fn words_that_parameters_take_are_listed_as_components() {
    let components = tailcut_experiment::describe();
    let of = |group: &str| -> Vec<&str> {
        components.iter().filter(|c| c.group == group).map(|c| c.name.as_str()).collect()
    };
    assert_eq!(
        of("balance.detect"),
        [
            "random-skip",
            "random-skip-switch",
            "exact-port",
            "exact-switch",
            "polled-counters",
            "host-marked"
        ]
    );
    assert_eq!(of("balance.reroute"), ["egress", "five-tuple"]);
    assert_eq!(of("queue.form"), ["one-queue", "two-queues"]);
    assert_eq!(of("transport.dupack_threshold"), ["topology", "tcp"]);
    assert_eq!(of("transport.recovery"), ["newreno", "sack-prr"]);
    assert_eq!(of("transport.reordering.variant"), ["careful", "aggressive"]);
    for group in ["balance.detect", "balance.reroute", "queue.form", "transport.recovery"] {
        let defaults = components.iter().filter(|c| c.group == group && c.default).count();
        assert_eq!(defaults, 1, "{group} has a default");
    }
    assert!(components.iter().all(|c| !c.summary.is_empty()));
}
