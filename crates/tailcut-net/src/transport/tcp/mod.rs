//! TCP (RFC 9293) for one-directional flows of known size.

mod spec;

pub use spec::{Close, Recovery, TcpSpec};
