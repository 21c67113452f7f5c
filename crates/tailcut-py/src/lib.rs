//! The extension module `tailcut._core`: parse, plan, run, describe. No logic.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tailcut_experiment::{CaptureRequest, Column, Failure, Values};
use tailcut_net::scenario::{Counters, Series};

create_exception!(
    _core,
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
/// Raises `ExperimentError`.
#[pyfunction]
#[pyo3(signature = (path, overrides=Vec::new()))]
fn load(py: Python<'_>, path: PathBuf, overrides: Vec<(String, String)>) -> PyResult<String> {
    let plan = py.detach(|| tailcut_experiment::load(&path, &overrides));
    let plan = plan.map_err(|failure| experiment_error(py, &failure))?;
    to_json(&plan)
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn column(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    let (values, categories) = match column.values {
        Values::U64(v) => (v.into_pyarray(py).into_any(), None),
        Values::I64(v) => (v.into_pyarray(py).into_any(), None),
        Values::U32(v) => (v.into_pyarray(py).into_any(), None),
        Values::U8(v) => (v.into_pyarray(py).into_any(), None),
        Values::F64(v) => (v.into_pyarray(py).into_any(), None),
        Values::Bool(v) => (v.into_pyarray(py).into_any(), None),
        Values::Label { codes, categories } => {
            (codes.into_pyarray(py).into_any(), Some(categories))
        }
    };
    entry.set_item("values", values)?;
    entry.set_item("valid", column.valid.map(|v| v.into_pyarray(py)))?;
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

fn counters(py: Python<'_>, totals: Counters) -> PyResult<Bound<'_, PyDict>> {
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
    if let Some(elephants) = totals.elephants {
        entry.set_item("elephants_found", elephants.found)?;
        entry.set_item("elephants_missed", elephants.missed)?;
        entry.set_item("elephants_mistaken", elephants.mistaken)?;
        entry.set_item("elephant_ack_streams", elephants.ack_streams)?;
        entry.set_item("elephant_detection_ns", elephants.detection_time.as_ns())?;
        entry.set_item("elephant_reroutes", elephants.reroutes)?;
    }
    Ok(entry)
}

fn series(py: Python<'_>, series: Series) -> PyResult<Bound<'_, PyDict>> {
    let entry = PyDict::new(py);
    let times: Vec<i64> = series.times.iter().map(|t| t.as_ns() as i64).collect();
    entry.set_item("name", series.name)?;
    entry.set_item("time_ns", times.into_pyarray(py))?;
    entry.set_item("value", series.values.into_pyarray(py))?;
    entry.set_item("truncated", series.truncated)?;
    Ok(entry)
}

/// Carries out one run of a plan (an element of its `runs`, as JSON), without holding the GIL.
///
/// `on_progress(now_ps, packet_hops, finished_flows)` is called now and then; an exception that it raises, or a
/// signal such as Ctrl-C, stops the run and is passed on. `capture` asks for packets in a pcapng file, as JSON:
/// {file, spec: {points: ["host:3", "link:h0>s0"], max_packets, max_bytes, snapshot}}. Returns a dict with `flows` and `tiers` (tables: name ->
/// {values, valid, categories}), `further` (tables that only some runs have, by name), `counters`, `series`, `facts`, and `captured` ({packets, left_out}, or None). Raises ValueError when the text is no run of a
/// plan, or a file that it names has changed since it was planned.
#[pyfunction]
#[pyo3(signature = (plan_run_json, on_progress=None, capture=None))]
fn run<'py>(
    py: Python<'py>,
    plan_run_json: &str,
    on_progress: Option<Py<PyAny>>,
    capture: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let capture: Option<CaptureRequest> =
        capture.map(serde_json::from_str).transpose().map_err(no_capture)?;
    let mut raised = None;
    let outcome = py.detach(|| {
        tailcut_experiment::run(plan_run_json, capture.as_ref(), &mut |progress| {
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
    let outcome = outcome.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let result = PyDict::new(py);
    result.set_item("flows", table(py, outcome.flows)?)?;
    result.set_item("tiers", table(py, outcome.tiers)?)?;
    let further = PyDict::new(py);
    for (name, columns) in outcome.further {
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

fn no_capture(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Whether a capture can be taken of a run of a plan; `spec` as in `run`. Raises ValueError saying why not.
#[pyfunction]
fn check_capture(py: Python<'_>, plan_run_json: &str, spec: &str) -> PyResult<()> {
    let spec = serde_json::from_str(spec).map_err(no_capture)?;
    py.detach(|| tailcut_experiment::check_capture(plan_run_json, &spec))
        .map_err(|error| PyValueError::new_err(error.to_string()))
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

type Floats<'py> = Bound<'py, PyArray1<f64>>;

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
) -> PyResult<(Floats<'py>, Floats<'py>)> {
    let (bytes, probability) = tailcut_experiment::workload(name_or_path, unit)
        .map_err(|failure| experiment_error(py, &failure))?;
    Ok((bytes.into_pyarray(py), probability.into_pyarray(py)))
}

/// Python bindings of the experiment, plan and simulator crates.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // NumPy's interface is looked up once, here: a signal that came during the lookup within a run would be a panic.
    Vec::<u8>::new().into_pyarray(m.py());
    m.add("ExperimentError", m.py().get_type::<ExperimentError>())?;
    m.add_function(wrap_pyfunction!(load, m)?)?;
    m.add_function(wrap_pyfunction!(run, m)?)?;
    m.add_function(wrap_pyfunction!(check_capture, m)?)?;
    m.add_function(wrap_pyfunction!(schema, m)?)?;
    m.add_function(wrap_pyfunction!(describe, m)?)?;
    m.add_function(wrap_pyfunction!(workload, m)?)?;
    Ok(())
}
