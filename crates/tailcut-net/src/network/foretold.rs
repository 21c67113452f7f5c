//! What is known of a run's flows before any packet is sent: for whoever carries them out by other means.

use super::flows::key_of;
use super::profile::profiles;
use super::{Network, SimError};
use crate::balance::ecmp;
use crate::measure::records::FlowRecord;
use crate::measure::Unobserved;
use crate::packet::FlowKey;
use crate::scenario::Scenario;
use crate::topology::PortId;

/// A flow before it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Foretold {
    /// Its row of the flow table: its ideal times and its links are known, nothing has happened to it.
    pub record: FlowRecord,
    /// What the packets of its first connection go by, from sender to receiver.
    pub key: FlowKey,
    /// The directed links that they cross, first to last; none where packets of one connection take several paths.
    pub forward: Vec<PortId>,
    /// Those that its acknowledgements cross.
    pub backward: Vec<PortId>,
}

/// Every flow of a scenario, in its order, as the simulator would describe it at its start.
///
/// # Errors
/// [`SimError`] when the scenario is inconsistent.
pub fn foretell(scenario: &Scenario) -> Result<Vec<Foretold>, SimError> {
    let profiles = profiles(scenario);
    let mut network = Network::new(scenario, &profiles, Unobserved)?;
    let keeps_paths = scenario.scheme.balance.keeps_paths();
    let foretold = (0..scenario.flows.len() as u32).map(|index| {
        network.foresee(index);
        let record = network.flows[index as usize].record();
        let key = key_of(&record.flow, 0, 0);
        let path = |key| match keeps_paths {
            true => ecmp::path(&scenario.graph, network.fabric.routes(), key),
            false => vec![],
        };
        Foretold { key, forward: path(key), backward: path(key.reversed()), record }
    });
    Ok(foretold.collect())
}
