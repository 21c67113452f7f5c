//! Mailboxes and meetings of partitions between two windows.
//!
//! Everything is there twice and used in turns, as [`Mailboxes`] are.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tailcut_engine::rendezvous::{Broken, Rendezvous};
use tailcut_engine::{Mailboxes, Time};

use crate::packet::{Carried, ConnectionId, Packet};
use crate::replicate::machine::OpenConnection;
use crate::scenario::Progress;
use crate::topology::PortId;
use crate::traffic::FlowIndex;
use crate::transport::spread::OpenSubflow;

use super::moment::Moment;

/// A packet on a link from one partition to another. Its connection is named as the partition of
/// the connection's sender names it.
#[derive(Debug, Clone, Copy)]
pub struct Crossing {
    pub port: PortId,
    /// The arrival at the far end of the link.
    pub at: Time,
    /// The packet. Its options, beside a number, are in [`Batch::options`], at the place that it
    /// names.
    pub packet: Packet,
}

/// An order to open a connection at its receiver, too.
#[derive(Debug, Clone, Copy)]
pub enum Opening {
    /// A copy of a flow, or a piece.
    Copy(OpenConnection),
    /// A subflow.
    Subflow(OpenSubflow),
}

/// A message between partitions that is no packet.
#[derive(Debug, Clone, Copy)]
pub enum Note {
    /// A sender has opened a connection of a flow that started at this time.
    Opened { id: ConnectionId, flow: FlowIndex, start: Time, opening: Opening },
    /// A packet is no more that neither of the connection's hosts is here for.
    Released { id: ConnectionId, moment: Moment },
    /// A sender has finished. So many more of the connection's packets have set out in its partition
    /// than have ended there, and the last event that touched it there is known.
    Finished { id: ConnectionId, holds: i64, touched: Moment, finished: Moment },
    /// The receiver's end is retired; the connection was over then.
    Retired { id: ConnectionId, over: Moment },
}

/// Packets and messages of one partition to another one after a window.
#[derive(Debug, Default)]
pub struct Batch {
    pub notes: Vec<Note>,
    pub packets: Vec<Crossing>,
    pub options: Vec<Carried>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.notes.clear();
        self.packets.clear();
        self.options.clear();
    }
}

/// The state of a run that partitions agree on whenever they meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The time that nothing precedes.
    pub earliest: Time,
    /// The number of connections, and of partitions with flows to start.
    pub alive: u64,
}

impl Known {
    /// Joins what two partitions know.
    pub fn and(self, other: Known) -> Known {
        Known { earliest: self.earliest.min(other.earliest), alive: self.alive + other.alive }
    }
}

/// A number on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// One of the two sets.
#[derive(Debug)]
struct Set {
    /// The time that nothing in a partition, and nothing that it hands over, precedes.
    bounds: Vec<Padded>,
    /// By partition: connections that are open, and one more where flows are to start.
    alive: Vec<Padded>,
    stop: AtomicBool,
}

impl Set {
    fn new(parts: usize) -> Set {
        Set {
            bounds: (0..parts).map(|_| Padded::default()).collect(),
            alive: (0..parts).map(|_| Padded::default()).collect(),
            stop: AtomicBool::new(false),
        }
    }
}

/// Counts of a partition that others read now and then.
#[derive(Debug, Default)]
struct Shown {
    events: Padded,
    hops: Padded,
    finished: Padded,
}

/// The place where the partitions of a run meet.
#[derive(Debug)]
pub struct Exchange {
    mailboxes: Mailboxes<Batch>,
    sets: [Set; 2],
    meeting: Rendezvous,
    shown: Vec<Shown>,
}

impl Exchange {
    pub fn new(parts: usize) -> Exchange {
        Exchange {
            mailboxes: Mailboxes::new(parts),
            sets: [Set::new(parts), Set::new(parts)],
            meeting: Rendezvous::new(parts as u32),
            shown: (0..parts).map(|_| Shown::default()).collect(),
        }
    }

    fn set(&self, turn: u64) -> &Set {
        &self.sets[(turn % 2) as usize]
    }

    /// Puts a batch into a mailbox, in exchange for the empty one there.
    pub fn hand_over(&self, turn: u64, from: usize, to: usize, batch: &mut Batch) {
        self.mailboxes.hand_over(turn, from, to, batch);
        debug_assert!(batch.notes.is_empty() && batch.packets.is_empty());
    }

    /// Lets `take` empty the mailboxes of a partition, by senders.
    pub fn take_over(&self, turn: u64, to: usize, mut take: impl FnMut(usize, &Batch)) {
        self.mailboxes.take_over(turn, to, |from, batch| {
            take(from, batch);
            batch.clear();
        });
    }

    /// Meets the other partitions. Returns what all know together, and whether to go on.
    ///
    /// # Errors
    /// When a partition has left.
    pub fn meet(
        &self,
        turn: u64,
        part: usize,
        known: Known,
        stop: bool,
    ) -> Result<(Known, ControlFlow<()>), Broken> {
        let set = self.set(turn);
        set.bounds[part].0.store(known.earliest.0, Ordering::Relaxed);
        set.alive[part].0.store(known.alive, Ordering::Relaxed);
        if stop {
            set.stop.store(true, Ordering::Relaxed);
        }
        self.meeting.wait()?;
        let read = |number: &Padded| number.0.load(Ordering::Relaxed);
        let each = set.bounds.iter().zip(&set.alive);
        let all = each
            .map(|(earliest, alive)| Known { earliest: Time(read(earliest)), alive: read(alive) });
        let all = all.reduce(Known::and).expect("there are partitions");
        let stop = set.stop.load(Ordering::Relaxed);
        Ok((all, if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }))
    }

    /// Leaves for good, so that no partition waits for this one.
    pub fn leave(&self) {
        self.meeting.leave();
    }

    /// Shows the counts of a partition to others.
    pub fn show(&self, part: usize, progress: &Progress) {
        let Shown { events, hops, finished } = &self.shown[part];
        events.0.store(progress.events, Ordering::Relaxed);
        hops.0.store(progress.packet_hops, Ordering::Relaxed);
        finished.0.store(progress.finished_flows, Ordering::Relaxed);
    }

    /// Returns the progress of all partitions together.
    pub fn progress(&self, now: Time) -> Progress {
        let sum = |of: fn(&Shown) -> &Padded| {
            self.shown.iter().map(|shown| of(shown).0.load(Ordering::Relaxed)).sum()
        };
        Progress {
            now,
            events: sum(|shown| &shown.events),
            packet_hops: sum(|shown| &shown.hops),
            finished_flows: sum(|shown| &shown.finished),
        }
    }
}
