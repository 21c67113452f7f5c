//! Requests for a run, and the preparation of what they ask for.

use std::path::PathBuf;

use serde::Deserialize;
use tailcut_experiment::{CaptureRequest, RunPlan};
use tailcut_net::predict_flows;

use crate::check;
use crate::congestion::program::CongestionProgram;
use crate::fabric_kinds::kind::FabricKind;
use crate::fabric_kinds::{self, KINDS};
use crate::hosts::guests::Guest;
use crate::hosts::idle_flows::IdlePlan;
use crate::prepared::Prepared;

/// The headers of a segment at most, in bytes: subtracting them from the MTU never overstates a
/// segment's payload.
const MAX_HEADERS: u64 = 52;

/// A request for a run, as JSON.
#[derive(Debug, Deserialize)]
struct RunRequest {
    /// The run, an element of the plan's `runs`.
    run: RunPlan,
    /// The command that starts `repnet-bench`, if it is to carry the flows.
    program: Option<Vec<String>>,
    /// The callers' programs that run on hosts.
    #[serde(default)]
    guests: Vec<Guest>,
    /// The capture to write, if any.
    #[serde(default)]
    capture: Option<CaptureRequest>,
    /// The name of the fabric's kind.
    #[serde(default = "default_fabric")]
    fabric: String,
    /// The directory of compiled BPF programs, if there is one.
    #[serde(default)]
    programs: Option<PathBuf>,
}

fn default_fabric() -> String {
    KINDS[0].name().to_owned()
}

/// Parses and checks a request, and prepares the run; returns it with its kind of fabric.
///
/// # Errors
/// The request is not valid, or the lab cannot realise the run.
pub fn prepare(asked: &str) -> Result<(&'static dyn FabricKind, Prepared), String> {
    let RunRequest { run, program, guests, capture, fabric, programs } =
        serde_json::from_str(asked).map_err(|error| error.to_string())?;
    let scenario = check::scenario(&run)?;
    let fabric = fabric_kinds::find(&fabric)?;
    let checked = check::check(&scenario, program.is_some(), fabric, programs.as_deref());
    if !checked.is_possible() {
        return Err("the lab cannot realise this run: `tailcut check FILE --on lab` lists the \
                    fields that prevent it"
            .to_owned());
    }
    let mut hosts = checked.hosts;
    let register = |program: &CongestionProgram| program.register(programs.as_deref());
    let registered = hosts.program.as_ref().map(register).transpose()?;
    let congestion = registered.map(|(name, kept)| {
        hosts.congestion = name;
        kept
    });
    let predicted = predict_flows(&scenario).map_err(|error| error.to_string())?;
    let alone =
        IdlePlan::new(&scenario, hosts.mtu - MAX_HEADERS).map_err(|error| error.to_string())?;
    if let Some(guest) = guests.iter().find(|guest| guest.host >= scenario.graph.hosts) {
        return Err(format!("a guest is to run on host {}, which does not exist", guest.host));
    }
    let programs = fabric.load_programs(&scenario, programs.as_deref())?;
    let taken_down = fabric.ports_taken_down(&scenario).map_err(|error| error.to_string())?;
    let prepared = Prepared {
        scenario,
        flows: predicted,
        idle: alone,
        hosts,
        program,
        guests,
        capture,
        taken_down,
        programs,
        congestion,
    };
    Ok((fabric, prepared))
}
