//! Everything that tests this crate from outside, in one program: each program more links the whole simulator once more.

mod builds;
mod common;
mod demand;
mod errors;
mod fabric;
mod failures;
mod fuzz;
mod limits;
mod measure;
mod memory;
mod plan;
mod properties;
mod schema;
mod smoke;
mod transport;
