//! The files that an experiment names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tailcut_net::files::{FileReader, TableColumn};

use crate::plan::{FileUse, RunPlan, hex};

/// Takes apart the content of a Parquet file, as [`FileReader::columns`]. There is no Parquet reader here: whoever has one
/// passes it in.
pub type TableReader<'a> = dyn Fn(&[u8], &[&str]) -> Result<Vec<TableColumn>, String> + 'a;

/// The reader of tables of those who have none.
///
/// # Errors
/// Always.
pub fn no_table_reader(_content: &[u8], _wanted: &[&str]) -> Result<Vec<TableColumn>, String> {
    Err("no reader of tables is at hand".to_owned())
}

/// Reads files relative to a directory, each once, and remembers what they held.
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
            // A plan is JSON: it could not say where the file is.
            let message = format!(
                "it lies in {}, whose name is not text in UTF-8: rename the directory",
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
    /// Files relative to `directory`.
    pub fn new(directory: &Path, read_table: &'a TableReader<'a>) -> Files<'a> {
        Files { directory: directory.to_owned(), contents: RefCell::default(), read_table }
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

/// The files that a planned run lists, unless they have changed since.
pub struct PlannedFiles<'a> {
    /// The run.
    pub plan: &'a RunPlan,
    /// Takes tables apart.
    pub read_table: &'a TableReader<'a>,
}

impl FileReader for PlannedFiles<'_> {
    fn file(&self, path: &str) -> std::io::Result<Vec<u8>> {
        let file = self.plan.files.iter().find(|file| file.path == path).ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, "the plan does not list it")
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
