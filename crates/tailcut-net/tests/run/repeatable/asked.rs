//! A run as an experiment file describes it.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tailcut_net::amount::Limit;
use tailcut_net::balance::BalanceSpec;
use tailcut_net::faults::FaultsSpec;
use tailcut_net::host::HostSpec;
use tailcut_net::interface::InterfaceSpec;
use tailcut_net::queue::QueueSpec;
use tailcut_net::replicate::ReplicateSpec;
use tailcut_net::scenario::{Horizon, Scenario, Scheme, SeriesSpec};
use tailcut_net::switch::SwitchSpec;
use tailcut_net::topology::TopologySpec;
use tailcut_net::traffic::TrafficSpec;
use tailcut_net::transport::TransportSpec;

/// The sections that decide a run. Time series only observe it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    topology: TopologySpec,
    traffic: TrafficSpec,
    horizon: Horizon,
    #[serde(default)]
    host: HostSpec,
    #[serde(default)]
    switch: SwitchSpec,
    #[serde(default)]
    faults: FaultsSpec,
    #[serde(default)]
    queue: QueueSpec,
    #[serde(default)]
    balance: BalanceSpec,
    #[serde(default)]
    transport: TransportSpec,
    #[serde(default)]
    replicate: ReplicateSpec,
    #[serde(default)]
    interface: InterfaceSpec,
}

/// Returns web search on a small fat-tree, with the given sections in place of the defaults.
pub fn asked(sections: &Value) -> Asked {
    let mut all = json!({
        "topology": { "kind": "fat-tree", "k": 4 },
        "traffic": { "kind": "poisson", "load": 0.6 },
        "horizon": { "arrivals": "60ms", "drain": "100ms" },
    });
    for (section, value) in sections.as_object().expect("sections are a table") {
        all[section] = value.clone();
    }
    serde_json::from_value(all).unwrap_or_else(|error| panic!("{error}: {sections}"))
}

/// Returns the files that these experiments name.
fn file(path: &str) -> io::Result<Vec<u8>> {
    let content: &[u8] = match path {
        "fabric.json" => include_bytes!("../../fabric/data/fat_tree_k4_links.json"),
        "sizes.txt" => b"1 0\n10 0.5\n40 1\n",
        "flows.csv" => b"7 0 5 200000 0\n3 1 6 90000 250000\n",
        "job.csv" => {
            b"id,src,dst,bytes,host,duration_ns,after\na,0,9,200000,,,\nb,9,1,50000,,,c\nc,,,,9,5000,a\n"
        }
        "ordered.csv" => {
            b"id,src,dst,bytes,pool,at_once,until,after\na,0,9,90000,p,1,sent,\nb,0,13,90000,p,1,sent,\nc,0,5,90000,p,1,sent,\nd,9,0,50000,,,,a\n"
        }
        "named.csv" => b"2 9 30000 1\n4 11 500000 0\n",
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    Ok(content.to_vec())
}

impl Asked {
    pub fn scenario(&self) -> Scenario {
        let Asked { topology, traffic, horizon, host, switch, faults, .. } = self.clone();
        let graph = topology.build(&file).expect("the topology is valid");
        let demand = traffic.generate(&graph, &horizon, 7, &file).expect("the traffic is valid");
        let Asked { queue, balance, transport, replicate, interface, .. } = self.clone();
        let scheme = Scheme { transport, queue, balance, replicate, interface };
        let series = SeriesSpec::default();
        let (flows, jobs) = (demand.flows, demand.jobs);
        let scenario = Scenario {
            graph,
            host,
            switch,
            faults,
            scheme,
            flows,
            jobs,
            horizon,
            seed: 1,
            series,
            max_port_samples: 0,
        };
        check(&scenario);
        scenario
    }
}

/// Fails if an experiment with this scenario would be refused.
fn check(scenario: &Scenario) {
    let Scenario { graph, host, switch, faults, scheme, horizon, .. } = scenario;
    let control = switch.flow_control();
    let checks = [
        host.check(),
        switch.check(),
        faults.check(),
        horizon.check(),
        scheme.queue.check(),
        scheme.balance.check(),
        scheme.balance.check_topology(graph),
        scheme.transport.check(),
        scheme.replicate.check(),
        scheme.interface.check(),
        scheme.interface.check_topology(graph),
        scheme.check_interfaces(graph).map_err(|(_, error)| error),
        scheme.check_marks(),
        scheme.check_priorities(),
        scheme.check_replication(),
        control.map_or(Ok(()), |control| scheme.queue.check_flow_control(&*control)),
        match switch.shared_buffer {
            Limit::Unlimited => Ok(()),
            Limit::AtMost(_) => scheme.queue.check_shared(),
        },
    ];
    assert!(checks.iter().all(Result::is_ok), "{checks:?}");
}
