//! Predictions of a flow before its first packet: its transport, the length of its path, and its
//! best possible rate.

use tailcut_engine::Time;

use super::ideal_times::{Carriers, IdealTimes};
use super::profile::{ProfileId, TransportProfile};
use crate::fabric::{Fabric, FabricError};
use crate::packet::{FIRST_SOURCE_PORT, FlowKey, SERVICE_PORT, SOURCE_PORTS};
use crate::scenario::Scenario;
use crate::traffic::Flow;

/// The source port of a subflow, which gives it a path of its own; other connections have that of
/// the first.
pub(super) fn source_port(flow: u64, subflow: u8) -> u16 {
    // Far apart, and never twice for 60 subflows.
    FIRST_SOURCE_PORT + ((flow + u64::from(subflow) * 997) % SOURCE_PORTS) as u16
}

/// Returns the packet key of a subflow; `first` is the key of the flow's first subflow.
pub fn subflow_key(first: FlowKey, subflow: u8) -> FlowKey {
    let place = u64::from(first.sport() - FIRST_SOURCE_PORT);
    FlowKey::new(first.src(), first.dst(), source_port(place, subflow), first.dport())
}

/// Returns the packet key of a connection of a flow.
pub(super) fn key_of(flow: &Flow, copy: u8, piece: u64) -> FlowKey {
    let port = FIRST_SOURCE_PORT + ((flow.id + piece) % SOURCE_PORTS) as u16;
    FlowKey::new(flow.src, flow.dst, port, SERVICE_PORT + u16::from(copy))
}

/// The prediction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowPrediction {
    /// The transport that carries it.
    pub profile: ProfileId,
    /// Links between its hosts.
    pub hops: u8,
    /// Links between their switches that its first two copies share; none where there is one, or
    /// paths are not kept.
    pub shared_hops: Option<u8>,
    /// The best possible times until its last byte arrives, and until that is acknowledged.
    pub ideal: (Time, Time),
}

/// Foresees, and remembers what it has worked out.
pub(super) struct FlowPredictor<'a> {
    scenario: &'a Scenario,
    profiles: &'a [TransportProfile],
    alone: IdealTimes,
}

impl<'a> FlowPredictor<'a> {
    /// Creates the predictor of a scenario's flows.
    ///
    /// # Errors\nWhen a fault names a link or switch that does not exist.
    pub fn new(
        scenario: &'a Scenario,
        profiles: &'a [TransportProfile],
    ) -> Result<Self, FabricError> {
        Ok(FlowPredictor { scenario, profiles, alone: IdealTimes::new(scenario)? })
    }

    /// Predicts a flow that starts now.
    pub fn predict(&mut self, flow: &Flow, fabric: &Fabric) -> FlowPrediction {
        let Scenario { scheme, graph, .. } = self.scenario;
        let profile = self.profile(flow);
        let carriage = scheme.replicate.replication_plan(flow.bytes);
        let ways = fabric.ways(graph);
        let path = ways.path(key_of(flow, 0, 0));
        let keeps_path = scheme.balance.is_per_connection() && scheme.interface.is_per_connection();
        let second = carriage.copies > 1 && keeps_path;
        let shared = second.then(|| {
            let other = ways.path(key_of(flow, 1, 0));
            let inner = &path[1..path.len().saturating_sub(1)];
            let shared = inner.iter().filter(|port| other.contains(port)).count();
            u8::try_from(shared).unwrap_or(u8::MAX)
        });
        let carriers = Carriers { profile, carriage };
        let whole = fabric.whole_ways(graph);
        FlowPrediction {
            profile,
            hops: u8::try_from(path.len()).unwrap_or(u8::MAX),
            shared_hops: shared,
            ideal: self.alone.completion(whole, self.profiles, flow, &carriers),
        }
    }

    /// The transport that carries a flow.
    pub fn profile(&self, flow: &Flow) -> ProfileId {
        ProfileId::at(self.scenario.scheme.transport.carrier_of(flow, self.scenario.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::profile::profiles;
    use crate::network::tests::scenario;
    use crate::replicate::ReplicateSpec;

    #[test]
    fn a_flow_through_one_switch_crosses_two_links_and_shares_none_between_switches() {
        let mut scenario = scenario();
        let foresee = |scenario: &Scenario| {
            let fabric = Fabric::new(&scenario.fabric_spec()).expect("it is connected");
            let profiles = profiles(scenario);
            let mut foresight = FlowPredictor::new(scenario, &profiles).expect("nothing fails");
            foresight.predict(&scenario.flows[0], &fabric)
        };
        let alone = foresee(&scenario);
        assert_eq!((alone.profile, alone.hops, alone.shared_hops), (ProfileId::at(0), 2, None));
        assert!(alone.ideal.0 > Time::ZERO && alone.ideal.1 > alone.ideal.0);
        scenario.scheme.replicate = ReplicateSpec::Repflow(Default::default());
        let copied = foresee(&scenario);
        assert_eq!((copied.shared_hops, copied.ideal), (Some(0), alone.ideal));
    }

    #[test]
    fn subflows_have_source_ports_of_their_own_and_copies_other_destinations() {
        let ports: std::collections::BTreeSet<_> = (0..60).map(|n| source_port(3, n)).collect();
        assert_eq!(ports.len(), 60);
        let flow = scenario().flows[0];
        let late = FlowKey::new(flow.src, flow.dst, source_port(59_900, 0), SERVICE_PORT);
        for subflow in 0..8 {
            let key = subflow_key(late, subflow);
            assert_eq!((key.src(), key.dst(), key.dport()), (late.src(), late.dst(), late.dport()));
            assert_eq!(key.sport(), source_port(59_900, subflow));
        }
        let [first, second] = [0, 1].map(|copy| key_of(&flow, copy, 0));
        assert_eq!((first.sport(), first.dport() + 1), (second.sport(), second.dport()));
        assert_eq!(key_of(&flow, 0, 2).sport(), first.sport() + 2);
    }
}
