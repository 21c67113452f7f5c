use super::*;

fn spec(json: serde_json::Value) -> EntropySpec {
    serde_json::from_value(json).expect("it is a policy")
}

#[test]
fn each_policy_is_told_by_its_kind_and_stays_within_its_values() {
    for kind in ["random", "oblivious", "bitmap", "reps", "mixed", "plb"] {
        let spec = spec(serde_json::json!({ "kind": kind, "values": 16 }));
        assert_eq!(spec.check(), Ok(()));
        assert_eq!((spec.values(), spec.scatters()), (16, kind != "plb"));
        let mut state = spec.state(RandomStream::new(1, 1, "entropy"));
        let first = state.next(Time::ZERO);
        for step in 0..1_000 {
            let value = state.next(Time(step));
            assert_eq!((value ^ first) & !15, 0, "{kind}: the bits above are constant");
            let what = [Feedback::Good, Feedback::Marked, Feedback::Trimmed, Feedback::Lost];
            state.feedback(Time(step), Some(value), what[step as usize % 4]);
        }
    }
}

#[test]
fn refuses_numbers_of_values_that_are_no_power_of_two() {
    for kind in ["random", "oblivious", "bitmap", "reps", "mixed", "plb"] {
        for values in [0, 3, 1 << 17] {
            let error = spec(serde_json::json!({ "kind": kind, "values": values })).check();
            assert_eq!(error.expect_err("refused").field, "values");
        }
    }
}

#[test]
fn refuses_parameters_out_of_range() {
    let field = |json| spec(json).check().map_err(|error| error.field);
    let refused = |name: &str| Err(name.to_owned());
    assert_eq!(field(serde_json::json!({ "kind": "reps", "ring": 0 })), refused("ring"));
    assert_eq!(field(serde_json::json!({ "kind": "reps", "uses": 0 })), refused("uses"));
    let thaw = serde_json::json!({ "kind": "explore", "every": 0 });
    assert_eq!(field(serde_json::json!({ "kind": "reps", "thaw": thaw })), refused("thaw.every"));
    let failure = serde_json::json!({ "kind": "quiet-timeout", "most": 0.5 });
    let reps = serde_json::json!({ "kind": "reps", "failure": failure });
    assert_eq!(field(reps), refused("failure.most"));
    let plb = serde_json::json!({ "kind": "plb", "cong_thresh": 257 });
    assert_eq!(field(plb), refused("cong_thresh"));
    let plb = serde_json::json!({ "kind": "plb", "rehash_rounds": 32 });
    assert_eq!(field(plb), refused("rehash_rounds"));
    let penalties = serde_json::json!({ "most": 0 });
    let bitmap = serde_json::json!({ "kind": "bitmap", "penalties": penalties });
    assert_eq!(field(bitmap), refused("penalties.most"));
}
