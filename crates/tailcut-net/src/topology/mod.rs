//! Topologies: each builds a [`Graph`].
//!
//! A new topology is one file here, with its parameters as a [`Topology`], and one line in the list
//! below.

mod build;
pub mod chain;
pub mod dumbbell;
pub mod fat_tree;
pub mod find;
pub mod graph;
pub mod host_groups;
pub mod ids;
pub mod leaf_spine;
pub mod node_link;
pub mod parallel_paths;
pub mod routes;
pub mod star;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::SpecError;
use crate::files::FileReader;
use crate::registry::registry;

pub use graph::{Graph, Link};
pub use ids::{HostId, NodeId, PortId, SwitchId};
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
        /// Any graph, from a NetworkX node-link file.
        NodeLink(node_link::NodeLink),
    }
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
