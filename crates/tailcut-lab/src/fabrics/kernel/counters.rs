//! What the queues of an interface have counted, as `tc` tells it.

use std::collections::BTreeMap;
use std::io;

use serde_json::Value;

/// An interface's rate and queue, as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Queue {
    /// Bytes per second of its tbf.
    pub rate: u64,
    /// What tbf counts with each packet.
    pub overhead: u64,
    /// The kind of its queue.
    pub kind: String,
    /// And its limit.
    pub limit: u64,
    /// What it has counted.
    pub counts: Counts,
}

/// What a queue has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Packets that have left.
    pub packets: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
    /// Packets that found no room.
    pub drops: u64,
}

impl Counts {
    /// What came after `before`.
    pub fn since(self, before: Counts) -> Counts {
        Counts {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            drops: self.drops - before.drops,
        }
    }
}

/// The queues by interface, of what `tc -s -j qdisc show` says.
///
/// # Errors
/// When it says something else.
pub fn read(said: &str) -> io::Result<BTreeMap<String, Queue>> {
    let found: Vec<Value> = serde_json::from_str(said)?;
    let mut queues: BTreeMap<String, Queue> = BTreeMap::new();
    for one in &found {
        let Some(interface) = one["dev"].as_str() else { continue };
        let number = |name: &str| one[name].as_u64().unwrap_or(0);
        let option = |name: &str| one["options"][name].as_u64().unwrap_or(0);
        let kind = one["kind"].as_str().unwrap_or("");
        if kind != "tbf" && !kind.ends_with("fifo") {
            continue;
        }
        let queue = queues.entry(interface.to_owned()).or_default();
        if kind == "tbf" {
            (queue.rate, queue.overhead) = (option("rate"), option("overhead"));
            let [packets, bytes, drops] = ["packets", "bytes", "drops"].map(number);
            queue.counts = Counts { packets, bytes, drops };
        } else {
            (queue.kind, queue.limit) = (kind.to_owned(), option("limit"));
        }
    }
    Ok(queues)
}
