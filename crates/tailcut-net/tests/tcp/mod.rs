//! TCP by the book: each test is a short script of what a sender hears and what it must say.

mod adaptive;
mod bbr;
mod congestion;
mod cubic;
mod dctcp;
mod ecn;
mod growth;
mod hystart;
mod imitation;
mod life;
mod linux;
mod newreno;
mod pair;
mod pairs;
mod paws;
mod rack;
mod reordering;
mod sack;
mod script;
mod senses;
mod taken_back;
mod timeout;
