//! The files that an experiment names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::plan::{hex, FileUse};

/// Reads files relative to a directory, each once, and remembers what they held.
pub struct Files {
    directory: PathBuf,
    contents: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Files {
    /// Files relative to `directory`.
    pub fn new(directory: &Path) -> Files {
        Files { directory: directory.to_owned(), contents: RefCell::default() }
    }

    /// The content of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        if let Some(content) = self.contents.borrow().get(path) {
            return Ok(content.clone());
        }
        let content = std::fs::read(self.directory.join(path))?;
        self.contents.borrow_mut().insert(path.to_owned(), content.clone());
        Ok(content)
    }

    /// What the plan says of files: where they are and what they hold.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn uses(&self, paths: &[&str]) -> std::io::Result<Vec<FileUse>> {
        let mut paths = paths.to_vec();
        paths.sort_unstable();
        paths.dedup();
        paths
            .into_iter()
            .map(|path| {
                let content = self.read(path)?;
                let resolved = std::path::absolute(self.directory.join(path))?;
                Ok(FileUse {
                    path: path.to_owned(),
                    resolved: resolved.display().to_string(),
                    sha256: hex(&Sha256::digest(content)),
                })
            })
            .collect()
    }
}

/// Reads a file of a plan.
///
/// # Errors
/// When it cannot be read, or holds something else than when the plan was made.
pub fn read_file(file: &FileUse) -> std::io::Result<Vec<u8>> {
    let content = std::fs::read(&file.resolved)?;
    if hex(&Sha256::digest(&content)) != file.sha256 {
        let message = "its content has changed since the plan was made; plan again";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
    }
    Ok(content)
}
