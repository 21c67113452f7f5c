//! Marking thresholds: one for all ports, or one for each tier or rate of links.

use std::collections::BTreeMap;

use tailcut_engine::Rate;

use crate::amount::Amount;
use crate::component::{OneOrEach, SpecError, did_you_mean};
use crate::topology::Graph;

/// The threshold K of all ports, or of the ports of each tier or rate of links: `{ host =
/// "20packets", spine = "65packets" }`, `{ "1Gbps" = "20packets", "10Gbps" = "65packets" }`.
pub type Thresholds = OneOrEach<Amount, BTreeMap<String, Amount>>;

impl Thresholds {
    /// Returns the threshold at the ports of a link; `None` if the table has none for it.
    pub(super) fn at(&self, tier: &str, rate: Rate) -> Option<Amount> {
        match self {
            OneOrEach::One(amount) => Some(*amount),
            OneOrEach::Each(table) => {
                let by_rate = || table.iter().find(|(key, _)| rate_of(key) == Some(rate));
                table.get(tier).copied().or_else(|| by_rate().map(|(_, amount)| *amount))
            }
        }
    }

    /// Returns every threshold with the path of its table entry (`.spine`), which is empty for a
    /// threshold of all ports.
    pub(super) fn each(&self) -> Vec<(String, Amount)> {
        match self {
            OneOrEach::One(amount) => vec![(String::new(), *amount)],
            OneOrEach::Each(table) => {
                table.iter().map(|(key, amount)| (format!(".{key}"), *amount)).collect()
            }
        }
    }

    /// Refuses tables that are empty, mix tiers and rates, or name a rate twice.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let OneOrEach::Each(table) = self else { return Ok(()) };
        let refuse = |message: String| {
            Err(SpecError::new("ecn-threshold", "threshold", message).hint(
                "write { host = \"20packets\", spine = \"65packets\" } or { \"1Gbps\" = \"20packets\", \"10Gbps\" = \"65packets\" }",
            ))
        };
        if table.is_empty() {
            return refuse("threshold = {}: must name at least one tier or rate".to_owned());
        }
        let mut known = BTreeMap::new();
        for key in table.keys() {
            let Some(rate) = rate_of(key) else { continue };
            if let Some(other) = known.insert(rate.0, key) {
                return refuse(format!("threshold: {other:?} and {key:?} are the same rate"));
            }
        }
        if !known.is_empty() && known.len() < table.len() {
            return refuse("threshold: tiers and rates cannot be mixed".to_owned());
        }
        Ok(())
    }

    /// Refuses a table that names a tier or a rate of no link, or leaves out a link without a
    /// threshold of its own.
    pub(super) fn check_topology(&self, graph: &Graph) -> Result<(), SpecError> {
        let OneOrEach::Each(table) = self else { return Ok(()) };
        for key in table.keys() {
            let used = match rate_of(key) {
                Some(rate) => graph.links.iter().any(|link| link.rate == rate),
                None => graph.tiers.contains(key),
            };
            if !used {
                let place = format!("threshold.{key}");
                let hint = did_you_mean(key, graph.tiers.iter().map(String::as_str)).map_or_else(
                    || {
                        format!(
                            "the tiers are {}; rates are written as \"10Gbps\"",
                            graph.tiers.join(", ")
                        )
                    },
                    |meant| format!("did you mean `{meant}`?"),
                );
                let message = format!("no link has the tier or the rate {key:?}");
                return Err(SpecError::new("ecn-threshold", place, message).hint(hint));
            }
        }
        for link in graph.links.iter().filter(|link| link.threshold.is_none()) {
            let tier = &graph.tiers[usize::from(link.tier)];
            if self.at(tier, link.rate).is_none() {
                let message =
                    format!("threshold has no entry for links of tier {tier:?} at {}", link.rate);
                return Err(SpecError::new("ecn-threshold", "threshold", message)
                    .hint("name every tier, or every rate, that links have"));
            }
        }
        Ok(())
    }
}

/// Returns the rate that a table key stands for; `None` if it names a tier.
fn rate_of(key: &str) -> Option<Rate> {
    key.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::topology::leaf_spine::LeafSpine;

    fn thresholds(written: Value) -> Thresholds {
        from_value(written).expect("they are thresholds")
    }

    /// Hosts at 1 Gbps, spines at 10.
    fn graph() -> Graph {
        let rate = json!({ "kind": "leaf-spine", "rate": { "host": "1Gbps", "spine": "10Gbps" } });
        let mut shape: Value = rate;
        shape.as_object_mut().expect("it is a table").remove("kind");
        let shape: LeafSpine = from_value(shape).expect("it is a fabric");
        shape.build().expect("the parameters are valid")
    }

    #[test]
    fn one_threshold_holds_at_all_links() {
        let one = thresholds(json!("5packets"));
        assert_eq!(one.at("host", Rate(1)), Some(Amount::Packets(5)));
        assert_eq!((one.check(), one.check_topology(&graph())), (Ok(()), Ok(())));
    }

    #[test]
    fn a_table_gives_thresholds_by_tier_or_by_rate() {
        let gbps = |n: u64| Rate(n * 1_000_000_000);
        for table in [
            json!({ "host": "20packets", "spine": "65packets" }),
            json!({ "1Gbps": "20packets", "10000Mbps": "65packets" }),
        ] {
            let table = thresholds(table);
            assert_eq!((table.check(), table.check_topology(&graph())), (Ok(()), Ok(())));
            assert_eq!(table.at("host", gbps(1)), Some(Amount::Packets(20)));
            assert_eq!(table.at("spine", gbps(10)), Some(Amount::Packets(65)));
        }
    }

    #[test]
    fn refuses_a_table_that_leaves_links_out_or_names_no_link() {
        let on = |table: Value| thresholds(table).check_topology(&graph()).expect_err("refused");
        assert_eq!(on(json!({ "host": "20packets" })).field, "threshold");
        let misspelt = on(json!({ "host": "20packets", "spin": "65packets" }));
        assert_eq!(misspelt.hint.as_deref(), Some("did you mean `spine`?"));
        assert_eq!(
            on(json!({ "1Gbps": "2packets", "40Gbps": "9packets" })).field,
            "threshold.40Gbps"
        );
    }

    #[test]
    fn links_with_their_own_threshold_need_no_entry() {
        let mut graph = graph();
        for link in graph.links.iter_mut().filter(|link| link.tier == 1) {
            link.threshold = Some(Amount::Packets(65));
        }
        assert_eq!(thresholds(json!({ "host": "20packets" })).check_topology(&graph), Ok(()));
    }

    #[test]
    fn refuses_empty_tables_mixtures_and_repeated_rates() {
        let refused = |table: Value| thresholds(table).check().expect_err("refused").message;
        assert!(refused(json!({})).contains("at least one tier"));
        assert!(
            refused(json!({ "host": "1packets", "1Gbps": "2packets" })).contains("cannot be mixed")
        );
        assert!(
            refused(json!({ "1Gbps": "1packets", "1000Mbps": "2packets" }))
                .contains("the same rate")
        );
    }
}
