//! Measurements of a run, collected from the reports of hosts and fabric.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tailcut_experiment::{MeasuredFlow, MeasuredRun};
use tailcut_net::PredictedFlow;

use crate::messages::{FabricReport, HostReport, RunTimes};

const BY_KERNEL: &str = "not available from the kernel: recoveries";
const BY_NODE: &str = "not available from Node: the kernel's socket counters, and which copy won";
const BEFORE_6_7: &str =
    "this kernel does not count a connection's timeouts; Linux 6.7 and later do";

/// Returns the columns of the flow table that stay empty, and the reasons.
fn unknown_columns(by_repnet: bool, counts_timeouts: bool) -> BTreeMap<String, String> {
    let mut unknown = BTreeMap::new();
    let mut note = |names: &[&str], why: &str| {
        unknown.extend(names.iter().map(|name| ((*name).to_owned(), why.to_owned())));
    };
    note(&["fast_recoveries", "recoveries_undone"], BY_KERNEL);
    if by_repnet {
        let counted = ["data_packets", "retransmissions", "timeouts", "needless_retransmissions"];
        note(&counted, BY_NODE);
        note(&["copies", "winner"], BY_NODE);
    } else if !counts_timeouts {
        note(&["timeouts"], BEFORE_6_7);
    }
    unknown
}

/// How late a flow started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowStart {
    /// The flow's id in the table of flows.
    pub id: u64,
    /// Nanoseconds from the due time until the connection was opened.
    pub late_ns: u64,
}

/// Returns all measurements, and the lateness of each flow's start ordered by flow id.
pub fn measure(
    predicted: &[PredictedFlow],
    by_repnet: bool,
    times: RunTimes,
    end_ns: u64,
    reports: &[HostReport],
    fabric: &FabricReport,
) -> (MeasuredRun, Vec<FlowStart>) {
    let mut got = vec![None; predicted.len()];
    for one in reports.iter().flat_map(|report| &report.got) {
        got[one.index as usize] = Some(*one);
    }
    let mut starts = vec![];
    let mut all_sent = reports.iter().flat_map(|report| &report.sent);
    let counts_timeouts = all_sent.all(|sent| sent.counts_timeouts);
    let windows = reports.iter().flat_map(|report| &report.series);
    let mut measured = MeasuredRun {
        tiers: fabric.tiers.clone(),
        end_ns,
        packet_hops: fabric.packet_hops,
        dropped: fabric.dropped,
        lost_on_links: fabric.lost,
        unknown: fabric.unknown.clone(),
        series: fabric.series.iter().chain(windows).cloned().collect(),
        ..MeasuredRun::default()
    };
    measured.unknown.extend(unknown_columns(by_repnet, counts_timeouts));
    for sent in reports.iter().flat_map(|report| &report.sent) {
        let planned = &predicted[sent.index as usize].record.flow;
        let due_ns = sent.due_ns.unwrap_or(times.begin_ns + planned.start.as_ns());
        starts.push(FlowStart { id: planned.id, late_ns: sent.opened_ns.saturating_sub(due_ns) });
        let got = got[sent.index as usize];
        let since = |ns: u64| ns.saturating_sub(sent.opened_ns);
        measured.flows.push(MeasuredFlow {
            index: sent.index,
            start_ns: sent.due_ns.map(|_| sent.opened_ns.saturating_sub(times.begin_ns)),
            connect_ns: sent.established_ns.map(since),
            fct_ns: got.and_then(|got| got.complete_ns).map(since),
            fct_ack_ns: sent.acknowledged_ns.map(since),
            data_packets: sent.data_packets,
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            needless_retransmissions: sent.duplicates,
            delivered_in_arrivals: got.map_or(0, |got| got.in_arrivals),
        });
    }
    starts.sort_unstable_by_key(|start| start.id);
    (measured, starts)
}
