//! The blocks that ns-3's receiver reports (`TcpRxBuffer::UpdateSackList`): four, and what they
//! forget is never reported.

/// Ranges beyond a gap, the most recently changed first.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed(Vec<(u32, u32)>);

impl Listed {
    /// Blocks that are remembered.
    const MOST: usize = 4;

    /// The blocks.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// A segment has arrived beyond a gap: its block, with whatever it joins, comes first, and a
    /// fifth block is forgotten.
    pub fn add(&mut self, seq: u32) {
        self.0.insert(0, (seq, seq + 1));
        let mut at = 1;
        while at < self.0.len() {
            let (first, other) = (self.0[0], self.0[at]);
            if other.1 != first.0 && first.1 != other.0 {
                at += 1;
                continue;
            }
            self.0.remove(at);
            self.0[0] = (first.0.min(other.0), first.1.max(other.1));
            // The search begins anew behind the second block, as there.
            at = 1;
        }
        self.0.truncate(Self::MOST);
    }

    /// Everything below `next` has arrived.
    pub fn forget_below(&mut self, next: u32) {
        self.0.retain(|&(_, end)| end > next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(arrivals: &[u32]) -> Listed {
        let mut listed = Listed::default();
        arrivals.iter().for_each(|&seq| listed.add(seq));
        listed
    }

    #[test]
    fn a_fifth_block_is_forgotten() {
        assert_eq!(after(&[1, 3, 5, 7, 9]).blocks(), [(9, 10), (7, 8), (5, 6), (3, 4)]);
    }

    #[test]
    fn what_joins_a_forgotten_block_is_reported_without_it() {
        assert_eq!(after(&[1, 3, 5, 7, 9, 2]).blocks(), [(2, 4), (9, 10), (7, 8), (5, 6)]);
    }

    #[test]
    fn a_segment_between_two_blocks_joins_both() {
        assert_eq!(after(&[1, 3, 2]).blocks(), [(1, 4)]);
    }

    #[test]
    fn what_has_arrived_in_order_is_reported_no_more() {
        let mut listed = after(&[1, 3]);
        listed.forget_below(2);
        assert_eq!(listed.blocks(), [(3, 4)]);
    }
}
