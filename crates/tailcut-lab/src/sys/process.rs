//! Namespaces and processes.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use super::{checked, with_context};

/// The result of a fork.
pub enum Forked {
    /// In the child.
    Child,
    /// In the parent: the child's pid in the parent's PID namespace.
    Parent(i32),
}

/// Moves this process into new user, mount and network namespaces, the last one empty, and its next
/// child into a new PID namespace as PID 1. This process must have one thread.
///
/// # Errors
/// The kernel's error, with the call or file that failed.
pub fn unshare_namespaces() -> io::Result<()> {
    // SAFETY: these calls take and give numbers.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET;
    // SAFETY: takes a number; the caller has one thread.
    checked(unsafe { libc::unshare(flags) }).map_err(|error| with_context(&error, "unshare"))?;
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {uid} 1")),
        ("/proc/self/gid_map", format!("0 {gid} 1")),
    ] {
        fs::write(file, text).map_err(|error| with_context(&error, file))?;
    }
    Ok(())
}

/// Moves this process into a new, empty network namespace (`unshare`).
///
/// # Errors
/// The kernel's error.
pub fn unshare_network() -> io::Result<()> {
    // SAFETY: takes a number.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Opens this process's network namespace, so that [`join_network`] can return to it. The
/// descriptor is not close-on-exec: child programs inherit it.
///
/// # Errors
/// The kernel's error.
pub fn open_network() -> io::Result<OwnedFd> {
    // SAFETY: the path is a constant that ends in a zero, and the descriptor that the call gives is
    // new.
    unsafe {
        let made = libc::open(c"/proc/self/ns/net".as_ptr(), libc::O_RDONLY);
        Ok(OwnedFd::from_raw_fd(checked(made)?))
    }
}

/// Joins a network namespace: that of [`open_network`], or of the process of [`open_pidfd`].
///
/// # Errors
/// The kernel's error.
pub fn join_network(network: &OwnedFd) -> io::Result<()> {
    // SAFETY: takes numbers.
    checked(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Forks this process, which must have one thread.
///
/// # Errors
/// The kernel's error.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: with one thread, no lock is held by a thread that the child lacks.
    match checked(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        child => Ok(Forked::Parent(child)),
    }
}

/// Makes the kernel kill this process when its parent exits.
///
/// # Errors
/// The parent has exited already.
pub fn die_with_parent(parent: i32) -> io::Result<()> {
    // SAFETY: these calls take and give numbers.
    unsafe {
        checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        let found = libc::getppid();
        // In a new PID namespace the parent is outside and appears as 0.
        if found != parent && found != 0 {
            return Err(io::Error::other("the process that started this one has exited"));
        }
    }
    Ok(())
}

/// Returns this process's pid.
pub fn id() -> i32 {
    std::process::id() as i32
}

/// Waits for a child to exit; returns its status or signal as text, empty if it succeeded.
///
/// # Errors
/// The kernel's error.
pub fn wait(child: i32) -> io::Result<String> {
    let mut status = 0;
    loop {
        // SAFETY: the status outlives the call.
        match checked(unsafe { libc::waitpid(child, &mut status, 0) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    Ok(match (libc::WIFEXITED(status), libc::WIFSIGNALED(status)) {
        (true, _) if libc::WEXITSTATUS(status) == 0 => String::new(),
        (true, _) => format!("status {}", libc::WEXITSTATUS(status)),
        (_, true) => format!("signal {}", libc::WTERMSIG(status)),
        _ => format!("status {status}"),
    })
}

/// Exits this process at once, without the exit handlers of a surrounding interpreter.
pub fn exit(status: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(status) }
}

/// Creates the two ends of a channel between a process and its child.
///
/// # Errors
/// The kernel's error.
pub fn channel() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

/// Creates a pipe: the end to read and the end to write.
///
/// # Errors
/// The kernel's error.
pub fn pipe() -> io::Result<(File, File)> {
    let mut ends = [-1; 2];
    // SAFETY: there is room for two descriptors, and those that the call returns are new.
    unsafe {
        checked(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Makes all mounts private, so that later ones are not visible outside, and mounts the `/proc` of
/// this PID namespace if permitted.
pub fn make_mounts_private() {
    let nothing = std::ptr::null();
    // SAFETY: the texts are constants that end in a zero, and there is no data.
    unsafe {
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        libc::mount(c"none".as_ptr(), c"/".as_ptr(), nothing, flags, nothing.cast());
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, nothing.cast());
    }
}

/// Duplicates a file descriptor.
///
/// # Errors
/// The kernel's error.
pub fn duplicate_descriptor(of: &impl AsRawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and the descriptor that it gives is new.
    unsafe {
        let made = checked(libc::fcntl(of.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3))?;
        Ok(OwnedFd::from_raw_fd(made))
    }
}

/// Duplicates a file descriptor of another process (`pidfd_getfd`, Linux 5.6 or later). `process`
/// is a pidfd of [`open_pidfd`].
///
/// # Errors
/// The kernel's error; it may forbid the access.
pub fn duplicate_from(process: &OwnedFd, descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and the descriptor that the call gives is new.
    unsafe {
        let made = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0);
        Ok(OwnedFd::from_raw_fd(checked(made as libc::c_int)?))
    }
}

/// Raises the limit of open file descriptors to its hard maximum (`RLIMIT_NOFILE`).
pub fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Waits until one of two descriptors becomes readable or is closed at its other end; returns
/// which.
///
/// # Errors
/// The kernel's error.
pub fn wait_for_either(one: &impl AsRawFd, other: &impl AsRawFd) -> io::Result<(bool, bool)> {
    let watched = |of: i32| libc::pollfd { fd: of, events: libc::POLLIN, revents: 0 };
    let mut both = [watched(one.as_raw_fd()), watched(other.as_raw_fd())];
    loop {
        // SAFETY: there are as many descriptors as stated, and they outlive the call.
        match checked(unsafe { libc::poll(both.as_mut_ptr(), 2, -1) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok((both[0].revents != 0, both[1].revents != 0)),
        }
    }
}

/// Opens a pidfd of a process, which becomes readable when the process exits.
///
/// # Errors
/// The kernel's error.
pub fn open_pidfd(child: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers, and the descriptor that it gives is new.
    unsafe {
        let made = libc::syscall(libc::SYS_pidfd_open, child, 0);
        Ok(OwnedFd::from_raw_fd(checked(made as libc::c_int)?))
    }
}

/// Returns the index of an interface in this process's network namespace.
///
/// # Errors
/// No interface has that name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name ends in a zero and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}
