//! Kinds of fabric between the hosts. A new one is a file here and a line in [`KINDS`].

pub mod engine;
pub mod kernel;
pub mod kind;

use kind::FabricKind;

/// All kinds; the first is the default.
pub const KINDS: [&dyn FabricKind; 2] = [&engine::EngineFabric, &kernel::KernelFabric];

/// Returns the kind of this name.
///
/// # Errors
/// No kind has that name.
pub fn find(name: &str) -> Result<&'static dyn FabricKind, String> {
    KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
        format!("the lab has no fabric {name:?}: choose one of {}", names.join(", "))
    })
}
