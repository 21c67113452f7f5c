//! The meaning of an experiment: schemes, sweeps, overrides, identifiers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{GOOD, plan, plan_with, replaced, with};
use serde_json::{Value as Json, json};
use tailcut_experiment::{Changes, Failure, Plan, RunPlan, Variant, load_text, no_table_reader};

/// Returns the configuration of a scheme's first run, as JSON.
fn config(plan: &Plan, scheme: &str) -> Json {
    let run = plan.runs.iter().find(|r| r.scheme == scheme).expect("the scheme has runs");
    serde_json::to_value(&run.config).expect("a configuration is plain data")
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.runs.iter().map(|r| r.id.as_str()).collect()
}

#[test]
fn every_default_is_explicit() {
    let config = config(&plan(GOOD), "TCP");
    assert_eq!(config["host"]["nic_queue"], "unlimited");
    assert_eq!(config["scheme"]["transport"]["receive_window"], "64KB");
    assert_eq!(config["scheme"]["transport"]["initial_ssthresh"], "unlimited");
    assert_eq!(config["scheme"]["replicate"], json!({ "kind": "none" }));
    assert_eq!(config["horizon"]["drain"], "1s");
    assert_eq!(config["labels"]["clock"], "receiver");
}

#[test]
fn a_parameter_that_takes_words_or_a_list_takes_each_word_and_the_list() {
    for (written, said) in
        [(r#""none""#, json!("none")), (r#"["no-rescue"]"#, json!(["no-rescue"]))]
    {
        let plan = plan_with(GOOD, &[("transport.imitate", written)]);
        assert_eq!(config(&plan, "TCP")["scheme"]["transport"]["imitate"], said);
    }
}

#[test]
fn runs_are_every_scheme_at_every_point_under_every_seed() {
    let plan = plan(GOOD);
    let runs: Vec<_> = plan
        .runs
        .iter()
        .map(|r| (r.point["traffic.load"].as_f64().expect("a number"), r.scheme.as_str(), r.seed))
        .collect();
    let expected: Vec<_> = [0.2, 0.5]
        .into_iter()
        .flat_map(|load| ["TCP", "RepFlow"].map(|scheme| (load, scheme)))
        .flat_map(|(load, scheme)| [(load, scheme, 1), (load, scheme, 2)])
        .collect();
    assert_eq!(runs, expected);
    assert_eq!(plan.schemes, ["TCP", "RepFlow"]);
    assert_eq!(plan.seeds, [1, 2]);
    assert_eq!(plan.baseline, "TCP");
}

#[test]
fn a_swept_value_reaches_the_configuration() {
    let plan = plan(GOOD);
    for run in &plan.runs {
        let config = serde_json::to_value(&run.config).expect("a configuration is plain data");
        assert_eq!(config["traffic"]["load"], run.point["traffic.load"]);
    }
}

#[test]
fn each_topology_takes_a_rate_and_a_delay_for_each_of_its_own_tiers() {
    for (kind, parts) in [
        ("fat-tree", ["host", "aggregation", "core"].as_slice()),
        ("leaf-spine", &["host", "spine"]),
        ("dumbbell", &["host", "bottleneck"]),
        ("parallel-paths", &["host", "path"]),
    ] {
        let each = |value: &str| {
            parts.iter().map(|part| format!("{part} = '{value}'")).collect::<Vec<_>>().join(", ")
        };
        // Parallel paths have one rate each.
        let rate = match kind {
            "parallel-paths" => String::new(),
            _ => format!("rate = {{ {} }}\n", each("2Gbps")),
        };
        let delay = each("7us");
        let text = format!("kind = \"{kind}\"\n{rate}propagation = {{ {delay} }}\n");
        let plan = plan(&with("kind = \"fat-tree\"\nk = 4\n", &text));
        let config = serde_json::to_value(&plan.runs[0].config).expect("plain data");
        let of = |key: &str, value: &str| {
            for part in parts {
                assert_eq!(config["topology"][key][part], value, "{kind} {key} {part}");
            }
        };
        of("propagation", "7us");
        if !rate.is_empty() {
            of("rate", "2Gbps");
        }
    }
}

#[test]
fn a_file_without_schemes_has_one_which_is_the_baseline() {
    let plan = plan("title = 't'\n[topology]\n[traffic]\n[horizon]\narrivals = '1ms'");
    assert_eq!(plan.schemes, ["default"]);
    assert_eq!(plan.baseline, "default");
    assert_eq!(plan.seeds, [1]);
}

#[test]
fn a_scheme_inherits_by_key() {
    let text = with(
        "replicate = { kind = \"repflow\" }",
        "transport = { min_rto = \"5ms\" }\n[schemes.Third]\nlike = \"RepFlow\"\ntransport = { recovery = \"newreno\" }",
    );
    let transport = |scheme| config(&plan(&text), scheme)["scheme"]["transport"].clone();
    assert_eq!(transport("TCP")["min_rto"], "10ms");
    assert_eq!(transport("Third")["min_rto"], "5ms");
    assert_eq!(transport("Third")["recovery"], "newreno");
    assert_eq!(transport("RepFlow")["recovery"], "sack-prr");
}

#[test]
fn a_scheme_may_inherit_from_one_that_comes_later() {
    let text = with("[schemes.TCP]", "[schemes.First]\nlike = \"RepFlow\"\n[schemes.TCP]");
    assert_eq!(config(&plan(&text), "First")["scheme"]["replicate"]["kind"], "repflow");
}

#[test]
fn another_kind_drops_the_parameters_of_the_one_it_replaces() {
    let text = with(
        "replicate = { kind = \"repflow\" }",
        "replicate = { kind = \"repflow\", copies = 3, loser = \"finish\" }\n[schemes.RepSYN]\nlike = \"RepFlow\"\nreplicate = { kind = \"repsyn\" }",
    );
    assert_eq!(
        config(&plan(&text), "RepSYN")["scheme"]["replicate"],
        json!({ "kind": "repsyn", "threshold": "100KB", "copies": 2, "copy_delay": "0ps" })
    );
}

#[test]
fn the_same_kind_keeps_inherited_keys() {
    let text = with(
        "replicate = { kind = \"repflow\" }",
        "replicate = { kind = \"repflow\", copies = 3 }\n[schemes.B]\nlike = \"RepFlow\"\nreplicate = { kind = \"repflow\", loser = \"finish\" }",
    );
    let replicate = config(&plan(&text), "B")["scheme"]["replicate"].clone();
    assert_eq!((&replicate["copies"], &replicate["loser"]), (&json!(3), &json!("finish")));
}

#[test]
fn a_sweep_reaches_into_a_scheme_and_leaves_the_others_their_runs() {
    let text = with("\"traffic.load\" = [0.2, 0.5]", "schemes.RepFlow.replicate.copies = [2, 3]");
    let plan = plan(&text);
    let of = |scheme: &str| -> Vec<&RunPlan> {
        plan.runs.iter().filter(|r| r.scheme == scheme && r.seed == 1).collect()
    };
    assert_eq!(of("TCP")[0].id, of("TCP")[1].id);
    assert_ne!(of("RepFlow")[0].id, of("RepFlow")[1].id);
    assert_eq!(plan.sweep[0].key, "schemes.RepFlow.replicate.copies");
}

#[test]
fn a_sweep_reaches_into_lists() {
    let text = with(
        "kind = \"poisson\"\nload = 0.5",
        "kind = \"mix\"\nparts = [{ kind = \"poisson\" }, { kind = \"incast\", period = \"200us\" }]",
    );
    let text = text.replace("traffic.load", "traffic.parts.0.load");
    let loads: Vec<_> =
        plan(&text).runs.iter().map(|r| r.point["traffic.parts.0.load"].clone()).collect();
    assert_eq!(loads.first(), Some(&json!(0.2)));
    assert_eq!(config(&plan(&text), "TCP")["traffic"]["parts"][0]["load"], 0.2);
}

#[test]
fn a_sweep_may_run_through_whole_sections() {
    let text = with(
        "\"traffic.load\" = [0.2, 0.5]",
        "queue = [{ limit = \"25packets\" }, { kind = \"drop-tail\", limit = \"100packets\" }]",
    );
    let plan = plan(&text);
    assert_eq!(plan.runs[0].point["queue"], "limit=25packets");
    assert_eq!(config(&plan, "TCP")["scheme"]["queue"]["limit"], "25packets");
}

#[test]
fn several_axes_make_the_cross_product_the_first_varying_slowest() {
    let text = with(
        "[0.2, 0.5]",
        "[0.2, 0.5]\nqueue.limit = [\"25packets\", \"50packets\", \"75packets\"]",
    );
    let plan = plan(&text);
    let points: Vec<_> = plan
        .runs
        .iter()
        .filter(|r| r.scheme == "TCP" && r.seed == 1)
        .map(|r| format!("{} {}", r.point["traffic.load"], r.point["queue.limit"]))
        .collect();
    assert_eq!(
        points,
        [
            "0.2 \"25packets\"",
            "0.2 \"50packets\"",
            "0.2 \"75packets\"",
            "0.5 \"25packets\"",
            "0.5 \"50packets\"",
            "0.5 \"75packets\""
        ]
    );
}

#[test]
fn an_override_takes_the_place_of_a_value() {
    let plan = plan_with(GOOD, &[("queue.limit", "25packets"), ("seeds", "[7]")]);
    assert_eq!(config(&plan, "TCP")["scheme"]["queue"]["limit"], "25packets");
    assert_eq!(plan.seeds, [7]);
}

#[test]
fn an_override_of_a_swept_key_ends_its_sweep() {
    let plan = plan_with(GOOD, &[("traffic.load", "0.3")]);
    assert!(plan.sweep.is_empty());
    assert_eq!(config(&plan, "TCP")["traffic"]["load"], 0.3);
    assert_eq!(plan.runs.len(), 4);
}

#[test]
fn an_override_of_a_swept_key_with_a_list_sweeps_over_the_list() {
    for text in [GOOD.to_owned(), GOOD.replace("\"traffic.load\"", "traffic.load")] {
        let plan = plan_with(&text, &[("traffic.load", "[0.1, 0.9]")]);
        assert_eq!(plan.sweep[0].values, [json!(0.1), json!(0.9)]);
        assert_eq!(plan.sweep.len(), 1);
    }
}

#[test]
fn an_override_with_a_list_leaves_the_order_of_the_axes_as_it_was() {
    let swept = |axes: &str| GOOD.replace("\"traffic.load\" = [0.2, 0.5]", axes);
    for text in [
        swept("traffic.load = [0.2, 0.5]\n\"transport.mss\" = [\"1000B\", \"1460B\"]"),
        swept(
            "[sweep.traffic]\nload = [0.2, 0.5]\n[sweep.transport]\nmss = [\"1000B\", \"1460B\"]",
        ),
        swept("\"queue.limit\" = [\"9packets\", \"50packets\"]\n\"traffic.load\" = [0.2, 0.5]"),
    ] {
        let written = plan(&text);
        for axis in &written.sweep {
            let values = serde_json::to_string(&axis.values).expect("values are plain data");
            let set = plan_with(&text, &[(&axis.key, &values)]);
            assert_eq!(set, written, "{}", axis.key);
        }
    }
}

#[test]
fn names_titles_and_the_order_of_the_file_do_not_change_run_ids() {
    let other = r#"
        report = { baseline = "B" }
        sweep."traffic.load" = [0.20, 0.5]
        schemes.A.like = "B"
        schemes.A.replicate = { copies = 2, kind = "repflow" }
        schemes.B = {}
        horizon.arrivals = "1000us"
        traffic = { load = 0.5, kind = "poisson", sizes = "web-search" }
        queue = { kind = "drop-tail", limit = "100 packets" }
        topology = { k = 4, kind = "fat-tree", rate = "1000Mbps" }
        question = "why?"
        seeds = [1, 2]
        title = "another"
    "#;
    let (a, b) = (plan(GOOD), plan(other));
    let by_place = |plan: &Plan, scheme: &str| -> BTreeMap<String, String> {
        plan.runs
            .iter()
            .filter(|r| r.scheme == scheme)
            .map(|r| (format!("{} {}", r.point["traffic.load"], r.seed), r.id.clone()))
            .collect()
    };
    assert_eq!(by_place(&a, "TCP"), by_place(&b, "B"));
    assert_eq!(by_place(&a, "RepFlow"), by_place(&b, "A"));
}

#[test]
fn keys_that_change_a_table_change_the_run_id() {
    let base = plan(GOOD).runs[0].id.clone();
    for (key, value) in [
        ("topology.k", "6"),
        ("queue.limit", "99packets"),
        ("transport.min_rto", "11ms"),
        ("traffic.pairs", "inter-pod"),
        ("horizon.drain", "2s"),
        ("host.framing_overhead", "2B"),
        ("measure.short", "50KB"),
        ("measure.clock", "sender"),
        ("series.flows", "[0]"),
        ("seeds", "[3]"),
        ("traffic.load", "0.21"),
    ] {
        assert_ne!(plan_with(GOOD, &[(key, value)]).runs[0].id, base, "{key}");
    }
}

#[test]
fn summary_only_keys_keep_the_run_id() {
    for unfinished in ["exclude", "{ by = \"500ms\" }"] {
        let changed =
            plan_with(GOOD, &[("measure.unfinished", unfinished), ("report.baseline", "RepFlow")]);
        assert_eq!(ids(&changed), ids(&plan(GOOD)));
    }
}

#[test]
fn the_time_by_which_flows_must_finish_can_be_set_by_a_dotted_key() {
    let plan = plan_with(GOOD, &[("measure.unfinished.by", "500ms")]);
    let written = serde_json::to_value(&plan.measure).expect("a plan is plain data");
    assert_eq!(written["unfinished"], serde_json::json!({ "by": "500ms" }));
}

#[test]
fn identifiers_are_hashes_of_configuration_and_seed() {
    let plan = plan(GOOD);
    let mut seen: BTreeMap<&str, (String, u64)> = BTreeMap::new();
    for run in &plan.runs {
        assert_eq!(run.id.len(), 64);
        assert!(run.id.chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase()));
        let content = (serde_json::to_string(&run.config).expect("plain data"), run.seed);
        assert_eq!(seen.entry(&run.id).or_insert_with(|| content.clone()), &content);
    }
    assert_eq!(seen.len(), plan.runs.len());
}

#[test]
fn a_file_enters_the_run_id_by_its_content_not_by_its_name() {
    let trace = |file: &str| {
        let traffic = format!("kind = \"trace\"\nfile = \"{file}\"");
        let text = with("kind = \"poisson\"\nload = 0.5", &traffic);
        plan(&text.replace("\"traffic.load\" = [0.2, 0.5]", ""))
    };
    let (a, same, other) =
        (trace("two-flows.csv"), trace("same-two-flows.csv"), trace("three-flows.csv"));
    assert_eq!(ids(&a), ids(&same));
    assert_ne!(a.runs[0].id, other.runs[0].id);
    assert_eq!(a.runs[0].facts.flows, 2);
    assert_eq!(other.runs[0].facts.flows, 3);
    let file = &a.runs[0].files[0];
    assert_eq!(file.path, "two-flows.csv");
    assert!(std::path::Path::new(&file.resolved).is_absolute());
}

#[test]
fn facts_count_the_network_and_its_flows() {
    let traffic = "kind = \"trace\"\nflows = [{ src = 0, dst = 15, bytes = \"14600B\" }, { src = 0, dst = 1, bytes = \"1B\" }]";
    let text = with("kind = \"poisson\"\nload = 0.5", traffic);
    let plan = plan(&text.replace("\"traffic.load\" = [0.2, 0.5]", ""));
    let facts =
        |scheme: &str| plan.runs.iter().find(|r| r.scheme == scheme).expect("a run").facts.clone();
    let tcp = facts("TCP");
    assert_eq!((tcp.hosts, tcp.switches, tcp.links, tcp.flows), (16, 20, 48, 2));
    assert_eq!(tcp.host_capacity_bps, 16_000_000_000);
    assert_eq!(tcp.offered_bytes, 14_601);
    // Ten segments and one, an ACK each, three packets to open and one to close each connection.
    assert_eq!(tcp.expected_packets, (10 + 10 + 4) + (1 + 1 + 4));
    assert_eq!(tcp.expected_packet_hops, 6 * (10 + 10 + 4) + 2 * (1 + 1 + 4));
    assert_eq!(facts("RepFlow").expected_packet_hops, 2 * tcp.expected_packet_hops);
    // One flow goes to another pod, the other to the host beside it.
    assert_eq!(tcp.flows_with_choice, 1);
}

#[test]
fn the_plan_survives_its_own_json() {
    let plan = plan(GOOD);
    let text = serde_json::to_string(&plan).expect("a plan is plain data");
    let back: Plan = serde_json::from_str(&text).expect("it reads what it wrote");
    assert_eq!(back, plan);
}

/// A run is refused unless its identifier fits its content: a number read with an error in its last
/// digit would make another run.
#[test]
fn a_number_of_seventeen_digits_survives_the_plans_json() {
    let plan = plan_with(GOOD, &[("traffic.load", "[0.09090909090909091, 0.30000000000000004]")]);
    for run in &plan.runs {
        let text = serde_json::to_string(run).expect("a run is plain data");
        let back: RunPlan = serde_json::from_str(&text).expect("it reads what it wrote");
        assert_eq!(back.config, run.config);
        tailcut_experiment::to_scenario(&back, &tailcut_experiment::no_table_reader)
            .expect("it is the same run");
    }
}

const SMALL: &str = "[small]\nseeds = 1\n\"horizon.arrivals\" = \"2ms\"\n\"traffic.load\" = [0.3]\ntopology = { k = 8 }\n";

fn planned(text: &str, small: bool, set: &[(&str, &str)]) -> Result<Plan, Failure> {
    planned_as(text, small.then_some(Variant::Small), set)
}

fn planned_as(text: &str, variant: Option<Variant>, set: &[(&str, &str)]) -> Result<Plan, Failure> {
    let set: Vec<_> = set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let changes = Changes { variant, set: &set };
    load_text("test.toml", text, Path::new(""), changes, &no_table_reader)
}

#[test]
fn the_small_variant_is_the_file_with_the_tables_keys_set() {
    let small = planned(&format!("{GOOD}{SMALL}"), true, &[]).expect("it is right");
    let set = [
        ("seeds", "1"),
        ("horizon.arrivals", "2ms"),
        ("traffic.load", "[0.3]"),
        ("topology.k", "8"),
    ];
    let by_hand = planned(GOOD, false, &set).expect("it is right");
    assert_eq!(ids(&small), ids(&by_hand));
    assert_eq!(small.title, "a test (small)");
}

#[test]
fn overrides_go_over_the_small_variant() {
    let small = planned(&format!("{GOOD}{SMALL}"), true, &[("topology.k", "4")]).expect("right");
    assert_eq!(config(&small, "TCP")["topology"]["k"], 4);
}

#[test]
fn without_being_asked_for_the_small_variant_changes_nothing() {
    let full = planned(&format!("{GOOD}{SMALL}"), false, &[]).expect("it is right");
    assert_eq!(ids(&full), ids(&plan(GOOD)));
    assert_eq!(full.title, "a test");
}

#[test]
fn a_file_without_a_small_variant_has_none_to_run() {
    let failure = planned(GOOD, true, &[]).expect_err("there is no [small]");
    assert!(failure.to_string().contains("the file has no table [small]"), "{failure}");
}

#[test]
fn a_wrong_key_of_the_small_variant_is_found_before_it_is_asked_for() {
    let misspelt = format!("{GOOD}[small]\n\"topology.kk\" = 4\n");
    let failure = planned(&misspelt, false, &[]).expect_err("there is no such key");
    assert!(failure.to_string().contains("`topology` has no key `kk`"), "{failure}");
    let no_table = GOOD.replace("seeds = 2", "seeds = 2\nsmall = 3");
    let failure = planned(&no_table, false, &[]).expect_err("it is no table");
    assert!(failure.to_string().contains("`small` is the integer 3"), "{failure}");
}

#[test]
fn the_medium_variant_says_in_the_title_what_it_leaves_out() {
    let text = format!("{GOOD}{SMALL}[medium]\nabout = \"8 pods\"\n\"topology.k\" = 8\n");
    let medium = planned_as(&text, Some(Variant::Medium), &[]).expect("it is right");
    assert_eq!(config(&medium, "TCP")["topology"]["k"], 8);
    assert_eq!(medium.title, "a test (8 pods)");
    assert_eq!(ids(&planned(&text, false, &[]).expect("it is right")), ids(&plan(GOOD)));
}

#[test]
fn a_medium_variant_that_does_not_say_what_it_leaves_out_is_refused() {
    for (table, said) in [
        ("[medium]\n\"topology.k\" = 8\n", "[medium] does not say what it leaves out"),
        ("[medium]\nabout = 3\n", "`medium.about` is the integer 3"),
    ] {
        let failure = planned(&format!("{GOOD}{table}"), false, &[]).expect_err("it is wrong");
        assert!(failure.to_string().contains(said), "{failure}");
    }
}

/// Returns the notes on the first run of an experiment under overrides.
fn notes(text: &str, changes: &[(&str, &str)]) -> Vec<String> {
    plan_with(text, changes).runs[0].facts.notes.clone()
}

#[test]
fn notes_equal_shares_of_links_of_different_rates() {
    let paths = |rates| {
        let topology = format!("kind = \"parallel-paths\"\npath_rates = {rates}");
        with("kind = \"fat-tree\"\nk = 4", &topology)
    };
    let unequal = paths("[\"1Gbps\", \"400Mbps\"]");
    let found = notes(&unequal, &[]);
    assert!(
        found[0]
            .starts_with("ECMP gives equal shares to links of 400Mbps and 1Gbps, for example at "),
        "{found:?}"
    );
    assert_eq!(notes(&unequal, &[("balance.weights", "\"rate\"")]), Vec::<String>::new());
    assert_eq!(notes(&unequal, &[("balance.kind", "\"spray\"")]), Vec::<String>::new());
    assert_eq!(notes(&paths("[\"1Gbps\", \"1Gbps\"]"), &[]), Vec::<String>::new());
}

#[test]
fn notes_a_first_timeout_below_three_round_trips_of_the_longest_path() {
    let long = &with("arrivals = \"1ms\"", "arrivals = \"20ms\"");
    let far = [("topology.propagation", "\"1ms\"")];
    let found = notes(long, &far);
    assert!(found[0].contains("every SYN on that path is retransmitted"), "{found:?}");
    let near = [("topology.propagation", "\"400us\"")];
    assert!(notes(long, &near)[0].contains("a SYN that waits"));
    let patient = [far[0], ("transport.initial_rto", "\"1s\"")];
    assert_eq!(notes(long, &patient), Vec::<String>::new());
}

#[test]
fn notes_a_window_that_does_not_grow_while_packets_are_sprayed() {
    let long = &with("arrivals = \"1ms\"", "arrivals = \"20ms\"");
    let ncr = ("transport.reordering.kind", "\"ncr\"");
    let spray = ("balance.kind", "\"spray\"");
    assert!(notes(long, &[ncr, spray])[0].contains("the window does not grow"));
    assert_eq!(notes(long, &[ncr]), Vec::<String>::new(), "ECMP keeps the order of a flow");
}

#[test]
fn notes_the_reordering_that_rr_tcp_takes_for_loss() {
    let long = &with("arrivals = \"1ms\"", "arrivals = \"20ms\"");
    let rr_tcp = ("transport.reordering.kind", "\"rr-tcp\"");
    let spray = ("balance.kind", "\"spray\"");
    assert!(notes(long, &[rr_tcp, spray])[0].contains("a share of 0.10 of reordered segments"));
    assert_eq!(notes(long, &[rr_tcp]), Vec::<String>::new(), "ECMP keeps the order of a flow");
    let all = ("transport.reordering.percentile", "1.0");
    assert_eq!(notes(long, &[rr_tcp, spray, all]), Vec::<String>::new());
}

#[test]
fn notes_an_order_of_simultaneous_packets_that_has_no_effect() {
    let arrival = ("queue.ties", "\"arrival\"");
    let drr = ("queue.kind", "\"drr\"");
    let found = notes(GOOD, &[drr, arrival]);
    assert!(found[0].starts_with("queue.ties has no effect"), "{found:?}");
    let paused = notes(GOOD, &[arrival, ("switch.pfc", "{ xoff = \"40KB\", xon = \"20KB\" }")]);
    assert!(paused[0].contains("with flow control"), "{paused:?}");
    assert_eq!(notes(GOOD, &[arrival]), Vec::<String>::new(), "drop-tail");
    assert_eq!(notes(GOOD, &[drr]), Vec::<String>::new(), "nobody chose");
}

#[test]
fn reports_when_routing_learns_of_each_failure() {
    let faults = r#"[{ kind = "link-down", link = "edge0>agg0", at = "0s", until = "5ms" }, { kind = "switch-down", switch = "core0", at = "1ms" },
        { kind = "rate", link = "edge0>agg1", rate = "100Mbps", at = "0s" }]"#;
    let routing = |known| {
        let changes = [("faults.incidents", faults), ("faults.known_at_start", known)];
        plan_with(GOOD, &changes).runs[0].facts.routing.clone()
    };
    let switch = "switch core0 down at 1ms, learned of at 11ms";
    let known =
        "link edge0>agg0 down at 0s, known when the run begins; up at 5ms, used again from 15ms";
    assert_eq!(routing("true"), [known, switch]);
    assert!(routing("false")[0].starts_with("link edge0>agg0 down at 0s, learned of at 10ms"));
}

#[test]
fn flows_of_a_trace_have_one_fingerprint_under_every_seed() {
    let demands = |plan: &Plan| plan.runs.iter().map(|run| run.facts.demand).collect::<Vec<_>>();
    let drawn = demands(&plan(&with("arrivals = \"1ms\"", "arrivals = \"20ms\"")));
    assert_ne!(drawn[0], drawn[1], "of two seeds");
    assert_eq!(drawn[0], drawn[2], "of two schemes");
    let trace = "kind = \"trace\"\nflows = [{ src = 0, dst = 9, bytes = \"1MB\" }]";
    let given = with("kind = \"poisson\"\nload = 0.5", trace);
    let given = plan(&replaced(&given, "[sweep]\n\"traffic.load\" = [0.2, 0.5]", ""));
    let all = demands(&given);
    assert!(all.iter().all(|one| *one == all[0]));
    assert!(given.runs[0].facts.draws, "ECMP's salts");
}
