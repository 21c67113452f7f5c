//! Chains of causes: what a flow has spent its time on up to some moment of its, by the causes that led there.

use super::parts::{Part, Parts};

/// No chain.
pub(super) const NONE: u32 = u32::MAX;

/// A moment of a flow. The parts of its chain, and what is noted here, add up to the time since the flow's start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// Nobody wants to know where there is none.
    pub chain: u32,
    pub at: u64,
    /// Transmission and propagation since a sender sent last: what they are counted as is known when one sends again.
    pub transmission: u64,
    pub propagation: u64,
}

impl Moment {
    pub const NONE: Moment = Moment { chain: NONE, at: 0, transmission: 0, propagation: 0 };

    #[inline]
    pub fn is_told(&self) -> bool {
        self.chain != NONE
    }
}

/// What a moment's chain is made of.
#[derive(Debug, Clone, Copy)]
struct Chain {
    parts: Parts,
    flow: u32,
    /// Moments that refer to it.
    users: u32,
}

/// All chains in use; places are used again. Several moments may have one chain until it goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Chains {
    all: Vec<Chain>,
    free: Vec<u32>,
}

impl Chains {
    /// The start of a flow.
    pub fn begin(&mut self, now: u64, flow: u32) -> Moment {
        let chain = self.store(Chain { parts: Parts::NONE, flow, users: 1 });
        Moment { chain, at: now, ..Moment::NONE }
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

    #[inline]
    pub fn parts(&self, moment: &Moment) -> &Parts {
        &self.all[moment.chain as usize].parts
    }

    #[inline]
    pub fn flow(&self, chain: u32) -> u32 {
        self.all[chain as usize].flow
    }

    /// The parts of a chain, to be added to: it is its only user's from now on.
    #[inline]
    pub fn parts_mut(&mut self, chain: &mut u32) -> &mut Parts {
        let shared = &mut self.all[*chain as usize];
        if shared.users > 1 {
            shared.users -= 1;
            *chain = self.store(Chain { users: 1, ..self.all[*chain as usize] });
        }
        &mut self.all[*chain as usize].parts
    }

    /// One more refers to a chain, if it is one.
    #[inline]
    pub fn share(&mut self, chain: u32) {
        if let Some(chain) = self.all.get_mut(chain as usize) {
            chain.users += 1;
        }
    }

    /// Transmission and propagation since a sender sent last are counted as this.
    #[inline]
    pub fn settle(&mut self, moment: &mut Moment, part: Part) {
        let time = moment.transmission + moment.propagation;
        if time > 0 {
            self.parts_mut(&mut moment.chain).add(part, time);
            (moment.transmission, moment.propagation) = (0, 0);
        }
    }

    /// They are counted as what they are.
    pub fn settle_as_they_are(&mut self, moment: &mut Moment) {
        let Moment { transmission, propagation, .. } = *moment;
        let parts = self.parts_mut(&mut moment.chain);
        parts.add(Part::Transmission, transmission);
        parts.add(Part::Propagation, propagation);
        (moment.transmission, moment.propagation) = (0, 0);
    }

    /// Another moment is the same.
    #[inline]
    pub fn keep(&mut self, moment: &Moment) -> Moment {
        self.share(moment.chain);
        *moment
    }

    /// One refers to a chain no more, if it is one.
    #[inline]
    pub fn release(&mut self, chain: u32) {
        let Some(released) = self.all.get_mut(chain as usize) else { return };
        released.users -= 1;
        if released.users == 0 {
            self.free.push(chain);
        }
    }
}
