//! The directories of databases and logs while a command runs.

use std::path::{Path, PathBuf};

use leafpress_console::failure::Failure;
use leafpress_console::output::make_directory;

/// A directory for logs and for temporary databases; it is removed when this is dropped.
pub struct Scratch {
    temporary: tempfile::TempDir,
    databases: PathBuf,
    /// A new directory within the one that the user named, so that no existing file can be affected.
    _within: Option<tempfile::TempDir>,
    kept: bool,
}

impl Scratch {
    /// Makes the directories of databases that are kept in `directory`, or removed with a temporary directory.
    pub fn kept(directory: Option<&Path>) -> Result<Self, Failure> {
        let mut scratch = Self::passing(directory)?;
        scratch.kept = directory.is_some();
        Ok(scratch)
    }

    /// Makes the directories of databases that are removed, within `directory` or a temporary directory.
    pub fn passing(directory: Option<&Path>) -> Result<Self, Failure> {
        let temporary = directory_for_temporary_files().tempdir();
        let temporary =
            temporary.map_err(|e| Failure::bad_input(format!("no temporary directory: {e}; name one with TMPDIR")))?;
        let databases = directory.map_or_else(|| temporary.path().join("db"), Path::to_owned);
        Ok(Self {
            temporary,
            databases,
            _within: None,
            kept: false,
        })
    }

    /// Returns the directory of databases.
    pub fn databases(&self) -> &Path {
        &self.databases
    }

    /// Returns the directory of logs.
    pub fn logs(&self) -> &Path {
        self.temporary.path()
    }

    /// Makes the directory of the databases, which `--db` names, and checks that it is writable.
    pub fn make(&mut self) -> Result<(), Failure> {
        make_directory("db", &self.databases)?;
        let here = directory_for_temporary_files().tempdir_in(&self.databases);
        let here = here.map_err(|e| {
            Failure::bad_input(format!(
                "--db {}: {e}; name a writable directory",
                self.databases.display()
            ))
        })?;
        if !self.kept {
            self.databases = here.path().to_owned();
            self._within = Some(here);
        }
        Ok(())
    }
}

fn directory_for_temporary_files() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("leafpress-rocksdb-");
    builder
}
