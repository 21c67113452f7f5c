//! Per-destination round robin: spraying without chance. The packets of a switch towards one host
//! take its equal-cost ports in turn. The start differs from pair to pair, so that destinations do
//! not move in step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::random::mix;

use super::{Layout, Pick, PickContext, Strategy};
use crate::component::SpecError;
use crate::packet::Packet;
use crate::topology::{Graph, HostId, SwitchId};

/// Parameters of round robin: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundRobin {}

impl Strategy for RoundRobin {
    type State = RoundRobinState;

    /// Refuses a table that does not fit into memory.
    fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let turns = turns(graph);
        if turns <= MOST_TURNS {
            return Ok(());
        }
        let message = format!(
            "the table needs {turns} entries, one for each of {} switches and {} hosts: at most {MOST_TURNS} fit",
            graph.switches, graph.hosts
        );
        Err(SpecError::new("round-robin-table", "kind", message)
            .hint("use kind = \"spray\", which needs no table, or a smaller network"))
    }

    fn state_bytes(&self, graph: &Graph) -> u64 {
        turns(graph) * size_of::<u16>() as u64
    }

    fn state(&self, layout: Layout<'_>) -> RoundRobinState {
        RoundRobinState::new(layout.graph.switches, layout.graph.hosts, layout.seed)
    }
}

/// Maximum turns over all switches: they take a gigabyte.
const MOST_TURNS: u64 = 1 << 29;

/// Returns the number of turns in a network: one for each switch and host.
fn turns(graph: &Graph) -> u64 {
    u64::from(graph.switches) * u64::from(graph.hosts)
}

/// The next port of each (switch, host).
#[derive(Debug, Clone)]
pub struct RoundRobinState {
    hosts: usize,
    turns: Vec<u16>,
}

impl Pick for RoundRobinState {
    #[inline]
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        self.next(fork.switch, packet.key.dst(), fork.choices)
    }
}

impl RoundRobinState {
    fn new(switches: u32, hosts: u32, seed: u64) -> RoundRobinState {
        let pairs = u64::from(switches) * u64::from(hosts);
        let turns = (0..pairs).map(|pair| mix(mix(seed) ^ pair) as u16 >> 1).collect();
        RoundRobinState { hosts: hosts as usize, turns }
    }

    #[inline]
    fn next(&mut self, switch: SwitchId, host: HostId, choices: u32) -> u32 {
        let turn = &mut self.turns[switch.index() * self.hosts + host.index()];
        let pick = u32::from(*turn) % choices;
        // Stored below the number of choices, so that no wrap-around breaks the order.
        *turn = if pick + 1 == choices { 0 } else { pick as u16 + 1 };
        pick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_table_that_fills_the_memory_and_counts_the_bytes_of_others() {
        let graph = |hosts, switches| Graph { hosts, switches, ..Graph::default() };
        let spec = RoundRobin {};
        let largest = graph(65_536, 8_192);
        assert_eq!((spec.check_topology(&largest), spec.state_bytes(&largest)), (Ok(()), 1 << 30));
        let refused = spec.check_topology(&graph(65_536, 8_193)).expect_err("it is too large");
        assert_eq!((refused.code, refused.field.as_str()), ("round-robin-table", "kind"));
    }

    #[test]
    fn packets_to_one_host_visit_every_port_before_repeating_one() {
        let mut balancer = RoundRobinState::new(3, 5, 1);
        let picks: Vec<u32> = (0..8).map(|_| balancer.next(SwitchId(2), HostId(4), 4)).collect();
        assert_eq!(picks[..4], picks[4..]);
        let mut once = picks[..4].to_vec();
        once.sort_unstable();
        assert_eq!(once, [0, 1, 2, 3]);
    }

    #[test]
    fn destinations_do_not_move_in_step() {
        let mut balancer = RoundRobinState::new(1, 64, 1);
        let first: Vec<u32> =
            (0..64).map(|host| balancer.next(SwitchId(0), HostId(host), 4)).collect();
        assert!((0..4).all(|port| first.contains(&port)), "{first:?}");
    }
}
