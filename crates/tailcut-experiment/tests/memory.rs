//! What a run is expected to need of memory, against what it allocates at its peak.

#![allow(unsafe_code, reason = "an allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::plan_with;
use tailcut_experiment::{no_tables, run};

/// The system's allocator, and how many bytes it has given out.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn note(given: usize, taken: usize) {
    let held = HELD.fetch_add(given, Relaxed) + given - taken;
    HELD.fetch_sub(taken, Relaxed);
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: every call is the system's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(0, layout.size());
        System.dealloc(block, layout);
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while one is copied into the other.
        note(size, 0);
        note(0, layout.size());
        System.realloc(block, layout, size)
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const FABRIC: &str = r#"title = "memory"
[topology]
kind = "fat-tree"
k = 8
[traffic]
kind = "poisson"
load = 0.5
[horizon]
arrivals = "20ms"
drain = "20ms"
[schemes.one]
"#;

/// Estimated and allocated bytes of a plan's only run.
fn estimated_and_allocated(scheme: &str, overrides: &[(&str, &str)]) -> (f64, f64) {
    let plan = plan_with(&format!("{FABRIC}{scheme}"), overrides);
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = run(&planned, None, &no_tables, &mut |_| ControlFlow::Continue(()));
    let peak = PEAK.load(Relaxed) - before;
    drop(result.expect("it runs"));
    (plan.runs[0].facts.estimated_memory_bytes as f64, peak as f64)
}

const SCHEMES: [(&str, &str); 11] = [
    ("tcp", ""),
    ("repflow", "replicate = { kind = \"repflow\" }"),
    ("spray", "balance = { kind = \"spray\" }"),
    (
        "dctcp",
        "transport = { congestion = { kind = \"dctcp\" } }\nqueue = { kind = \"ecn\", threshold = \"5packets\" }",
    ),
    ("pfabric", "transport = { kind = \"pfabric\" }\nqueue = { kind = \"pfabric\" }"),
    (
        "ndp",
        "transport = { kind = \"ndp\" }\nqueue = { kind = \"trimming\" }\nbalance = { kind = \"spray\" }",
    ),
    ("flowlet", "balance = { kind = \"flowlet\" }"),
    ("conga", "balance = { kind = \"conga\" }"),
    ("tinyflow", "balance = { kind = \"tinyflow\" }"),
    ("mptcp", "transport = { kind = \"mptcp\" }"),
    ("mmptcp", "transport = { kind = \"mmptcp\" }"),
];

#[test]
fn what_a_run_allocates_is_near_what_it_is_expected_to() {
    let varied: &[(&str, &[(&str, &str)])] = &[
        ("as it is", &[]),
        ("light", &[("traffic.load", "0.1")]),
        ("heavy", &[("traffic.load", "0.8"), ("horizon.drain", "\"0s\"")]),
        ("small flows", &[("traffic.sizes", "\"2KB\""), ("horizon.arrivals", "\"4ms\"")]),
        ("watched", &[("measure.fabric", "true")]),
        ("attributed", &[("measure.attribution", "true")]),
        ("attributed, heavy", &[("measure.attribution", "true"), ("traffic.load", "0.8")]),
        ("attributed, light", &[("measure.attribution", "true"), ("traffic.load", "0.1")]),
        ("large", &[("topology.k", "12"), ("horizon.arrivals", "\"10ms\"")]),
    ];
    let mut beyond = vec![];
    for (name, overrides) in varied {
        for (scheme, text) in SCHEMES {
            let (estimated, allocated) = estimated_and_allocated(text, overrides);
            let ratio = estimated / allocated;
            println!("{name}, {scheme}: {estimated:.0} of {allocated:.0}, {ratio:.2}");
            if !(0.5..=2.0).contains(&ratio) {
                beyond.push(format!("{name}, {scheme}: {ratio:.2}"));
            }
        }
    }
    assert!(beyond.is_empty(), "estimated over allocated: {beyond:?}");
}
