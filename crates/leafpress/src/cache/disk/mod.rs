//! The disk tier of a cache: what leaves memory, compressed and packed, on an ordinary SSD.
//!
//! Leaves of the tree give their records up one leaf after another, in key order. They gather in a *batch*, in memory, where readers find them.
//! A full batch is cut at the borders of *super-leaves*, ranges of keys that are many times as wide as a leaf. What falls into one is a *run*:
//! records in the order of their keys' hashes, compressed together in pages of 4 KiB. Runs of about one size are merged, so that a super-leaf
//! has some ten. Memory keeps ten bits a record of each run, from which follows in which page a key may be: a hit takes one read of 4 KiB.
//!
//! What is oldest makes room; before that, merges leave some of it out. The order in a super-leaf is that of writing, so that nothing older
//! than what was dropped is left. What memory knows of the disk is bounded in the same way, by half of the cache's memory.
//!
//! **Right or nothing.** A record is published here before it leaves the tree, under the latch of its leaf, and a key that is in neither has
//! no record. What was found here returns to the tree only while no record of its key has left since. Where something newer may have been
//! lost, by an error of the device or because too much waits to be written, all that is older is forgotten, or a tombstone stays in the
//! tree. A page has a checksum that knows the page's position, the number of blocks written before it: no two pages have the same.
//!
//! `filter`, `page`, `run`, `merge`, `superblock`, `image`, `key_hash` and `bytes` are the format; `batch` and `state` what memory knows; `lookup`, `walk`, `spill` and
//! `tier` what readers and the hand do, `writer` what the tier's own thread does, by `change`; `device` turns positions into blocks of a store;
//! `recovery` finds it all again after a crash.

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
mod merge;
mod page;
mod recovery;
mod run;
mod spill;
mod state;
mod stats;
mod superblock;
#[cfg(all(test, not(any(miri, shuttle))))]
mod tests;
mod tier;
mod walk;
mod writer;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::clock::Clock;
use super::error::CacheError;
use super::observer::Observer;
use leafpress_base::store::{FileStore, PageStore};
use leafpress_base::sync::worker::{Health, Workers};
use leafpress_codec::{Codec, EngineOptions};
pub(super) use spill::SpillOutcome;
pub use stats::DiskStats;
pub(super) use tier::Tier;
pub(super) use walk::{Course, Found, Part, Walked, walk_memory};

use self::device::Device;
use self::failure::Failure;
use self::page::BLOCK_BYTES;
use self::writer::WriterThread;

/// The smallest disk tier, in bytes.
pub const MIN_DISK_BYTES: u64 = 4 << 20;

enum Where {
    File(PathBuf),
    Store(Arc<dyn PageStore>),
}

/// Where a cache keeps what leaves memory: see [`CacheBuilder::disk`](super::CacheBuilder::disk).
pub struct Disk {
    place: Where,
    bytes: u64,
    codec: Codec,
    write_limit: Option<u64>,
    recovers: bool,
    overwrites: bool,
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
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// A file, created where there is none, or a block device: its first `bytes`, at least [`MIN_DISK_BYTES`].
    ///
    /// A file that is not empty has to be one that a cache of Leafpress wrote, and so has a device: others are refused with
    /// [`CacheError::NotACache`] and are left as they are, unless [`Disk::overwrite`] is set. What an earlier cache left in it is there again if
    /// that was ended by [`Cache::close`](super::Cache::close) and had a tier of as many bytes and of the same codec. One cache may use a file at
    /// a time: another is refused. It is read and written past the system's page cache where that can be.
    ///
    /// The file is created so that only the process's user may read it (mode 0600): it has the cache's keys and values in plain form or
    /// compressed, and those that were replaced or removed until something else is written in their place. A file that exists keeps its
    /// permissions.
    pub fn file(path: impl Into<PathBuf>, bytes: u64) -> Self {
        Self::at(Where::File(path.into()), bytes)
    }

    /// A store of the caller's own, of pages of 4 KiB: so many bytes of it. One that is not empty is refused as a file is: see [`Disk::file`].
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
        }
    }

    /// Whether a file, device or store that is not empty and that no cache of Leafpress wrote is written over, so that what it holds is lost.
    /// Default: no, it is refused with [`CacheError::NotACache`]. What a cache left is taken over either way.
    #[must_use]
    pub fn overwrite(mut self, overwrites: bool) -> Self {
        self.overwrites = overwrites;
        self
    }

    /// The codec of its pages. Default `zstd:3`, where Zstandard is compiled in.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Bytes a second that may be written, on average since the tier was opened: what spares the device. Over it, what leaves memory is
    /// dropped. Default: as many as there are.
    #[must_use]
    pub fn write_limit(mut self, bytes_per_second: u64) -> Self {
        self.write_limit = Some(bytes_per_second);
        self
    }

    /// Whether what is on disk is found again after the process was killed, or ended without [`Cache::close`](super::Cache::close). Default: no,
    /// then the cache begins empty.
    ///
    /// What is found is never older than a write that had returned, and nothing that was removed comes back; some records are lost: those that
    /// were in memory only, and those whose key shares a slot of a table with one that was written since. After the machine went down the
    /// cache begins empty. That is told by the boot, so it holds for virtual machines too.
    ///
    /// Two files stand beside the cache's, `.notes` and `.runs`, which only the process's user may read (mode 0600), of a 64th of the memory and a few hundredths of the disk. They belong to
    /// it: who copies or restores one of the three has to do so with all, while no cache is open. Whoever makes `.notes` shorter meanwhile ends
    /// the process, and so may a full disk where the file system copies what is written over (btrfs).
    /// Notes take a 64th of the memory (twice that after a crash), records 4 bytes more, and a write a lookup in the filters.
    /// A cache that was closed without this is not taken over by one with it, nor the other way round. After twelve million batches, of 64 KiB to
    /// 4 MiB by the memory's size, the next opening begins empty once.
    ///
    /// Only for [`Disk::file`] on Linux, of a file: [`CacheBuilder::build`](super::CacheBuilder::build) refuses the others.
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

    /// Where the side files are to be, where there are any.
    fn recovers_by(&self) -> Result<Option<PathBuf>, CacheError> {
        let refused = |reason: &str| CacheError::Option {
            option: "recover_after_crash",
            reason: reason.to_owned(),
        };
        match &self.place {
            _ if !self.recovers => Ok(None),
            _ if cfg!(any(not(target_os = "linux"), miri, shuttle)) => Err(refused("only Linux has what it needs")),
            Where::Store(_) => Err(refused(
                "only a disk tier in a file can be found again, no store of the caller's",
            )),
            Where::File(path) if path.metadata().is_ok_and(|about| !about.is_file()) => Err(refused(
                "only a disk tier in a file can be found again: a device has no directory for the files beside it",
            )),
            // The log is written anew now and then, wherever the process stands by then.
            Where::File(path) => std::path::absolute(path).map(Some).map_err(|error| CacheError::Disk {
                reason: error.to_string(),
            }),
        }
    }

    /// The tier, and the keys that were in use when it was closed.
    pub(super) fn open(
        self,
        memory_bytes: u64,
        clock: Arc<dyn Clock>,
        observer: &Arc<Observer>,
    ) -> Result<(Arc<Tier>, Vec<Vec<u8>>), CacheError> {
        if self.bytes < MIN_DISK_BYTES {
            return Err(CacheError::Option {
                option: "disk",
                reason: format!(
                    "{} bytes are fewer than a disk tier needs ({MIN_DISK_BYTES})",
                    self.bytes
                ),
            });
        }
        let recovers_by = self.recovers_by()?;
        let engine = self.codec.open(&EngineOptions::default()).map_err(CacheError::Codec)?;
        let blocks = self.bytes / BLOCK_BYTES as u64 - 1;
        let device = match self.place {
            Where::Store(store) => open_store(store, blocks, self.overwrites)?,
            Where::File(path) => Device::new(Arc::new(open_file(&path, self.overwrites)?), blocks),
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
        let (tier, keys) = opened.map_err(of_failure)?;
        Ok((Arc::new(tier), keys))
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
                "a store of pages of {} bytes: they have to be of 4096",
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

/// Opens a cache's file, or creates it. Nothing in it changes before it is locked and known to be a cache's, or to be written over.
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

/// Whether a file is empty, or a cache's.
fn may_take_file(file: &File) -> io::Result<bool> {
    let mut start = [0; superblock::MAGIC_END];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) => Ok(superblock::is_ours(&start)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            // A device without a medium has no bytes either, and cannot be written.
            Ok(file.metadata()?.len() == 0)
        }
        Err(error) => Err(error),
    }
}

/// A file may end within a block, after a crash or by another's hand: the store would write no block behind it.
fn cut_to_blocks(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let part = about.len() % BLOCK_BYTES as u64;
    if about.is_file() && part > 0 {
        file.set_len(about.len() - part)?;
    }
    Ok(())
}

/// The thread that writes, stopped when this is dropped.
pub(super) struct WriterHandle {
    tier: Arc<Tier>,
    workers: Workers,
}

impl WriterHandle {
    pub(super) fn start(tier: &Arc<Tier>, health: &Arc<Health>) -> io::Result<Self> {
        let mut workers = Workers::default();
        // Model checkers have no time to wait for: who evicts writes.
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

/// Whether checksums are all 0 from now on, in all caches.
#[cfg(feature = "fuzz")]
pub fn ignore_checksums(ignores: bool) {
    page::IGNORES_CHECKSUMS.store(ignores, std::sync::atomic::Ordering::Relaxed);
}
