//! Helpers shared by the integration tests.

pub mod ns3;
pub mod tshark;
