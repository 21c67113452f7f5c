//! What of the lab are BPF programs (`bpf/`): whether they can be had, and what of them `make lab-bpf` has compiled.

use std::path::Path;

#[cfg(target_os = "linux")]
use crate::sys::bpf;

/// Why programs cannot be loaded here, and what to do about it, if they cannot; `directory` is where they are, once they are compiled.
///
/// # Errors
/// That.
pub fn available(directory: Option<&Path>) -> Result<(), String> {
    if directory.is_none() {
        return Err(
            "no BPF program is compiled: run `make lab-bpf` in the repository, and the lab as root"
                .to_owned(),
        );
    }
    #[cfg(not(target_os = "linux"))]
    return Err("only Linux has BPF".to_owned());
    #[cfg(target_os = "linux")]
    bpf::check_library().and_then(|()| bpf::check_may_load()).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::EPERM) => {
                "this user may not load BPF programs: run the lab as root".to_owned()
            }
            _ => format!("no BPF program can be loaded: {error}"),
        }
    })
}

/// One of them as it was compiled, where programs can be loaded.
///
/// # Errors
/// Why not.
#[cfg(target_os = "linux")]
pub fn compiled(directory: Option<&Path>, name: &str) -> Result<Vec<u8>, String> {
    available(directory)?;
    let file = directory.unwrap_or(Path::new("")).join(format!("{name}.o"));
    std::fs::read(&file)
        .map_err(|error| format!("{}: {error}: run `make lab-bpf` again", file.display()))
}
