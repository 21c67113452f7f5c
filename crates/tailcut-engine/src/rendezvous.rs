//! A barrier at which the threads of one run meet many thousand times a second.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// Turns that a thread spins before it offers its processor to others: some 20 microseconds.
const SPINS: u32 = 4_000;

/// A meeting point of a fixed number of threads. Waiting threads spin for a bounded time, then
/// yield: with fewer processors than threads a run is slow, and goes on.
///
/// What a thread wrote before it waits, every thread reads after the wait.
#[derive(Debug)]
pub struct Rendezvous {
    parties: u32,
    arrived: AtomicU32,
    round: AtomicU32,
    broken: AtomicBool,
}

/// A thread has left the meeting for good: nobody waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

impl Rendezvous {
    /// Creates a meeting point of so many threads.
    pub fn new(parties: u32) -> Rendezvous {
        let (arrived, round) = (AtomicU32::new(0), AtomicU32::new(0));
        Rendezvous { parties, arrived, round, broken: AtomicBool::new(false) }
    }

    /// Waits until all threads have called this.
    ///
    /// # Errors
    /// [`Broken`] when a thread has called [`Rendezvous::leave`] instead.
    pub fn wait(&self) -> Result<(), Broken> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return self.whole();
        }
        let mut turns = 0;
        while self.round.load(Ordering::Acquire) == round {
            self.whole()?;
            turns += 1;
            if turns < SPINS {
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Leaves for good: every other thread's wait fails from now on.
    pub fn leave(&self) {
        self.broken.store(true, Ordering::Release);
    }

    fn whole(&self) -> Result<(), Broken> {
        if self.broken.load(Ordering::Acquire) { Err(Broken) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Adds one to a count between two meetings, a thousand times; what every thread read there.
    fn counts(threads: u32) -> Vec<Vec<u64>> {
        let (meeting, count) = (Rendezvous::new(threads), AtomicU64::new(0));
        let read = || {
            let mut read = vec![];
            for _ in 0..1_000 {
                count.fetch_add(1, Ordering::Relaxed);
                meeting.wait().expect("nobody leaves");
                read.push(count.load(Ordering::Relaxed));
                meeting.wait().expect("nobody leaves");
            }
            read
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
            all.into_iter().map(|one| one.join().expect("it counts")).collect()
        })
    }

    #[test]
    fn every_thread_sees_what_the_others_did_before_they_met() {
        for threads in [1, 2, 3, 7] {
            let expected: Vec<_> = (1..=1_000).map(|round| round * u64::from(threads)).collect();
            assert!(counts(threads).iter().all(|read| *read == expected), "{threads} threads");
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_left() {
        let meeting = Rendezvous::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| meeting.wait());
            meeting.leave();
            assert_eq!(waiting.join().expect("it returns"), Err(Broken));
        });
        assert_eq!(meeting.wait(), Err(Broken));
    }
}
