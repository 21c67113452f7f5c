//! placeholder
/// placeholder
pub struct Agenda;
