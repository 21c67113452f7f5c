//! Flows as hosts handle them.

use tailcut_net::PredictedFlow;

/// A flow of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostFlow {
    /// The index among the flows of the run.
    pub index: u64,
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// The size in bytes.
    pub bytes: u64,
    /// The start in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// The source port of its first connection.
    pub source_port: u16,
}

/// Converts the predicted flows of a run.
pub fn host_flows(predicted: &[PredictedFlow]) -> Vec<HostFlow> {
    let flows = predicted.iter().enumerate().map(|(index, predicted)| {
        let flow = &predicted.record.flow;
        HostFlow {
            index: index as u64,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.bytes,
            start_ns: flow.start.as_ns(),
            source_port: predicted.key.sport(),
        }
    });
    flows.collect()
}
