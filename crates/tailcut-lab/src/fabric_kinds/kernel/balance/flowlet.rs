//! Flowlet switching, by a BPF program (`bpf/flowlet.c`).

use tailcut_net::balance::BalanceSpec;
#[cfg(target_os = "linux")]
use tailcut_net::scenario::Scenario;
#[cfg(target_os = "linux")]
use tailcut_net::topology::SwitchId;

use super::{KernelBalancer, PathSelector, check_program};
use crate::answers::RunCheck;
#[cfg(target_os = "linux")]
use crate::fabric_kinds::kernel::switch_programs::{ProgramSpec, settings};

pub(super) struct KernelFlowlet;

impl KernelBalancer for KernelFlowlet {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Flowlet(_))
    }
    fn check(&self, checked: &mut RunCheck, _spec: &BalanceSpec) {
        check_program(
            checked,
            "a BPF program with the simulator's table; it uses the kernel's random numbers, and \
             the time at which a packet arrives",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Program
    }
    #[cfg(target_os = "linux")]
    fn program(&self, scenario: &Scenario, _switch: SwitchId) -> Option<ProgramSpec> {
        let BalanceSpec::Flowlet(spec) = &scenario.scheme.balance else { return None };
        let framing = scenario.host.framing_overhead.0 as u32;
        Some(ProgramSpec {
            name: "flowlet",
            settings: settings(&[spec.gap.as_ns(), spec.bytes.0], &[spec.entries, framing]),
            empty: vec![("table", spec.entries)],
            filled: vec![],
        })
    }
}
