//! The books of every port, kept where assertions are on: what was offered to a port has passed it,
//! was dropped, lost or turned back there, or is still there.

use crate::measure::records::RunCounters;
use crate::port::PortCounters;
use crate::topology::PortId;

/// The fate of the packets that were offered to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fates {
    pub offered: u64,
    /// Reached the far end whole.
    pub passed: u64,
    pub dropped: u64,
    pub lost: u64,
    /// Headers that went back to their senders.
    pub returned: u64,
}

/// The fates at every port; of none where assertions are off.
#[derive(Debug, Clone, Default)]
pub(super) struct Books {
    ports: Vec<Fates>,
}

impl Books {
    /// Nothing has been offered to so many ports.
    pub fn new(ports: u32) -> Books {
        let kept = if cfg!(debug_assertions) { ports as usize } else { 0 };
        Books { ports: vec![Fates::default(); kept] }
    }

    /// Counts one packet at a port.
    #[inline(always)]
    pub fn count(&mut self, port: PortId, fate: impl FnOnce(&mut Fates) -> &mut u64) {
        if cfg!(debug_assertions) {
            *fate(&mut self.ports[port.index()]) += 1;
        }
    }

    /// Returns the books of several partitions as one.
    pub fn sum<'b>(parts: impl Iterator<Item = &'b Books>) -> Books {
        let mut all = Books::default();
        for Books { ports } in parts {
            all.ports.resize(ports.len(), Fates::default());
            for (all, part) in all.ports.iter_mut().zip(ports) {
                all.offered += part.offered;
                all.passed += part.passed;
                all.dropped += part.dropped;
                all.lost += part.lost;
                all.returned += part.returned;
            }
        }
        all
    }

    /// Holds the books against the ports at the end of a run, and against the totals of the run.
    /// `port` returns the packets that wait at a port or are on its link, and its counters.
    ///
    /// # Panics
    /// When they do not balance.
    pub fn check(&self, port: impl Fn(PortId) -> (u64, PortCounters), totals: &RunCounters) {
        if !cfg!(debug_assertions) {
            return;
        }
        let mut all = Fates::default();
        for (index, fates) in self.ports.iter().enumerate() {
            let number = PortId::at(index);
            let (inside, counters) = port(number);
            let Fates { offered, passed, dropped, lost, returned } = *fates;
            assert_eq!(
                offered,
                passed + dropped + lost + returned + inside,
                "{number:?}: {fates:?}"
            );
            assert_eq!((dropped, lost), (counters.drops, counters.lost), "{number:?}: {fates:?}");
            all.dropped += dropped;
            all.lost += lost;
        }
        let RunCounters { sent, delivered, dropped, lost_on_links, in_flight, .. } = *totals;
        assert_eq!((all.dropped, all.lost), (dropped, lost_on_links), "ports and totals agree");
        assert_eq!(sent, delivered + dropped + lost_on_links + in_flight, "no packet is missing");
    }
}
