//! Access to the files that an experiment names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tailcut_net::files::{FileReader, TableColumn};

use crate::plan::{FileUse, RunPlan, hex};

/// Reads columns from the content of a Parquet file, as [`FileReader::columns`] does. This crate
/// has no Parquet reader: callers pass theirs.
pub type TableReader<'a> = dyn Fn(&[u8], &[&str]) -> Result<Vec<TableColumn>, String> + 'a;

/// A [`TableReader`] for callers that have none.
///
/// # Errors
/// Always.
pub fn no_table_reader(_content: &[u8], _wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
    Err("this program cannot read Parquet tables".to_owned())
}

/// Reads files relative to a directory, each once, and keeps their contents.
pub struct Files<'a> {
    directory: PathBuf,
    contents: RefCell<BTreeMap<String, Vec<u8>>>,
    read_table: &'a TableReader<'a>,
}

impl FileReader for Files<'_> {
    fn file(&self, path: &str) -> std::io::Result<Vec<u8>> {
        if let Some(content) = self.contents.borrow().get(path) {
            return Ok(content.clone());
        }
        let place = std::path::absolute(self.directory.join(path))?;
        if place.to_str().is_none() {
            // A plan is JSON and could not hold this path.
            let message = format!(
                "its directory {} has a name that is not UTF-8: rename the directory",
                place.parent().unwrap_or(&place).display()
            );
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidFilename, message));
        }
        let content = std::fs::read(place)?;
        self.contents.borrow_mut().insert(path.to_owned(), content.clone());
        Ok(content)
    }

    fn columns(&self, content: &[u8], wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
        (self.read_table)(content, wanted)
    }
}

impl<'a> Files<'a> {
    /// Creates a reader of files relative to `directory`.
    pub fn new(directory: &Path, read_table: &'a TableReader<'a>) -> Files<'a> {
        Files { directory: directory.to_owned(), contents: RefCell::default(), read_table }
    }

    /// Returns the path, resolved path and hash of each file, sorted by path and without
    /// duplicates.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn uses(&self, paths: &[&str]) -> std::io::Result<Vec<FileUse>> {
        let mut paths = paths.to_vec();
        paths.sort_unstable();
        paths.dedup();
        paths
            .into_iter()
            .map(|path| {
                let content = self.file(path)?;
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

/// Reads the files that a planned run lists. A file whose content has changed since is an error.
pub struct PlannedFiles<'a> {
    /// The run.
    pub plan: &'a RunPlan,
    /// Reads the columns of tables.
    pub read_table: &'a TableReader<'a>,
}

impl FileReader for PlannedFiles<'_> {
    fn file(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let file = self.plan.files.iter().find(|file| file.path == path).ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, "the plan does not list this file")
        })?;
        let content = std::fs::read(&file.resolved)?;
        if hex(&Sha256::digest(&content)) != file.sha256 {
            let message = "its content has changed since the plan was made; plan again";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
        }
        Ok(content)
    }

    fn columns(&self, content: &[u8], wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
        (self.read_table)(content, wanted)
    }
}
