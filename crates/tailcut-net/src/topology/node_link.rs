//! Any graph, from a NetworkX node-link JSON file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Graph, TopologyError};
use crate::component::{read_text, ReadFile};

/// Parameters of a graph from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLink {
    /// Path of the JSON file that `networkx.node_link_data` wrote. Nodes carry `kind` ("host" or
    /// "switch"), edges carry `rate` and `propagation` with units, and optionally `queue_limit` and `tier`.
    pub file: String,
}

impl NodeLink {
    /// Reads and builds the graph.
    ///
    /// # Errors
    /// When the file cannot be read or does not describe a usable network; the message names the node or edge.
    pub fn build(&self, read: &ReadFile) -> Result<Graph, TopologyError> {
        let text = read_text(read, "node-link-file", "file", &self.file)?;
        parse(&text).map_err(|mut error| {
            error.message = format!("{}: {}", self.file, error.message);
            error
        })
    }
}

fn parse(_text: &str) -> Result<Graph, TopologyError> {
    Err(TopologyError::new("node-link-file", "file", "node-link is not read yet"))
}
