//! Which of the elephants that edge switches have detected are elephants.

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
    /// What was detected is the acknowledgements of the flow.
    pub acks: bool,
}

/// Links between hosts of one edge switch: flows between these have no paths to choose from, and are not counted.
const WITHIN_RACK: u8 = 2;

/// The detections of a run.
#[derive(Debug, Clone)]
pub(super) struct DetectionAudit {
    /// A flow of at least so many bytes is an elephant in truth.
    elephant: Bytes,
    /// Detections that nobody has judged yet.
    pub news: Vec<Detection>,
    /// The elephants detected.
    found: BTreeSet<FlowIndex>,
    /// Smaller flows taken for elephants.
    mistaken: u64,
    /// Streams of acknowledgements taken for elephants, most of them those of true elephants.
    ack_streams: u64,
    /// From the start of each elephant found to its detection, added up.
    detection_time: Time,
    /// Draws of a new path.
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
    fn an_elephant_counts_once_and_its_detection_from_its_start() {
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
