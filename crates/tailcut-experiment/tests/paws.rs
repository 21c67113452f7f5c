//! PAWS in experiment files: what is noted of it.

use crate::common::plan_with;

const SPRAYED: &str = r#"title = "old timestamps"
[topology]
kind = "fat-tree"
k = 4
[transport]
kind = "tcp"
timestamps = true
paws = "rfc-7323"
[balance]
kind = "spray"
[traffic]
kind = "trace"
flows = [ { src = 0, dst = 15, bytes = "200KB" } ]
[horizon]
arrivals = "20ms"
"#;

fn notes(changes: &[(&str, &str)]) -> Vec<String> {
    plan_with(SPRAYED, changes).runs[0].facts.notes.clone()
}

#[test]
fn notes_that_paws_discards_late_segments_where_packets_are_sprayed() {
    assert!(notes(&[])[0].contains("discards what a retransmission overtakes"));
    assert_eq!(notes(&[("balance.kind", "\"ecmp\"")]), Vec::<String>::new(), "ECMP keeps order");
    assert_eq!(notes(&[("transport.paws", "\"off\"")]), Vec::<String>::new());
}
