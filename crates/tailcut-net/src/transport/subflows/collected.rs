//! The data of a multipath flow at its receiver: what has come on any of its subflows.

use std::collections::VecDeque;

/// Data segments that have arrived of a flow spread over subflows, whichever subflow sent them.
#[derive(Debug, Clone)]
pub struct DataReassembly {
    segments: u32,
    /// The next data segment for the application.
    next: u32,
    /// Whether each segment from `next` on has arrived.
    waiting: VecDeque<bool>,
}

impl DataReassembly {
    /// Nothing of a flow of that many data segments.
    pub fn new(segments: u32) -> DataReassembly {
        DataReassembly { segments, next: 0, waiting: VecDeque::new() }
    }

    /// A data segment has arrived on some subflow. True when it was the last one missing.
    pub fn on_segment(&mut self, segment: u32) -> bool {
        if segment < self.next || segment >= self.segments {
            return false;
        }
        let at = (segment - self.next) as usize;
        if self.waiting.len() <= at {
            self.waiting.resize(at + 1, false);
        }
        self.waiting[at] = true;
        while self.waiting.front() == Some(&true) {
            self.waiting.pop_front();
            self.next += 1;
        }
        self.complete()
    }

    /// The next data segment for the application, which every acknowledgement says.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Whether every data segment has arrived.
    pub fn complete(&self) -> bool {
        self.next == self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_segment_that_was_missing_completes_the_flow_and_none_does_again() {
        let mut collected = DataReassembly::new(3);
        assert!(!collected.on_segment(2) && !collected.on_segment(0));
        assert_eq!((collected.next(), collected.complete()), (1, false));
        assert!(collected.on_segment(1) && !collected.on_segment(1));
        assert_eq!((collected.next(), collected.complete()), (3, true));
        assert!(!collected.on_segment(3), "there is no fourth");
    }

    proptest! {
        /// Whatever the order and however often, the application gets each segment once and in
        /// order.
        #[test]
        fn segments_in_any_order_complete_the_flow_once(mut order in Just((0..40u32).collect::<Vec<_>>()).prop_shuffle(), again in prop::collection::vec(0..40u32, 0..40)) {
            let mut flow = DataReassembly::new(40);
            let last = order.pop().expect("there are segments");
            let mut arrived = vec![];
            for segment in order.into_iter().chain(again.into_iter().filter(|s| *s != last)) {
                prop_assert!(!flow.on_segment(segment));
                arrived.push(segment);
                let expected = (0..).find(|s| !arrived.contains(s)).expect("one is missing");
                prop_assert_eq!(flow.next(), expected);
            }
            prop_assert!(flow.on_segment(last));
            prop_assert!(flow.complete());
        }
    }
}
