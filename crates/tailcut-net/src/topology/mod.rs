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

pub use graph::{Graph, Link};
pub use ids::{HostId, NodeId, PortId, SwitchId};
pub use routes::{PathCounts, RouteError, Routes};

/// Error in the parameters or the file of a topology.
pub type TopologyError = SpecError;

/// The parameters of a topology.
trait Topology {
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

/// Writes the section `topology` of the experiment file: one kind per topology.
macro_rules! topologies {
    ($($(#[$about:meta])* $name:ident($parameters:ty),)*) => {
        /// The network under test.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
        pub enum TopologySpec {
            $($(#[$about])* $name($parameters),)*
        }

        impl TopologySpec {
            fn topology(&self) -> &dyn Topology {
                match self { $(TopologySpec::$name(topology) => topology,)* }
            }
        }
    };
}

topologies! {
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

impl Default for TopologySpec {
    fn default() -> Self {
        TopologySpec::FatTree(fat_tree::FatTree::default())
    }
}

impl TopologySpec {
    /// Builds the graph. `read` supplies the files that [`TopologySpec::files`] lists.
    ///
    /// # Errors
    /// Refuses parameters out of range, and node-link files that do not describe a usable network.
    pub fn build(&self, read: &dyn FileReader) -> Result<Graph, TopologyError> {
        self.topology().graph(read)
    }

    /// Returns the files that decide the graph.
    pub fn files(&self) -> Vec<&str> {
        self.topology().files()
    }
}
