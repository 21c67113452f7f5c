//! The data of a multipath flow at its sender: which subflow carries which segment,
//! what is acknowledged, and what is carried again by another subflow.
//!
//! Positions count data segments of one MSS. Subflow segments have numbers of
//! their own; the mapping is the data sequence signal of RFC 8684 section 3.3.

use std::collections::VecDeque;

use super::lia::{SubflowWindow, increase};

/// In an entry of the mapping: another subflow carries the segment too.
const REINJECTED: u32 = 1 << 31;

/// The phase of a flow that begins by scattering packets; other flows have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinPhase {
    /// The first subflow carries everything; the others are not open.
    Alone,
    /// The others are being opened.
    Opening,
    /// At least one of the others is up.
    Spread,
}

/// The segments of a subflow that have not been acknowledged.
#[derive(Debug, Clone, Default)]
struct SubflowMapping {
    /// Number of the first subflow segment in `segments`.
    base: u32,
    /// The data segment that each subflow segment carries.
    segments: VecDeque<u32>,
}

/// The state that the subflows of a flow share at its sender.
#[derive(Debug, Clone)]
pub struct DataSequencer {
    segments: u32,
    /// Data segments that the shared receive window holds.
    window: u32,
    /// The next data segment that no subflow has.
    next: u32,
    /// First data segment not acknowledged at the data level.
    una: u32,
    mappings: Vec<SubflowMapping>,
    windows: Vec<SubflowWindow>,
    /// Data segments to be carried again, and the subflow that has failed to.
    reinject: VecDeque<(u32, u8)>,
    /// The receive window has kept a subflow from sending.
    blocked: bool,
    phase: JoinPhase,
    /// The first subflow gets no new data once another is up.
    retires_first: bool,
    reinjections: u64,
}

impl DataSequencer {
    /// A flow of that many data segments over `subflows` subflows, with room for `window` segments
    /// at the receiver.
    pub fn new(segments: u32, window: u32, subflows: u32) -> DataSequencer {
        DataSequencer {
            segments,
            window: window.max(1),
            next: 0,
            una: 0,
            mappings: vec![SubflowMapping::default(); subflows as usize],
            windows: vec![SubflowWindow::default(); subflows as usize],
            reinject: VecDeque::new(),
            blocked: false,
            phase: JoinPhase::Alone,
            retires_first: false,
            reinjections: 0,
        }
    }

    /// The first subflow only begins the flow: once another is up it gets no new data, and never
    /// counts in the coupling.
    pub fn retire_first(mut self) -> DataSequencer {
        self.retires_first = true;
        self
    }

    /// Subflows, opened or not.
    pub fn subflows(&self) -> u32 {
        self.mappings.len() as u32
    }
    /// Data segments of the flow.
    pub fn segments(&self) -> u32 {
        self.segments
    }
    /// Data segments that some subflow has.
    pub fn assigned(&self) -> u32 {
        self.next
    }
    /// Segments carried again by another subflow.
    pub fn reinjections(&self) -> u64 {
        self.reinjections
    }
    /// Whether the other subflows are open.
    pub fn phase(&self) -> JoinPhase {
        self.phase
    }
    /// The other subflows are being opened.
    pub fn open_others(&mut self) {
        self.phase = JoinPhase::Opening;
    }
    /// A subflow other than the first is up.
    pub fn on_joined(&mut self) {
        self.phase = JoinPhase::Spread;
    }
    /// True when the first subflow only waits for what it has sent.
    pub fn drains_first(&self) -> bool {
        self.retires_first && self.phase == JoinPhase::Spread
    }
    /// True when a subflow counts in the coupling.
    pub fn is_coupled(&self, subflow: u8) -> bool {
        !(self.retires_first && subflow == 0)
    }

    /// The data segment that a subflow with room carries next, if any: one that another has failed
    /// to deliver, or a new one.
    pub fn assign(&mut self, subflow: u8) -> Option<u32> {
        let segment = self.again(subflow).or_else(|| self.fresh(subflow))?;
        self.mappings[usize::from(subflow)].segments.push_back(segment);
        Some(segment)
    }

    fn again(&mut self, subflow: u8) -> Option<u32> {
        let una = self.una;
        self.reinject.retain(|&(segment, _)| segment >= una);
        if subflow == 0 && self.drains_first() {
            return None;
        }
        let at = self.reinject.iter().position(|&(_, failed)| failed != subflow)?;
        self.reinjections += 1;
        self.reinject.remove(at).map(|(segment, _)| segment)
    }

    fn fresh(&mut self, subflow: u8) -> Option<u32> {
        if self.next == self.segments || (subflow == 0 && self.drains_first()) {
            return None;
        }
        if self.next - self.una >= self.window {
            self.blocked = true;
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The data segment that is likely to be assigned next.
    pub fn likely_next(&self) -> u32 {
        self.reinject.front().map_or(self.next.min(self.segments - 1), |&(segment, _)| segment)
    }

    /// The data segment that a subflow segment carries.
    pub fn data_of(&self, subflow: u8, seq: u32) -> u32 {
        let mapping = &self.mappings[usize::from(subflow)];
        mapping.segments[(seq - mapping.base) as usize] & !REINJECTED
    }

    /// A subflow has heard that all its segments below `ack` arrived.
    pub fn on_subflow_ack(&mut self, subflow: u8, ack: u32) {
        let mapping = &mut self.mappings[usize::from(subflow)];
        while mapping.base < ack && mapping.segments.pop_front().is_some() {
            mapping.base += 1;
        }
    }

    /// An acknowledgement at the data level; true when a subflow that the receive window has
    /// stopped may go on.
    pub fn on_data_ack(&mut self, ack: u32) -> bool {
        if ack <= self.una || ack > self.segments {
            return false;
        }
        self.una = ack;
        std::mem::take(&mut self.blocked)
    }

    /// True once the sender knows that every byte has arrived.
    pub fn acknowledged(&self) -> bool {
        self.una == self.segments
    }

    /// A subflow's timer has expired: whatever it has in flight may be carried by the others. True
    /// when there is something.
    pub fn reinject_all(&mut self, subflow: u8) -> bool {
        self.reinject_some(subflow, usize::MAX)
    }

    /// The first segment that a subflow has in flight may be carried by the others. True when it is
    /// not yet.
    pub fn reinject_first(&mut self, subflow: u8) -> bool {
        self.reinject_some(subflow, 1)
    }

    fn reinject_some(&mut self, subflow: u8, count: usize) -> bool {
        let before = self.reinject.len();
        for entry in self.mappings[usize::from(subflow)].segments.iter_mut().take(count) {
            if *entry & REINJECTED == 0 && *entry >= self.una {
                self.reinject.push_back((*entry, subflow));
                *entry |= REINJECTED;
            }
        }
        self.reinject.len() > before
    }

    /// A subflow's window or round-trip time has changed.
    pub fn set_window(&mut self, subflow: u8, window: SubflowWindow) {
        self.windows[usize::from(subflow)] = window;
    }

    /// Returns the coupled increase of every subflow, in bytes of window per byte acknowledged.
    pub fn increase(&self, mss: u64) -> f64 {
        increase(&self.windows, mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subflows_take_data_in_order_as_they_have_room() {
        let mut flow = DataSequencer::new(3, 10, 2);
        assert_eq!(
            [flow.assign(0), flow.assign(1), flow.assign(0), flow.assign(1)],
            [Some(0), Some(1), Some(2), None]
        );
        assert_eq!((flow.data_of(0, 1), flow.data_of(1, 0)), (2, 1));
    }

    #[test]
    fn the_receive_window_is_shared_and_opens_with_the_data_acknowledgement() {
        let mut flow = DataSequencer::new(10, 2, 2);
        assert_eq!([flow.assign(0), flow.assign(1), flow.assign(0)], [Some(0), Some(1), None]);
        assert!(flow.on_data_ack(1), "a subflow was stopped");
        assert_eq!(flow.assign(0), Some(2));
        assert!(!flow.on_data_ack(2), "none was stopped since");
    }

    #[test]
    fn what_a_subflow_fails_to_deliver_another_carries_once() {
        let mut flow = DataSequencer::new(4, 10, 3);
        for subflow in [0, 0, 1] {
            flow.assign(subflow);
        }
        assert!(flow.reinject_all(0));
        assert!(!flow.reinject_all(0), "it is on its way already");
        assert_eq!(flow.assign(0), Some(3), "never by the subflow itself");
        assert_eq!((flow.assign(1), flow.assign(2)), (Some(0), Some(1)));
        assert_eq!(flow.reinjections(), 2);
    }

    #[test]
    fn does_not_reinject_acknowledged_data() {
        let mut flow = DataSequencer::new(2, 10, 2);
        for _ in 0..2 {
            flow.assign(0);
        }
        flow.reinject_all(0);
        flow.on_data_ack(1);
        assert_eq!([flow.assign(1), flow.assign(1)], [Some(1), None]);
    }

    #[test]
    fn a_retired_first_subflow_gets_nothing_once_another_is_up() {
        let mut flow = DataSequencer::new(9, 10, 2).retire_first();
        assert_eq!(flow.assign(0), Some(0));
        flow.open_others();
        assert_eq!(flow.assign(0), Some(1), "none of the others is up yet");
        flow.on_joined();
        assert_eq!((flow.assign(0), flow.assign(1)), (None, Some(2)));
        assert!(flow.reinject_first(0));
        assert_eq!((flow.assign(0), flow.assign(1)), (None, Some(0)));
    }
}
