//! How a run is kept in time: who goes first, which memory stays, how long a processor sleeps.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::realtime::{self, Rank};
use super::{checked, with_context};

/// The timers of this process are as exact as the kernel can have them.
pub fn minimise_timer_slack() {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// While what this gives is kept, idle processors poll instead of sleeping (the kernel's `pm_qos`): a sleeping processor of a
/// virtual machine takes tens of microseconds to wake. Whatever ends this process ends it. Only the machine's root may ask for it,
/// before it enters namespaces. A kernel without a driver for idle processors takes it, and lets them sleep.
///
/// # Errors
/// The kernel's, and that it has no such driver.
pub fn disable_cpu_sleep() -> io::Result<File> {
    const LATENCY: &str = "/dev/cpu_dma_latency";
    const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
    let driver = fs::read_to_string(DRIVER).map_err(|error| with_context(&error, DRIVER))?;
    if driver.trim() == "none" {
        return Err(io::Error::other(format!("{DRIVER}: none, so that nothing heeds {LATENCY}")));
    }
    let mut asked =
        File::options().write(true).open(LATENCY).map_err(|error| with_context(&error, LATENCY))?;
    asked.write_all(&0_i32.to_ne_bytes()).map_err(|error| with_context(&error, LATENCY))?;
    Ok(asked)
}

/// Files that stay in memory as long as this is kept.
pub struct LockedFiles(Vec<(*mut libc::c_void, usize)>);

impl Drop for LockedFiles {
    fn drop(&mut self) {
        for &(place, bytes) in &self.0 {
            // SAFETY: it was mapped for this alone, and nobody else knows where.
            unsafe { libc::munmap(place, bytes) };
        }
    }
}

/// Keeps in memory what this process has mapped of files, its program and libraries, and further files. A kernel may take memory
/// back from programs that sleep, and whoever touches such a page then waits for the disk. Only the machine's root may ask for
/// so much, before it enters namespaces, or who has a limit of 256 MB for locked memory (`RLIMIT_MEMLOCK`).
///
/// # Errors
/// The kernel's, for the first file that it does not keep.
pub fn lock_files(further: &[PathBuf]) -> io::Result<LockedFiles> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mapped =
        maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
    let files: BTreeSet<PathBuf> = mapped.chain(further.iter().cloned()).collect();
    let mut kept = LockedFiles(vec![]);
    for path in files {
        // What was deleted or replaced since has no name.
        let Ok(file) = File::open(&path) else { continue };
        let about = file.metadata()?;
        let bytes = about.len() as usize;
        if bytes == 0 || !about.is_file() {
            continue;
        }
        let nowhere = std::ptr::null_mut();
        // SAFETY: the mapping is of its own, is only read, and is undone with what is given.
        unsafe {
            let place =
                libc::mmap(nowhere, bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
            if place == libc::MAP_FAILED {
                return Err(with_context(&io::Error::last_os_error(), &path.to_string_lossy()));
            }
            kept.0.push((place, bytes));
            checked(libc::mlock(place, bytes))
                .map_err(|error| with_context(&error, &path.to_string_lossy()))?;
        }
    }
    Ok(kept)
}

/// What `sched_setattr` is told, as far as this uses it.
#[repr(C)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// `SCHED_FLAG_RESET_ON_FORK`.
const RESET_ON_FORK: u64 = 1;

/// A thread, or the first of another process, [goes first](first::go) from now on, if it may.
///
/// Where it may not, it asks for processors a tenth of a millisecond at a time. Since Linux 6.12 it then need not wait, when it wakes, for
/// one that has asked for more at a time: neither for other programs nor for the helpers of Node (EEVDF, `PREEMPT_SHORT`).
/// Older kernels do not know this, and nothing changes there. What it starts asks for no less than others.
///
/// # Errors
/// That it does not go first though it may.
pub fn raise_priority(thread: i32, rank: Rank) -> io::Result<()> {
    if realtime::may_set_realtime() {
        return realtime::set_realtime(thread, rank);
    }
    let asked = SchedulingAttributes {
        size: std::mem::size_of::<SchedulingAttributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: RESET_ON_FORK,
        // SAFETY: takes numbers.
        nice: unsafe { libc::getpriority(libc::PRIO_PROCESS, thread as libc::id_t) },
        priority: 0,
        runtime: 100_000,
        deadline: 0,
        period: 0,
    };
    // SAFETY: what is asked outlives the call and has the size that it says.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const asked, 0) };
    Ok(())
}

/// The other threads of a process run only where nothing else wants a processor (`SCHED_IDLE`), and leave it to whatever
/// wakes at once. By their nice value alone they keep it for up to a tick, 4 ms, from a thread that has had its share.
///
/// # Errors
/// The kernel's.
pub fn idle_helper_threads(process: u32) -> io::Result<()> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?.file_name();
        let Some(thread) = thread.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if thread != process {
            let priority = libc::sched_param { sched_priority: 0 };
            // SAFETY: takes a number and what outlives the call. A thread that has ended meanwhile needs nothing.
            unsafe {
                libc::sched_setscheduler(thread as i32, libc::SCHED_IDLE, &raw const priority)
            };
        }
    }
    Ok(())
}

/// A program will get a tenth of the processor time of one that does not give way, where both want it, and whoever does not
/// give way runs as soon as it wakes. What a process starts does not [go first](first::go).
pub fn lower_priority(program: &mut Command) {
    // SAFETY: the call takes numbers, and may be made between fork and exec.
    unsafe {
        program.pre_exec(|| {
            libc::setpriority(libc::PRIO_PROCESS, 0, 10);
            Ok(())
        });
    }
}

/// A processor that sleeps is this much late, or less, when a timer wakes it.
const WAKE_UP_NS: u64 = 60_000;

/// Waits for frames, for a word of the supervisor, or for a time of the monotonic clock; true if it was the supervisor. Where the
/// time is to be kept exactly, the last of it is not slept.
///
/// # Errors
/// The kernel's.
pub fn wait_until(
    frames: &impl AsRawFd,
    supervisor: &impl AsRawFd,
    until: Option<(u64, bool)>,
) -> io::Result<bool> {
    let watched = |of: i32| libc::pollfd { fd: of, events: libc::POLLIN, revents: 0 };
    let mut both = [watched(frames.as_raw_fd()), watched(supervisor.as_raw_fd())];
    let awake = until.filter(|(_, exactly)| *exactly).map(|(ns, _)| ns);
    let sleeps =
        until.map(|(ns, exactly)| if exactly { ns.saturating_sub(WAKE_UP_NS) } else { ns });
    let left = sleeps.map(|ns| ns.saturating_sub(super::monotonic_ns()));
    let timeout = left.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: there are as many as is said, and they and the time outlive the call.
    match checked(unsafe { libc::ppoll(both.as_mut_ptr(), 2, timeout, std::ptr::null()) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
        Ok(0) => {
            while awake.is_some_and(|ns| super::monotonic_ns() < ns) {
                std::hint::spin_loop();
            }
            Ok(false)
        }
        Ok(_) => Ok(both[1].revents != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::monotonic_ns;
    use super::super::process::channel;
    use super::*;

    #[test]
    fn an_exact_wait_never_ends_early() {
        let (quiet, supervisor) = channel().expect("there is one");
        for after_ns in [0, WAKE_UP_NS / 2, 3 * WAKE_UP_NS] {
            let until = monotonic_ns() + after_ns;
            let told = wait_until(&quiet, &supervisor, Some((until, true))).expect("it waits");
            assert!(!told);
            assert!(monotonic_ns() >= until);
        }
    }

    /// Kilobytes of this process that are locked in memory.
    fn locked() -> u64 {
        let status = fs::read_to_string("/proc/self/status").expect("there is one");
        let line = status.lines().find(|line| line.starts_with("VmLck")).expect("it is told");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("it is a number")
    }

    #[test]
    fn files_are_locked_until_the_guard_is_dropped() {
        let sh = fs::canonicalize("/bin/sh").expect("there is one");
        let bytes = fs::metadata(&sh).expect("it is a file").len();
        let Ok(own) = lock_files(&[]) else {
            return; // this user may not
        };
        let without = locked();
        drop(own);
        assert_eq!(locked(), 0);
        let kept = lock_files(&[sh, "/nowhere".into()]).expect("it was just done");
        assert_eq!(locked(), without + bytes.div_ceil(4096) * 4);
        drop(kept);
        assert_eq!(locked(), 0);
    }

    #[test]
    fn a_program_of_lower_priority_is_nice_and_not_realtime() {
        // Of this thread alone: the kernel counts threads, and a test has one of its own. Some users may not.
        let _ =
            realtime::start_priority_helper().and_then(|()| realtime::set_realtime(0, Rank::Host));
        let mut program = Command::new("sh");
        lower_priority(&mut program);
        let said = program.args(["-c", "chrt -p $$; nice"]).output().expect("it runs").stdout;
        let said = String::from_utf8(said).expect("it is text");
        // Whoever runs the tests may be nicer already, and may not be allowed to be less so.
        let nice: Option<i32> = said.lines().last().and_then(|line| line.parse().ok());
        assert!(said.contains("SCHED_OTHER") && nice >= Some(10), "{said}");
    }

    #[test]
    fn a_message_of_the_supervisor_ends_a_wait_that_is_already_due() {
        let (mut far, supervisor) = channel().expect("there is one");
        let (quiet, _other) = channel().expect("there is one");
        far.write_all(b"s").expect("it is open");
        assert!(wait_until(&quiet, &supervisor, Some((0, true))).expect("it does not wait"));
        assert!(wait_until(&quiet, &supervisor, Some((u64::MAX, true))).expect("it does not wait"));
    }
}
