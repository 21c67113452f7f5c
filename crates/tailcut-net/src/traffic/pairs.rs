//! Sources and destinations of flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailcut_engine::RandomStream;

use super::TrafficError;
use crate::topology::host_groups::HostGroups;
use crate::topology::{Graph, HostId};

/// How the source and destination of a flow are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Any two hosts.
    #[default]
    Random,
    /// Two hosts of different racks (edge switches).
    InterRack,
    /// Two hosts of different pods: their traffic crosses the topmost tier of links.
    InterPod,
    /// Any source; the destination is its partner in a random permutation drawn once.
    Permutation,
}

/// A distribution of pairs of hosts.
pub(crate) enum PairSource {
    /// Hosts of different groups. Each host is its own group if any pair is allowed.
    Between {
        group: Vec<u32>,
        members: Vec<u32>,
    },
    Partners(Vec<HostId>),
}

impl Pairs {
    pub(crate) fn source(
        self,
        graph: &Graph,
        field: &str,
        permutation: &mut RandomStream,
    ) -> Result<PairSource, TrafficError> {
        let hosts = graph.hosts;
        if hosts < 2 {
            return Err(TrafficError::new(
                "traffic-hosts",
                field,
                "traffic needs at least two hosts",
            ));
        }
        let between = |groups: HostGroups| PairSource::Between {
            members: groups.sizes(),
            group: groups.of_host,
        };
        let source = match self {
            Pairs::Random => PairSource::Between {
                group: (0..hosts).collect(),
                members: vec![1; hosts as usize],
            },
            Pairs::InterRack => between(graph.racks()),
            Pairs::InterPod => between(graph.pods()),
            Pairs::Permutation => PairSource::Partners(derangement(hosts, permutation)),
        };
        match &source {
            PairSource::Between { members, .. } if members.len() < 2 => {
                let what = if self == Pairs::InterRack { "rack" } else { "pod" };
                Err(TrafficError::new(
                    "traffic-pairs",
                    field,
                    format!("all {hosts} hosts share one {what}: no pair lies in different ones"),
                )
                .hint("use pairs = \"random\", or a topology with more racks"))
            }
            _ => Ok(source),
        }
    }
}

impl PairSource {
    /// Draws a source and a destination, uniformly over the allowed pairs.
    pub fn draw(&self, stream: &mut RandomStream) -> (HostId, HostId) {
        match self {
            PairSource::Partners(partner) => {
                let src = stream.below(partner.len() as u64) as usize;
                (HostId::at(src), partner[src])
            }
            PairSource::Between { group, .. } => loop {
                let hosts = group.len() as u64;
                let (src, dst) = (stream.below(hosts) as usize, stream.below(hosts) as usize);
                if group[src] != group[dst] {
                    return (HostId::at(src), HostId::at(dst));
                }
            },
        }
    }

    /// Returns, for each of `groups`, the fraction of flows that leave it.
    pub fn leaving(&self, groups: &HostGroups) -> Vec<f64> {
        let hosts = groups.of_host.len();
        let mut leaving = vec![0.0; groups.uplink.len()];
        match self {
            PairSource::Partners(partner) => {
                for (src, &dst) in partner.iter().enumerate() {
                    if groups.of_host[src] != groups.of_host[dst.index()] {
                        leaving[groups.of_host[src] as usize] += 1.0 / hosts as f64;
                    }
                }
            }
            PairSource::Between { group, members } => {
                // All ordered pairs in different `group`s; then those of them that also leave one
                // of `groups`.
                let all: f64 =
                    members.iter().map(|&m| f64::from(m) * (hosts as f64 - f64::from(m))).sum();
                let mut together = std::collections::BTreeMap::<(u32, u32), f64>::new();
                for (host, &own) in group.iter().enumerate() {
                    *together.entry((groups.of_host[host], own)).or_default() += 1.0;
                }
                let sizes = groups.sizes();
                for (&(outer, own), &count) in &together {
                    // From this part to hosts outside `outer` that are not in the part's own
                    // `group` either.
                    let own_outside = f64::from(members[own as usize]) - count;
                    let outside = hosts as f64 - f64::from(sizes[outer as usize]) - own_outside;
                    leaving[outer as usize] += count * outside / all;
                }
            }
        }
        leaving
    }
}

/// Draws a permutation of n hosts without fixed points, uniformly; n must be at least 2.
pub(crate) fn derangement(n: u32, stream: &mut RandomStream) -> Vec<HostId> {
    let mut permutation: Vec<HostId> = (0..n).map(HostId).collect();
    // About one permutation in e has no fixed point, so a few attempts are enough.
    loop {
        stream.shuffle(&mut permutation);
        if permutation.iter().enumerate().all(|(i, &p)| i != p.index()) {
            return permutation;
        }
    }
}
