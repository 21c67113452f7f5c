//! A job given as a graph: messages and computations, each of which waits for others.

mod order;
mod records;
mod rows;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use self::rows::{After, Row, Rows, Work};
use super::demand::{Computation, Demand, Dependent, NONE, Signal, StartRule};
use super::{Flow, FlowIndex, Pattern, TrafficContext, TrafficError, check_flow_count};
use crate::topology::HostId;

/// Parameters of a job given as a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageGraph {
    /// Path of a file with one message or computation per row: `.parquet`, `.json` (a list of
    /// objects), or text with a header line and columns separated by commas, semicolons or tabs.
    /// Columns of all rows: `id`, and `after`, the rows that a row waits for. Of messages: `src`,
    /// `dst` (host numbers), `bytes`, and optionally `start_ns`. Of computations: `host`,
    /// `duration_ns`, and optionally `processor`.
    pub file: String,
    /// The event by which a message counts as over for the rows that wait for it. A row that waits
    /// for `ID@received` or `ID@acknowledged` decides for itself.
    #[serde(default, skip_serializing_if = "MessageEnd::is_received")]
    pub over: MessageEnd,
}

/// The end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageEnd {
    /// The last byte has reached the receiver.
    #[default]
    Received,
    /// The sender has the acknowledgement of the last byte.
    Acknowledged,
}

impl MessageEnd {
    fn is_received(&self) -> bool {
        *self == MessageEnd::Received
    }

    fn signal(self) -> Signal {
        match self {
            MessageEnd::Received => Signal::Received,
            MessageEnd::Acknowledged => Signal::Acknowledged,
        }
    }
}

impl Pattern for MessageGraph {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let rows = Rows::read(setting.read, &self.file)?;
        check_flow_count(rows.rows.len() as f64, "file")?;
        for (index, row) in rows.rows.iter().enumerate() {
            check_row(&row.work, setting)
                .map_err(|(code, message, hint)| rows.refuse(code, index, &message).hint(hint))?;
        }
        let waits = order::resolve(&rows)?;
        Ok(self.expand(&rows, &waits))
    }
    fn sized_by(&self) -> &'static str {
        "file"
    }
    fn files(&self) -> Vec<&str> {
        vec![&self.file]
    }
}

impl MessageGraph {
    /// Returns the demand of checked rows; `waits` has the rows that each row waits for.
    fn expand(&self, rows: &Rows, waits: &[Vec<u32>]) -> Demand {
        let mut demand = Demand::default();
        let job = demand.job("graph");
        let places: Vec<Dependent> =
            rows.rows.iter().map(|row| add(&mut demand, job, row)).collect();
        for (at, row) in rows.rows.iter().enumerate() {
            for (After { on, .. }, &from) in row.after.iter().zip(&waits[at]) {
                match places[from as usize] {
                    Dependent::Flow(flow) => {
                        demand.wait(places[at], flow, on.unwrap_or(self.over).signal());
                    }
                    Dependent::Computation(from) => demand.wait_computed(places[at], from),
                    Dependent::Pool(_) => unreachable!("a graph has no pools"),
                }
            }
        }
        demand.set_named(rows.numbered());
        demand.numbered()
    }
}

fn add(demand: &mut Demand, job: u32, row: &Row) -> Dependent {
    match row.work {
        Work::Message { src, dst, bytes, start } => {
            let id = row.id.parse().unwrap_or_default();
            let rule = StartRule { job, pool: NONE, delay: Time::ZERO };
            let flow: FlowIndex = demand.flow(rule, Flow { src, dst, bytes, start, id });
            Dependent::Flow(flow)
        }
        Work::Computation { host, processor, duration } => {
            let computation = Computation { job, host, processor, duration };
            Dependent::Computation(demand.computation(computation))
        }
    }
}

type Refusal = (&'static str, String, &'static str);

/// Refuses a row that this network or horizon cannot carry.
fn check_row(work: &Work, setting: &TrafficContext) -> Result<(), Refusal> {
    let host = |name: &str, host: HostId| match host.0 < setting.graph.hosts {
        true => Ok(()),
        false => {
            let last = setting.graph.hosts.saturating_sub(1);
            let message = format!("{name} = {host}: the topology has hosts 0 to {last}");
            Err(("graph-host", message, "use a topology with more hosts"))
        }
    };
    match *work {
        Work::Computation { host: at, .. } => host("host", at),
        Work::Message { src, dst, bytes, start } => {
            host("src", src)?;
            host("dst", dst)?;
            if src == dst {
                let message = format!("src and dst are both {src}");
                return Err(("graph-self", message, "a message needs two different hosts"));
            }
            if bytes == 0 {
                let hint = "a message must have at least 1 byte";
                return Err(("graph-bytes", "bytes = 0".to_owned(), hint));
            }
            let arrivals = setting.horizon.arrivals;
            if start >= arrivals {
                let message = format!(
                    "starts at {start}, which is not before horizon.arrivals = \"{arrivals}\""
                );
                return Err(("graph-horizon", message, "lengthen horizon.arrivals"));
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
