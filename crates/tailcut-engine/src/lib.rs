//! Time, units, event queue and random streams.
//!
//! The engine knows nothing of networks: an *entity* is a number that may have
//! one pending event. What an entity means (a link, a timer, a traffic source)
//! is the business of whoever owns the [`agenda::Agenda`].

pub mod agenda;
pub mod fetch;
pub mod random;
mod text;
pub mod units;

pub use agenda::Agenda;
pub use fetch::fetch_early;
pub use random::Stream;
pub use units::{Bytes, Rate, Time, UnitError};
