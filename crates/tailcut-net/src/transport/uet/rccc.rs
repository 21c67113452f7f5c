//! RCCC, the receiver's credits: senders say how much they want, receivers grant it in turn.

use super::UetSpec;

/// Bytes of a unit of credit.
pub(super) const QUANTUM: u64 = 256;
/// Most units of one grant.
const GRANT: u32 = 64;
/// Most bytes of one grant.
pub(super) const GRANT_BYTES: u64 = GRANT as u64 * QUANTUM;
/// Units that a grant of nothing counts as, in the pace of a host's grants.
const EMPTY_GRANT: u32 = 4;

/// Credit at a sender, in bytes on the wire.
#[derive(Debug, Clone)]
pub(super) struct Credit {
    /// What may be sent; a packet may leave while it is above 0.
    left: i64,
    /// Units granted in all.
    granted: u32,
    /// Nothing has been heard of the receiver: the first window needs no grant.
    speculates: bool,
    /// Units asked for in all, by the last packet.
    pub target: u32,
}

impl Credit {
    pub fn new(spec: &UetSpec) -> Credit {
        let left = spec.derived.max_window as i64;
        Credit { left, granted: 0, speculates: true, target: 0 }
    }

    /// Whether a packet may leave.
    pub fn allows(&self) -> bool {
        self.left > 0
    }

    /// The receiver was heard of: what the first window has left is void.
    pub fn on_feedback(&mut self) {
        if self.speculates {
            (self.speculates, self.left) = (false, 0);
        }
    }

    /// The receiver has granted `granted` units in all.
    pub fn on_grant(&mut self, spec: &UetSpec, granted: u32) {
        self.on_feedback();
        let more = u64::from(granted.saturating_sub(self.granted)) * QUANTUM;
        self.granted = self.granted.max(granted);
        self.left = (self.left + more as i64).min(spec.derived.max_window as i64);
    }

    /// A packet of `bytes` leaves.
    pub fn spend(&mut self, bytes: u64) {
        self.left -= bytes as i64;
    }

    /// Notes what a packet asks for: so much that `backlog` bytes on the wire may leave, as far as
    /// one window allows, divided by the `contenders` at the interface. `window`: that of NSCC,
    /// where it bounds the flow too.
    pub fn ask(&mut self, spec: &UetSpec, backlog: u64, contenders: u32, window: Option<u64>) {
        let packet = spec.full_packet() as i64;
        let mut wanted = backlog.min(spec.derived.max_window) as i64 - self.left;
        if self.speculates {
            wanted = wanted.max(packet);
        }
        if let Some(window) = window {
            wanted = wanted.min(window as i64 + packet - self.left);
        }
        let wanted = wanted.max(0) as u64 / u64::from(contenders.max(1));
        let units = (u64::from(self.granted) * QUANTUM + wanted).div_ceil(QUANTUM);
        self.target = units as u32;
    }
}

/// Credit at a receiver, in units.
#[derive(Debug, Clone)]
pub(super) struct Grants {
    /// Units that the sender has asked for in all, and that it has got.
    target: u32,
    granted: u32,
    /// Units that are granted unasked before a connection leaves the idle ones.
    unasked: u32,
}

impl Grants {
    pub fn new(spec: &UetSpec) -> Grants {
        let unasked = (spec.derived.max_window / QUANTUM) as u32;
        Grants { target: 0, granted: 0, unasked }
    }

    /// The sender asks for `target` units in all. Returns true if that is more than before.
    pub fn on_target(&mut self, target: u32) -> bool {
        let more = target > self.target;
        self.target = self.target.max(target);
        more
    }

    /// Grants what is asked for, at most [`GRANT`] units. Returns how many units the grant counts
    /// as in the pace of grants.
    pub fn grant(&mut self) -> u32 {
        let units = self.target.saturating_sub(self.granted).min(GRANT);
        self.granted += units;
        if units == 0 { EMPTY_GRANT } else { units }
    }

    /// Grants units that nobody has asked for.
    pub fn grant_unasked(&mut self) -> u32 {
        self.granted += GRANT;
        GRANT
    }

    /// Units granted in all.
    pub fn granted(&self) -> u32 {
        self.granted
    }

    /// Whether more is asked for than was granted.
    pub fn is_wanted(&self) -> bool {
        self.target > self.granted
    }

    /// Whether the connection may get units unasked.
    pub fn may_idle(&self) -> bool {
        (self.target..self.target.saturating_add(self.unasked)).contains(&self.granted)
    }
}
