//! What a run needs before anything is started.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use tailcut_experiment::CaptureRequest;
use tailcut_net::PredictedFlow;
use tailcut_net::scenario::Scenario;

use tailcut_net::topology::PortId;

use crate::host_settings::HostSettings;
use crate::hosts::guests::Guest;
use crate::hosts::idle_flows::IdlePlan;
use crate::sys::bpf::BpfObject;

/// What a run needs: the scenario, what is known of its flows, and what hosts are set to.
pub struct Prepared {
    /// The run.
    pub scenario: Scenario,
    /// Its flows.
    pub flows: Vec<PredictedFlow>,
    /// The flows alone before the run and after it.
    pub idle: IdlePlan,
    /// What hosts are set to.
    pub hosts: HostSettings,
    /// How `repnet-bench` is started, if it carries the flows.
    pub program: Option<Vec<String>>,
    /// What else runs on hosts.
    pub guests: Vec<Guest>,
    /// What to write of what hosts send and receive.
    pub capture: Option<CaptureRequest>,
    /// Directed links whose interfaces are taken down during the run.
    pub taken_down: BTreeSet<PortId>,
    /// Programs of its switches, if it has any.
    pub programs: Vec<BpfObject>,
    /// What keeps the hosts' congestion control registered, if it is the lab's own.
    pub congestion: Option<OwnedFd>,
}

impl Prepared {
    /// Whether the kernel runs programs of the lab's, which libbpf has loaded.
    pub fn uses_libbpf(&self) -> bool {
        !self.programs.is_empty() || self.congestion.is_some()
    }
}
