//! Topologies: each builds a [`Graph`].
//!
//! A new topology is one file here, with its parameters as a [`Topology`], and one line in the list
//! below.

pub mod attachment;
mod build;
pub mod chain;
pub mod dumbbell;
pub mod fat_tree;
pub mod find;
pub mod graph;
pub mod host_groups;
pub mod ids;
pub mod leaf_spine;
mod multi_homed;
pub mod multi_plane;
pub mod node_link;
pub mod parallel_paths;
pub mod rail_optimised;
mod route_table;
pub mod routes;
pub mod star;
mod switch_links;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::SpecError;
use crate::files::FileReader;
use crate::registry::registry;

pub use attachment::Attachment;
pub use graph::{Graph, Link};
pub use ids::{HostId, MAX_HOSTS, NodeId, PortId, SwitchId};
pub use routes::{PathCounts, RouteError, Routes};

/// Error in the parameters or the file of a topology.
pub type TopologyError = SpecError;

/// The parameters of a topology.
pub trait Topology {
    /// Builds the graph. `read` supplies the files that [`Topology::files`] lists.
    ///
    /// # Errors
    /// Refuses parameters out of range, and files that do not describe a usable network.
    fn graph(&self, read: &dyn FileReader) -> Result<Graph, TopologyError>;
    /// Returns the files that decide the graph.
    fn files(&self) -> Vec<&str> {
        vec![]
    }
}

registry! {
    /// The network under test.
    pub enum TopologySpec: Topology {
        /// Three tiers of k-port switches: (k/2)^2 paths between pods.
        ///
        /// Al-Fares et al., SIGCOMM 2008.
        FatTree(fat_tree::FatTree),
        /// Racks joined by spine switches: one path per spine.
        LeafSpine(leaf_spine::LeafSpine),
        /// Pairs of hosts that share one bottleneck link.
        Dumbbell(dumbbell::Dumbbell),
        /// Two edge switches joined by parallel two-link paths: the papers' toy fabrics.
        ParallelPaths(parallel_paths::ParallelPaths),
        /// Hosts around a single switch.
        Star(star::Star),
        /// Two hosts joined by a row of switches.
        Chain(chain::Chain),
        /// Several networks that do not meet; every host has an interface in each.
        MultiPlane(multi_plane::MultiPlane),
        /// Accelerator k of every server on leaf k; servers have links inside.
        RailOptimised(rail_optimised::RailOptimised),
        /// Any graph, from a NetworkX node-link file.
        NodeLink(node_link::NodeLink),
    }
}

/// Returns why a kind of network or of routing is not simulated, if packets would need paths that
/// are not shortest.
pub fn non_minimal(kind: &str) -> Option<&'static str> {
    const KINDS: [&str; 16] = [
        "dragonfly",
        "dragonfly+",
        "slim-fly",
        "hyperx",
        "torus",
        "mesh",
        "jellyfish",
        "xpander",
        "flattened-butterfly",
        "bcube",
        "dcell",
        "polarfly",
        "valiant",
        "vlb",
        "ugal",
        "non-minimal",
    ];
    KINDS.contains(&kind).then_some(
        "packets take shortest paths: networks that need others, and routing that takes them, are not simulated",
    )
}

impl Default for TopologySpec {
    fn default() -> Self {
        TopologySpec::FatTree(fat_tree::FatTree::default())
    }
}

impl TopologySpec {
    /// Builds the graph. `read` supplies the files that [`Topology::files`] lists.
    ///
    /// # Errors
    /// Refuses parameters out of range, and node-link files that do not describe a usable network.
    pub fn build(&self, read: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.graph(read)
    }
}
