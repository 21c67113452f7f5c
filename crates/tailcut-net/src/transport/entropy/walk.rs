//! A walk over all values: each once in a round, in an order drawn for the round.

use tailcut_engine::RandomStream;

/// The walk: at step `i` of a round the value `i xor x`, with a new random `x` for each round. The
/// bits above those of the values are drawn once.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    values: u32,
    upper: u16,
    order: u16,
    pub(super) step: u32,
    stream: RandomStream,
}

impl Walk {
    pub fn new(values: u32, mut stream: RandomStream) -> Walk {
        let upper = stream.bits() as u16 & !Walk::mask(values);
        let mut walk = Walk { values, upper, order: 0, step: 0, stream };
        walk.draw_order();
        walk
    }

    /// The bits of the values.
    const fn mask(values: u32) -> u16 {
        (values - 1) as u16
    }

    fn draw_order(&mut self) {
        self.order = self.stream.below(u64::from(self.values)) as u16;
    }

    /// Returns the value at this step.
    pub const fn value(&self) -> u16 {
        self.upper | (self.step as u16 ^ self.order)
    }

    /// Returns the index of a value among all: its lower bits.
    pub const fn index(&self, value: u16) -> usize {
        (value & Walk::mask(self.values)) as usize
    }

    /// Moves on to the next step, and to a new round after the last.
    pub fn advance(&mut self) {
        self.step += 1;
        if self.step == self.values {
            self.step = 0;
            self.draw_order();
        }
    }
}
