//! Options for opening a [`FileStore`].

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::extent::Extent;
use super::file::{FileStore, Method};
use super::{MAX_PAGE_BYTES, MIN_PAGE_BYTES};
use crate::io::at_path::at_path;
use crate::io::direct::Direct;
use crate::io::open;
use crate::io::system::try_lock;
use crate::io::uring::Rings;

/// Whether to use a feature that not every system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AutoOnOff {
    /// Used where it works.
    #[default]
    Auto,
    /// Required: opening fails where it does not work.
    On,
    /// Not used.
    Off,
}

/// Settings of a [`FileStore`].
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct FileOptions {
    read_only: bool,
    direct: AutoOnOff,
    io_uring: AutoOnOff,
    exclusive: bool,
    is_private: bool,
}

/// How long to wait for a file that another process has locked: a process that was killed may still have writes in
/// flight.
const LOCK_WAIT: Duration = Duration::from_secs(2);

impl FileOptions {
    /// Sets whether writes and removals are refused; the file then need not be writable. Default: no.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets whether to bypass the system's page cache (`O_DIRECT`), so that a page is not held in memory twice.
    /// Default: auto, which uses it where the file system supports it and pages are a multiple of its blocks.
    pub fn direct(mut self, direct: AutoOnOff) -> Self {
        self.direct = direct;
        self
    }

    /// Sets whether batches use io_uring. Default: auto.
    pub fn io_uring(mut self, io_uring: AutoOnOff) -> Self {
        self.io_uring = io_uring;
        self
    }

    /// Sets whether the file is locked, with `flock`, until the store is dropped and its transfers have ended: another
    /// store that requests the same is refused. The lock is advisory, and is skipped where the file system has no
    /// locks. Default: no.
    ///
    /// Children forked while the store was open do not keep the file locked once the store is dropped. They do if the
    /// process that opened it was killed.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Sets whether a created file is readable and writable only by the process's user. Default: no, the process's
    /// default permissions.
    pub fn private(mut self, is_private: bool) -> Self {
        self.is_private = is_private;
        self
    }

    /// Opens an existing file, divided into pages of `page_bytes`, [`MIN_PAGE_BYTES`] to [`MAX_PAGE_BYTES`]; the last
    /// may be shorter.
    ///
    /// Opening changes nothing in the file, whatever its contents. Writing does: a store has no header that would
    /// distinguish its file from another, so any file's bytes are pages, and a written page replaces them.
    /// [`FileOptions::read_only`] leaves a file unchanged; [`FileOptions::create`] never opens an existing one.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for another page length, or for a path that is not a file;
    /// [`io::ErrorKind::Unsupported`] where a feature that was switched on does not work;
    /// [`io::ErrorKind::ResourceBusy`] where another store has locked it; errors of the system.
    pub fn open(&self, path: impl AsRef<Path>, page_bytes: usize) -> io::Result<FileStore> {
        self.open_checked(path.as_ref(), page_bytes, |_| Ok(()))
    }

    /// Opens a file like [`FileOptions::open`], if `check` agrees: it is called when the file is locked, before
    /// anything depends on the file's length.
    pub fn open_checked(
        &self,
        path: &Path,
        page_bytes: usize,
        check: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<FileStore> {
        let opened = check_page_bytes(page_bytes)
            .and_then(|()| open::store(path, !self.read_only, 0))
            .and_then(|file| self.opened(path, file, page_bytes, check));
        opened.map_err(|e| at_path(path, "open", e))
    }

    /// Creates an empty file and makes its directory entry durable: what is synced in it later can be found after a
    /// crash.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where the path exists, which is left unchanged; otherwise as
    /// [`FileOptions::open`].
    pub fn create(&self, path: impl AsRef<Path>, page_bytes: usize) -> io::Result<FileStore> {
        let path = path.as_ref();
        self.created(path, page_bytes).map_err(|e| at_path(path, "create", e))
    }

    fn created(&self, path: &Path, page_bytes: usize) -> io::Result<FileStore> {
        check_page_bytes(page_bytes)?;
        if self.read_only {
            let reason = "a file that is to be made cannot be read-only";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let create = if self.is_private {
            open::create_private
        } else {
            open::create
        };
        let file = create(path)?;
        self.opened(path, file, page_bytes, |_| Ok(()))
            .and_then(|store| {
                sync_directory_of(&store.path)?;
                Ok(store)
            })
            .inspect_err(|error| {
                // The file was just created and is empty, unless another process has opened and locked it since.
                if error.kind() != io::ErrorKind::ResourceBusy {
                    let _ = fs::remove_file(path);
                }
            })
    }

    fn opened(
        &self,
        path: &Path,
        mut file: File,
        page_bytes: usize,
        check: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<FileStore> {
        // Resolved now, so that errors name the file even after a change of the working directory.
        let path = std::path::absolute(path)?;
        let is_device = file.metadata()?.file_type().is_block_device();
        let (direct, buffered_because) = match self.direct {
            AutoOnOff::Off => (None, String::from("direct I/O is off")),
            choice => match Direct::open(&path, &file, page_bytes, !self.read_only) {
                Ok(direct) => (Some(direct), String::new()),
                Err(reason) if choice == AutoOnOff::On => return Err(unsupported("direct I/O", &reason)),
                Err(reason) => (None, format!("no direct I/O: {reason}")),
            },
        };
        // Transfers that outlive a killed process hold the descriptor that they use: the lock on it ends with them.
        let channel = direct.as_ref().map_or(&file, |direct| &direct.file);
        let is_locked = self.exclusive && lock(channel)?;
        check(&file)?;
        // A device has no length in its metadata.
        let end = file.seek(SeekFrom::End(0))?;
        let (rings, plain_because) = match self.io_uring {
            AutoOnOff::Off => (None, String::from("io_uring is off")),
            choice => match Rings::open() {
                Ok(rings) => (Some(rings), String::new()),
                Err(e) if choice == AutoOnOff::On => return Err(unsupported("io_uring", &e.to_string())),
                Err(e) => (None, format!("no io_uring: {e}")),
            },
        };
        Ok(FileStore {
            path,
            file,
            read_only: self.read_only,
            device_bytes: is_device.then_some(end),
            page_bytes,
            extent: Extent::new(page_bytes, end),
            method: Method {
                direct,
                buffered_because,
                rings,
                plain_because,
            },
            neighbours: crate::sync::plain::RwLock::new(()),
            locked_by: is_locked.then(std::process::id),
        })
    }
}

/// Locks a file; returns false where the file system has no locks.
fn lock(file: &File) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        match try_lock(file).map_err(|error| error.kind()) {
            Err(io::ErrorKind::WouldBlock) if begun.elapsed() < LOCK_WAIT => thread::sleep(Duration::from_millis(5)),
            Err(io::ErrorKind::WouldBlock) => {
                let reason = "it is in use: another process, or another store of this one, has locked it \
                    (children of a process that was killed may still hold its lock)";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
            }
            Ok(()) => return Ok(true),
            // The file system does not support locks.
            Err(_) => return Ok(false),
        }
    }
}

impl FileStore {
    /// Opens an existing file with pages of `page_bytes`, with default options.
    ///
    /// # Errors
    /// As [`FileOptions::open`].
    pub fn open(path: impl AsRef<Path>, page_bytes: usize) -> io::Result<Self> {
        Self::options().open(path, page_bytes)
    }

    /// Creates an empty file with pages of `page_bytes`, with default options.
    ///
    /// # Errors
    /// As [`FileOptions::create`].
    pub fn create(path: impl AsRef<Path>, page_bytes: usize) -> io::Result<Self> {
        Self::options().create(path, page_bytes)
    }

    /// Returns options for opening or creating a file.
    pub fn options() -> FileOptions {
        FileOptions::default()
    }
}

fn check_page_bytes(page_bytes: usize) -> io::Result<()> {
    if (MIN_PAGE_BYTES..=MAX_PAGE_BYTES).contains(&page_bytes) {
        return Ok(());
    }
    let reason = format!("pages of {page_bytes} bytes: {MIN_PAGE_BYTES} to {MAX_PAGE_BYTES} can be");
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

fn unsupported(what: &str, reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{what} does not work: {reason}"))
}

/// Makes the directory entry of a new file durable.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    match open::directory(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems have nothing to sync there and return EINVAL.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        synced => synced.map_err(|e| at_path(directory, "sync", e)),
    }
}
