//! The contents found in a directory: its pages, and their file systems.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use leafpress_base::io::at_path::at_path;
use leafpress_base::io::open;

/// The contents found in a directory.
#[derive(Default)]
pub(super) struct DirectoryContents {
    /// Relative paths, and lengths in bytes.
    pub(super) pages: Vec<(PathBuf, usize)>,
    pub(super) skipped: u64,
    pub(super) file_systems: Vec<FileSystem>,
    pub(super) temporary: Vec<PathBuf>,
}

impl DirectoryContents {
    /// One directory that can be opened is enough per file system.
    pub(super) fn note_file_system(&mut self, directory: &Path) {
        let device = fs::metadata(directory).ok().map(|about| about.dev());
        let known = self.file_systems.iter_mut().find(|known| known.device == device);
        match known {
            Some(known) if device.is_some() => {
                if known.open.get().is_none() {
                    *known = FileSystem::of(device, directory);
                }
            }
            _ => self.file_systems.push(FileSystem::of(device, directory)),
        }
    }
}

/// A file system with pages, represented by one of its directories.
pub(super) struct FileSystem {
    /// Unknown if the directory could not be examined.
    device: Option<u64>,
    directory: PathBuf,
    /// Opened now or, if that fails, at the first sync: errors are reported to descriptors that were open when they
    /// happened.
    open: OnceLock<File>,
}

impl FileSystem {
    fn of(device: Option<u64>, directory: &Path) -> Self {
        Self {
            device,
            directory: directory.to_owned(),
            open: open::directory(directory).map(OnceLock::from).unwrap_or_default(),
        }
    }

    /// Returns the open directory; [`None`] if it was deleted, with all its pages.
    pub(super) fn open(&self) -> io::Result<Option<&File>> {
        if self.open.get().is_none() {
            match open::directory(&self.directory) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => drop(self.open.set(opened.map_err(|e| at_path(&self.directory, "sync", e))?)),
            }
        }
        Ok(self.open.get())
    }
}
