//! The kernel lab.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::to_json;

/// Returns how the kernel lab realises every field of a run of a plan (an element of its `runs`, as
/// JSON), as JSON: {told: [{field, answer: "done" | "near" | "fatal", text}], hosts, needs:
/// [{offer, field}], busiest: frames per second}.
///
/// `by_repnet` says whether repnet-bench carries the flows, `fabric` names the kind of fabric, and
/// `programs` is the directory of compiled BPF programs, if there is one. Raises ValueError if the
/// text is not a run of a plan, or if there is no such fabric.
#[pyfunction]
pub fn lab_check(
    py: Python<'_>,
    plan_run_json: &str,
    by_repnet: bool,
    fabric: &str,
    programs: Option<PathBuf>,
) -> PyResult<String> {
    let checked = py.detach(|| {
        tailcut_lab::check::check_run(plan_run_json, by_repnet, fabric, programs.as_deref())
    });
    to_json(&checked.map_err(PyValueError::new_err)?)
}

/// Carries out one run of a plan over real kernels and writes reports to standard output, one JSON
/// text per line.
///
/// The request is JSON: {run: an element of the plan's `runs`, program: the command of repnet-bench
/// if it carries the flows, else null, guests: a list of {host, command}, capture: {file, spec} or
/// null, fabric: a name of `lab_fabrics`, programs: the directory of compiled BPF programs, or
/// null}.
///
/// The process must have one thread and cannot be used for anything else afterwards. The run stops
/// when standard input ends. Raises ValueError if the run cannot begin.
#[cfg(target_os = "linux")]
#[pyfunction]
pub fn lab_run(asked: &str) -> PyResult<()> {
    tailcut_lab::supervisor::run(asked).map_err(PyValueError::new_err)
}

/// Returns the lab's kinds of fabric, as JSON: a list of {name, about, delays_when_idle}. The first
/// is the default.
#[pyfunction]
pub fn lab_fabrics() -> PyResult<String> {
    let kinds = tailcut_lab::fabric_kinds::KINDS.map(|kind| {
        serde_json::json!({
            "name": kind.name(),
            "about": kind.about(),
            "delays_when_idle": kind.delays_when_idle(),
        })
    });
    to_json(&kinds)
}

/// Returns what the lab's congestion controls and transports need of a machine, as JSON: a list of
/// {name, needed_for, remedy, fatal}.
#[pyfunction]
pub fn lab_rows() -> PyResult<String> {
    to_json(&tailcut_lab::check::capability_rows())
}

/// Returns what this kernel offers the lab, as JSON: a list of {name, offered, found}.
///
/// `programs` is the directory of compiled BPF programs, if there is one. `timers` also measures
/// how late the machine's timers are, which takes most of a second. Requires a process as `lab_run`
/// does.
#[cfg(target_os = "linux")]
#[pyfunction]
pub fn lab_probe(programs: Option<PathBuf>, timers: bool) -> PyResult<String> {
    to_json(&tailcut_lab::probe::probe(programs.as_deref(), timers))
}
