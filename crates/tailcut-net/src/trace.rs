//! A trace of single flows: why a packet was refused, marked or lost, why a window changed, which
//! timer fired.
//!
//! Whoever writes a scheme puts a [`trace!`] where it decides something. The line is printed if the
//! packet or connection in hand belongs to a flow that is followed, with the time and the flow
//! before it:
//!
//! ```text
//! trace!("refused: {waiting} packets wait, as many as may");
//! ```
//!
//! Trace points are compiled into builds with debug assertions only (`make build`, `cargo test`);
//! release builds have none. They change no result: the arguments of a line are not evaluated
//! unless it is printed, and may have no side effects.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

use tailcut_engine::Time;

/// Whether this build has trace points.
pub const COMPILED: bool = cfg!(debug_assertions);

/// Receives the lines of a trace.
type Sink = Box<dyn FnMut(&str)>;

/// The trace of the run that this thread simulates.
struct Trace {
    flows: BTreeSet<u64>,
    sink: Sink,
    now: Time,
    flow: u64,
}

thread_local! {
    static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) };
    /// Whether flows are followed.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// Whether the flow in hand is one of them.
    static FOLLOWED: Cell<bool> = const { Cell::new(false) };
}

/// Prints a line about the flow in hand, if it is followed; see [`crate::trace`].
macro_rules! trace {
    ($($line:tt)*) => {
        if $crate::trace::is_followed() {
            $crate::trace::print(format_args!($($line)*));
        }
    };
}
pub(crate) use trace;

/// Follows the flows with these ids in what `work` simulates on this thread. Each line goes to
/// `sink`, without its line feed: `12.500us flow 17: refused: 100 packets wait, as many as may`.
///
/// Without trace points ([`COMPILED`]) there are no lines.
pub fn follow<R>(
    flows: impl IntoIterator<Item = u64>,
    sink: impl FnMut(&str) + 'static,
    work: impl FnOnce() -> R,
) -> R {
    /// Ends the trace, also when `work` panics.
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            TRACE.set(None);
            ACTIVE.set(false);
            FOLLOWED.set(false);
        }
    }
    let flows = flows.into_iter().collect();
    TRACE.set(Some(Trace { flows, sink: Box::new(sink), now: Time::ZERO, flow: 0 }));
    ACTIVE.set(COMPILED);
    let _ends = Ends;
    work()
}

/// Returns whether any flow is followed.
#[inline(always)]
pub(crate) fn is_active() -> bool {
    COMPILED && ACTIVE.get()
}

/// Returns whether the flow in hand is followed.
#[inline(always)]
pub(crate) fn is_followed() -> bool {
    COMPILED && FOLLOWED.get()
}

/// Sets the flow in hand, by its id, and the time of what happens to it.
pub(crate) fn set_flow(now: Time, flow: u64) {
    TRACE.with_borrow_mut(|trace| {
        let Some(trace) = trace else { return };
        (trace.now, trace.flow) = (now, flow);
        FOLLOWED.set(trace.flows.contains(&flow));
    });
}

/// Hands a line to the sink of the trace.
#[cold]
pub(crate) fn print(line: fmt::Arguments<'_>) {
    TRACE.with_borrow_mut(|trace| {
        if let Some(Trace { sink, now, flow, .. }) = trace {
            let ns = now.as_ns();
            sink(&format!("{}.{:03}us flow {flow}: {line}", ns / 1000, ns % 1000));
        }
    });
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn lines(flows: &[u64], work: impl FnOnce()) -> Vec<String> {
        let lines = Rc::new(RefCell::new(vec![]));
        let sink = Rc::clone(&lines);
        follow(flows.iter().copied(), move |line| sink.borrow_mut().push(line.to_owned()), work);
        lines.take()
    }

    #[test]
    fn lines_of_followed_flows_are_printed_and_no_others() {
        let printed = lines(&[17, 20], || {
            trace!("before any flow is in hand");
            for flow in [16, 17, 18, 20] {
                set_flow(Time::from_us(flow), flow);
                trace!("refused: {} packets wait", flow + 1);
            }
        });
        let expected = [
            "17.000us flow 17: refused: 18 packets wait",
            "20.000us flow 20: refused: 21 packets wait",
        ];
        assert_eq!(printed, if COMPILED { &expected[..] } else { &[] });
    }

    #[test]
    fn a_trace_ends_with_its_work() {
        lines(&[17], || set_flow(Time::ZERO, 17));
        assert!(!is_active() && !is_followed());
        let evaluated = Cell::new(false);
        trace!("{:?}", evaluated.replace(true));
        assert!(!evaluated.get());
    }
}
