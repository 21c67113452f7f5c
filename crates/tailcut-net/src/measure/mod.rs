//! Observers: they look on and never take part.
