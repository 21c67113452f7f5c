//! Flowlet switching, by a BPF program (`bpf/flowlet.c`).

use tailcut_net::balance::BalanceSpec;
#[cfg(target_os = "linux")]
use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::SwitchId;

use super::{By, Choice, by_program};
#[cfg(target_os = "linux")]
use crate::fabrics::kernel::programs::{Wanted, settings};
use crate::settings::Checked;

pub(super) struct Flowlet;

impl Choice for Flowlet {
    fn is(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Flowlet(_))
    }
    fn check(&self, checked: &mut Checked, _spec: &BalanceSpec) {
        by_program(
            checked,
            "a BPF program with the simulator's table; what it draws are the kernel's numbers, and its time is when a packet comes in",
        );
    }
    fn by(&self) -> By {
        By::Program
    }
    #[cfg(target_os = "linux")]
    fn wanted(&self, scenario: &Scenario, _switch: SwitchId) -> Option<Wanted> {
        let BalanceSpec::Flowlet(spec) = &scenario.scheme.balance else { return None };
        let framing = scenario.host.framing_overhead.0 as u32;
        Some(Wanted {
            name: "flowlet",
            settings: settings(&[spec.gap.as_ns(), spec.bytes.0], &[spec.entries, framing]),
            empty: vec![("table", spec.entries)],
            filled: vec![],
        })
    }
}
