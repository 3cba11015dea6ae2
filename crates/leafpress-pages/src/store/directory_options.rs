//! Options for opening a [`DirectoryStore`].

use std::fs::{self, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{DirectoryStore, is_temporary};
use super::directory_contents::DirectoryContents;
use leafpress_base::io::at_path::at_path;
use leafpress_base::store::{MAX_PAGE_BYTES, MIN_PAGE_BYTES};

/// Options for opening a [`DirectoryStore`].
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct DirectoryOptions {
    read_only: bool,
    max_pages: Option<u64>,
    max_bytes: Option<u64>,
    longest_page_bytes: Option<usize>,
}

impl DirectoryOptions {
    /// Sets whether writes and removals are refused. Off by default.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Limits the number of pages: only the first ones, in the order of their paths, are used. Unlimited by default.
    pub fn max_pages(mut self, pages: u64) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// Limits the total length of the pages: pages are used in the order of their paths up to the first one that would
    /// exceed `bytes` bytes. Unlimited by default.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Sets the maximum length of a page in bytes, up to [`MAX_PAGE_BYTES`]; longer files are skipped. The default is
    /// the length of the longest page found ([`MAX_PAGE_BYTES`] if there is none).
    pub fn longest_page_bytes(mut self, bytes: usize) -> Self {
        self.longest_page_bytes = Some(bytes);
        self
    }

    /// Opens an existing directory and examines every file in it. Files left behind by interrupted writes are removed.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::NotADirectory`], [`io::ErrorKind::InvalidInput`] for an option out of its bounds, or
    /// the system's error for the directory itself.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<DirectoryStore> {
        let path = path.as_ref();
        let opening = |e| at_path(path, "open", e);
        let longest = self.longest_page_bytes.unwrap_or(MAX_PAGE_BYTES);
        if !(MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&longest) {
            let reason = format!("pages of up to {longest} bytes: {MIN_PAGE_BYTES} to {MAX_PAGE_BYTES} can be");
            return Err(opening(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        let root = std::path::absolute(path).map_err(opening)?;
        // Fails if the path is not a directory, or cannot be read.
        fs::read_dir(&root).map_err(opening)?;
        let found = self.look(&root, longest);
        if !self.read_only {
            for path in &found.temporary {
                // Best effort: files that cannot be removed are ignored.
                let _ = fs::remove_file(path);
            }
        }
        let longest_found = found.pages.iter().map(|&(_, bytes)| bytes).max();
        let longest = self.longest_page_bytes.or(longest_found).unwrap_or(MAX_PAGE_BYTES);
        Ok(DirectoryStore::of(root, found, self.read_only, longest))
    }

    fn look(&self, root: &Path, longest: usize) -> DirectoryContents {
        let mut found = DirectoryContents::default();
        // The root may be a link to a directory; others below it are not followed.
        found.note_file_system(root);
        let mut bytes = 0_u64;
        let mut full = self.max_pages == Some(0);
        // The entries that are still to be visited, the next one last. Links to directories are not followed, so that
        // none is visited twice.
        let mut left = entries(root, &mut found.skipped);
        while let Some((path, kind)) = left.pop() {
            if kind.is_dir() {
                found.note_file_system(&path);
                left.append(&mut entries(&path, &mut found.skipped));
                continue;
            }
            if path.file_name().is_some_and(is_temporary) {
                found.temporary.push(path);
                continue;
            }
            // Temporary files are still looked for.
            if full {
                continue;
            }
            let Some(len) = page_length(&path, longest) else {
                found.skipped += u64::from(!leads_to_directory(&path));
                continue;
            };
            let more = bytes.saturating_add(len as u64);
            if self.max_bytes.is_some_and(|max| more > max) {
                full = true;
                continue;
            }
            bytes = more;
            if let Ok(below) = path.strip_prefix(root) {
                found.pages.push((below.to_owned(), len));
            }
            full = self.max_pages.is_some_and(|max| found.pages.len() as u64 >= max);
        }
        found
    }
}

impl DirectoryStore {
    /// Opens an existing directory for reading and writing.
    ///
    /// # Errors
    /// Returns the errors of [`DirectoryOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::options().open(path)
    }

    /// Returns the options for opening a directory.
    pub fn options() -> DirectoryOptions {
        DirectoryOptions::default()
    }
}

/// Returns the entries of a directory in the reverse order of their names. Counts those that cannot be read, and the
/// directory itself if it cannot be.
fn entries(directory: &Path, unreadable: &mut u64) -> Vec<(PathBuf, FileType)> {
    let mut found = Vec::new();
    match fs::read_dir(directory) {
        Ok(entries) => {
            for entry in entries {
                match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                    Ok(entry) => found.push(entry),
                    Err(_) => *unreadable += 1,
                }
            }
        }
        Err(_) => *unreadable += 1,
    }
    found.sort_unstable_by(|(one, _), (other, _)| other.file_name().cmp(&one.file_name()));
    found
}

/// Returns the length of the file to which the path leads, following a link, if it can be a page.
fn page_length(path: &Path, longest: usize) -> Option<usize> {
    let about = fs::metadata(path).ok().filter(Metadata::is_file)?;
    let len = usize::try_from(about.len()).ok()?;
    (MIN_PAGE_BYTES..=longest).contains(&len).then_some(len)
}

fn leads_to_directory(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.is_dir())
}
