//! System calls that the standard library lacks, behind safe functions.

#![allow(unsafe_code, reason = "system calls; every block says why it is sound")]

pub mod bpf;
pub mod epoll;
pub mod latency;
pub mod link;
pub mod netlink;
pub mod packet_ring;
pub mod process;
pub mod realtime;
pub mod socket;
pub mod sysctl;

use std::io;

/// Returns the result of a system call, or `errno` as an error.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Adds to an error the name of the file or call that failed.
fn with_context(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call, and these clocks always exist.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the monotonic clock in nanoseconds; all processes of a machine share it.
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time of this process in nanoseconds.
pub fn cpu_time_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns how far the clock of packet timestamps is ahead of the monotonic clock, in nanoseconds.
/// The shortest of eight attempts counts, so that the error is a few microseconds unless this
/// process is delayed in each.
pub fn real_ahead_ns() -> u64 {
    let looks = (0..8).map(|_| {
        let before = monotonic_ns();
        let real = realtime_ns();
        (monotonic_ns() - before, real.saturating_sub(before))
    });
    looks.min().map_or(0, |(_, ahead)| ahead)
}

/// Returns the clock of the kernel's packet timestamps (real time) in nanoseconds.
pub fn realtime_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// Returns 32 random bits of the kernel.
///
/// # Errors
/// The kernel's error.
pub fn random_u32() -> io::Result<u32> {
    let mut bytes = [0; 4];
    // SAFETY: the buffer has the length that is passed.
    checked(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } as libc::c_int)?;
    Ok(u32::from_ne_bytes(bytes))
}
