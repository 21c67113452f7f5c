//! The extension module `tailcut._core`: parse, plan, run, describe. No logic.

mod arrays;
mod tables;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tailcut_experiment::{CaptureRequest, Column, Failure, Plan, RunResult, TableReader, Values};
use tailcut_net::measure::records::{RunCounters, Series};

use crate::arrays::{array, texts};
use crate::tables::Tables;

// Named as it is imported, so that it passes between processes.
create_exception!(
    tailcut._core,
    ExperimentError,
    PyValueError,
    "An experiment file is wrong.\n\n\
     `rendered` is the text to show (every error with its source line). The attributes `code`, `message`, `file`,\n\
     `line`, `column`, `key`, `expected` and `hint` are those of the first error; `errors` lists all as dicts."
);

fn experiment_error(py: Python<'_>, failure: &Failure) -> PyErr {
    let error = ExperimentError::new_err(failure.to_string());
    let describe = || -> PyResult<()> {
        let value = error.value(py);
        let errors = PyList::empty(py);
        for diagnostic in &failure.diagnostics {
            let entry = PyDict::new(py);
            entry.set_item("code", &diagnostic.code)?;
            entry.set_item("message", &diagnostic.message)?;
            entry.set_item("file", &diagnostic.file)?;
            entry.set_item("line", (diagnostic.line > 0).then_some(diagnostic.line))?;
            entry.set_item("column", (diagnostic.line > 0).then_some(diagnostic.column))?;
            entry.set_item("key", &diagnostic.key)?;
            entry.set_item("expected", diagnostic.expected.as_deref())?;
            entry.set_item("hint", diagnostic.hint.as_deref())?;
            entry.set_item("rendered", &diagnostic.rendered)?;
            errors.append(entry)?;
        }
        if let Ok(first) = errors.get_item(0) {
            for (name, item) in first.cast::<PyDict>()?.iter() {
                value.setattr(name.extract::<&str>()?, item)?;
            }
        }
        value.setattr("errors", errors)?;
        value.setattr("rendered", failure.to_string())
    };
    match describe() {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// The plan of an experiment file, as JSON.
///
/// `overrides` are (key, value) pairs as in `--set traffic.load=0.3`; values are written as in TOML.
/// `read_table(content, wanted)` takes the bytes of a Parquet file apart: a list of (name, kind, cells) for its columns, in
/// which kind is `unsigned`, `signed`, `real`, `text` or `other` (as text), or `unread` with no cells for a name that is
/// not in `wanted`; it raises ValueError when they are none. Raises `ExperimentError`.
#[pyfunction]
#[pyo3(signature = (path, overrides=Vec::new(), read_table=None))]
fn load(
    py: Python<'_>,
    path: PathBuf,
    overrides: Vec<(String, String)>,
    read_table: Option<Py<PyAny>>,
) -> PyResult<String> {
    planned(py, read_table, |tables| tailcut_experiment::load(&path, &overrides, tables))
}

/// The plan of an experiment given as text, as JSON; the rest is as for `load`.
///
/// `name` stands where messages and the plan name the file. Files that the text names lie relative to `directory`.
#[pyfunction]
#[pyo3(signature = (name, text, directory, overrides=Vec::new(), read_table=None))]
fn loads(
    py: Python<'_>,
    name: &str,
    text: &str,
    directory: PathBuf,
    overrides: Vec<(String, String)>,
    read_table: Option<Py<PyAny>>,
) -> PyResult<String> {
    planned(py, read_table, |tables| {
        tailcut_experiment::load_text(name, text, &directory, &overrides, tables)
    })
}

fn planned(
    py: Python<'_>,
    read_table: Option<Py<PyAny>>,
    load: impl FnOnce(&TableReader) -> Result<Plan, Failure> + Send,
) -> PyResult<String> {
    let tables = Tables::new(read_table);
    let plan = py.detach(|| load(&|content, wanted| tables.columns(content, wanted)));
    tables.check()?;
    let plan = plan.map_err(|failure| experiment_error(py, &failure))?;
    to_json(&plan)
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn column(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    let (values, categories) = match column.values {
        Values::U64(v) => (array(py, v)?, None),
        Values::I64(v) => (array(py, v)?, None),
        Values::U32(v) => (array(py, v)?, None),
        Values::U8(v) => (array(py, v)?, None),
        Values::F64(v) => (array(py, v)?, None),
        Values::Bool(v) => (array(py, v)?, None),
        Values::Text(v) => (texts(py, v)?, None),
        Values::Label { codes, categories } => (array(py, codes)?, Some(categories)),
    };
    entry.set_item("values", values)?;
    entry.set_item("valid", column.valid.map(|v| array(py, v)).transpose()?)?;
    entry.set_item("categories", categories)?;
    Ok(entry)
}

fn table(py: Python<'_>, columns: Vec<Column>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for c in columns {
        table.set_item(c.name, column(py, c)?)?;
    }
    Ok(table)
}

fn counters(py: Python<'_>, totals: RunCounters) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("events", totals.events)?;
    entry.set_item("packet_hops", totals.packet_hops)?;
    entry.set_item("sent", totals.sent)?;
    entry.set_item("delivered", totals.delivered)?;
    entry.set_item("dropped", totals.dropped)?;
    entry.set_item("lost_on_links", totals.lost_on_links)?;
    entry.set_item("in_flight", totals.in_flight)?;
    entry.set_item("needless_retransmissions", totals.needless_retransmissions)?;
    entry.set_item("recoveries_undone", totals.recoveries_undone)?;
    entry.set_item("end_ns", totals.end.as_ns())?;
    for (name, number) in totals.scheme_counters {
        entry.set_item(name, number)?;
    }
    Ok(entry)
}

fn series(py: Python<'_>, series: Series) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    let times: Vec<i64> = series.times.iter().map(|t| t.as_ns() as i64).collect();
    entry.set_item("name", series.name)?;
    entry.set_item("flow", series.of.map(|of| of.flow))?;
    entry.set_item("copy", series.of.map(|of| of.copy))?;
    entry.set_item("time_ns", array(py, times)?)?;
    entry.set_item("value", array(py, series.values)?)?;
    entry.set_item("truncated", series.truncated)?;
    Ok(entry)
}

/// Carries out one run of a plan (an element of its `runs`, as JSON), without holding the GIL.
///
/// `on_progress(now_ps, packet_hops, finished_flows)` is called now and then; an exception that it raises, or a
/// signal such as Ctrl-C, stops the run and is passed on. `capture` asks for packets in a pcapng file, as JSON:
/// {file, spec: {points: ["host:3", "link:h0>s0"], max_packets, max_bytes, snapshot}}; `read_table` is as in `load`. Returns a dict with `flows` and `tiers` (tables: name ->
/// {values, valid, categories}), `further` (tables that only some runs have, by name), `counters`, `series`, `facts`, and `captured` ({packets, left_out}, or None). Raises ValueError when the text is no run of a
/// plan, or a file that it names has changed since it was planned.
#[pyfunction]
#[pyo3(signature = (plan_run_json, on_progress=None, capture=None, read_table=None))]
fn run<'py>(
    py: Python<'py>,
    plan_run_json: &str,
    on_progress: Option<Py<PyAny>>,
    capture: Option<&str>,
    read_table: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let capture: Option<CaptureRequest> =
        capture.map(serde_json::from_str).transpose().map_err(no_json)?;
    let mut raised = None;
    let tables = Tables::new(read_table);
    let outcome = py.detach(|| {
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        tailcut_experiment::run(plan_run_json, capture.as_ref(), &read_table, &mut |progress| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                if let Some(callback) = &on_progress {
                    callback.call1(
                        py,
                        (progress.now.0, progress.packet_hops, progress.finished_flows),
                    )?;
                }
                Ok(())
            });
            match told {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    tables.check()?;
    let outcome = outcome.map_err(|error| PyValueError::new_err(error.to_string()))?;
    outcome_dict(py, outcome)
}

fn outcome_dict(py: Python<'_>, outcome: RunResult) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("flows", table(py, outcome.flows)?)?;
    result.set_item("tiers", table(py, outcome.tiers)?)?;
    let further = PyDict::new(py);
    for (name, columns) in outcome.extra_tables {
        further.set_item(name, table(py, columns)?)?;
    }
    result.set_item("further", further)?;
    result.set_item("counters", counters(py, outcome.counters)?)?;
    let all = PyList::empty(py);
    for one in outcome.series {
        all.append(series(py, one)?)?;
    }
    result.set_item("series", all)?;
    let captured = outcome.captured.map(|summary| {
        let entry = PyDict::new(py);
        entry.set_item("packets", summary.packets)?;
        entry.set_item("left_out", summary.left_out)?;
        Ok::<_, PyErr>(entry)
    });
    result.set_item("captured", captured.transpose()?)?;
    result.set_item("facts", outcome.facts.into_iter().collect::<BTreeMap<_, _>>())?;
    Ok(result)
}

/// What happened to these flows of a run of a plan (an element of its `runs`, as JSON), as JSON (see
/// `tailcut_experiment::Told`), each with at most `most_packets` packets. The run is made as far as they go; `read_table` is as in
/// `load`. Raises ValueError as `run` does, and when the run has no such flow.
#[pyfunction]
#[pyo3(signature = (plan_run_json, flows, most_packets, read_table=None))]
fn explain(
    py: Python<'_>,
    plan_run_json: &str,
    flows: Vec<u64>,
    most_packets: usize,
    read_table: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut raised = None;
    let tables = Tables::new(read_table);
    let told = py.detach(|| {
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        let on_progress = &mut |_: &_| match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
        };
        tailcut_experiment::explain(plan_run_json, &flows, most_packets, &read_table, on_progress)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    tables.check()?;
    to_json(&told.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

/// What a run of a plan (an element of its `runs`, as JSON) has to carry, as JSON: the network, its flows with their
/// ports, paths and best possible completion times, and what waits for what. `read_table` is as in `load`. Raises
/// ValueError as `run` does.
#[pyfunction]
#[pyo3(signature = (plan_run_json, read_table=None))]
fn demand(py: Python<'_>, plan_run_json: &str, read_table: Option<Py<PyAny>>) -> PyResult<String> {
    let tables = Tables::new(read_table);
    let demand = py.detach(|| {
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        tailcut_experiment::run_demand(plan_run_json, &read_table)
    });
    tables.check()?;
    to_json(&demand.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

/// The tables of a run that something other than the simulator has carried out, from what was measured of it, as JSON
/// (see `tailcut_experiment::Measured`). Returns what `run` does; raises ValueError as it does.
#[pyfunction]
#[pyo3(signature = (plan_run_json, measured_json, read_table=None))]
fn tabulate<'py>(
    py: Python<'py>,
    plan_run_json: &str,
    measured_json: &str,
    read_table: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let measured = serde_json::from_str(measured_json).map_err(no_json)?;
    let tables = Tables::new(read_table);
    let outcome = py.detach(|| {
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        tailcut_experiment::tabulate(plan_run_json, &measured, &read_table)
    });
    tables.check()?;
    outcome_dict(py, outcome.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

fn no_json(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Whether a capture can be taken of a run of a plan; `spec` as in `run`. Raises ValueError saying why not.
#[pyfunction]
fn check_capture(py: Python<'_>, plan_run_json: &str, spec: &str) -> PyResult<()> {
    let spec = serde_json::from_str(spec).map_err(no_json)?;
    py.detach(|| tailcut_experiment::check_capture(plan_run_json, &spec))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// What becomes of every field of a run of a plan (an element of its `runs`, as JSON) in the kernel lab, as JSON:
/// {told: [{field, answer: "done" | "near" | "fatal", text}], hosts, needs: [{offer, field}], busiest: frames a second}. `by_repnet`: repnet-bench carries its flows; `fabric`: the name of what lies
/// between the hosts; `programs`: where BPF programs are, if they are compiled. Raises ValueError when the text is no such run, or there is no such fabric.
#[pyfunction]
fn lab_check(
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

/// Carries out one run of a plan over real kernels, telling standard output about it line by line, as JSON. It is asked for as JSON:
/// {run: an element of the plan's `runs`, program: how repnet-bench is started where it is to carry the flows, else null, guests: a list of
/// {host, command}, capture: {file, spec} or null, fabric: a name of `lab_fabrics`, programs: where BPF programs are, or null}. The process must have one thread, its standard input is watched for its end, and it is good for
/// nothing else afterwards. Raises ValueError when the run cannot begin.
#[cfg(target_os = "linux")]
#[pyfunction]
fn lab_run(asked: &str) -> PyResult<()> {
    tailcut_lab::supervisor::run(asked).map_err(PyValueError::new_err)
}

/// The lab's kinds of fabric, as JSON: a list of {name, about, delays_when_idle}. The first is the default.
#[pyfunction]
fn lab_fabrics() -> PyResult<String> {
    let kinds = tailcut_lab::fabric_kinds::KINDS.map(|kind| {
        serde_json::json!({
            "name": kind.name(),
            "about": kind.about(),
            "delays_when_idle": kind.delays_when_idle(),
        })
    });
    to_json(&kinds)
}

/// What the lab's congestion controls and transports take of a machine, as JSON: a list of {name, needed_for, remedy, fatal}.
#[pyfunction]
fn lab_rows() -> PyResult<String> {
    to_json(&tailcut_lab::check::capability_rows())
}

/// What this kernel offers the lab, as JSON: a list of {name, offered, found}. `programs`: where BPF programs are, if they are compiled; `timers`: also how late the machine's own timers are, which takes most of a second. Needs a process as `lab_run` does.
#[cfg(target_os = "linux")]
#[pyfunction]
fn lab_probe(programs: Option<PathBuf>, timers: bool) -> PyResult<String> {
    to_json(&tailcut_lab::probe::probe(programs.as_deref(), timers))
}

/// The JSON Schema of experiment files, as JSON.
#[pyfunction]
fn schema() -> PyResult<String> {
    to_json(&tailcut_experiment::schema())
}

/// Every component that an experiment can name, as JSON: a list of {group, name, summary, default,
/// parameters: [{name, takes, default, required, doc}]}.
#[pyfunction]
fn describe() -> PyResult<String> {
    to_json(&tailcut_experiment::describe())
}

/// The points of a flow-size distribution: (bytes, cumulative probability).
///
/// `name_or_path` is a built-in name, or the path of a two-column file when it has a `/` or a `.` in it; `unit` says what
/// the file's first column counts: `bytes`, `KB`, `packets` (of 1460 bytes) or `packets of N`. Raises `ExperimentError`.
#[pyfunction]
#[pyo3(signature = (name_or_path, unit="bytes"))]
fn workload<'py>(
    py: Python<'py>,
    name_or_path: &str,
    unit: &str,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (bytes, probability) = tailcut_experiment::workload(name_or_path, unit)
        .map_err(|failure| experiment_error(py, &failure))?;
    Ok((array(py, bytes)?, array(py, probability)?))
}

/// A name and a text.
type Named = (&'static str, &'static str);

/// Experiments by name: the files of `experiments/` as they were when this was built.
const EXPERIMENTS: &[Named] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Claims by paper: the files `claims.toml` as they were when this was built.
const CLAIMS: &[Named] = include!(concat!(env!("OUT_DIR"), "/claims.rs"));

/// The scorecard of the claims, as JSON.
const SCORECARD: &str = include!(concat!(env!("OUT_DIR"), "/scorecard.rs"));

/// Returns the claims of each paper: its name and the text of its `claims.toml`.
#[pyfunction]
fn claims() -> Vec<Named> {
    CLAIMS.to_vec()
}

/// Returns the text of `scorecard.json`.
#[pyfunction]
fn scorecard() -> &'static str {
    SCORECARD
}

/// What comes with Tailcut: experiments (name, text) and workloads (name, text).
#[pyfunction]
fn shipped() -> (Vec<Named>, Vec<Named>) {
    let workloads = tailcut_net::workload::BUILTIN.iter();
    (EXPERIMENTS.to_vec(), workloads.map(|workload| (workload.name, workload.text)).collect())
}

/// Python bindings of the experiment, plan and simulator crates.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("ExperimentError", m.py().get_type::<ExperimentError>())?;
    m.add("PROFILE", env!("TAILCUT_PROFILE"))?;
    m.add("COMPILER", env!("TAILCUT_RUSTC"))?;
    m.add("RESULTS", tailcut_experiment::RESULTS_VERSION)?;
    m.add_function(wrap_pyfunction!(claims, m)?)?;
    m.add_function(wrap_pyfunction!(scorecard, m)?)?;
    m.add_function(wrap_pyfunction!(load, m)?)?;
    m.add_function(wrap_pyfunction!(loads, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(explain, m)?)?;
    m.add_function(wrap_pyfunction!(demand, m)?)?;
    m.add_function(wrap_pyfunction!(tabulate, m)?)?;
    m.add_function(wrap_pyfunction!(check_capture, m)?)?;
    m.add_function(wrap_pyfunction!(lab_check, m)?)?;
    m.add_function(wrap_pyfunction!(lab_rows, m)?)?;
    m.add_function(wrap_pyfunction!(lab_fabrics, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(lab_run, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(lab_probe, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(describe, m)?)?;
    m.add_function(wrap_pyfunction!(workload, m)?)?;
    m.add_function(wrap_pyfunction!(shipped, m)?)?;
    Ok(())
}
