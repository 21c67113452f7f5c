//! Combines every component with every other: the experiment runs, or is refused for the expected
//! reason. Components join by being registered.

mod combinations;
mod cover;
mod experiment;
mod factors;
mod traffic;
