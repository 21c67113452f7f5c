//! Answers of the lab to a plan: how exactly it realises each field, and what that needs of the
//! machine.

use serde::Serialize;
use tailcut_engine::Time;

use crate::host_settings::HostSettings;

/// How exactly the lab realises a field of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Realisation {
    /// Exactly as planned.
    Done,
    /// With a difference, which the text names.
    Near,
    /// Impossible: the run is refused.
    Fatal,
}

/// A field of the plan, how exactly the lab realises it, and by what means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldOutcome {
    /// The field's key, such as `transport.initial_rto`.
    pub field: String,
    /// How exactly the field is realised.
    #[serde(rename = "answer")]
    pub realisation: Realisation,
    /// The means, the difference, or the reason why it is impossible.
    pub text: String,
}

/// A capability of the kernel or the system that a field of the plan needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The capability's name in the answers of [`probe`](crate::probe), or `repnet-bench`.
    pub offer: String,
    /// The field that needs it.
    pub field: String,
}

/// A row of `tailcut lab`: a capability of the kernel or the system that schemes need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CapabilityRow {
    /// The capability's name in the answers of [`probe`](crate::probe).
    pub name: String,
    /// What runs need it for.
    pub needed_for: &'static str,
    /// How to obtain it.
    pub remedy: &'static str,
    /// Whether every run needs it.
    pub fatal: bool,
}

/// The result of checking a run: the outcome of each field, and the settings of the hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunCheck {
    /// The outcomes, one per field.
    #[serde(rename = "told")]
    pub outcomes: Vec<FieldOutcome>,
    /// The settings of the hosts; valid if no outcome is fatal.
    pub hosts: HostSettings,
    /// The capabilities that the run needs and that not every machine has.
    pub needs: Vec<Need>,
    /// An upper bound of the frames that hosts send per second, over the busiest 50 ms.
    #[serde(rename = "busiest")]
    pub peak_frame_rate: f64,
    /// Whether BPF programs can be loaded, or the reason why not.
    #[serde(skip)]
    pub programs: Result<(), String>,
}

impl RunCheck {
    /// Creates an empty check.
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
    /// Records `done` if the condition holds, otherwise `fatal`.
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
    /// Records `done` if the condition holds, otherwise `near`.
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
    /// Records that a field needs a capability which the kernel or the system may lack.
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

    /// Whether no outcome is fatal, so that the run may start.
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
