//! Topologies: each builds a [`Graph`].
//!
//! A new topology is one file here and one line in the registry.

pub mod graph;

pub use graph::{Graph, Link, NodeId};
