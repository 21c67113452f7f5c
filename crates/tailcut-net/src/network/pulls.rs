//! Pulls of receiving hosts: one after the other, from all their connections in turn, at the rate
//! at which what they ask for crosses the host's own link (NDP, section 3.2 of its paper; Ultra
//! Ethernet's credits). Where nobody waits for a turn, idle connections may get one.
//!
//! A host with several interfaces asks at the sum of their rates where each packet chooses, as one
//! endpoint of many ports. Where connections keep to one, it asks by each at the rate of its link,
//! as one endpoint per plane or rail.

use std::collections::VecDeque;

use tailcut_engine::{Rate, Time};

use super::Network;
use super::clock::EventKind;
use super::interface_turns::interfaces;
use super::partition::Extent;
use super::profile::TransportProfile;
use crate::fabric::Fabric;
use crate::measure::Observer;
use crate::packet::{ConnectionId, Flags};
use crate::port::SerializationRate;
use crate::topology::{Graph, HostId, PortId};
use crate::transport::custom_endpoints::{PullPace, PullRequest, Rejoin};
use crate::transport::grant_pace::GrantPace;

/// The number of a pace at which a host asks: its own, where it has one interface or each packet
/// chooses among several; else that of the host's link by which the packets come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacerId(pub u32);

impl PacerId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The pulls that share a pace.
#[derive(Debug, Clone)]
struct Pulling {
    /// The connections that want one, in the order of their turns.
    turns: VecDeque<ConnectionId>,
    /// The connections that get one where nobody waits.
    idle: VecDeque<ConnectionId>,
    pace: PullPace,
    /// No pull leaves before.
    next: Time,
    /// The host is to be asked.
    is_due: bool,
}

impl Pulling {
    fn new(rate: Rate, full_packet: u16) -> Pulling {
        let pace = Pulling::pace(rate, full_packet);
        let (turns, idle) = (VecDeque::new(), VecDeque::new());
        Pulling { turns, idle, pace, next: Time::ZERO, is_due: false }
    }

    fn pace(rate: Rate, full_packet: u16) -> PullPace {
        let full_packet = Time(SerializationRate::new(rate).transmission(full_packet));
        PullPace { rate, full_packet }
    }
}

/// The links of hosts with several interfaces.
#[derive(Debug, Clone)]
struct HostLinks {
    /// The rate of each, towards its host.
    rates: Vec<Rate>,
    /// Links that share a pace.
    shared: usize,
}

/// The pulls of all hosts; none where no transport pulls.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulls {
    pacers: Vec<Pulling>,
    /// By host: the pace that slows requests further; none where only links' count.
    slowed: Vec<GrantPace>,
    links: Option<Box<HostLinks>>,
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
        let slowed = graph.each_host().filter_map(|host| kind.grant_pace(seed, host.0)).collect();
        let of_host = |host: HostId| {
            let link = &graph.links[fabric.host_port(host).link()];
            Pulling::new(link.rate, full_packet)
        };
        if !fabric.has_interfaces() {
            let pacers = graph.each_host().map(of_host).collect();
            return Pulls { pacers, slowed, links: None, full_packet };
        }
        let rates: Vec<Rate> =
            graph.links[..interfaces(graph)].iter().map(|link| link.rate).collect();
        let shared = fabric.interfaces_per_connection() as usize;
        let pacers = rates.chunks(shared).map(|links| Pulling::new(links[0], full_packet));
        let links = Some(Box::new(HostLinks { rates: rates.clone(), shared }));
        let mut pulls = Pulls { pacers: pacers.collect(), slowed, links, full_packet };
        pulls.refresh(fabric);
        pulls
    }

    /// The link of a port has another rate from now on. A pull that is due already keeps its time.
    pub fn change_rate(&mut self, graph: &Graph, port: PortId, rate: Rate) {
        let Some(host) = graph.host(graph.far_end(port)) else { return };
        match &mut self.links {
            None => self.set_rate(host.index(), rate),
            Some(links) => links.rates[port.link()] = rate,
        }
    }

    fn set_rate(&mut self, pacer: usize, rate: Rate) {
        let full_packet = self.full_packet;
        if let Some(pulling) = self.pacers.get_mut(pacer) {
            pulling.pace = Pulling::pace(rate, full_packet);
        }
    }

    /// Lets hosts with several interfaces ask at the rate of their links that senders take for up;
    /// of all, if there is none.
    pub fn refresh(&mut self, fabric: &Fabric) {
        let Some(links) = self.links.clone().filter(|_| self.any()) else { return };
        for (pacer, rates) in links.rates.chunks(links.shared).enumerate() {
            let first = pacer * links.shared;
            let is_up = |link: usize| fabric.is_known_up(PortId::both_directions(link)[0]);
            let up =
                (0..rates.len()).filter(|place| is_up(first + place)).map(|place| rates[place].0);
            let sum: u64 = up.sum();
            let all = || rates.iter().map(|rate| rate.0).sum();
            self.set_rate(pacer, Rate(if sum > 0 { sum } else { all() }));
        }
    }

    /// A packet has reached a host, whose requests may go by what it has met.
    #[inline]
    pub fn note_arrival(&mut self, now: Time, host: HostId, flags: Flags) {
        let Some(slowed) = self.slowed.get_mut(host.index()) else { return };
        if flags.has(Flags::DATA) || flags.is_trimmed() {
            slowed.on_arrival(now, flags);
        }
    }

    /// Whether any host ever asks.
    pub fn any(&self) -> bool {
        !self.pacers.is_empty()
    }

    /// Returns the number of paces.
    pub fn pacers(&self) -> u32 {
        self.pacers.len() as u32
    }

    /// A connection joins those that want pulls: when the host is to be asked, unless it is to be
    /// already.
    fn join(&mut self, now: Time, pacer: PacerId, id: ConnectionId) -> Option<Time> {
        let Pulling { turns, next, is_due, .. } = &mut self.pacers[pacer.index()];
        turns.push_back(id);
        (!std::mem::replace(is_due, true)).then(|| now.max(*next))
    }

    /// Returns the connection whose turn it is, and whether it is an idle one.
    fn turn(&mut self, pacer: PacerId) -> Option<(ConnectionId, bool)> {
        let Pulling { turns, idle, is_due, .. } = &mut self.pacers[pacer.index()];
        let waiting = turns.pop_front().map(|id| (id, false));
        let next = waiting.or_else(|| idle.pop_front().map(|id| (id, true)));
        *is_due = next.is_some();
        next
    }

    /// A connection of `host` has made a request: when the next may be made at this pace, if any
    /// connection wants one.
    fn left(
        &mut self,
        now: Time,
        (pacer, host): (PacerId, HostId),
        id: ConnectionId,
        request: &PullRequest,
    ) -> Option<Time> {
        let pulling = &mut self.pacers[pacer.index()];
        match request.rejoin {
            Rejoin::Queue => pulling.turns.push_back(id),
            Rejoin::Idle => pulling.idle.push_back(id),
            Rejoin::Leave => {}
        }
        let pause = request.pause;
        let slowed = self.slowed.get(host.index());
        pulling.next = now + slowed.map_or(pause, |slowed| slowed.stretched(pause));
        pulling.is_due = !(pulling.turns.is_empty() && pulling.idle.is_empty());
        pulling.is_due.then_some(pulling.next)
    }

    /// A connection waits no more.
    fn leave(&mut self, pacer: PacerId, id: ConnectionId) {
        let Pulling { turns, idle, .. } = &mut self.pacers[pacer.index()];
        turns.retain(|&other| other != id);
        idle.retain(|&other| other != id);
    }

    /// A connection of one of `hosts` hosts waits no more, at whatever pace.
    fn leave_all(&mut self, hosts: u32, host: HostId, id: ConnectionId) {
        let each = self.pacers.len() as u32 / hosts;
        (host.0 * each..(host.0 + 1) * each).for_each(|pacer| self.leave(PacerId(pacer), id));
    }
}

impl<O: Observer, E: Extent> Network<'_, O, E> {
    /// A packet has reached a receiver, which may want more.
    #[inline]
    pub(super) fn ask_for_pulls(&mut self, id: ConnectionId) {
        if self.hosts.receiver_mut(id).pulls().is_some_and(|receiver| receiver.join_pull_queue()) {
            let pacer = self.pacer_of(id);
            self.tally.trace(|observer| observer.pull_wanted(self.clock.now(), id));
            if let Some(at) = self.pulls.join(self.clock.now(), pacer, id) {
                self.clock.reschedule(EventKind::Pull(pacer), at);
            }
        }
    }

    /// Returns the pace at which a receiver asks.
    #[inline]
    fn pacer_of(&self, id: ConnectionId) -> PacerId {
        let key = self.hosts.receiver_info(id).key;
        match self.fabric.has_interfaces() {
            false => PacerId(key.src().0),
            true => {
                let port = self.fabric.arrival_interface(key.reversed());
                port.map_or(PacerId(key.src().0), |port| PacerId(port.link() as u32))
            }
        }
    }

    /// A host asks for one more packet: the connection whose turn it is does, and waits for its
    /// next turn.
    pub(super) fn pull(&mut self, pacer: PacerId) {
        let now = self.clock.now();
        let pace = self.pulls.pacers[pacer.index()].pace;
        while let Some((id, unasked)) = self.pulls.turn(pacer) {
            let &TransportProfile { sizes, has_entropy, .. } = self.hosts.receiver_profile(id);
            let key = self.hosts.receiver_info(id).key;
            if E::IS_PART && self.hosts.receiver(id).is_complete() {
                self.extent.part().doubt_if_finished(id);
            }
            let Some(receiver) = self.hosts.receiver_mut(id).pulls() else { continue };
            let Some(request) = receiver.pull(&sizes, pace, unasked) else { continue };
            self.tally.trace(|observer| observer.pull_turn(now, id));
            if request.rejoin != Rejoin::Leave {
                self.tally.trace(|observer| observer.pull_wanted(now, id));
            }
            let next = self.pulls.left(now, (pacer, key.src()), id, &request);
            let key = if has_entropy { key.with_dport(request.segment.entropy) } else { key };
            self.send(key, id, request.segment);
            if let Some(next) = next {
                self.clock.reschedule(EventKind::Pull(pacer), next);
            }
            return;
        }
    }

    /// A connection is over, and its place will be another's.
    pub(super) fn leave_pulls(&mut self, id: ConnectionId) {
        if self.hosts.receiver_mut(id).pulls().is_some_and(|receiver| receiver.leave_pull_queue()) {
            if E::IS_PART {
                self.extent.part().doubt();
            }
            let host = self.hosts.receiver_info(id).key.src();
            self.pulls.leave_all(self.scenario.graph.hosts, host, id);
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
        let pacers = vec![Pulling::new(Rate(1_000_000_000), 1_500); 2];
        Pulls { pacers, full_packet: 1_500, ..Pulls::default() }
    }

    /// A request for a full packet, by a connection that does what `rejoin` says.
    fn left(pulls: &mut Pulls, now: u64, id: ConnectionId, rejoin: Rejoin) -> Option<Time> {
        let segment = Segment::bare(Flags::PULL, 0, 64);
        let pause = pulls.pacers[0].pace.full_packet;
        pulls.left(us(now), (PacerId(0), HostId(0)), id, &PullRequest { segment, pause, rejoin })
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
        let intervals: Vec<_> = pulls.pacers.iter().map(|pacer| pacer.pace.full_packet.0).collect();
        assert_eq!((intervals, pulls.any()), (vec![packet; 3], true));
    }

    #[test]
    fn the_first_that_waits_wakes_its_host_and_others_wait_behind() {
        let mut pulls = pulls();
        assert_eq!(pulls.join(us(5), PacerId(0), A), Some(us(5)));
        assert_eq!(pulls.join(us(6), PacerId(0), B), None);
        assert_eq!(pulls.join(us(7), PacerId(1), B), Some(us(7)), "another host");
        assert_eq!(
            [pulls.turn(PacerId(0)), pulls.turn(PacerId(0)), pulls.turn(PacerId(0))],
            [Some((A, false)), Some((B, false)), None]
        );
    }

    #[test]
    fn one_pull_leaves_after_the_other() {
        let mut pulls = pulls();
        pulls.join(us(5), PacerId(0), A);
        pulls.join(us(5), PacerId(0), B);
        pulls.turn(PacerId(0));
        assert_eq!(left(&mut pulls, 5, A, Rejoin::Leave), Some(us(17)), "the other waits");
        pulls.turn(PacerId(0));
        assert_eq!(left(&mut pulls, 17, B, Rejoin::Leave), None, "nobody waits");
        assert_eq!(pulls.join(us(20), PacerId(0), A), Some(us(29)), "the link is still busy");
        assert_eq!(pulls.join(us(20), PacerId(1), A), Some(us(20)), "the other host's is not");
    }

    #[test]
    fn idle_connections_have_turns_when_nobody_waits() {
        let mut pulls = pulls();
        pulls.join(us(5), PacerId(0), A);
        pulls.turn(PacerId(0));
        assert_eq!(left(&mut pulls, 5, A, Rejoin::Idle), Some(us(17)));
        assert_eq!(pulls.join(us(6), PacerId(0), B), None, "the host is to be asked already");
        assert_eq!(pulls.turn(PacerId(0)), Some((B, false)));
        assert_eq!(left(&mut pulls, 17, B, Rejoin::Leave), Some(us(29)));
        assert_eq!(pulls.turn(PacerId(0)), Some((A, true)));
        pulls.leave(PacerId(0), A);
        assert_eq!(pulls.turn(PacerId(0)), None);
    }

    #[test]
    fn pulls_follow_the_rate_that_a_link_has_now() {
        let mut pulls = pulls();
        pulls.set_rate(0, Rate(100_000_000));
        for id in [A, B] {
            pulls.join(us(5), PacerId(0), id);
        }
        pulls.turn(PacerId(0));
        assert_eq!(left(&mut pulls, 5, A, Rejoin::Leave), Some(us(125)));
    }

    #[test]
    fn serves_the_longest_waiting_and_skips_those_that_left() {
        let mut pulls = pulls();
        for id in [A, B, A] {
            pulls.join(us(1), PacerId(0), id);
        }
        pulls.leave(PacerId(0), A);
        assert_eq!([pulls.turn(PacerId(0)), pulls.turn(PacerId(0))], [Some((B, false)), None]);
        // A host that was to be asked for nobody is asked again.
        assert_eq!(pulls.join(us(2), PacerId(0), A), Some(us(2)));
    }
}
