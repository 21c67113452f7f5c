//! Values that no run could carry are refused at loading, with code, rule and key.

use crate::common::{failure, plan};

/// Returns code and key of the first error of a good experiment with one section replaced.
fn refused(section: &str, lines: &str) -> (String, String) {
    let kept = [
        ("topology", "kind = \"fat-tree\"\nk = 4"),
        ("traffic", "kind = \"poisson\"\nload = 0.3\nsizes = \"20KB\""),
        ("horizon", "arrivals = \"1ms\""),
    ];
    let mut text = String::from("title = \"limits\"\n");
    for (name, content) in kept.into_iter().filter(|(name, _)| *name != section) {
        text += &format!("[{name}]\n{content}\n");
    }
    let failure = failure(&format!("{text}[{section}]\n{lines}\n"));
    (failure.diagnostics[0].code.clone(), failure.diagnostics[0].key.clone())
}

#[track_caller]
fn check(section: &str, lines: &str, code: &str, key: &str) {
    assert_eq!(refused(section, lines), (code.to_owned(), key.to_owned()), "{lines}");
}

#[test]
fn refuses_flow_sizes_of_more_segments_than_can_be_numbered() {
    let sizes = |sizes: &str| format!("kind = \"permutation\"\nsizes = {sizes}");
    let check = |written: &str, key: &str| {
        check("traffic", &sizes(written), "TC-E100/sizes-largest", &format!("traffic.{key}"));
    };
    check("\"7000GB\"", "sizes");
    check("{ kind = \"uniform\", min = \"1B\", max = \"7000GB\" }", "sizes.max");
    check("{ kind = \"exponential\", mean = \"100GB\" }", "sizes.mean");
    check(
        "{ kind = \"bounded-pareto\", min = \"1B\", max = \"7000GB\", shape = 1.1 }",
        "sizes.max",
    );
}

#[test]
fn limits_the_flow_size_of_every_traffic_kind() {
    for (lines, key) in [
        ("kind = \"shuffle\"\nmappers = 1\nreducers = 1\nbytes = \"7000GB\"", "traffic.bytes"),
        ("kind = \"pings\"\nbytes = \"7000GB\"", "traffic.bytes"),
        (
            "kind = \"bucket-sort\"\nnumbers = 100\njitter = \"0s\"\nbatch_bytes = \"7000GB\"",
            "traffic.batch_bytes",
        ),
        (
            "kind = \"bucket-sort\"\nnumbers = 100\njitter = \"0s\"\nbytes_per_number = \"7000GB\"",
            "traffic.bytes_per_number",
        ),
        ("kind = \"trace\"\nflows = [{ src = 0, dst = 1, bytes = \"7000GB\" }]", "traffic.flows"),
        (
            "kind = \"mix\"\nparts = [{ kind = \"pings\", bytes = \"7000GB\" }]",
            "traffic.parts[0].bytes",
        ),
    ] {
        check("traffic", lines, "TC-E100/traffic-flow-size", key);
    }
}

#[test]
fn blames_mss_where_a_larger_one_would_do() {
    let traffic = "kind = \"permutation\"\nsizes = \"3000GB\"\n";
    for (transport, key) in [
        ("mss = \"1000B\"", "transport.mss"),
        ("kind = \"mptcp\"\ntcp.mss = \"1000B\"", "transport.tcp.mss"),
        (
            "kind = \"mixed\"\nparts = [{ transport = { kind = \"tcp\", mss = \"1000B\" } }]",
            "transport.parts[0].transport.mss",
        ),
    ] {
        let lines = format!("{traffic}[transport]\n{transport}");
        check("traffic", &lines, "TC-E100/transport-segments", key);
    }
}

#[test]
fn times_longer_than_any_run_are_refused() {
    for (section, lines, code) in [
        ("series", "interval = \"10000000s\"", "TC-E016"),
        ("series", "interval = \"100000s\"", "TC-E100/series-interval"),
        ("transport", "clock_granularity = \"61s\"", "TC-E100/tcp-clock-granularity"),
        (
            "replicate",
            "copy_delay = \"100000s\"\nkind = \"repflow\"",
            "TC-E100/replicate-copy-delay",
        ),
        (
            "replicate",
            "copy_delay = \"100000s\"\nkind = \"repsyn\"",
            "TC-E100/replicate-copy-delay",
        ),
    ] {
        let key = lines.split(' ').next().expect("it begins with its key");
        check(section, lines, code, &format!("{section}.{key}"));
    }
}

#[test]
fn timers_and_sampling_intervals_that_are_too_short_are_refused() {
    check("transport", "min_rto = \"999ns\"", "TC-E100/tcp-rto", "transport.min_rto");
    let samples = "interval = \"1ps\"\nlinks = [\"h0>s0\"]";
    check("series", samples, "TC-E100/series-interval", "series.interval");
}

#[test]
fn windows_and_tables_that_do_not_fit_into_memory_are_refused() {
    for (section, lines, rule, key) in [
        ("transport", "receive_window = \"2GB\"", "tcp-receive-window", "receive_window"),
        (
            "transport",
            "kind = \"mptcp\"\nreceive_window = \"2GB\"",
            "mptcp-receive-window",
            "receive_window",
        ),
        ("balance", "kind = \"flowlet\"\nentries = 4000000", "flowlet-entries", "entries"),
        (
            "topology",
            "kind = \"leaf-spine\"\nracks = 60000\nhosts_per_rack = 1\nspines = 1000",
            "leaf-spine-size",
            "racks",
        ),
        (
            "topology",
            "kind = \"leaf-spine\"\nracks = 60000\nhosts_per_rack = 1\nspines = 1",
            "topology-route",
            "kind",
        ),
    ] {
        check(section, lines, &format!("TC-E100/{rule}"), &format!("{section}.{key}"));
    }
}

#[test]
fn paths_of_more_than_255_links_are_refused() {
    check(
        "topology",
        "kind = \"chain\"\nswitches = 255",
        "TC-E100/topology-route",
        "topology.kind",
    );
    let fits = "title = \"long\"\n[topology]\nkind = \"chain\"\nswitches = 254\n[traffic]\nkind = \"pings\"\n";
    let plan = plan(fits);
    assert_eq!(plan.runs[0].facts.links, 255);
}
