//! All integration tests of this crate in one program: each further program would link the whole
//! simulator again.

mod builds;
mod common;
mod demand;
mod entropy;
mod errors;
mod estimates;
mod fabric;
mod failures;
mod fuzz;
mod limits;
mod measure;
mod memory;
mod paws;
mod plan;
mod properties;
mod schema;
mod smoke;
mod transport;
