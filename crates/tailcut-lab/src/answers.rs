//! Answers of the lab to a plan: how exactly it realises each field, and what that needs of the machine.

use serde::Serialize;
use tailcut_engine::Time;

use crate::host_settings::HostSettings;

/// What becomes of a field of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Realisation {
    /// As the plan says.
    Done,
    /// Nearly: the text says how it departs.
    Near,
    /// Not at all: the run is refused.
    Fatal,
}

/// A field of the plan, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldOutcome {
    /// The field, as `transport.initial_rto`.
    pub field: String,
    /// What becomes of it.
    #[serde(rename = "answer")]
    pub realisation: Realisation,
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
pub struct CapabilityRow {
    /// As what [`probe`](crate::probe) finds is called.
    pub name: String,
    /// What runs need it for.
    pub needed_for: &'static str,
    /// How to get it.
    pub remedy: &'static str,
    /// Whether no run goes without.
    pub fatal: bool,
}

/// The answers for a run, and the hosts' settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunCheck {
    /// A field each.
    #[serde(rename = "told")]
    pub outcomes: Vec<FieldOutcome>,
    /// What the hosts are set to; what it says is meant only if nothing is fatal.
    pub hosts: HostSettings,
    /// What it takes that not every machine has.
    pub needs: Vec<Need>,
    /// Frames a second that hosts send at the busiest, at the most.
    #[serde(rename = "busiest")]
    pub peak_frame_rate: f64,
    /// Whether BPF programs can be loaded, or why not.
    #[serde(skip)]
    pub programs: Result<(), String>,
}

impl RunCheck {
    /// With no answer yet.
    pub(crate) fn new(programs: Result<(), String>) -> RunCheck {
        RunCheck {
            outcomes: vec![],
            hosts: HostSettings::default(),
            needs: vec![],
            peak_frame_rate: 0.0,
            programs,
        }
    }
    pub(crate) fn record(&mut self, field: &str, answer: Realisation, text: impl Into<String>) {
        self.outcomes.push(FieldOutcome {
            field: field.to_owned(),
            realisation: answer,
            text: text.into(),
        });
    }
    pub(crate) fn done(&mut self, field: &str, text: impl Into<String>) {
        self.record(field, Realisation::Done, text);
    }
    pub(crate) fn near(&mut self, field: &str, text: impl Into<String>) {
        self.record(field, Realisation::Near, text);
    }
    pub(crate) fn fatal(&mut self, field: &str, text: impl Into<String>) {
        self.record(field, Realisation::Fatal, text);
    }
    /// `done` if it holds, otherwise `fatal`.
    pub(crate) fn done_or_fatal(
        &mut self,
        holds: bool,
        field: &str,
        how: &str,
        why_not: impl Into<String>,
    ) {
        match holds {
            true => self.done(field, how),
            false => self.fatal(field, why_not),
        }
    }
    /// `done` if it holds, otherwise `near`.
    pub(crate) fn done_or_near(
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
        self.outcomes.iter().all(|told| told.realisation != Realisation::Fatal)
    }
}

/// Facts about a kind of fabric on which the checks of hosts and traffic depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FabricFacts {
    /// Whether it forwards frames to the extra addresses of hosts, which subflows use.
    pub routes_extra_addresses: bool,
    /// The shortest interval at which queue lengths can be read; zero if at any time.
    pub sample_interval: Time,
}
