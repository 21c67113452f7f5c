//! Hosts with several interfaces.

use serde_json::{Value, json};

use super::{Sections, kind, robust, with};

/// Planes and rails, some of which fail for a while.
pub fn several() -> Sections {
    let planes = json!({ "kind": "multi-plane", "rate": "1Gbps" });
    let rails = json!({
        "kind": "rail-optimised", "servers": 6, "servers_per_unit": 3, "rate": "1Gbps",
        "internal_rate": "8Gbps",
    });
    let down = |incident: Value| {
        let times = json!({ "at": "5ms", "until": "12ms" });
        json!({ "reconvergence": "2ms", "incidents": [with(incident, times)] })
    };
    let for_good = |mut faults: Value| {
        faults["incidents"][0]["until"] = Value::Null;
        faults
    };
    let plane = || down(json!({ "kind": "plane-down", "plane": 1 }));
    let by = |kind: &str| json!({ "kind": kind });
    let by_soon = |kind: &str| json!({ "kind": kind, "detection": "500us" });
    vec![
        (
            "planes by flow, one fails",
            json!({ "topology": planes, "interface": by("by-flow"), "faults": plane() }),
        ),
        (
            "planes by flow, an interface fails",
            json!({ "topology": planes, "interface": by_soon("by-flow"),
                "faults": down(json!({ "kind": "link-down", "link": "h0>p0leaf0" })) }),
        ),
        (
            "planes by packet, one fails",
            json!({ "topology": planes, "interface": by("by-packet"), "faults": plane(),
                "transport": robust(kind("rack")) }),
        ),
        (
            "planes by packet, sprayed, one fails for good",
            json!({ "topology": planes, "interface": by_soon("by-packet"), "faults": for_good(plane()),
                "transport": robust(kind("rack")), "balance": kind("spray") }),
        ),
        (
            "rails, one fails for a while",
            json!({ "topology": rails,
                "faults": down(json!({ "kind": "rail-down", "rail": 1 })) }),
        ),
        (
            "rails by the receiver's, one fails for good",
            json!({ "topology": with(rails, json!({ "servers_per_unit": null })),
                "interface": by("by-rail"),
                "traffic": { "kind": "poisson", "load": 0.4, "sizes": "100KB" },
                "faults": for_good(down(json!({ "kind": "rail-down", "rail": 1 }))) }),
        ),
    ]
}
