//! A run that is ready to be started.

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

/// A run with everything that its processes need: the scenario, predictions for its flows, and the
/// settings of the hosts.
pub struct Prepared {
    /// The simulator's input for the run.
    pub scenario: Scenario,
    /// Its flows, with their predicted records and keys.
    pub flows: Vec<PredictedFlow>,
    /// The idle flows before and after the run.
    pub idle: IdlePlan,
    /// The settings of the hosts.
    pub hosts: HostSettings,
    /// The command that starts `repnet-bench`, if it carries the flows.
    pub program: Option<Vec<String>>,
    /// The callers' programs that run on hosts.
    pub guests: Vec<Guest>,
    /// The capture to write, if one was requested.
    pub capture: Option<CaptureRequest>,
    /// Directed links whose interfaces are taken down during the run.
    pub taken_down: BTreeSet<PortId>,
    /// The BPF programs of the switches, one each, if the balancer needs them.
    pub programs: Vec<BpfObject>,
    /// The registration of the hosts' congestion control, if it is a BPF program.
    pub congestion: Option<OwnedFd>,
}

impl Prepared {
    /// Whether libbpf has loaded programs for this run.
    pub fn uses_libbpf(&self) -> bool {
        !self.programs.is_empty() || self.congestion.is_some()
    }
}
