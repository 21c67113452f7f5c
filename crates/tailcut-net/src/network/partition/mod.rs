//! One run on several threads: the network is cut into partitions, each with an agenda and a thread
//! of its own.
//!
//! A packet matters to another partition when it has crossed the link between them, and no
//! earlier. All partitions run freely for a *window* as long as the shortest crossing, meet,
//! exchange packets, and go on (conservative synchronous simulation: Chandy and Misra 1979;
//! Fujimoto 1990). Each handles its events in the order of a run on one thread, so that results are
//! those of one thread to the last bit.
//!
//! A partition has a whole [`Network`], of which it uses what lies at its own hosts and switches. A
//! link that leaves it has its queue and transmitter here, and the packets on its way in the
//! partition that it reaches. A connection between two partitions is in the tables of both, with one
//! end at work in each.

mod cut;
mod exchange;
mod join;
mod moment;
mod retirement;
mod stopwatch;
mod threads;
mod wakings;
mod windows;
mod worthwhile;

use std::sync::Arc;

use tailcut_engine::Time;

use self::cut::Cut;
pub(super) use self::exchange::Opening;
use self::exchange::{Batch, Crossing, Note};
use self::moment::Moment;
use self::retirement::Ends;
pub use self::stopwatch::ThreadTimes;
pub use self::threads::{
    OnThreads, one_thread_reason, simulate_in_turns, simulate_on, threads_that_pay,
};
use self::wakings::Wakings;
use self::windows::Phase;
use super::Network;
use super::clock::EventKind;
use crate::measure::Observer;
use crate::packet::{ConnectionId, Flags, OptionStore, Packet};
use crate::topology::{Graph, PortId, Routes};
use crate::traffic::FlowIndex;

/// How much of a run a network is.
pub(super) trait Extent {
    /// Whether it is one partition of several.
    const IS_PART: bool;

    /// Returns the number of partitions.
    fn parts(&self) -> u32;

    /// Returns the hosts whose flows start here; `None` for all.
    fn hosts(&self) -> Option<Box<[bool]>>;

    /// Returns the network's routes where they are known.
    fn routes(&self) -> Option<Routes>;

    /// Returns the partition.
    ///
    /// # Panics
    /// Where the network is the whole run.
    fn part(&mut self) -> &mut Partition;

    /// Returns whether a port's link leads to another partition.
    fn leaves(&self, port: PortId) -> bool;

    /// Returns the ports whose links lead to other partitions.
    fn leaving(&self) -> Vec<PortId>;
}

/// A whole run.
pub(super) struct Whole;

impl Extent for Whole {
    const IS_PART: bool = false;

    fn parts(&self) -> u32 {
        1
    }

    fn hosts(&self) -> Option<Box<[bool]>> {
        None
    }

    fn routes(&self) -> Option<Routes> {
        None
    }

    fn part(&mut self) -> &mut Partition {
        unreachable!("a whole run has no partitions")
    }

    #[inline(always)]
    fn leaves(&self, _: PortId) -> bool {
        false
    }

    fn leaving(&self) -> Vec<PortId> {
        vec![]
    }
}

/// In [`Partition::reached`]: the link stays here, or is none of this partition's.
const HERE: u8 = u8::MAX;

/// One partition of a run.
pub(super) struct Partition {
    me: usize,
    cut: Arc<Cut>,
    /// The routes of the whole network, which all partitions share.
    routes: Routes,
    /// By port: the partition that its link reaches, where it leaves this one.
    reached: Box<[u8]>,
    /// By partition: the batch that it gets after this window.
    outgoing: Vec<Batch>,
    /// The first arrival among these.
    first_out: Time,
    /// The event at hand.
    moment: Moment,
    /// The connections that are known here, by their places in this partition's table.
    ends: Vec<Ends>,
    /// By partition, then by the place there of a connection's sender: the place here.
    foreign: Vec<Vec<ConnectionId>>,
    /// The connections that have been opened here and are not retired.
    open: Vec<ConnectionId>,
    /// How many of these call for a search for those that are over.
    search_at: usize,
    phase: Phase,
    /// The next incident, where everything that comes before it has been handled.
    cleared: Option<Time>,
    /// Nothing is left for incidents to befall.
    incidents_end: bool,
    /// Events that have been counted, and that a run on one thread would not have had.
    surplus: u64,
    /// Something has happened that one thread might not have had.
    in_doubt: bool,
    wakings: Wakings,
}

impl Extent for Partition {
    const IS_PART: bool = true;

    fn parts(&self) -> u32 {
        self.cut.parts() as u32
    }

    fn hosts(&self) -> Option<Box<[bool]>> {
        Some(self.cut.hosts().map(|part| part == self.me).collect())
    }

    fn routes(&self) -> Option<Routes> {
        Some(self.routes.clone())
    }

    #[inline(always)]
    fn part(&mut self) -> &mut Partition {
        self
    }

    #[inline(always)]
    fn leaves(&self, port: PortId) -> bool {
        self.reached[port.index()] != HERE
    }

    fn leaving(&self) -> Vec<PortId> {
        let ports = self.reached.iter().enumerate().filter(|(_, to)| **to != HERE);
        ports.map(|(port, _)| PortId::at(port)).collect()
    }
}

/// Which table names a packet's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// The connection's sender is here.
    Sender,
    /// Its receiver is here, its sender in this partition.
    Receiver(usize),
    /// Neither is here; its sender is in this partition.
    Elsewhere(usize),
}

impl Partition {
    /// The partition `me` of a cut, at the beginning of a run.
    fn new(graph: &Graph, cut: Arc<Cut>, routes: Routes, me: usize) -> Partition {
        let reached = |port| match cut.ends(graph, port) {
            [from, to] if from == me && to != me => to as u8,
            _ => HERE,
        };
        let ports = 2 * graph.links.len();
        Partition {
            me,
            routes,
            reached: (0..ports).map(|port| reached(PortId::at(port))).collect(),
            outgoing: (0..cut.parts()).map(|_| Batch::default()).collect(),
            first_out: Time::NEVER,
            moment: Moment::START,
            ends: vec![],
            foreign: vec![vec![]; cut.parts()],
            open: vec![],
            search_at: retirement::FIRST_SEARCH,
            phase: Phase::Runs,
            cleared: None,
            incidents_end: false,
            surplus: 0,
            in_doubt: false,
            wakings: Wakings::default(),
            cut,
        }
    }

    fn home(&self, packet: &Packet) -> Home {
        let (sender, receiver) = match packet.flags.has(Flags::TO_SENDER) {
            true => (packet.key.dst(), packet.key.src()),
            false => (packet.key.src(), packet.key.dst()),
        };
        match self.cut.of(sender) {
            here if here == self.me => Home::Sender,
            there if self.cut.of(receiver) == self.me => Home::Receiver(there),
            there => Home::Elsewhere(there),
        }
    }

    /// Hands a packet to the partition that its link reaches.
    fn hand_out(&mut self, port: PortId, at: Time, mut packet: Packet, options: &OptionStore) {
        if let Home::Receiver(_) = self.home(&packet) {
            packet.connection = self.ends[packet.connection.index()].at_sender;
        }
        let batch = &mut self.outgoing[usize::from(self.reached[port.index()])];
        if OptionStore::holds(packet.options) {
            batch.options.push(options.export(packet.options));
            packet.options = batch.options.len() as u32 - 1;
        }
        batch.packets.push(Crossing { port, at, packet });
        self.first_out = self.first_out.min(at);
    }

    fn note(&mut self, to: usize, note: Note) {
        self.outgoing[to].notes.push(note);
    }

    /// A connection has been given a place in the table here.
    fn admit(&mut self, id: ConnectionId, ends: Ends) {
        let needed = id.index() + 1;
        self.ends.resize(self.ends.len().max(needed), ends);
        self.ends[id.index()] = ends;
    }

    /// Something happens that one thread might not have: a connection takes its turn that may be
    /// over.
    pub(super) fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// The receiver of a connection takes its turn, in vain where its sender has finished before.
    pub(super) fn doubt_if_finished(&mut self, id: ConnectionId) {
        self.ends[id.index()].note_receiver_timer(self.moment);
    }

    /// The event at hand changes something of a connection, whose sender has finished or not.
    #[inline]
    pub(super) fn touch(&mut self, id: ConnectionId, finished: bool) {
        self.ends[id.index()].touch(self.moment, finished);
    }
}

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// The link to another partition has accepted a packet, which arrives there.
    pub(super) fn cross(&mut self, port: PortId) {
        // As it will leave: the queue may have marked it.
        let (&accepted, departs) = self.fabric.last(port);
        let at = departs + self.fabric.port(port).propagation();
        self.extent.part().hand_out(port, at, accepted, self.hosts.options());
        self.hosts.release_options(&accepted);
    }

    /// A packet is no more.
    pub(super) fn release_in_part(&mut self, packet: &Packet) {
        let part = self.extent.part();
        let (id, moment) = (packet.connection, part.moment);
        match part.home(packet) {
            Home::Elsewhere(sender) => part.note(sender, Note::Released { id, moment }),
            Home::Sender | Home::Receiver(_) => {
                part.touch(id, self.hosts.sender(id).finished());
                self.hosts.release(id);
            }
        }
    }

    /// A connection has been opened by its sender, which is here: its receiver is told.
    pub(super) fn announce(&mut self, id: ConnectionId, flow: FlowIndex, opening: Opening) {
        self.hosts.hold_until_retired(id);
        let part = self.extent.part();
        let receiver = part.cut.of(self.flows.flow(flow).dst);
        part.admit(id, Ends::opened(part.open.len()));
        part.open.push(id);
        if receiver != part.me {
            let start = self.flows.flow(flow).start;
            part.note(receiver, Note::Opened { id, flow, start, opening });
        }
    }

    /// A connection has been opened by a sender in the partition `from`, where it is called `there`.
    fn open_at_receiver(
        &mut self,
        from: usize,
        there: ConnectionId,
        flow: FlowIndex,
        opening: Opening,
    ) {
        let id = match opening {
            Opening::Copy(open) => self.admit_copy(flow, &open),
            Opening::Subflow(open) => {
                let profile = self.foresight.profile(self.flows.flow(flow));
                self.collect_subflows(flow, profile);
                self.admit_subflow(flow, profile, open)
            }
        };
        self.hosts.hold_until_retired(id);
        let part = self.extent.part();
        part.admit(id, Ends::known(there));
        let places = &mut part.foreign[from];
        places.resize(places.len().max(there.index() + 1), id);
        places[there.index()] = id;
    }

    /// A packet is on a link that reaches this partition.
    fn receive(&mut self, from: &Batch, crossing: &Crossing) {
        let &Crossing { port, at, mut packet } = crossing;
        if OptionStore::holds(packet.options) {
            packet.options = self.hosts.import_options(from.options[packet.options as usize]);
        }
        let part = self.extent.part();
        if let Home::Receiver(sender) = part.home(&packet) {
            packet.connection = part.foreign[sender][packet.connection.index()];
        }
        if self.fabric.receive(port, at, packet) {
            self.clock.schedule(EventKind::Arrival(port), at);
        }
    }
}
