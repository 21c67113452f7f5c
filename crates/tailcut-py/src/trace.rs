//! Traces of flows, line by line.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::tables::Tables;

/// Simulates a run of a plan (an element of its `runs`, as JSON) and calls `write(line)` for every
/// trace line of these flows. There are none unless `TRACES` is true.
///
/// `read_table` is as in `load`. Raises ValueError as `run` does, and if the run has no such flow;
/// what `write` raises ends the run and is passed on.
#[pyfunction]
#[pyo3(signature = (plan_run_json, flows, write, read_table=None))]
pub fn trace(
    py: Python<'_>,
    plan_run_json: &str,
    flows: Vec<u64>,
    write: Py<PyAny>,
    read_table: Option<Py<PyAny>>,
) -> PyResult<()> {
    let tables = Tables::new(read_table);
    let (traced, raised) = py.detach(|| {
        let raised = Rc::new(RefCell::new(None));
        let failed = Rc::clone(&raised);
        let sink = move |line: &str| {
            if failed.borrow().is_none() {
                *failed.borrow_mut() = Python::attach(|py| write.call1(py, (line,)).err());
            }
        };
        let on_progress = &mut |_: &_| {
            let signal = || Python::attach(|py| py.check_signals().err());
            let error = raised.borrow_mut().take().or_else(signal);
            *raised.borrow_mut() = error;
            match *raised.borrow() {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        };
        let read_table = |content: &[u8], wanted: &[&str]| tables.columns(content, wanted);
        let traced =
            tailcut_experiment::trace(plan_run_json, &flows, &read_table, sink, on_progress);
        let raised = raised.borrow_mut().take();
        (traced, raised)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    tables.check()?;
    traced.map_err(|error| PyValueError::new_err(error.to_string()))
}
