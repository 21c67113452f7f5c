//! The text of errors in a file: one snapshot per error in `snapshots/`, to be read as a user
//! would.
//!
//! A new component or parameter changes the lists of expected values. After an intended change,
//! update the snapshots (`INSTA_UPDATE=always cargo test -p tailcut-experiment --test integration
//! errors::`) and read the difference.

use crate::common::{GOOD, failure, load, replaced, with};

macro_rules! refused {
    ($($name:ident: $line:literal => $replacement:literal,)*) => {
        refused! { GOOD; $($name: $line => $replacement,)* }
    };
    ($base:expr; $($name:ident: $line:literal => $replacement:literal,)*) => {
        $(
            #[test]
            fn $name() {
                let text = failure(&replaced(&$base, $line, $replacement)).to_string();
                insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                    insta::assert_snapshot!(stringify!($name), text);
                });
            }
        )*
    };
}

refused! {
    not_toml: "k = 4" => "k = = 4",
    key_twice: "k = 4" => "k = 4\nk = 6",
    integer_too_large: "k = 4" => "k = 99999999999999999999",
    unknown_section: "[queue]" => "[quueue]",
    unknown_key: "mss = \"1460B\"" => "min_rtt = \"10ms\"",
    unknown_key_far_from_all: "mss = \"1460B\"" => "colour = \"red\"",
    key_of_another_kind: "load = 0.5" => "load = 0.5\nreceiver = 4",
    parameter_of_a_kind_without_any: "[queue]" => "[balance]\nkind = \"spray\"\nsalt = 1\n[queue]",
    misspelt_title: "title = \"a test\"" => "titel = \"a test\"",
    no_topology: "[topology]\nkind = \"fat-tree\"\nk = 4" => "",
    no_file_of_a_node_link_graph: "kind = \"fat-tree\"\nk = 4" => "kind = \"node-link\"",
    rate_of_a_tier_missing: "k = 4" => "k = 4\nrate = { host = \"1Gbps\", core = \"1Gbps\" }",
    neither_a_word_nor_a_list: "mss = \"1460B\"" => "imitate = \"ns-2\"",
    text_for_a_number: "k = 4" => "k = \"4\"",
    fraction_for_an_integer: "k = 4" => "k = 4.5",
    number_for_a_text: "title = \"a test\"" => "title = 3",
    number_for_a_switch: "mss = \"1460B\"" => "limited_transmit = 1",
    value_for_a_section: "[queue]\nlimit = \"100packets\"\n[transport]\nmss = \"1460B\"" => "[host]\nnic_queue = [1]",
    date_for_a_time: "arrivals = \"1ms\"" => "arrivals = 1979-05-27",
    table_for_a_text: "mss = \"1460B\"" => "recovery = { kind = \"newreno\" }",
    unknown_word: "mss = \"1460B\"" => "recovery = \"new-reno\"",
    unknown_topology: "kind = \"fat-tree\"" => "kind = \"fattree\"",
    packets_in_turn_on_one_interface: "replicate = { kind = \"repflow\" }" => "interface = { kind = \"by-packet\" }",
    topology_of_non_minimal_paths: "kind = \"fat-tree\"" => "kind = \"dragonfly\"",
    congestion_control_named_as_a_network: "mss = \"1460B\"" => "congestion = { kind = \"torus\" }",
    routing_by_non_minimal_paths: "replicate = { kind = \"repflow\" }" => "balance = { kind = \"ugal\" }",
    unknown_traffic: "kind = \"poisson\"" => "kind = \"uniform\"",
    unknown_replication: "replicate = { kind = \"repflow\" }" => "replicate = { kind = \"repflo\" }",
    unknown_workload: "load = 0.5" => "load = 0.5\nsizes = \"websearch\"",
    unknown_described_sizes: "load = 0.5" => "load = 0.5\nsizes = { kind = \"pareto\", min = \"1KB\" }",
    kind_is_no_text: "kind = \"poisson\"" => "kind = 1",
    time_without_unit: "arrivals = \"1ms\"" => "arrivals = 1",
    time_text_without_unit: "arrivals = \"1ms\"" => "arrivals = \"1\"",
    rate_for_a_time: "arrivals = \"1ms\"" => "arrivals = \"1Gbps\"",
    unit_in_the_wrong_case: "k = 4" => "k = 4\nrate = \"10gbps\"",
    size_without_unit: "mss = \"1460B\"" => "mss = 1460",
    limit_without_unit: "limit = \"100packets\"" => "limit = 100",
    time_finer_than_a_picosecond: "arrivals = \"1ms\"" => "arrivals = \"0.5ps\"",
    negative_time: "arrivals = \"1ms\"" => "arrivals = \"-1ms\"",
    k_odd: "k = 4" => "k = 5",
    k_zero: "k = 4" => "k = 0",
    rate_zero: "k = 4" => "k = 4\nrate = \"0bps\"",
    rate_zero_in_a_tier: "k = 4" => "k = 4\nrate = { host = \"1Gbps\", aggregation = \"1Gbps\", core = \"0bps\" }",
    propagation_of_hours: "k = 4" => "k = 4\npropagation = \"3600s\"",
    load_above_one: "load = 0.5" => "load = 50",
    swept_load_above_one: "[0.2, 0.5]" => "[0.2, 1.2]",
    swept_load_zero: "[0.2, 0.5]" => "[0.0, 0.5]",
    dctcp_without_marks: "mss = \"1460B\"" => "congestion = { kind = \"dctcp\" }",
    dctcp_on_red_without_marks: "limit = \"100packets\"\n[transport]\nmss = \"1460B\"" => "kind = \"red\"\n[transport]\ncongestion = { kind = \"dctcp\" }",
    weight_of_dctcp_zero: "mss = \"1460B\"" => "congestion = { kind = \"dctcp\", g = 0.0 }",
    unknown_congestion_control: "mss = \"1460B\"" => "congestion = { kind = \"vegas\" }",
    reordering_without_sack: "mss = \"1460B\"" => "reordering = { kind = \"adaptive\" }\nrecovery = \"newreno\"",
    mss_zero: "mss = \"1460B\"" => "mss = \"0B\"",
    receive_window_below_a_segment: "mss = \"1460B\"" => "receive_window = \"1KB\"",
    initial_window_below_a_segment: "mss = \"1460B\"" => "mss = \"9000B\"\ninitial_window = \"4KB\"",
    initial_window_of_no_packet: "mss = \"1460B\"" => "initial_window = \"0packets\"",
    min_rto_zero: "mss = \"1460B\"" => "min_rto = \"0s\"",
    min_rto_above_max_rto: "mss = \"1460B\"" => "min_rto = \"2s\"\nmax_rto = \"1s\"",
    fault_of_no_link: "[queue]" => "[faults]\nincidents = [{ kind = \"link-down\", link = \"edge0>edge1\", at = \"1ms\" }]\n[queue]",
    fault_of_no_switch: "[queue]" => "[faults]\nincidents = [{ kind = \"switch-down\", switch = \"h0\", at = \"1ms\" }]\n[queue]",
    fault_that_ends_before_it_begins: "[queue]" => "[faults]\nincidents = [{ kind = \"link-down\", link = \"s0>s8\", at = \"2ms\", until = \"1ms\" }]\n[queue]",
    faults_that_contradict: "[queue]" => "[faults]\nincidents = [{ kind = \"rate\", link = \"s0>s8\", rate = \"1Mbps\", at = \"1ms\" }, { kind = \"rate\", link = \"s8>s0\", rate = \"2Mbps\", at = \"2ms\" }]\n[queue]",
    loss_of_nothing: "[queue]" => "[faults]\nincidents = [{ kind = \"loss\", link = \"s0>s8\", probability = 0.0, at = \"1ms\" }]\n[queue]",
    unknown_incident: "[queue]" => "[faults]\nincidents = [{ kind = \"link-up\", link = \"s0>s8\", at = \"1ms\" }]\n[queue]",
    shared_buffer_in_packets: "[queue]" => "[switch]\nshared_buffer = \"100packets\"\n[queue]",
    shared_buffer_under_pfabric: "[queue]\nlimit = \"100packets\"" => "[switch]\nshared_buffer = \"4MB\"\n[queue]\nkind = \"pfabric\"",
    tiers_within_tiers: "[queue]" => "[balance]\nkind = \"by-tier\"\ncore = { kind = \"by-tier\" }\n[queue]",
    tinyflow_at_the_core: "[queue]" => "[balance]\nkind = \"by-tier\"\ncore = { kind = \"tinyflow\" }\n[queue]",
    strategy_of_no_switch: "[queue]" => "[balance]\nkind = \"by-tier\"\nswitches = { egde0 = { kind = \"ecmp\" } }\n[queue]",
    strategies_of_one_switch: "[queue]" => "[balance]\nkind = \"by-tier\"\nswitches = { edge0 = { kind = \"ecmp\" }, s0 = { kind = \"spray\" } }\n[queue]",
    tinyflow_at_one_switch: "[queue]" => "[balance]\nkind = \"by-tier\"\nswitches = { edge0 = { kind = \"tinyflow\" } }\n[queue]",
    unknown_strategy_of_a_switch: "[queue]" => "[balance]\nkind = \"by-tier\"\nswitches = { edge0 = { kind = \"sprey\" } }\n[queue]",
    unknown_strategy_of_a_tier: "[queue]" => "[balance]\nkind = \"by-tier\"\nedge = { kind = \"sprey\" }\n[queue]",
    selective_red_with_odd_thresholds: "limit = \"100packets\"" => "kind = \"selective-red\"\nmin = 20.0\nmax = 10.0",
    selective_red_that_is_full_before: "limit = \"100packets\"" => "kind = \"selective-red\"\nlimit = \"5packets\"",
    marks_in_bytes_beyond_a_limit_in_packets: "limit = \"100packets\"" => "kind = \"ecn\"\nlimit = \"100packets\"\nthreshold = \"1MB\"",
    marks_beyond_the_shared_buffer: "[queue]\nlimit = \"100packets\"" => "[switch]\nshared_buffer = \"100KB\"\n[queue]\nkind = \"ecn\"\nlimit = \"unlimited\"\nthreshold = \"300packets\"",
    replicated_mixture_with_subflows: "like = \"TCP\"" => "transport = { kind = \"mixed\", parts = [{ transport = { kind = \"tcp\" } }, { transport = { kind = \"mptcp\" } }] }",
    queue_of_nothing: "limit = \"100packets\"" => "limit = \"0packets\"",
    queue_of_a_link_smaller_than_a_packet: "kind = \"fat-tree\"\nk = 4" => "kind = \"dumbbell\"\npairs = 2\nbottleneck_queue = \"1KB\"",
    marks_beyond_the_queue_of_a_link: "kind = \"fat-tree\"\nk = 4\n[queue]\nlimit = \"100packets\"" => "kind = \"dumbbell\"\npairs = 2\nbottleneck_queue = \"4packets\"\n[queue]\nkind = \"ecn\"\nlimit = \"100packets\"\nthreshold = \"5packets\"",
    queue_smaller_than_a_packet: "limit = \"100packets\"" => "limit = \"1KB\"",
    threshold_zero: "{ kind = \"repflow\" }" => "{ kind = \"repflow\", threshold = \"0B\" }",
    copies_zero: "{ kind = \"repflow\" }" => "{ kind = \"repflow\", copies = 0 }",
    copies_one: "{ kind = \"repflow\" }" => "{ kind = \"repflow\", copies = 1 }",
    arrivals_zero: "arrivals = \"1ms\"" => "arrivals = \"0s\"",
    size_groups_not_ascending: "[report]" => "[measure]\nsize_groups = [\"1MB\", \"10KB\"]\n[report]",
    fabric_at_no_instant: "[report]" => "[measure]\nfabric = true\nfabric_instants = 0\n[report]",
    fabric_at_too_many_instants: "[report]" => "[measure]\nfabric = true\nfabric_instants = 10001\n[report]",
    finished_by_the_beginning: "[report]" => "[measure]\nunfinished = { by = \"0s\" }\n[report]",
    finished_by_a_number: "[report]" => "[measure]\nunfinished = { by = 500 }\n[report]",
    finished_by_another_word: "[report]" => "[measure]\nunfinished = { until = \"500ms\" }\n[report]",
    unfinished_as_a_word_that_is_none: "[report]" => "[measure]\nunfinished = \"by\"\n[report]",
    measure_of_no_clock: "[report]" => "[measure]\nclock = \"reciever\"\n[report]",
    model_with_a_share_above_one: "[report]" => "[model]\nshort_byte_share = 5\n[report]",
    more_hosts_than_addresses: "k = 4" => "k = 82\noversubscription = 4",
    series_of_no_link: "[report]" => "[series]\nlinks = [\"h0>s9\"]\n[report]",
    seeds_zero: "seeds = 2" => "seeds = 0",
    seeds_negative: "seeds = 2" => "seeds = [-1]",
    seeds_empty: "seeds = 2" => "seeds = []",
    seeds_twice: "seeds = 2" => "seeds = [1, 2, 1]",
    seeds_as_text: "seeds = 2" => "seeds = \"2\"",
    like_unknown: "like = \"TCP\"" => "like = \"TPC\"",
    like_circle: "[schemes.TCP]" => "[schemes.TCP]\nlike = \"RepFlow\"",
    like_itself: "like = \"TCP\"" => "like = \"RepFlow\"",
    like_is_no_text: "like = \"TCP\"" => "like = 1",
    scheme_is_no_table: "[schemes.TCP]" => "[schemes]\nDCTCP = \"dctcp\"\n[schemes.TCP]",
    scheme_with_unknown_key: "like = \"TCP\"" => "liek = \"TCP\"",
    scheme_with_its_own_traffic: "like = \"TCP\"" => "traffic = { load = 0.1 }",
    scheme_section_is_no_table: "replicate = { kind = \"repflow\" }" => "replicate = \"repflow\"",
    scheme_with_a_parameter_of_no_kind: "{ kind = \"repflow\" }" => "{ copies = 3 }",
    baseline_unknown: "baseline = \"TCP\"" => "baseline = \"tcp\"",
    sweep_of_unknown_key: "\"traffic.load\"" => "\"traffic.laod\"",
    sweep_of_unknown_section: "\"traffic.load\"" => "\"trafic.load\"",
    sweep_of_the_title: "\"traffic.load\"" => "\"title\"",
    sweep_of_unknown_scheme: "\"traffic.load\"" => "\"schemes.Repflow.replicate.copies\"",
    sweep_of_no_key: "\"traffic.load\"" => "\"traffic load\"",
    sweep_without_values: "[0.2, 0.5]" => "[]",
    sweep_without_a_list: "[0.2, 0.5]" => "0.2",
    sweep_with_a_value_twice: "[0.2, 0.5]" => "[0.2, 0.5, 0.20]",
    sweep_with_a_value_in_two_units: "\"traffic.load\" = [0.2, 0.5]" => "\"horizon.drain\" = [\"1s\", \"1000ms\", \"2s\"]",
    sweep_of_what_every_scheme_sets: "[schemes.TCP]\n[schemes.RepFlow]\nlike = \"TCP\"\nreplicate = { kind = \"repflow\" }\n[sweep]\n\"traffic.load\" = [0.2, 0.5]" => "[schemes.TCP]\nqueue = { limit = \"50packets\" }\n[sweep]\n\"queue.limit\" = [\"10packets\", \"20packets\"]",
    too_many_runs: "seeds = 2" => "seeds = 99999",
    several_at_once: "k = 4\n[queue]\nlimit = \"100packets\"" => "kk = 4\n[queue]\nlimit = 100",
}

/// Returns the good experiment without its sweep, so that its traffic stands as written.
fn unswept() -> String {
    with("[sweep]\n\"traffic.load\" = [0.2, 0.5]\n", "")
}

refused! {
    unswept();
    load_zero: "load = 0.5" => "load = 0",
    load_not_a_number: "load = 0.5" => "load = nan",
    series_of_no_flow: "load = 0.5" => "load = 0.5\n[series]\nflows = [0, 999999]",
    mix_with_a_wrong_part: "kind = \"poisson\"\nload = 0.5" => "kind = \"mix\"\nparts = [{ kind = \"poisson\", load = 0.1 }, { kind = \"incast\", fan_in = 99 }]",
    trace_without_file: "kind = \"poisson\"\nload = 0.5" => "kind = \"trace\"\nfile = \"none.csv\"",
}

#[test]
fn an_error_has_code_file_place_key_and_hint() {
    let failure = failure(&with("k = 4", "kk = 4"));
    assert_eq!(failure.diagnostics.len(), 1);
    let diagnostic = &failure.diagnostics[0];
    assert_eq!(diagnostic.code, "TC-E010");
    assert_eq!(diagnostic.file, "test.toml");
    assert_eq!((diagnostic.line, diagnostic.column), (5, 1));
    assert_eq!(diagnostic.key, "topology.kk");
    assert_eq!(diagnostic.hint.as_deref(), Some("did you mean `k`?"));
    assert_eq!(
        diagnostic.expected.as_deref(),
        Some("one of kind, k, rate, propagation, oversubscription")
    );
}

#[test]
fn the_key_of_an_error_is_written_as_set_takes_it() {
    let text = replaced(GOOD, "[schemes.RepFlow]", "[schemes.\"Rep.Flow 2\"]\ncolour = 1");
    let found = failure(&text).diagnostics.iter().map(|one| one.key.clone()).collect::<Vec<_>>();
    assert!(found.contains(&"schemes.\"Rep.Flow 2\".colour".to_owned()), "{found:?}");
}

#[test]
fn columns_of_errors_count_characters_not_bytes() {
    let failure =
        failure(&with("title = \"a test\"", "title = \"ä\"\nhost = { \"nic_quëue\" = 1, x = 2 }"));
    let columns: Vec<_> = failure.diagnostics.iter().map(|d| (d.line, d.column)).collect();
    assert_eq!(columns, [(2, 10), (2, 27)]);
}

#[test]
fn an_error_in_an_override_points_at_the_command_line() {
    let failure = load(GOOD, &[("topology.k", "5")]).expect_err("k is odd");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("override_with_an_odd_k", failure.to_string());
    });
}

#[test]
fn an_override_of_an_unknown_scheme_is_refused() {
    let failure =
        load(GOOD, &[("schemes.Repflow.replicate.copies", "3")]).expect_err("no such scheme");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("override_of_an_unknown_scheme", failure.to_string());
    });
}

#[test]
fn an_override_without_a_key_is_refused() {
    let failure = load(GOOD, &[("traffic load", "3")]).expect_err("not a key");
    assert_eq!(failure.diagnostics[0].code, "TC-E003");
}

#[test]
fn reports_a_missing_file() {
    let missing = std::path::Path::new("no/such/file.toml");
    let failure = tailcut_experiment::load(
        missing,
        tailcut_experiment::Changes::default(),
        &tailcut_experiment::no_table_reader,
    )
    .expect_err("there is no such file");
    assert_eq!(failure.diagnostics[0].code, "TC-E001");
    assert!(failure.to_string().contains("no/such/file.toml"), "{failure}");
}
