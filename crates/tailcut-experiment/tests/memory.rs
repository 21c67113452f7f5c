//! Estimates of a run's memory, compared with what it allocates at its peak.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use tailcut_experiment::{no_table_reader, run};

use crate::common::jobs::{JOBS, UET, with_job};
use crate::common::plan_with;

/// The system's allocator with a count of allocated bytes per thread. A run uses one thread, and
/// other tests run beside it.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Counts an allocation and a release on this thread, which may release memory that another thread
/// allocated.
fn note(given: usize, taken: usize) {
    let held = HELD.get() + given as isize;
    PEAK.set(PEAK.get().max(held));
    HELD.set(held - taken as isize);
}

// SAFETY: every call goes to the system's allocator, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe {
            note(layout.size(), 0);
            System.alloc(layout)
        }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe {
            note(0, layout.size());
            System.dealloc(block, layout);
        }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe {
            // Both blocks exist while one is copied into the other.
            note(size, 0);
            note(0, layout.size());
            System.realloc(block, layout, size)
        }
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

/// Returns the estimated and the allocated bytes of a plan's only run.
fn estimated_and_allocated(text: &str, overrides: &[(&str, &str)]) -> (f64, f64) {
    let plan = plan_with(text, overrides);
    let planned = serde_json::to_string(&plan.runs[0]).expect("a plan is plain data");
    let before = HELD.get();
    PEAK.set(before);
    let result = run(&planned, None, &no_table_reader, &mut |_| ControlFlow::Continue(()));
    let peak = PEAK.get() - before;
    drop(result.expect("it runs"));
    (plan.runs[0].facts.estimated_memory_bytes as f64, peak as f64)
}

const SCHEMES: [(&str, &str); 12] = [
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
    ("drill", "balance = { kind = \"drill\" }"),
    ("mptcp", "transport = { kind = \"mptcp\" }"),
    ("mmptcp", "transport = { kind = \"mmptcp\" }"),
];

/// The overrides under which schemes are tried, by name.
const VARIED: [(&str, &[(&str, &str)]); 8] = [
    ("light", &[("traffic.load", "0.1")]),
    ("heavy", &[("traffic.load", "0.8"), ("horizon.drain", "\"0s\"")]),
    ("small flows", &[("traffic.sizes", "\"2KB\""), ("horizon.arrivals", "\"4ms\"")]),
    ("watched", &[("measure.fabric", "true")]),
    ("attributed", &[("measure.attribution", "true")]),
    ("attributed, heavy", &[("measure.attribution", "true"), ("traffic.load", "0.8")]),
    ("attributed, light", &[("measure.attribution", "true"), ("traffic.load", "0.1")]),
    ("large", &[("topology.k", "12"), ("horizon.arrivals", "\"10ms\"")]),
];

/// Checks that the allocations of each scheme are within a factor of two of the estimate.
fn check(schemes: &[(&str, &str)], varied: &[(&str, &[(&str, &str)])]) {
    let mut beyond = vec![];
    for (name, overrides) in varied {
        for (scheme, text) in schemes {
            let text = format!("{FABRIC}{text}");
            beyond.extend(beyond_twice(&format!("{name}, {scheme}"), &text, overrides));
        }
    }
    assert!(beyond.is_empty(), "estimated over allocated: {beyond:?}");
}

/// Returns the estimate over the allocations of an experiment's only run, with its name, if that is
/// beyond a factor of two.
fn beyond_twice(name: &str, text: &str, overrides: &[(&str, &str)]) -> Option<String> {
    let (estimated, allocated) = estimated_and_allocated(text, overrides);
    let ratio = estimated / allocated;
    println!("{name}: {estimated:.0} of {allocated:.0}, {ratio:.2}");
    (!(0.5..=2.0).contains(&ratio)).then(|| format!("{name}: {ratio:.2}"))
}

/// Few of a job's messages are under way at once.
#[test]
fn jobs_allocate_about_their_estimate() {
    let cases = [
        ("tcp", "", "false"),
        ("tcp, attributed", "", "true"),
        ("uet", UET, "false"),
        ("uet, attributed", UET, "true"),
        ("mptcp", "transport = { kind = \"mptcp\" }", "false"),
    ];
    let mut beyond = vec![];
    for (job, traffic) in JOBS {
        for (scheme, text, attribution) in cases {
            let overrides = [("measure.attribution", attribution)];
            let name = format!("{job}, {scheme}");
            beyond.extend(beyond_twice(&name, &with_job(traffic, text), &overrides));
        }
    }
    assert!(beyond.is_empty(), "estimated over allocated: {beyond:?}");
}

#[test]
fn every_scheme_allocates_about_its_estimate() {
    check(&SCHEMES, &[("as it is", &[])]);
}

/// Uses the two schemes that differ most: one connection per flow, and many.
#[test]
fn runs_of_any_load_and_size_allocate_about_their_estimate() {
    let schemes: Vec<_> =
        SCHEMES.into_iter().filter(|(name, _)| ["tcp", "mptcp"].contains(name)).collect();
    check(&schemes, &VARIED);
}

#[test]
#[ignore = "half a minute for what few schemes show"]
fn every_scheme_under_every_load_and_size_allocates_about_its_estimate() {
    check(&SCHEMES, &VARIED);
}
