//! Real-time priority (`SCHED_FIFO`) for hosts and fabric.
//!
//! It needs root of the machine or `RLIMIT_RTPRIO` of at least two, which a process inside the
//! namespaces no longer has. Started programs must not inherit it: sixteen Node processes that
//! start up would occupy all CPUs for seconds. So a helper process outside the namespaces grants it
//! on request.

use std::fs;
use std::io::{self, Read, Write};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use super::{checked, process};

/// The real-time priorities of the lab's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Hosts and the programs that carry their flows.
    Host = 1,
    /// The fabric, for which all hosts wait.
    Fabric = 2,
}

/// The requesting end of the helper's socket; started programs do not inherit it.
static HELPER: OnceLock<OwnedFd> = OnceLock::new();

/// Forks the helper that grants real-time priority to this process and its forks, in any namespace.
/// The helper exits with this process. Call it outside the namespaces and with one thread.
///
/// # Errors
/// The kernel's error.
pub fn start_priority_helper() -> io::Result<()> {
    let asked = fork_helper()?;
    let _ = HELPER.set(asked);
    Ok(())
}

/// Forks the helper, and returns the requesting end of its socket.
fn fork_helper() -> io::Result<OwnedFd> {
    // Probes the priority, since a kernel may withhold real-time from a control group.
    set_scheduler(0, libc::SCHED_FIFO, Rank::Fabric as i32)?;
    set_scheduler(0, libc::SCHED_OTHER, 0)?;
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the array outlives the call, and the descriptors that it gives are new.
    let [ours, theirs] = unsafe {
        checked(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()))?;
        ends.map(|end| OwnedFd::from_raw_fd(end))
    };
    let asks = process::id();
    match process::fork()? {
        process::Forked::Child => {
            drop(ours);
            let given = process::die_with_parent(asks).and_then(|()| serve_requests(&theirs));
            process::exit(i32::from(given.is_err()));
        }
        process::Forked::Parent(_) => Ok(ours),
    }
}

/// Whether [`start_priority_helper`] has succeeded in this process or its parent.
pub fn may_set_realtime() -> bool {
    HELPER.get().is_some()
}

/// Gives a thread of this process, or the main thread of another, `SCHED_FIFO` priority. Its
/// children do not inherit it. The policy is read back to verify it.
///
/// # Errors
/// There is no helper, the kernel's error, or the policy was not applied.
pub fn set_realtime(thread: i32, rank: Rank) -> io::Result<()> {
    let outside = HELPER.get().ok_or(io::ErrorKind::PermissionDenied)?;
    // Outside the namespaces, or within the resource limit, no helper is needed.
    set_fifo(thread, rank).or_else(|_| request_realtime(outside, thread, rank))?;
    match is_realtime(thread) {
        true => Ok(()),
        false => Err(io::Error::other(
            "the kernel accepted SCHED_FIFO but the thread does not have \
                                       it",
        )),
    }
}

fn request_realtime(outside: &OwnedFd, thread: i32, rank: Rank) -> io::Result<()> {
    let who = process::open_pidfd(if thread == 0 { process::id() } else { thread })?;
    let (mut ours, theirs) = process::channel()?;
    let gone = |_| io::Error::other("the lab's priority helper process has exited");
    send_request(outside, rank, [who.as_raw_fd(), theirs.as_raw_fd()]).map_err(gone)?;
    drop(theirs);
    let mut answer = [0; 4];
    ours.read_exact(&mut answer).map_err(gone)?;
    match i32::from_ne_bytes(answer) {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Whether a thread has `SCHED_FIFO` priority.
pub fn is_realtime(thread: i32) -> bool {
    policy(thread) == libc::SCHED_FIFO
}

/// Yields this CPU to a waiting thread of equal priority (`sched_yield`). A `SCHED_FIFO` thread is
/// otherwise preempted by higher priorities only.
pub fn yield_to_equal_priority() {
    // SAFETY: takes nothing.
    unsafe { libc::sched_yield() };
}

fn set_fifo(thread: i32, rank: Rank) -> io::Result<()> {
    set_scheduler(thread, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, rank as i32)
}

fn set_scheduler(thread: i32, policy: i32, priority: i32) -> io::Result<()> {
    let asked = libc::sched_param { sched_priority: priority };
    // SAFETY: takes numbers and what outlives the call.
    checked(unsafe { libc::sched_setscheduler(thread, policy, &raw const asked) }).map(drop)
}

fn policy(thread: i32) -> i32 {
    // SAFETY: takes a number.
    unsafe { libc::sched_getscheduler(thread) & !libc::SCHED_RESET_ON_FORK }
}

/// Main loop of the helper: grants requests until all requesting ends of the socket are closed.
fn serve_requests(asked: &OwnedFd) -> io::Result<()> {
    while let Some((rank, who, mut answer)) = receive_request(asked)? {
        let given = pid_of(&who).and_then(|number| set_fifo(number, rank));
        let given = given.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::ESRCH));
        // A requester that has exited meanwhile does not read the answer.
        let _ = answer.write_all(&given.to_ne_bytes());
    }
    Ok(())
}

/// Returns the pid of the process of a pidfd, in this process's namespace.
fn pid_of(process: &OwnedFd) -> io::Result<i32> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd()))?;
    let number = about.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    number.filter(|&number| number > 0).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The control message of a request: a pidfd of the process, and the socket for the answer.
#[repr(C)]
struct RequestControl {
    header: libc::cmsghdr,
    descriptors: [RawFd; 2],
}

/// The value of `cmsg_len`.
const CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + size_of::<[RawFd; 2]>();

fn send_request(outside: &OwnedFd, rank: Rank, descriptors: [RawFd; 2]) -> io::Result<()> {
    let mut word = [rank as u8];
    let mut beside = RequestControl {
        header: libc::cmsghdr {
            cmsg_len: CONTROL_BYTES as _,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        descriptors,
    };
    let mut part = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: zeroes are an empty message, and everything that it points to outlives the call.
    let sent = unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut beside).cast();
        message.msg_controllen = size_of::<RequestControl>() as _;
        libc::sendmsg(outside.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives a request; none when all requesting ends are closed.
fn receive_request(asked: &OwnedFd) -> io::Result<Option<(Rank, OwnedFd, UnixStream)>> {
    let mut word = [0_u8];
    let mut part = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: zeroes are an empty message and header, everything that is pointed to outlives the
    // call, and the two descriptors received are new.
    unsafe {
        let mut beside: RequestControl = zeroed();
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut beside).cast();
        message.msg_controllen = size_of::<RequestControl>() as _;
        match libc::recvmsg(asked.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) {
            -1 => return Err(io::Error::last_os_error()),
            0 => return Ok(None),
            _ => {}
        }
        if beside.header.cmsg_type != libc::SCM_RIGHTS
            || beside.header.cmsg_len as usize != CONTROL_BYTES
        {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let rank = if word[0] == Rank::Fabric as u8 { Rank::Fabric } else { Rank::Host };
        let [who, answer] = beside.descriptors.map(|one| OwnedFd::from_raw_fd(one));
        Ok(Some((rank, who, UnixStream::from(answer))))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Returns the policy and priority of a thread.
    fn found(thread: i32) -> (i32, i32) {
        let mut rank = libc::sched_param { sched_priority: 0 };
        // SAFETY: takes a number and what outlives the call.
        unsafe { libc::sched_getparam(thread, &raw mut rank) };
        (policy(thread), rank.sched_priority)
    }

    #[test]
    fn the_helper_makes_a_process_realtime_and_children_do_not_inherit_it() {
        // Affects this thread alone: priorities belong to threads, and each test has its own.
        let Ok(outside) = fork_helper() else {
            return; // this user may not
        };
        start_priority_helper().and_then(|()| set_realtime(0, Rank::Fabric)).expect("it may");
        let mut started = Command::new("sleep").arg("60").spawn().expect("it runs");
        let number = started.id() as i32;
        let before = found(number);
        let asked = request_realtime(&outside, number, Rank::Host);
        let after = found(number);
        started.kill().and_then(|()| started.wait()).map(drop).expect("it is ours");
        assert_eq!(before, (libc::SCHED_OTHER, 0));
        assert_eq!(
            (asked.map_err(|error| error.to_string()), after),
            (Ok(()), (libc::SCHED_FIFO, 1))
        );
        assert!(request_realtime(&outside, number, Rank::Host).is_err(), "it has ended");
    }

    #[test]
    fn a_host_has_lower_priority_than_the_fabric() {
        if start_priority_helper().and_then(|()| set_realtime(0, Rank::Fabric)).is_err() {
            return; // this user may not
        }
        assert_eq!(found(0), (libc::SCHED_FIFO, 2));
        set_realtime(0, Rank::Host).expect("it may");
        assert_eq!(found(0), (libc::SCHED_FIFO, 1));
    }

    #[test]
    fn yielding_runs_a_waiting_thread_of_equal_priority() {
        let (waits, ran) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // In a thread of its own, whose affinity and priority end with it.
            scope.spawn(|| {
                if start_priority_helper().is_err() {
                    return; // this user may not
                }
                // SAFETY: zeroes are an empty set, and it outlives the calls.
                unsafe {
                    let mut one: libc::cpu_set_t = zeroed();
                    libc::CPU_SET(libc::sched_getcpu() as usize, &mut one);
                    libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const one);
                }
                // The thread inherits the affinity.
                let other = scope.spawn(|| {
                    set_realtime(0, Rank::Host).expect("it may");
                    waits.store(true, Ordering::Release);
                    std::thread::park();
                    ran.store(true, Ordering::Release);
                });
                while !waits.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                set_realtime(0, Rank::Host).expect("it may");
                other.thread().unpark();
                for _ in 0..1_000 {
                    yield_to_equal_priority();
                }
                assert!(ran.load(Ordering::Acquire), "it had to wait for this thread to end");
            });
        });
    }
}
