//! Helpers shared by the integration tests.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod ns3;
pub mod tshark;
