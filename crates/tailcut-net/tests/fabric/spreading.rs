//! spreading
