//! Every kind of traffic under every transport.

use serde_json::json;

use crate::smoke::experiment::{carry_out, loaded};
use crate::smoke::factors::kinds;

#[test]
fn every_kind_of_traffic_runs() {
    let mixed = [json!({"transport": {"kind": "tcp"}}), json!({"transport": {"kind": "mptcp"}})];
    for mut transport in kinds("transport") {
        if transport["kind"] == "mixed" {
            transport["parts"] = mixed.to_vec().into();
        }
        for mut traffic in kinds("traffic") {
            let small = match traffic["kind"].as_str() {
                Some("permutation") => json!({"sizes": "50KB"}),
                Some("transfers") => json!({"bytes": "100KB", "sizes": "30KB"}),
                Some("shuffle") => json!({"bytes": "1MB"}),
                Some("bucket-sort") => json!({"numbers": 500, "jitter": "10us"}),
                Some("long-and-short") => {
                    json!({"long": "200KB", "short_flows_per_second": 20000.0})
                }
                Some("trace") => json!({"flows": [{"src": 0, "dst": 5, "bytes": "30KB"}]}),
                Some("graph") => json!({"file": "job.csv"}),
                Some("collective") => json!({"operation": "all-reduce", "bytes": "200KB"}),
                Some("mix") => {
                    json!({"parts": [{"kind": "poisson", "sizes": "20KB"}, {"kind": "pings"}]})
                }
                Some("poisson" | "hot-spots") => json!({"sizes": "20KB"}),
                _ => json!({}),
            };
            let small = small.as_object().expect("a table").clone();
            traffic.as_object_mut().expect("a table").extend(small);
            let queue = match transport["kind"].as_str() {
                Some("pfabric") => "pfabric",
                Some("ndp" | "uet") => "trimming",
                _ => "drop-tail",
            };
            let experiment = json!({
                "title": "smoke", "seeds": 1, "topology": {"kind": "fat-tree", "k": 4},
                "queue": { "kind": queue }, "transport": transport,
                "traffic": traffic,
                "horizon": { "arrivals": "2ms", "drain": "30s" },
            });
            let plan = loaded(&experiment)
                .unwrap_or_else(|codes| panic!("{experiment} is refused: {codes:?}"));
            carry_out(&plan.runs[0], &experiment);
        }
    }
}
