//! The audit of TinyFlow's detections: which detected flows are elephants.

use std::collections::BTreeSet;

use tailcut_engine::{Bytes, Time};

use crate::balance::audit::{Audit, AuditedFlow};
use crate::packet::{ConnectionId, FlowKey};
use crate::traffic::FlowIndex;

/// A flow that a switch takes for an elephant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detection {
    pub key: FlowKey,
    pub connection: ConnectionId,
    pub at: Time,
    /// Whether the detected stream is the acknowledgements of the flow.
    pub acks: bool,
}

/// Links between hosts of one edge switch. Flows between such hosts have no paths to choose from
/// and are not counted.
const WITHIN_RACK: u8 = 2;

/// The detections of a run.
#[derive(Debug, Clone)]
pub(super) struct DetectionAudit {
    /// Size in bytes from which on a flow is an elephant in truth.
    elephant: Bytes,
    /// Detections not judged yet.
    pub news: Vec<Detection>,
    /// Elephants detected.
    found: BTreeSet<FlowIndex>,
    /// Number of smaller flows taken for elephants.
    mistaken: u64,
    /// Number of streams of acknowledgements taken for elephants, most of them those of true
    /// elephants.
    ack_streams: u64,
    /// Sum over the elephants found of the time from their start to their detection.
    detection_time: Time,
    /// Number of new paths drawn.
    pub reroutes: u64,
}

impl DetectionAudit {
    pub fn new(elephant: Bytes) -> DetectionAudit {
        DetectionAudit {
            elephant,
            news: vec![],
            found: BTreeSet::new(),
            mistaken: 0,
            ack_streams: 0,
            detection_time: Time::ZERO,
            reroutes: 0,
        }
    }
}

impl Audit for DetectionAudit {
    fn settle(&mut self, known: &dyn Fn(ConnectionId, FlowKey) -> Option<AuditedFlow>) {
        for detection in self.news.drain(..) {
            let Some(flow) = known(detection.connection, detection.key) else { continue };
            if flow.links <= WITHIN_RACK {
                continue;
            }
            if detection.acks {
                self.ack_streams += 1;
            } else if flow.bytes < self.elephant.0 {
                self.mistaken += 1;
            } else if self.found.insert(flow.flow) {
                self.detection_time += detection.at - flow.start;
            }
        }
    }

    fn totals(&self, flows: &mut dyn Iterator<Item = AuditedFlow>) -> Vec<(&'static str, u64)> {
        let missed = flows.filter(|flow| {
            flow.bytes >= self.elephant.0
                && flow.links > WITHIN_RACK
                && !self.found.contains(&flow.flow)
        });
        vec![
            ("elephants_found", self.found.len() as u64),
            ("elephants_missed", missed.count() as u64),
            ("elephants_mistaken", self.mistaken),
            ("elephant_ack_streams", self.ack_streams),
            ("elephant_detection_ns", self.detection_time.as_ns()),
            ("elephant_reroutes", self.reroutes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostId;

    const ELEPHANT: u64 = 1_000;

    fn flow(flow: u32, bytes: u64) -> AuditedFlow {
        AuditedFlow { flow: FlowIndex(flow), bytes, start: Time::from_us(10), links: 4 }
    }

    /// Connection n carries flow n, whose size is a hundred times that.
    fn settled(detections: &[(u32, bool)]) -> DetectionAudit {
        let mut ledger = DetectionAudit::new(Bytes(ELEPHANT));
        for &(connection, acks) in detections {
            let key = FlowKey::new(HostId(0), HostId(1), 1_024, 5_000);
            let connection = ConnectionId(connection);
            ledger.news.push(Detection { key, connection, at: Time::from_us(15), acks });
        }
        ledger.settle(&|connection, _| {
            let ConnectionId(number) = connection;
            (number < 90).then(|| flow(number, 100 * u64::from(number)))
        });
        ledger
    }

    fn totals(ledger: &DetectionAudit, flows: &[AuditedFlow]) -> Vec<u64> {
        let totals = ledger.totals(&mut flows.iter().copied());
        totals.into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn an_elephant_counts_once_with_the_time_from_its_start_to_detection() {
        let ledger = settled(&[(10, false), (10, false), (9, false), (12, true)]);
        assert_eq!(totals(&ledger, &[]), [1, 0, 1, 1, 5_000, 0]);
        assert!(ledger.news.is_empty());
    }

    #[test]
    fn ignores_detections_of_closed_connections() {
        assert_eq!(totals(&settled(&[(90, false)]), &[]), [0; 6]);
    }

    #[test]
    fn a_flow_within_a_rack_is_neither_found_nor_mistaken() {
        let mut ledger = settled(&[]);
        for (connection, acks) in [(1, false), (2, true), (30, false)] {
            let key = FlowKey::new(HostId(0), HostId(1), 1_024, 5_000);
            let connection = ConnectionId(connection);
            ledger.news.push(Detection { key, connection, at: Time::from_us(15), acks });
        }
        ledger.settle(&|connection, _| {
            Some(AuditedFlow { links: 2, ..flow(connection.0, 100 * u64::from(connection.0)) })
        });
        assert_eq!(totals(&ledger, &[]), [0; 6]);
    }

    #[test]
    fn an_elephant_is_missed_when_it_had_paths_to_choose_from() {
        let ledger = settled(&[(10, false)]);
        let nearby = AuditedFlow { links: 2, ..flow(11, ELEPHANT) };
        let flows = [flow(10, ELEPHANT), nearby, flow(12, ELEPHANT), flow(13, ELEPHANT - 1)];
        assert_eq!(totals(&ledger, &flows)[..2], [1, 1]);
    }
}
