//! The links that carried a flow's data.

use std::collections::BTreeMap;

use tailcut_engine::Time;

use super::{Observer, PacketView};
use crate::packet::Flags;
use crate::topology::PortId;

/// Maximum number of links noted per flow. Any two pods of a 1,024-host fat-tree have fewer between
/// them.
pub const MOST_LINKS: usize = 256;

/// Use of one link by one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkUse {
    /// The directed link.
    pub port: PortId,
    /// Packets that the link accepted.
    pub packets: u32,
    /// Connection of the flow, from 0.
    pub copy: u8,
}

/// Observer that records, for every flow and connection, the links that accepted packets from the
/// sender, in order of first use. Acknowledgements are left out.
#[derive(Debug, Clone, Default)]
pub struct FlowPaths {
    /// Keyed by flow identifier: a trace may choose arbitrarily large ones.
    of_flow: BTreeMap<u64, Vec<LinkUse>>,
}

impl FlowPaths {
    /// Returns the links of a flow; empty if it has none.
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
