//! Common parts of transports that spread a flow over subflows: the data that each subflow carries
//! ([`DataSequencer`]), reassembly ([`DataReassembly`]), coupled windows ([`increase`]), and checks
//! of parameters. The machines that open subflows and handle their events are the transports' own
//! ([`SubflowManager`](super::spread::SubflowManager)).

mod collected;
mod data;
mod lia;

use tailcut_engine::Bytes;

pub use collected::DataReassembly;
pub use data::{DataSequencer, JoinPhase};
pub use lia::{SubflowWindow, increase};

use super::segments_of;
use super::spread::{DataMapping, MultipathSpec, OpenSubflow, SubflowAction, View};
use super::tcp::{CongestionSpec, TcpSpec, check_window};
use crate::component::SpecError;
use crate::traffic::Flow;

/// More subflows than this are a slip.
const MAX_SUBFLOWS: u32 = 64;

/// Checks the parameters.
pub(super) fn check_subflow_spec(
    code: &'static str,
    subflows: u32,
    receive_window: Bytes,
    tcp: &TcpSpec,
) -> Result<(), SpecError> {
    if !(1..=MAX_SUBFLOWS).contains(&subflows) {
        let message = format!("subflows = {subflows}: 1 to {MAX_SUBFLOWS}");
        return Err(SpecError::new(code, "subflows", message).hint("the papers use 8"));
    }
    if receive_window.0 < tcp.mss.0 {
        let message = format!(
            "receive_window = \"{receive_window}\" is smaller than one segment of {} B: nothing could be sent",
            tcp.mss.0
        );
        return Err(SpecError::new("mptcp-receive-window", "receive_window", message));
    }
    check_window("mptcp-receive-window", "receive_window", receive_window, tcp.mss.0.max(1))?;
    if tcp.congestion != CongestionSpec::default() || tcp.uses_ecn() {
        let message = "the windows of subflows are coupled in congestion avoidance (RFC 6356) and halved by losses";
        return Err(SpecError::new("mptcp-congestion", "tcp.congestion", message)
            .hint("leave congestion and ecn out"));
    }
    if tcp.entropy.is_some() {
        let message = "every subflow keeps its port, but for the one that MMPTCP scatters";
        return Err(
            SpecError::new("mptcp-entropy", "tcp.entropy", message).hint("leave tcp.entropy out")
        );
    }
    tcp.check().map_err(|error| SpecError { field: format!("tcp.{}", error.field), ..error })
}

/// The data of a flow that subflows carry in segments of one size.
#[derive(Debug, Clone)]
pub(super) struct Data {
    pub of: DataSequencer,
    mss: u64,
    bytes: u64,
}

impl Data {
    pub fn new(spec: &impl MultipathSpec, mss: u64, flow: &Flow) -> Data {
        let segments = segments_of(flow.bytes, Bytes(mss));
        let of = DataSequencer::new(segments, spec.shared_window(mss), spec.subflows());
        Data { of, mss, bytes: flow.bytes }
    }

    fn payload(&self, number: u32) -> u64 {
        (self.bytes - u64::from(number) * self.mss).min(self.mss)
    }

    pub fn growth(&self) -> f64 {
        self.of.increase(self.mss)
    }

    pub fn likely(&self) -> u64 {
        self.payload(self.of.likely_next())
    }

    pub fn assign(&mut self, copy: u8) -> Option<u64> {
        let number = self.of.assign(copy)?;
        Some(self.payload(number))
    }

    /// Bytes that some subflow has, in whole segments.
    pub fn assigned(&self) -> u64 {
        u64::from(self.of.assigned()) * self.mss
    }

    pub fn carries(&self, copy: u8, seq: u32) -> DataMapping {
        let number = self.of.data_of(copy, seq);
        let last = number + 1 == self.of.segments();
        DataMapping { number, payload: self.payload(number), last, scattered: None }
    }

    /// Opens every subflow but the first.
    pub fn open_others(&mut self, actions: &mut Vec<SubflowAction>) {
        self.of.open_others();
        let others = 1..self.of.subflows() as u8;
        let open = |copy| {
            SubflowAction::Open(OpenSubflow {
                subflow: copy,
                coupled: true,
                dupack_threshold: None,
            })
        };
        actions.extend(others.map(open));
    }

    /// The subflow's window may have changed; a scattering one does not count.
    pub fn note_window(&mut self, view: View<'_>) {
        if self.of.is_coupled(view.subflow) {
            let window = SubflowWindow { cwnd: view.seen.cwnd, rtt: view.seen.rtt };
            self.of.set_window(view.subflow, window);
        }
    }

    /// An acknowledgement has come; true when a subflow that the receive window has stopped may go
    /// on.
    pub fn on_ack(&mut self, view: View<'_>, data_ack: Option<u32>) -> bool {
        self.of.on_subflow_ack(view.subflow, view.seen.una);
        data_ack.is_some_and(|ack| self.of.on_data_ack(ack))
    }
}
