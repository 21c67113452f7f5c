//! The extension module `tailcut._core`: conversions between Python and the Rust crates, without
//! logic.

mod arrays;
mod lab;
mod tables;
mod trace;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tailcut_experiment::run::RunError;
use tailcut_experiment::{
    CaptureRequest, Changes, Failure, Plan, RunResult, TableReader, Threads, Variant,
};
use tailcut_net::measure::records::{RunCounters, Series};
use tailcut_net::scenario::Progress;

use crate::arrays::{array, table};
use crate::tables::Tables;

// The module in its name is the one that Python imports, so that pickling works.
create_exception!(
    tailcut._core,
    ExperimentError,
    PyValueError,
    "An experiment file has errors.\n\n\
     `rendered` is the text to show: every error with its source line. The attributes `code`,\n\
     `message`, `file`, `line`, `column`, `key`, `expected` and `hint` are those of the first\n\
     error; `errors` lists all errors as dicts."
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

/// Returns the plan of an experiment file, as JSON.
///
/// `overrides` are (key, value) pairs as in `--set traffic.load=0.3`; values are written as in
/// TOML. `variant` (`small`, `medium`) applies that table of the file before them.
/// `read_table(content, wanted)` reads the bytes of a Parquet file. It returns a list of
/// (name, kind, cells), one for each column; kind is `unsigned`, `signed`, `real`, `text`, `other`
/// (cells as text), or `unread` without cells for a name that is not in `wanted`. It raises
/// ValueError if the bytes are not a Parquet file. Raises `ExperimentError`.
#[pyfunction]
#[pyo3(signature = (path, overrides=Vec::new(), read_table=None, variant=None))]
fn load(
    py: Python<'_>,
    path: PathBuf,
    overrides: Vec<(String, String)>,
    read_table: Option<Py<PyAny>>,
    variant: Option<&str>,
) -> PyResult<String> {
    let changes = Changes { variant: variant_of(variant)?, set: &overrides };
    planned(py, read_table, |tables| tailcut_experiment::load(&path, changes, tables))
}

/// Returns the plan of an experiment given as text, as JSON. Other parameters are those of `load`.
///
/// `name` stands for the file in messages and in the plan. Files that the text names are relative
/// to `directory`.
#[pyfunction]
#[pyo3(signature = (name, text, directory, overrides=Vec::new(), read_table=None, variant=None))]
fn loads(
    py: Python<'_>,
    name: &str,
    text: &str,
    directory: PathBuf,
    overrides: Vec<(String, String)>,
    read_table: Option<Py<PyAny>>,
    variant: Option<&str>,
) -> PyResult<String> {
    let changes = Changes { variant: variant_of(variant)?, set: &overrides };
    planned(py, read_table, |tables| {
        tailcut_experiment::load_text(name, text, &directory, changes, tables)
    })
}

fn variant_of(name: Option<&str>) -> PyResult<Option<Variant>> {
    let unknown = |name| PyValueError::new_err(format!("there is no variant {name:?}"));
    name.map(|name| Variant::named(name).ok_or_else(|| unknown(name))).transpose()
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
/// `on_progress(now_ps, packet_hops, finished_flows)` is called from time to time. An exception
/// that it raises, or a signal such as Ctrl-C, stops the run and is passed on. `capture` requests
/// packets in a pcapng file, as JSON: {file, spec: {points: ["host:3", "link:h0>s0"], max_packets,
/// max_bytes, snapshot}}. `read_table` is as in `load`. At most `threads` threads simulate the run,
/// with the same result; with `auto`, as many of them as make it quicker.
///
/// Returns a dict with `flows` and `tiers` (tables: name -> {values, valid, categories}), `further`
/// (tables that only some runs have, by name), `counters`, `series`, `facts`, `unfinished_jobs`
/// (pairs of a job and what it waits for), `captured` ({packets, left_out}, or None), `threads` (how
/// many simulated the run), `one_thread` (why one did where more were asked for, or None) and
/// `thread_times` (of each of several threads the seconds at work, waiting for others and
/// exchanging). Raises ValueError if the text is not a run of a plan, or if a file that it names has
/// changed since it was planned.
#[pyfunction]
#[pyo3(signature = (plan_run_json, on_progress=None, capture=None, read_table=None, threads=1, auto=false))]
fn run<'py>(
    py: Python<'py>,
    plan_run_json: &str,
    on_progress: Option<Py<PyAny>>,
    capture: Option<&str>,
    read_table: Option<Py<PyAny>>,
    threads: usize,
    auto: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let capture: Option<CaptureRequest> =
        capture.map(serde_json::from_str).transpose().map_err(no_json)?;
    let mut raised = None;
    let tables = Tables::new(read_table);
    let outcome = py.detach(|| {
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        let on_progress = &mut |progress: &Progress| {
            let answer = Python::attach(|py| {
                py.check_signals()?;
                if let Some(callback) = &on_progress {
                    callback.call1(
                        py,
                        (progress.now.0, progress.packet_hops, progress.finished_flows),
                    )?;
                }
                Ok(())
            });
            match answer {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let capture = capture.as_ref();
        let threads = if auto { Threads::ThatPay(threads) } else { Threads::Given(threads) };
        tailcut_experiment::run_on(threads, plan_run_json, capture, &read_table, on_progress)
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
    let unfinished: Vec<(u64, String)> =
        outcome.unfinished_jobs.into_iter().map(|job| (job.id, job.reason)).collect();
    result.set_item("unfinished_jobs", unfinished)?;
    result.set_item("threads", outcome.threads)?;
    result.set_item("one_thread", outcome.one_thread)?;
    let times = outcome.thread_times.into_iter();
    let times = times.map(|one| [one.work, one.waiting, one.exchange].map(|of| of.as_secs_f64()));
    result.set_item("thread_times", times.collect::<Vec<_>>())?;
    result.set_item("facts", outcome.facts.into_iter().collect::<BTreeMap<_, _>>())?;
    Ok(result)
}

/// Explains flows of a run of a plan (an element of its `runs`, as JSON), each with at most
/// `most_packets` packets. Returns JSON (see `tailcut_experiment::Explanation`).
///
/// The run is simulated until these flows are over. `read_table` is as in `load`. Raises ValueError
/// as `run` does, and if the run has no such flow.
#[pyfunction]
#[pyo3(signature = (plan_run_json, flows, most_packets, read_table=None))]
fn explain(
    py: Python<'_>,
    plan_run_json: &str,
    flows: Vec<u64>,
    most_packets: usize,
    read_table: Option<Py<PyAny>>,
) -> PyResult<String> {
    again(py, read_table, |read_table, on_progress| {
        tailcut_experiment::explain(plan_run_json, &flows, most_packets, read_table, on_progress)
    })
}

/// Explains a job of a run of a plan (an element of `runs`, as JSON): its critical path, as JSON.
#[pyfunction]
#[pyo3(signature = (plan_run_json, job, read_table=None))]
fn explain_job(
    py: Python<'_>,
    plan_run_json: &str,
    job: u32,
    read_table: Option<Py<PyAny>>,
) -> PyResult<String> {
    again(py, read_table, |read_table, on_progress| {
        tailcut_experiment::explain_job(plan_run_json, job, read_table, on_progress)
    })
}

/// Simulates a run once more by `simulate`, and returns what it finds as JSON. Raises ValueError as
/// `run` does, and what `read_table` or a signal raises.
fn again<T: serde::Serialize + Send>(
    py: Python<'_>,
    read_table: Option<Py<PyAny>>,
    simulate: impl Send
    + FnOnce(
        &TableReader,
        &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<T, RunError>,
) -> PyResult<String> {
    let mut raised = None;
    let tables = Tables::new(read_table);
    let explained = py.detach(|| {
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        let on_progress = &mut |_: &Progress| match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
        };
        simulate(&read_table, on_progress)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    tables.check()?;
    to_json(&explained.map_err(|error| PyValueError::new_err(error.to_string()))?)
}

/// Returns the network and flows of a run of a plan (an element of its `runs`, as JSON), as JSON
/// (see `tailcut_experiment::RunDemand`): each flow's ports, paths and ideal times, and the
/// dependencies among flows. `read_table` is as in `load`. Raises ValueError as `run` does.
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

/// Returns the tables of a run that another backend carried out, as `run` returns them, from its
/// measurements as JSON (see `tailcut_experiment::MeasuredRun`). Raises ValueError as `run` does.
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

/// Checks that a capture can be taken of a run of a plan; `spec` is as in `run`. Raises ValueError
/// with the reason if not.
#[pyfunction]
fn check_capture(py: Python<'_>, plan_run_json: &str, spec: &str) -> PyResult<()> {
    let spec = serde_json::from_str(spec).map_err(no_json)?;
    py.detach(|| tailcut_experiment::check_capture(plan_run_json, &spec))
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns the JSON Schema of experiment files, as JSON.
#[pyfunction]
fn schema() -> PyResult<String> {
    to_json(&tailcut_experiment::schema())
}

/// Returns every component that an experiment can name, as JSON: a list of {group, name, summary,
/// default, parameters: [{name, takes, default, required, doc}]}.
#[pyfunction]
fn describe() -> PyResult<String> {
    to_json(&tailcut_experiment::describe())
}

/// Returns the points of a flow-size distribution: (bytes, cumulative probability).
///
/// `name_or_path` is a built-in name, or the path of a two-column file if it contains `/` or `.`.
/// `unit` is the unit of the file's first column: `bytes`, `KB`, `packets` (of 1460 bytes) or
/// `packets of N` (of N bytes). Raises `ExperimentError`.
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

/// A name and the text of that name.
type Named = (&'static str, &'static str);

/// Experiments by name: the files of `experiments/` at build time.
const EXPERIMENTS: &[Named] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Claims by paper: the files `claims.toml` at build time.
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

/// Returns the experiments and the workloads that come with Tailcut, both as (name, text).
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
    m.add("TRACES", tailcut_experiment::TRACES)?;
    m.add_function(wrap_pyfunction!(claims, m)?)?;
    m.add_function(wrap_pyfunction!(scorecard, m)?)?;
    m.add_function(wrap_pyfunction!(load, m)?)?;
    m.add_function(wrap_pyfunction!(loads, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(explain, m)?)?;
    m.add_function(wrap_pyfunction!(explain_job, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace, m)?)?;
    m.add_function(wrap_pyfunction!(demand, m)?)?;
    m.add_function(wrap_pyfunction!(tabulate, m)?)?;
    m.add_function(wrap_pyfunction!(check_capture, m)?)?;
    m.add_function(wrap_pyfunction!(lab::lab_check, m)?)?;
    m.add_function(wrap_pyfunction!(lab::lab_rows, m)?)?;
    m.add_function(wrap_pyfunction!(lab::lab_fabrics, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(lab::lab_run, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(lab::lab_probe, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(describe, m)?)?;
    m.add_function(wrap_pyfunction!(workload, m)?)?;
    m.add_function(wrap_pyfunction!(shipped, m)?)?;
    Ok(())
}
