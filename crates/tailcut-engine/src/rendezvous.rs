//! A barrier at which the threads of one run meet many thousand times a second.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Turns that a thread spins before it sleeps: some 20 to 50 microseconds, several windows long.
const SPINS: u32 = 4_000;

/// A meeting point of a fixed number of threads. Waiting threads spin for a bounded time, then
/// sleep: with fewer processors than threads a run is slow, and goes on.
///
/// A wait publishes: afterwards every thread reads whatever any of them wrote before.
#[derive(Debug)]
pub struct Rendezvous {
    parties: u32,
    arrived: AtomicU32,
    round: AtomicU32,
    broken: AtomicBool,
    sleepers: AtomicU32,
    bed: Mutex<()>,
    alarm: Condvar,
}

/// A thread has left the meeting for good: nobody waits for it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

impl Rendezvous {
    /// Creates a meeting point of so many threads.
    pub fn new(parties: u32) -> Rendezvous {
        Rendezvous {
            parties,
            arrived: AtomicU32::new(0),
            round: AtomicU32::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicU32::new(0),
            bed: Mutex::new(()),
            alarm: Condvar::new(),
        }
    }

    /// Waits until all threads have called this.
    ///
    /// # Errors
    /// [`Broken`] when a thread has called [`Rendezvous::leave`] instead.
    pub fn wait(&self) -> Result<(), Broken> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            // In one order with the count of sleepers: a thread that is about to sleep sees the new
            // round, or is seen.
            self.round.store(round.wrapping_add(1), Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                self.wake_all();
            }
            return self.whole();
        }
        for _ in 0..SPINS {
            if self.has_passed(round) {
                return Ok(());
            }
            self.whole()?;
            spin_loop();
        }
        self.sleep(round)
    }

    /// Leaves for good: every other thread's wait fails from now on.
    pub fn leave(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    #[cold]
    fn sleep(&self, round: u32) -> Result<(), Broken> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock();
        let woken = loop {
            if self.has_passed(round) {
                break Ok(());
            }
            if let Err(broken) = self.whole() {
                break Err(broken);
            }
            guard = self.alarm.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    #[cold]
    fn wake_all(&self) {
        drop(self.lock());
        self.alarm.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.bed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_passed(&self, round: u32) -> bool {
        self.round.load(Ordering::SeqCst) != round
    }

    fn whole(&self) -> Result<(), Broken> {
        if self.broken.load(Ordering::SeqCst) { Err(Broken) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

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
    fn a_thread_that_comes_late_wakes_those_that_sleep() {
        let meeting = Rendezvous::new(3);
        thread::scope(|scope| {
            let early: Vec<_> = (0..2).map(|_| scope.spawn(|| meeting.wait())).collect();
            while meeting.sleepers.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            assert_eq!(meeting.wait(), Ok(()));
            early.into_iter().for_each(|one| assert_eq!(one.join().expect("it returns"), Ok(())));
        });
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
