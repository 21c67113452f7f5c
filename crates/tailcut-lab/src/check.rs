//! Checks of a run: how exactly the lab realises each field of its plan, where it differs, and what
//! is impossible.
//!
//! Every struct of the plan is destructured field by field: a new field does not compile here until
//! its outcome is decided.

use std::path::Path;

use tailcut_engine::Time;
use tailcut_experiment::{RunPlan, no_table_reader, to_scenario};
use tailcut_net::scenario::{Scenario, Scheme};

use crate::answers::{CapabilityRow, RunCheck};
use crate::congestion::{self, CONTROLS};
use crate::fabric_kinds::kind::FabricKind;
use crate::replication::{self, MAX_NODE_HOSTS};
use crate::transports::{self, TRANSPORTS};
use crate::{bpf_programs, fabric_kinds, frame_rate, traffic};

/// Returns the capabilities that the kernel's congestion controls and transports need.
pub fn capability_rows() -> Vec<CapabilityRow> {
    let controls = CONTROLS.into_iter().map(congestion::capability);
    controls.chain(TRANSPORTS.into_iter().filter_map(|one| one.capability())).collect()
}

/// The most hosts of a run: more processes do not fit a machine.
pub const MAX_HOSTS: u32 = 256;

/// Checks every field of a run, an element of the plan's `runs` as JSON. `by_repnet`: whether
/// `repnet-bench` carries the flows. `fabric`: the name of the fabric's kind. `programs`: the
/// directory of compiled BPF programs, if there is one.
///
/// # Errors
/// The JSON is not a run of a plan, or no fabric has that name.
pub fn check_run(
    run_json: &str,
    by_repnet: bool,
    fabric: &str,
    programs: Option<&Path>,
) -> Result<RunCheck, String> {
    let plan: RunPlan = serde_json::from_str(run_json).map_err(|error| error.to_string())?;
    let fabric = fabric_kinds::find(fabric)?;
    let scenario = scenario(&plan)?;
    let mut checked = check(&scenario, by_repnet, fabric, programs);
    checked.peak_frame_rate = frame_rate::peak_frame_rate(&scenario);
    checked.done("lab.fabric", format!("{}: {}", fabric.name(), fabric.about()));
    checked.done("horizon", "runs in real time");
    checked.done_or_fatal(
        scenario.host.jitter == Time::ZERO,
        "host.jitter",
        "real hosts have their own jitter",
        "real hosts have their own jitter: remove host.jitter",
    );
    checked.done("measure", "computed by the simulator's code from what hosts and fabric report");
    let labels = &plan.config.labels;
    let asked = [
        (labels.segments, "measure.segments"),
        (labels.attribution, "measure.attribution"),
        (labels.instants.is_some(), "measure.fabric"),
    ];
    for (_, field) in asked.into_iter().filter(|(asked, _)| *asked) {
        checked
            .near(field, "not recorded: it needs per-packet events, which kernels do not report");
    }
    Ok(checked)
}

pub(crate) fn scenario(plan: &RunPlan) -> Result<Scenario, String> {
    to_scenario(plan, &no_table_reader).map_err(|error| error.to_string())
}

/// Checks every field that hosts, fabric and traffic realise.
pub fn check(
    scenario: &Scenario,
    by_repnet: bool,
    fabric: &dyn FabricKind,
    programs: Option<&Path>,
) -> RunCheck {
    let mut checked = RunCheck::new(bpf_programs::available(programs));
    if !scenario.graph.attachment.is_single() {
        checked.fatal("topology", "the lab gives each host one interface: use the simulator for multi-plane and rail-optimised");
        return checked;
    }
    checked.done("interface", "every host has one");
    let hosts = scenario.graph.hosts;
    let most = if by_repnet { MAX_NODE_HOSTS } else { MAX_HOSTS };
    checked.done_or_fatal(
        hosts <= most,
        "topology",
        "one network namespace per host, joined by the fabric's switches and links",
        format!("{hosts} hosts: the lab carries at most {most}"),
    );
    // Without several interfaces, plans leave it at its default.
    let Scheme { transport, queue: _, balance: _, replicate, interface: _ } = &scenario.scheme;
    transports::check(&mut checked, transport, by_repnet, fabric.facts());
    fabric.check(&mut checked, scenario);
    replication::check(&mut checked, replicate, by_repnet, scenario.flows.len());
    traffic::check(&mut checked, scenario, by_repnet, fabric.facts());
    checked
}
