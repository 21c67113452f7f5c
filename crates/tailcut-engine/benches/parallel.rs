//! What a run on several cores would pay beside its own work: meeting at barriers, and packets that
//! change cores. `docs/concepts/parallel.md` says what for. `cargo bench -p tailcut-engine --bench
//! parallel`.

#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use tailcut_engine::Rendezvous;

const MEETINGS: u32 = 200_000;
const WINDOWS: usize = 2_000;
/// Packets that cross a cut in one window.
const CROSSING: [usize; 3] = [10, 100, 1_000];

/// A packet that crosses a cut: time, link and content.
#[derive(Clone, Copy)]
struct Crossing {
    time: u64,
    link: u32,
    _packet: [u64; 3],
}

/// Two threads meet again and again; ns for each meeting.
fn meetings(meet: impl Fn() + Sync) -> f64 {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..MEETINGS).for_each(|_| meet()));
        }
    });
    began.elapsed().as_nanos() as f64 / f64::from(MEETINGS)
}

/// By spinning, as the threads of a run do.
fn spinning() -> f64 {
    let meeting = Rendezvous::new(2);
    meetings(|| meeting.wait().expect("nobody leaves"))
}

/// By the operating system: what the standard library has.
fn sleeping() -> f64 {
    let barrier = Barrier::new(2);
    meetings(|| {
        barrier.wait();
    })
}

/// Returns the nanoseconds per packet of a mailbox: one thread fills it, the other takes it over
/// and sorts it by time and link.
fn handing_over(count: usize) -> f64 {
    let (mailbox, turn) = (Mutex::new(Vec::with_capacity(count)), AtomicU32::new(0));
    let wait_for = |parity: u32| {
        while turn.load(Ordering::Acquire) % 2 != parity {
            spin_loop();
        }
    };
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut state = 1u64;
            for _ in 0..WINDOWS {
                wait_for(0);
                let mut mailbox = mailbox.lock().expect("nobody panics");
                for number in 0..count {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (time, link) = (state >> 44, number as u32);
                    mailbox.push(Crossing { time, link, _packet: [state; 3] });
                }
                drop(mailbox);
                turn.fetch_add(1, Ordering::AcqRel);
            }
        });
        scope.spawn(|| {
            let mut taken = Vec::with_capacity(count);
            for _ in 0..WINDOWS {
                wait_for(1);
                std::mem::swap(&mut taken, &mut mailbox.lock().expect("nobody panics"));
                turn.fetch_add(1, Ordering::AcqRel);
                taken.sort_unstable_by_key(|crossing: &Crossing| (crossing.time, crossing.link));
                black_box(&taken);
                taken.clear();
            }
        });
    });
    began.elapsed().as_nanos() as f64 / (WINDOWS * count) as f64
}

fn main() {
    println!(
        "two threads meet at a barrier: {:.0} ns spinning, {:.0} ns sleeping",
        spinning(),
        sleeping()
    );
    for count in CROSSING {
        println!("{count:>5} packets a window change cores: {:.0} ns each", handing_over(count));
    }
}
