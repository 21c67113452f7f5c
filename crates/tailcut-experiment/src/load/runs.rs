//! From configurations to runs: networks are built and flows generated, for what to expect of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tailcut_net::component::SpecError;
use tailcut_net::topology::Graph;
use tailcut_net::traffic::Flow;

use super::configs::{point_json, unrealisable, Combination};
use super::header::Header;
use super::Loader;
use crate::config::Config;
use crate::plan::{run_id, RunPlan, Workload};
use crate::resolve::{Axis, Schemes};

impl Loader {
    /// The runs in the order of the plan: points, then schemes, then seeds.
    pub(super) fn runs(
        &mut self,
        combinations: &[Combination],
        schemes: &Schemes,
        axes: &[Axis],
        header: &Header,
    ) -> Option<Vec<RunPlan>> {
        let graphs = self.graphs(combinations)?;
        let mut runs = Vec::with_capacity(combinations.len() * header.seeds.len());
        // Schemes see the same flows; those of the point at hand are kept.
        let mut known: BTreeMap<(String, u64), Rc<Vec<Flow>>> = BTreeMap::new();
        let mut at = &combinations.first()?.point;
        let mut problems = Vec::new();
        for (combination, graph) in combinations.iter().zip(&graphs) {
            if *at != combination.point {
                at = &combination.point;
                known.clear();
            }
            let config = &combination.config;
            for &seed in &header.seeds {
                let key = (flow_key(config), seed);
                let flows = match known.get(&key) {
                    Some(flows) => Rc::clone(flows),
                    None => match config.flows(graph, seed, &|path| self.files.read(path)) {
                        Ok(flows) => {
                            let flows = Rc::new(flows);
                            known.insert(key, Rc::clone(&flows));
                            flows
                        }
                        Err((section, error)) => {
                            problems.push(unrealisable(&combination.tree, section, &error));
                            break;
                        }
                    },
                };
                let end = config.horizon.arrivals + config.horizon.drain;
                let facts = match Workload::new(graph, &flows, end) {
                    Ok(workload) => workload.facts(config),
                    Err(error) => {
                        let error = SpecError::new("topology-route", "kind", error.to_string());
                        problems.push(unrealisable(&combination.tree, "topology", &error));
                        break;
                    }
                };
                // The files have been read to get here; should one be gone now, the run will say so.
                let files = self.files.uses(&config.files()).unwrap_or_default();
                runs.push(RunPlan {
                    id: run_id(config, seed, &files),
                    scheme: schemes.names[combination.scheme].clone(),
                    point: point_json(axes, &combination.point),
                    seed,
                    config: config.clone(),
                    files,
                    facts,
                });
            }
        }
        self.add(problems);
        self.problems.is_empty().then_some(runs)
    }

    /// The network of each combination; equal ones are built once.
    fn graphs(&mut self, combinations: &[Combination]) -> Option<Vec<Rc<Graph>>> {
        let mut known: BTreeMap<String, Rc<Graph>> = BTreeMap::new();
        let mut graphs = Vec::new();
        let mut problems = Vec::new();
        for combination in combinations {
            let config = &combination.config;
            let key = json!([config.topology, config.series]).to_string();
            if let Some(graph) = known.get(&key) {
                graphs.push(Rc::clone(graph));
                continue;
            }
            match config.graph(&|path| self.files.read(path)) {
                Ok(graph) => {
                    let graph = Rc::new(graph);
                    known.insert(key, Rc::clone(&graph));
                    graphs.push(graph);
                }
                Err((section, error)) => {
                    problems.push(unrealisable(&combination.tree, section, &error))
                }
            }
        }
        self.add(problems);
        self.problems.is_empty().then_some(graphs)
    }
}

fn flow_key(config: &Config) -> String {
    json!([config.topology, config.traffic, config.horizon]).to_string()
}
