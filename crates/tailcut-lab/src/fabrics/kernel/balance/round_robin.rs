//! Ports in turn, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{By, Choice};
use crate::settings::Checked;

pub(super) struct RoundRobin;

impl Choice for RoundRobin {
    fn is(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::RoundRobin(_))
    }
    fn check(&self, checked: &mut Checked, _spec: &BalanceSpec) {
        checked.done(
            "balance",
            "nft counts the packets to each host, and a rule takes them to their routes in turn",
        );
    }
    fn by(&self) -> By {
        By::Turn
    }
}
