//! Replication: which connections carry a flow.
//!
//! A new policy is one file here and one line in the list below.

pub mod hedge;
pub mod machine;
pub mod repflow;
pub mod repsyn;
pub mod split;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use crate::component::SpecError;
use crate::horizon::LONGEST;
use crate::packet::SERVICE_PORTS;
use crate::registry::registry;

use machine::{Replicate, ReplicationPlan};

/// The parameters of a policy, and the state machine that they make.
pub trait Policy {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When nothing would be replicated.
    fn check(&self) -> Result<(), SpecError>;

    /// Returns how a flow of this many bytes will be carried.
    fn replication_plan(&self, bytes: u64) -> ReplicationPlan;

    /// The policy at work in a run of so many hosts.
    fn instantiate(&self, hosts: u32) -> Box<dyn Replicate>;
}

registry! {
    /// The replication policy.
    #[derive(Default)]
    pub enum ReplicateSpec: Policy
    [
        /// One connection carries the flow.
        #[default]
        None = machine::NoReplication
    ]
    {
        /// Copies of short flows; the first to finish wins (RepFlow).
        Repflow(repflow::RepFlow),
        /// Several SYNs for short flows; the first connection carries the data (RepNet).
        Repsyn(repsyn::RepSyn),
        /// Large flows as small ones, each on its own connection (TinyFlow).
        ///
        /// The application splits them, and sends one after the other.
        Split(split::Split),
        /// A copy of a short flow that takes long, within a budget (Dean and Barroso 2013).
        Hedge(hedge::Hedge),
    }
}

/// Upper bound of copies: ECMP would rarely find more different paths.
const MAX_COPIES: u32 = 16;
const _: () = assert!(MAX_COPIES <= SERVICE_PORTS as u32, "each copy has a service port");

/// The hint where no flow is to be replicated.
const OFF: &str = "kind = \"none\" replicates nothing";

fn check_threshold(threshold: Bytes) -> Result<(), SpecError> {
    if threshold.0 == 0 {
        let message = "threshold = \"0B\": no flow is that short, so that none would be replicated";
        return Err(SpecError::new("replicate-threshold", "threshold", message).hint(OFF));
    }
    Ok(())
}

fn check_delay(field: &'static str, delay: Time) -> Result<(), SpecError> {
    if delay > LONGEST {
        let message = format!("{field} = \"{delay}\": no run lasts longer than {LONGEST}");
        return Err(SpecError::new("replicate-copy-delay", field, message));
    }
    Ok(())
}

fn check_copies(threshold: Bytes, copies: u32, delay: Time) -> Result<(), SpecError> {
    check_threshold(threshold)?;
    if !(2..=MAX_COPIES).contains(&copies) {
        let message = format!(
            "copies = {copies}: the original counts, so that 2 to {MAX_COPIES} replicate a flow"
        );
        let error = SpecError::new("replicate-copies", "copies", message);
        return Err(if copies < 2 { error.hint(OFF) } else { error });
    }
    check_delay("copy_delay", delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_start_within_the_longest_run() {
        let copy_delay = LONGEST + Time(1);
        let late = repflow::RepFlow { copy_delay, ..Default::default() };
        assert_eq!(late.check().expect_err("no run lasts as long").field, "copy_delay");
    }

    #[test]
    fn replication_replicates_something() {
        let repflow = repflow::RepFlow::default();
        assert_eq!(repflow.check(), Ok(()));
        let none = repflow::RepFlow { threshold: Bytes(0), ..repflow };
        assert_eq!(none.check().expect_err("nothing is that short").field, "threshold");
        for copies in [0, 1, 17] {
            let spec = repsyn::RepSyn { copies, ..Default::default() };
            assert_eq!(spec.check().expect_err("not a number of copies").field, "copies");
        }
    }
}
