//! Several patterns at once, such as long background flows under short ones.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::demand::Demand;
use super::{Pattern, TrafficContext, TrafficError, TrafficSpec};

/// Parameters of mixed traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The patterns. Each draws from streams of its own: another part added at the end does not
    /// change the others. Flows to which a trace or graph gives an `id` keep it; the others are
    /// numbered from 0, in order of start, skipping those. A graph that has an id of an earlier part
    /// is numbered anew; messages about its rows have the ids of its file.
    pub parts: Vec<TrafficSpec>,
}

impl Mix {
    fn draw(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        if self.parts.is_empty() {
            return Err(TrafficError::new(
                "mix-parts",
                "parts",
                "parts = []: must have at least one part",
            ));
        }
        let (mut demand, mut taken) = (Demand::default(), BTreeSet::new());
        for (index, part) in self.parts.iter().enumerate() {
            let place = format!("parts[{index}]");
            if matches!(part, TrafficSpec::Mix(_)) {
                return Err(TrafficError::new(
                    "mix-nested",
                    place,
                    "a part of a mix cannot be a mix",
                )
                .hint("list its parts directly"));
            }
            let mut of_part = part
                .checked_demand(&TrafficContext { part: index as u64, ..*setting })
                .map_err(|mut error| {
                    error.field = format!("{place}.{}", error.field);
                    error
                })?;
            if matches!(part, TrafficSpec::Graph(_))
                && of_part.given_ids().any(|id| taken.contains(&id))
            {
                of_part.number_anew();
            }
            taken.extend(of_part.given_ids());
            demand.append(of_part);
        }
        let demand = demand.numbered();
        let mut ids: Vec<u64> = demand.flows.iter().map(|flow| flow.id).collect();
        ids.sort_unstable();
        match ids.windows(2).find(|two| two[0] == two[1]) {
            None => Ok(demand),
            Some(two) => {
                let message = format!("two parts of the mix have a flow with id {}", two[0]);
                Err(TrafficError::new("trace-id", "parts", message)
                    .hint("every flow needs an id of its own"))
            }
        }
    }
}

impl Pattern for Mix {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.draw(setting)
    }
    fn sized_by(&self) -> &'static str {
        "parts"
    }
    fn files(&self) -> Vec<&str> {
        self.parts.iter().flat_map(|part| part.files()).collect()
    }
}
