//! Flows as hosts see them.

use tailcut_net::PredictedFlow;

/// A flow, as a host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostFlow {
    /// Its place among the flows of the run.
    pub index: u64,
    /// Who sends.
    pub src: u32,
    /// Who receives.
    pub dst: u32,
    /// Application bytes.
    pub bytes: u64,
    /// When it starts, in nanoseconds from the beginning of the run.
    pub start_ns: u64,
    /// The source port of its connection.
    pub source_port: u16,
}

/// The flows, as hosts see them.
pub fn host_flows(foretold: &[PredictedFlow]) -> Vec<HostFlow> {
    let flows = foretold.iter().enumerate().map(|(index, foretold)| {
        let flow = &foretold.record.flow;
        HostFlow {
            index: index as u64,
            src: flow.src.0,
            dst: flow.dst.0,
            bytes: flow.bytes,
            start_ns: flow.start.as_ns(),
            source_port: foretold.key.sport(),
        }
    });
    flows.collect()
}
