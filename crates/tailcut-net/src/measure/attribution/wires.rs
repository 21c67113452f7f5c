//! Which packets are on which link, in order: known in builds with assertions only, which look at all of them where others look at few.

use std::collections::VecDeque;

use super::link_wait::Waited;
use super::packets::{NOWHERE, Packets};

/// The packets on each link, the first to arrive first.
#[derive(Debug, Clone)]
pub(super) struct Wires(Vec<VecDeque<u32>>);

impl Wires {
    /// Of so many links, without any packet.
    pub fn new(links: usize) -> Wires {
        Wires(vec![VecDeque::new(); links])
    }

    /// A packet goes on a link.
    pub fn push(&mut self, packet: u32, link: u32) {
        self.0[link as usize].push_back(packet);
    }

    /// A packet is on its link no more, if it was on one.
    pub fn pop(&mut self, packets: &Packets, packet: u32) {
        let link = packets[packet].link;
        if link != NOWHERE {
            assert_eq!(self.0[link as usize].pop_front(), Some(packet), "links keep the order");
        }
    }

    /// Whether a packet that comes to a link waits for these from `since` on.
    pub fn agree(&self, packets: &Packets, link: u32, since: u64, of: u32, waited: Waited) -> bool {
        let (mut looked, there) = (Waited::default(), &self.0[link as usize]);
        for &other in there {
            *looked.of(packets[of].whose(), packets[other].whose()) +=
                packets.takes(other).min(packets[other].departs.saturating_sub(since));
        }
        looked == waited
    }
}
