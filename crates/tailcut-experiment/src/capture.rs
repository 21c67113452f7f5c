//! Packet captures of a run: the file and what goes into it.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use serde::Deserialize;
use tailcut_net::capture::{Capture, CaptureError, CaptureSpec};
use tailcut_net::topology::Graph;

/// A request to capture packets of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// The pcapng file to write; an existing file is replaced.
    pub file: PathBuf,
    /// Where to capture and how much.
    pub spec: CaptureSpec,
}

impl CaptureRequest {
    /// Creates the file and prepares the capture on `graph`.
    ///
    /// # Errors
    /// If the file cannot be written, or a capture point is not in the network.
    pub fn open(&self, graph: &Graph) -> Result<Capture<BufWriter<File>>, CaptureError> {
        Capture::new(&self.spec, graph, BufWriter::new(File::create(&self.file)?))
    }
}
