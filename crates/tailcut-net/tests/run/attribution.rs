//! What completion times are made of: cases by hand, and that the parts add up.

use tailcut_net::measure::attribution::Attribution;
use tailcut_net::measure::records::Outcome;

/// Every flow that has finished is split into parts that add up to its completion time, and no other is split.
pub fn check(outcome: &Outcome, attribution: &Attribution) {
    for record in &outcome.flows {
        let parts = attribution.of(record.flow.id);
        assert_eq!(parts.map(|parts| parts.total()), record.fct, "flow {}", record.flow.id);
        if let (Some(parts), Some(fct)) = (parts, record.fct) {
            assert_eq!(parts.in_ns().iter().sum::<u64>(), fct.as_ns());
        }
    }
}
