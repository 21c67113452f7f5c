//! Packet captures: simulated packets as Ethernet frames in pcapng files.
//!
//! [`frame`] encodes one packet as Ethernet, IPv4 and TCP headers (with options and valid
//! checksums) and payload; [`pcapng`] writes such frames into a [`std::io::Write`]; [`tap`]
//! observes a run and selects the packets at chosen hosts and links.

pub mod frame;
pub mod pcapng;
pub mod tap;

pub use tap::{Capture, CaptureError, CaptureSpec, CaptureSummary};
