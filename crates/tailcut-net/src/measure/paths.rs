//! Which links carried a flow's data.

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::{Observer, PacketView};
use crate::packet::Flags;
use crate::topology::PortId;

/// Links of one flow beyond which no further one is noted: more than all between two pods of a 1,024-host fat-tree.
pub const MOST_LINKS: usize = 256;

/// One link that carried packets of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkUse {
    /// The link, with its direction.
    pub port: PortId,
    /// Packets that it accepted.
    pub packets: u32,
    /// Which of the flow's connections.
    pub copy: u8,
}

/// An observer that notes for every flow the links that accepted packets from its sender, connection by connection, in the order in
/// which they first did. Acknowledgements are left out.
#[derive(Debug, Clone, Default)]
pub struct FlowPaths {
    /// By the flow's identifier, which a trace may have chosen as large as it likes.
    of_flow: BTreeMap<u64, Vec<LinkUse>>,
}

impl FlowPaths {
    /// The links of a flow.
    pub fn links_of(&self, flow: u64) -> &[LinkUse] {
        self.of_flow.get(&flow).map_or(&[], Vec::as_slice)
    }
}

impl Observer for FlowPaths {
    fn link_accepts(&mut self, _now: Time, link: PortId, _departs: Time, packet: &PacketView) {
        if packet.flags.has(Flags::TO_SENDER) {
            return;
        }
        let links = self.of_flow.entry(packet.flow).or_default();
        let known = links.iter().position(|at| (at.port, at.copy) == (link, packet.copy));
        match known {
            Some(at) => links[at].packets = links[at].packets.saturating_add(1),
            None if links.len() < MOST_LINKS => {
                links.push(LinkUse { port: link, packets: 1, copy: packet.copy });
            }
            None => {}
        }
    }
}
