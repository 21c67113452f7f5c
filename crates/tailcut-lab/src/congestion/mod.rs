//! Congestion controls of kernels. A new one is a file here and a line in [`CONTROLS`].

mod bbr;
mod cubic;
mod dctcp;
pub(crate) mod program;
mod reno;

use std::fs;

use tailcut_net::transport::tcp::congestion::CongestionSpec;

use crate::answers::{CapabilityRow, Realisation, RunCheck};
use program::CongestionProgram;

/// A congestion control that hosts can use.
pub(crate) trait KernelControl: Sync {
    /// The kernel's name of the congestion control.
    fn name(&self) -> &'static str;
    /// The settings of a plan that need it.
    fn needed_for(&self) -> &'static str;
    /// How to obtain a kernel that has it.
    fn remedy(&self) -> &'static str;
    /// Whether every run needs it.
    fn is_required(&self) -> bool {
        false
    }
    /// The lab's BPF program for it with default parameters, if there is one.
    fn program(&self) -> Option<CongestionProgram> {
        None
    }
    /// Returns how exactly it realises the plan's congestion control; none if the plan has another.
    fn check(&self, spec: &CongestionSpec, here: &KernelSupport) -> Option<ControlOutcome>;
}

/// All congestion controls that hosts can use.
pub(crate) const CONTROLS: [&dyn KernelControl; 4] =
    [&reno::KernelReno, &cubic::KernelCubic, &bbr::KernelBbr, &dctcp::KernelDctcp];

/// Support of this kernel for a congestion control.
pub(crate) struct KernelSupport {
    /// Whether the kernel has the control loaded.
    pub offered: bool,
    /// Whether BPF programs can be loaded, or the reason why not.
    pub programs: Result<(), String>,
}

/// The outcome of checking a plan's congestion control.
pub(crate) struct ControlOutcome {
    answer: Realisation,
    text: String,
    program: Option<CongestionProgram>,
}

impl ControlOutcome {
    fn new(answer: Realisation, text: impl Into<String>) -> ControlOutcome {
        ControlOutcome { answer, text: text.into(), program: None }
    }
    fn done(text: impl Into<String>) -> ControlOutcome {
        ControlOutcome::new(Realisation::Done, text)
    }
    fn near(text: impl Into<String>) -> ControlOutcome {
        ControlOutcome::new(Realisation::Near, text)
    }
    fn fatal(text: impl Into<String>) -> ControlOutcome {
        ControlOutcome::new(Realisation::Fatal, text)
    }
    /// Adds the BPF program that implements it.
    fn by(self, program: CongestionProgram) -> ControlOutcome {
        ControlOutcome { program: Some(program), ..self }
    }
}

/// Returns the row of a control in the list of capabilities.
pub(crate) fn capability(control: &dyn KernelControl) -> CapabilityRow {
    CapabilityRow {
        name: format!("hosts with {}", control.name()),
        needed_for: control.needed_for(),
        remedy: control.remedy(),
        fatal: control.is_required(),
    }
}

/// Whether the kernel has a congestion control of this name loaded.
pub(crate) fn is_available(name: &str) -> bool {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    there.is_ok_and(|there| there.split_whitespace().any(|one| one == name))
}

/// Checks the plan's congestion control. `offered` reports which controls this kernel has loaded.
pub(crate) fn check(checked: &mut RunCheck, spec: &CongestionSpec, offered: impl Fn(&str) -> bool) {
    const FIELD: &str = "transport.congestion";
    let found = CONTROLS.iter().find_map(|control| {
        let here =
            KernelSupport { offered: offered(control.name()), programs: checked.programs.clone() };
        control.check(spec, &here).map(|found| (control, found))
    });
    let Some((control, ControlOutcome { answer, text, program })) = found else {
        return checked.fatal(FIELD, "no kernel has this congestion control");
    };
    checked.record(FIELD, answer, text);
    if answer != Realisation::Fatal {
        control.name().clone_into(&mut checked.hosts.congestion);
        checked.hosts.program = program;
        checked.needs(capability(*control).name, FIELD);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answers::FieldOutcome;

    /// Returns the check of a plan's congestion control, on a kernel with all controls loaded or
    /// none, and with or without BPF programs.
    pub(super) fn checked(spec: &serde_json::Value, there: bool, programs: bool) -> RunCheck {
        let spec: CongestionSpec = serde_json::from_value(spec.clone()).expect("it is one");
        let programs = programs.then_some(()).ok_or_else(|| "nothing is compiled".to_owned());
        let mut checked = RunCheck::new(programs);
        check(&mut checked, &spec, |_| there);
        checked
    }

    /// Returns the outcome of that check.
    pub(super) fn told(spec: &serde_json::Value, there: bool, programs: bool) -> FieldOutcome {
        checked(spec, there, programs).outcomes.remove(0)
    }

    #[test]
    fn the_chosen_congestion_control_is_a_needed_capability() {
        let needs = |spec: serde_json::Value| -> Vec<String> {
            checked(&spec, false, true).needs.into_iter().map(|need| need.offer).collect()
        };
        assert_eq!(needs(json!({ "kind": "newreno" })), ["hosts with reno"]);
        assert_eq!(needs(json!({ "kind": "cubic" })), ["hosts with cubic"]);
        assert_eq!(needs(json!({ "kind": "dctcp" })), ["hosts with dctcp"]);
        assert!(needs(json!({ "kind": "cubic", "beta": 0.5 })).is_empty());
    }

    #[test]
    fn an_unknown_congestion_control_is_fatal() {
        let swift = told(&json!({ "kind": "swift" }), true, true);
        assert_eq!(
            (swift.realisation, swift.text.starts_with("no kernel")),
            (Realisation::Fatal, true)
        );
    }
}
