//! The fabric compared with known results: graphs, flow sizes, arrivals, spreading, queues.

mod idle_red;
mod jitter;
mod jobs;
mod multi_homed;
mod node_link;
mod ports;
mod queueing;
mod routes;
mod schema;
mod sizes;
mod spreading;
mod statistics;
pub mod topologies;
mod traces;
mod traffic;
