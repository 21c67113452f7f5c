//! When a connection is over whose ends lie in different partitions.
//!
//! A run on one thread frees a connection, and cancels its timers, at the event by which nothing can
//! be heard of it any more: timers of its receiver, too, which may repeat a SYN-ACK that nobody
//! waits for. A partition knows its own end alone. From time to time it asks for all
//! whose sender has finished; what it holds of them and what their receivers hold add up to the
//! packets under way. Nothing but memory depends on when it asks: a timer that has fired since the
//! connection was over does nothing, and is not counted.

use super::Partition;
use super::exchange::Note;
use super::moment::Moment;
use crate::measure::Observer;
use crate::network::Network;
use crate::packet::ConnectionId;

/// Open connections that call for the first search.
pub(super) const FIRST_SEARCH: usize = 256;

/// A connection in the table of a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// Its place in the table of its sender's partition.
    pub at_sender: ConnectionId,
    /// Its place in [`Partition::open`]; meaningless at the receiver's partition.
    place: usize,
    /// The last event that changed anything of it here.
    pub touched: Moment,
    /// The event by which its sender finished.
    finished: Option<Moment>,
    /// The last timer of its receiver that did something.
    receiver_timer: Moment,
    /// The last timers here, of the sender and of the receiver, that found nothing to wait for.
    idle_timers: [Option<Moment>; 2],
}

impl Ends {
    /// The connection is opened here, and put at this place of the open ones.
    pub fn opened(place: usize) -> Ends {
        Ends { place, ..Ends::known(ConnectionId(0)) }
    }

    /// The connection has been opened elsewhere, at this place of the table there.
    pub fn known(at_sender: ConnectionId) -> Ends {
        let (touched, receiver_timer) = (Moment::START, Moment::START);
        let (finished, idle_timers) = (None, [None; 2]);
        Ends { at_sender, place: 0, touched, finished, receiver_timer, idle_timers }
    }

    /// An event changes something of the connection, whose sender has finished or not.
    #[inline]
    pub fn touch(&mut self, moment: Moment, finished: bool) {
        self.touched = moment;
        if finished {
            self.finished.get_or_insert(moment);
        }
    }

    /// The timer of its receiver does something.
    pub fn note_receiver_timer(&mut self, moment: Moment) {
        self.receiver_timer = moment;
    }

    /// The timer of its sender (0) or receiver (1) finds nothing to wait for.
    pub fn note_idle_timer(&mut self, end: usize, moment: Moment) {
        self.idle_timers[end] = Some(moment);
    }

    /// The timers that found nothing to wait for.
    pub fn idle_timers(&self) -> impl Iterator<Item = Moment> {
        self.idle_timers.into_iter().flatten()
    }
}

impl Partition {
    /// A connection that was opened here is retired.
    fn close(&mut self, id: ConnectionId) {
        let place = self.ends[id.index()].place;
        self.open.swap_remove(place);
        if let Some(moved) = self.open.get(place) {
            self.ends[moved.index()].place = place;
        }
    }

    /// Whether there are enough connections to search for those that are over.
    pub(super) fn searches(&self) -> bool {
        self.open.len() >= self.search_at
    }
}

impl<O: Observer> Network<'_, O, Partition> {
    /// Looks for connections that are over among those that were opened here.
    pub(super) fn search(&mut self) {
        let mut at = 0;
        while let Some(&id) = self.extent.open.get(at) {
            if !self.hosts.sender(id).finished() {
                at += 1;
                continue;
            }
            let holds = self.hosts.packets_held(id);
            let Ends { touched, finished, receiver_timer, .. } = self.extent.ends[id.index()];
            let finished = finished.unwrap_or(touched);
            self.extent.in_doubt |= receiver_timer > finished;
            let receiver = self.extent.cut.of(self.hosts.sender_info(id).key.dst());
            if receiver != self.extent.me {
                self.extent.note(receiver, Note::Finished { id, holds, touched, finished });
            } else if holds == 0 && !self.hosts.receiver(id).repeats_fin() {
                self.extent.close(id);
                self.retire_in_part(id, touched);
                continue;
            }
            at += 1;
        }
        let open = self.extent.open.len();
        self.extent.search_at = open + FIRST_SEARCH.max(open / 2);
    }

    /// The sender of a connection has finished, in the partition `from`: the receiver's end is
    /// retired where nothing is under way.
    pub(super) fn answer_search(
        &mut self,
        from: usize,
        there: ConnectionId,
        holds: i64,
        [touched, finished]: [Moment; 2],
    ) {
        let id = self.extent.foreign[from][there.index()];
        self.extent.in_doubt |= self.extent.ends[id.index()].receiver_timer > finished;
        if holds + self.hosts.packets_held(id) != 0 || self.hosts.receiver(id).repeats_fin() {
            return;
        }
        let over = touched.max(self.extent.ends[id.index()].touched);
        self.retire_in_part(id, over);
        self.extent.note(from, Note::Retired { id: there, over });
    }

    /// The receiver's end of a connection is retired: so is the sender's.
    pub(super) fn retire_sender(&mut self, id: ConnectionId, over: Moment) {
        self.extent.close(id);
        self.retire_in_part(id, over);
    }

    /// Retires what is here of a connection that was over at this moment.
    fn retire_in_part(&mut self, id: ConnectionId, over: Moment) {
        let since = self.extent.ends[id.index()].idle_timers().filter(|moment| *moment > over);
        self.extent.surplus += since.count() as u64;
        self.retire(id);
    }
}
