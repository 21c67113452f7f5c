//! Traffic: which flows start when. A new pattern is one file here and one line in the registry.

/// One flow to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Sending host.
    pub src: u32,
    /// Receiving host, another one.
    pub dst: u32,
    /// Application bytes, at least 1.
    pub bytes: u64,
    /// When the SYN is handed to the NIC.
    pub start: tailcut_engine::Time,
    /// Identifier that the result table repeats (row number unless a trace names another).
    pub id: u64,
}
