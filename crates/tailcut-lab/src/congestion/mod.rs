//! Which of the kernel's congestion controls a plan's is: a file for each, and a line in [`CONTROLS`].

mod bbr;
mod cubic;
mod dctcp;
mod reno;

use std::fs;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::path::Path;

use serde::Serialize;
use tailcut_net::transport::tcp::congestion::CongestionSpec;

#[cfg(target_os = "linux")]
use crate::programs::compiled;
use crate::settings::{Answer, Checked, Row};
#[cfg(target_os = "linux")]
use crate::sys::bpf::Object;
#[cfg(target_os = "linux")]
use crate::sys::unlike_others;

/// A congestion control of kernels.
pub(crate) trait Control: Sync {
    /// The kernel's name of it.
    fn name(&self) -> &'static str;
    /// What runs need it for.
    fn needed_for(&self) -> &'static str;
    /// What it takes of a kernel.
    fn remedy(&self) -> &'static str;
    /// Whether no run goes without.
    fn is_of_every_run(&self) -> bool {
        false
    }
    /// The lab's own program for it, with the parameters that plans have by default, where there is one.
    fn program(&self) -> Option<Program> {
        None
    }
    /// What becomes of a plan's, if it is this one.
    fn check(&self, spec: &CongestionSpec, here: &Here) -> Option<Found>;
}

/// All that hosts can be set to.
pub(crate) const CONTROLS: [&dyn Control; 4] =
    [&reno::Reno, &cubic::Cubic, &bbr::Bbr, &dctcp::Dctcp];

/// What there is here.
pub(crate) struct Here {
    /// Whether the kernel has the control loaded.
    pub offered: bool,
    /// Whether BPF programs can be loaded, or why not.
    pub programs: Result<(), String>,
}

/// What becomes of a plan's congestion control.
pub(crate) struct Found {
    answer: Answer,
    text: String,
    program: Option<Program>,
}

impl Found {
    fn new(answer: Answer, text: impl Into<String>) -> Found {
        Found { answer, text: text.into(), program: None }
    }
    fn done(text: impl Into<String>) -> Found {
        Found::new(Answer::Done, text)
    }
    fn near(text: impl Into<String>) -> Found {
        Found::new(Answer::Near, text)
    }
    fn fatal(text: impl Into<String>) -> Found {
        Found::new(Answer::Fatal, text)
    }
    /// A program of the lab's does it.
    fn by(self, program: Program) -> Found {
        Found { program: Some(program), ..self }
    }
}

/// How the row of a control is called in what a kernel offers.
pub(crate) fn row(control: &dyn Control) -> Row {
    Row {
        name: format!("hosts with {}", control.name()),
        needed_for: control.needed_for(),
        remedy: control.remedy(),
        fatal: control.is_of_every_run(),
    }
}

/// Whether the kernel has a congestion control loaded, by its name.
pub(crate) fn offered(name: &str) -> bool {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    there.is_ok_and(|there| there.split_whitespace().any(|one| one == name))
}

/// What becomes of the plan's; `offered` says what this kernel has.
pub(crate) fn check(checked: &mut Checked, spec: &CongestionSpec, offered: impl Fn(&str) -> bool) {
    const FIELD: &str = "transport.congestion";
    let found = CONTROLS.iter().find_map(|control| {
        let here = Here { offered: offered(control.name()), programs: checked.programs.clone() };
        control.check(spec, &here).map(|found| (control, found))
    });
    let Some((control, Found { answer, text, program })) = found else {
        return checked.fatal(FIELD, "no kernel has this congestion control");
    };
    checked.say(FIELD, answer, text);
    if answer != Answer::Fatal {
        control.name().clone_into(&mut checked.hosts.congestion);
        checked.hosts.program = program;
        checked.needs(row(*control).name, FIELD);
    }
}

/// A congestion control that is a BPF program of the lab's: `bpf/NAME.c`, whose `struct_ops` is called so, too, and whose map
/// `settings` has its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// As its file is called.
    pub name: &'static str,
    /// Its parameters, in the order of its `struct settings`.
    pub settings: Vec<u32>,
}

#[cfg(target_os = "linux")]
impl Program {
    /// Registers the program, for as long as what this gives is kept by any process, under a name that nobody else has. Only the
    /// machine's root may do so. `directory` is where programs are, once they are compiled.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn register(&self, directory: Option<&Path>) -> Result<(String, OwnedFd), String> {
        /// What the source has for a name: as many letters as there may be.
        const NAME: &[u8] = b"tailcut-by-name";
        let file = self.name;
        let mut bytes = compiled(directory, file)?;
        let name = format!("tailcut{:08x}", unlike_others().map_err(|error| error.to_string())?);
        let place = bytes.windows(NAME.len()).position(|there| there == NAME);
        let place = place.ok_or_else(|| {
            format!("the BPF program {file} has another name: run `make lab-bpf` again")
        })?;
        bytes[place..][..NAME.len()].copy_from_slice(name.as_bytes());
        let registered = || {
            let object = Object::load(&bytes, &[], Some(file))?;
            let told: Vec<u8> = self.settings.iter().flat_map(|one| one.to_ne_bytes()).collect();
            object.map("settings")?.set(&0_u32.to_ne_bytes(), &told)?;
            object.register(file)
        };
        let kept = registered().map_err(|error| format!("the BPF program {file}: {error}"))?;
        Ok((name, kept))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Told;

    /// What becomes of a plan's, where the kernel has all of them or none, and where programs can be loaded or not.
    pub(super) fn checked(spec: &serde_json::Value, there: bool, programs: bool) -> Checked {
        let spec: CongestionSpec = serde_json::from_value(spec.clone()).expect("it is one");
        let programs = programs.then_some(()).ok_or_else(|| "nothing is compiled".to_owned());
        let mut checked = Checked::new(programs);
        check(&mut checked, &spec, |_| there);
        checked
    }

    /// What is said of it.
    pub(super) fn told(spec: &serde_json::Value, there: bool, programs: bool) -> Told {
        checked(spec, there, programs).told.remove(0)
    }

    #[test]
    fn what_hosts_are_set_to_is_needed_of_the_kernel() {
        let needs = |spec: serde_json::Value| -> Vec<String> {
            checked(&spec, false, true).needs.into_iter().map(|need| need.offer).collect()
        };
        assert_eq!(needs(json!({ "kind": "newreno" })), ["hosts with reno"]);
        assert_eq!(needs(json!({ "kind": "cubic" })), ["hosts with cubic"]);
        assert_eq!(needs(json!({ "kind": "dctcp" })), ["hosts with dctcp"]);
        assert!(needs(json!({ "kind": "cubic", "beta": 0.5 })).is_empty());
    }

    #[test]
    fn what_no_file_knows_no_kernel_has() {
        let swift = told(&json!({ "kind": "swift" }), true, true);
        assert_eq!((swift.answer, swift.text.starts_with("no kernel")), (Answer::Fatal, true));
    }
}
