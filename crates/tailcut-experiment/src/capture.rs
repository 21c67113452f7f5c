//! Captures of a run: where the file goes, and what of the run goes into it.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use serde::Deserialize;
use tailcut_net::capture::{Capture, CaptureError, CaptureSpec};
use tailcut_net::topology::Graph;

/// A capture that a run is asked for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// The pcapng file to write; one that is there is replaced.
    pub file: PathBuf,
    /// Where to capture and how much.
    pub spec: CaptureSpec,
}

impl CaptureRequest {
    /// Opens the file and prepares the capture on this network.
    ///
    /// # Errors
    /// When the file cannot be written, or a capture point is not in the network.
    pub fn open(&self, graph: &Graph) -> Result<Capture<BufWriter<File>>, CaptureError> {
        Capture::new(&self.spec, graph, BufWriter::new(File::create(&self.file)?))
    }
}
