//! A buffer that all ports of a switch share, with dynamic thresholds (Choudhury and Hahne, 1998).
//!
//! A packet may wait at a port if the port's queue stays within `alpha` times what is free of the
//! whole buffer. One overloaded port so gets alpha/(1 + alpha) of it, n of them alpha/(1 + n alpha)
//! each, and the rest stays free for whoever comes next. Packets in transmission take no space, as
//! in the limits of ports, which hold beside it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::SwitchSpec;
use crate::amount::{Amount, Limit};
use crate::topology::{Graph, PortId, SwitchId};

#[derive(Debug, Clone, Default)]
struct Pool {
    used: u64,
    /// The begins of the transmissions of waiting packets: time, port, bytes.
    leaving: BinaryHeap<Reverse<(u64, PortId, u16)>>,
}

/// The shared buffers of all switches.
#[derive(Debug, Clone)]
pub(crate) struct SharedBuffers {
    size: u64,
    alpha: f64,
    pools: Vec<Pool>,
    /// Per port: the switch that it belongs to; none for the interfaces of hosts.
    switch: Vec<Option<SwitchId>>,
    /// Per port: bytes waiting.
    waiting: Vec<u64>,
}

impl SharedBuffers {
    /// None where ports have buffers of their own.
    pub fn new(spec: &SwitchSpec, graph: &Graph) -> Option<SharedBuffers> {
        let Limit::AtMost(Amount::Bytes(size)) = spec.shared_buffer else { return None };
        Some(SharedBuffers {
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

    /// Whether there is room for a packet that has to wait at `port`. Where only what begins to be
    /// transmitted at this very instant makes room, `arrival_goes_first` decides.
    pub fn admits(
        &mut self,
        now: u64,
        port: PortId,
        bytes: u16,
        arrival_goes_first: impl FnOnce() -> bool,
    ) -> bool {
        let Some(switch) = self.switch[port.index()] else { return true };
        self.release(switch, |begins| begins < now, |_, _| {});
        if self.has_room(switch, port, bytes) {
            return true;
        }
        let mut released = vec![];
        self.release(switch, |begins| begins == now, |port, bytes| released.push((port, bytes)));
        if !self.has_room(switch, port, bytes) {
            return false;
        }
        let refused = arrival_goes_first();
        if refused {
            released.into_iter().for_each(|(port, bytes)| self.add(port, bytes, now));
        }
        !refused
    }

    /// Releases the memory of what begins to be transmitted at the times that `begun` names, and
    /// tells of each packet.
    #[inline]
    fn release(
        &mut self,
        switch: SwitchId,
        begun: impl Fn(u64) -> bool,
        mut tell: impl FnMut(PortId, u16),
    ) {
        let pool = &mut self.pools[switch.index()];
        while let Some(&Reverse((_, left, size))) = pool.leaving.peek().filter(|p| begun(p.0.0)) {
            pool.leaving.pop();
            pool.used -= u64::from(size);
            self.waiting[left.index()] -= u64::from(size);
            tell(left, size);
        }
    }

    fn has_room(&self, switch: SwitchId, port: PortId, bytes: u16) -> bool {
        let pool = &self.pools[switch.index()];
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

    /// Replaces the transmission times of the packets that wait at `port`, or removes those that
    /// are gone.
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
        let mut pools = SharedBuffers::new(&spec, &graph).expect("there is a buffer");
        let mut offer = |port: PortId| {
            let room = pools.admits(0, port, 100, || false);
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
    fn a_packet_in_transmission_takes_no_buffer() {
        let graph = Star { hosts: 5, ..Star::default() }.build().expect("hosts are enough");
        let shared_buffer = Limit::AtMost(Amount::Bytes(4_000));
        let spec = SwitchSpec { shared_buffer, ..SwitchSpec::default() };
        let mut pools = SharedBuffers::new(&spec, &graph).expect("one");
        pools.add(PortId(1), 2_000, 50);
        assert!(!pools.admits(49, PortId(1), 100, || false));
        assert!(pools.admits(50, PortId(1), 2_000, || false));
        pools.add(PortId(1), 2_000, 90);
        pools.retime(PortId(1), &[]);
        assert!(pools.admits(51, PortId(3), 2_000, || false));
    }
}
