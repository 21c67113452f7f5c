//! A port drawn for each packet, by nft.

use tailcut_net::balance::BalanceSpec;

use super::{By, Choice};
use crate::settings::Checked;

pub(super) struct Spray;

impl Choice for Spray {
    fn check(&self, checked: &mut Checked, spec: &BalanceSpec) -> bool {
        let BalanceSpec::Spray(_) = spec else { return false };
        checked.done(
            "balance",
            "nft draws a number for each packet, and a rule takes it to the route of that number",
        );
        true
    }
    fn by(&self) -> By {
        By::Draw
    }
}
