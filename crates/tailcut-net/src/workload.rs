//! Flow-size distributions: two columns of text, and the built-in tables.
//!
//! A table lists sizes and cumulative probabilities. The first point is an atom
//! of its probability; between points the distribution is linear, and two points
//! of the same size are an atom in between.

use crate::component::{SpecError, did_you_mean};

/// The unit of a table's first column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// Thousands of bytes.
    Kilobytes,
    /// Packets of this many bytes.
    Packets(u64),
}

impl SizeUnit {
    fn bytes(self) -> f64 {
        match self {
            SizeUnit::Bytes => 1.0,
            SizeUnit::Kilobytes => 1_000.0,
            SizeUnit::Packets(bytes) => bytes as f64,
        }
    }
}

/// A piecewise linear cumulative distribution of flow sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeTable {
    bytes: Vec<f64>,
    probability: Vec<f64>,
}

/// A built-in table.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// The name used in experiments.
    pub name: &'static str,
    /// A line on what the workload describes.
    pub summary: &'static str,
    /// The file: bytes and cumulative probability per line, and where they come from.
    pub text: &'static str,
}

macro_rules! builtin {
    ($name:literal, $summary:literal) => {
        Builtin {
            name: $name,
            summary: $summary,
            text: include_str!(concat!("../../../workloads/", $name, ".cdf")),
        }
    };
}

/// The built-in tables: one file in `workloads/` and one line here each.
pub const BUILTIN: &[Builtin] = &[
    builtin!(
        "web-search",
        "DCTCP's web search cluster, as tabulated since pFabric (1460 B packets)"
    ),
    builtin!("web-search-bytes", "DCTCP's web search cluster, as testbeds tabulate it (bytes)"),
    builtin!("web-search-repnet", "DCTCP's web search cluster, as used on RepNet's testbed"),
    builtin!(
        "data-mining",
        "VL2's data mining cluster, as tabulated since pFabric (1460 B packets)"
    ),
    builtin!("data-mining-bytes", "VL2's data mining cluster, as testbeds tabulate it (bytes)"),
    builtin!("cache-follower", "Facebook's cache followers"),
    builtin!("hadoop", "Facebook's Hadoop cluster (1460 B packets)"),
    builtin!("hadoop-bytes", "Facebook's Hadoop cluster, as tabulated for HPCC (bytes)"),
    builtin!("storage", "Alibaba's storage cluster, as tabulated for HPCC"),
];

impl SizeTable {
    /// The built-in table called `name`.
    ///
    /// # Errors
    /// When there is none; the error lists the names and suggests the closest.
    pub fn builtin(name: &str, field: &str) -> Result<SizeTable, SpecError> {
        if let Some(found) = BUILTIN.iter().find(|builtin| builtin.name == name) {
            return SizeTable::parse(found.text, SizeUnit::Bytes, field);
        }
        let names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
        let error = SpecError::new(
            "workload-name",
            field,
            format!(
                "{name:?} is not a workload; use one of {}, or a path such as \"sizes/mine.cdf\"",
                names.join(", ")
            ),
        );
        Err(match did_you_mean(name, names) {
            Some(close) => error.hint(format!("did you mean {close:?}?")),
            None => error,
        })
    }

    /// Parses two columns: size in `unit`, cumulative probability. `#` starts a comment.
    ///
    /// # Errors
    /// Names the line at which the text stops being a distribution.
    pub fn parse(text: &str, unit: SizeUnit, field: &str) -> Result<SizeTable, SpecError> {
        let bad = |line: usize, what: String| {
            Err(SpecError::new("workload-table", field, format!("line {line}: {what}")))
        };
        let mut table = SizeTable { bytes: vec![], probability: vec![] };
        let mut last_line = 0;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let content = line.split('#').next().unwrap_or_default();
            let columns: Vec<&str> =
                content.split([' ', '\t', ',', ';']).filter(|c| !c.is_empty()).collect();
            if columns.is_empty() {
                continue;
            }
            let (Ok(values), true) = (
                columns.iter().map(|c| c.parse::<f64>()).collect::<Result<Vec<_>, _>>(),
                columns.len() == 2,
            ) else {
                return bad(
                    number,
                    format!("{:?} is not a size and a cumulative probability", content.trim()),
                );
            };
            let (size, probability) = (values[0] * unit.bytes(), values[1]);
            if !(size.is_finite() && size >= 0.0) {
                return bad(
                    number,
                    format!("size {} is not a finite number of at least 0", values[0]),
                );
            }
            if !(0.0..=1.0).contains(&probability) {
                return bad(number, format!("probability {probability} is not between 0 and 1"));
            }
            if let (Some(&size_before), Some(&before)) =
                (table.bytes.last(), table.probability.last())
            {
                if size < size_before {
                    return bad(number, "the size is smaller than on the line before".into());
                }
                if probability < before {
                    return bad(
                        number,
                        format!(
                            "probability {probability} is below {before} on the line before: it must not fall"
                        ),
                    );
                }
            }
            table.bytes.push(size);
            table.probability.push(probability);
            last_line = number;
        }
        match table.probability.last() {
            None => bad(1, "no line holds a size and a cumulative probability".into()),
            Some(&last) if last != 1.0 => {
                bad(last_line, format!("the last probability is {last}: a distribution ends at 1"))
            }
            Some(_) if table.mean() <= 0.0 => bad(last_line, "every flow would be empty".into()),
            Some(_) => Ok(table),
        }
    }

    /// Two points joined by a line: the uniform distribution.
    pub fn uniform(min: u64, max: u64) -> SizeTable {
        SizeTable { bytes: vec![min as f64, max as f64], probability: vec![0.0, 1.0] }
    }

    /// The points: sizes in bytes and cumulative probabilities.
    pub fn points(&self) -> (&[f64], &[f64]) {
        (&self.bytes, &self.probability)
    }

    /// The segments as (from bytes, to bytes, from probability, to probability); the first is the
    /// leading atom.
    fn segments(&self) -> impl Iterator<Item = (f64, f64, f64, f64)> + '_ {
        let first = (self.bytes[0], self.bytes[0], 0.0, self.probability[0]);
        let rest = (1..self.bytes.len()).map(|i| {
            (self.bytes[i - 1], self.bytes[i], self.probability[i - 1], self.probability[i])
        });
        std::iter::once(first).chain(rest)
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.segments().map(|(x0, x1, p0, p1)| (p1 - p0) * (x0 + x1) / 2.0).sum()
    }

    /// The size in bytes below which a fraction `u` of flows lies, for u in [0, 1).
    pub fn quantile(&self, u: f64) -> f64 {
        let upper = self.probability.partition_point(|&p| p <= u);
        if upper == 0 {
            return self.bytes[0];
        }
        let upper = upper.min(self.bytes.len() - 1);
        let (p0, p1) = (self.probability[upper - 1], self.probability[upper]);
        let (x0, x1) = (self.bytes[upper - 1], self.bytes[upper]);
        if p1 > p0 { x0 + (u - p0) / (p1 - p0) * (x1 - x0) } else { x1 }
    }

    /// The fraction of flows of at most `bytes`.
    pub fn flow_fraction_up_to(&self, bytes: f64) -> f64 {
        self.segments().map(|segment| segment_up_to(segment, bytes).0).sum()
    }

    /// The fraction of all bytes that flows of at most `bytes` carry.
    pub fn byte_fraction_up_to(&self, bytes: f64) -> f64 {
        self.segments().map(|segment| segment_up_to(segment, bytes).1).sum::<f64>() / self.mean()
    }
}

/// The probability and the expected bytes of the part of a segment up to `bytes`.
fn segment_up_to((x0, x1, p0, p1): (f64, f64, f64, f64), bytes: f64) -> (f64, f64) {
    if bytes < x0 {
        return (0.0, 0.0);
    }
    let (share, end) = if bytes >= x1 { (1.0, x1) } else { ((bytes - x0) / (x1 - x0), bytes) };
    let probability = share * (p1 - p0);
    (probability, probability * (x0 + end) / 2.0)
}
