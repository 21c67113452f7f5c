//! Waiting for many descriptors and one timer (`epoll`, `timerfd`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::checked;

/// The event that a descriptor can be read.
pub const READABLE: u32 = libc::EPOLLIN as u32;
/// The event that a descriptor can be written.
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;

/// Watched descriptors, each with a token that the caller chooses, and one timer.
pub struct Epoll {
    of: OwnedFd,
    timer: OwnedFd,
}

/// The token of the timer.
pub const TIMER: u64 = u64::MAX;

impl Epoll {
    /// Creates an instance that watches no descriptor, with the timer disarmed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: the calls take numbers, and the descriptors that they give are new.
        let (of, timer) = unsafe {
            let of = OwnedFd::from_raw_fd(checked(libc::epoll_create1(libc::EPOLL_CLOEXEC))?);
            let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
            let timer = checked(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?;
            (of, OwnedFd::from_raw_fd(timer))
        };
        let epoll = Epoll { of, timer };
        epoll.add(&epoll.timer, READABLE, TIMER)?;
        Ok(epoll)
    }

    fn control(&self, how: i32, of: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: the event outlives the call.
        checked(unsafe { libc::epoll_ctl(self.of.as_raw_fd(), how, of, &mut event) }).map(drop)
    }

    /// Adds a descriptor.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add(&self, of: &impl AsRawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, of.as_raw_fd(), events, token)
    }

    /// Changes the events of a descriptor.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn modify(&self, of: &impl AsRawFd, events: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, of.as_raw_fd(), events, token)
    }

    /// Arms the timer for a time of the monotonic clock.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wake_at(&self, ns: u64) -> io::Result<()> {
        let ns = ns.max(1);
        let at = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (ns / 1_000_000_000) as libc::time_t,
                tv_nsec: (ns % 1_000_000_000) as libc::c_long,
            },
        };
        let timer = self.timer.as_raw_fd();
        // SAFETY: the new time outlives the call, and the old one is not requested.
        checked(unsafe {
            libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &at, std::ptr::null_mut())
        })
        .map(drop)
    }

    /// Waits for events, and stores the token and events of each. After a stop signal, or any other
    /// interruption (signal(7)), it continues to wait, so that at least one event is stored.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&self, happened: &mut Vec<(u64, u32)>) -> io::Result<()> {
        const MOST: usize = 64;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST];
        happened.clear();
        let count = loop {
            // SAFETY: there is room for as many events as are asked for.
            let result = unsafe {
                libc::epoll_wait(self.of.as_raw_fd(), events.as_mut_ptr(), MOST as i32, -1)
            };
            match checked(result) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        happened.extend(events[..count as usize].iter().map(|event| (event.u64, event.events)));
        if happened.iter().any(|(token, _)| *token == TIMER) {
            let mut expirations = [0_u8; 8];
            // SAFETY: the buffer has the length that is passed.
            unsafe { libc::read(self.timer.as_raw_fd(), expirations.as_mut_ptr().cast(), 8) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static INTERRUPTIONS: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn interrupted(_signal: libc::c_int) {
        INTERRUPTIONS.fetch_add(1, Ordering::SeqCst);
    }

    #[test]
    fn wait_is_resumed_after_eintr() {
        // Only this test uses the signal, which restarts no system call. SAFETY: zeroes are no
        // flags and an empty mask, and the action outlives the call; the handler only counts.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupted as *const () as usize;
            checked(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()))
        }
        .expect("it is ours");
        let (near, far) = UnixStream::pair().expect("there is one");
        let waits = std::thread::spawn(move || {
            let epoll = Epoll::new().expect("there is one");
            epoll.add(&near, READABLE, 7).expect("it is watched");
            let mut happened = vec![];
            epoll.wait(&mut happened).expect("it waits");
            happened
        });
        // The first signal may arrive before the thread waits, later ones do not.
        for interruption in 1..=50 {
            if waits.is_finished() {
                break;
            }
            // SAFETY: the thread is joined only below.
            unsafe { libc::pthread_kill(waits.as_pthread_t(), libc::SIGUSR2) };
            while INTERRUPTIONS.load(Ordering::SeqCst) < interruption && !waits.is_finished() {
                std::thread::yield_now();
            }
        }
        drop(far);
        let happened = waits.join().expect("it ends");
        assert_eq!(happened.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [7]);
    }
}
