//! Mailboxes between threads that meet after each of their turns (see
//! [`Rendezvous`](crate::Rendezvous)).

use crate::sync::Mutex;

/// A mailbox of each thread for each other one.
///
/// Every mailbox is there twice, and threads use the two sets in turns: one that is ahead fills one
/// set while others still empty the other. So a mailbox is filled before a meeting, and emptied
/// after it.
#[derive(Debug)]
pub struct Mailboxes<B> {
    parties: usize,
    /// Each by sender, then by addressee.
    sets: [Box<[Mutex<B>]>; 2],
}

impl<B: Default> Mailboxes<B> {
    /// Creates the mailboxes of so many threads.
    pub fn new(parties: usize) -> Mailboxes<B> {
        let set = || (0..parties * parties).map(|_| Mutex::new(B::default())).collect();
        Mailboxes { parties, sets: [set(), set()] }
    }

    fn mailbox(&self, turn: u64, from: usize, to: usize) -> &Mutex<B> {
        &self.sets[(turn % 2) as usize][from * self.parties + to]
    }

    /// Puts a batch into a mailbox, in exchange for the empty one there.
    pub fn hand_over(&self, turn: u64, from: usize, to: usize, batch: &mut B) {
        let mut mailbox = self.mailbox(turn, from, to).lock().expect("nobody panics with it");
        std::mem::swap(batch, &mut mailbox);
    }

    /// Lets `take` empty the mailboxes of a thread, by senders.
    pub fn take_over(&self, turn: u64, to: usize, mut take: impl FnMut(usize, &mut B)) {
        for from in (0..self.parties).filter(|from| *from != to) {
            take(from, &mut self.mailbox(turn, from, to).lock().expect("nobody panics with it"));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_taken_by_whom_it_is_for_and_comes_back_empty() {
        let mailboxes: Mailboxes<Vec<u32>> = Mailboxes::new(3);
        let mut batch = vec![7];
        mailboxes.hand_over(4, 0, 2, &mut batch);
        assert!(batch.is_empty());
        mailboxes.hand_over(5, 1, 2, &mut vec![8]);
        let take = |turn, to| {
            let mut taken = vec![];
            mailboxes.take_over(turn, to, |from, batch| taken.push((from, std::mem::take(batch))));
            taken
        };
        assert_eq!(take(4, 1), [(0, vec![]), (2, vec![])]);
        assert_eq!(take(4, 2), [(0, vec![7]), (1, vec![])], "the other one comes in the next turn");
        assert_eq!(take(4, 2), [(0, vec![]), (1, vec![])]);
        assert_eq!(take(5, 2), [(0, vec![]), (1, vec![8])]);
    }
}

/// Tests of the orders that the memory model allows two threads: `make soak`.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::Rendezvous;
    use crate::sync::try_orders;

    #[test]
    fn each_turn_gives_what_was_handed_over_in_it() {
        let create = || (Rendezvous::new(2), Mailboxes::<Vec<u64>>::new(2));
        try_orders(create, |me, (meeting, mailboxes)| {
            let mut batch = vec![];
            for turn in 0..3 {
                batch.push(turn);
                mailboxes.hand_over(turn, me, 1 - me, &mut batch);
                assert!(batch.is_empty());
                meeting.wait().expect("nobody leaves");
                mailboxes.take_over(turn, me, |_, batch| assert_eq!(batch.pop(), Some(turn)));
            }
        });
    }
}
