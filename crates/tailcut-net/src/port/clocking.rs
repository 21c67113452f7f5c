//! Transmission times of bytes on a link.

use tailcut_engine::Rate;

/// Serialisation at a fixed rate, exact to the nearest picosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SerializationRate {
    /// Picoseconds per byte when that is a whole number, else 0.
    pub(super) ps_per_byte: u64,
    pub(super) rate: Rate,
}

impl SerializationRate {
    /// The clocking of a link of this rate.
    pub fn new(rate: Rate) -> SerializationRate {
        let bit_ps = 8_000_000_000_000;
        let ps_per_byte = if bit_ps % rate.0 == 0 { bit_ps / rate.0 } else { 0 };
        SerializationRate { ps_per_byte, rate }
    }
    /// Returns the transmission time of `bytes`.
    #[inline]
    pub fn transmission(self, bytes: u16) -> u64 {
        if self.ps_per_byte != 0 {
            u64::from(bytes) * self.ps_per_byte
        } else {
            self.rate.transmission_time(u64::from(bytes)).0
        }
    }
}
