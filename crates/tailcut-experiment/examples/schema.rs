//! Prints the JSON Schema of experiment files:
//! `cargo run -p tailcut-experiment --example schema > schema/experiment.schema.json`.

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&tailcut_experiment::schema())?);
    Ok(())
}
