//! Random packet spraying (Dixit, Prakash, Hu, Kompella, INFOCOM 2013): every packet takes an
//! equal-cost port of its own, uniformly at random.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::RandomStream;

use super::{Layout, Pick, PickContext, Strategy};
use crate::packet::Packet;
use crate::topology::SwitchId;

/// Parameters of spraying: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spray {}

impl Strategy for Spray {
    type State = Sprayer;
    fn state(&self, layout: Layout<'_>) -> Sprayer {
        Sprayer::new(layout.graph.switches, layout.seed)
    }
}

/// One random stream per switch.
#[derive(Debug, Clone)]
pub struct Sprayer {
    streams: Vec<RandomStream>,
}

impl Pick for Sprayer {
    #[inline]
    fn pick(&mut self, fork: PickContext<'_>, _: &mut Packet) -> u32 {
        self.draw(fork.switch, fork.choices)
    }
}

impl Sprayer {
    fn new(switches: u32, seed: u64) -> Sprayer {
        let stream = |switch| RandomStream::new(seed, u64::from(switch), "spray");
        Sprayer { streams: (0..switches).map(stream).collect() }
    }

    #[inline]
    fn draw(&mut self, switch: SwitchId, choices: u32) -> u32 {
        self.streams[switch.index()].below(u64::from(choices)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_gets_an_equal_share_of_the_packets() {
        let mut spray = Sprayer::new(2, 7);
        let mut counts = [0.0f64; 8];
        (0..80_000).for_each(|_| counts[spray.draw(SwitchId(1), 8) as usize] += 1.0);
        let chi2: f64 = counts.iter().map(|n| (n - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 24.32, "chi-squared {chi2} exceeds the 0.1 % point of 7 degrees of freedom");
    }
}
