//! The packets on each link, in order. Only builds with assertions keep them, to check against all
//! packets what others compute from a few.

use std::collections::VecDeque;

use super::link_wait::Waited;
use super::packets::{NOWHERE, Packets};

/// The packets on each link, next to arrive first.
#[derive(Debug, Clone)]
pub(super) struct Wires(Vec<VecDeque<u32>>);

impl Wires {
    /// Creates empty links.
    pub fn new(links: usize) -> Wires {
        Wires(vec![VecDeque::new(); links])
    }

    /// Adds a packet to a link.
    pub fn push(&mut self, packet: u32, link: u32) {
        self.0[link as usize].push_back(packet);
    }

    /// Takes a packet off its link, if it is on one.
    pub fn pop(&mut self, packets: &Packets, packet: u32) {
        let link = packets[packet].link;
        if link != NOWHERE {
            assert_eq!(self.0[link as usize].pop_front(), Some(packet), "links keep the order");
        }
    }

    /// Returns whether `waited` is what the packet `of`, which joins `link`, waits for from `since`
    /// on.
    pub fn agree(&self, packets: &Packets, link: u32, since: u64, of: u32, waited: Waited) -> bool {
        let (mut looked, there) = (Waited::default(), &self.0[link as usize]);
        for &other in there {
            *looked.of(packets[of].whose(), packets[other].whose()) +=
                packets.takes(other).min(packets[other].departs.saturating_sub(since));
        }
        looked == waited
    }
}
