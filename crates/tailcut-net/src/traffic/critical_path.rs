//! The critical path of a job: the messages and computations that decided when it ended.

use tailcut_engine::Time;

use super::closed_loop::ClosedLoop;
use super::demand::{Dependent, Signal};
use super::{Flow, FlowIndex};
use crate::topology::HostId;

/// The critical path of a job. Its parts follow each other without gaps, from the start of the job
/// to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalPath {
    /// Number among the jobs of the run.
    pub job: u64,
    /// Start of the job.
    pub start: Time,
    /// Time from the start to the end.
    pub completion: Time,
    /// The parts, in order of time.
    pub parts: Vec<PathPart>,
}

/// A part of a critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathPart {
    /// The work that took the time.
    pub work: PathWork,
    /// The message or computation; `None` for the work of other jobs.
    pub row: Option<Dependent>,
    /// Begin of the part.
    pub from: Time,
    /// End of the part: the start of the next part, a whole nanosecond, or the end of the job.
    pub to: Time,
}

/// The work of a part of a critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathWork {
    /// A message, until the next part had no longer to wait for it.
    Message {
        /// The message, with its start.
        flow: Flow,
        /// The event for which the next part waited.
        until: Signal,
        /// The ideal time until its last byte is received.
        ideal: Time,
    },
    /// A computation.
    Computation {
        /// The host that computes.
        host: HostId,
        /// The processor of the host.
        processor: u32,
    },
    /// The job had begun elsewhere, and this rank waited for work of other jobs.
    OtherJobs,
}

/// The event by which the last dependency of a flow or computation was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Cause {
    /// None: the work had no dependency, or its pool started it.
    #[default]
    None,
    /// A flow.
    Flow(FlowIndex, Signal),
    /// The end of a computation.
    Computation(u32),
}

impl ClosedLoop {
    /// Returns the critical path of a job that has ended. `flow` returns a flow with its start, and
    /// its ideal time.
    pub(crate) fn critical_path(
        &self,
        job: u32,
        flow: &dyn Fn(FlowIndex) -> (Flow, Time),
    ) -> Option<CriticalPath> {
        let (start, end, last) = self.span(job)?;
        let mut parts = vec![];
        let (mut at, mut until, mut to) = (last, Signal::Received, end);
        while to > start {
            let (from, work) = match at {
                Dependent::Flow(index) => {
                    let (flow, ideal) = flow(index);
                    (flow.start, PathWork::Message { flow, until, ideal })
                }
                Dependent::Computation(number) => {
                    let about = self.jobs().computations[number as usize];
                    let (host, processor) = (about.host, about.processor);
                    (self.computed_from(number), PathWork::Computation { host, processor })
                }
                Dependent::Pool(_) => return None,
            };
            // What a join that takes no time waits for lasts until the next start.
            let is_join = match at {
                Dependent::Computation(number) => {
                    self.jobs().computations[number as usize].duration == Time::ZERO
                }
                _ => false,
            };
            if from < to && !is_join {
                parts.push(PathPart { work, row: Some(at), from, to });
                to = from;
            }
            (at, until) = match self.cause(at) {
                Cause::Flow(index, signal) => (Dependent::Flow(index), signal),
                Cause::Computation(number) => (Dependent::Computation(number), until),
                Cause::None => break,
            };
            if self.job_of(at) != job {
                break;
            }
        }
        if to > start {
            parts.push(PathPart { work: PathWork::OtherJobs, row: None, from: start, to });
        }
        parts.reverse();
        Some(CriticalPath { job: job.into(), start, completion: end - start, parts })
    }
}
