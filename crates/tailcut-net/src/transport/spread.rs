//! The machine that spreads a flow over subflows: what happens to its subflows goes in, what its
//! hosts are to do comes out, and it says which data each subflow carries. It does no input or
//! output and reads no clock, so that a script of events tests it whole.

use std::fmt::Debug;

use tailcut_engine::Bytes;

#[cfg(test)]
use crate::topology::HostId;
use crate::traffic::Flow;
use crate::transport::subflows::DataReassembly;
use crate::transport::tcp::{self, CongestionState};

/// An event of a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubflowEvent {
    /// The sender has completed the handshake.
    Established,
    /// An acknowledgement has come on it, and says this of the data if it says anything.
    Acknowledged {
        /// The next data segment that the receiver waits for.
        data_ack: Option<u32>,
    },
    /// The retransmission timer has expired.
    TimedOut,
}

/// An action of the hosts; actions are carried out in order. Subflows are numbered from 0, the
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubflowAction {
    /// Open a subflow.
    Open(OpenSubflow),
    /// The other subflows may have data to send, now.
    PumpOthers,
    /// The sender knows that all data has arrived: the subflow of this event closes, all others are
    /// reset.
    Close,
}

/// A subflow to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSubflow {
    /// The subflow's number.
    pub subflow: u8,
    /// Whether its window grows by [`SubflowManager::window_increase`].
    pub coupled: bool,
    /// The duplicate ACKs that mean a loss; `None` for TCP's parameter.
    pub dupack_threshold: Option<u32>,
}

/// A subflow, as its manager sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubflowView {
    /// The first of its own segments that is not acknowledged.
    pub una: u32,
    /// Its segments that have not been acknowledged.
    pub outstanding: u32,
    /// Duplicate acknowledgements in a row, and how many of them mean a loss.
    pub duplicates: u32,
    /// The duplicate ACKs that mean a loss.
    pub dupack_threshold: u32,
    /// Fast recoveries so far.
    pub fast_recoveries: u32,
    /// Congestion window in bytes; in recovery its slow-start threshold (RFC 6356 section 3).
    pub cwnd: u64,
    /// Smoothed round-trip time in picoseconds; 0 before the first measurement.
    pub rtt: u64,
}

impl SubflowView {
    /// Returns the view of a sender.
    #[inline]
    pub fn of(sender: &tcp::Sender) -> SubflowView {
        let recovers = sender.state() == CongestionState::Recovery;
        SubflowView {
            una: sender.una(),
            outstanding: sender.outstanding(),
            duplicates: sender.duplicates(),
            dupack_threshold: sender.dupack_threshold(),
            fast_recoveries: sender.counters().fast_recoveries,
            cwnd: if recovers { sender.ssthresh() } else { sender.cwnd() },
            rtt: sender.rtt().smoothed().0,
        }
    }

    /// A subflow that gets no new data cannot draw enough duplicate acknowledgements for its last
    /// hole. True when all that is beyond it must have arrived, or enough to call it lost (compare
    /// early retransmit, RFC 5827).
    pub(super) fn has_hole(&self) -> bool {
        let beyond = self.outstanding.saturating_sub(1);
        self.duplicates > 0 && self.duplicates >= beyond.min(self.dupack_threshold)
    }
}

/// The subflows of a flow, as its manager sees them.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The subflow of the event.
    pub subflow: u8,
    /// The view of this subflow.
    pub seen: SubflowView,
    /// Returns the view of another subflow, if there is one.
    pub look: &'a dyn Fn(u8) -> Option<SubflowView>,
}

/// The data that a segment of a subflow carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataMapping {
    /// The data segment.
    pub number: u32,
    /// The payload in bytes.
    pub payload: u64,
    /// Whether it is the last of the flow.
    pub last: bool,
    /// The place of its packet's source port among those of flows, where it is not that of its
    /// subflow.
    pub scattered: Option<u16>,
}

/// A manager at work on one flow, at the host that sends it.
pub trait SubflowManager: Debug + Send {
    /// The subflow that opens the flow. `paths` tells how many shortest paths there are between its
    /// hosts, if that is asked.
    fn initial_subflow(&self, paths: &mut dyn FnMut() -> u32) -> OpenSubflow;
    /// Something has happened; what follows from it is appended to `actions`.
    fn on_event(&mut self, event: SubflowEvent, view: View<'_>, actions: &mut Vec<SubflowAction>);
    /// Returns the increase of each window in congestion avoidance, in bytes per byte acknowledged.
    fn window_increase(&self) -> f64;
    /// Bytes of the data segment that a subflow with room would probably be given.
    fn likely_segment_bytes(&self) -> u64;
    /// Gives a subflow a data segment to carry, if there is one for it, and says how many bytes
    /// that has.
    fn assign(&mut self, copy: u8, actions: &mut Vec<SubflowAction>) -> Option<u64>;
    /// Returns the data that a segment of a subflow carries; called for each transmission.
    fn carries(&mut self, copy: u8, seq: u32) -> DataMapping;
}

/// The parameters of a transport that spreads flows.
pub trait MultipathSpec: Debug + Send + Sync {
    /// Subflows of every flow, at most.
    fn subflows(&self) -> u32;
    /// The receive window that all subflows share.
    fn receive_window(&self) -> Bytes;
    /// Segments of this size that it holds.
    fn shared_window(&self, mss: u64) -> u32 {
        (self.receive_window().0 / mss).clamp(1, u64::from(u32::MAX)) as u32
    }
    /// Packets of the first subflow may take any of the shortest paths.
    fn scatters(&self) -> bool;
    /// Returns the least number of segments sent before the other subflows are opened.
    fn segments_before_join(&self) -> u64;
    /// The manager of a flow, in a run of this seed.
    fn manager(&self, flow: &Flow, seed: u64) -> Box<dyn SubflowManager>;
    /// Creates the data-level reassembly of a flow.
    fn collected(&self, flow: &Flow) -> DataReassembly;
}

/// A manager, event by event: what tests write.
#[cfg(test)]
pub(super) struct Script {
    pub flow: Flow,
    pub manager: Box<dyn SubflowManager>,
    /// The view of each subflow.
    pub seen: Vec<SubflowView>,
}

#[cfg(test)]
impl Script {
    /// A flow of so many bytes.
    pub fn new(spec: &impl MultipathSpec, bytes: u64) -> Script {
        let flow = Flow {
            src: HostId(0),
            dst: HostId(1),
            bytes,
            start: tailcut_engine::Time::ZERO,
            id: 7,
        };
        let seen = vec![
            SubflowView { dupack_threshold: 3, ..SubflowView::default() };
            spec.subflows() as usize
        ];
        Script { manager: spec.manager(&flow, 1), flow, seen }
    }

    /// Returns the actions that follow from an event of a subflow.
    pub fn on(&mut self, copy: u8, event: SubflowEvent) -> Vec<SubflowAction> {
        let Script { manager, seen, .. } = self;
        let look = |copy: u8| seen.get(usize::from(copy)).copied();
        let mut actions = vec![];
        let view = View { subflow: copy, seen: seen[usize::from(copy)], look: &look };
        manager.on_event(event, view, &mut actions);
        actions
    }

    /// An acknowledgement of a subflow, up to one of its segments, that says this of the data.
    pub fn acknowledged(&mut self, copy: u8, una: u32, data_ack: u32) -> Vec<SubflowAction> {
        self.seen[usize::from(copy)].una = una;
        self.on(copy, SubflowEvent::Acknowledged { data_ack: Some(data_ack) })
    }

    /// The numbers of the data segments that a subflow is given, `count` times.
    pub fn assign(&mut self, copy: u8, from: u32, count: u32) -> Vec<u32> {
        let mut numbers = vec![];
        for seq in from..from + count {
            if self.manager.assign(copy, &mut vec![]).is_some() {
                numbers.push(self.manager.carries(copy, seq).number);
            }
        }
        numbers
    }
}
