//! What hosts ask for as receivers: one pull after the other, from all their connections in turn, as fast as full packets
//! come over the host's own link (NDP, section 3.2 of its paper).

use std::collections::VecDeque;

use tailcut_engine::Time;

use super::clock::Due;
use super::profile::Profile;
use super::Network;
use crate::fabric::Fabric;
use crate::measure::Observer;
use crate::packet::ConnectionId;
use crate::port::Clocking;
use crate::topology::Graph;

/// The pulls of one host.
#[derive(Debug, Clone)]
struct Pulling {
    /// The connections that want one, in the order of their turns.
    turns: VecDeque<ConnectionId>,
    /// How long the host's link takes for what a pull asks for.
    interval: Time,
    /// No pull leaves before.
    next: Time,
}

/// The pulls of all hosts; none where no transport pulls.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulls(Vec<Pulling>);

impl Pulls {
    pub fn new(profiles: &[Profile], graph: &Graph, fabric: &Fabric) -> Pulls {
        let pulls = |profile: &&Profile| profile.kind.pulls();
        let Some(Profile { tcp, sizes, .. }) = profiles.iter().find(pulls) else {
            return Pulls::default();
        };
        let host = |host: u32| {
            let link = &graph.links[fabric.host_port(host) as usize / 2];
            let interval = Clocking::new(link.rate).transmission(sizes.data(tcp.mss.0));
            Pulling { turns: VecDeque::new(), interval: Time(interval), next: Time::ZERO }
        };
        Pulls((0..graph.hosts).map(host).collect())
    }

    /// Whether any host ever asks.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// A connection joins those that want pulls: when the host is to be asked, unless it is to be already.
    fn join(&mut self, now: Time, host: u32, id: ConnectionId) -> Option<Time> {
        let Pulling { turns, next, .. } = &mut self.0[host as usize];
        turns.push_back(id);
        (turns.len() == 1).then(|| now.max(*next))
    }

    /// Whose turn it is.
    fn turn(&mut self, host: u32) -> Option<ConnectionId> {
        self.0[host as usize].turns.pop_front()
    }

    /// A pull leaves: when the next is to, if others wait.
    fn left(&mut self, now: Time, host: u32) -> Option<Time> {
        let pulling = &mut self.0[host as usize];
        pulling.next = now + pulling.interval;
        (!pulling.turns.is_empty()).then_some(pulling.next)
    }

    /// A connection waits no more.
    fn leave(&mut self, host: u32, id: ConnectionId) {
        self.0[host as usize].turns.retain(|&other| other != id);
    }
}

impl<O: Observer> Network<'_, O> {
    /// A packet has reached a receiver, which may want more.
    #[inline]
    pub(super) fn ask_for_pulls(&mut self, id: ConnectionId) {
        if self.hosts.receiver_mut(id).pulls().is_some_and(|receiver| receiver.joins()) {
            let host = self.hosts.key(id).dst();
            self.tally.follow(|observer| observer.pull_wanted(self.clock.now(), id));
            if let Some(at) = self.pulls.join(self.clock.now(), host, id) {
                self.clock.move_to(Due::Pull(host), at);
            }
        }
    }

    /// A host asks for one more packet: the connection whose turn it is does, and waits for its next turn.
    pub(super) fn pull(&mut self, host: u32) {
        let now = self.clock.now();
        while let Some(id) = self.pulls.turn(host) {
            let (key, sizes) = (self.hosts.key(id).reversed(), self.hosts.profile(id).sizes);
            let Some(receiver) = self.hosts.receiver_mut(id).pulls() else { continue };
            let Some(pull) = receiver.pull(&sizes) else { continue };
            self.tally.follow(|observer| observer.pull_turn(now, id));
            if receiver.joins() {
                self.tally.follow(|observer| observer.pull_wanted(now, id));
                self.pulls.join(now, host, id);
            }
            self.send(key, id, pull);
            if let Some(next) = self.pulls.left(now, host) {
                self.clock.move_to(Due::Pull(host), next);
            }
            return;
        }
    }

    /// A connection is over, and its place will be another's.
    pub(super) fn leave_pulls(&mut self, id: ConnectionId) {
        if self.hosts.receiver_mut(id).pulls().is_some_and(|receiver| receiver.leaves()) {
            self.pulls.leave(self.hosts.key(id).dst(), id);
        }
    }
}
