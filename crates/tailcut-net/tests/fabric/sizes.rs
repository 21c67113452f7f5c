//! Flow sizes: built-in tables, files, and samples.

use proptest::prelude::*;
use serde_json::json;
use tailcut_engine::RandomStream;
use tailcut_net::component::SpecError;
use tailcut_net::traffic::sizes::{FlowSizes, SizesSpec};
use tailcut_net::workload::{BUILTIN, SizeTable, SizeUnit};

use crate::fabric::statistics::{kolmogorov_smirnov, kolmogorov_smirnov_limit};

fn table(name: &str) -> SizeTable {
    SizeTable::builtin(name, "sizes").unwrap()
}

fn parse(text: &str) -> Result<SizeTable, SpecError> {
    SizeTable::parse(text, SizeUnit::Bytes, "sizes")
}

fn resolve(spec: serde_json::Value, files: &[(&str, &str)]) -> Result<FlowSizes, SpecError> {
    let spec: SizesSpec = serde_json::from_value(spec).expect("well-formed sizes");
    let read = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or(std::io::ErrorKind::NotFound.into())
    };
    spec.resolve(&read, "sizes")
}

/// Mean bytes, fraction of flows and fraction of bytes up to 100 KB, as published with the tables.
#[test]
fn built_in_workloads_have_the_published_means_and_shares() {
    for (name, mean, flows, bytes, precision) in [
        ("web-search", 1_665_831.0, 0.544, 0.0105, 5e-5),
        ("web-search-bytes", 1_711_250.0, 0.542, 0.0102, 5e-5),
        ("data-mining", 7_470_236.0, 0.824, 0.00045, 5e-6),
        ("data-mining-bytes", 12_658_199.0, 0.823, 0.00020, 5e-6),
    ] {
        let table = table(name);
        assert!((table.mean() - mean).abs() < 0.5, "{name}: mean {}", table.mean());
        assert!(
            (table.flow_fraction_up_to(1e5) - flows).abs() < 5e-4,
            "{name}: {} of flows",
            table.flow_fraction_up_to(1e5)
        );
        assert!(
            (table.byte_fraction_up_to(1e5) - bytes).abs() < precision,
            "{name}: {} of bytes",
            table.byte_fraction_up_to(1e5)
        );
    }
}

/// RepFlow V-A and pFabric: fewer than 4 % of data mining flows are larger than 35 MB and carry 95
/// % of the bytes.
#[test]
fn elephants_carry_the_published_share_of_data_mining() {
    let table = table("data-mining");
    assert!((1.0 - table.flow_fraction_up_to(35e6) - 0.0365).abs() < 5e-5);
    assert!((1.0 - table.byte_fraction_up_to(35e6) - 0.951).abs() < 5e-4);
}

#[test]
fn every_built_in_workload_is_a_distribution_with_its_source_named() {
    for builtin in BUILTIN {
        let path = format!("{}/../../workloads/{}.cdf", env!("CARGO_MANIFEST_DIR"), builtin.name);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            text.starts_with("# ") && text.contains("SIGCOMM"),
            "{} names its source",
            builtin.name
        );
        let table = table(builtin.name);
        let largest = *table.points().0.last().unwrap();
        assert!((table.quantile(1.0 - f64::EPSILON) - largest).abs() < 1.0);
        assert_eq!(table.flow_fraction_up_to(f64::INFINITY), 1.0);
        assert_eq!(table.byte_fraction_up_to(f64::INFINITY), 1.0);
    }
}

#[test]
fn samples_follow_their_table() {
    for builtin in BUILTIN {
        let table = table(builtin.name);
        let sizes = FlowSizes::Table(table.clone());
        let mut stream = RandomStream::new(3, 0, "test");
        let n = 20_000;
        let samples: Vec<f64> = (0..n).map(|_| sizes.sample(&mut stream, 0) as f64).collect();
        // A sample is rounded to whole bytes, at least 1: x stands for all of [x - 1/2, x + 1/2).
        let up_to = |x: f64| table.flow_fraction_up_to(x + 0.5);
        let below = |x: f64| if x <= 1.0 { 0.0 } else { table.flow_fraction_up_to(x - 0.5) };
        let distance = kolmogorov_smirnov(samples, below, up_to);
        assert!(distance < kolmogorov_smirnov_limit(n), "{}: distance {distance}", builtin.name);
    }
}

#[test]
fn the_mean_of_samples_is_the_mean_of_every_distribution() {
    for spec in [
        json!("web-search"),
        json!("data-mining"),
        json!("70KB"),
        json!({"kind": "uniform", "min": "1KB", "max": "3KB"}),
        json!({"kind": "exponential", "mean": "10KB"}),
        json!({"kind": "bounded-pareto", "min": "1KB", "max": "1MB", "shape": 1.2}),
        json!({"kind": "bounded-pareto", "min": "1KB", "max": "1MB", "shape": 1.0}),
    ] {
        let sizes = resolve(spec.clone(), &[]).unwrap();
        let mut stream = RandomStream::new(1, 0, "test");
        let n = 400_000.0;
        let samples: Vec<f64> =
            (0..n as usize).map(|_| sizes.sample(&mut stream, 0) as f64).collect();
        let mean = samples.iter().sum::<f64>() / n;
        let deviation = (samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / n).sqrt();
        let error = (mean - sizes.mean()).abs();
        assert!(
            error <= 4.0 * deviation / n.sqrt() + 0.5,
            "{spec}: {mean} against {}",
            sizes.mean()
        );
    }
}

#[test]
fn the_first_point_is_an_atom_and_so_is_a_repeated_size() {
    let table = parse("100 0.25\n200 0.5\n200 0.75\n300 1").unwrap();
    assert_eq!(table.quantile(0.0), 100.0);
    assert_eq!(table.quantile(0.2499), 100.0);
    assert_eq!(table.quantile(0.6), 200.0);
    assert_eq!((table.flow_fraction_up_to(99.9), table.flow_fraction_up_to(100.0)), (0.0, 0.25));
    assert!(table.flow_fraction_up_to(199.999) < 0.5 && table.flow_fraction_up_to(200.0) == 0.75);
    assert_eq!(table.mean(), 0.25 * 100.0 + 0.25 * 150.0 + 0.25 * 200.0 + 0.25 * 250.0);
}

#[test]
fn flows_are_never_empty() {
    let sizes = FlowSizes::Table(parse("0 0.9\n1 1").unwrap());
    let mut stream = RandomStream::new(1, 0, "test");
    assert!((0..1_000).all(|_| sizes.sample(&mut stream, 0) == 1));
}

#[test]
fn a_file_can_count_bytes_kilobytes_or_packets() {
    let files = [("sizes/a.cdf", "# packets, say\n1 0.5 # an atom\n\n3 1\n")];
    let mean = |spec| resolve(spec, &files).unwrap().mean();
    assert_eq!(mean(json!("sizes/a.cdf")), 1.5);
    assert_eq!(mean(json!({"kind": "file", "file": "sizes/a.cdf", "unit": "KB"})), 1_500.0);
    assert_eq!(
        mean(json!({"kind": "file", "file": "sizes/a.cdf", "unit": "packets"})),
        1_460.0 * 1.5
    );
    let small =
        json!({"kind": "file", "file": "sizes/a.cdf", "unit": "packets", "packet_size": "100B"});
    assert_eq!(mean(small), 150.0);
}

#[test]
fn text_that_is_no_distribution_is_refused_by_line() {
    for (text, message) in [
        ("# sizes\n100 0.5\n90 1", "line 3: the size is smaller than on the line before"),
        (
            "100 0.5\n200 0.4\n300 1",
            "line 2: probability 0.4 is below 0.5 on the line before: it must not fall",
        ),
        (
            "100 0.5\n200 0.9\n# end",
            "line 2: the last probability is 0.9: a distribution ends at 1",
        ),
        ("100 0.5\n200 1.5", "line 2: probability 1.5 is not between 0 and 1"),
        ("100 0.5\n-1 1", "line 2: size -1 is not a finite number of at least 0"),
        ("100 1 0.5", "line 1: \"100 1 0.5\" is not a size and a cumulative probability"),
        ("size cdf\n100 1", "line 1: \"size cdf\" is not a size and a cumulative probability"),
        ("# nothing", "line 1: no line holds a size and a cumulative probability"),
        ("0 1", "line 1: every flow would be empty"),
        ("100 nan\n200 1", "line 1: probability NaN is not between 0 and 1"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message, "{text:?}");
    }
}

#[test]
fn a_misspelt_workload_suggests_a_similar_name() {
    let error = resolve(json!("web-serach"), &[]).unwrap_err();
    assert_eq!((error.code, error.field.as_str()), ("workload-name", "sizes"));
    assert_eq!(error.hint.as_deref(), Some("did you mean \"web-search\"?"));
}

#[test]
fn sizes_out_of_range_are_refused() {
    for (spec, field) in [
        (json!("0B"), "sizes"),
        (json!({"kind": "uniform", "min": "2KB", "max": "1KB"}), "sizes.max"),
        (json!({"kind": "exponential", "mean": "0B"}), "sizes.mean"),
        (json!({"kind": "bounded-pareto", "min": "1KB", "max": "1KB", "shape": 1.0}), "sizes.max"),
        (
            json!({"kind": "bounded-pareto", "min": "1KB", "max": "1MB", "shape": 0.0}),
            "sizes.shape",
        ),
        (json!("absent.cdf"), "sizes.file"),
    ] {
        assert_eq!(resolve(spec.clone(), &[]).unwrap_err().field, field, "{spec}");
    }
}

/// Returns points of a random distribution: sizes do not fall, probabilities end at 1.
fn distribution() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0u32..1_000_000, 0u32..1_000), 2..12).prop_map(|steps| {
        let total: u32 = steps.iter().map(|step| step.1).sum::<u32>() + 1;
        let (mut size, mut sum) = (0.0, 0.0);
        let mut points: Vec<(f64, f64)> = steps
            .iter()
            .map(|step| {
                size += f64::from(step.0);
                sum += f64::from(step.1) / f64::from(total);
                (size, sum)
            })
            .collect();
        points.push((size + 1.0, 1.0));
        points
    })
}

proptest! {
    #[test]
    fn the_quantile_inverts_the_distribution(points in distribution(), u in 0.0f64..1.0) {
        let text: String = points.iter().map(|(size, p)| format!("{size} {p}\n")).collect();
        let table = parse(&text).unwrap();
        let x = table.quantile(u);
        prop_assert!(table.flow_fraction_up_to(x + 1e-6) >= u - 1e-9);
        prop_assert!(table.flow_fraction_up_to(x - 1e-6) <= u + 1e-9);
    }

    #[test]
    fn the_mean_is_the_average_quantile(points in distribution()) {
        let text: String = points.iter().map(|(size, p)| format!("{size} {p}\n")).collect();
        let table = parse(&text).unwrap();
        let n = 20_000;
        let average = (0..n).map(|i| table.quantile((f64::from(i) + 0.5) / f64::from(n))).sum::<f64>() / f64::from(n);
        let largest = points.last().unwrap().0;
        prop_assert!((average - table.mean()).abs() <= largest / f64::from(n) * 12.0);
    }
}
