//! Properties of every text, valid or not.

use crate::common::{GOOD, load, with};
use proptest::prelude::*;
use tailcut_experiment::Plan;

/// Pieces of experiments, valid or not, to be combined at random.
const PIECES: &[&str] = &[
    "title = \"t\"\n",
    "seeds = ",
    "[topology]\n",
    "kind = ",
    "\"fat-tree\"\n",
    "\"node-link\"\n",
    "k = ",
    "4\n",
    "-1\n",
    "5\n",
    "1e308\n",
    "nan\n",
    "\"1Gbps\"\n",
    "\"32us\"\n",
    "\"100KB\"\n",
    "\"0packets\"\n",
    "[traffic]\n",
    "load = ",
    "0.5\n",
    "[schemes.A]\n",
    "[schemes.B]\n",
    "like = \"A\"\n",
    "like = \"B\"\n",
    "replicate = { kind = \"repflow\" }\n",
    "[sweep]\n",
    "\"traffic.load\" = [0.1, 0.2]\n",
    "\"schemes.A.like\" = [1]\n",
    "[report]\n",
    "baseline = \"A\"\n",
    "[queue]\n",
    "limit = ",
    "[measure]\n",
    "size_groups = []\n",
    "[horizon]\n",
    "arrivals = \"1ms\"\n",
    "[host]\n",
    "[series]\n",
    "links = [\"h0>s0\"]\n",
    "flows = [1]\n",
    "[[x]]\n",
    "a.b.c = {}\n",
    "ü = \"ß\"\n",
    "'''",
    "\"",
    "=",
    "]",
    "{",
    "\n",
    "#",
    "\u{feff}",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..24).prop_map(|p| p.concat())
}

/// The good experiment with a random range replaced by a piece.
fn mangled() -> impl Strategy<Value = String> {
    let length = GOOD.len();
    (0..length, 0..40usize, prop_oneof![pieces(), any::<String>()]).prop_map(
        move |(start, removed, inserted)| {
            let end = (start + removed).min(length);
            format!("{}{inserted}{}", &GOOD[..start], &GOOD[end..])
        },
    )
}

/// Changes that keep the experiment valid: keys and values for `--set`.
fn changes() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let one = prop_oneof![
        (1u32..5).prop_map(|k| ("topology.k", (2 * k).to_string())),
        (1u32..200).prop_map(|n| ("queue.limit", format!("{n}packets"))),
        (1u64..100).prop_map(|n| ("transport.min_rto", format!("{n}ms"))),
        (1460u64..1_000_000).prop_map(|n| ("transport.receive_window", format!("{n}B"))),
        (1u64..100).prop_map(|n| ("traffic.load", format!("{}", n as f64 / 100.0))),
        (1u64..5).prop_map(|n| ("horizon.arrivals", format!("{n}ms"))),
        (2u32..9).prop_map(|n| ("schemes.RepFlow.replicate.copies", n.to_string())),
        (0u64..1000).prop_map(|n| ("seeds", format!("[{n}]"))),
        (1u64..1000).prop_map(|n| ("measure.short", format!("{n}KB"))),
    ];
    prop::collection::vec(one, 0..5)
}

fn planned(changes: &[(&'static str, String)]) -> Plan {
    let changes: Vec<_> = changes.iter().map(|(k, v)| (*k, v.as_str())).collect();
    load(GOOD, &changes).unwrap_or_else(|failure| panic!("{failure}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_yields_diagnostics_and_no_panic(text in prop_oneof![pieces(), mangled(), any::<String>()]) {
        if let Err(failure) = load(&text, &[]) {
            prop_assert!(!failure.diagnostics.is_empty());
            for diagnostic in &failure.diagnostics {
                prop_assert!(diagnostic.code.starts_with("TC-E"));
                prop_assert!(!diagnostic.message.is_empty());
                let lines = text.split('\n').count();
                prop_assert!(diagnostic.line <= lines, "line {} of {lines}", diagnostic.line);
            }
        }
    }

    #[test]
    fn no_override_panics(key in "\\PC{0,20}", value in "\\PC{0,20}") {
        if let Err(failure) = load(GOOD, &[(&key, &value)]) {
            prop_assert!(!failure.diagnostics.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn plans_survive_their_json(changes in changes()) {
        let plan = planned(&changes);
        let text = serde_json::to_string(&plan).expect("a plan is plain data");
        prop_assert_eq!(serde_json::from_str::<Plan>(&text).expect("it reads what it wrote"), plan);
    }

    #[test]
    fn identifiers_are_equal_exactly_when_configurations_are(a in changes(), b in changes()) {
        let (a, b) = (planned(&a), planned(&b));
        for x in &a.runs {
            for y in &b.runs {
                prop_assert_eq!(x.id == y.id, x.config == y.config && x.seed == y.seed);
            }
        }
    }

    #[test]
    fn an_override_means_what_the_same_value_in_the_file_means(limit in 1u32..500) {
        let value = format!("{limit}packets");
        let written = with("limit = \"100packets\"", &format!("limit = \"{value}\""));
        let written = load(&written, &[]).expect("the experiment is right");
        prop_assert_eq!(load(GOOD, &[("queue.limit", &value)]).expect("so is this"), written);
    }
}
