//! Turns configurations into runs: builds their networks and generates their flows, for the facts
//! of the plan.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tailcut_net::component::SpecError;
use tailcut_net::topology::{Graph, MAX_HOSTS};

use super::Loader;
use super::configs::{Combination, point_json, unrealisable};
use super::header::Header;
use crate::config::SectionError;
use crate::plan::{RoutedGraph, RunFlows, RunPlan, run_id};
use crate::resolve::{Axis, Schemes};
use crate::sections::Config;

impl Loader<'_> {
    /// Returns the runs in the order of the plan: points, then schemes, then seeds. Returns `None`
    /// if there is a problem.
    pub(super) fn runs(
        &mut self,
        combinations: &[Combination],
        schemes: &Schemes,
        axes: &[Axis],
        header: &Header,
    ) -> Option<Vec<RunPlan>> {
        let networks = self.networks(combinations)?;
        let mut runs = Vec::with_capacity(combinations.len() * header.seeds.len());
        // All schemes see the same flows: those of the current point are kept.
        let mut known: BTreeMap<(String, u64), Rc<RunFlows>> = BTreeMap::new();
        let mut at = &combinations.first()?.point;
        let mut problems = Vec::new();
        let mut sampled = combinations
            .iter()
            .map(|c| vec![false; c.config.series.flows.len()])
            .collect::<Vec<_>>();
        for ((combination, network), sampled) in
            combinations.iter().zip(&networks).zip(&mut sampled)
        {
            if *at != combination.point {
                at = &combination.point;
                known.clear();
            }
            let config = &combination.config;
            let key = json!([config.topology, config.traffic, config.horizon]).to_string();
            for &seed in &header.seeds {
                let workload = match known.get(&(key.clone(), seed)) {
                    Some(workload) => Rc::clone(workload),
                    None => match self.workload(config, network, seed) {
                        Ok(workload) => {
                            let workload = Rc::new(workload);
                            known.insert((key.clone(), seed), Rc::clone(&workload));
                            workload
                        }
                        Err((section, error)) => {
                            problems.push(unrealisable(&combination.tree, section, &error));
                            break;
                        }
                    },
                };
                if let Err(error) = config
                    .scheme
                    .transport
                    .check_flows(&|above, up_to| workload.largest_flow(above, up_to))
                {
                    problems.push(unrealisable(&combination.tree, "transport", &error));
                    break;
                }
                for (found, id) in sampled.iter_mut().zip(&config.series.flows) {
                    *found |= workload.has_flow(*id);
                }
                // The files have been read before. If one is gone now, the run reports it.
                let files = self.files.uses(&config.files()).unwrap_or_default();
                runs.push(RunPlan {
                    id: run_id(config, seed, &files),
                    scheme: schemes.names[combination.scheme].clone(),
                    point: point_json(axes, &combination.point),
                    seed,
                    config: config.clone(),
                    files,
                    facts: workload.facts(config, seed),
                });
            }
        }
        if problems.is_empty() {
            problems.extend(unsampled(combinations, &sampled));
        }
        self.add(problems);
        self.problems.is_empty().then_some(runs)
    }

    fn workload(
        &self,
        config: &Config,
        network: &Rc<RoutedGraph>,
        seed: u64,
    ) -> Result<RunFlows, SectionError> {
        let demand = config.demand(&network.graph, seed, &self.files)?;
        Ok(RunFlows::new(network, demand, config.horizon.arrivals + config.horizon.drain))
    }

    /// Returns the network of each combination; combinations with equal networks share one. Returns
    /// `None` if there is a problem.
    fn networks(&mut self, combinations: &[Combination]) -> Option<Vec<Rc<RoutedGraph>>> {
        let mut known: BTreeMap<String, Rc<RoutedGraph>> = BTreeMap::new();
        let mut networks = Vec::new();
        let mut problems = Vec::new();
        for combination in combinations {
            let config = &combination.config;
            let key = json!([config.topology, config.series, config.faults]).to_string();
            let known_or_routed = match known.get(&key) {
                Some(network) => Ok(Rc::clone(network)),
                None => config
                    .graph(&self.files)
                    .and_then(|graph| route(graph).map_err(|error| ("topology", error)))
                    .map(Rc::new),
            };
            let checked = known_or_routed
                .and_then(|network| config.check_topology(&network.graph).map(|()| network));
            match checked {
                Ok(network) => {
                    known.entry(key).or_insert_with(|| Rc::clone(&network));
                    networks.push(network);
                }
                Err((section, error)) => {
                    problems.push(unrealisable(&combination.tree, section, &error))
                }
            }
        }
        self.add(problems);
        self.problems.is_empty().then_some(networks)
    }
}

fn route(graph: Graph) -> Result<RoutedGraph, SpecError> {
    if graph.hosts > MAX_HOSTS {
        let message = format!("{} hosts: at most {MAX_HOSTS} are supported", graph.hosts);
        return Err(SpecError::new("topology-hosts", "kind", message));
    }
    RoutedGraph::new(graph)
        .map_err(|error| SpecError::new("topology-route", "kind", error.to_string()))
}

/// Returns a problem for each flow that a time series names and no run has. The number of flows may
/// differ from run to run, so one run that has the flow is enough.
fn unsampled(
    combinations: &[Combination],
    sampled: &[Vec<bool>],
) -> Vec<crate::diagnostic::Problem> {
    let mut problems = Vec::new();
    for (combination, found) in combinations.iter().zip(sampled) {
        for (index, id) in combination.config.series.flows.iter().enumerate() {
            let elsewhere = combinations.iter().zip(sampled).any(|(other, found)| {
                other
                    .config
                    .series
                    .flows
                    .iter()
                    .zip(found)
                    .any(|(other, found)| other == id && *found)
            });
            if !found[index] && !elsewhere {
                let error = SpecError::new(
                    "series-flow",
                    format!("flows[{index}]"),
                    format!("no run has a flow {id}"),
                );
                problems.push(unrealisable(&combination.tree, "series", &error));
            }
        }
    }
    problems
}
