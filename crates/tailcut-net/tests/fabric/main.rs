//! The fabric: topologies, flow sizes, traffic, and how evenly it spreads.

mod node_link;
mod schema;
mod sizes;
mod spreading;
mod statistics;
mod topologies;
mod traces;
mod traffic;
