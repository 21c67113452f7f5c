//! Flowlets (Kandula, Katabi, Sinha, Berger, FLARE, 2007; the comparison of the spraying paper): a
//! flow keeps its port while its packets follow closely. It draws a new one after a gap, or after a
//! number of bytes.
//!
//! Each switch has a hash table without collision handling, as in FLARE: flows that share an entry
//! share their flowlets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;
use tailcut_engine::{Bytes, RandomStream, Time};

use super::{Layout, Pick, PickContext, Strategy};
use crate::component::SpecError;
use crate::packet::{FlowKey, Packet};
use crate::topology::{Graph, SwitchId};

/// Parameters of flowlet switching.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Flowlet {
    /// Silence after which a flow may change its port.
    pub gap: Time,
    /// Bytes on one port after which a flow may change it as well; `"0B"` for no such limit.
    pub bytes: Bytes,
    /// Entries of each switch's table.
    pub entries: u32,
}

impl Default for Flowlet {
    fn default() -> Self {
        Flowlet { gap: Time::from_us(100), bytes: Bytes(0), entries: 4096 }
    }
}

impl Strategy for Flowlet {
    type State = Flowlets;

    fn check(&self) -> Result<(), SpecError> {
        if self.entries == 0 || self.entries > 1 << 20 {
            let message = format!("entries = {}: must be from 1 to 1,048,576", self.entries);
            return Err(SpecError::new("flowlet-entries", "entries", message));
        }
        Ok(())
    }

    /// Refuses tables of all switches that do not fit into memory.
    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let switches = graph.switches;
        let entries = u64::from(self.entries) * u64::from(switches);
        if entries <= MOST_ENTRIES {
            return Ok(());
        }
        let message = format!(
            "{} entries in each of {switches} switches: at most {MOST_ENTRIES} in all",
            self.entries
        );
        Err(SpecError::new("flowlet-entries", "entries", message))
    }

    fn state_bytes(&self, graph: &Graph) -> u64 {
        u64::from(graph.switches) * u64::from(self.entries) * size_of::<Entry>() as u64
    }

    fn state(&self, layout: Layout<'_>) -> Flowlets {
        Flowlets::new(self, layout.graph.switches, layout.seed)
    }
}

/// Maximum entries over all switches: they take 1.5 GB.
const MOST_ENTRIES: u64 = 1 << 26;

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    last: u64,
    bytes: u64,
    /// A random number, taken modulo the number of ports.
    choice: u32,
    used: bool,
}

/// The flowlet tables of all switches.
#[derive(Debug, Clone)]
pub struct Flowlets {
    spec: Flowlet,
    tables: Vec<Entry>,
    streams: Vec<RandomStream>,
}

impl Pick for Flowlets {
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        self.choose(fork.now, fork.switch, packet.key, packet.wire_bytes, fork.choices)
    }
}

impl Flowlets {
    fn new(spec: &Flowlet, switches: u32, seed: u64) -> Flowlets {
        let stream = |switch| RandomStream::new(seed, u64::from(switch), "flowlet");
        Flowlets {
            spec: spec.clone(),
            tables: vec![Entry::default(); switches as usize * spec.entries as usize],
            streams: (0..switches).map(stream).collect(),
        }
    }

    fn choose(
        &mut self,
        now: Time,
        switch: SwitchId,
        key: FlowKey,
        size: u16,
        choices: u32,
    ) -> u32 {
        let slot = mix(key.0) % u64::from(self.spec.entries);
        let index = switch.index() * self.spec.entries as usize + slot as usize;
        let entry = &mut self.tables[index];
        let full = self.spec.bytes.0 > 0 && entry.bytes >= self.spec.bytes.0;
        if !entry.used || now.0 - entry.last >= self.spec.gap.0 || full {
            entry.choice = self.streams[switch.index()].bits() as u32;
            entry.bytes = 0;
            entry.used = true;
        }
        entry.last = now.0;
        entry.bytes += u64::from(size);
        entry.choice % choices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::HostId;

    fn picks(spec: &Flowlet, times_us: impl Iterator<Item = u64>) -> Vec<u32> {
        let mut flowlets = Flowlets::new(spec, 1, 3);
        let key = FlowKey::new(HostId(1), HostId(2), 3, 4);
        times_us.map(|us| flowlets.choose(Time::from_us(us), SwitchId(0), key, 1500, 16)).collect()
    }

    #[test]
    fn packets_that_follow_closely_stay_together() {
        let ports = picks(&Flowlet::default(), (0..100).map(|i| i * 99));
        assert!(ports.iter().all(|p| *p == ports[0]));
    }

    #[test]
    fn a_gap_lets_the_flow_move() {
        let ports = picks(&Flowlet::default(), (0..100).map(|i| i * 100));
        assert!(ports.iter().any(|p| *p != ports[0]));
    }

    #[test]
    fn enough_bytes_let_the_flow_move() {
        let spec = Flowlet { bytes: Bytes(15_000), ..Flowlet::default() };
        let ports = picks(&spec, 0..100);
        assert!(ports.chunks(10).all(|flowlet| flowlet.iter().all(|p| *p == flowlet[0])));
        assert!(ports.iter().any(|p| *p != ports[0]));
    }
}
