//! Every packet takes the port that was given the fewest bytes so far.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Layout, Pick, PickContext, Strategy};
use crate::packet::Packet;
use crate::topology::SwitchId;

/// The balancer has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeastSent {}

impl Strategy for LeastSent {
    type State = Sent;
    fn state(&self, layout: Layout<'_>) -> Sent {
        Sent(vec![vec![]; layout.graph.switches as usize])
    }
}

/// Bytes that each switch has given to each of its ports.
#[derive(Debug, Clone)]
pub struct Sent(Vec<Vec<u64>>);

impl Pick for Sent {
    fn pick(&mut self, fork: PickContext<'_>, packet: &mut Packet) -> u32 {
        self.least(fork.switch, packet.wire_bytes, fork.choices)
    }
}

impl Sent {
    /// One of `choices` ports; the first of those that are level.
    fn least(&mut self, switch: SwitchId, bytes: u16, choices: u32) -> u32 {
        let sent = &mut self.0[switch.index()];
        sent.resize(sent.len().max(choices as usize), 0);
        let port = (0..choices).min_by_key(|&port| sent[port as usize]).expect("there are ports");
        sent[port as usize] += u64::from(bytes);
        port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_packet_is_made_up_for_by_small_ones() {
        let mut ports = Sent(vec![vec![]]);
        let picked: Vec<u32> = [1500, 500, 500, 500, 500]
            .into_iter()
            .map(|bytes| ports.least(SwitchId(0), bytes, 2))
            .collect();
        assert_eq!(picked, [0, 1, 1, 1, 0]);
    }
}
