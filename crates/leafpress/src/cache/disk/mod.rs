//! The disk tier of a cache: records evicted from memory, compressed and packed, on an ordinary SSD.
//!
//! Evicted records arrive leaf by leaf, in key order. They gather in a *batch* in memory, where readers find them. A
//! full batch is partitioned by *super-leaves*, ranges of keys many times as wide as a leaf. Its part of a super-leaf
//! becomes a *run*: records sorted by their keys' hashes, compressed together in pages of 4 KiB. Runs of about the same
//! size are merged (size-tiered compaction), so that a super-leaf has about ten. Memory keeps a filter of ten bits per
//! record for each run, which yields the page in which a key may be: a hit takes one read of 4 KiB.
//!
//! The oldest runs are dropped to make room; before that, merges leave some of their records out. The order within a
//! super-leaf is that of writing, so that nothing older than what was dropped remains. The memory for the index of the
//! disk is bounded in the same way, by half of the cache's memory.
//!
//! **A lookup returns the newest record or none.** A record is published in the tier before it leaves the tree, under
//! the latch of its leaf, and a key that is in neither has no record. A record found in the tier returns to the tree
//! only while no record of its key has left the tree since. If a newer record may have been lost, by a device error or
//! because too many batches wait to be written, everything older is forgotten, or a tombstone stays in the tree. The
//! checksum of a page includes the page's position, the number of blocks written before it, which is unique to the
//! page.
//!
//! `filter`, `page`, `run`, `merge`, `superblock`, `image`, `key_hash` and `bytes` are the format; `batch` and `state`
//! the state in memory; `lookup`, `lookup_many`, `walk`, `spill` and `tier` the operations of readers and of eviction;
//! `writer` the writer thread, which applies a `change`; `device` maps positions to blocks of a store; `recovery`
//! restores the tier after a crash.

mod batch;
mod bytes;
mod change;
mod counters;
mod device;
mod failure;
mod filter;
mod image;
mod key_hash;
mod lookup;
mod lookup_many;
mod merge;
mod page;
mod recovery;
mod run;
mod run_writer;
mod spill;
mod state;
mod stats;
mod superblock;
#[cfg(all(test, not(any(miri, shuttle))))]
mod tests;
mod tier;
mod walk;
mod writer;
mod writer_state;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::clock::Clock;
use super::error::CacheError;
use super::observer::Observer;
pub(super) use image::Kept;
pub(super) use key_hash::DiskHash;
use leafpress_base::store::{FileStore, PageStore};
use leafpress_base::sync::worker::{Health, Workers};
use leafpress_codec::{Codec, EngineOptions};
pub(super) use lookup_many::Located;
pub(super) use spill::SpillOutcome;
pub use stats::DiskStats;
pub(super) use tier::Tier;
pub(super) use walk::{Course, FoundRecord, Part, Walked, walk_memory};

use self::device::Device;
use self::failure::Failure;
use self::page::BLOCK_BYTES;
use self::writer::WriterThread;

/// The minimum size of a disk tier, in bytes.
pub const MIN_DISK_BYTES: u64 = 4 << 20;

enum Where {
    File(PathBuf),
    Store(Arc<dyn PageStore>),
}

/// A disk tier: where a cache keeps the records evicted from memory. See
/// [`CacheBuilder::disk`](super::CacheBuilder::disk).
pub struct Disk {
    place: Where,
    bytes: u64,
    codec: Codec,
    write_limit: Option<u64>,
    recovers: bool,
    overwrites: bool,
    pub(super) keeps_on_drop: bool,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.place {
            Where::File(path) => path.display().to_string(),
            Where::Store(store) => store.describe(),
        };
        f.debug_struct("Disk")
            .field("place", &place)
            .field("bytes", &self.bytes)
            .field("codec", &self.codec.to_string())
            .field("write_limit", &self.write_limit)
            .field("recover_after_crash", &self.recovers)
            .field("overwrite", &self.overwrites)
            .field("keep_on_drop", &self.keeps_on_drop)
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// Returns a disk tier in a file, created if it does not exist, or on a block device. It uses the first `bytes`, at
    /// least [`MIN_DISK_BYTES`].
    ///
    /// A file or device that is not empty must have been written by a Leafpress cache: others are refused with
    /// [`CacheError::NotACache`] and left unchanged, unless [`Disk::overwrite`] is set. The contents that an earlier
    /// cache left are restored if it was ended by [`Cache::close`](super::Cache::close) and had a tier of the same size
    /// and codec. The file is locked: only one cache may use it at a time. It is read and written with direct I/O where
    /// possible.
    ///
    /// The file is created with mode 0600, because it has the cache's keys and values in plain form or compressed, and
    /// replaced or removed ones until they are overwritten. A file that exists keeps its permissions.
    pub fn file(path: impl Into<PathBuf>, bytes: u64) -> Self {
        Self::at(Where::File(path.into()), bytes)
    }

    /// Returns a disk tier in a store of the caller's own with pages of 4 KiB, of which it uses the first `bytes`. A
    /// store that is not empty is refused as a file is: see [`Disk::file`].
    pub fn store(store: Arc<dyn PageStore>, bytes: u64) -> Self {
        Self::at(Where::Store(store), bytes)
    }

    fn at(place: Where, bytes: u64) -> Self {
        let codec = if cfg!(feature = "zstd") {
            Codec::Zstd { level: 3 }
        } else if cfg!(feature = "lz4") {
            Codec::Lz4 { acceleration: 1 }
        } else {
            Codec::None
        };
        Self {
            place,
            bytes,
            codec,
            write_limit: None,
            recovers: false,
            overwrites: false,
            keeps_on_drop: false,
        }
    }

    /// Sets whether a file, device or store that is not empty and was not written by a Leafpress cache is overwritten,
    /// so that its contents are lost. Off by default: it is refused with [`CacheError::NotACache`]. The contents of an
    /// earlier cache are restored either way.
    #[must_use]
    pub fn overwrite(mut self, overwrites: bool) -> Self {
        self.overwrites = overwrites;
        self
    }

    /// Sets whether dropping the last handle of the cache closes it as [`Cache::close`](super::Cache::close) does, so
    /// that its contents are kept. Off by default: they are lost. A failure is only traced (feature `tracing`): call
    /// `close` where it matters. A cache in a `static` is not dropped at the end of the process.
    ///
    /// ```
    /// use leafpress::Cache;
    /// use leafpress::cache::Disk;
    ///
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path().join("app.cache");
    /// let open = || {
    ///     let disk = Disk::file(&path, 16 << 20).keep_on_drop(true);
    ///     Cache::builder().memory(8 << 20).disk(disk).build()
    /// };
    /// open()?.insert("user:42", "Ada")?;
    /// assert_eq!(open()?.get("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn keep_on_drop(mut self, keeps: bool) -> Self {
        self.keeps_on_drop = keeps;
        self
    }

    /// Sets the codec of the pages. Default `zstd:3` if Zstandard is compiled in.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Sets the maximum write rate in bytes per second, averaged since the tier was opened, to limit the wear of the
    /// device. Records evicted beyond it are dropped. Default: unlimited.
    #[must_use]
    pub fn write_limit(mut self, bytes_per_second: u64) -> Self {
        self.write_limit = Some(bytes_per_second);
        self
    }

    /// Sets whether the disk tier is recovered after the process was killed, or ended without
    /// [`Cache::close`](super::Cache::close). Off by default: the cache then begins empty.
    ///
    /// A recovered record is never older than a write that had returned, and removed keys do not come back. Some
    /// records are lost: those that were only in memory, and those whose key shares a slot of a hash table with one
    /// that was written since. After a crash or reboot of the machine the cache begins empty. That is detected by the
    /// kernel's boot id, so it holds for virtual machines too.
    ///
    /// Recovery keeps two files next to the cache's, `.epochs` (the table of stale epochs) and `.runs` (the log of
    /// runs), both created with mode 0600. They take 1/64 of the memory and a few hundredths of the disk. The three
    /// files belong together: copy or restore all of them, while no cache is open. Truncating `.epochs` while it is
    /// mapped ends the process with SIGBUS, and so may a full disk on a copy-on-write file system (btrfs).
    ///
    /// The table takes 1/64 of the memory (twice that after a crash), each record 4 bytes more, and each write a lookup
    /// in the filters. A cache that was closed without this option is not restored by one with it, nor the other way
    /// round. After twelve million batches, of 64 KiB to 4 MiB depending on the memory, the next opening begins empty
    /// once.
    ///
    /// Supported for [`Disk::file`] with a regular file on Linux only:
    /// [`CacheBuilder::build`](super::CacheBuilder::build) refuses others.
    ///
    /// ```
    /// use leafpress::Cache;
    /// use leafpress::cache::Disk;
    ///
    /// # let directory = tempfile::tempdir().expect("a directory");
    /// # let path = directory.path().join("app.cache");
    /// let disk = Disk::file(&path, 16 << 20).recover_after_crash(true);
    /// let cache = Cache::builder().memory(8 << 20).disk(disk).build()?;
    /// assert!(cache.stats().disk.is_some_and(|disk| disk.is_recoverable));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn recover_after_crash(mut self, recovers: bool) -> Self {
        self.recovers = recovers;
        self
    }

    /// Returns the path of the side files, if there are any.
    fn recovers_by(&self) -> Result<Option<PathBuf>, CacheError> {
        let refused = |reason: &str| CacheError::Option {
            option: "recover_after_crash",
            reason: reason.to_owned(),
        };
        match &self.place {
            _ if !self.recovers => Ok(None),
            _ if cfg!(any(not(target_os = "linux"), miri, shuttle)) => {
                Err(refused("crash recovery is supported on Linux only"))
            }
            Where::Store(_) => Err(refused(
                "crash recovery needs a disk tier in a file; this is a store of the caller's",
            )),
            Where::File(path) if path.metadata().is_ok_and(|about| !about.is_file()) => Err(refused(
                "crash recovery needs a disk tier in a file; a device has no directory for the side files",
            )),
            // The log is rewritten from time to time, whatever the working directory is by then.
            Where::File(path) => std::path::absolute(path).map(Some).map_err(|error| CacheError::Disk {
                reason: error.to_string(),
            }),
        }
    }

    /// Opens the tier; returns it and what else was kept when it was closed.
    pub(super) fn open(
        self,
        memory_bytes: u64,
        clock: Arc<dyn Clock>,
        observer: &Arc<Observer>,
    ) -> Result<(Arc<Tier>, Kept), CacheError> {
        if self.bytes < MIN_DISK_BYTES {
            return Err(CacheError::Option {
                option: "disk",
                reason: format!(
                    "{} bytes are below the minimum of a disk tier ({MIN_DISK_BYTES})",
                    self.bytes
                ),
            });
        }
        let recovers_by = self.recovers_by()?;
        let engine = self.codec.open(&EngineOptions::default()).map_err(CacheError::Codec)?;
        let blocks = self.bytes / BLOCK_BYTES as u64 - 1;
        let device = match self.place {
            Where::Store(store) => open_store(store, blocks, self.overwrites)?,
            Where::File(path) => Device::on_locked(open_file(&path, self.overwrites)?, blocks),
        };
        device.check_length().map_err(of_failure)?;
        let opened = Tier::open(
            device,
            engine,
            memory_bytes,
            self.write_limit,
            recovers_by.as_deref(),
            clock,
            observer,
        );
        let (tier, kept) = opened.map_err(of_failure)?;
        Ok((Arc::new(tier), kept))
    }
}

fn of_failure(failure: Failure) -> CacheError {
    match failure {
        Failure::OutOfMemory { bytes } => CacheError::OutOfMemory { bytes },
        other => CacheError::Disk {
            reason: other.to_string(),
        },
    }
}

fn open_store(store: Arc<dyn PageStore>, blocks: u64, overwrites: bool) -> Result<Device, CacheError> {
    if store.max_page_bytes() != BLOCK_BYTES {
        return Err(CacheError::Option {
            option: "disk",
            reason: format!(
                "the store has pages of {} bytes; 4096 are required",
                store.max_page_bytes()
            ),
        });
    }
    let device = Device::new(store, blocks);
    if overwrites || superblock::may_take(&device).map_err(of_failure)? {
        return Ok(device);
    }
    Err(CacheError::NotACache {
        place: device.describe(),
    })
}

/// Opens or creates a cache's file. Nothing in it changes before it is locked and known to be a cache's or allowed to
/// be overwritten.
fn open_file(path: &Path, overwrites: bool) -> Result<FileStore, CacheError> {
    let options = FileStore::options().exclusive(true).private(true);
    let mut is_foreign = false;
    let opened = match options.create(path, BLOCK_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open_checked(path, BLOCK_BYTES, |file| {
            is_foreign = !overwrites && !may_take_file(file)?;
            if is_foreign {
                return Err(io::ErrorKind::InvalidData.into());
            }
            cut_to_blocks(file)
        }),
        created => created,
    };
    opened.map_err(|error| {
        if is_foreign {
            return CacheError::NotACache {
                place: path.display().to_string(),
            };
        }
        CacheError::Disk {
            reason: error.to_string(),
        }
    })
}

/// Returns true if a file is empty or a cache's.
fn may_take_file(file: &File) -> io::Result<bool> {
    let mut start = [0; superblock::MAGIC_END];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) => Ok(superblock::is_ours(&start)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            // A device without a medium has length 0 too, and cannot be written.
            Ok(file.metadata()?.len() == 0)
        }
        Err(error) => Err(error),
    }
}

/// A crash or another program may leave a partial block at the end of the file: the store would write no block behind
/// it.
fn cut_to_blocks(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let part = about.len() % BLOCK_BYTES as u64;
    if about.is_file() && part > 0 {
        file.set_len(about.len() - part)?;
    }
    Ok(())
}

/// Handle of the writer thread, which stops when this is dropped.
pub(super) struct WriterHandle {
    tier: Arc<Tier>,
    workers: Workers,
}

impl WriterHandle {
    pub(super) fn start(tier: &Arc<Tier>, health: &Arc<Health>) -> io::Result<Self> {
        let mut workers = Workers::default();
        // Model checkers do not simulate time: the evicting thread writes.
        if !cfg!(any(shuttle, miri)) {
            let thread = WriterThread {
                tier: Arc::clone(tier),
                health: Arc::clone(health),
            };
            workers.start("leafpress-disk".to_owned(), thread)?;
        }
        Ok(Self {
            tier: Arc::clone(tier),
            workers,
        })
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        self.tier.stop();
        self.workers.join();
    }
}

/// Sets whether checksums are 0 from now on, in all caches.
#[cfg(feature = "fuzz")]
pub fn ignore_checksums(ignores: bool) {
    page::IGNORES_CHECKSUMS.store(ignores, std::sync::atomic::Ordering::Relaxed);
}
