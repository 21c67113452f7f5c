//! Builds with and without assertions make the same tables: this build and the released extension
//! are both compared with the digest in `tests/determinism/quickstart.sha256`. Results that change
//! on purpose change that file.

use std::ops::ControlFlow;
use std::path::Path;

use sha2::{Digest, Sha256};
use tailcut_experiment::{Changes, Column, Values, load, no_table_reader, run};

#[test]
fn every_build_gives_the_same_tables() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let overrides = [
        ("topology.k", "4"),
        ("horizon.arrivals", "'20ms'"),
        ("queue.limit", "'20packets'"),
        ("seeds", "1"),
    ];
    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let plan =
        load(&root.join("experiments/quickstart.toml"), Changes::set(&overrides), &no_table_reader)
            .unwrap_or_else(|failure| panic!("{failure}"));
    let mut digest = Sha256::new();
    for planned in &plan.runs {
        let planned = serde_json::to_string(planned).expect("a plan is plain data");
        let made = run(&planned, None, &no_table_reader, &mut |_| ControlFlow::Continue(()));
        let made = made.expect("it runs");
        for column in made.flows.iter().chain(&made.tiers) {
            feed(&mut digest, column);
        }
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let stated = std::fs::read_to_string(root.join("tests/determinism/quickstart.sha256"));
    assert_eq!(stated.expect("the digest is stated").trim(), found);
}

fn feed(digest: &mut Sha256, column: &Column) {
    digest.update(column.name);
    match &column.values {
        Values::U64(values) => values.iter().for_each(|v| digest.update(v.to_le_bytes())),
        Values::I64(values) => values.iter().for_each(|v| digest.update(v.to_le_bytes())),
        Values::U32(values) => values.iter().for_each(|v| digest.update(v.to_le_bytes())),
        Values::F64(values) => values.iter().for_each(|v| digest.update(v.to_le_bytes())),
        Values::U8(values) | Values::Label { codes: values, .. } => digest.update(values),
        Values::Bool(values) => values.iter().for_each(|v| digest.update([u8::from(*v)])),
        Values::Text(values) => values.iter().for_each(|v| digest.update(v)),
    }
    if let Some(valid) = &column.valid {
        valid.iter().for_each(|v| digest.update([u8::from(*v)]));
    }
}
