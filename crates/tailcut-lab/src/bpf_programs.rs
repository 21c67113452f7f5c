//! The lab's BPF programs (`bpf/`): availability, and the objects that `make lab-bpf` has compiled.

use std::path::Path;

#[cfg(target_os = "linux")]
use crate::sys::bpf;

/// Checks whether BPF programs can be loaded. `directory` holds the compiled objects, if there are
/// any.
///
/// # Errors
/// The reason, and what to do about it.
pub fn available(directory: Option<&Path>) -> Result<(), String> {
    if directory.is_none() {
        return Err(
            "BPF programs are not compiled: run `make lab-bpf` in the repository, and the lab as \
             root"
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
            _ => format!("BPF programs cannot be loaded: {error}"),
        }
    })
}

/// Reads a compiled object, if programs can be loaded.
///
/// # Errors
/// The reason why programs cannot be loaded, or the object cannot be read.
#[cfg(target_os = "linux")]
pub fn compiled(directory: Option<&Path>, name: &str) -> Result<Vec<u8>, String> {
    available(directory)?;
    let file = directory.unwrap_or(Path::new("")).join(format!("{name}.o"));
    std::fs::read(&file)
        .map_err(|error| format!("{}: {error}: run `make lab-bpf` again", file.display()))
}
