//! A port drawn for each packet, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{By, Choice};
use crate::settings::Checked;

pub(super) struct Spray;

impl Choice for Spray {
    fn is(&self, spec: &BalanceSpec) -> bool {
        matches!(spec, BalanceSpec::Spray(_))
    }
    fn check(&self, checked: &mut Checked, _spec: &BalanceSpec) {
        checked.done(
            "balance",
            "nft draws a number for each packet, and a rule takes it to the route of that number",
        );
    }
    fn by(&self) -> By {
        By::Draw
    }
}
