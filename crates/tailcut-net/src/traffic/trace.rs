//! A given list of flows, in the experiment or in a CSV or Parquet file.

mod columns;
mod table;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use self::columns::Column;
use super::demand::Demand;
use super::{Flow, Pattern, TrafficContext, TrafficError, numbered};
use crate::topology::HostId;

/// Parameters of a trace: either `file` or `flows`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trace {
    /// Path of a file with one flow per row: `.parquet`, or text with columns separated by commas,
    /// semicolons, tabs or spaces. Columns: `src`, `dst` (host numbers), `bytes`, `start_ns` (or
    /// `start_us`, `start_ms`, `start_s`, or `start` with a unit in each value), and optionally
    /// `id`. Other columns are ignored.
    pub file: Option<String>,
    /// Column names of a text file without a header line; `id src dst bytes start_ns` by default.
    /// Either all flows have an `id`, or none.
    pub columns: Option<Vec<String>>,
    /// The flows themselves, instead of a file.
    pub flows: Vec<TraceFlow>,
}

/// One flow of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceFlow {
    /// Sending host.
    pub src: u32,
    /// Receiving host, different from `src`.
    pub dst: u32,
    /// Application bytes, at least 1.
    pub bytes: Bytes,
    /// When the flow starts.
    #[serde(default)]
    pub start: Time,
    /// Identifier in the results; by default the position in the list, from 0.
    #[serde(default)]
    pub id: Option<u64>,
}

impl Trace {
    fn flows(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let rows = match (&self.file, self.flows.is_empty()) {
            (Some(_), false) => {
                let error = "both file and flows are given: write only one of them";
                return Err(TrafficError::new("trace-source", "flows", error));
            }
            (None, true) => {
                return Err(TrafficError::new(
                    "trace-source",
                    "file",
                    "a trace needs a file, or a list of flows",
                ));
            }
            (Some(file), true) if file.ends_with(".parquet") => table::read(setting.read, file)?,
            (Some(file), true) => text::read(setting.read, file, self.columns.as_deref())?,
            (None, false) => self.inline(),
        };
        rows.check(setting)?;
        let mut flows = rows.flows;
        if rows.named {
            flows.sort_by_key(|flow| flow.start);
            let named = vec![true; flows.len()];
            Ok(Demand { named, ..flows.into() })
        } else {
            Ok(numbered(flows))
        }
    }

    fn inline(&self) -> Rows {
        let flow = |(index, flow): (usize, &TraceFlow)| Flow {
            src: HostId(flow.src),
            dst: HostId(flow.dst),
            bytes: flow.bytes.0,
            start: flow.start,
            id: flow.id.unwrap_or(index as u64),
        };
        Rows {
            named: self.flows.iter().any(|flow| flow.id.is_some()),
            flows: self.flows.iter().enumerate().map(flow).collect(),
            field: "flows",
            place: Box::new(|index| format!("flows[{index}]")),
        }
    }
}

impl Pattern for Trace {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.flows(setting)
    }
    fn sized_by(&self) -> &'static str {
        if self.file.is_some() { "file" } else { "flows" }
    }
    fn files(&self) -> Vec<&str> {
        self.file.as_deref().into_iter().collect()
    }
}

/// Flows in the order of the trace.
struct Rows {
    flows: Vec<Flow>,
    /// Whether the trace gives its flows identifiers.
    named: bool,
    field: &'static str,
    /// Returns the place of the flow at an index in the trace, for messages.
    place: Box<dyn Fn(usize) -> String>,
}

impl Rows {
    /// Collects the flows of a file with these columns; `place` returns the place of each flow in
    /// the file.
    fn of_file(
        file: &str,
        columns: &[Column],
        flows: Vec<Flow>,
        place: impl Fn(usize) -> String + 'static,
    ) -> Result<Rows, TrafficError> {
        if flows.is_empty() {
            return Err(TrafficError::new(
                "trace-empty",
                "file",
                format!("{file}: contains no flow"),
            ));
        }
        let file = file.to_owned();
        Ok(Rows {
            flows,
            named: columns.contains(&Column::Id),
            field: "file",
            place: Box::new(move |index| format!("{file}: {}", place(index))),
        })
    }

    fn check(&self, setting: &TrafficContext) -> Result<(), TrafficError> {
        let (hosts, arrivals) = (setting.graph.hosts, setting.horizon.arrivals);
        let mut ids: Vec<(u64, usize)> = Vec::with_capacity(self.flows.len());
        for (index, flow) in self.flows.iter().enumerate() {
            ids.push((flow.id, index));
            let bad = |code, message: String, hint: &str| {
                Err(TrafficError::new(
                    code,
                    self.field,
                    format!("{}: {message}", (self.place)(index)),
                )
                .hint(hint))
            };
            for (end, host) in [("src", flow.src), ("dst", flow.dst)] {
                if host.0 >= hosts {
                    let message = format!(
                        "{end} = {host}: the topology has hosts 0 to {}",
                        hosts.saturating_sub(1)
                    );
                    return bad("trace-host", message, "use a topology with more hosts");
                }
            }
            if flow.src == flow.dst {
                let message = format!("src and dst are both {}", flow.src);
                return bad("trace-self", message, "a flow needs two different hosts");
            }
            if flow.bytes == 0 {
                return bad("trace-bytes", "bytes = 0".into(), "a flow must have at least 1 byte");
            }
            if flow.start != Time::from_ns(flow.start.as_ns()) {
                let message =
                    format!("starts at {}, which is not a whole number of nanoseconds", flow.start);
                return bad("trace-start", message, "results hold times in nanoseconds");
            }
            if flow.start >= arrivals {
                let message = format!(
                    "starts at {}, which is not before horizon.arrivals = \"{arrivals}\"",
                    flow.start
                );
                return bad("trace-horizon", message, "lengthen horizon.arrivals");
            }
        }
        ids.sort_unstable();
        match ids.windows(2).find(|two| two[0].0 == two[1].0) {
            None => Ok(()),
            Some(two) => {
                let (first, second) = ((self.place)(two[0].1), (self.place)(two[1].1));
                let message = format!("{second}: id {} is already that of {first}", two[1].0);
                Err(TrafficError::new("trace-id", self.field, message)
                    .hint("every flow needs an id of its own"))
            }
        }
    }
}
