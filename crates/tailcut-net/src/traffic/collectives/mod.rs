//! Collective operations: the graph of messages that an algorithm expands to. A new algorithm is
//! one file here, a variant of [`Algorithm`], and its lines in `steps`, `most_messages` and the
//! hint of `refuse_algorithm`.

mod direct;
mod double_tree;
mod expand;
mod experts;
mod halving_doubling;
mod pairwise;
mod ring;
mod steps;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::{Bytes, Time};

use self::steps::Steps;
use super::demand::Demand;
use super::{Pattern, TrafficContext, TrafficError, check_flow_count, check_hosts};
use crate::topology::HostId;

/// Parameters of collective operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// The operation: the data that every rank ends with.
    pub operation: Operation,
    /// The algorithm: the messages among the ranks.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Bytes of the whole array, as S in the nccl-tests: of all-gather the gathered one, of
    /// all-to-all and mixture-of-experts what one rank sends, its own part included.
    pub bytes: Bytes,
    /// Messages that a part is cut into. Of the double tree: chunks of each tree.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub slices: u32,
    /// Ranks of a job. By default, the jobs share all hosts evenly.
    #[serde(default)]
    #[schemars(range(min = 2))]
    pub ranks: Option<u32>,
    /// Jobs that do the same at once, on different hosts.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub jobs: u32,
    /// The hosts that take part, by default all, in order of rank.
    #[serde(default)]
    pub hosts: Vec<u32>,
    /// The order in which ranks take hosts.
    #[serde(default)]
    pub placement: Placement,
    /// Iterations of a job. A rank begins the next one when it has received everything of the last
    /// one; there is no barrier.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub repeat: u32,
    /// Computation of a rank between two iterations.
    #[serde(default = "zero")]
    pub compute: Time,
    /// Start of the first iteration.
    #[serde(default = "zero")]
    pub start: Time,
    /// Exponent of the Zipf distribution of the tokens over the experts; 0 is even.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub skew: f64,
}

fn one() -> u32 {
    1
}

fn zero() -> Time {
    Time::ZERO
}

/// A collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every rank ends with the sum of all arrays.
    AllReduce,
    /// Every rank ends with the parts of all ranks.
    AllGather,
    /// Rank i ends with part i of the sum.
    ReduceScatter,
    /// Every rank ends with its part of every array.
    AllToAll,
    /// An all-to-all with more bytes for popular experts, and back.
    MixtureOfExperts,
}

impl Operation {
    /// Returns the name of the operation, in files and as a kind of job.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::AllGather => "all-gather",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::AllToAll => "all-to-all",
            Operation::MixtureOfExperts => "mixture-of-experts",
        }
    }
}

/// An algorithm of collective operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Every rank sends to the next one: all-reduce, all-gather, reduce-scatter.
    #[default]
    Ring,
    /// Pairs at doubling distances exchange halves: all-reduce.
    HalvingDoubling,
    /// Two binary trees, each for half of the array: all-reduce.
    DoubleTree,
    /// Every rank sends to every other at once: all operations.
    Direct,
    /// Every rank sends to one other in each round: all-to-all.
    Pairwise,
}

/// The order in which ranks take hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In the order of the hosts: rack by rack, job by job.
    #[default]
    Packed,
    /// Rank by rank, the jobs in turn.
    RoundRobin,
    /// Hosts are drawn by the run's seed.
    Scattered,
}

/// The size of a collective operation.
#[derive(Debug, Clone, Copy)]
struct Shape {
    ranks: u32,
    bytes: u64,
    slices: u32,
}

impl Collective {
    /// Returns the steps of one iteration; `None` if the algorithm does not do the operation.
    fn steps(&self, ranks: u32) -> Option<Steps> {
        use {Algorithm as By, Operation as To};
        let shape = Shape { ranks, bytes: self.bytes.0, slices: self.slices };
        Some(match (self.algorithm, self.operation) {
            (By::Ring, To::AllReduce) => ring::all_reduce(shape),
            (By::Ring, To::AllGather) => ring::all_gather(shape),
            (By::Ring, To::ReduceScatter) => ring::reduce_scatter(shape),
            (By::HalvingDoubling, To::AllReduce) => halving_doubling::all_reduce(shape),
            (By::DoubleTree, To::AllReduce) => double_tree::all_reduce(shape),
            (By::Direct, To::AllReduce) => direct::all_reduce(shape),
            (By::Direct, To::AllGather) => direct::all_gather(shape),
            (By::Direct, To::ReduceScatter) => direct::reduce_scatter(shape),
            (By::Direct, To::AllToAll) => direct::all_to_all(shape),
            (By::Pairwise, To::AllToAll) => pairwise::all_to_all(shape),
            _ => return None,
        })
    }

    /// Returns a bound on the messages of one iteration.
    fn most_messages(&self, ranks: u32) -> f64 {
        let (n, slices) = (f64::from(ranks), f64::from(self.slices));
        match self.algorithm {
            Algorithm::Ring | Algorithm::Direct | Algorithm::Pairwise => 2.0 * n * n * slices,
            Algorithm::HalvingDoubling => 2.0 * n * (n.log2() + 1.0),
            Algorithm::DoubleTree => 4.0 * n * slices,
        }
    }

    /// Returns the hosts of each job, in order of rank.
    fn places(&self, setting: &TrafficContext) -> Result<Vec<Vec<HostId>>, TrafficError> {
        let mut hosts = check_hosts("collective-hosts", "hosts", &self.hosts, setting.graph.hosts)?;
        let (jobs, all) = (self.jobs.max(1), hosts.len() as u32);
        let ranks = self.ranks.unwrap_or(all / jobs);
        if ranks < 2 || u64::from(ranks) * u64::from(jobs) > all.into() {
            let message = format!("{jobs} jobs of {ranks} ranks on {all} hosts");
            let hint = "a job needs at least 2 ranks, and each rank a host of its own";
            return Err(TrafficError::new("collective-hosts", "ranks", message).hint(hint));
        }
        if self.placement == Placement::Scattered {
            setting.stream("placement").shuffle(&mut hosts);
        }
        let place = |job: u32, rank: u32| match self.placement {
            Placement::RoundRobin => hosts[(rank * jobs + job) as usize],
            Placement::Packed | Placement::Scattered => hosts[(job * ranks + rank) as usize],
        };
        Ok((0..jobs).map(|job| (0..ranks).map(|rank| place(job, rank)).collect()).collect())
    }

    fn check(&self, setting: &TrafficContext, ranks: u32) -> Result<(), TrafficError> {
        for (field, count) in
            [("jobs", self.jobs), ("repeat", self.repeat), ("slices", self.slices)]
        {
            if count == 0 {
                let message = format!("{field} = 0: must be at least 1");
                return Err(TrafficError::new("collective-count", field, message));
            }
        }
        let is_sliced = matches!(self.algorithm, Algorithm::Ring | Algorithm::DoubleTree);
        if self.slices > 1 && !is_sliced {
            let message = format!("slices = {}: this algorithm sends whole parts", self.slices);
            let error = TrafficError::new("collective-slices", "slices", message);
            return Err(error.hint("remove slices, or use ring or double-tree"));
        }
        if self.skew != 0.0 && self.operation != Operation::MixtureOfExperts {
            let message = format!("skew = {}: the parts of this operation are equal", self.skew);
            let error = TrafficError::new("collective-skew", "skew", message);
            return Err(error.hint("use operation = \"mixture-of-experts\""));
        }
        if !(self.skew.is_finite() && (0.0..=10.0).contains(&self.skew)) {
            let message = format!("skew = {}: must be from 0 to 10", self.skew);
            return Err(TrafficError::new("collective-skew", "skew", message));
        }
        let parts = u64::from(ranks) * u64::from(self.slices);
        if self.bytes.0 < parts {
            let message = format!("bytes = \"{}\": {parts} parts need a byte each", self.bytes);
            return Err(TrafficError::new("collective-bytes", "bytes", message));
        }
        if self.start >= setting.horizon.arrivals {
            let message = format!("start = \"{}\": must be before horizon.arrivals", self.start);
            return Err(TrafficError::new("collective-start", "start", message));
        }
        let iterations = f64::from(self.repeat) * f64::from(self.jobs);
        check_flow_count(self.most_messages(ranks) * iterations, "repeat")
    }

    fn expand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        let places = self.places(setting)?;
        let ranks = places[0].len() as u32;
        self.check(setting, ranks)?;
        let mut demand = Demand::default();
        for (job, hosts) in places.iter().enumerate() {
            let mut bus_bytes = self.bytes.0;
            let steps = match (self.operation, self.algorithm) {
                (Operation::MixtureOfExperts, Algorithm::Direct) => {
                    let mut stream = setting.stream_of("experts", job as u64);
                    let shares = experts::shares(ranks, self.bytes.0, self.skew, &mut stream);
                    let most = shares.iter().max().copied().unwrap_or(0);
                    bus_bytes = 2 * u64::from(ranks) * most;
                    Some(experts::steps(&shares))
                }
                _ => self.steps(ranks),
            };
            let Some(steps) = steps else { return Err(self.refuse_algorithm()) };
            expand::expand(self, &mut demand, hosts, &steps, bus_bytes);
        }
        Ok(demand.numbered())
    }

    fn refuse_algorithm(&self) -> TrafficError {
        let operation = self.operation.name();
        let known = match self.operation {
            Operation::AllReduce => "ring, halving-doubling, double-tree or direct",
            Operation::AllGather | Operation::ReduceScatter => "ring or direct",
            Operation::AllToAll => "direct or pairwise",
            Operation::MixtureOfExperts => "direct",
        };
        let message = format!("this algorithm does no {operation}");
        TrafficError::new("collective-algorithm", "algorithm", message)
            .hint(format!("{operation} is done by {known}"))
    }
}

impl Pattern for Collective {
    fn demand(&self, setting: &TrafficContext) -> Result<Demand, TrafficError> {
        self.expand(setting)
    }
    fn sized_by(&self) -> &'static str {
        "bytes"
    }
}

#[cfg(test)]
mod tests;
