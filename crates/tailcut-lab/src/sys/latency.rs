//! Low latency during a run: timer slack, CPU idle states, locked memory and priorities.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::realtime::{self, Rank};
use super::{checked, with_context};

/// Sets the timer slack of this process to the minimum of 1 ns.
pub fn minimise_timer_slack() {
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Keeps CPUs out of idle states while the returned file is open (`pm_qos`): a halted virtual CPU
/// takes tens of microseconds to wake. The request ends with this process. It needs root of the
/// machine, and must precede entering namespaces.
///
/// # Errors
/// The kernel's error, or the absence of a cpuidle driver, without which the request has no effect.
pub fn disable_cpu_sleep() -> io::Result<File> {
    const LATENCY: &str = "/dev/cpu_dma_latency";
    const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
    let driver = fs::read_to_string(DRIVER).map_err(|error| with_context(&error, DRIVER))?;
    if driver.trim() == "none" {
        return Err(io::Error::other(format!(
            "{DRIVER} is none: without a cpuidle driver {LATENCY} \
                                             has no effect"
        )));
    }
    let mut asked =
        File::options().write(true).open(LATENCY).map_err(|error| with_context(&error, LATENCY))?;
    asked.write_all(&0_i32.to_ne_bytes()).map_err(|error| with_context(&error, LATENCY))?;
    Ok(asked)
}

/// Files locked in memory until this value is dropped.
pub struct LockedFiles(Vec<(*mut libc::c_void, usize)>);

impl Drop for LockedFiles {
    fn drop(&mut self) {
        for &(place, bytes) in &self.0 {
            // SAFETY: this value owns the mapping, and nothing refers to it.
            unsafe { libc::munmap(place, bytes) };
        }
    }
}

/// Locks in memory this process's mapped files, its program and libraries, and further files. The
/// kernel may otherwise evict pages of sleeping programs, whose next access waits for the disk. It
/// needs root of the machine or `RLIMIT_MEMLOCK` of about 256 MB, and must precede entering
/// namespaces.
///
/// # Errors
/// The kernel's error for the first file that cannot be locked.
pub fn lock_files(further: &[PathBuf]) -> io::Result<LockedFiles> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let mapped =
        maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
    let files: BTreeSet<PathBuf> = mapped.chain(further.iter().cloned()).collect();
    let mut kept = LockedFiles(vec![]);
    for path in files {
        // Deleted or replaced files cannot be opened by name.
        let Ok(file) = File::open(&path) else { continue };
        let about = file.metadata()?;
        let bytes = about.len() as usize;
        if bytes == 0 || !about.is_file() {
            continue;
        }
        let nowhere = std::ptr::null_mut();
        // SAFETY: the mapping is new and read-only; dropping the value unmaps it.
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

/// `struct sched_attr` in its first version.
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

/// Raises the priority of a thread, or of the main thread of another process: real-time priority if
/// permitted.
///
/// Otherwise it requests time slices of 0.1 ms. Since Linux 6.12 a waking thread then preempts
/// threads of longer slices, such as other programs and the helper threads of Node (EEVDF,
/// `PREEMPT_SHORT`). Earlier kernels ignore the request. Children do not inherit it.
///
/// # Errors
/// Real-time priority is permitted and was not granted.
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
    // SAFETY: the attributes outlive the call and have the size that they state.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const asked, 0) };
    Ok(())
}

/// Lets the other threads of a process run only on idle CPUs (`SCHED_IDLE`). With a nice value
/// alone they keep a CPU for up to a tick, 4 ms, from a thread that has used its share.
///
/// # Errors
/// The kernel's error.
pub fn idle_helper_threads(process: u32) -> io::Result<()> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?.file_name();
        let Some(thread) = thread.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if thread != process {
            let priority = libc::sched_param { sched_priority: 0 };
            // SAFETY: takes a number and what outlives the call. A thread that has exited meanwhile
            // is ignored.
            unsafe {
                libc::sched_setscheduler(thread as i32, libc::SCHED_IDLE, &raw const priority)
            };
        }
    }
    Ok(())
}

/// Starts a program with nice 10: under contention it gets a tenth of the CPU time of a normal
/// process, which preempts it on waking. It does not inherit real-time priority.
pub fn lower_priority(program: &mut Command) {
    // SAFETY: the call takes numbers, and may be made between fork and exec.
    unsafe {
        program.pre_exec(|| {
            libc::setpriority(libc::PRIO_PROCESS, 0, 10);
            Ok(())
        });
    }
}

/// The upper bound for the wake-up latency of an idle CPU, in nanoseconds: exact deadlines are
/// awaited this long by spinning.
const WAKE_UP_NS: u64 = 60_000;

/// Waits until a frame arrives, the supervisor writes, or `until` (monotonic) is reached; returns
/// true if the supervisor wrote. If the flag of `until` is set, the last 60 us are spent spinning.
///
/// # Errors
/// The kernel's error.
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
    // SAFETY: two descriptors are passed as stated, and they and the time outlive the call.
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

    /// Returns the kilobytes of locked memory of this process.
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
        // Affects this thread alone: priorities belong to threads, and each test has its own. Some
        // users may not set it.
        let _ =
            realtime::start_priority_helper().and_then(|()| realtime::set_realtime(0, Rank::Host));
        let mut program = Command::new("sh");
        lower_priority(&mut program);
        let said = program.args(["-c", "chrt -p $$; nice"]).output().expect("it runs").stdout;
        let said = String::from_utf8(said).expect("it is text");
        // The user of the tests may have a higher nice value already, which cannot be lowered.
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
