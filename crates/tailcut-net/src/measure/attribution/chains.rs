//! Chains of causes: what a flow has spent its time on up to some moment of its, by the causes that led there.

use super::packets::{KINDS, OTHERS};
use super::parts::{PARTS, Part, PartTimes};

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

/// The parts that packets have and those that wait for them: a chain goes on by these, and copies of it are made of little else. The last of them
/// are waiting behind other flows, in the order of the kinds of places.
const USUAL: [Part; 4 + KINDS] = [
    Part::SlowStart,
    Part::CongestionWindow,
    Part::ReceiveWindow,
    Part::Recovery,
    Part::InterfaceOthers,
    Part::Up2Others,
    Part::Up3Others,
    Part::Down3Others,
    Part::Down2Others,
    Part::Down1Others,
];

/// After them: of transmission and propagation since a sender sent last, what moments and packets have no room for.
const UNSETTLED: usize = USUAL.len();

/// What is known of most chains.
type Usual = [u64; UNSETTLED + 2];

/// Where a part is among the usual ones; not there if it is none of them.
const USUALLY: [usize; PARTS] = {
    let mut places = [usize::MAX; PARTS];
    let mut place = 0;
    while place < USUAL.len() {
        places[USUAL[place] as usize] = place;
        place += 1;
    }
    places
};

/// Who has a chain. Heads lie close together: most of what refers to a chain wants nothing else of it.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Moments that refer to it.
    users: u32,
    flow: u32,
    /// Where its other parts are, if it has any.
    others: u32,
}

/// The parts that few chains have, which several may share.
#[derive(Debug, Clone, Copy)]
struct Others {
    parts: PartTimes,
    users: u32,
}

/// All chains in use; places are used again. Several moments may have one chain until it goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Chains {
    heads: Vec<Head>,
    usual: Vec<Usual>,
    free: Vec<u32>,
    others: Vec<Others>,
    free_others: Vec<u32>,
}

impl Chains {
    /// The start of a flow.
    pub fn begin(&mut self, now: u64, flow: u32) -> Moment {
        let chain = self.store(Head { users: 1, flow, others: NONE }, [0; UNSETTLED + 2]);
        Moment { chain, at: now, ..Moment::NONE }
    }

    #[inline]
    fn store(&mut self, head: Head, usual: Usual) -> u32 {
        if let Some(place) = self.free.pop() {
            self.heads[place as usize] = head;
            self.usual[place as usize] = usual;
            return place;
        }
        self.heads.push(head);
        self.usual.push(usual);
        self.heads.len() as u32 - 1
    }

    /// All parts of a chain.
    pub fn parts(&self, chain: u32) -> PartTimes {
        let others = self.others.get(self.heads[chain as usize].others as usize);
        let mut parts = others.map_or(PartTimes::NONE, |others| others.parts);
        for (part, &time) in USUAL.iter().zip(&self.usual[chain as usize]) {
            parts.add(*part, time);
        }
        parts
    }

    #[inline]
    pub fn flow(&self, chain: u32) -> u32 {
        self.heads[chain as usize].flow
    }

    /// The usual parts of a chain, to be added to: it is its only user's from now on.
    #[inline]
    fn usual_mut(&mut self, chain: &mut u32) -> &mut Usual {
        let head = &mut self.heads[*chain as usize];
        if head.users > 1 {
            head.users -= 1;
            let copy = Head { users: 1, ..*head };
            if let Some(others) = self.others.get_mut(copy.others as usize) {
                others.users += 1;
            }
            *chain = self.store(copy, self.usual[*chain as usize]);
        }
        &mut self.usual[*chain as usize]
    }

    /// A part of a chain, to be added to: it is its only user's from now on.
    #[inline]
    fn part_mut(&mut self, chain: &mut u32, part: Part) -> &mut u64 {
        match USUALLY[part as usize] {
            place if place < USUAL.len() => &mut self.usual_mut(chain)[place],
            _ => self.other_mut(chain, part),
        }
    }

    #[cold]
    fn other_mut(&mut self, chain: &mut u32, part: Part) -> &mut u64 {
        self.usual_mut(chain);
        let own = &mut self.heads[*chain as usize].others;
        let parts = match self.others.get_mut(*own as usize) {
            Some(others) if others.users == 1 => {
                return &mut self.others[*own as usize].parts.0[part as usize];
            }
            Some(others) => {
                others.users -= 1;
                others.parts
            }
            None => PartTimes::NONE,
        };
        let others = Others { parts, users: 1 };
        *own = match self.free_others.pop() {
            Some(place) => {
                self.others[place as usize] = others;
                place
            }
            None => {
                self.others.push(others);
                self.others.len() as u32 - 1
            }
        };
        &mut self.others[*own as usize].parts.0[part as usize]
    }

    /// A chain goes on by so much time spent on a part.
    #[inline]
    pub fn add(&mut self, chain: &mut u32, part: Part, time: u64) {
        *self.part_mut(chain, part) += time;
    }

    /// Of the time spent on a part, so much is another time now.
    pub fn change(&mut self, chain: &mut u32, part: Part, before: u64, now: u64) {
        let time = self.part_mut(chain, part);
        *time = *time - before + now;
    }

    /// What packets have met of something, by its place among that; to be added to.
    pub fn met_mut(&mut self, chain: &mut u32, what: usize) -> &mut u64 {
        let usual = self.usual_mut(chain);
        match what.checked_sub(OTHERS) {
            Some(kind) => &mut usual[USUAL.len() - KINDS + kind],
            None => &mut usual[UNSETTLED + what],
        }
    }

    /// A chain goes on by waiting behind other flows, by the kind of place.
    #[inline]
    pub fn go_on(&mut self, chain: &mut u32, others: &[u32; KINDS]) {
        let usual = &mut self.usual_mut(chain)[USUAL.len() - KINDS..];
        for (part, time) in usual.iter_mut().zip(others) {
            *part += u64::from(*time);
        }
    }

    /// One more refers to a chain, if it is one.
    #[inline]
    pub fn share(&mut self, chain: u32) {
        if let Some(head) = self.heads.get_mut(chain as usize) {
            head.users += 1;
        }
    }

    /// Transmission and propagation since a sender sent last are counted as this.
    #[inline]
    pub fn settle(&mut self, moment: &mut Moment, part: Part) {
        let [transmission, propagation] = self.unsettled(moment);
        if transmission + propagation > 0 {
            let usual = self.usual_mut(&mut moment.chain);
            usual[USUALLY[part as usize]] += transmission + propagation;
            usual[UNSETTLED..].fill(0);
            (moment.transmission, moment.propagation) = (0, 0);
        }
    }

    /// They are counted as what they are.
    pub fn settle_as_they_are(&mut self, moment: &mut Moment) {
        let [transmission, propagation] = self.unsettled(moment);
        self.add(&mut moment.chain, Part::Transmission, transmission);
        self.add(&mut moment.chain, Part::Propagation, propagation);
        self.usual_mut(&mut moment.chain)[UNSETTLED..].fill(0);
        (moment.transmission, moment.propagation) = (0, 0);
    }

    #[inline]
    fn unsettled(&self, moment: &Moment) -> [u64; 2] {
        let usual = &self.usual[moment.chain as usize];
        [moment.transmission + usual[UNSETTLED], moment.propagation + usual[UNSETTLED + 1]]
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
        let Some(head) = self.heads.get_mut(chain as usize) else { return };
        head.users -= 1;
        if head.users == 0 {
            let others = head.others;
            self.free.push(chain);
            if others != NONE {
                self.release_others(others);
            }
        }
    }

    fn release_others(&mut self, place: u32) {
        let others = &mut self.others[place as usize];
        others.users -= 1;
        if others.users == 0 {
            self.free_others.push(place);
        }
    }
}
