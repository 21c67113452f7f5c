//! Everything with everything: it runs, or is refused for the reason that is known. Components join by being registered.

mod combinations;
mod cover;
mod experiment;
mod factors;
mod traffic;
