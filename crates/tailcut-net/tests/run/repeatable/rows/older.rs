//! Rows of older senders.

use serde_json::json;

use super::{Sections, tcp};

/// Returns rows of ns-3.10's recovery and of a timeout of the first data.
pub fn older() -> Sections {
    let queue = json!({ "kind": "drop-tail", "limit": "5packets" });
    let imitating = |recovery: &str, name: &str| {
        let transport = tcp(json!({ "recovery": recovery, "imitate": [name] }));
        json!({ "queue": queue, "transport": transport })
    };
    let late = json!({ "first_data_rto": "30ms" });
    let subflows = json!({ "kind": "mptcp", "tcp": late });
    let paws = |paws: &str| {
        let stamps = json!({ "timestamps": true, "timestamp_tick": "1us", "paws": paws });
        json!({ "queue": queue, "transport": tcp(stamps), "balance": { "kind": "spray" } })
    };
    vec![
        ("PAWS, sprayed", paws("rfc-7323")),
        ("PAWS of Linux, sprayed", paws("linux")),
        ("NewReno of ns-3.10", imitating("newreno", "duplicates-after-timeout")),
        ("SACK that goes back", imitating("sack-prr", "go-back-n")),
        ("first data waits", json!({ "queue": queue, "transport": tcp(late.clone()) })),
        ("first data waits, MPTCP", json!({ "queue": queue, "transport": subflows })),
    ]
}
