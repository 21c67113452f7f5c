//! Ports in turn, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{By, Choice};
use crate::settings::Checked;

pub(super) struct RoundRobin;

impl Choice for RoundRobin {
    fn check(&self, checked: &mut Checked, spec: &BalanceSpec) -> bool {
        let BalanceSpec::RoundRobin(_) = spec else { return false };
        checked.done(
            "balance",
            "nft counts the packets to each host, and a rule takes them to their routes in turn",
        );
        true
    }
    fn by(&self) -> By {
        By::Turn
    }
}
