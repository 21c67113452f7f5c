//! Congestion controls that are BPF programs of the lab.

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use std::path::Path;

use serde::Serialize;

#[cfg(target_os = "linux")]
use crate::bpf_programs::compiled;
#[cfg(target_os = "linux")]
use crate::sys::bpf::BpfObject;
#[cfg(target_os = "linux")]
use crate::sys::random_u32;

/// A congestion control that is a BPF program: `bpf/NAME.c`, with a `struct_ops` of the same name
/// and a map `settings` of parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CongestionProgram {
    /// The name of the source file and of its `struct_ops`.
    pub name: &'static str,
    /// The parameters, in the order of the program's `struct settings`.
    pub settings: Vec<u32>,
}

#[cfg(target_os = "linux")]
impl CongestionProgram {
    /// Registers the program under a random name, and returns that name. It stays registered while
    /// any process holds the returned descriptor. Requires root of the machine. `directory` holds
    /// the compiled objects.
    ///
    /// # Errors
    /// The reason why it cannot be loaded or registered.
    pub fn register(&self, directory: Option<&Path>) -> Result<(String, OwnedFd), String> {
        /// The placeholder for the name in the compiled object, of the greatest length that the
        /// kernel allows.
        const NAME: &[u8] = b"tailcut-by-name";
        let file = self.name;
        let mut bytes = compiled(directory, file)?;
        let name = format!("tailcut{:08x}", random_u32().map_err(|error| error.to_string())?);
        let place = bytes.windows(NAME.len()).position(|there| there == NAME);
        let place = place.ok_or_else(|| {
            format!(
                "the compiled BPF program {file} does not match this version: run `make \
                     lab-bpf` again"
            )
        })?;
        bytes[place..][..NAME.len()].copy_from_slice(name.as_bytes());
        let registered = || {
            let object = BpfObject::load(&bytes, &[], Some(file))?;
            let told: Vec<u8> = self.settings.iter().flat_map(|one| one.to_ne_bytes()).collect();
            object.map("settings")?.set(&0_u32.to_ne_bytes(), &told)?;
            object.register(file)
        };
        let kept = registered().map_err(|error| format!("the BPF program {file}: {error}"))?;
        Ok((name, kept))
    }
}
