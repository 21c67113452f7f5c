//! A congestion control that is one of the lab's own BPF programs.

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

/// A congestion control that is a BPF program of the lab's: `bpf/NAME.c`, whose `struct_ops` is called so, too, and whose map
/// `settings` has its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CongestionProgram {
    /// As its file is called.
    pub name: &'static str,
    /// Its parameters, in the order of its `struct settings`.
    pub settings: Vec<u32>,
}

#[cfg(target_os = "linux")]
impl CongestionProgram {
    /// Registers the program, for as long as what this gives is kept by any process, under a name that nobody else has. Only the
    /// machine's root may do so. `directory` is where programs are, once they are compiled.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn register(&self, directory: Option<&Path>) -> Result<(String, OwnedFd), String> {
        /// What the source has for a name: as many letters as there may be.
        const NAME: &[u8] = b"tailcut-by-name";
        let file = self.name;
        let mut bytes = compiled(directory, file)?;
        let name = format!("tailcut{:08x}", random_u32().map_err(|error| error.to_string())?);
        let place = bytes.windows(NAME.len()).position(|there| there == NAME);
        let place = place.ok_or_else(|| {
            format!("the BPF program {file} has another name: run `make lab-bpf` again")
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
