//! Multipath routes, and the kernel's own hash.

use tailcut_net::balance::BalanceSpec;

use super::{By, Choice};
use crate::settings::Checked;

pub(super) struct Ecmp;

impl Choice for Ecmp {
    fn is(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Ecmp(_))
    }
    fn check(&self, checked: &mut Checked, _spec: &BalanceSpec) {
        checked.near(
            "balance",
            "multipath routes by the kernel's own hash of the five-tuple, with a seed for each switch: only its distribution is the simulator's",
        );
    }
    fn by(&self) -> By {
        By::Hash
    }
}
