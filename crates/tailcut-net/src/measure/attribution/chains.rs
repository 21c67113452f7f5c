//! Chains of causes: what a flow has spent its time on up to some event of its, by the causes that led there.

use super::parts::{Part, Parts};

/// No chain.
pub(super) const NONE: u32 = u32::MAX;

/// What led to an event of a flow: the parts add up to the time since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    /// When the event is.
    pub at: u64,
    pub parts: Parts,
    /// Transmission and propagation since a sender sent last: what they are counted as is known when one sends again.
    pub transmission: u64,
    pub propagation: u64,
    pub flow: u32,
    /// Who refers to it.
    users: u32,
}

impl Chain {
    /// Transmission and propagation since a sender sent last are counted as this.
    #[inline]
    pub fn settle(&mut self, part: Part) {
        self.parts.add(part, self.transmission + self.propagation);
        (self.transmission, self.propagation) = (0, 0);
    }

    /// They are counted as what they are.
    #[inline]
    pub fn keep(&mut self) {
        self.parts.add(Part::Transmission, self.transmission);
        self.parts.add(Part::Propagation, self.propagation);
        (self.transmission, self.propagation) = (0, 0);
    }

    /// The event is followed by another one so much later, at `now`.
    #[inline]
    pub fn wait(&mut self, part: Part, now: u64) {
        self.parts.add(part, now - self.at);
        self.at = now;
    }
}

/// All chains in use; places are used again.
#[derive(Debug, Clone, Default)]
pub(super) struct Chains {
    all: Vec<Chain>,
    free: Vec<u32>,
}

impl Chains {
    /// The chain of a flow that starts now.
    pub fn begin(&mut self, now: u64, flow: u32) -> u32 {
        let chain =
            Chain { at: now, parts: Parts::NONE, transmission: 0, propagation: 0, flow, users: 1 };
        self.store(chain)
    }

    #[inline]
    fn store(&mut self, chain: Chain) -> u32 {
        if let Some(place) = self.free.pop() {
            self.all[place as usize] = chain;
            return place;
        }
        self.all.push(chain);
        self.all.len() as u32 - 1
    }

    /// Another chain that goes on from the same event.
    #[inline]
    pub fn branch(&mut self, from: u32) -> u32 {
        self.store(Chain { users: 1, ..self.all[from as usize] })
    }

    /// Puts a chain in the place of another one, which has one user.
    #[inline]
    pub fn replace(&mut self, chain: u32, by: u32) {
        self.all[chain as usize] = Chain { users: 1, ..self.all[by as usize] };
    }

    #[inline]
    pub fn get(&self, chain: u32) -> &Chain {
        &self.all[chain as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, chain: u32) -> &mut Chain {
        &mut self.all[chain as usize]
    }

    /// One more refers to it.
    #[inline]
    pub fn keep(&mut self, chain: u32) -> u32 {
        if chain != NONE {
            self.all[chain as usize].users += 1;
        }
        chain
    }

    /// One fewer does.
    #[inline]
    pub fn release(&mut self, chain: u32) {
        if chain == NONE {
            return;
        }
        let users = &mut self.all[chain as usize].users;
        *users -= 1;
        if *users == 0 {
            self.free.push(chain);
        }
    }
}
