//! Weights of ports in hashing.

use crate::topology::{Graph, PortId};

/// The share of every port, as a small integer.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    of: Vec<u32>,
}

/// Number of steps of the highest rate that shares are rounded to, so that their sum over 1,023
/// ports fits 32 bits.
const STEPS: u64 = 1 << 20;

impl Shares {
    /// Creates shares in proportion to the rates of the links.
    pub fn by_rate(graph: &Graph) -> Shares {
        let rates = || graph.links.iter().map(|link| link.rate.0);
        let common = rates().fold(0, gcd).max(1);
        let highest = rates().max().unwrap_or(1) / common;
        let scale = highest.div_ceil(STEPS).max(1);
        let share = |rate: u64| (rate / common).div_ceil(scale) as u32;
        let of: Vec<u32> = rates().flat_map(|rate| [share(rate); 2]).collect();
        match of.iter().all(|share| *share == of[0]) {
            true => Shares::default(),
            false => Shares { of },
        }
    }

    /// Returns whether every port has the same share.
    pub fn are_equal(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns the sum of the shares of some ports.
    pub fn total(&self, ports: &[PortId]) -> u32 {
        match self.are_equal() {
            true => ports.len() as u32,
            false => ports.iter().map(|port| self.of[port.index()]).sum(),
        }
    }

    /// Returns the position among `ports` of the port that holds share number `at`, which must be
    /// less than their sum.
    pub fn at(&self, ports: &[PortId], at: u32) -> u32 {
        if self.are_equal() {
            return at;
        }
        let mut left = at;
        for (place, port) in ports.iter().enumerate() {
            match left.checked_sub(self.of[port.index()]) {
                Some(less) => left = less,
                None => return place as u32,
            }
        }
        unreachable!("shares are counted from 0 up to their sum")
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}
