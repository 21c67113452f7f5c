//! The simulator's fabric between real hosts, and checks of its punctuality.

#[cfg(target_os = "linux")]
pub mod carrier;
pub mod engine;
pub mod frame;
pub mod lateness;
pub mod ports;
#[cfg(target_os = "linux")]
pub mod process;
pub mod rate_check;
