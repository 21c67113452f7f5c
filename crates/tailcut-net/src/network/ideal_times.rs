//! The ideal time of each flow: the network to itself, over the best paths that its packets may
//! take.

use std::collections::{BTreeMap, BTreeSet};

use tailcut_engine::{Rate, Time};

use super::flow_predictor::source_port;
use super::profile::{ProfileId, TransportKind, TransportProfile};
use crate::amount::Limit;
use crate::fabric::{FabricError, PathPredictor};
use crate::faults::ChangeKind;
use crate::measure::ideal::{IdealFlow, LinkStage, RoundTripPath};
use crate::packet::{FlowKey, SERVICE_PORT};
use crate::port::SerializationRate;
use crate::queue::QueueSpec;
use crate::replicate::machine::ReplicationPlan;
use crate::scenario::Scenario;
use crate::topology::{HostId, PortId, SwitchId};
use crate::traffic::Flow;

/// The connections that carry a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carriers {
    /// Their transport.
    pub profile: ProfileId,
    /// The replication plan of the flow.
    pub carriage: ReplicationPlan,
}

/// The ideal times of a run's flows.
pub(super) struct IdealTimes {
    /// The ports that run faster at times than they were built, and their highest rates.
    faster: BTreeMap<PortId, Rate>,
    /// Links that will be down, so that routes change.
    fail: BTreeSet<u32>,
    /// No link between switches is faster or shorter.
    best: Option<LinkStage>,
    keeps_paths: bool,
    /// Packets take one interface after another.
    by_packet: bool,
    lossy: bool,
    /// Queues serve the connections of a flow in turn.
    by_connection: bool,
    /// All shortest paths between the switches of two hosts, there and back, without the hosts'
    /// links.
    inner: BTreeMap<(SwitchId, SwitchId), [Vec<LinkStage>; 2]>,
    lone: BTreeMap<(ProfileId, RoundTripPath), IdealFlow>,
}

impl IdealTimes {
    pub fn new(scenario: &Scenario) -> Result<IdealTimes, FabricError> {
        let graph = &scenario.graph;
        let (mut faster, mut fail) = (BTreeMap::new(), BTreeSet::new());
        for change in scenario.faults.changes(graph).map_err(FabricError::Fault)? {
            match change.what {
                ChangeKind::Rate(port, Some(rate)) if rate > graph.links[port.link()].rate => {
                    let highest = faster.entry(port).or_insert(rate);
                    *highest = rate.max(*highest);
                }
                ChangeKind::Down { link, .. } => drop(fail.insert(link)),
                _ => {}
            }
        }
        let between = graph.links.iter().filter(|link| graph.switch(link.a.min(link.b)).is_some());
        let rates = between.clone().map(|link| link.rate).chain(faster.values().copied());
        let best = rates.max().zip(between.map(|link| link.propagation).min());
        // Random early drops, and memory that other ports fill, spare a packet that comes a little
        // later.
        let early = scenario.scheme.queue.drops_early();
        let shares = scenario.switch.shared_buffer != Limit::Unlimited;
        Ok(IdealTimes {
            faster,
            fail,
            best: best.map(|(rate, propagation)| LinkStage {
                clocking: SerializationRate::new(rate),
                propagation: propagation.0,
                parallel_links: u32::MAX,
            }),
            keeps_paths: scenario.scheme.balance.is_per_connection(),
            by_packet: !scenario.scheme.interface.is_per_connection(),
            lossy: early || shares || scenario.graph.is_lossy() || !scenario.faults.is_fault_free(),
            by_connection: matches!(scenario.scheme.queue, QueueSpec::Drr(_)),
            inner: BTreeMap::new(),
            lone: BTreeMap::new(),
        })
    }

    /// The ideal completion times of a flow by the routes of the whole network: until its last byte
    /// arrives, and until that is acknowledged.
    pub fn completion(
        &mut self,
        on: PathPredictor<'_>,
        profiles: &[TransportProfile],
        flow: &Flow,
        carriers: &Carriers,
    ) -> (Time, Time) {
        let profile = &profiles[carriers.profile.index()];
        let mut best = (Time::NEVER, Time::NEVER);
        let overtaking = self.by_connection && !self.is_one_connection(profile, carriers);
        for (way, later) in self.ways(on, profile, flow, carriers) {
            let way = RoundTripPath { overtaking, ..way };
            let lone = self.lone.entry((carriers.profile, way));
            let lone =
                lone.or_insert_with_key(|(_, way)| IdealFlow::new(way.clone(), profile.shape()));
            let (received, acknowledged) = lone.completion(flow.bytes);
            best = (best.0.min(received + later), best.1.min(acknowledged + later));
        }
        best
    }

    /// Whether all packets of a flow that no copy helps have the same addresses and ports.
    fn is_one_connection(&self, profile: &TransportProfile, carriers: &Carriers) -> bool {
        let spread = matches!(profile.kind, TransportKind::Multipath(_)) || profile.scatters();
        self.keeps_paths && !self.by_packet && !spread && carriers.carriage.piece.is_none()
    }

    /// The ways that may carry all of a flow, and when each begins.
    fn ways(
        &mut self,
        on: PathPredictor<'_>,
        profile: &TransportProfile,
        flow: &Flow,
        carriers: &Carriers,
    ) -> Vec<(RoundTripPath, Time)> {
        let &Flow { src, dst, .. } = flow;
        let key = |copy: u32, subflow: u8| {
            let service = SERVICE_PORT + copy as u16;
            FlowKey::new(src, dst, source_port(flow.id, subflow), service)
        };
        if self.reroutes(on, key(0, 0)) {
            return vec![(self.best_case_path(on, key(0, 0)), Time::ZERO)];
        }
        let scattered = carriers.carriage.piece.is_some() || profile.scatters();
        if on.has_interfaces() && (!self.keeps_paths || scattered) {
            let several = scattered || carriers.carriage.copies > 1;
            let several = several || matches!(profile.kind, TransportKind::Multipath(_));
            if profile.kind.pulls() {
                return vec![(self.kept_interface(on, key(0, 0)), Time::ZERO)];
            }
            return vec![(self.all_interfaces(on, key(0, 0), several), Time::ZERO)];
        }
        if !self.keeps_paths || scattered {
            return vec![(self.all_paths(on, src, dst), Time::ZERO)];
        }
        if let TransportKind::Multipath(spread) = &profile.kind {
            let keys: Vec<FlowKey> = (0..spread.subflows()).map(|n| key(0, n as u8)).collect();
            return vec![(self.way_of(on, &keys), Time::ZERO)];
        }
        if on.has_interfaces() && profile.kind.pulls() {
            let stages = |back| self.stages(on, &on.kept_paths(key(0, 0), back));
            let (forward, backward) = (stages(false), stages(true));
            let way = RoundTripPath { forward, backward, lossy: self.lossy, overtaking: false };
            return vec![(way, Time::ZERO)];
        }
        let start = |copy: u32| Time(carriers.carriage.delay.0 * u64::from(copy));
        let way = |copy| (self.way_of(on, &[key(copy, 0)]), start(copy));
        (0..carriers.carriage.copies).map(way).collect()
    }

    /// By the paths of some connections.
    fn way_of(&self, on: PathPredictor<'_>, keys: &[FlowKey]) -> RoundTripPath {
        let stages = |reversed: bool| {
            let keys = keys.iter().map(|key| if reversed { key.reversed() } else { *key });
            let paths: Vec<_> = keys.flat_map(|key| on.paths(key)).collect();
            self.stages(on, &paths)
        };
        RoundTripPath {
            forward: stages(false),
            backward: stages(true),
            lossy: self.lossy,
            overtaking: false,
        }
    }

    /// Paths of one length side by side.
    fn stages(&self, on: PathPredictor<'_>, paths: &[Vec<PortId>]) -> Vec<LinkStage> {
        let abreast = |at: usize| {
            let mut ports: Vec<PortId> = paths.iter().map(|path| path[at]).collect();
            ports.sort_unstable();
            ports.dedup();
            self.stage(on, &ports)
        };
        (0..paths[0].len()).map(abreast).collect()
    }

    /// By any of the shortest paths, a different one for each packet.
    fn all_paths(&mut self, on: PathPredictor<'_>, src: HostId, dst: HostId) -> RoundTripPath {
        let between = (on.routes.edge_switch(src), on.routes.edge_switch(dst));
        if !self.inner.contains_key(&between) {
            let stages = |from: HostId, to: HostId| {
                let layers = on.routes.layers(on.graph, vec![on.routes.host_port(from)], to);
                let inner = &layers[1..layers.len() - 1];
                inner.iter().map(|ports| self.stage(on, ports)).collect()
            };
            let both = [stages(src, dst), stages(dst, src)];
            self.inner.insert(between, both);
        }
        let [there, back] = &self.inner[&between];
        let around = |from: HostId, to: HostId, inner: &[LinkStage]| {
            let up = self.stage(on, &[on.routes.host_port(from)]);
            let down = self.stage(on, &[on.routes.host_port(to).reversed()]);
            [&[up], inner, &[down]].concat()
        };
        let (forward, backward) = (around(src, dst, there), around(dst, src, back));
        RoundTripPath { forward, backward, lossy: self.lossy, overtaking: false }
    }

    /// By any of the shortest paths behind the interfaces that packets with this key leave by, or
    /// behind all of them, where packets have `several` keys.
    fn all_interfaces(&self, on: PathPredictor<'_>, key: FlowKey, several: bool) -> RoundTripPath {
        let stages = |key: FlowKey| -> Vec<LinkStage> {
            let first = if several { on.any_ports(key) } else { on.first_ports(key) };
            let layers = on.routes.layers(on.graph, first, key.dst());
            layers.iter().map(|ports| self.stage(on, ports)).collect()
        };
        let (forward, backward) = (stages(key), stages(key.reversed()));
        RoundTripPath { forward, backward, lossy: self.lossy, overtaking: false }
    }

    /// By any of the shortest paths behind the one interface that a connection keeps to, or behind
    /// all that its packets choose among.
    fn kept_interface(&self, on: PathPredictor<'_>, key: FlowKey) -> RoundTripPath {
        let stages = |dst: HostId, back: bool| -> Vec<LinkStage> {
            let layers = on.routes.layers(on.graph, on.kept_ports(key, back), dst);
            layers.iter().map(|ports| self.stage(on, ports)).collect()
        };
        let (forward, backward) = (stages(key.dst(), false), stages(key.src(), true));
        RoundTripPath { forward, backward, lossy: self.lossy, overtaking: false }
    }

    /// By whatever links there are, at least as many as the shortest path has.
    fn best_case_path(&self, on: PathPredictor<'_>, key: FlowKey) -> RoundTripPath {
        let mut way = self.way_of(on, &[key]);
        for stages in [&mut way.forward, &mut way.backward] {
            let inner = 1..stages.len() - 1;
            if let Some(best) = self.best {
                stages[inner].fill(best);
            }
        }
        if on.has_interfaces() {
            let both = [(key, &mut way.forward), (key.reversed(), &mut way.backward)];
            for (key, stages) in both {
                let layers = on.routes.layers(on.graph, on.any_ports(key), key.dst());
                let last = stages.len() - 1;
                stages[0] = self.stage(on, &layers[0]);
                stages[last] = self.stage(on, &layers[layers.len() - 1]);
            }
        }
        way
    }

    /// Whether failures change the routes between two hosts, either way.
    fn reroutes(&self, on: PathPredictor<'_>, key: FlowKey) -> bool {
        let fails = |key: FlowKey| {
            let layers = on.routes.layers(on.graph, on.any_ports(key), key.dst());
            // Hosts with several interfaces avoid those that fail.
            let ends = usize::from(!on.has_interfaces());
            let inner = &layers[ends..layers.len() - ends];
            inner.iter().flatten().any(|port| self.fail.contains(&(port.link() as u32)))
        };
        !self.fail.is_empty() && (fails(key) || fails(key.reversed()))
    }

    /// Ports of which each packet crosses one.
    fn stage(&self, on: PathPredictor<'_>, ports: &[PortId]) -> LinkStage {
        let hop = |port: PortId| {
            let link = &on.graph.links[port.link()];
            let rate = self.faster.get(&port).unwrap_or(&link.rate);
            (SerializationRate::new(*rate), link.propagation.0)
        };
        let hops = || ports.iter().map(|&port| hop(port));
        let clocking = hops().map(|(clocking, _)| clocking);
        let clocking = clocking.min_by_key(|clocking| clocking.transmission(u16::MAX));
        let propagation = hops().map(|(_, propagation)| propagation).min();
        let (clocking, propagation) = clocking.zip(propagation).expect("a stage has ports");
        LinkStage { clocking, propagation, parallel_links: ports.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::BalanceSpec;
    use crate::balance::spray::Spray;
    use crate::fabric::Fabric;
    use crate::faults::Incident;
    use crate::network::profile::profiles;
    use crate::network::tests;
    use crate::topology::NodeId;
    use crate::topology::fat_tree::FatTree;
    use crate::transport::TransportSpec;
    use crate::transport::mptcp::MptcpSpec;

    /// Sixteen hosts in four pods: 0 and 1 hang on one switch, 15 is in another pod.
    fn scenario(change: impl FnOnce(&mut Scenario)) -> Scenario {
        let graph = FatTree::default().build().expect("k is even");
        let mut scenario = Scenario { graph, ..tests::scenario() };
        change(&mut scenario);
        scenario
    }

    fn flow(dst: u32) -> Flow {
        Flow { src: HostId(0), dst: HostId(dst), bytes: 14_600, start: Time::ZERO, id: 3 }
    }

    fn alone(carriage: ReplicationPlan) -> Carriers {
        Carriers { profile: ProfileId::at(0), carriage }
    }

    /// The ways of a flow to a host, and what it takes at best.
    fn ways(
        scenario: &Scenario,
        dst: u32,
        carriage: ReplicationPlan,
    ) -> (Vec<(RoundTripPath, Time)>, (Time, Time)) {
        let fabric = Fabric::new(&scenario.fabric_spec()).expect("it is connected");
        let profiles = profiles(scenario);
        let mut alone = IdealTimes::new(scenario).expect("what fails is there");
        let (on, carriers) = (fabric.whole_ways(&scenario.graph), self::alone(carriage));
        let ways = alone.ways(on, &profiles[0], &flow(dst), &carriers);
        let times = alone.completion(on, &profiles, &flow(dst), &carriers);
        assert_eq!(alone.completion(on, &profiles, &flow(dst), &carriers), times, "remembered");
        (ways, times)
    }

    fn abreast(stages: &[LinkStage]) -> Vec<u32> {
        stages.iter().map(|stage| stage.parallel_links).collect()
    }

    #[test]
    fn a_connection_has_one_path_to_itself() {
        let scenario = scenario(|_| {});
        let (ways, (received, acknowledged)) = ways(&scenario, 15, ReplicationPlan::SINGLE);
        let [(way, Time::ZERO)] = &ways[..] else { panic!("one way from the start: {ways:?}") };
        assert_eq!([abreast(&way.forward), abreast(&way.backward)], [[1; 6], [1; 6]]);
        assert!(!way.lossy && received < acknowledged);
        let mut lone = IdealFlow::new(way.clone(), profiles(&scenario)[0].shape());
        assert_eq!(lone.completion(14_600), (received, acknowledged));
    }

    #[test]
    fn a_delayed_copy_on_an_equal_path_keeps_the_ideal_time() {
        let scenario = scenario(|_| {});
        let delay = Time::from_us(40);
        let (copied, times) = ways(&scenario, 15, ReplicationPlan::copied(3, delay));
        let starts: Vec<_> = copied.iter().map(|(_, start)| *start).collect();
        assert_eq!(starts, [0, 40, 80].map(Time::from_us));
        assert_eq!(times, ways(&scenario, 15, ReplicationPlan::SINGLE).1);
    }

    #[test]
    fn packets_that_may_go_any_way_have_all_shortest_paths_abreast() {
        let sprayed = scenario(|it| it.scheme.balance = BalanceSpec::Spray(Spray {}));
        let all = [1, 2, 4, 4, 2, 1];
        let (ways_of_packets, _) = ways(&sprayed, 15, ReplicationPlan::SINGLE);
        assert_eq!(abreast(&ways_of_packets[0].0.forward), all);
        assert_eq!(abreast(&ways_of_packets[0].0.backward), all);
        assert_eq!(abreast(&ways(&sprayed, 1, ReplicationPlan::SINGLE).0[0].0.forward), [1, 1]);
        let pieces = ReplicationPlan { piece: Some(1_460), ..ReplicationPlan::SINGLE };
        assert_eq!(abreast(&ways(&scenario(|_| {}), 15, pieces).0[0].0.forward), all);
    }

    #[test]
    fn subflows_have_as_many_links_abreast_as_their_paths_differ_in() {
        let spread = |subflows| {
            let mptcp = MptcpSpec { subflows, ..MptcpSpec::default() };
            let scenario = scenario(|it| it.scheme.transport = TransportSpec::Mptcp(mptcp));
            abreast(&ways(&scenario, 15, ReplicationPlan::SINGLE).0[0].0.forward)
        };
        assert_eq!(spread(1), [1; 6]);
        assert_eq!(spread(64), [1, 2, 4, 4, 2, 1], "so many take every path there is");
    }

    #[test]
    fn where_failures_change_routes_any_links_may_be_taken() {
        let down = Incident::LinkDown { link: "s0>s8".into(), at: Time::from_us(50), until: None };
        let failing = scenario(|it| it.faults.incidents = vec![down]);
        let (through, _) = ways(&failing, 15, ReplicationPlan::SINGLE);
        assert_eq!(abreast(&through[0].0.forward), [1, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1]);
        assert!(through[0].0.lossy, "what is under way on that link is lost");
        assert_eq!(abreast(&ways(&failing, 1, ReplicationPlan::SINGLE).0[0].0.forward), [1, 1]);
    }

    #[test]
    fn a_link_that_runs_faster_for_a_while_counts_as_that_fast() {
        let rate = Rate(10_000_000_000);
        let (at, until) = (Time::from_us(50), Some(Time::from_us(60)));
        let faster = |link: &str| {
            let link = link.to_owned();
            let incident = Incident::Rate { link, one_way: true, rate, at, until };
            scenario(|it| it.faults.incidents = vec![incident])
        };
        let graph = scenario(|_| {}).graph;
        assert_eq!(graph.switch(NodeId(16)), Some(SwitchId(0)), "which host 0 hangs on");
        let first =
            |scenario: &Scenario| ways(scenario, 1, ReplicationPlan::SINGLE).0[0].0.forward[0];
        assert_eq!(first(&faster("h0>s0")).clocking, SerializationRate::new(rate));
        let slower = first(&faster("h1>s0")).clocking;
        assert_eq!(slower, SerializationRate::new(graph.links[0].rate), "another link");
    }
}
