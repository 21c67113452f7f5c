//! The simulator as a WebAssembly module: describe, plan, run. No logic.
//!
//! The caller writes a text into [`input`], calls a function, and reads the answer at
//! [`answer_at`], [`answer_length`] bytes. A function returns 0 if the answer is the requested one,
//! and 1 if it is `{"errors": [...]}`. During a run the module calls `page.frame`, and before a
//! panic ends it `page.panicked`, each with a text. After a panic the instance is unusable: discard
//! it.

#![allow(unsafe_code, reason = "names for the page to call, and the page's own functions")]

mod answer;
mod frames;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tailcut_experiment::{RunPlan, no_table_reader, run_watched, to_scenario};

use crate::frames::Frames;

static INPUT: Mutex<Vec<u8>> = Mutex::new(vec![]);
static ANSWER: Mutex<Vec<u8>> = Mutex::new(vec![]);

/// The functions that the page provides.
#[cfg(target_arch = "wasm32")]
mod page {
    #[link(wasm_import_module = "page")]
    extern "C" {
        pub fn frame(at: *const u8, length: usize);
        pub fn panicked(at: *const u8, length: usize);
    }
}

fn held(buffer: &'static Mutex<Vec<u8>>) -> MutexGuard<'static, Vec<u8>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the address of a buffer of `length` bytes for the input of the next call.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    let mut input = held(&INPUT);
    input.clear();
    input.resize(length, 0);
    input.as_mut_ptr()
}

/// Returns the address of the answer to the last call, which is valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    held(&ANSWER).as_ptr()
}

/// Returns the length in bytes of the answer to the last call.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    held(&ANSWER).len()
}

/// Stores an answer or errors, and returns the code for the caller.
fn reply(answer: Result<Vec<u8>, Vec<Value>>) -> i32 {
    let (code, bytes) = match answer {
        Ok(bytes) => (0, bytes),
        Err(errors) => (1, json!({ "errors": errors }).to_string().into_bytes()),
    };
    *held(&ANSWER) = bytes;
    code
}

/// Returns an error as a list of one, with a message and without a place.
fn plain(error: impl ToString) -> Vec<Value> {
    let message = error.to_string();
    vec![json!({ "message": message, "rendered": message })]
}

fn text() -> Result<String, Vec<Value>> {
    String::from_utf8(std::mem::take(&mut *held(&INPUT))).map_err(plain)
}

/// Reports panics to the page, which would not see them otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn report_panics() {
    #[cfg(target_arch = "wasm32")]
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the page reads the text during the call.
        unsafe { page::panicked(text.as_ptr(), text.len()) };
    }));
}

/// Answers with every component that an experiment can name: `{components, results, version}`.
#[unsafe(no_mangle)]
pub extern "C" fn describe() -> i32 {
    let about = json!({
        "components": tailcut_experiment::describe(),
        "results": tailcut_experiment::RESULTS_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
    });
    reply(Ok(about.to_string().into_bytes()))
}

/// An experiment file: its text, and its name in messages.
#[derive(Deserialize)]
struct File {
    name: String,
    text: String,
}

/// Answers with the plan of an experiment. The input is `{name, text}`; files that the text names
/// do not exist here.
#[unsafe(no_mangle)]
pub extern "C" fn plan() -> i32 {
    let planned = || {
        let File { name, text } = serde_json::from_str(&text()?).map_err(plain)?;
        let plan = tailcut_experiment::load_text(
            &name,
            &text,
            Path::new(""),
            tailcut_experiment::Changes::default(),
            &no_table_reader,
        );
        let plan = plan
            .map_err(|failure| failure.diagnostics.iter().map(|d| json!(d)).collect::<Vec<_>>())?;
        serde_json::to_vec(&plan).map_err(plain)
    };
    reply(planned())
}

/// Answers with the network of a run of a plan. The input is the run.
#[unsafe(no_mangle)]
pub extern "C" fn network() -> i32 {
    let built = || {
        let plan: RunPlan = serde_json::from_str(&text()?).map_err(plain)?;
        let graph = to_scenario(&plan, &no_table_reader).map_err(plain)?.graph;
        serde_json::to_vec(&graph).map_err(plain)
    };
    reply(built())
}

/// Answers with the tables of a run of a plan. The input is the run. The page gets about `frames`
/// frames while flows arrive, and further ones at the same interval.
#[unsafe(no_mangle)]
pub extern "C" fn run(frames: u32) -> i32 {
    let ran = || {
        let text = text()?;
        let plan: RunPlan = serde_json::from_str(&text).map_err(plain)?;
        let ports = u32::try_from(plan.facts.links * 2).map_err(plain)?;
        let step = plan.config.horizon.arrivals.0 / u64::from(frames.max(1));
        let mut watch = Frames::new(ports, step, show);
        let result = run_watched(&text, None, &no_table_reader, &mut watch).map_err(plain)?;
        answer::of_run(&result).map_err(plain)
    };
    reply(ran())
}

fn show(frame: &str) {
    #[cfg(target_arch = "wasm32")]
    // SAFETY: the page reads the text during the call.
    unsafe {
        page::frame(frame.as_ptr(), frame.len());
    }
    #[cfg(not(target_arch = "wasm32"))]
    let _ = frame;
}
