//! The simulator as a WebAssembly module: describe, plan, run. No logic.
//!
//! Who calls writes a text into [`input`], calls a function, and reads its answer at [`answer_at`], [`answer_length`] bytes.
//! A function returns 0 when its answer is what was asked for, and 1 when it is `{"errors": [...]}`. While a run goes on, the
//! module calls `page.frame`, and before it dies of a panic `page.panicked`, both with a text. A panic leaves the instance
//! useless: throw it away.

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

/// What the page provides.
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

/// Room for a text of so many bytes, which the next call takes.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    let mut input = held(&INPUT);
    input.clear();
    input.resize(length, 0);
    input.as_mut_ptr()
}

/// Where the answer to the last call is, until the next.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    held(&ANSWER).as_ptr()
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    held(&ANSWER).len()
}

/// Keeps an answer, or what is wrong.
fn reply(answer: Result<Vec<u8>, Vec<Value>>) -> i32 {
    let (code, bytes) = match answer {
        Ok(bytes) => (0, bytes),
        Err(errors) => (1, json!({ "errors": errors }).to_string().into_bytes()),
    };
    *held(&ANSWER) = bytes;
    code
}

/// An error that has a message and no place.
fn plain(error: impl ToString) -> Vec<Value> {
    let message = error.to_string();
    vec![json!({ "message": message, "rendered": message })]
}

fn text() -> Result<String, Vec<Value>> {
    String::from_utf8(std::mem::take(&mut *held(&INPUT))).map_err(plain)
}

/// Sends panics to the page. Without it they are lost.
#[unsafe(no_mangle)]
pub extern "C" fn report_panics() {
    #[cfg(target_arch = "wasm32")]
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // Sound: the page reads the text while it stays where it is.
        unsafe { page::panicked(text.as_ptr(), text.len()) };
    }));
}

/// Every component that an experiment can name, and the version of results: `{components, results, version}`.
#[unsafe(no_mangle)]
pub extern "C" fn describe() -> i32 {
    let about = json!({
        "components": tailcut_experiment::describe(),
        "results": tailcut_experiment::RESULTS_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
    });
    reply(Ok(about.to_string().into_bytes()))
}

/// An experiment file: the text, and what messages call it.
#[derive(Deserialize)]
struct File {
    name: String,
    text: String,
}

/// The plan of an experiment; takes `{name, text}`. There are no files here that it could name.
#[unsafe(no_mangle)]
pub extern "C" fn plan() -> i32 {
    let planned = || {
        let File { name, text } = serde_json::from_str(&text()?).map_err(plain)?;
        let plan =
            tailcut_experiment::load_text(&name, &text, Path::new(""), &[], &no_table_reader);
        let plan = plan
            .map_err(|failure| failure.diagnostics.iter().map(|d| json!(d)).collect::<Vec<_>>())?;
        serde_json::to_vec(&plan).map_err(plain)
    };
    reply(planned())
}

/// The network of a run of a plan; takes the run.
#[unsafe(no_mangle)]
pub extern "C" fn network() -> i32 {
    let built = || {
        let plan: RunPlan = serde_json::from_str(&text()?).map_err(plain)?;
        let graph = to_scenario(&plan, &no_table_reader).map_err(plain)?.graph;
        serde_json::to_vec(&graph).map_err(plain)
    };
    reply(built())
}

/// The tables of a run of a plan; takes the run. On the way, the page is shown about `frames` pictures of the time in which flows
/// arrive, and as many per second after it.
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
    // Sound: the page reads the text while it stays where it is.
    unsafe {
        page::frame(frame.as_ptr(), frame.len());
    }
    #[cfg(not(target_arch = "wasm32"))]
    let _ = frame;
}
