//! Atomics and locks of the standard library, or those of `loom`, whose tests try the orders of what
//! threads do with them (`--cfg loom`).

#[cfg(all(test, loom))]
pub(crate) use self::orders::try_orders;
#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
};

#[cfg(all(test, loom))]
mod orders {
    use loom::model::Builder;
    use loom::sync::Arc;
    use loom::thread;

    /// Tries all orders, with at most three interruptions, of what two threads do with what they
    /// share.
    pub(crate) fn try_orders<S: Send + Sync + 'static>(
        create: impl Fn() -> S + Sync + Send + 'static,
        does: impl Fn(usize, &S) + Sync + Send + Copy + 'static,
    ) {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let shared = Arc::new(create());
            let other = thread::spawn({
                let shared = Arc::clone(&shared);
                move || does(1, &shared)
            });
            does(0, &shared);
            other.join().expect("it ends");
        });
    }
}
