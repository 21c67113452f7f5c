//! Stories: the events of chosen flows, packet by packet, from the first SYN to the last
//! acknowledgement.

mod port_backlog;
mod records;

use std::collections::BTreeMap;

use tailcut_engine::{Rate, Time};

use super::{Loss, Observer, PacketView, SenderView};
use crate::packet::Flags;
use crate::port::SerializationRate;
use crate::topology::{Graph, HostId, NodeId, PortId};
use crate::transport::tcp::CongestionState;
use port_backlog::{Accepted, PortBacklog, Served};
pub use records::{Act, ActKind, Hop, Journey, JourneyEnd, JourneyOutcome, PacketKind, Story};

/// Location of a packet of a story.
#[derive(Debug, Clone, Copy)]
enum PacketPlace {
    /// At its own host.
    Host,
    /// Waits in the scheduled queue of a link. `before` counts the packets that the link had
    /// accepted by then; `ahead`, those among them that had not left: all, and of the same flow.
    Queue { link: PortId, since: Time, before: Served, ahead: (u32, u32) },
    /// Is on a link, due at its end at `due`.
    Link { link: PortId, due: Time },
}

/// A packet in the network, by its number in its story.
#[derive(Debug, Clone, Copy)]
struct Walker {
    number: usize,
    place: PacketPlace,
}

/// The properties by which packets of a flow are recognised; several packets may share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Looks {
    copy: u8,
    sport: u16,
    towards_sender: bool,
    kind: PacketKind,
    seq: u64,
}

impl Looks {
    fn of(packet: &PacketView) -> Looks {
        let towards_sender = packet.flags.has(Flags::TO_SENDER);
        // Other packets may be counted from the sender's current position.
        let counts = packet.flags.has(Flags::DATA)
            || packet.flags.is_trimmed()
            || packet.flags.is_returned();
        let kind = match PacketKind::of(packet.flags, true) {
            PacketKind::Cut | PacketKind::Pull => PacketKind::Ack,
            kind => kind,
        };
        let sport = if towards_sender { packet.dport } else { packet.sport };
        let seq = if counts { packet.seq } else { 0 };
        Looks { copy: packet.copy, sport, towards_sender, kind, seq }
    }
}

/// A story while it is being recorded.
#[derive(Debug, Clone, Default)]
struct Draft {
    story: Story,
    under_way: BTreeMap<Looks, Vec<Walker>>,
    /// Each sender after its latest act, by copy and source port.
    senders: BTreeMap<(u8, u16), SenderView>,
}

/// The current state of a directed link.
#[derive(Debug, Clone)]
struct Link {
    near: NodeId,
    /// The switch inside a server that hands packets over to this link of its host.
    relay: Option<NodeId>,
    far: NodeId,
    rate: Rate,
    propagation: Time,
}

/// Observer that records the stories of chosen flows.
#[derive(Debug, Clone)]
pub struct StoryRecorder {
    drafts: BTreeMap<u64, Draft>,
    links: Vec<Link>,
    ports: Vec<PortBacklog>,
    most_packets: usize,
}

impl StoryRecorder {
    /// Creates a recorder for `flows` in `graph`, with at most `most_packets` packets per story.
    pub fn new(graph: &Graph, flows: &[u64], most_packets: usize) -> StoryRecorder {
        let links = (0..graph.links.len()).flat_map(PortId::both_directions).map(|port| {
            let link = &graph.links[port.link()];
            let (near, far) = (graph.far_end(port.reversed()), graph.far_end(port));
            let relay = graph.relay(port).map(|switch| switch.node(graph.hosts));
            Link { near, relay, far, rate: link.rate, propagation: link.propagation }
        });
        let links: Vec<Link> = links.collect();
        let draft =
            |flow: u64| Draft { story: Story { flow, ..Story::default() }, ..Draft::default() };
        StoryRecorder {
            drafts: flows.iter().map(|&flow| (flow, draft(flow))).collect(),
            ports: vec![PortBacklog::default(); links.len()],
            links,
            most_packets,
        }
    }

    /// Returns the stories, ordered by flow.
    pub fn into_stories(self) -> Vec<Story> {
        self.drafts.into_values().map(|draft| draft.story).collect()
    }

    fn transmission(&self, link: PortId, bytes: u16) -> Time {
        Time(SerializationRate::new(self.links[link.index()].rate).transmission(bytes))
    }
}

impl Draft {
    fn send(&mut self, now: Time, packet: &PacketView, most: usize) {
        if self.story.packets.len() >= most {
            self.story.left_out += 1;
            return;
        }
        let looks = Looks::of(packet);
        let walker = Walker { number: self.story.packets.len(), place: PacketPlace::Host };
        self.under_way.entry(looks).or_default().push(walker);
        let tcp =
            self.senders.get(&(packet.copy, looks.sport)).is_none_or(|sender| sender.tcp.is_some());
        let repeated_syn = looks.kind == PacketKind::Syn
            && self.story.packets.iter().any(|p| {
                p.kind == PacketKind::Syn && p.port == looks.sport && p.copy == looks.copy
            });
        self.story.packets.push(Journey {
            copy: packet.copy,
            port: looks.sport,
            kind: PacketKind::of(packet.flags, !tcp),
            back: looks.towards_sender,
            seq: packet.seq,
            bytes: packet.payload,
            ack: if looks.towards_sender { packet.ack } else { 0 },
            again: packet.flags.has(Flags::RETRANSMISSION) || repeated_syn,
            marked: false,
            sent_ps: now.0,
            hops: vec![],
            end: None,
        });
    }

    /// Finds the packet of the story that `packet` shows, among those whose place `here` accepts.
    /// Among several, it prefers the one that is due now.
    fn find(
        &mut self,
        packet: &PacketView,
        here: impl Fn(&PacketPlace) -> Option<Time>,
        now: Time,
    ) -> Option<(Looks, usize)> {
        let looks = Looks::of(packet);
        let walkers = self.under_way.get(&looks)?;
        let there =
            walkers.iter().enumerate().filter_map(|(at, walker)| Some((at, here(&walker.place)?)));
        let best = there.min_by_key(|(at, due)| {
            let other_ack =
                looks.towards_sender && self.story.packets[walkers[*at].number].ack != packet.ack;
            (*due != now, other_ack, *at)
        });
        best.map(|(at, _)| (looks, at))
    }

    fn end(&mut self, found: (Looks, usize), end: JourneyEnd, marked: bool) {
        let (looks, at) = found;
        let Some(walkers) = self.under_way.get_mut(&looks) else { return };
        let walker = walkers.remove(at);
        if walkers.is_empty() {
            self.under_way.remove(&looks);
        }
        let journey = &mut self.story.packets[walker.number];
        journey.end = Some(end);
        journey.marked |= marked;
    }

    fn act(&mut self, now: Time, (copy, port): (u8, u16), sender: &SenderView, most: usize) {
        let last = self.senders.insert((copy, port), *sender);
        let (before, after) = (last.map(|l| l.counters).unwrap_or_default(), sender.counters);
        let state = |view: &SenderView| view.tcp.map(|tcp| tcp.state);
        let was = last.as_ref().and_then(state);
        let troubled =
            |state| matches!(state, Some(CongestionState::Recovery | CongestionState::Loss));
        let timer = last.and_then(|l| l.tcp).map(|tcp| tcp.timeout.0);
        let undone =
            |c: &crate::transport::tcp::SenderCounters| c.recoveries_undone + c.timeouts_undone;
        let (what, timer_ps) = if after.timeouts > before.timeouts {
            (ActKind::TimedOut, timer)
        } else if after.fast_recoveries > before.fast_recoveries {
            (ActKind::Recovers, None)
        } else if undone(&after) > undone(&before) {
            (ActKind::Undid, None)
        } else if after.echo_reductions > before.echo_reductions {
            (ActKind::EcnReduced, None)
        } else if troubled(was) && !troubled(state(sender)) {
            (ActKind::Recovered, None)
        } else if last.is_none_or(|last| last.window != sender.window) {
            (ActKind::Window, None)
        } else {
            return;
        };
        if what == ActKind::Window && self.story.acts.len() >= most {
            return;
        }
        let (window, threshold) = (
            sender.window,
            sender.tcp.map(|tcp| tcp.threshold).filter(|threshold| *threshold < u64::MAX),
        );
        self.story.acts.push(Act { at_ps: now.0, copy, port, what, window, threshold, timer_ps });
    }
}

/// Returns the outcome of a packet that is lost.
fn how(loss: Loss) -> JourneyOutcome {
    match loss {
        Loss::DeadLink => JourneyOutcome::DeadLink,
        Loss::UnderWay => JourneyOutcome::UnderWay,
        Loss::Corrupted => JourneyOutcome::Corrupted,
    }
}

impl StoryRecorder {
    /// Returns a test of whether a packet has come to the near end of `next`, which yields when it
    /// was due there.
    fn comes_to(
        links: &[Link],
        next: PortId,
        now: Time,
    ) -> impl Fn(&PacketPlace) -> Option<Time> + '_ {
        let Link { near, relay, .. } = links[next.index()];
        let is_there = move |node: NodeId| node == near || Some(node) == relay;
        move |place| match *place {
            PacketPlace::Host => Some(now),
            PacketPlace::Link { link, due } if is_there(links[link.index()].far) => Some(due),
            _ => None,
        }
    }

    /// Records that a link accepts a packet of a story. Returns the packet's number in the story,
    /// if it is in one.
    fn depart(
        &mut self,
        now: Time,
        link: PortId,
        departs: Time,
        packet: &PacketView,
    ) -> Option<usize> {
        let begins = departs.since(self.transmission(link, packet.wire_bytes));
        let StoryRecorder { drafts, links, ports, .. } = self;
        let draft = drafts.get_mut(&packet.flow)?;
        let Link { propagation, .. } = links[link.index()];
        let waits = |place: &PacketPlace| match place {
            PacketPlace::Queue { link: at, .. } if *at == link => Some(now),
            _ => None,
        };
        let found = draft
            .find(packet, waits, now)
            .or_else(|| draft.find(packet, Self::comes_to(links, link, now), now));
        let (looks, at) = found?;
        let walker = &mut draft.under_way.get_mut(&looks)?[at];
        let port = &mut ports[link.index()];
        let (since, (ahead, own)) = match walker.place {
            PacketPlace::Queue { since, before, ahead, .. } => {
                let served = port.served(packet.flow);
                let all = ahead.0 + (served.all - before.all) as u32;
                (since, (all, ahead.1 + (served.own - before.own) as u32))
            }
            _ => (now, port.ahead(now, packet.flow)),
        };
        walker.place = PacketPlace::Link { link, due: departs + propagation };
        let journey = &mut draft.story.packets[walker.number];
        journey.marked |= packet.flags.has(Flags::CONGESTION_EXPERIENCED);
        let hop = Hop {
            link,
            at_ps: since.0,
            begins_ps: begins.0.max(since.0),
            departs_ps: departs.0,
            ahead,
            own,
        };
        journey.hops.push(hop);
        Some(walker.number)
    }

    fn gone(&mut self, now: Time, link: PortId, how: JourneyOutcome, packet: &PacketView) {
        let StoryRecorder { drafts, links, .. } = self;
        let Some(draft) = drafts.get_mut(&packet.flow) else { return };
        let on = |place: &PacketPlace| match *place {
            PacketPlace::Queue { link: at, .. } if at == link => Some(now),
            // A corrupted packet has reached the far end; one on a link that goes down is lost
            // whenever it was due.
            PacketPlace::Link { link: at, due }
                if at == link
                    && matches!(how, JourneyOutcome::Corrupted | JourneyOutcome::UnderWay) =>
            {
                Some(due)
            }
            _ => None,
        };
        let found = draft
            .find(packet, on, now)
            .or_else(|| draft.find(packet, Self::comes_to(links, link, now), now));
        if let Some(found) = found {
            let marked = packet.flags.has(Flags::CONGESTION_EXPERIENCED);
            draft.end(found, JourneyEnd { at_ps: now.0, how, link: Some(link) }, marked);
        }
    }
}

impl Observer for StoryRecorder {
    fn host_sends(&mut self, now: Time, _host: HostId, packet: &PacketView) {
        let most = self.most_packets;
        if let Some(draft) = self.drafts.get_mut(&packet.flow) {
            draft.send(now, packet, most);
        }
    }

    fn host_receives(&mut self, now: Time, host: HostId, packet: &PacketView) {
        let links = &self.links;
        let Some(draft) = self.drafts.get_mut(&packet.flow) else { return };
        let here = |place: &PacketPlace| match *place {
            PacketPlace::Link { link, due } if links[link.index()].far == host.node() => Some(due),
            _ => None,
        };
        if let Some(found) = draft.find(packet, here, now) {
            let marked = packet.flags.has(Flags::CONGESTION_EXPERIENCED);
            draft.end(
                found,
                JourneyEnd { at_ps: now.0, how: JourneyOutcome::Received, link: None },
                marked,
            );
        }
    }

    fn link_queues(&mut self, now: Time, link: PortId, packet: &PacketView) {
        let StoryRecorder { drafts, links, ports, .. } = self;
        let Some(draft) = drafts.get_mut(&packet.flow) else { return };
        let port = &mut ports[link.index()];
        let Some((looks, at)) = draft.find(packet, Self::comes_to(links, link, now), now) else {
            return;
        };
        let (before, ahead) = (port.served(packet.flow), port.ahead(now, packet.flow));
        if let Some(walkers) = draft.under_way.get_mut(&looks) {
            walkers[at].place = PacketPlace::Queue { link, since: now, before, ahead };
        }
    }

    fn link_accepts(&mut self, now: Time, link: PortId, departs: Time, packet: &PacketView) {
        let &PacketView { flow, wire_bytes, .. } = packet;
        let has_story = self.drafts.contains_key(&flow);
        let number = if has_story { self.depart(now, link, departs, packet) } else { None };
        let accepted = Accepted { departs, wire_bytes, flow, number };
        self.ports[link.index()].accept(now, accepted, has_story);
    }

    fn dropped(&mut self, now: Time, link: PortId, packet: &PacketView) {
        self.gone(now, link, JourneyOutcome::Dropped, packet);
    }

    fn returned(&mut self, now: Time, link: PortId, packet: &PacketView) {
        self.gone(now, link, JourneyOutcome::Returned, packet);
    }

    fn link_changes(&mut self, now: Time, link: PortId, rate: Rate, propagation: Time) {
        let StoryRecorder { drafts, links, ports, .. } = self;
        let known = &mut links[link.index()];
        let rates = (known.rate, rate);
        (known.rate, known.propagation) = (rate, propagation);
        ports[link.index()].retime(now, rates, &mut |packet, begins| {
            let draft = drafts.get_mut(&packet.flow).zip(packet.number);
            let hop = draft.and_then(|(draft, n)| draft.story.packets[n].hops.last_mut());
            if let Some(hop) = hop.filter(|hop| hop.link == link) {
                hop.begins_ps = begins.map_or(hop.begins_ps, |begins| begins.0);
                hop.departs_ps = packet.departs.0;
            }
        });
    }

    fn lost(&mut self, now: Time, link: PortId, loss: Loss, packet: &PacketView) {
        if loss == Loss::UnderWay {
            self.ports[link.index()].clear();
        }
        self.gone(now, link, how(loss), packet);
    }

    fn any_sender_acted(&mut self, now: Time, flow: u64, copy: u8, port: u16, sender: &SenderView) {
        let most = self.most_packets;
        if let Some(draft) = self.drafts.get_mut(&flow) {
            draft.act(now, (copy, port), sender, most);
        }
    }
}
