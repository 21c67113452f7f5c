//! What a plan asks of the hosts, field by field: how this backend realises it, how it departs from it, or why it cannot.
//!
//! Every struct of the plan is taken apart by name, so that a field that is added to one does not compile here until it
//! is decided what becomes of it.

use std::path::Path;

use serde::Serialize;
use tailcut_engine::Time;
use tailcut_experiment::{RunPlan, no_tables, to_scenario};
use tailcut_net::scenario::{Scenario, Scheme};

use crate::congestion::{self, CONTROLS, Program};
use crate::expected;
use crate::fabrics::{self, Kind};
use crate::programs;
use crate::replication::{self, MOST_NODES, Replication};
use crate::traffic;
use crate::transports::{self, TRANSPORTS};

/// What becomes of a field of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// As the plan says.
    Done,
    /// Nearly: the text says how it departs.
    Near,
    /// Not at all: the run is refused.
    Fatal,
}

/// A field of the plan, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The field, as `transport.initial_rto`.
    pub field: String,
    /// What becomes of it.
    pub answer: Answer,
    /// By what means, or why not.
    pub text: String,
}

/// What a field of the plan takes of the kernel or the system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// As what [`probe`](crate::probe) finds is called, or `repnet-bench`.
    pub offer: String,
    /// The field.
    pub field: String,
}

/// Something that schemes take of a kernel or the system, as `tailcut lab` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// As what [`probe`](crate::probe) finds is called.
    pub name: String,
    /// What runs need it for.
    pub needed_for: &'static str,
    /// How to get it.
    pub remedy: &'static str,
    /// Whether no run goes without.
    pub fatal: bool,
}

/// What the kernel's congestion controls and transports take, a row each.
pub fn rows() -> Vec<Row> {
    let controls = CONTROLS.into_iter().map(congestion::row);
    controls.chain(TRANSPORTS.into_iter().filter_map(|one| one.row())).collect()
}

/// How each host is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HostSettings {
    /// Bytes of the largest IP datagram.
    pub mtu: u64,
    /// Sysctls below `net.`, with `/` between the parts, and their values.
    pub sysctls: Vec<(&'static str, String)>,
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// The lab's own program that is it, where there is one: it has another name once it is registered.
    pub program: Option<Program>,
    /// Attributes of the route to all other hosts.
    pub route: Vec<(&'static str, String)>,
    /// Whether senders close a connection after its last byte.
    pub closes: bool,
    /// The name of the transport.
    pub transport: &'static str,
    /// Addresses that a host has besides its own.
    pub further_addresses: u32,
    /// How `repnet-bench` carries flows, where it does.
    pub repnet: Option<Replication>,
}

/// The answers for a run, and the hosts' settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// A field each.
    pub told: Vec<Told>,
    /// What the hosts are set to; what it says is meant only if nothing is fatal.
    pub hosts: HostSettings,
    /// What it takes that not every machine has.
    pub needs: Vec<Need>,
    /// Frames a second that hosts send at the busiest, at the most.
    pub busiest: f64,
    /// Whether BPF programs can be loaded, or why not.
    #[serde(skip)]
    pub programs: Result<(), String>,
}

/// Beyond this many hosts a machine has no room for their processes.
pub const MOST_HOSTS: u32 = 256;
/// Addresses of a host at most.
pub const MOST_ADDRESSES: u32 = 8;

impl Checked {
    /// With no answer yet.
    pub(crate) fn new(programs: Result<(), String>) -> Checked {
        Checked {
            told: vec![],
            hosts: HostSettings::default(),
            needs: vec![],
            busiest: 0.0,
            programs,
        }
    }
    pub(crate) fn say(&mut self, field: &str, answer: Answer, text: impl Into<String>) {
        self.told.push(Told { field: field.to_owned(), answer, text: text.into() });
    }
    pub(crate) fn done(&mut self, field: &str, text: impl Into<String>) {
        self.say(field, Answer::Done, text);
    }
    pub(crate) fn near(&mut self, field: &str, text: impl Into<String>) {
        self.say(field, Answer::Near, text);
    }
    pub(crate) fn fatal(&mut self, field: &str, text: impl Into<String>) {
        self.say(field, Answer::Fatal, text);
    }
    /// `done` if it holds, otherwise `fatal`.
    pub(crate) fn only(&mut self, holds: bool, field: &str, how: &str, why_not: impl Into<String>) {
        match holds {
            true => self.done(field, how),
            false => self.fatal(field, why_not),
        }
    }
    /// `done` if it holds, otherwise `near`.
    pub(crate) fn only_nearly(
        &mut self,
        holds: bool,
        field: &str,
        how: &str,
        but: impl Into<String>,
    ) {
        match holds {
            true => self.done(field, how),
            false => self.near(field, but),
        }
    }
    /// For a field it takes something that the kernel or the system may not have.
    pub(crate) fn needs(&mut self, offer: impl Into<String>, field: &str) {
        self.needs.push(Need { offer: offer.into(), field: field.to_owned() });
    }
    pub(crate) fn sysctl(&mut self, name: &'static str, value: impl ToString) {
        self.hosts.sysctls.retain(|(known, _)| *known != name);
        self.hosts.sysctls.push((name, value.to_string()));
    }
    pub(crate) fn route(&mut self, name: &'static str, value: impl ToString) {
        self.hosts.route.push((name, value.to_string()));
    }

    /// Whether a run of it can begin.
    pub fn is_possible(&self) -> bool {
        self.told.iter().all(|told| told.answer != Answer::Fatal)
    }
}

/// What becomes of every field of a run of a plan (an element of `runs`, as JSON). `by_repnet`: `repnet-bench` carries its flows.
/// `fabric`: the name of what lies between the hosts. `programs`: where BPF programs are, if they are compiled.
///
/// # Errors
/// When the text is no run of a plan, or there is no such fabric.
pub fn check_run(
    run_json: &str,
    by_repnet: bool,
    fabric: &str,
    programs: Option<&Path>,
) -> Result<Checked, String> {
    let plan: RunPlan = serde_json::from_str(run_json).map_err(|error| error.to_string())?;
    let fabric = fabrics::find(fabric)?;
    let scenario = scenario(&plan)?;
    let mut checked = check(&scenario, by_repnet, fabric, programs);
    checked.busiest = expected::busiest(&scenario);
    checked.done("lab.fabric", format!("{}: {}", fabric.name(), fabric.about()));
    checked.done("horizon", "a second of it takes a second");
    checked.only(
        scenario.host.jitter == Time::ZERO,
        "host.jitter",
        "real hosts have their own",
        "real hosts have their own: leave it out",
    );
    checked.done("measure", "by the simulator's code, of what hosts and fabric tell");
    let labels = &plan.config.labels;
    let asked = [
        (labels.segments, "measure.segments"),
        (labels.attribution, "measure.attribution"),
        (labels.instants.is_some(), "measure.fabric"),
    ];
    for (_, field) in asked.into_iter().filter(|(asked, _)| *asked) {
        checked.near(
            field,
            "not recorded: it follows the simulator's packets, which real hosts do not tell of",
        );
    }
    Ok(checked)
}

pub(crate) fn scenario(plan: &RunPlan) -> Result<Scenario, String> {
    to_scenario(plan, &no_tables).map_err(|error| error.to_string())
}

/// What becomes of every field of a run.
pub fn check(
    scenario: &Scenario,
    by_repnet: bool,
    fabric: &dyn Kind,
    programs: Option<&Path>,
) -> Checked {
    let mut checked = Checked::new(programs::available(programs));
    let hosts = scenario.graph.hosts;
    let most = if by_repnet { MOST_NODES } else { MOST_HOSTS };
    checked.only(
        hosts <= most,
        "topology",
        "a network namespace for each host, and the fabric's switches and links between them",
        format!("{hosts} hosts: the lab carries {most} at most"),
    );
    let Scheme { transport, queue: _, balance: _, replicate } = &scenario.scheme;
    transports::check(&mut checked, transport, by_repnet, fabric);
    fabric.check(&mut checked, scenario);
    replication::check(&mut checked, replicate, by_repnet, scenario.flows.len());
    traffic::check(&mut checked, scenario, by_repnet, fabric);
    checked
}
