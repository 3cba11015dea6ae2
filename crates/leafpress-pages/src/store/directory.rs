//! A store in which each page is a file of a directory.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use leafpress_base::sync::plain::RwLock;

use super::directory_contents::{DirectoryContents, FileSystem};
use leafpress_base::io::at_path::at_path;
use leafpress_base::io::open;
use leafpress_base::store::{MIN_PAGE_BYTES, PageId, PageStore, check_read_length, no_such_page};

const SHARDS: usize = 16;
const TEMPORARY_PREFIX: &str = ".leafpress-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// A page: a file and its last known length.
struct StoredFile {
    /// Relative to the directory; `None` if the name is the page's number.
    path: Option<Box<Path>>,
    bytes: usize,
}

type Shard = RwLock<HashMap<PageId, StoredFile>>;

/// A store in which each page is a file of a directory, with any length from [`MIN_PAGE_BYTES`] to
/// [`MAX_PAGE_BYTES`](super::MAX_PAGE_BYTES).
///
/// When it is opened, the files below the directory are numbered in the order of their paths. Shorter and longer files,
/// other objects and inaccessible files are skipped; a symbolic link to a file counts as that file, one to a directory
/// is ignored. The numbers are valid for the lifetime of the store.
///
/// A write creates a temporary file and renames it over the old one, so that no torn write is visible; it gets the old
/// one's permissions. A link is replaced, not its target. A new page's file is named by its number in twenty digits.
///
/// Pages go through the system's page cache. Only one store at a time may write to a directory; files that other
/// programs change, remove or replace are noticed at their next read.
pub struct DirectoryStore {
    root: PathBuf,
    read_only: bool,
    max_page_bytes: usize,
    skipped: u64,
    shards: Box<[Shard]>,
    /// One more than the highest number ever used.
    len: AtomicU64,
    /// Number of the next temporary file.
    temporary: AtomicU64,
    /// The file systems below the root.
    file_systems: Vec<FileSystem>,
}

impl DirectoryStore {
    pub(super) fn of(root: PathBuf, found: DirectoryContents, read_only: bool, max_page_bytes: usize) -> Self {
        let len = found.pages.len() as u64;
        let mut shards: Vec<HashMap<PageId, StoredFile>> = (0..SHARDS).map(|_| HashMap::new()).collect();
        for (page, (path, bytes)) in (0..).zip(found.pages) {
            let path = Some(path.into_boxed_path());
            shards[shard_of(page)].insert(page, StoredFile { path, bytes });
        }
        Self {
            root,
            read_only,
            max_page_bytes,
            skipped: found.skipped,
            shards: shards.into_iter().map(RwLock::new).collect(),
            len: AtomicU64::new(len),
            temporary: AtomicU64::new(0),
            file_systems: found.file_systems,
        }
    }

    /// Returns the number of files skipped at opening: too short, too long, not plain files, or inaccessible.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the total length of all pages, in bytes.
    pub fn bytes(&self) -> u64 {
        let of = |shard: &Shard| shard.read().values().map(|entry| entry.bytes as u64).sum::<u64>();
        self.shards.iter().map(of).sum()
    }

    fn shard(&self, page: PageId) -> &Shard {
        &self.shards[shard_of(page)]
    }

    /// Returns the page's path and its last known length.
    fn find(&self, page: PageId) -> Option<(PathBuf, usize)> {
        let shard = self.shard(page).read();
        let entry = shard.get(&page)?;
        let path = match &entry.path {
            Some(below) => self.root.join(below),
            None => self.root.join(name_of(page)),
        };
        Some((path, entry.bytes))
    }

    fn note_length(&self, page: PageId, bytes: usize) {
        if let Some(entry) = self.shard(page).write().get_mut(&page) {
            entry.bytes = bytes;
        }
    }

    fn forget(&self, page: PageId) {
        let _entry = self.shard(page).write().remove(&page);
    }

    fn read_file(&self, page: PageId, path: &Path, known: usize, into: &mut [u8]) -> io::Result<()> {
        let mut file = open::read_linked(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                self.forget(page);
                error
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => {
                io::Error::new(io::ErrorKind::InvalidData, "no longer a file")
            }
            _ => error,
        })?;
        let len = file.metadata()?.len();
        if len != known as u64 {
            return Err(self.length_changed(page, known, len));
        }
        check_read_length(known, into)?;
        file.read_exact(into)
    }

    /// Stores the new length if it is valid, so that the next read uses it.
    fn length_changed(&self, page: PageId, known: usize, now: u64) -> io::Error {
        match usize::try_from(now) {
            Ok(bytes) if (MIN_PAGE_BYTES..=self.max_page_bytes).contains(&bytes) => self.note_length(page, bytes),
            _ => {}
        }
        let kind = if now < known as u64 {
            io::ErrorKind::UnexpectedEof
        } else {
            io::ErrorKind::InvalidData
        };
        io::Error::new(
            kind,
            format!("another program changed its length from {known} to {now} bytes"),
        )
    }

    /// Checks a write; returns the page's number plus one.
    fn check(&self, page: PageId, len: usize) -> io::Result<u64> {
        self.check_writable()?;
        if !(MIN_PAGE_BYTES..=self.max_page_bytes).contains(&len) {
            let reason = format!(
                "page {page} of {len} bytes: {MIN_PAGE_BYTES} to {} can be",
                self.max_page_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        page.checked_add(1)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no number is above the page's"))
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.read_only {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened read-only"));
        }
        Ok(())
    }

    /// Writes a temporary file next to `path` and renames it.
    fn replace(&self, path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let temporary = path.with_file_name(format!("{TEMPORARY_PREFIX}{process}-{number}{TEMPORARY_SUFFIX}"));
        // No other user may read it until it has the permissions of the file that it replaces.
        let mut file = match permissions {
            Some(_) => open::create_private(&temporary)?,
            None => open::create(&temporary)?,
        };
        let renamed = file
            .write_all(bytes)
            .and_then(|()| permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions)))
            .and_then(|()| fs::rename(&temporary, path));
        renamed.inspect_err(|_| {
            // If it is left behind, the next opening removes it.
            let _ = fs::remove_file(&temporary);
        })
    }

    fn rewrite(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let permissions = match fs::metadata(path) {
            Ok(about) if about.permissions().readonly() => return Err(io::ErrorKind::PermissionDenied.into()),
            Ok(about) => Some(about.permissions()),
            // It was deleted meanwhile: the page is written nevertheless.
            Err(_) => None,
        };
        self.replace(path, bytes, permissions)
    }

    /// Writes a page that has no file, and never overwrites a file that is not the store's.
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let reserved = open::create(path).map(|_| ());
        let empty = |path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() == 0);
        match reserved {
            // An empty file of such a name was reserved by an interrupted write.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && empty(path) => {}
            other => other?,
        }
        self.replace(path, bytes, None).inspect_err(|_| {
            if empty(path) {
                let _ = fs::remove_file(path);
            }
        })
    }
}

impl PageStore for DirectoryStore {
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn max_page_bytes(&self) -> usize {
        self.max_page_bytes
    }

    fn min_page_bytes(&self) -> usize {
        MIN_PAGE_BYTES
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        let shard = self.shard(page).read();
        shard
            .get(&page)
            .map(|entry| entry.bytes)
            .ok_or_else(|| no_such_page(page))
    }

    fn describe(&self) -> String {
        self.to_string()
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        let (path, known) = self.find(page).ok_or_else(|| no_such_page(page))?;
        self.read_file(page, &path, known, into)
            .map_err(|e| at_path(&path, format_args!("read page {page}"), e))
    }

    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        let checked = self.check(page, len).map(|_| ());
        checked.map_err(|e| at_path(&self.root, "write", e))
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        let len = self
            .check(page, bytes.len())
            .map_err(|e| at_path(&self.root, "write", e))?;
        let writing = |path: &Path, e| at_path(path, format_args!("write page {page}"), e);
        if let Some((path, _)) = self.find(page) {
            self.rewrite(&path, bytes).map_err(|e| writing(&path, e))?;
            self.note_length(page, bytes.len());
            return Ok(());
        }
        let path = self.root.join(name_of(page));
        self.write_new(&path, bytes).map_err(|e| writing(&path, e))?;
        let bytes = bytes.len();
        self.shard(page).write().insert(page, StoredFile { path: None, bytes });
        self.len.fetch_max(len, Ordering::AcqRel);
        Ok(())
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        self.check_writable()
            .map_err(|e| at_path(&self.root, format_args!("remove page {page}"), e))?;
        let Some((path, _)) = self.find(page) else {
            return Ok(());
        };
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at_path(&path, format_args!("remove page {page}"), e)),
            _ => {
                self.forget(page);
                Ok(())
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn sync(&self) -> io::Result<()> {
        use leafpress_base::io::system::sync_file_system;

        // One call per file system instead of one per written file and directory; it waits for other programs' writes
        // too.
        for file_system in &self.file_systems {
            let Some(directory) = file_system.open()? else { continue };
            sync_file_system(directory).map_err(|e| at_path(&self.root, "sync", e))?;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn sync(&self) -> io::Result<()> {
        let pages: Vec<PageId> = self
            .shards
            .iter()
            .flat_map(|shard| shard.read().keys().copied().collect::<Vec<_>>())
            .collect();
        for path in pages
            .into_iter()
            .filter_map(|page| self.find(page))
            .map(|(path, _)| path)
        {
            match open::read_linked(&path).and_then(|file| file.sync_all()) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(at_path(&path, "sync", e)),
                _ => {}
            }
        }
        for file_system in &self.file_systems {
            if let Some(directory) = file_system.open()? {
                directory.sync_all().map_err(|e| at_path(&self.root, "sync", e))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for DirectoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: a directory, pages of {MIN_PAGE_BYTES} to {} bytes, through the page cache, {} files skipped{}",
            self.root.display(),
            self.max_page_bytes,
            self.skipped,
            if self.read_only { ", read-only" } else { "" }
        )
    }
}

impl fmt::Debug for DirectoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DirectoryStore").field(&format_args!("{self}")).finish()
    }
}

/// Returns true if a file of this name was left behind by a write.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(TEMPORARY_PREFIX)?.strip_suffix(TEMPORARY_SUFFIX))
        .is_some_and(|middle| {
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            middle.split_once('-').is_some_and(|(a, b)| digits(a) && digits(b))
        })
}

fn name_of(page: PageId) -> String {
    format!("{page:020}")
}

fn shard_of(page: PageId) -> usize {
    (page % SHARDS as u64) as usize
}
