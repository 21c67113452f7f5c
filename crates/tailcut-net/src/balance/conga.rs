//! CONGA (Alizadeh et al., SIGCOMM 2014): leaf switches learn how congested the ways to each other leaf are from packets that have
//! taken them, and send each flowlet by the uplink whose way is the least congested.
//!
//! Every link has an estimate of its rate (section 3.2). A packet that leaves its leaf says by which uplink, and collects the
//! largest estimate of the links that it crosses; the leaf that it reaches keeps that, and sends it back on packets the other way
//! (section 3.3). Above the leaves, where the paper has one way only, switches hash (section 7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;
use tailcut_engine::{Stream, Time};

use super::{hash, Fork, Hop, Layout, Pick, Queues, Stamp, Strategy};
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
    type State = Box<Leaves>;

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
    fn check_on(&self, graph: &Graph) -> Result<(), SpecError> {
        let Measured { flowlets, measures } = self.tables(graph);
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
        let Measured { flowlets, measures } = self.tables(graph);
        flowlets * size_of::<Flowlet>() as u64 + measures * size_of::<[Measure; 2]>() as u64
    }

    fn state(&self, layout: Layout<'_>) -> Box<Leaves> {
        Box::new(Leaves::new(self, layout))
    }
}

/// How large the tables of a network are.
struct Measured {
    flowlets: u64,
    measures: u64,
}

impl Conga {
    fn tables(&self, graph: &Graph) -> Measured {
        let places = Places::new(graph);
        let leaves = places.uplinks.len() as u64;
        let uplinks = places.uplinks.iter().map(|uplinks| u64::from(*uplinks)).sum::<u64>();
        Measured { flowlets: leaves * u64::from(self.entries), measures: leaves * uplinks }
    }
}

/// No leaf, or no uplink.
const NONE: u32 = u32::MAX;

/// Which switches are leaves, and which of their ports are uplinks.
#[derive(Debug, Clone)]
struct Places {
    /// Per host.
    leaf_of_host: Vec<u32>,
    /// Per switch; `NONE` where no host hangs.
    leaf_of_switch: Vec<u32>,
    /// Per port.
    links: Vec<Link>,
    /// Per leaf: how many uplinks it has.
    uplinks: Vec<u32>,
}

/// What every packet on a link asks for, in one place.
#[derive(Debug, Clone, Copy)]
struct Link {
    estimate: Estimate,
    /// Its number among the uplinks of its leaf; `NONE` where it is none.
    uplink: u32,
    from_host: bool,
    to_host: bool,
}

impl Places {
    fn new(graph: &Graph) -> Places {
        let ends = || graph.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
        let mut leaf_of_switch = vec![NONE; graph.switches as usize];
        let mut leaf_of_host = vec![NONE; graph.hosts as usize];
        let mut leaves = 0;
        for (from, to) in ends() {
            let (None, Some(switch)) = (graph.switch(from), graph.switch(to)) else { continue };
            let leaf = &mut leaf_of_switch[switch.index()];
            if *leaf == NONE {
                *leaf = leaves;
                leaves += 1;
            }
            leaf_of_host[from.0 as usize] = *leaf;
        }
        let mut uplinks = vec![0; leaves as usize];
        let mut number = |from, to| {
            let (Some(from), Some(_)) = (graph.switch(from), graph.switch(to)) else { return NONE };
            let Some(count) = uplinks.get_mut(leaf_of_switch[from.index()] as usize) else {
                return NONE;
            };
            *count += 1;
            *count - 1
        };
        let link = |(from, to)| Link {
            estimate: Estimate::default(),
            uplink: number(from, to),
            from_host: graph.switch(from).is_none(),
            to_host: graph.switch(to).is_none(),
        };
        let links = ends().map(link).collect();
        Places { leaf_of_host, leaf_of_switch, links, uplinks }
    }
}

/// What goes with a packet (section 3.1): the uplink that it has taken and the congestion that it has met, and the same of a
/// packet that went the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Header {
    forth: Option<(u16, u8)>,
    back: Option<(u16, u8)>,
}

impl Header {
    fn read(Stamp(bits): Stamp) -> Header {
        let part = |bits: u64| {
            (bits & 1 == 1).then_some(((bits >> 1 & 0xffff) as u16, (bits >> 17 & 0xff) as u8))
        };
        Header { forth: part(bits), back: part(bits >> 32) }
    }

    fn write(self) -> Stamp {
        let part = |part: Option<(u16, u8)>| match part {
            None => 0,
            Some((uplink, measure)) => 1 | u64::from(uplink) << 1 | u64::from(measure) << 17,
        };
        Stamp(part(self.forth) | part(self.back) << 32)
    }
}

/// The estimate of a link's rate (discounting rate estimator, section 3.2).
#[derive(Debug, Clone, Copy, Default)]
struct Estimate {
    bytes: f64,
    /// Periods that have passed when it was looked at.
    periods: u64,
}

impl Estimate {
    /// Bytes now, in the period with this number.
    fn discounted(&mut self, periods: u64, decay: f64) -> &mut f64 {
        // A product of equal factors is the same everywhere; a power need not be.
        while self.periods < periods && self.bytes >= 1.0 {
            self.bytes *= 1.0 - decay;
            self.periods += 1;
        }
        // Less than a byte is nothing.
        if self.periods < periods {
            (self.bytes, self.periods) = (0.0, periods);
        }
        &mut self.bytes
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
pub(crate) struct Leaves {
    spec: Conga,
    places: Places,
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
    streams: Vec<Stream>,
}

impl Leaves {
    fn new(spec: &Conga, layout: Layout<'_>) -> Leaves {
        let places = Places::new(layout.graph);
        let leaves = places.uplinks.len();
        let row = |uplinks: u32| vec![Measure::default(); uplinks as usize];
        let to = places.uplinks.iter().flat_map(|&own| (0..leaves).map(move |_| row(own)));
        let from = (0..leaves).flat_map(|_| places.uplinks.iter().map(|&others| row(others)));
        Leaves {
            spec: spec.clone(),
            period: ((spec.tau.0 as f64 * spec.decay) as u64).max(1),
            per_byte: f64::from(1_u32 << spec.bits) / (1_000.0 * spec.tau.0 as f64),
            flowlets: vec![Flowlet::default(); leaves * spec.entries as usize],
            to: to.collect(),
            from: from.collect(),
            turns: vec![Turn::default(); leaves * leaves],
            level: vec![],
            streams: (0..leaves as u64)
                .map(|leaf| Stream::new(layout.seed, leaf, "conga"))
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
    fn congestion(&mut self, periods: u64, port: PortId, queues: &dyn Queues) -> u8 {
        let bytes = *self.sent(periods, port);
        let level = bytes * queues.transmission(port, 1_000).0 as f64 * self.per_byte;
        (level as u32).min((1 << self.spec.bits) - 1) as u8
    }

    /// What is left of a measure that nothing has renewed since.
    fn aged(&self, measure: Measure, now: Time) -> u8 {
        let ages = now.since(measure.at).0 / self.spec.age.0;
        measure.value.checked_shr(ages.min(8) as u32).unwrap_or(0)
    }

    /// A new flowlet's port (section 3.5): the least congested of its leaf's and the fabric's links; the last one's, if none is better.
    fn best(&mut self, fork: &Fork<'_>, here: u32, there: u32, last: Option<PortId>) -> u32 {
        let row = self.pair(here, there);
        let periods = self.periods(fork.now);
        let mut least = u8::MAX;
        self.level.clear();
        for (place, &port) in (0..).zip(fork.ports) {
            let remote = self.to[row][self.places.links[port.index()].uplink as usize];
            let congestion =
                self.congestion(periods, port, fork.queues).max(self.aged(remote, fork.now));
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
    /// first of those of which something new is known (section 3.3, step 4).
    fn feedback(&mut self, here: u32, there: u32) -> Option<(u16, u8)> {
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
        Some((place as u16, row[place].value))
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

impl Pick for Leaves {
    fn pick(&mut self, fork: Fork<'_>, packet: &mut Packet) -> u32 {
        if !self.places.links[fork.ingress.index()].from_host {
            return hash::pick(packet.key.0, hash::salt(fork.switch), fork.choices);
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

    fn pass(&mut self, hop: Hop<'_>, packet: &Packet, stamp: &mut Stamp) {
        let Link { from_host, .. } = self.places.links[hop.ingress.index()];
        let Link { to_host, uplink, .. } = self.places.links[hop.egress.index()];
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
                back: self.feedback(source, destination),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ConnectionId, Flags, FlowKey, NO_OPTIONS};
    use crate::topology::leaf_spine::LeafSpine;
    use crate::topology::{Routes, SwitchId};

    /// Links of 1 Gbps: 8 us for 1,000 bytes.
    struct Gigabit;
    impl Queues for Gigabit {
        fn last_use(&self, _: PortId) -> Time {
            Time::ZERO
        }
        fn queued(&self, _: PortId) -> Time {
            Time::ZERO
        }
        fn transmission(&self, _: PortId, bytes: u16) -> Time {
            Time::from_ns(8 * u64::from(bytes))
        }
    }

    /// Two racks of two hosts, two spines: hosts 0 and 1 hang on switch 0, hosts 2 and 3 on switch 1.
    struct Fabric {
        graph: Graph,
        routes: Routes,
        leaves: Box<Leaves>,
    }

    fn fabric() -> Fabric {
        let shape = LeafSpine { racks: 2, hosts_per_rack: 2, spines: 2, ..LeafSpine::default() };
        let graph = shape.build().expect("it is small");
        let routes = Routes::new(&graph).expect("it is connected");
        let leaves = Conga::default().state(Layout { graph: &graph, routes: &routes, seed: 3 });
        Fabric { graph, routes, leaves }
    }

    impl Fabric {
        /// Which of two spines a packet takes, and what it learns on its way.
        fn send(&mut self, now: Time, src: u32, dst: u32, source_port: u16) -> u32 {
            let key = FlowKey::new(HostId(src), HostId(dst), source_port, 5_000);
            let (options, flags, wire_bytes) = (NO_OPTIONS, Flags::DATA, 1_000);
            let connection = ConnectionId(0);
            let mut packet = Packet { key, connection, seq: 0, options, wire_bytes, flags };
            let (mut ingress, mut stamp) = (self.routes.host_port(key.src()), Stamp::default());
            let mut taken = 0;
            while let Some(switch) = self.graph.switch(self.graph.far_end(ingress)) {
                let ports = self.routes.candidates(switch, key.dst());
                let choices = ports.len() as u32;
                let queues = &Gigabit;
                let fork = Fork { now, switch, ingress, choices, ports, queues };
                let choice = if choices > 1 { self.leaves.pick(fork, &mut packet) } else { 0 };
                taken += choice;
                let egress = ports[choice as usize];
                let hop = Hop { now, switch, ingress, egress, queues };
                self.leaves.pass(hop, &packet, &mut stamp);
                ingress = egress;
            }
            taken
        }

        fn uplink(&self, spine: u32) -> PortId {
            self.routes.candidates(SwitchId(0), HostId(2))[spine as usize]
        }
    }

    #[test]
    fn an_estimate_is_the_rate_times_tau() {
        let mut fabric = fabric();
        let port = fabric.uplink(0);
        // 1,000 bytes each 16 us are half of 1 Gbps: 10 kB of the 20 kB that the link could carry in 160 us.
        for step in 0..200 {
            let periods = fabric.leaves.periods(Time::from_us(16 * step));
            *fabric.leaves.sent(periods, port) += 1_000.0;
        }
        let bytes = fabric.leaves.places.links[port.index()].estimate.bytes;
        assert!((9_000.0..11_000.0).contains(&bytes), "{bytes}");
        let mut congestion = |now| {
            let periods = fabric.leaves.periods(now);
            fabric.leaves.congestion(periods, port, &Gigabit)
        };
        let busy = congestion(Time::from_us(16 * 199));
        assert!((3..=4).contains(&busy), "{busy} of 8");
        assert_eq!(congestion(Time::from_ms(60)), 0);
    }

    #[test]
    fn a_flowlet_keeps_its_way_whatever_its_congestion() {
        let mut fabric = fabric();
        let way = fabric.send(Time::ZERO, 0, 2, 1_024);
        assert!(
            (1..100).all(|step| fabric.send(Time::from_us(8 * step), 0, 2, 1_024) == way),
            "gaps of 8 us are no gaps"
        );
    }

    #[test]
    fn a_new_flowlet_takes_the_uplink_that_carries_less() {
        let mut fabric = fabric();
        let busy = fabric.send(Time::ZERO, 0, 2, 1_024);
        for step in 1..100 {
            fabric.send(Time::from_us(8 * step), 0, 2, 1_024);
        }
        for source_port in 2_000..2_010 {
            assert_eq!(fabric.send(Time::from_us(800), 1, 3, source_port), 1 - busy);
        }
    }

    #[test]
    fn a_flow_stays_where_it_was_if_no_way_is_better() {
        let mut fabric = fabric();
        let way = fabric.send(Time::ZERO, 0, 2, 1_024);
        assert!((1..50).all(|ms| fabric.send(Time::from_ms(ms), 0, 2, 1_024) == way));
    }

    /// The link from a spine to the leaf is beyond what the other leaf can see by itself.
    #[test]
    fn a_leaf_hears_of_congestion_behind_its_uplinks_from_packets_the_other_way() {
        let mut fabric = fabric();
        let spine = fabric.routes.candidates(SwitchId(2), HostId(2))[0];
        let now = Time::from_us(100);
        let periods = fabric.leaves.periods(now);
        *fabric.leaves.sent(periods, spine) = 40_000.0;
        let ways = |fabric: &mut Fabric, ports: std::ops::Range<u16>| {
            ports.map(|port| fabric.send(now, 0, 2, port)).sum::<u32>()
        };
        let blind = ways(&mut fabric, 1_024..1_032);
        assert!((1..=7).contains(&blind), "its own links are level: {blind} of 8");
        // Answers tell of the first spine and of the second.
        for port in 3_000..3_004 {
            fabric.send(now, 2, 0, port);
        }
        assert_eq!(ways(&mut fabric, 4_000..4_008), 8, "none takes the first");
    }

    #[test]
    fn what_is_not_heard_again_is_forgotten() {
        let mut fabric = fabric();
        let pair = fabric.leaves.pair(0, 1);
        fabric.leaves.to[pair][0] = Measure { value: 7, fresh: false, at: Time::ZERO };
        let left = [0, 9, 10, 20, 30].map(|ms| {
            let measure = fabric.leaves.to[pair][0];
            fabric.leaves.aged(measure, Time::from_ms(ms))
        });
        assert_eq!(left, [7, 7, 3, 1, 0]);
    }

    #[test]
    fn a_header_is_what_was_written() {
        for back in [None, Some((0, 0)), Some((65_535, 255))] {
            let header = Header { forth: Some((7, 3)), back };
            assert_eq!(Header::read(header.write()), header);
        }
        assert_eq!(Header::read(Stamp::default()), Header::default());
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
        let wrong = [
            Conga { entries: 0, ..Conga::default() },
            Conga { bits: 9, ..Conga::default() },
            Conga { decay: 1.0, ..Conga::default() },
            Conga { tau: Time::ZERO, ..Conga::default() },
            Conga { age: Time::ZERO, ..Conga::default() },
        ];
        assert!(wrong.iter().all(|spec| spec.check().is_err()));
        assert_eq!(Conga::default().check(), Ok(()));
    }
}
