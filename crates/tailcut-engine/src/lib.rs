//! Time, units, event queue and random streams.
//!
//! The engine knows nothing of networks: an *entity* is a number that may have
//! one pending event. What an entity means (a link, a timer, a traffic source)
//! is the business of whoever owns the [`event_queue::EventQueue`].

pub mod event_queue;
pub mod fetch;
pub mod mailboxes;
pub mod random;
pub mod rendezvous;
mod sync;
mod text;
pub mod units;

pub use event_queue::EventQueue;
pub use fetch::prefetch;
pub use mailboxes::Mailboxes;
pub use random::RandomStream;
pub use rendezvous::Rendezvous;
pub use units::{Bytes, Rate, Time, UnitError};
