//! Marks that hosts set on packets before they leave, for switches that ask for them.

use tailcut_engine::Bytes;

use super::Fabric;
use crate::packet::{Flags, Packet};
use crate::queue::{LostPaths, QueueSpec};
use crate::topology::{Graph, Routes};

/// The marks in use.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// The packets of flows of at least so many bytes.
    large: Option<Bytes>,
    /// The flows that have lost paths; `None` unless queues ask for them.
    manager: Option<FaultManager>,
    /// Anything at all, at present.
    any: bool,
}

/// The fault manager of RPS: tells hosts which of their flows have lost paths.
#[derive(Debug, Clone)]
struct FaultManager {
    acks: bool,
    /// Per pair of groups of hosts, source first; empty while no link is known to be down.
    lost: Vec<bool>,
}

impl FaultManager {
    /// Whether this packet belongs to a flow that has lost paths, and is to say so.
    fn marks(&self, routes: &Routes, packet: &Packet) -> bool {
        let (src, dst) = (routes.group(packet.key.src()), routes.group(packet.key.dst()));
        // A flow is what its data packets cross, whichever way its acknowledgements go.
        let (source, destination) = match packet.flags.has(Flags::TO_SENDER) {
            true if !self.acks => return false,
            true => (dst, src),
            false => (src, dst),
        };
        self.lost.get(source * routes.groups() + destination).copied().unwrap_or(false)
    }
}

impl Marks {
    pub fn new(queue: &QueueSpec, large: Option<Bytes>) -> Marks {
        let told = queue.lost_paths();
        let manager = told.map(|of| FaultManager { acks: of == LostPaths::All, lost: vec![] });
        Marks { large, manager, any: large.is_some() }
    }

    /// Routing has settled on `now`, of the routes of the whole network.
    pub fn reroute(&mut self, graph: &Graph, whole: &Routes, now: &Routes) {
        if let Some(manager) = &mut self.manager {
            manager.lost = whole.lost_paths(graph, now);
            self.any = manager.lost.contains(&true) || self.large.is_some();
        }
    }
}

impl Fabric {
    /// Whether hosts mark anything at present.
    #[inline]
    pub fn marks_packets(&self) -> bool {
        self.marks.any
    }

    /// Marks a packet of a flow of `bytes` before it leaves its host.
    #[cold]
    pub fn mark(&self, packet: &mut Packet, flow_bytes: u64) {
        if self.marks.large.is_some_and(|least| flow_bytes >= least.0)
            && packet.flags.has(Flags::DATA)
        {
            packet.flags = packet.flags | Flags::LARGE_FLOW;
        }
        if self.marks.manager.as_ref().is_some_and(|manager| manager.marks(&self.routes, packet)) {
            packet.flags = packet.flags | Flags::LOST_PATHS;
        }
    }
}
