//! A barrier at which the threads of one run meet many thousand times a second.

use std::sync::PoisonError;

use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, MutexGuard, Ordering, spin_loop};

/// Turns that a thread spins before it sleeps: some 20 to 50 microseconds, several windows long.
/// `loom` takes a thread that spins for one that sees everything.
const SPINS: u32 = if cfg!(loom) { 0 } else { 4_000 };

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
            self.round.store(round.wrapping_add(1), Ordering::Release);
            // Changes of the count have an order: a thread that is about to sleep comes after this
            // one, and sees the new round, or is seen.
            if self.sleepers.fetch_add(0, Ordering::AcqRel) > 0 {
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
        self.broken.store(true, Ordering::Release);
        self.wake_all();
    }

    #[cold]
    fn sleep(&self, round: u32) -> Result<(), Broken> {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
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
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
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
        self.round.load(Ordering::Acquire) != round
    }

    fn whole(&self) -> Result<(), Broken> {
        if self.broken.load(Ordering::Acquire) { Err(Broken) } else { Ok(()) }
    }
}

#[cfg(all(test, not(loom)))]
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
            while meeting.sleepers.load(Ordering::Acquire) < 2 {
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

/// Tests of the orders that the memory model allows two threads: `make soak`.
#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::try_orders;

    fn create() -> (Rendezvous, [AtomicU32; 2]) {
        (Rendezvous::new(2), [0, 1].map(|_| AtomicU32::new(0)))
    }

    #[test]
    fn every_thread_sees_what_the_other_did_before_they_met() {
        try_orders(create, |me, (meeting, written)| {
            written[me].store(1, Ordering::Relaxed);
            assert_eq!(meeting.wait(), Ok(()));
            assert_eq!(written[1 - me].load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn nobody_overtakes_a_thread_that_still_reads() {
        try_orders(create, |me, (meeting, written)| {
            assert_eq!(written[1 - me].load(Ordering::Relaxed), 0);
            assert_eq!(meeting.wait(), Ok(()));
            assert_eq!(meeting.wait(), Ok(()));
            written[me].store(1, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_thread_that_leaves_frees_the_one_that_waits() {
        try_orders(create, |me, (meeting, _)| match me {
            0 => meeting.leave(),
            _ => assert_eq!(meeting.wait(), Err(Broken)),
        });
    }
}
