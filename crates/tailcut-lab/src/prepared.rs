//! What a run needs before anything is started.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::Deserialize;
use tailcut_experiment::{CaptureRequest, RunPlan};
use tailcut_net::scenario::Scenario;
use tailcut_net::{Foretold, foretell};

use crate::congestion::Program;
use crate::fabrics::{self, Kind};
use crate::hosts::alone::Plan;
use crate::hosts::driver::HostFlow;
use crate::hosts::guests::Guest;
use crate::settings::{self, HostSettings};
use crate::sys::bpf::Object;

/// Headers of a segment at most: one never has fewer bytes of payload than an MTU without them.
const HEADERS: u64 = 52;

/// What is to be carried out.
#[derive(Debug, Deserialize)]
struct Asked {
    /// A run of a plan.
    run: RunPlan,
    /// How `repnet-bench` is started, if it is to carry the flows.
    program: Option<Vec<String>>,
    /// What else runs on hosts.
    #[serde(default)]
    guests: Vec<Guest>,
    /// What to write of what hosts send and receive.
    #[serde(default)]
    capture: Option<CaptureRequest>,
    /// The name of what lies between the hosts.
    #[serde(default = "first_kind")]
    fabric: String,
    /// Where BPF programs are, if they are compiled.
    #[serde(default)]
    programs: Option<PathBuf>,
}

fn first_kind() -> String {
    fabrics::KINDS[0].name().to_owned()
}

/// What a run needs: the scenario, what is known of its flows, and what hosts are set to.
pub struct Prepared {
    /// The run.
    pub scenario: Scenario,
    /// Its flows.
    pub foretold: Vec<Foretold>,
    /// The flows alone before the run and after it.
    pub alone: Plan,
    /// What hosts are set to.
    pub hosts: HostSettings,
    /// How `repnet-bench` is started, if it carries the flows.
    pub program: Option<Vec<String>>,
    /// What else runs on hosts.
    pub guests: Vec<Guest>,
    /// What to write of what hosts send and receive.
    pub capture: Option<CaptureRequest>,
    /// What lies between the hosts.
    pub fabric: &'static dyn Kind,
    /// Programs of its switches, if it has any.
    pub programs: Vec<Object>,
    /// What keeps the hosts' congestion control registered, if it is the lab's own.
    pub congestion: Option<OwnedFd>,
}

impl Prepared {
    /// Whether the kernel runs programs of the lab's, which libbpf has loaded.
    pub fn by_programs(&self) -> bool {
        !self.programs.is_empty() || self.congestion.is_some()
    }
}

/// Takes apart what was asked for.
///
/// # Errors
/// When it is no run, or none that the lab can carry.
pub fn prepare(asked: &str) -> Result<Prepared, String> {
    let Asked { run, program, guests, capture, fabric, programs } =
        serde_json::from_str(asked).map_err(|error| error.to_string())?;
    let scenario = settings::scenario(&run)?;
    let fabric = fabrics::find(&fabric)?;
    let checked = settings::check(&scenario, program.is_some(), fabric, programs.as_deref());
    if !checked.is_possible() {
        return Err("the lab cannot realise this run; ask `tailcut check --on lab`".to_owned());
    }
    let mut hosts = checked.hosts;
    let register = |program: &Program| program.register(programs.as_deref());
    let registered = hosts.program.as_ref().map(register).transpose()?;
    let congestion = registered.map(|(name, kept)| {
        hosts.congestion = name;
        kept
    });
    let foretold = foretell(&scenario).map_err(|error| error.to_string())?;
    let alone = Plan::new(&scenario, hosts.mtu - HEADERS).map_err(|error| error.to_string())?;
    if let Some(guest) = guests.iter().find(|guest| guest.host >= scenario.graph.hosts) {
        return Err(format!("there is no host {} for a guest", guest.host));
    }
    let programs = fabric.programs(&scenario, programs.as_deref())?;
    Ok(Prepared {
        scenario,
        foretold,
        alone,
        hosts,
        program,
        guests,
        capture,
        fabric,
        programs,
        congestion,
    })
}

/// The flows, as hosts see them.
pub fn host_flows(foretold: &[Foretold]) -> Vec<HostFlow> {
    let flows = foretold.iter().enumerate().map(|(index, foretold)| {
        let flow = &foretold.record.flow;
        HostFlow {
            index: index as u64,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.bytes,
            start_ns: flow.start.as_ns(),
            source_port: foretold.key.sport(),
        }
    });
    flows.collect()
}
