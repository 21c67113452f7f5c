//! What the lab asks of Linux beyond the standard library, each call behind a safe function.

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

/// The result of a system call, or `errno`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// The same error, with what was asked of the kernel.
fn with_context(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call, and these clocks always exist.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds for which this process has had a processor.
pub fn cpu_time_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// By how much the clock that the kernel stamps packets with is ahead of the monotonic one, to a few microseconds unless this
/// process is held up every time that it looks.
pub fn real_ahead_ns() -> u64 {
    let looks = (0..8).map(|_| {
        let before = monotonic_ns();
        let real = realtime_ns();
        (monotonic_ns() - before, real.saturating_sub(before))
    });
    looks.min().map_or(0, |(_, ahead)| ahead)
}

/// Nanoseconds of the clock that the kernel stamps packets with.
pub fn realtime_ns() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// A number that nobody else has, as far as chance goes.
///
/// # Errors
/// The kernel's.
pub fn random_u32() -> io::Result<u32> {
    let mut bytes = [0; 4];
    // SAFETY: there is room for as many bytes as are asked for.
    checked(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } as libc::c_int)?;
    Ok(u32::from_ne_bytes(bytes))
}
