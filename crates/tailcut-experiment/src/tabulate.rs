//! Makes the tables of a run that another backend carried out, by the simulator's own code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tailcut_engine::Time;
use tailcut_net::measure::records::{
    FlowRecord, Outcome, RunCounters, Sampled, Series, TierRecord,
};
use tailcut_net::predict_flows;
use tailcut_net::traffic::closed_loop::measured_job_records;
use tailcut_net::traffic::{Flow, FlowIndex};

use crate::column::{Column, Values};
use crate::load::TableReader;
use crate::plan::RunPlan;
use crate::run::{Observed, RunError, RunResult, tables, to_scenario};

/// The measurements of a run. Times are in nanoseconds from its beginning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRun {
    /// The flows that have started.
    pub flows: Vec<MeasuredFlow>,
    /// The traffic of each tier and direction.
    pub tiers: Vec<TierRecord>,
    /// The end of the run.
    pub end_ns: u64,
    /// The number of links crossed, added up over all packets.
    pub packet_hops: u64,
    /// The number of packets dropped at full queues.
    pub dropped: u64,
    /// The number of packets lost to failures.
    pub lost_on_links: u64,
    /// The columns of the flow and tier tables that were not measured, each with the reason.
    pub unknown: BTreeMap<String, String>,
    /// The time series, under the simulator's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<MeasuredSeries>,
}

/// A time series that was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredSeries {
    /// The sampled quantity, as in [`Series`].
    pub name: String,
    /// The flow and connection that was sampled, as in [`Series`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Sampled>,
    /// The times of the samples, in nanoseconds from the beginning of the run.
    pub times_ns: Vec<u64>,
    /// The sampled values.
    pub values: Vec<f64>,
    /// Whether later samples are missing for lack of space.
    pub truncated: bool,
}

impl From<Series> for MeasuredSeries {
    fn from(series: Series) -> MeasuredSeries {
        let Series { name, of, times, values, truncated } = series;
        let times_ns = times.iter().map(|at| at.as_ns()).collect();
        MeasuredSeries { name, of, times_ns, values, truncated }
    }
}

impl From<&MeasuredSeries> for Series {
    fn from(measured: &MeasuredSeries) -> Series {
        let MeasuredSeries { name, of, times_ns, values, truncated } = measured.clone();
        let times = times_ns.into_iter().map(time).collect();
        Series { name, of, times, values, truncated }
    }
}

/// The measurements of a flow. Times are in nanoseconds from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredFlow {
    /// The flow's index among the flows of the run.
    pub index: u64,
    /// The start in nanoseconds from the beginning of the run, for a flow that waited for others;
    /// `None` for a flow that started at its planned time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// The time at which its first connection was established.
    pub connect_ns: Option<u64>,
    /// The time at which its last byte was received.
    pub fct_ns: Option<u64>,
    /// The time at which its sender had the acknowledgement of the last byte.
    pub fct_ack_ns: Option<u64>,
    /// The number of data packets sent, retransmissions included.
    pub data_packets: u64,
    /// The number of retransmitted data packets.
    pub retransmissions: u64,
    /// The number of retransmission timeouts.
    pub timeouts: u32,
    /// The number of data packets that the receiver already had.
    pub needless_retransmissions: u64,
    /// The bytes received in order when the arrivals ended.
    pub delivered_in_arrivals: u64,
}

/// Makes the tables of one run of a plan (an element of `runs`, as JSON) from its measurements.
///
/// # Errors
/// See [`RunError`].
pub fn tabulate(
    run_json: &str,
    measured: &MeasuredRun,
    read_table: &TableReader,
) -> Result<RunResult, RunError> {
    let plan: RunPlan = serde_json::from_str(run_json)?;
    let scenario = to_scenario(&plan, read_table)?;
    let mut predicted: Vec<Option<FlowRecord>> =
        predict_flows(&scenario)?.into_iter().map(|flow| Some(flow.record)).collect();
    let mut flows = vec![];
    for of in &measured.flows {
        let place = usize::try_from(of.index).ok().and_then(|index| predicted.get_mut(index));
        let record = place.and_then(Option::take).ok_or(RunError::BadMeasurement(of.index))?;
        flows.push(carried(record, of));
    }
    let done = measured.flows.iter().zip(&flows).map(|(of, record)| {
        let start = record.flow.start;
        (FlowIndex(of.index as u32), start, record.fct.map(|fct| start + fct))
    });
    let jobs = measured_job_records(&scenario.flows, &scenario.jobs, done);
    flows.sort_by_key(|flow| flow.flow.id);
    let outcome = Outcome {
        flows,
        jobs,
        tiers: measured.tiers.clone(),
        series: measured.series.iter().map(Series::from).collect(),
        counters: RunCounters {
            packet_hops: measured.packet_hops,
            dropped: measured.dropped,
            lost_on_links: measured.lost_on_links,
            end: time(measured.end_ns),
            ..RunCounters::default()
        },
        ..Outcome::default()
    };
    let mut result = tables(&outcome, &plan.config, &scenario, Observed::default());
    for column in result.flows.iter_mut().chain(&mut result.tiers) {
        if measured.unknown.contains_key(column.name) {
            forget(column);
        }
    }
    Ok(RunResult { counters: outcome.counters, series: outcome.series, ..result })
}

fn time(ns: u64) -> Time {
    Time(ns.saturating_mul(1_000))
}

/// Returns the predicted record of a flow, completed by its measurements.
fn carried(record: FlowRecord, measured: &MeasuredFlow) -> FlowRecord {
    let start = measured.start_ns.map_or(record.flow.start, time);
    FlowRecord {
        flow: Flow { start, ..record.flow },
        connect: measured.connect_ns.map(time),
        fct: measured.fct_ns.map(time),
        fct_ack: measured.fct_ack_ns.map(time),
        data_packets: measured.data_packets,
        retransmissions: measured.retransmissions,
        timeouts: measured.timeouts,
        needless_retransmissions: measured.needless_retransmissions,
        copies: 1,
        winner: measured.fct_ns.map(|_| 0),
        delivered_in_arrivals: measured.delivered_in_arrivals,
        ..record
    }
}

/// Marks every value of a column as missing, because unknown is not zero.
fn forget(column: &mut Column) {
    let rows = match &column.values {
        Values::U64(values) => values.len(),
        Values::I64(values) => values.len(),
        Values::U32(values) => values.len(),
        Values::U8(values) => values.len(),
        Values::F64(values) => values.len(),
        Values::Bool(values) => values.len(),
        Values::Text(values) => values.len(),
        Values::Label { codes, .. } => codes.len(),
    };
    column.valid = Some(vec![false; rows]);
}
