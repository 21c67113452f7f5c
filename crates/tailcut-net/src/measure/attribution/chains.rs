//! Chains of causes: the parts on which a flow has spent its time up to a moment.

use super::packets::{KINDS, OTHERS};
use super::parts::{PARTS, Part, PartTimes};

/// The number that stands for no chain.
pub(super) const NONE: u32 = u32::MAX;

/// A moment of a flow. The parts of its chain plus the times noted here add up to the time since
/// the flow's start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The chain of causes that led here; `NONE` if the moment is not traced.
    pub chain: u32,
    pub at: u64,
    /// Transmission and propagation, in picoseconds, since a sender last sent. What they count as
    /// is known when a sender sends again.
    pub transmission: u64,
    pub propagation: u64,
}

impl Moment {
    pub const NONE: Moment = Moment { chain: NONE, at: 0, transmission: 0, propagation: 0 };

    #[inline]
    pub fn is_traced(&self) -> bool {
        self.chain != NONE
    }
}

/// The parts of most chains: those of packets and of what waits for packets. Each chain stores
/// these inline. The last `KINDS` of them are waiting behind other flows, in the order of the kinds
/// of places.
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

/// Index behind the usual parts: unsettled transmission and propagation that moments and packets
/// have no room for.
const UNSETTLED: usize = USUAL.len();

/// The inline times of a chain: its usual parts and its unsettled transmission and propagation.
type Usual = [u64; UNSETTLED + 2];

/// Index of each part among the usual ones; `usize::MAX` if it is none of them.
const USUALLY: [usize; PARTS] = {
    let mut places = [usize::MAX; PARTS];
    let mut place = 0;
    while place < USUAL.len() {
        places[USUAL[place] as usize] = place;
        place += 1;
    }
    places
};

/// The counters of a chain. Heads lie close together, because most accesses to a chain need nothing
/// else of it.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Number of moments that refer to the chain.
    users: u32,
    flow: u32,
    /// Index of its unusual parts, `NONE` if it has none.
    others: u32,
}

/// The unusual parts of a chain, which several chains may share.
#[derive(Debug, Clone, Copy)]
struct Others {
    parts: PartTimes,
    users: u32,
}

/// All chains in use; slots are reused. Several moments may share a chain until one of them changes
/// it.
#[derive(Debug, Clone, Default)]
pub(super) struct Chains {
    heads: Vec<Head>,
    usual: Vec<Usual>,
    free: Vec<u32>,
    others: Vec<Others>,
    free_others: Vec<u32>,
}

impl Chains {
    /// Starts a chain for `flow` at `now`, in picoseconds.
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

    /// Returns all parts of a chain.
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

    /// Returns the usual parts of a chain for writing, after copying the chain if it is shared.
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

    /// Returns one part of a chain for writing, after copying the chain if it is shared.
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

    /// Adds `time` spent on `part` to a chain.
    #[inline]
    pub fn add(&mut self, chain: &mut u32, part: Part, time: u64) {
        *self.part_mut(chain, part) += time;
    }

    /// Replaces `before` by `now` in the time spent on `part`.
    pub fn change(&mut self, chain: &mut u32, part: Part, before: u64, now: u64) {
        let time = self.part_mut(chain, part);
        *time = *time - before + now;
    }

    /// Returns the part of a chain that stands for index `what` of a packet's met times, for
    /// writing.
    pub fn met_mut(&mut self, chain: &mut u32, what: usize) -> &mut u64 {
        let usual = self.usual_mut(chain);
        match what.checked_sub(OTHERS) {
            Some(kind) => &mut usual[USUAL.len() - KINDS + kind],
            None => &mut usual[UNSETTLED + what],
        }
    }

    /// Adds waiting behind other flows to a chain, by the kind of place.
    #[inline]
    pub fn go_on(&mut self, chain: &mut u32, others: &[u32; KINDS]) {
        let usual = &mut self.usual_mut(chain)[USUAL.len() - KINDS..];
        for (part, time) in usual.iter_mut().zip(others) {
            *part += u64::from(*time);
        }
    }

    /// Counts one more user of a chain; does nothing for `NONE`.
    #[inline]
    pub fn share(&mut self, chain: u32) {
        if let Some(head) = self.heads.get_mut(chain as usize) {
            head.users += 1;
        }
    }

    /// Counts the unsettled transmission and propagation of a moment as `part`.
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

    /// Counts the unsettled times as transmission and propagation.
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

    /// Returns a copy of a moment, which shares its chain.
    #[inline]
    pub fn keep(&mut self, moment: &Moment) -> Moment {
        self.share(moment.chain);
        *moment
    }

    /// Makes `place` a copy of a moment, in place of the one that it has.
    pub fn restart(&mut self, place: &mut Moment, moment: &Moment) {
        let since = self.keep(moment);
        let before = std::mem::replace(place, since);
        self.release(before.chain);
    }

    /// Counts one user of a chain less and frees it after the last; does nothing for `NONE`.
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
