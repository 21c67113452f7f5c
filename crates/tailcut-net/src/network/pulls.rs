//! Pulls of receiving hosts: one after the other, from all their connections in turn, at the rate
//! at which full packets cross the host's own link (NDP, section 3.2 of its paper).

use std::collections::VecDeque;

use tailcut_engine::{Rate, Time};

use super::Network;
use super::clock::EventKind;
use super::profile::TransportProfile;
use crate::fabric::Fabric;
use crate::measure::Observer;
use crate::packet::ConnectionId;
use crate::port::SerializationRate;
use crate::topology::{Graph, HostId};

/// The pulls of one host.
#[derive(Debug, Clone)]
struct Pulling {
    /// The connections that want one, in the order of their turns.
    turns: VecDeque<ConnectionId>,
    /// The transmission time, on the link to the host, of the packet that a pull asks for.
    interval: Time,
    /// No pull leaves before.
    next: Time,
}

/// The pulls of all hosts; none where no transport pulls.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulls {
    hosts: Vec<Pulling>,
    /// Bytes on the wire of what a pull asks for.
    full_packet: u16,
}

impl Pulls {
    pub fn new(profiles: &[TransportProfile], graph: &Graph, fabric: &Fabric) -> Pulls {
        let pulls = |profile: &&TransportProfile| profile.kind.pulls();
        let Some(TransportProfile { tcp, sizes, .. }) = profiles.iter().find(pulls) else {
            return Pulls::default();
        };
        let full_packet = sizes.data(tcp.mss.0);
        let host = |host| {
            let link = &graph.links[fabric.host_port(host).link()];
            let interval = Time(SerializationRate::new(link.rate).transmission(full_packet));
            Pulling { turns: VecDeque::new(), interval, next: Time::ZERO }
        };
        Pulls { hosts: graph.each_host().map(host).collect(), full_packet }
    }

    /// The link to a host has another rate from now on. A pull that is due already keeps its time.
    pub fn change_rate(&mut self, host: HostId, rate: Rate) {
        let full_packet = self.full_packet;
        if let Some(pulling) = self.hosts.get_mut(host.index()) {
            pulling.interval = Time(SerializationRate::new(rate).transmission(full_packet));
        }
    }

    /// Whether any host ever asks.
    pub fn any(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// A connection joins those that want pulls: when the host is to be asked, unless it is to be
    /// already.
    fn join(&mut self, now: Time, host: HostId, id: ConnectionId) -> Option<Time> {
        let Pulling { turns, next, .. } = &mut self.hosts[host.index()];
        turns.push_back(id);
        (turns.len() == 1).then(|| now.max(*next))
    }

    /// Returns the connection whose turn it is.
    fn turn(&mut self, host: HostId) -> Option<ConnectionId> {
        self.hosts[host.index()].turns.pop_front()
    }

    /// A pull leaves: when the next is to, if others wait.
    fn left(&mut self, now: Time, host: HostId) -> Option<Time> {
        let pulling = &mut self.hosts[host.index()];
        pulling.next = now + pulling.interval;
        (!pulling.turns.is_empty()).then_some(pulling.next)
    }

    /// A connection waits no more.
    fn leave(&mut self, host: HostId, id: ConnectionId) {
        self.hosts[host.index()].turns.retain(|&other| other != id);
    }
}

impl<O: Observer> Network<'_, O> {
    /// A packet has reached a receiver, which may want more.
    #[inline]
    pub(super) fn ask_for_pulls(&mut self, id: ConnectionId) {
        if self.hosts.receiver_mut(id).pulls().is_some_and(|receiver| receiver.join_pull_queue()) {
            let host = self.hosts.receiver_info(id).key.src();
            self.tally.trace(|observer| observer.pull_wanted(self.clock.now(), id));
            if let Some(at) = self.pulls.join(self.clock.now(), host, id) {
                self.clock.reschedule(EventKind::Pull(host), at);
            }
        }
    }

    /// A host asks for one more packet: the connection whose turn it is does, and waits for its
    /// next turn.
    pub(super) fn pull(&mut self, host: HostId) {
        let now = self.clock.now();
        while let Some(id) = self.pulls.turn(host) {
            let (key, sizes) =
                (self.hosts.receiver_info(id).key, self.hosts.receiver_profile(id).sizes);
            let Some(receiver) = self.hosts.receiver_mut(id).pulls() else { continue };
            let Some(pull) = receiver.pull(&sizes) else { continue };
            self.tally.trace(|observer| observer.pull_turn(now, id));
            if receiver.join_pull_queue() {
                self.tally.trace(|observer| observer.pull_wanted(now, id));
                self.pulls.join(now, host, id);
            }
            self.send(key, id, pull);
            if let Some(next) = self.pulls.left(now, host) {
                self.clock.reschedule(EventKind::Pull(host), next);
            }
            return;
        }
    }

    /// A connection is over, and its place will be another's.
    pub(super) fn leave_pulls(&mut self, id: ConnectionId) {
        if self.hosts.receiver_mut(id).pulls().is_some_and(|receiver| receiver.leave_pull_queue()) {
            self.pulls.leave(self.hosts.receiver_info(id).key.src(), id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ConnectionId = ConnectionId(5);
    const B: ConnectionId = ConnectionId(2);

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    /// Two hosts whose links take 12 us for a full packet.
    fn pulls() -> Pulls {
        let pulling = Pulling { turns: VecDeque::new(), interval: us(12), next: Time::ZERO };
        Pulls { hosts: vec![pulling; 2], full_packet: 1_500 }
    }

    #[test]
    fn no_host_asks_where_no_transport_pulls() {
        let scenario = crate::network::tests::scenario();
        let profiles = crate::network::profile::profiles(&scenario);
        let fabric = Fabric::new(&scenario.fabric_spec()).expect("it is connected");
        assert!(!Pulls::new(&profiles, &scenario.graph, &fabric).any());
    }

    #[test]
    fn a_host_asks_as_fast_as_its_own_link_brings_full_packets() {
        let mut scenario = crate::network::tests::scenario();
        scenario.scheme.transport = crate::transport::TransportSpec::Ndp(Default::default());
        let profiles = crate::network::profile::profiles(&scenario);
        let fabric = Fabric::new(&scenario.fabric_spec()).expect("it is connected");
        let pulls = Pulls::new(&profiles, &scenario.graph, &fabric);
        let TransportProfile { tcp, sizes, .. } = &profiles[0];
        let rate = scenario.graph.links[0].rate;
        let packet = SerializationRate::new(rate).transmission(sizes.data(tcp.mss.0));
        let intervals: Vec<_> = pulls.hosts.iter().map(|host| host.interval.0).collect();
        assert_eq!((intervals, pulls.any()), (vec![packet; 3], true));
    }

    #[test]
    fn the_first_that_waits_wakes_its_host_and_others_wait_behind() {
        let mut pulls = pulls();
        assert_eq!(pulls.join(us(5), HostId(0), A), Some(us(5)));
        assert_eq!(pulls.join(us(6), HostId(0), B), None);
        assert_eq!(pulls.join(us(7), HostId(1), B), Some(us(7)), "another host");
        assert_eq!(
            [pulls.turn(HostId(0)), pulls.turn(HostId(0)), pulls.turn(HostId(0))],
            [Some(A), Some(B), None]
        );
    }

    #[test]
    fn one_pull_leaves_after_the_other() {
        let mut pulls = pulls();
        pulls.join(us(5), HostId(0), A);
        pulls.join(us(5), HostId(0), B);
        pulls.turn(HostId(0));
        assert_eq!(pulls.left(us(5), HostId(0)), Some(us(17)), "the other waits");
        pulls.turn(HostId(0));
        assert_eq!(pulls.left(us(17), HostId(0)), None, "nobody waits");
        assert_eq!(pulls.join(us(20), HostId(0), A), Some(us(29)), "the link is still busy");
        assert_eq!(pulls.join(us(20), HostId(1), A), Some(us(20)), "the other host's is not");
    }

    #[test]
    fn pulls_follow_the_rate_that_a_link_has_now() {
        let mut pulls = pulls();
        pulls.change_rate(HostId(0), Rate(100_000_000));
        for id in [A, B] {
            pulls.join(us(5), HostId(0), id);
        }
        pulls.turn(HostId(0));
        assert_eq!(pulls.left(us(5), HostId(0)), Some(us(125)));
    }

    #[test]
    fn serves_the_longest_waiting_and_skips_those_that_left() {
        let mut pulls = pulls();
        for id in [A, B, A] {
            pulls.join(us(1), HostId(0), id);
        }
        pulls.leave(HostId(0), A);
        assert_eq!([pulls.turn(HostId(0)), pulls.turn(HostId(0))], [Some(B), None]);
        // A host that was to be asked for nobody is asked again.
        assert_eq!(pulls.join(us(2), HostId(0), A), Some(us(2)));
    }
}
