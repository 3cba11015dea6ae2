//! How a [`DirectoryStore`] is opened: what of a directory becomes a page.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use walkdir::{DirEntry, WalkDir};

use super::directory::{DirectoryStore, is_temporary};
use super::{MAX_PAGE_BYTES, MIN_PAGE_BYTES};
use crate::io::at_path::at_path;

/// Settings of a [`DirectoryStore`].
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct DirectoryOptions {
    read_only: bool,
    max_pages: Option<u64>,
    max_bytes: Option<u64>,
    longest_page_bytes: Option<usize>,
}

/// What a directory was found to hold.
#[derive(Default)]
pub(super) struct Found {
    /// Paths below the directory, and bytes.
    pub(super) pages: Vec<(PathBuf, usize)>,
    pub(super) skipped: u64,
    pub(super) file_systems: Vec<FileSystem>,
    temporary: Vec<PathBuf>,
}

impl DirectoryOptions {
    /// Whether writes and removals are refused. No.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Takes the first pages only, in the order of their paths; the others are as if they were not there. No limit.
    pub fn max_pages(mut self, pages: u64) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// Takes pages, in the order of their paths, up to the first that would make them more than `bytes` bytes. No limit.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Bytes that a page may have, up to [`MAX_PAGE_BYTES`]; a longer file is skipped. The default is as long as the longest page found
    /// ([`MAX_PAGE_BYTES`] where there is none).
    pub fn longest_page_bytes(mut self, bytes: usize) -> Self {
        self.longest_page_bytes = Some(bytes);
        self
    }

    /// Opens a directory that exists and looks at every file in it. What an interrupted write left behind is removed.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotADirectory`]; [`io::ErrorKind::InvalidInput`] for an option out of its bounds; what the system says of the
    /// directory itself.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<DirectoryStore> {
        let path = path.as_ref();
        let opening = |e| at_path(path, "open", e);
        let longest = self.longest_page_bytes.unwrap_or(MAX_PAGE_BYTES);
        if !(MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&longest) {
            let reason = format!("pages of up to {longest} bytes: {MIN_PAGE_BYTES} to {MAX_PAGE_BYTES} can be");
            return Err(opening(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        let root = std::path::absolute(path).map_err(opening)?;
        // Reading it tells a directory that is none, or cannot be read.
        fs::read_dir(&root).map_err(opening)?;
        let found = self.look(&root, longest);
        if !self.read_only {
            for path in &found.temporary {
                // What cannot be removed is ignored.
                let _ = fs::remove_file(path);
            }
        }
        let longest_found = found.pages.iter().map(|&(_, bytes)| bytes).max();
        let longest = self.longest_page_bytes.or(longest_found).unwrap_or(MAX_PAGE_BYTES);
        Ok(DirectoryStore::of(root, found, self.read_only, longest))
    }

    fn look(&self, root: &Path, longest: usize) -> Found {
        let mut found = Found::default();
        // The root may be a link to a directory, which is none below.
        found.note_file_system(root);
        let mut bytes = 0_u64;
        let mut full = self.max_pages == Some(0);
        // Links to directories are not followed, so that none is visited twice.
        for entry in WalkDir::new(root).min_depth(0).sort_by_file_name() {
            let Ok(entry) = entry else {
                found.skipped += 1;
                continue;
            };
            if entry.file_type().is_dir() {
                found.note_file_system(entry.path());
                continue;
            }
            if is_temporary(entry.file_name()) {
                found.temporary.push(entry.into_path());
                continue;
            }
            // Temporary files are still looked for.
            if full {
                continue;
            }
            let Some(len) = page_length(&entry, longest) else {
                found.skipped += u64::from(!leads_to_directory(&entry));
                continue;
            };
            let more = bytes.saturating_add(len as u64);
            if self.max_bytes.is_some_and(|max| more > max) {
                full = true;
                continue;
            }
            bytes = more;
            if let Ok(below) = entry.path().strip_prefix(root) {
                found.pages.push((below.to_owned(), len));
            }
            full = self.max_pages.is_some_and(|max| found.pages.len() as u64 >= max);
        }
        found
    }
}

impl Found {
    /// One directory that can be opened is enough for a file system.
    fn note_file_system(&mut self, directory: &Path) {
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

/// A file system that pages are on, by one of its directories.
pub(super) struct FileSystem {
    /// Not known where the directory could not be looked at.
    device: Option<u64>,
    directory: PathBuf,
    /// Opened now or, where that fails, when there is something to sync: errors are told to who had it open when they happened.
    open: OnceLock<File>,
}

impl FileSystem {
    fn of(device: Option<u64>, directory: &Path) -> Self {
        Self {
            device,
            directory: directory.to_owned(),
            open: File::open(directory).map(OnceLock::from).unwrap_or_default(),
        }
    }

    /// The directory, open; [`None`] if it is gone, with all its pages.
    pub(super) fn open(&self) -> io::Result<Option<&File>> {
        if self.open.get().is_none() {
            match File::open(&self.directory) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => drop(self.open.set(opened.map_err(|e| at_path(&self.directory, "sync", e))?)),
            }
        }
        Ok(self.open.get())
    }
}

/// What an entry is, a link being what it leads to.
fn followed(entry: &DirEntry) -> io::Result<Metadata> {
    fs::metadata(entry.path())
}

fn page_length(entry: &DirEntry, longest: usize) -> Option<usize> {
    let about = followed(entry).ok().filter(Metadata::is_file)?;
    let len = usize::try_from(about.len()).ok()?;
    (MIN_PAGE_BYTES..=longest).contains(&len).then_some(len)
}

fn leads_to_directory(entry: &DirEntry) -> bool {
    followed(entry).is_ok_and(|about| about.is_dir())
}
