//! Switches: a buffer that all ports share, with dynamic thresholds (Choudhury and Hahne, 1998).
//!
//! A packet may wait at a port if the port's queue stays within `alpha` times what is free of the whole buffer. One
//! overloaded port so gets alpha/(1 + alpha) of it, n of them alpha/(1 + n alpha) each, and the rest stays free for
//! whoever comes next. Packets in transmission take no space, as in the limits of ports, which hold beside it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::{Amount, Limit};
use crate::component::SpecError;
use crate::fabric::pfc::Pfc;
use crate::topology::{Graph, PortId, SwitchId};

/// Parameters of every switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchSpec {
    /// What may wait at all ports of a switch together, in bytes ("4MB" in RepNet's testbed); "unlimited" when each
    /// port has a buffer of its own.
    pub shared_buffer: Limit,
    /// How much of what is free one port may take: its dynamic threshold is `alpha` times the free part.
    pub alpha: f64,
    /// Priority flow control: links are paused instead of packets dropped; none unless written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<Pfc>,
}

impl Default for SwitchSpec {
    fn default() -> Self {
        SwitchSpec { shared_buffer: Limit::Unlimited, alpha: 1.0, pfc: None }
    }
}

impl SwitchSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a buffer is not counted in bytes, or would hold nothing.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.shared_buffer {
            Limit::AtMost(Amount::Packets(n)) => {
                let message = format!("shared_buffer = \"{n}packets\": memory is counted in bytes");
                return Err(SpecError::new("shared-buffer-unit", "shared_buffer", message)
                    .hint("write for example \"4MB\""));
            }
            Limit::AtMost(Amount::Bytes(bytes)) if bytes < 1_538 => {
                let message = format!("shared_buffer = \"{bytes}B\" holds not even one packet");
                return Err(SpecError::new("shared-buffer-size", "shared_buffer", message)
                    .hint("write for example \"4MB\""));
            }
            _ => {}
        }
        if let Some(pfc) = &self.pfc {
            pfc.check()?;
            if self.shared_buffer != Limit::Unlimited {
                let message =
                    "memory that ports share goes by when packets will leave, which pauses change";
                return Err(SpecError::new("pfc-shared-buffer", "pfc", message)
                    .hint("leave shared_buffer \"unlimited\", or pfc out"));
            }
        }
        if !(self.alpha > 0.0 && self.alpha <= 1_024.0) {
            let message = format!("alpha = {}: above 0 and at most 1024", self.alpha);
            return Err(SpecError::new("shared-buffer-alpha", "alpha", message)
                .hint("switches offer powers of two from 1/128 to 8"));
        }
        Ok(())
    }

    /// Bytes that can wait at one port while no other takes any, the last packet of `packet` bytes among them: with
    /// w bytes waiting before it, w + packet <= alpha (size - w).
    pub(crate) fn most_of_one_port(&self, packet: u64) -> u64 {
        let Limit::AtMost(Amount::Bytes(size)) = self.shared_buffer else { return u64::MAX };
        let before = (self.alpha * size as f64 - packet as f64) / (1.0 + self.alpha);
        (before.max(0.0) as u64 + packet).min(size)
    }
}

#[derive(Debug, Clone, Default)]
struct Pool {
    used: u64,
    /// When packets that wait begin to be transmitted: time, port, bytes.
    leaving: BinaryHeap<Reverse<(u64, PortId, u16)>>,
}

/// The shared buffers of all switches.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    size: u64,
    alpha: f64,
    pools: Vec<Pool>,
    /// Per port: the switch that it belongs to; none for the interfaces of hosts.
    switch: Vec<Option<SwitchId>>,
    /// Per port: bytes waiting.
    waiting: Vec<u64>,
}

impl Pools {
    /// None where ports have buffers of their own.
    pub fn new(spec: &SwitchSpec, graph: &Graph) -> Option<Pools> {
        let Limit::AtMost(Amount::Bytes(size)) = spec.shared_buffer else { return None };
        Some(Pools {
            size,
            alpha: spec.alpha,
            pools: vec![Pool::default(); graph.switches as usize],
            switch: graph
                .links
                .iter()
                .flat_map(|l| [l.a, l.b])
                .map(|from| graph.switch(from))
                .collect(),
            waiting: vec![0; 2 * graph.links.len()],
        })
    }

    /// Whether there is room for a packet that has to wait at `port`.
    pub fn admits(&mut self, now: u64, port: PortId, bytes: u16) -> bool {
        let Some(switch) = self.switch[port.index()] else { return true };
        let pool = &mut self.pools[switch.index()];
        while let Some(&Reverse((_, left, size))) = pool.leaving.peek().filter(|p| p.0 .0 <= now) {
            pool.leaving.pop();
            pool.used -= u64::from(size);
            self.waiting[left.index()] -= u64::from(size);
        }
        let queue = self.waiting[port.index()] + u64::from(bytes);
        let free = self.size - pool.used;
        queue as f64 <= self.alpha * free as f64 && u64::from(bytes) <= free
    }

    /// A packet waits at `port`, and will begin to be transmitted at `begins`.
    pub fn add(&mut self, port: PortId, bytes: u16, begins: u64) {
        let Some(switch) = self.switch[port.index()] else { return };
        let pool = &mut self.pools[switch.index()];
        pool.used += u64::from(bytes);
        pool.leaving.push(Reverse((begins, port, bytes)));
        self.waiting[port.index()] += u64::from(bytes);
    }

    /// What waits at `port` begins to be transmitted at other times, or is gone.
    pub fn retime(&mut self, port: PortId, waiting: &[(u64, u16)]) {
        let Some(switch) = self.switch[port.index()] else { return };
        let pool = &mut self.pools[switch.index()];
        pool.leaving.retain(|Reverse((_, of, _))| *of != port);
        pool.used -= std::mem::take(&mut self.waiting[port.index()]);
        for &(begins, bytes) in waiting {
            self.add(port, bytes, begins);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::star::Star;

    /// Fills `ports` in turn with packets of 100 bytes until none takes any more.
    fn fill(alpha: f64, ports: &[PortId]) -> Vec<u64> {
        let graph = Star { hosts: 5, ..Star::default() }.build().expect("hosts are enough");
        let shared_buffer = Limit::AtMost(Amount::Bytes(100_000));
        let spec = SwitchSpec { shared_buffer, alpha, pfc: None };
        let mut pools = Pools::new(&spec, &graph).expect("there is a buffer");
        let mut offer = |port: PortId| {
            let room = pools.admits(0, port, 100);
            if room {
                pools.add(port, 100, 1);
            }
            room
        };
        while ports.iter().fold(false, |any, &port| offer(port) | any) {}
        ports.iter().map(|&port| pools.waiting[port.index()]).collect()
    }

    #[test]
    fn an_overloaded_port_takes_its_share_of_the_buffer_and_leaves_the_rest() {
        // alpha / (1 + n alpha) of the buffer for each of n ports.
        assert_eq!(fill(1.0, &[PortId(1)]), [50_000]);
        assert_eq!(fill(1.0, &[PortId(1), PortId(3), PortId(5)]), [25_000; 3]);
        assert_eq!(fill(0.5, &[PortId(1), PortId(3)]), [25_000; 2]);
        assert_eq!(fill(3.0, &[PortId(1)]), [75_000]);
    }

    #[test]
    fn what_has_begun_to_be_transmitted_takes_no_space() {
        let graph = Star { hosts: 5, ..Star::default() }.build().expect("hosts are enough");
        let shared_buffer = Limit::AtMost(Amount::Bytes(4_000));
        let spec = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
        let mut pools = Pools::new(&spec, &graph).expect("one");
        pools.add(PortId(1), 2_000, 50);
        assert!(!pools.admits(49, PortId(1), 100));
        assert!(pools.admits(50, PortId(1), 2_000));
        pools.add(PortId(1), 2_000, 90);
        pools.retime(PortId(1), &[]);
        assert!(pools.admits(51, PortId(3), 2_000));
    }

    #[test]
    fn a_buffer_is_counted_in_bytes() {
        let shared_buffer = Limit::AtMost(Amount::Packets(100));
        let spec = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
        assert_eq!(spec.check().expect_err("packets").code, "shared-buffer-unit");
    }
}
