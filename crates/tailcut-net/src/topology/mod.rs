//! Topologies: each builds a [`Graph`].
//!
//! A new topology is one file here and one line in the registry.

pub mod graph;
pub mod routes;

pub use graph::{Graph, Link, NodeId};
pub use routes::{PortId, RouteError, Routes};
