//! CONGA (Alizadeh et al., SIGCOMM 2014): leaf switches learn how congested the ways to each other leaf are from packets that have
//! taken them, and send each flowlet by the uplink whose way is the least congested.
//!
//! Every link has an estimate of its rate (section 3.2). A packet that leaves its leaf says by which uplink, and collects the
//! largest estimate of the links that it crosses; the leaf that it reaches keeps that, and sends it back on packets the other way
//! (section 3.3). Above the leaves, where the paper has one way only, switches hash (section 7).

mod estimate;
mod header;
mod places;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;
use tailcut_engine::{RandomStream, Time};

use self::header::Header;
use self::places::{LeafLink, LeafMap};
use super::hash::{self, Salts};
use super::{Layout, OverlayHeader, PassContext, Pick, PickContext, PortQueues, Strategy};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::topology::{Graph, HostId, PortId};

/// Parameters of CONGA. The defaults are the paper's (section 3.6), but for the number of entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Conga {
    /// A silence of at least this long lets a flow change its way: Tfl.
    pub gap: Time,
    /// Time over which a link's rate is estimated: tau.
    pub tau: Time,
    /// What the estimate gives up in each period of `decay` times `tau`: alpha.
    pub decay: f64,
    /// Bits of a measure of congestion: Q. All of them set stand for a full link.
    pub bits: u32,
    /// A measure that nothing has renewed for so long is halved, and again.
    pub age: Time,
    /// Entries of each leaf's table of flowlets; the paper has 65,536.
    pub entries: u32,
}

impl Default for Conga {
    fn default() -> Self {
        Conga {
            gap: Time::from_us(500),
            tau: Time::from_us(160),
            decay: 0.125,
            bits: 3,
            age: Time::from_ms(10),
            entries: 4_096,
        }
    }
}

/// As many entries of either table take a gigabyte.
const MOST: u64 = 1 << 26;

impl Strategy for Conga {
    type State = Box<CongaState>;

    fn looks_at_queues(&self) -> bool {
        true
    }

    fn fabric_only(&self) -> Option<&'static str> {
        Some("conga")
    }

    fn check(&self) -> Result<(), SpecError> {
        let wrong = |field: &str, message: String| Err(SpecError::new("conga", field, message));
        if self.entries == 0 || self.entries > 1 << 20 {
            let message = format!("entries = {}: from 1 to 1,048,576", self.entries);
            return wrong("entries", message);
        }
        if !(1..=8).contains(&self.bits) {
            return wrong("bits", format!("bits = {}: from 1 to 8; the paper has 3", self.bits));
        }
        if !(self.decay > 0.0 && self.decay < 1.0) {
            let message = format!("decay = {}: lies between 0 and 1", self.decay);
            return wrong("decay", message);
        }
        let second = Time::from_ms(1_000);
        for (field, time) in [("tau", self.tau), ("age", self.age)] {
            if time < Time::from_us(1) || time > second {
                let message = format!("{field} = \"{time}\": from 1us to 1s");
                return wrong(field, message);
            }
        }
        Ok(())
    }

    /// The tables of all leaves must fit into memory.
    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let TableSizes { flowlets, measures } = self.tables(graph);
        for (what, entries) in [("flowlets", flowlets), ("ways between leaves", measures)] {
            if entries > MOST {
                let message = format!("{entries} entries for {what}: at most {MOST} in all");
                return Err(SpecError::new("conga", "entries", message)
                    .hint("lower entries, or take a smaller network"));
            }
        }
        Ok(())
    }

    fn state_bytes(&self, graph: &Graph) -> u64 {
        let TableSizes { flowlets, measures } = self.tables(graph);
        flowlets * size_of::<Flowlet>() as u64 + measures * size_of::<[Measure; 2]>() as u64
    }

    fn state(&self, layout: Layout<'_>) -> Box<CongaState> {
        Box::new(CongaState::new(self, layout))
    }
}

/// How large the tables of a network are.
struct TableSizes {
    flowlets: u64,
    measures: u64,
}

impl Conga {
    fn tables(&self, graph: &Graph) -> TableSizes {
        let places = LeafMap::new(graph);
        let leaves = places.uplinks.len() as u64;
        let uplinks = places.uplinks.iter().map(|uplinks| u64::from(*uplinks)).sum::<u64>();
        TableSizes { flowlets: leaves * u64::from(self.entries), measures: leaves * uplinks }
    }
}

/// How congested a way was when it was last heard of.
#[derive(Debug, Clone, Copy, Default)]
struct Measure {
    value: u8,
    /// Not sent back yet.
    fresh: bool,
    at: Time,
}

impl Measure {
    /// Returns what is left of the value, which is halved whenever `age` has passed without news.
    fn aged(self, now: Time, age: Time) -> u8 {
        let ages = now.since(self.at).0 / age.0;
        self.value.checked_shr(ages.min(8) as u32).unwrap_or(0)
    }
}

/// Of which uplink of another leaf the next packet there tells.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// The first to be asked.
    next: usize,
    /// How many have news.
    news: u32,
}

/// The last packet of a flow's flowlet.
#[derive(Debug, Clone, Copy, Default)]
struct Flowlet {
    at: Time,
    /// Its port; none before the first.
    port: Option<PortId>,
}

/// What all leaves know.
#[derive(Debug, Clone)]
pub(crate) struct CongaState {
    spec: Conga,
    places: LeafMap,
    salts: Salts,
    /// Of the estimates.
    period: u64,
    /// Of a measure, per byte and picosecond that a thousand bytes take.
    per_byte: f64,
    /// Per leaf: `entries`.
    flowlets: Vec<Flowlet>,
    /// Per leaf, other leaf and uplink of the former: how congested its way there is.
    to: Vec<Vec<Measure>>,
    /// Per leaf, other leaf and uplink of the latter: how congested its way here was.
    from: Vec<Vec<Measure>>,
    /// Per leaf and other leaf.
    turns: Vec<Turn>,
    /// Room for ports that are equally good.
    level: Vec<u32>,
    /// Per leaf.
    streams: Vec<RandomStream>,
}

impl CongaState {
    fn new(spec: &Conga, layout: Layout<'_>) -> CongaState {
        let places = LeafMap::new(layout.graph);
        let leaves = places.uplinks.len();
        let row = |uplinks: u32| vec![Measure::default(); uplinks as usize];
        let to = places.uplinks.iter().flat_map(|&own| (0..leaves).map(move |_| row(own)));
        let from = (0..leaves).flat_map(|_| places.uplinks.iter().map(|&others| row(others)));
        CongaState {
            spec: spec.clone(),
            salts: Salts::drawn(layout.seed),
            period: ((spec.tau.0 as f64 * spec.decay) as u64).max(1),
            per_byte: f64::from(1_u32 << spec.bits) / (1_000.0 * spec.tau.0 as f64),
            flowlets: vec![Flowlet::default(); leaves * spec.entries as usize],
            to: to.collect(),
            from: from.collect(),
            turns: vec![Turn::default(); leaves * leaves],
            level: vec![],
            streams: (0..leaves as u64)
                .map(|leaf| RandomStream::new(layout.seed, leaf, "conga"))
                .collect(),
            places,
        }
    }

    fn pair(&self, here: u32, there: u32) -> usize {
        here as usize * self.places.uplinks.len() + there as usize
    }

    fn periods(&self, now: Time) -> u64 {
        now.0 / self.period
    }

    /// The bytes that count of a link's, in the period with this number.
    fn sent(&mut self, periods: u64, port: PortId) -> &mut f64 {
        self.places.links[port.index()].estimate.discounted(periods, self.spec.decay)
    }

    /// How congested a link is: its bytes over those that it could carry in tau.
    fn congestion(&mut self, periods: u64, port: PortId, queues: &dyn PortQueues) -> u8 {
        let bytes = *self.sent(periods, port);
        let level = bytes * queues.transmission(port, 1_000).0 as f64 * self.per_byte;
        (level as u32).min((1 << self.spec.bits) - 1) as u8
    }

    /// A new flowlet's port (section 3.5): the least congested of its leaf's and the fabric's links; the last one's, if none is better.
    fn best(&mut self, fork: &PickContext<'_>, here: u32, there: u32, last: Option<PortId>) -> u32 {
        let row = self.pair(here, there);
        let periods = self.periods(fork.now);
        let mut least = u8::MAX;
        self.level.clear();
        for (place, &port) in (0..).zip(fork.ports) {
            let remote = self.to[row][self.places.links[port.index()].uplink as usize];
            let congestion = self
                .congestion(periods, port, fork.queues)
                .max(remote.aged(fork.now, self.spec.age));
            if congestion < least {
                least = congestion;
                self.level.clear();
            }
            if congestion == least {
                self.level.push(place);
            }
        }
        let same = self.level.iter().find(|&&place| Some(fork.ports[place as usize]) == last);
        match same {
            Some(&place) => place,
            None => {
                let drawn = self.streams[here as usize].below(self.level.len() as u64);
                self.level[drawn as usize]
            }
        }
    }

    /// What the next packet from a leaf to another says of packets that came from there: of one uplink after the other, and
    /// first of those of which something new is known (section 3.3, step 4). A measure goes back as it has aged here: the other
    /// leaf knows only when it heard of it.
    fn feedback(&mut self, now: Time, here: u32, there: u32) -> Option<(u16, u8)> {
        let pair = self.pair(here, there);
        let (row, Turn { next, news }) = (&mut self.from[pair], &mut self.turns[pair]);
        let wanted = |measure: &Measure| match *news {
            0 => measure.at != Time::ZERO,
            _ => measure.fresh,
        };
        let (before, after) = row.split_at(*next);
        let place = after.iter().position(wanted).map(|place| *next + place);
        let place = place.or_else(|| before.iter().position(wanted))?;
        *next = place + 1;
        *news -= u32::from(std::mem::take(&mut row[place].fresh));
        Some((place as u16, row[place].aged(now, self.spec.age)))
    }

    /// A packet of another leaf has reached its leaf.
    fn learn(&mut self, now: Time, here: u32, there: u32, header: Header) {
        let pair = self.pair(here, there);
        if let Some((uplink, value)) = header.forth {
            let measure = &mut self.from[pair][usize::from(uplink)];
            let fresh = measure.fresh || measure.value != value || measure.at == Time::ZERO;
            self.turns[pair].news += u32::from(fresh && !measure.fresh);
            *measure = Measure { value, fresh, at: now };
        }
        if let Some((uplink, value)) = header.back {
            self.to[pair][usize::from(uplink)] = Measure { value, fresh: false, at: now };
        }
    }
}

impl Pick for CongaState {
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        if !self.places.links[fork.ingress.index()].from_host {
            return hash::pick(packet.key.0, self.salts.of(fork.switch), fork.choices);
        }
        let here = self.places.leaf_of_switch[fork.switch.index()];
        let there = self.places.leaf_of_host[packet.key.dst().index()];
        let slot = mix(packet.key.0) % u64::from(self.spec.entries);
        let entry = here as usize * self.spec.entries as usize + slot as usize;
        let Flowlet { at, port } = self.flowlets[entry];
        let still = port.filter(|_| fork.now.since(at) < self.spec.gap);
        let kept = still.and_then(|port| fork.ports.iter().position(|other| *other == port));
        let choice = match kept {
            Some(place) => place as u32,
            None => self.best(&fork, here, there, port),
        };
        let port = Some(fork.ports[choice as usize]);
        self.flowlets[entry] = Flowlet { at: fork.now, port };
        choice
    }

    fn stamps(&self) -> bool {
        true
    }

    fn pass(&mut self, hop: PassContext<'_>, packet: &Packet, stamp: &mut OverlayHeader) {
        let LeafLink { from_host, .. } = self.places.links[hop.ingress.index()];
        let LeafLink { to_host, uplink, .. } = self.places.links[hop.egress.index()];
        if to_host && from_host {
            return;
        }
        let mut header = Header::read(*stamp);
        if to_host || from_host {
            let leaf = |host: HostId| self.places.leaf_of_host[host.index()];
            let (source, destination) = (leaf(packet.key.src()), leaf(packet.key.dst()));
            if to_host {
                return self.learn(hop.now, destination, source, header);
            }
            header = Header {
                forth: Some((uplink as u16, 0)),
                back: self.feedback(hop.now, source, destination),
            };
        }
        let periods = self.periods(hop.now);
        *self.sent(periods, hop.egress) += f64::from(packet.wire_bytes);
        let met = self.congestion(periods, hop.egress, hop.queues);
        if let Some((_, congestion)) = &mut header.forth {
            *congestion = met.max(*congestion);
        }
        *stamp = header.write();
    }
}
