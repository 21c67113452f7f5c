//! Packet captures: simulated packets as frames of a real Ethernet, in pcapng.
//!
//! [`frame`] writes one packet as Ethernet, IPv4 and TCP headers (with options and valid checksums) and payload;
//! [`pcapng`] writes such frames into a capture file that is handed in as a [`std::io::Write`];
//! [`tap`] observes a run and picks the packets at chosen hosts and links.

pub mod frame;
pub mod pcapng;
pub mod tap;

pub use tap::{Capture, CaptureError, CaptureSpec, CaptureSummary};
