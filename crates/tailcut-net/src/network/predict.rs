//! Predictions of a run's flows before any packet is sent, for other backends that carry the flows.

use super::flow_predictor::{FlowPredictor, key_of};
use super::flows::Flows;
use super::profile::profiles;
use super::{SimError, check_scenario};
use crate::fabric::Fabric;
use crate::measure::records::FlowRecord;
use crate::packet::FlowKey;
use crate::scenario::Scenario;
use crate::topology::PortId;

/// A flow before it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedFlow {
    /// The row of the flow table, with ideal times and links and no outcome.
    pub record: FlowRecord,
    /// The packet key of the first connection, from sender to receiver.
    pub key: FlowKey,
    /// The directed links that they cross, first to last; none where packets of one connection take
    /// several paths.
    pub forward: Vec<PortId>,
    /// The ports that its acknowledgements cross.
    pub backward: Vec<PortId>,
}

/// Every flow of a scenario, in its order, as the simulator would describe it at its start.
///
/// # Errors
/// [`SimError`] when the scenario is inconsistent.
pub fn predict_flows(scenario: &Scenario) -> Result<Vec<PredictedFlow>, SimError> {
    check_scenario(scenario)?;
    let fabric = Fabric::new(&scenario.fabric_spec())?;
    let profiles = profiles(scenario);
    let mut foresight = FlowPredictor::new(scenario, &profiles)?;
    let mut flows = Flows::new(scenario);
    let scheme = &scenario.scheme;
    let keeps_path = scheme.balance.is_per_connection() && scheme.interface.is_per_connection();
    let path = |key| match keeps_path {
        true => fabric.ways(&scenario.graph).path(key),
        false => vec![],
    };
    let foretold = flows.all().map(|index| {
        let foreseen = foresight.predict(flows.flow(index), &fabric);
        flows.foresee(index, &foreseen);
        let record = flows.record(index);
        let key = key_of(&record.flow, 0, 0);
        PredictedFlow { key, forward: path(key), backward: path(key.reversed()), record }
    });
    Ok(foretold.collect())
}
