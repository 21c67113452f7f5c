//! Pulls of receiving hosts: one after the other, from all their connections in turn, at the rate
//! at which what they ask for crosses the host's own link (NDP, section 3.2 of its paper; Ultra
//! Ethernet's credits). Where nobody waits for a turn, idle connections may get one.

use std::collections::VecDeque;

use tailcut_engine::{Rate, Time};

use super::Network;
use super::clock::EventKind;
use super::partition::Extent;
use super::profile::TransportProfile;
use crate::fabric::Fabric;
use crate::measure::Observer;
use crate::packet::{ConnectionId, Flags};
use crate::port::SerializationRate;
use crate::topology::{Graph, HostId};
use crate::transport::custom_endpoints::{PullPace, PullRequest, Rejoin};
use crate::transport::grant_pace::GrantPace;

/// The pulls of one host.
#[derive(Debug, Clone)]
struct Pulling {
    /// The connections that want one, in the order of their turns.
    turns: VecDeque<ConnectionId>,
    /// The connections that get one where nobody waits.
    idle: VecDeque<ConnectionId>,
    pace: PullPace,
    /// The pace that slows requests further; `None` where only the link's counts.
    slowed: Option<Box<GrantPace>>,
    /// No pull leaves before.
    next: Time,
    /// The host is to be asked.
    is_due: bool,
}

impl Pulling {
    fn new(rate: Rate, full_packet: u16) -> Pulling {
        let pace = Pulling::pace(rate, full_packet);
        let (turns, idle) = (VecDeque::new(), VecDeque::new());
        Pulling { turns, idle, pace, slowed: None, next: Time::ZERO, is_due: false }
    }

    fn pace(rate: Rate, full_packet: u16) -> PullPace {
        let full_packet = Time(SerializationRate::new(rate).transmission(full_packet));
        PullPace { rate, full_packet }
    }
}

/// The pulls of all hosts; none where no transport pulls.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulls {
    hosts: Vec<Pulling>,
    /// Bytes on the wire of what a pull asks for.
    full_packet: u16,
}

impl Pulls {
    pub fn new(profiles: &[TransportProfile], graph: &Graph, fabric: &Fabric, seed: u64) -> Pulls {
        let pulls = |profile: &&TransportProfile| profile.kind.pulls();
        let Some(TransportProfile { tcp, sizes, kind, .. }) = profiles.iter().find(pulls) else {
            return Pulls::default();
        };
        let full_packet = sizes.data(tcp.mss.0);
        let host = |host: HostId| {
            let link = &graph.links[fabric.host_port(host).link()];
            let slowed = kind.grant_pace(seed, host.0).map(Box::new);
            Pulling { slowed, ..Pulling::new(link.rate, full_packet) }
        };
        Pulls { hosts: graph.each_host().map(host).collect(), full_packet }
    }

    /// The link to a host has another rate from now on. A pull that is due already keeps its time.
    pub fn change_rate(&mut self, host: HostId, rate: Rate) {
        let full_packet = self.full_packet;
        if let Some(pulling) = self.hosts.get_mut(host.index()) {
            pulling.pace = Pulling::pace(rate, full_packet);
        }
    }

    /// A packet has reached a host, whose requests may go by what it has met.
    #[inline]
    pub fn note_arrival(&mut self, now: Time, host: HostId, flags: Flags) {
        let data = flags.has(Flags::DATA) || flags.is_trimmed();
        let Some(pulling) = self.hosts.get_mut(host.index()).filter(|_| data) else { return };
        if let Some(slowed) = &mut pulling.slowed {
            slowed.on_arrival(now, flags);
        }
    }

    /// Whether any host ever asks.
    pub fn any(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// A connection joins those that want pulls: when the host is to be asked, unless it is to be
    /// already.
    fn join(&mut self, now: Time, host: HostId, id: ConnectionId) -> Option<Time> {
        let Pulling { turns, next, is_due, .. } = &mut self.hosts[host.index()];
        turns.push_back(id);
        (!std::mem::replace(is_due, true)).then(|| now.max(*next))
    }

    /// Returns the connection whose turn it is, and whether it is an idle one.
    fn turn(&mut self, host: HostId) -> Option<(ConnectionId, bool)> {
        let Pulling { turns, idle, is_due, .. } = &mut self.hosts[host.index()];
        let waiting = turns.pop_front().map(|id| (id, false));
        let next = waiting.or_else(|| idle.pop_front().map(|id| (id, true)));
        *is_due = next.is_some();
        next
    }

    /// A connection has made a request: when the host is to make its next, if any connection may.
    fn left(
        &mut self,
        now: Time,
        host: HostId,
        id: ConnectionId,
        request: &PullRequest,
    ) -> Option<Time> {
        let pulling = &mut self.hosts[host.index()];
        match request.rejoin {
            Rejoin::Queue => pulling.turns.push_back(id),
            Rejoin::Idle => pulling.idle.push_back(id),
            Rejoin::Leave => {}
        }
        let pause = request.pause;
        pulling.next =
            now + pulling.slowed.as_ref().map_or(pause, |slowed| slowed.stretched(pause));
        pulling.is_due = !(pulling.turns.is_empty() && pulling.idle.is_empty());
        pulling.is_due.then_some(pulling.next)
    }

    /// A connection waits no more.
    fn leave(&mut self, host: HostId, id: ConnectionId) {
        let Pulling { turns, idle, .. } = &mut self.hosts[host.index()];
        turns.retain(|&other| other != id);
        idle.retain(|&other| other != id);
    }
}

impl<O: Observer, E: Extent> Network<'_, O, E> {
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
        let pace = self.pulls.hosts[host.index()].pace;
        while let Some((id, unasked)) = self.pulls.turn(host) {
            let &TransportProfile { sizes, has_entropy, .. } = self.hosts.receiver_profile(id);
            let key = self.hosts.receiver_info(id).key;
            let Some(receiver) = self.hosts.receiver_mut(id).pulls() else { continue };
            let Some(request) = receiver.pull(&sizes, pace, unasked) else { continue };
            self.tally.trace(|observer| observer.pull_turn(now, id));
            if request.rejoin != Rejoin::Leave {
                self.tally.trace(|observer| observer.pull_wanted(now, id));
            }
            let next = self.pulls.left(now, host, id, &request);
            let key = if has_entropy { key.with_dport(request.segment.entropy) } else { key };
            self.send(key, id, request.segment);
            if let Some(next) = next {
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

    use crate::transport::Segment;

    const A: ConnectionId = ConnectionId(5);
    const B: ConnectionId = ConnectionId(2);

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    /// Two hosts whose links take 12 us for a full packet.
    fn pulls() -> Pulls {
        Pulls { hosts: vec![Pulling::new(Rate(1_000_000_000), 1_500); 2], full_packet: 1_500 }
    }

    /// A request for a full packet, by a connection that does what `rejoin` says.
    fn left(pulls: &mut Pulls, now: u64, id: ConnectionId, rejoin: Rejoin) -> Option<Time> {
        let segment = Segment::bare(Flags::PULL, 0, 64);
        let pause = pulls.hosts[0].pace.full_packet;
        pulls.left(us(now), HostId(0), id, &PullRequest { segment, pause, rejoin })
    }

    #[test]
    fn no_host_asks_where_no_transport_pulls() {
        let scenario = crate::network::tests::scenario();
        let profiles = crate::network::profile::profiles(&scenario);
        let fabric = Fabric::new(&scenario.fabric_spec()).expect("it is connected");
        assert!(!Pulls::new(&profiles, &scenario.graph, &fabric, 1).any());
    }

    #[test]
    fn a_host_asks_as_fast_as_its_own_link_brings_full_packets() {
        let mut scenario = crate::network::tests::scenario();
        scenario.scheme.transport = crate::transport::TransportSpec::Ndp(Default::default());
        let profiles = crate::network::profile::profiles(&scenario);
        let fabric = Fabric::new(&scenario.fabric_spec()).expect("it is connected");
        let pulls = Pulls::new(&profiles, &scenario.graph, &fabric, 1);
        let TransportProfile { tcp, sizes, .. } = &profiles[0];
        let rate = scenario.graph.links[0].rate;
        let packet = SerializationRate::new(rate).transmission(sizes.data(tcp.mss.0));
        let intervals: Vec<_> = pulls.hosts.iter().map(|host| host.pace.full_packet.0).collect();
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
            [Some((A, false)), Some((B, false)), None]
        );
    }

    #[test]
    fn one_pull_leaves_after_the_other() {
        let mut pulls = pulls();
        pulls.join(us(5), HostId(0), A);
        pulls.join(us(5), HostId(0), B);
        pulls.turn(HostId(0));
        assert_eq!(left(&mut pulls, 5, A, Rejoin::Leave), Some(us(17)), "the other waits");
        pulls.turn(HostId(0));
        assert_eq!(left(&mut pulls, 17, B, Rejoin::Leave), None, "nobody waits");
        assert_eq!(pulls.join(us(20), HostId(0), A), Some(us(29)), "the link is still busy");
        assert_eq!(pulls.join(us(20), HostId(1), A), Some(us(20)), "the other host's is not");
    }

    #[test]
    fn idle_connections_have_turns_when_nobody_waits() {
        let mut pulls = pulls();
        pulls.join(us(5), HostId(0), A);
        pulls.turn(HostId(0));
        assert_eq!(left(&mut pulls, 5, A, Rejoin::Idle), Some(us(17)));
        assert_eq!(pulls.join(us(6), HostId(0), B), None, "the host is to be asked already");
        assert_eq!(pulls.turn(HostId(0)), Some((B, false)));
        assert_eq!(left(&mut pulls, 17, B, Rejoin::Leave), Some(us(29)));
        assert_eq!(pulls.turn(HostId(0)), Some((A, true)));
        pulls.leave(HostId(0), A);
        assert_eq!(pulls.turn(HostId(0)), None);
    }

    #[test]
    fn pulls_follow_the_rate_that_a_link_has_now() {
        let mut pulls = pulls();
        pulls.change_rate(HostId(0), Rate(100_000_000));
        for id in [A, B] {
            pulls.join(us(5), HostId(0), id);
        }
        pulls.turn(HostId(0));
        assert_eq!(left(&mut pulls, 5, A, Rejoin::Leave), Some(us(125)));
    }

    #[test]
    fn serves_the_longest_waiting_and_skips_those_that_left() {
        let mut pulls = pulls();
        for id in [A, B, A] {
            pulls.join(us(1), HostId(0), id);
        }
        pulls.leave(HostId(0), A);
        assert_eq!([pulls.turn(HostId(0)), pulls.turn(HostId(0))], [Some((B, false)), None]);
        // A host that was to be asked for nobody is asked again.
        assert_eq!(pulls.join(us(2), HostId(0), A), Some(us(2)));
    }
}
