//! Replication: which connections carry a flow.
//!
//! A new way is one file here and one line in [`ReplicateSpec`].

pub mod repflow;
pub mod repsyn;
pub mod split;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use crate::component::SpecError;
use crate::scenario::LONGEST;

/// How flows are replicated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReplicateSpec {
    /// One connection carries the flow.
    #[default]
    None,
    /// Copies of short flows; the first to finish wins (RepFlow).
    Repflow(repflow::RepFlow),
    /// Several SYNs for short flows; data on the first connection to be established (RepNet).
    Repsyn(repsyn::RepSyn),
    /// Large flows as a sequence of small ones, each on a connection of its own (TinyFlow in the application).
    Split(split::Split),
}

impl ReplicateSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When nothing would be replicated.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            ReplicateSpec::None => Ok(()),
            ReplicateSpec::Repflow(spec) => {
                check_copies(spec.threshold, spec.copies, spec.copy_delay)
            }
            ReplicateSpec::Repsyn(spec) => {
                check_copies(spec.threshold, spec.copies, spec.copy_delay)
            }
            ReplicateSpec::Split(spec) => spec.check(),
        }
    }
}

/// More connections than this for one flow are a slip: ECMP would rarely find them different paths.
const MAX_COPIES: u32 = 16;

fn check_copies(threshold: Bytes, copies: u32, delay: Time) -> Result<(), SpecError> {
    let off = "kind = \"none\" replicates nothing";
    if threshold.0 == 0 {
        let message = "threshold = \"0B\": no flow is that short, so that none would be replicated";
        return Err(SpecError::new("replicate-threshold", "threshold", message).hint(off));
    }
    if !(2..=MAX_COPIES).contains(&copies) {
        let message = format!(
            "copies = {copies}: the original counts, so that 2 to {MAX_COPIES} replicate a flow"
        );
        let error = SpecError::new("replicate-copies", "copies", message);
        return Err(if copies < 2 { error.hint(off) } else { error });
    }
    if delay > LONGEST {
        let message = format!("copy_delay = \"{delay}\": no run lasts longer than {LONGEST}");
        return Err(SpecError::new("replicate-copy-delay", "copy_delay", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_start_within_the_longest_run() {
        let copy_delay = LONGEST + Time(1);
        let late = ReplicateSpec::Repflow(repflow::RepFlow { copy_delay, ..Default::default() });
        assert_eq!(late.check().expect_err("no run lasts as long").field, "copy_delay");
    }

    #[test]
    fn replication_replicates_something() {
        let repflow = repflow::RepFlow::default();
        assert_eq!(ReplicateSpec::Repflow(repflow.clone()).check(), Ok(()));
        let none = ReplicateSpec::Repflow(repflow::RepFlow { threshold: Bytes(0), ..repflow });
        assert_eq!(none.check().expect_err("nothing is that short").field, "threshold");
        for copies in [0, 1, 17] {
            let spec = ReplicateSpec::Repsyn(repsyn::RepSyn { copies, ..Default::default() });
            assert_eq!(spec.check().expect_err("not a number of copies").field, "copies");
        }
    }
}
