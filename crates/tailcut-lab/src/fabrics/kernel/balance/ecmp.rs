//! Multipath routes, and the kernel's own hash.

use tailcut_net::balance::BalanceSpec;

use super::{By, Choice};
use crate::settings::Checked;

pub(super) struct Ecmp;

impl Choice for Ecmp {
    fn check(&self, checked: &mut Checked, spec: &BalanceSpec) -> bool {
        let BalanceSpec::Ecmp(_) = spec else { return false };
        checked.near(
            "balance",
            "multipath routes by the kernel's own hash of the five-tuple, with a seed for each switch: only its distribution is the simulator's",
        );
        true
    }
    fn by(&self) -> By {
        By::Hash
    }
}
