//! A file of fixed-size pages.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::sync::plain::RwLock;

use super::extent::{Change, Extent};
use super::{PageId, PageRead, PageStore, PageWrite, check_read_length, no_such_page};
use crate::io::aligned::AlignedBuffer;
use crate::io::at_path::at_path;
use crate::io::direct::Direct;
use crate::io::system::{free_space, unlock};
use crate::io::transfer::Transfer;
use crate::io::uring::Rings;

/// A file divided into pages of one length; its last page may be shorter.
///
/// Page `n` is at offset `n` times the page length, and the file contains nothing but pages: any file is a store, and a
/// store's file can be read by any program. Writing past the end extends the file; skipped pages are absent. The file
/// has no room to record absent pages, so they are known only as long as the store is open: when it is opened again,
/// such a page is one of zeroes.
///
/// Reads and writes bypass the system's page cache where possible (`O_DIRECT`), and batches use io_uring; single pages
/// are read with `pread` and written with `pwrite`. [`PageStore::describe`] reports the method in use. Buffers at a
/// multiple of [`PageStore::alignment`] are used without a copy.
///
/// No other program and no other store should change the file:
/// [`FileOptions::exclusive`](super::FileOptions::exclusive) locks the file against other stores that also request it.
pub struct FileStore {
    pub(super) path: PathBuf,
    /// Descriptor that uses the page cache.
    pub(super) file: File,
    pub(super) read_only: bool,
    /// A block device's length: it cannot grow.
    pub(super) device_bytes: Option<u64>,
    pub(super) page_bytes: usize,
    pub(super) extent: Extent,
    pub(super) method: Method,
    /// Held exclusively for writes through the page cache while direct I/O is in use: the cache works in blocks that
    /// neighbouring pages share, and would overwrite a concurrent direct write with their old bytes.
    pub(super) neighbours: RwLock<()>,
    /// The process that locked the file, where that was requested.
    pub(super) locked_by: Option<u32>,
}

/// How the file is read and written.
pub(super) struct Method {
    pub(super) direct: Option<Direct>,
    /// Why `direct` is absent.
    pub(super) buffered_because: String,
    pub(super) rings: Option<Rings>,
    /// Why `rings` is absent.
    pub(super) plain_because: String,
}

impl FileStore {
    /// Returns whether reads and writes bypass the system's page cache.
    pub fn is_direct(&self) -> bool {
        self.method.direct.is_some()
    }

    /// Returns whether batches use io_uring.
    pub fn uses_io_uring(&self) -> bool {
        self.method.rings.is_some()
    }

    /// Returns whether writes and removals are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the file's absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Releases the lock of [`FileOptions::exclusive`](super::FileOptions::exclusive) before the store is dropped. The
    /// caller writes no more pages, since another store may.
    pub fn unlock(&self) {
        // Forked children share the lock and would otherwise keep it. A child leaves the lock to the parent.
        if self.locked_by == Some(std::process::id()) {
            unlock(self.channel().0);
        }
    }

    /// Returns the descriptor for pages, and the required alignment of offsets.
    pub(super) fn channel(&self) -> (&File, usize) {
        match &self.method.direct {
            Some(direct) => (&direct.file, direct.granule),
            None => (&self.file, 1),
        }
    }

    /// Returns a buffer to copy through, up to a block longer than `bytes`, where `bytes` cannot be used directly.
    pub(super) fn copy_buffer(&self, bytes: &[u8]) -> io::Result<Option<AlignedBuffer>> {
        match &self.method.direct {
            Some(direct) if !direct.takes(bytes) => {
                AlignedBuffer::new(bytes.len().next_multiple_of(direct.granule), direct.memory).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Checks a read and returns its offset.
    pub(super) fn place(&self, page: PageId, into: &[u8]) -> io::Result<u64> {
        let offset = self.extent.offset(page).ok_or_else(|| no_such_page(page))?;
        check_read_length(self.page_bytes(page)?, into)?;
        Ok(offset)
    }

    pub(super) fn read_one(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        let offset = self.place(page, into)?;
        let (file, granule) = self.channel();
        let needed = into.len();
        match self.copy_buffer(into)? {
            None => {
                let mut transfer = Transfer::read(into, offset, needed, granule);
                transfer.run(file);
                let outcome = transfer.into_outcome();
                self.or_through_cache(outcome, || self.file.read_exact_at(into, offset))
            }
            Some(mut buffer) => {
                let mut transfer = Transfer::read(buffer.bytes_mut(), offset, needed, granule);
                transfer.run(file);
                let outcome = transfer
                    .into_outcome()
                    .map(|()| into.copy_from_slice(&buffer.bytes()[..needed]));
                self.or_through_cache(outcome, || self.file.read_exact_at(into, offset))
            }
        }
    }

    /// Checks a write before anything changes, and returns its offset.
    pub(super) fn place_to_write(&self, page: PageId, len: usize) -> io::Result<u64> {
        if self.read_only {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened read-only"));
        }
        if !(1..=self.page_bytes).contains(&len) {
            let reason = format!("{len} bytes where a page has 1 to {}", self.page_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let offset = self.extent.offset(page).ok_or(io::ErrorKind::FileTooLarge)?;
        match self.device_bytes {
            Some(bytes) if offset + len as u64 > bytes => {
                let reason = format!("the device ends at {bytes} bytes");
                Err(io::Error::new(io::ErrorKind::StorageFull, reason))
            }
            _ => Ok(offset),
        }
    }

    pub(super) fn write_one(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        let offset = self.place_to_write(page, bytes.len())?;
        let truncate = |end| self.file.set_len(end);
        let change = self.extent.prepare(page, offset, bytes.len(), truncate)?;
        self.settle_write(page, change, self.write_at(offset, bytes))
    }

    /// Completes what [`Extent::prepare`] began.
    pub(super) fn settle_write(&self, page: PageId, change: Change, outcome: io::Result<()>) -> io::Result<()> {
        match &outcome {
            Ok(()) => self.extent.written(page),
            Err(_) => self.extent.failed(change, |end| self.file.set_len(end)),
        }
        outcome
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.method.direct {
            Some(direct) if bytes.len().is_multiple_of(direct.granule) => {
                let mut buffer = self.copy_buffer(bytes)?;
                let source = match &mut buffer {
                    Some(buffer) => {
                        buffer.bytes_mut().copy_from_slice(bytes);
                        buffer.bytes()
                    }
                    None => bytes,
                };
                let mut transfer = Transfer::write(source, offset, direct.granule);
                {
                    let _others = self.neighbours.read();
                    transfer.run(&direct.file);
                }
                self.or_through_cache(transfer.into_outcome(), || self.write_through_cache(offset, bytes))
            }
            // A short page ends inside a block, which direct I/O would have to write whole.
            Some(_) => self.write_through_cache(offset, bytes),
            None => self.file.write_all_at(bytes, offset),
        }
    }

    pub(super) fn write_through_cache(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _alone = self.neighbours.write();
        self.file.write_all_at(bytes, offset)
    }

    /// Retries through the page cache what direct I/O rejected: it refuses a write that a limit on the file's length
    /// cuts within a block, and some file systems have restrictions that they do not announce.
    pub(super) fn or_through_cache(
        &self,
        outcome: io::Result<()>,
        retry: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        match outcome {
            Err(e) if self.is_direct() && e.raw_os_error() == Some(libc::EINVAL) => retry(),
            other => other,
        }
    }

    fn punch(&self, page: PageId) -> io::Result<()> {
        if self.read_only {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened read-only"));
        }
        let Ok(len) = self.page_bytes(page) else {
            return Ok(());
        };
        let offset = self.extent.offset(page).ok_or_else(|| no_such_page(page))?;
        let _alone = self.neighbours.write();
        match free_space(&self.file, offset, len) {
            Err(e) if e.kind() == io::ErrorKind::Unsupported => self.file.write_all_at(&vec![0; len], offset)?,
            other => other?,
        }
        self.extent.removed(page);
        Ok(())
    }

    fn reading(&self, page: PageId, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::UnexpectedEof && error.get_ref().is_none() {
            let reason = "the file ends before the page does: it was made shorter after it was opened";
            return at_path(
                &self.path,
                format_args!("read page {page}"),
                io::Error::new(error.kind(), reason),
            );
        }
        at_path(&self.path, format_args!("read page {page}"), error)
    }

    fn writing(&self, page: PageId, error: io::Error) -> io::Error {
        at_path(&self.path, format_args!("write page {page}"), error)
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl PageStore for FileStore {
    fn len(&self) -> u64 {
        self.extent.len()
    }

    fn max_page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        self.extent.page_bytes(page).ok_or_else(|| no_such_page(page))
    }

    fn has_one_length(&self) -> bool {
        true
    }

    fn alignment(&self) -> usize {
        self.method
            .direct
            .as_ref()
            .map_or(1, |direct| direct.memory.max(direct.granule).min(4096))
    }

    fn describe(&self) -> String {
        self.to_string()
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        self.read_one(page, into).map_err(|e| self.reading(page, e))
    }

    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        self.read_together(reads);
        for read in reads {
            if let Err(e) = std::mem::replace(&mut read.result, Ok(())) {
                read.result = Err(self.reading(read.page, e));
            }
        }
    }

    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        self.place_to_write(page, len)
            .and_then(|offset| self.extent.check(page, offset, len))
            .map_err(|e| self.writing(page, e))
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        self.write_one(page, bytes).map_err(|e| self.writing(page, e))
    }

    fn write_batch(&self, writes: &mut [PageWrite<'_>]) {
        self.write_together(writes);
        for write in writes {
            if let Err(e) = std::mem::replace(&mut write.result, Ok(())) {
                write.result = Err(self.writing(write.page, e));
            }
        }
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        self.punch(page)
            .map_err(|e| at_path(&self.path, format_args!("remove page {page}"), e))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|e| at_path(&self.path, "sync", e))
    }
}

impl fmt::Display for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: pages of {} bytes, ", self.path.display(), self.page_bytes)?;
        match &self.method.direct {
            Some(direct) => write!(f, "direct I/O in blocks of {} bytes, ", direct.granule)?,
            None => write!(f, "through the page cache ({}), ", self.method.buffered_because)?,
        }
        match &self.method.rings {
            Some(_) => write!(f, "batches through io_uring")?,
            None => write!(f, "batches page by page ({})", self.method.plain_because)?,
        }
        if self.read_only {
            write!(f, ", read-only")?;
        }
        Ok(())
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileStore").field(&format_args!("{self}")).finish()
    }
}
