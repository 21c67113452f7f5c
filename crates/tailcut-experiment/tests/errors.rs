//! What a reader sees when a file is wrong.

use std::path::Path;

use tailcut_experiment::{load_text, Failure};

const GOOD: &str = r#"
title = "a test"
[topology]
kind = "fat-tree"
k = 4
[transport]
kind = "tcp"
[traffic]
kind = "poisson"
load = 0.5
[horizon]
arrivals = "1ms"
[schemes.TCP]
[schemes.RepFlow]
like = "TCP"
replicate = { kind = "repflow" }
[report]
baseline = "TCP"
"#;

fn failure(text: &str) -> Failure {
    load_text("test.toml", text, Path::new(""), &[]).expect_err("the experiment is wrong")
}

/// The good experiment with one line replaced.
fn with(line: &str, replacement: &str) -> String {
    assert_eq!(GOOD.matches(line).count(), 1, "{line} is there once");
    GOOD.replace(line, replacement)
}

#[test]
fn try_all() {
    assert!(load_text("test.toml", GOOD, Path::new(""), &[]).is_ok());
    for (line, replacement) in [
        ("k = 4", "k = 5"),
        ("k = 4", "kk = 4"),
        ("k = 4", "k = \"4\""),
        ("load = 0.5", "load = 1.5"),
        ("load = 0.5", "load = 0"),
        ("arrivals = \"1ms\"", "arrivals = 1"),
        ("arrivals = \"1ms\"", "arrivals = \"1hs\""),
        ("kind = \"fat-tree\"", "kind = \"fattree\""),
        ("like = \"TCP\"", "like = \"TPC\""),
        (
            "replicate = { kind = \"repflow\" }",
            "replicate = { kind = \"repflow\", copies = 1, threshold = \"0B\" }",
        ),
        ("kind = \"tcp\"", "kind = \"tcp\"\nmss = \"0B\""),
        ("kind = \"tcp\"", "kind = \"tcp\"\nrecovery = \"reno\"\ntimestamps = 1"),
        ("[report]", "[sweep]\n\"traffic.laod\" = [0.1]\n[report]"),
        ("[report]", "[sweep]\ntraffic.load = []\n[report]"),
        ("[report]", "[sweep]\ntraffic.load = [0.1, 0.10]\n[report]"),
        ("title = \"a test\"", "titel = \"x\""),
        ("load = 0.5", "load = 0.5.5"),
    ] {
        println!("{}\n----------", failure(&with(line, replacement)));
    }
}
