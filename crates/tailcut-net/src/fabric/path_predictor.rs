//! Predictions of the paths of packets, without sending any.

use super::Fabric;
use super::interfaces::Interfaces;
use crate::balance::Balancer;
use crate::packet::FlowKey;
use crate::topology::{Graph, PortId, Routes};

/// The routes of some time, and how switches choose among them.
#[derive(Clone, Copy)]
pub(crate) struct PathPredictor<'a> {
    pub graph: &'a Graph,
    pub routes: &'a Routes,
    balancer: &'a Balancer,
    /// The choice of hosts with several interfaces; `None` where each has one.
    interfaces: Option<&'a Interfaces>,
}

impl<'a> PathPredictor<'a> {
    /// Creates the predictor of a network.
    pub fn new(
        graph: &'a Graph,
        routes: &'a Routes,
        balancer: &'a Balancer,
        interfaces: Option<&'a Interfaces>,
    ) -> PathPredictor<'a> {
        PathPredictor { graph, routes, balancer, interfaces }
    }
}

impl PathPredictor<'_> {
    /// The ports that packets with this key cross, first to last. Where switches go by anything
    /// besides, it is one of the shortest paths, which all have as many links.
    pub fn path(&self, key: FlowKey) -> Vec<PortId> {
        self.path_behind(self.first_ports(key)[0], key)
    }

    /// The paths of packets with this key, one for each interface that they may leave by.
    pub fn paths(&self, key: FlowKey) -> Vec<Vec<PortId>> {
        self.first_ports(key).into_iter().map(|first| self.path_behind(first, key)).collect()
    }

    /// Returns the paths of one end of a connection that keeps to one interface both ways, one for
    /// each interface that its packets choose among.
    pub fn kept_paths(&self, key: FlowKey, back: bool) -> Vec<Vec<PortId>> {
        let packets = if back { key.reversed() } else { key };
        let first = self.kept_ports(key, back).into_iter();
        first.map(|first| self.path_behind(first, packets)).collect()
    }

    /// Returns whether hosts have several interfaces.
    pub fn has_interfaces(&self) -> bool {
        self.interfaces.is_some()
    }

    /// Returns the ports by which packets with this key may leave their host.
    pub fn first_ports(&self, key: FlowKey) -> Vec<PortId> {
        match self.interfaces {
            None => vec![self.routes.host_port(key.src())],
            Some(interfaces) => interfaces.first_ports(self.routes, key),
        }
    }

    /// Returns the ports by which one end of a connection may send that keeps to one interface both
    /// ways, whatever its packets' entropy values are. `key` is that of its sender; `back`: its
    /// receiver sends.
    pub fn kept_ports(&self, key: FlowKey, back: bool) -> Vec<PortId> {
        let host = if back { key.dst() } else { key.src() };
        match self.interfaces {
            None => vec![self.routes.host_port(host)],
            Some(interfaces) => interfaces.kept_ports(self.routes, key, back),
        }
    }

    /// Returns the ports by which packets between two hosts may leave, whatever their keys are and
    /// whatever fails.
    pub fn any_ports(&self, key: FlowKey) -> Vec<PortId> {
        match self.interfaces {
            None => vec![self.routes.host_port(key.src())],
            Some(interfaces) => interfaces.any_ports(self.routes, key),
        }
    }

    /// The ports that packets with this key cross from the port `first` on.
    fn path_behind(&self, first: PortId, key: FlowKey) -> Vec<PortId> {
        let mut path = vec![first];
        loop {
            let node = self.graph.far_end(path[path.len() - 1]);
            let Some(switch) = self.graph.switch(node) else { return path };
            let candidates = self.routes.candidates(switch, key.dst());
            let pick = self.balancer.predict(switch, candidates, key);
            path.push(candidates[pick.unwrap_or(0) as usize]);
        }
    }
}

impl Fabric {
    /// By the present routes.
    pub(crate) fn ways<'a>(&'a self, graph: &'a Graph) -> PathPredictor<'a> {
        let interfaces = self.interfaces.as_deref();
        PathPredictor { graph, routes: &self.routes, balancer: &self.balancer, interfaces }
    }

    /// Whether packets with one key arrive everywhere in the order in which they were sent,
    /// whatever happens.
    pub(crate) fn keeps_order(&self) -> bool {
        self.keeps_paths && self.scheduled.is_empty() && !self.incidents.any()
    }

    /// By those of the whole network, whatever has failed.
    pub(crate) fn whole_ways<'a>(&'a self, graph: &'a Graph) -> PathPredictor<'a> {
        let interfaces = self.healthy_interfaces.as_deref();
        let routes = self.fault_free_routes();
        PathPredictor { graph, routes, balancer: &self.balancer, interfaces }
    }
}

#[cfg(test)]
mod tests {
    use tailcut_engine::Time;

    use super::*;
    use crate::balance::BalanceSpec;
    use crate::balance::by_tier::ByTier;
    use crate::balance::spray::Spray;
    use crate::fabric::{FabricSpec, ForwardOutcome, OfferOutcome};
    use crate::packet::{ConnectionId, Flags, NO_OPTIONS, Packet, SeqField};
    use crate::topology::HostId;
    use crate::topology::fat_tree::FatTree;

    fn tree() -> Graph {
        FatTree { k: 4, ..FatTree::default() }.build().expect("k is even")
    }

    fn fabric(graph: &Graph, balance: BalanceSpec) -> Fabric {
        Fabric::new(&FabricSpec { balance, ..FabricSpec::with_defaults(graph) })
            .expect("it is connected")
    }

    /// The ports that a packet really crosses.
    fn crossed(fabric: &mut Fabric, key: FlowKey) -> Vec<PortId> {
        let connection = ConnectionId(0);
        let (options, flags, wire_bytes) = (NO_OPTIONS, Flags(0), 100);
        let mut packet =
            Packet { key, connection, seq: SeqField::new(0), options, wire_bytes, flags };
        let (mut port, mut now) = (fabric.host_port(key.src()), Time::ZERO);
        let mut ports = vec![port];
        loop {
            let OfferOutcome::AcceptedFirst(at) = fabric.offer(now, port, None, packet) else {
                panic!("nothing is in its way")
            };
            (now, packet) = (at, fabric.take_arrived(port).0);
            match fabric.forward(now, port, &mut packet) {
                ForwardOutcome::Switch { egress, .. } => port = egress,
                ForwardOutcome::Host(_) => return ports,
                ForwardOutcome::Lost => panic!("nothing fails"),
            }
            ports.push(port);
        }
    }

    #[test]
    fn per_connection_balancing_predicts_the_path_packets_take() {
        let graph = tree();
        let ecmp = BalanceSpec::default;
        let tiers = ByTier { edge: Box::new(ecmp()), ..ByTier::default() };
        for balance in [ecmp(), BalanceSpec::ByTier(tiers)] {
            assert!(balance.is_per_connection());
            let mut fabric = fabric(&graph, balance);
            for port in 1_024..1_088 {
                let key = FlowKey::new(HostId(1), HostId(14), port, 5_000);
                assert_eq!(fabric.ways(&graph).path(key), crossed(&mut fabric, key));
            }
        }
    }

    #[test]
    fn predicts_a_shortest_path_when_spraying() {
        let graph = tree();
        let fabric = fabric(&graph, BalanceSpec::Spray(Spray {}));
        let links =
            |dst| fabric.ways(&graph).path(FlowKey::new(HostId(0), dst, 1_024, 5_000)).len();
        // Under one edge switch, in one pod, and across the core.
        assert_eq!([1, 2, 15].map(HostId).map(links), [2, 4, 6]);
    }
}
