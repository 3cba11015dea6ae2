//! How a [`FileStore`] is opened.

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

/// Whether to use something that not every system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Switch {
    /// Where it works.
    #[default]
    Auto,
    /// Or fail.
    On,
    /// Not.
    Off,
}

/// Settings of a [`FileStore`].
#[derive(Debug, Clone, Default)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct FileOptions {
    read_only: bool,
    direct: Switch,
    io_uring: Switch,
    exclusive: bool,
    is_private: bool,
}

/// How long a file that another has locked is waited for: a process that was killed may have writes under way still.
const LOCK_WAIT: Duration = Duration::from_secs(2);

impl FileOptions {
    /// Whether writes and removals are refused; the file then need not be writable. No.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether to go past the system's page cache (`O_DIRECT`), so that a page is not kept in memory twice. Auto: where the file system
    /// can and pages are a multiple of its blocks.
    pub fn direct(mut self, direct: Switch) -> Self {
        self.direct = direct;
        self
    }

    /// Whether batches go through io_uring. Auto.
    pub fn io_uring(mut self, io_uring: Switch) -> Self {
        self.io_uring = io_uring;
        self
    }

    /// Whether the file is locked, as `flock` does, until the store is dropped and what is under way has ended: who asks for the same then is
    /// refused. It hinders nobody who does not ask. Nothing is locked where the file system has no locks. No.
    ///
    /// Children that were forked while the store was open do not keep the file locked once the store is dropped. They do where the process that
    /// opened it was killed.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Whether a file that is created is one that only the process's user may read and write. No: as the process creates others.
    pub fn private(mut self, is_private: bool) -> Self {
        self.is_private = is_private;
        self
    }

    /// Opens a file that exists, cut into pages of `page_bytes`, [`MIN_PAGE_BYTES`] to [`MAX_PAGE_BYTES`]; the last may be shorter.
    ///
    /// Opening changes nothing in the file, whatever it holds. Writing does: a store has no header by which its file could be told from
    /// another's, so any file's bytes are pages, and a page that is written replaces them. [`FileOptions::read_only`] keeps a file as it is;
    /// [`FileOptions::create`] never opens one that exists.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for another page length, or what is no file; [`io::ErrorKind::Unsupported`] where something was
    /// switched on that does not work here; [`io::ErrorKind::ResourceBusy`] where another has locked it; what the system says.
    pub fn open(&self, path: impl AsRef<Path>, page_bytes: usize) -> io::Result<FileStore> {
        self.open_checked(path.as_ref(), page_bytes, |_| Ok(()))
    }

    /// The same, if `check` agrees: it is called when the file is locked, before anything depends on the file's length.
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

    /// Makes an empty file, whose name is on the disk when this returns: what is synced in it later can be found after a crash.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where there is something of that name, which is left alone; as [`FileOptions::open`].
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
                // It was made a moment ago, and is empty, unless somebody else has opened and locked it since.
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
        // Taken now, so that errors name the file wherever the process goes.
        let path = std::path::absolute(path)?;
        let is_device = file.metadata()?.file_type().is_block_device();
        let (direct, buffered_because) = match self.direct {
            Switch::Off => (None, String::from("direct I/O is off")),
            asked => match Direct::open(&path, &file, page_bytes, !self.read_only) {
                Ok(direct) => (Some(direct), String::new()),
                Err(reason) if asked == Switch::On => return Err(unsupported("direct I/O", &reason)),
                Err(reason) => (None, format!("no direct I/O: {reason}")),
            },
        };
        // Transfers that a process leaves behind hold what they go through: its lock ends with them.
        let channel = direct.as_ref().map_or(&file, |direct| &direct.file);
        let is_locked = self.exclusive && lock(channel)?;
        check(&file)?;
        // A device has no length in its metadata.
        let end = file.seek(SeekFrom::End(0))?;
        let (rings, plain_because) = match self.io_uring {
            Switch::Off => (None, String::from("io_uring is off")),
            asked => match Rings::open() {
                Ok(rings) => (Some(rings), String::new()),
                Err(e) if asked == Switch::On => return Err(unsupported("io_uring", &e.to_string())),
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

/// Locks a file; false where the file system has no locks.
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
            // On a file system that knows no locks.
            Err(_) => return Ok(false),
        }
    }
}

impl FileStore {
    /// Opens a file that exists to read and write pages of `page_bytes`.
    ///
    /// # Errors
    /// As [`FileOptions::open`].
    pub fn open(path: impl AsRef<Path>, page_bytes: usize) -> io::Result<Self> {
        Self::options().open(path, page_bytes)
    }

    /// Makes an empty file of pages of `page_bytes`.
    ///
    /// # Errors
    /// As [`FileOptions::create`].
    pub fn create(path: impl AsRef<Path>, page_bytes: usize) -> io::Result<Self> {
        Self::options().create(path, page_bytes)
    }

    /// Settings to open or make a file with.
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

/// Makes the name of a file that was just made last through a crash.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    match open::directory(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems have nothing to sync there, and say so.
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        synced => synced.map_err(|e| at_path(directory, "sync", e)),
    }
}
