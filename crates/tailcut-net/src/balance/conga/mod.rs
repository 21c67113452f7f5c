//! CONGA (Alizadeh et al., SIGCOMM 2014): leaf switches learn how congested the paths to each other
//! leaf are from packets that have taken them, and send each flowlet by the uplink of the least
//! congested path.
//!
//! Every link has an estimate of its rate (section 3.2). A packet that leaves its leaf carries the
//! number of its uplink, and collects the largest estimate of the links that it crosses. The
//! destination leaf stores that, and returns it on packets in the other direction (section 3.3).
//! Above the leaves, where the paper has only one path, switches hash (section 7).

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

/// Parameters of CONGA. The defaults are the paper's (section 3.6), except for the number of
/// entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Conga {
    /// Silence after which a flow may change its path: Tfl.
    pub gap: Time,
    /// Time constant of the rate estimates: tau.
    pub tau: Time,
    /// Share that an estimate loses in each period of `decay` times `tau`: alpha.
    pub decay: f64,
    /// Bits of a congestion measure: Q. The largest value stands for a full link.
    pub bits: u32,
    /// Age after which a measure without news is halved, and again after each further such time.
    pub age: Time,
    /// Entries of each leaf's flowlet table; the paper has 65,536.
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

/// Maximum entries of either kind of table over all leaves: they take a gigabyte.
const MOST: u64 = 1 << 26;

impl Strategy for Conga {
    type State = CongaState;

    fn looks_at_queues(&self) -> bool {
        true
    }

    fn fabric_only(&self) -> Option<&'static str> {
        Some("conga")
    }

    fn check(&self) -> Result<(), SpecError> {
        let wrong = |field: &str, message: String| Err(SpecError::new("conga", field, message));
        if self.entries == 0 || self.entries > 1 << 20 {
            let message = format!("entries = {}: must be from 1 to 1,048,576", self.entries);
            return wrong("entries", message);
        }
        if !(1..=8).contains(&self.bits) {
            return wrong(
                "bits",
                format!("bits = {}: must be from 1 to 8 (the paper has 3)", self.bits),
            );
        }
        if !(self.decay > 0.0 && self.decay < 1.0) {
            let message = format!("decay = {}: must be greater than 0 and less than 1", self.decay);
            return wrong("decay", message);
        }
        let second = Time::from_ms(1_000);
        for (field, time) in [("tau", self.tau), ("age", self.age)] {
            if time < Time::from_us(1) || time > second {
                let message = format!("{field} = \"{time}\": must be from 1us to 1s");
                return wrong(field, message);
            }
        }
        Ok(())
    }

    /// Refuses tables of all leaves that do not fit into memory.
    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let TableSizes { flowlets, measures } = self.tables(graph);
        for (what, entries) in [("flowlets", flowlets), ("paths between leaves", measures)] {
            if entries > MOST {
                let message = format!("{entries} entries for {what}: at most {MOST} in all");
                return Err(SpecError::new("conga", "entries", message)
                    .hint("lower entries, or use a smaller network"));
            }
        }
        Ok(())
    }

    fn state_bytes(&self, graph: &Graph) -> u64 {
        let TableSizes { flowlets, measures } = self.tables(graph);
        flowlets * size_of::<Flowlet>() as u64 + measures * size_of::<[Measure; 2]>() as u64
    }

    fn state(&self, layout: Layout<'_>) -> CongaState {
        CongaState::new(self, layout)
    }
}

/// Total entries in the tables of all leaves of a network.
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

/// The congestion of a path when a packet last reported it.
#[derive(Debug, Clone, Copy, Default)]
struct Measure {
    value: u8,
    /// Whether the measure has not been sent back yet.
    fresh: bool,
    at: Time,
}

impl Measure {
    /// Returns the value, halved for each `age` that has passed without news.
    fn aged(self, now: Time, age: Time) -> u8 {
        let ages = now.since(self.at).0 / age.0;
        self.value.checked_shr(ages.min(8) as u32).unwrap_or(0)
    }
}

/// The order in which a leaf sends feedback to another.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// The uplink to be considered first.
    next: usize,
    /// Number of fresh measures.
    news: u32,
}

/// The last packet of a flow's flowlet.
#[derive(Debug, Clone, Copy, Default)]
struct Flowlet {
    at: Time,
    /// Its port; `None` before the first packet.
    port: Option<PortId>,
}

/// The state of all leaves.
#[derive(Debug, Clone)]
pub struct CongaState {
    spec: Conga,
    places: LeafMap,
    salts: Salts,
    /// Length of a period of the discounting rate estimates, in picoseconds.
    period: u64,
    /// Congestion level per byte of an estimate and picosecond of the transmission time of 1,000
    /// bytes.
    per_byte: f64,
    /// Flowlet tables: `entries` for each leaf.
    flowlets: Vec<Flowlet>,
    /// By leaf and other leaf, one per uplink of the former: congestion of the paths there.
    to: Vec<Vec<Measure>>,
    /// By leaf and other leaf, one per uplink of the latter: congestion of the paths from there, to
    /// be sent back.
    from: Vec<Vec<Measure>>,
    /// By leaf and other leaf.
    turns: Vec<Turn>,
    /// Buffer for ports that are equally good.
    level: Vec<u32>,
    /// Random stream of each leaf.
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

    /// Returns the discounted bytes of a link in period number `periods`.
    fn sent(&mut self, periods: u64, port: PortId) -> &mut f64 {
        self.places.links[port.index()].estimate.discounted(periods, self.spec.decay)
    }

    /// Returns the congestion of a link: its bytes relative to those that it can carry in tau,
    /// quantised to Q bits.
    fn congestion(&mut self, periods: u64, port: PortId, queues: &dyn PortQueues) -> u8 {
        let bytes = *self.sent(periods, port);
        let level = bytes * queues.transmission(port, 1_000).0 as f64 * self.per_byte;
        (level as u32).min((1 << self.spec.bits) - 1) as u8
    }

    /// Chooses a new flowlet's port (section 3.5): the least congested by its own link and the
    /// links behind it. Among equals it prefers `last`, then draws one.
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

    /// Takes the feedback for the next packet from leaf `here` to leaf `there`: an uplink of
    /// `there` and its congestion, changed ones first, then round-robin (section 3.3, step 4).
    /// `None` before any measure. The value is aged already, because the other leaf knows only when
    /// it received it.
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

    /// Stores what a packet from leaf `there` reports at leaf `here`.
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
