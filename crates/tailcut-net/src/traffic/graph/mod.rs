//! A job given as a graph: messages and computations, each of which waits for others.

mod names;
mod order;
mod records;
mod rows;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::Time;

use self::names::Name;
use self::order::Waits;
use self::rows::{Pooled, Rows, Work};
use super::demand::{Computation, Demand, Dependent, FlowPool, NONE, Signal, StartRule};
use super::{Flow, FlowIndex, MOST_BYTES, Pattern, TrafficContext, TrafficError, check_flow_count};
use crate::topology::HostId;

/// Parameters of a job given as a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageGraph {
    /// Path of a file with one message or computation per row: `.parquet`, `.json` (a list of
    /// objects), or text with a header line and columns separated by commas, semicolons or tabs.
    /// Columns of all rows: `id`, and `after`, the rows that a row waits for. Of messages: `src`,
    /// `dst` (host numbers), `bytes`, and optionally `start_ns`, or `pool` and `at_once`: messages of
    /// a pool start in the order in which their waits are over, those that wait for no rows in the
    /// order of the file, and at most `at_once` of them run at a time. One runs `until` it is
    /// `sent`, `received` or `acknowledged`; without that column, as `over` says. Of computations:
    /// `host`, `duration_ns`, and optionally `processor`.
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
        check_flow_count(rows.len() as f64, "file")?;
        for (index, work) in rows.works.iter().enumerate() {
            check_row(work, setting)
                .map_err(|(code, message, hint)| rows.refuse(code, index, &message).hint(hint))?;
        }
        let waits = order::resolve(&rows)?;
        self.expand(&rows, &waits)
    }
    fn sized_by(&self) -> &'static str {
        "file"
    }
    fn files(&self) -> Vec<&str> {
        vec![&self.file]
    }
}

impl MessageGraph {
    /// Returns the demand of checked rows; `waits` has the rows that each row waits for. Refuses
    /// pools whose rows disagree.
    fn expand(&self, rows: &Rows, waits: &Waits) -> Result<Demand, TrafficError> {
        let mut demand = Demand::default();
        let job = demand.job("graph");
        let pools = self.pools(rows, &mut demand)?;
        let mut pools = pools.into_iter().peekable();
        let places: Vec<Dependent> = (0..rows.len())
            .map(|at| {
                let pool = pools.next_if(|(row, _)| *row as usize == at);
                add(&mut demand, job, pool.map_or(NONE, |(_, pool)| pool), rows, at)
            })
            .collect();
        for at in 0..rows.len() {
            for (after, &from) in rows.after(at).iter().zip(waits.of(at)) {
                match places[from as usize] {
                    Dependent::Flow(flow) => {
                        demand.wait(places[at], flow, after.on.unwrap_or(self.over).signal());
                    }
                    Dependent::Computation(from) => demand.wait_computed(places[at], from),
                    Dependent::Pool(_) => unreachable!("no row is a pool"),
                }
            }
        }
        let numbered = rows.numbered();
        for (at, &place) in places.iter().enumerate() {
            if !numbered || matches!(place, Dependent::Computation(_)) {
                demand.name(place, rows.row_id(at));
            }
        }
        demand.set_named(numbered);
        Ok(demand.numbered())
    }

    /// Adds the pools of all rows; returns rows with their pools, ordered by row.
    fn pools(&self, rows: &Rows, demand: &mut Demand) -> Result<Vec<(u32, u32)>, TrafficError> {
        let mut known: BTreeMap<Name, (u32, FlowPool)> = BTreeMap::new();
        let mut found = vec![];
        for &(row, Pooled { name, at_once, until }) in &rows.pools {
            let on = until.unwrap_or(self.over.signal());
            let pool = FlowPool { opens: Time::ZERO, at_once, on };
            let &mut (number, first) =
                known.entry(name).or_insert_with(|| (demand.pool(pool), pool));
            if pool != first {
                let says = |pool: FlowPool| {
                    format!("at_once = {}, until = {}", pool.at_once, pool.on.word())
                };
                let (name, own, before) = (rows.text(name), says(pool), says(first));
                let what = format!("pool {name} has {own}; before it had {before}");
                let error = rows.refuse("graph-pool", row as usize, &what);
                return Err(error.hint("write the same for all rows of a pool"));
            }
            found.push((row, number));
        }
        Ok(found)
    }
}

fn add(demand: &mut Demand, job: u32, pool: u32, rows: &Rows, row: usize) -> Dependent {
    match rows.works[row] {
        Work::Message { src, dst, bytes, start } => {
            let id = rows.ids[row].number().unwrap_or_default();
            let rule = StartRule { job, pool, delay: Time::ZERO };
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
            if bytes > MOST_BYTES {
                let message = format!("bytes = {bytes}: at most {MOST_BYTES} are supported");
                return Err(("graph-bytes", message, "split the message"));
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
