//! Packet spraying: a random port per packet, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{KernelBalancer, PathSelector};
use crate::answers::RunCheck;

pub(super) struct Spray;

impl KernelBalancer for Spray {
    fn implements(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Spray(_))
    }
    fn check(&self, checked: &mut RunCheck, _spec: &BalanceSpec) {
        checked.done(
            "balance",
            "nft draws a number for each packet, and a rule takes it to the route of that number",
        );
    }
    fn selector(&self) -> PathSelector {
        PathSelector::Draw
    }
}
