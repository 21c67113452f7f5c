//! What a run has measured, of what its hosts and its fabric tell.

use tailcut_experiment::{Measured, MeasuredFlow};
use tailcut_net::Foretold;

use crate::fabric::carrier::FabricReport;
use crate::fabric::lateness::Lateness;
use crate::hosts::driver::{HostReport, Times};

/// Columns of the flow table that nobody fills: the kernel does not tell, or Node does not.
fn unknown(by_repnet: bool) -> Vec<String> {
    let mut names = vec!["fast_recoveries", "recoveries_undone"];
    if by_repnet {
        names.extend([
            "data_packets",
            "retransmissions",
            "timeouts",
            "needless_retransmissions",
            "copies",
            "winner",
        ]);
    }
    names.into_iter().map(str::to_owned).collect()
}

/// Everything that was measured, and by how much flows started late.
pub fn measure(
    foretold: &[Foretold],
    by_repnet: bool,
    times: Times,
    end_ns: u64,
    reports: &[HostReport],
    fabric: &FabricReport,
) -> (Measured, Lateness) {
    let mut got = vec![None; foretold.len()];
    for one in reports.iter().flat_map(|report| &report.got) {
        got[one.index as usize] = Some(*one);
    }
    let mut starts = Lateness::default();
    let windows = reports.iter().flat_map(|report| &report.series);
    let mut measured = Measured {
        tiers: fabric.tiers.clone(),
        end_ns,
        packet_hops: fabric.packet_hops,
        dropped: fabric.dropped,
        lost_on_links: fabric.lost,
        unknown: [unknown(by_repnet), fabric.unknown.clone()].concat(),
        series: fabric.series.iter().chain(windows).cloned().collect(),
        ..Measured::default()
    };
    for sent in reports.iter().flat_map(|report| &report.sent) {
        let planned = foretold[sent.index as usize].record.flow.start.as_ns();
        let due_ns = sent.due_ns.unwrap_or(times.begin_ns + planned);
        starts.add(sent.opened_ns.saturating_sub(due_ns));
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
        if !sent.counts_timeouts
            && !by_repnet
            && !measured.unknown.iter().any(|name| name == "timeouts")
        {
            measured.unknown.push("timeouts".to_owned());
        }
    }
    (measured, starts)
}
