//! A store that injects latency and faults.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{PageId, PageRead, PageStore, PageWrite};
use crate::io::wait;

/// An operation of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// [`PageStore::read`], and each read of a batch.
    Read,
    /// [`PageStore::write`], and each write of a batch.
    Write,
    /// [`PageStore::remove`].
    Remove,
    /// [`PageStore::page_bytes`].
    Measure,
    /// [`PageStore::sync`].
    Sync,
}

impl Operation {
    const COUNT: usize = 5;

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Remove => "remove",
            Self::Measure => "measure",
            Self::Sync => "sync",
        }
    }
}

/// Counters of a [`FaultyStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreCounters {
    /// Pages requested by reads, single or in batches.
    pub reads: u64,
    /// Batches of reads.
    pub read_batches: u64,
    /// Bytes of pages that were read.
    pub read_bytes: u64,
    /// Pages requested by writes, single or in batches.
    pub writes: u64,
    /// Batches of writes.
    pub write_batches: u64,
    /// Bytes of pages that were written.
    pub written_bytes: u64,
    /// Removals.
    pub removes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Operations that failed by injection.
    pub injected: u64,
}

/// Settings of one operation.
#[derive(Default)]
struct Behaviour {
    /// Added latency in nanoseconds.
    latency_ns: AtomicU64,
    /// Every `fail_every`-th operation fails; 0 for none.
    fail_every: AtomicU64,
    /// Operations since `fail_every` was set.
    turn: AtomicU64,
}

impl Behaviour {
    fn latency(&self) -> Duration {
        Duration::from_nanos(self.latency_ns.load(Ordering::Relaxed))
    }

    /// Returns whether this operation is the one to fail.
    fn fails(&self) -> bool {
        let every = self.fail_every.load(Ordering::Relaxed);
        every != 0 && (self.turn.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }
}

#[derive(Default)]
struct Counts {
    reads: AtomicU64,
    read_batches: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    write_batches: AtomicU64,
    written_bytes: AtomicU64,
    removes: AtomicU64,
    syncs: AtomicU64,
    injected: AtomicU64,
}

/// A store around another that adds latency and faults, and counts: a simulated device, and a test of a pool's
/// behaviour when a store fails. A new one adds neither; all settings can be changed while it is in use.
///
/// The latency is added to the store's own. Most of a wait is slept; the last 15 us (60 us where the system is not
/// Linux) are spun, because a sleep is not that precise. A batch waits once for every [`queue
/// depth`](FaultyStore::set_queue_depth) pages in it; threads do not wait for each other.
pub struct FaultyStore<S> {
    inner: S,
    behaviours: [Behaviour; Operation::COUNT],
    queue_depth: AtomicUsize,
    /// Short reads: one of every `fail_every`.
    short_reads: Behaviour,
    torn_writes: AtomicBool,
    /// Bytes that may still be written; `u64::MAX` for no limit.
    room_bytes: AtomicU64,
    counts: Counts,
}

impl<S: PageStore> FaultyStore<S> {
    /// Creates a store that behaves as `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            behaviours: Default::default(),
            queue_depth: AtomicUsize::new(32),
            short_reads: Behaviour::default(),
            torn_writes: AtomicBool::new(false),
            room_bytes: AtomicU64::new(u64::MAX),
            counts: Counts::default(),
        }
    }

    /// Returns the wrapped store.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Sets the latency added to every such operation. Default: zero.
    pub fn set_latency(&self, operation: Operation, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.behaviour(operation).latency_ns.store(ns, Ordering::Relaxed);
    }

    /// Sets the number of pages of a batch that the simulated device processes concurrently, at least 1. Default: 32,
    /// the limit of SATA devices; NVMe devices allow more.
    pub fn set_queue_depth(&self, pages: usize) {
        self.queue_depth.store(pages.max(1), Ordering::Relaxed);
    }

    /// Makes every `n`-th such operation, counted from now, fail without being executed: 1 for all of them, 0 for none.
    pub fn fail_every(&self, operation: Operation, n: u64) {
        let behaviour = self.behaviour(operation);
        behaviour.turn.store(0, Ordering::Relaxed);
        behaviour.fail_every.store(n, Ordering::Relaxed);
    }

    /// Makes every `n`-th read, counted from now, a short read: the first half of the page, garbage after it, and
    /// [`io::ErrorKind::UnexpectedEof`]. 0 for none.
    pub fn short_read_every(&self, n: u64) {
        self.short_reads.turn.store(0, Ordering::Relaxed);
        self.short_reads.fail_every.store(n, Ordering::Relaxed);
    }

    /// Sets whether a write that is made to fail leaves the first half of its bytes in a page of the same length (a
    /// torn write), as a device that loses power does. Default: no.
    pub fn set_torn_writes(&self, torn: bool) {
        self.torn_writes.store(torn, Ordering::Relaxed);
    }

    /// Makes writes fail with [`io::ErrorKind::StorageFull`] after this many more bytes; `None` for no limit.
    pub fn set_room_bytes(&self, bytes: Option<u64>) {
        self.room_bytes.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the counters since the store was created.
    pub fn counters(&self) -> StoreCounters {
        let counts = &self.counts;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        StoreCounters {
            reads: of(&counts.reads),
            read_batches: of(&counts.read_batches),
            read_bytes: of(&counts.read_bytes),
            writes: of(&counts.writes),
            write_batches: of(&counts.write_batches),
            written_bytes: of(&counts.written_bytes),
            removes: of(&counts.removes),
            syncs: of(&counts.syncs),
            injected: of(&counts.injected),
        }
    }

    fn behaviour(&self, operation: Operation) -> &Behaviour {
        &self.behaviours[operation as usize]
    }

    /// Waits for the latency of `pages` concurrent operations.
    fn delay(&self, operation: Operation, start: Instant, pages: usize) {
        let latency = self.behaviour(operation).latency();
        if !latency.is_zero() && pages > 0 {
            let rounds = pages.div_ceil(self.queue_depth.load(Ordering::Relaxed).max(1));
            wait::until(start, latency.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)));
        }
    }

    /// Waits, and returns an error if the operation is to fail.
    fn before(&self, operation: Operation, page: Option<PageId>) -> io::Result<()> {
        if !self.behaviour(operation).latency().is_zero() {
            self.delay(operation, Instant::now(), 1);
        }
        self.fault(operation, page)
    }

    fn fault(&self, operation: Operation, page: Option<PageId>) -> io::Result<()> {
        if self.behaviour(operation).fails() {
            return Err(self.injected(io::ErrorKind::Other, operation, page));
        }
        Ok(())
    }

    fn injected(&self, kind: io::ErrorKind, operation: Operation, page: Option<PageId>) -> io::Error {
        add(&self.counts.injected, 1);
        let name = operation.name();
        io::Error::new(
            kind,
            match page {
                Some(page) => format!("injected fault: {name} of page {page} failed ({kind})"),
                None => format!("injected fault: {name} failed ({kind})"),
            },
        )
    }

    fn shorten(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        if !self.short_reads.fails() {
            add(&self.counts.read_bytes, into.len() as u64);
            return Ok(());
        }
        let half = into.len() / 2;
        into[half..].fill(0xee);
        Err(self.injected(io::ErrorKind::UnexpectedEof, Operation::Read, Some(page)))
    }

    /// Decides whether a write is executed or fails.
    fn admit(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        let admitted = self.fault(Operation::Write, Some(page)).and_then(|()| {
            let taken = self
                .room_bytes
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| match room {
                    u64::MAX => Some(room),
                    _ => room.checked_sub(bytes.len() as u64),
                });
            taken
                .map(|_| ())
                .map_err(|_| self.injected(io::ErrorKind::StorageFull, Operation::Write, Some(page)))
        });
        admitted.inspect_err(|_| {
            if self.torn_writes.load(Ordering::Relaxed) {
                self.tear(page, bytes);
            }
        })
    }

    /// Simulates a torn write of `bytes`. Where that is not possible, the page is unchanged.
    fn tear(&self, page: PageId, bytes: &[u8]) {
        if self.inner.page_bytes(page).is_ok_and(|len| len == bytes.len()) {
            let mut torn = vec![0; bytes.len()];
            if self.inner.read(page, &mut torn).is_ok() {
                let half = bytes.len() / 2;
                torn[..half].copy_from_slice(&bytes[..half]);
                let _ = self.inner.write(page, &torn);
            }
        }
    }
}

impl<S: PageStore> PageStore for FaultyStore<S> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn max_page_bytes(&self) -> usize {
        self.inner.max_page_bytes()
    }

    fn min_page_bytes(&self) -> usize {
        self.inner.min_page_bytes()
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        self.before(Operation::Measure, Some(page))?;
        self.inner.page_bytes(page)
    }

    fn has_one_length(&self) -> bool {
        self.inner.has_one_length()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn describe(&self) -> String {
        let us = |operation| self.behaviour(operation).latency().as_nanos() as f64 / 1e3;
        format!(
            "{}, with {} us more per read and {} us per write, {} at once",
            self.inner.describe(),
            us(Operation::Read),
            us(Operation::Write),
            self.queue_depth.load(Ordering::Relaxed)
        )
    }

    fn read(&self, page: PageId, into: &mut [u8]) -> io::Result<()> {
        add(&self.counts.reads, 1);
        self.before(Operation::Read, Some(page))?;
        self.inner.read(page, into)?;
        self.shorten(page, into)
    }

    fn read_batch(&self, reads: &mut [PageRead<'_>]) {
        add(&self.counts.reads, reads.len() as u64);
        add(&self.counts.read_batches, 1);
        self.delay(Operation::Read, Instant::now(), reads.len());
        for read in reads.iter_mut() {
            read.result = self.fault(Operation::Read, Some(read.page));
        }
        let mut passed: Vec<_> = reads
            .iter_mut()
            .filter(|read| read.result.is_ok())
            .map(|read| PageRead {
                page: read.page,
                into: &mut *read.into,
                result: Ok(()),
            })
            .collect();
        self.inner.read_batch(&mut passed);
        let results: Vec<_> = passed
            .into_iter()
            .map(|read| read.result.and_then(|()| self.shorten(read.page, read.into)))
            .collect();
        let forwarded = reads.iter_mut().filter(|read| read.result.is_ok());
        for (read, result) in forwarded.zip(results) {
            read.result = result;
        }
    }

    fn check_write(&self, page: PageId, len: usize) -> io::Result<()> {
        self.inner.check_write(page, len)
    }

    fn write(&self, page: PageId, bytes: &[u8]) -> io::Result<()> {
        add(&self.counts.writes, 1);
        self.delay(Operation::Write, Instant::now(), 1);
        self.admit(page, bytes)?;
        self.inner.write(page, bytes)?;
        add(&self.counts.written_bytes, bytes.len() as u64);
        Ok(())
    }

    fn write_batch(&self, writes: &mut [PageWrite<'_>]) {
        add(&self.counts.writes, writes.len() as u64);
        add(&self.counts.write_batches, 1);
        self.delay(Operation::Write, Instant::now(), writes.len());
        for write in writes.iter_mut() {
            write.result = self.admit(write.page, write.bytes);
        }
        let mut passed: Vec<_> = writes
            .iter()
            .filter(|write| write.result.is_ok())
            .map(|write| PageWrite {
                page: write.page,
                bytes: write.bytes,
                result: Ok(()),
            })
            .collect();
        self.inner.write_batch(&mut passed);
        let results: Vec<_> = passed.into_iter().map(|write| write.result).collect();
        let forwarded = writes.iter_mut().filter(|write| write.result.is_ok());
        for (write, result) in forwarded.zip(results) {
            if result.is_ok() {
                add(&self.counts.written_bytes, write.bytes.len() as u64);
            }
            write.result = result;
        }
    }

    fn remove(&self, page: PageId) -> io::Result<()> {
        add(&self.counts.removes, 1);
        self.before(Operation::Remove, Some(page))?;
        self.inner.remove(page)
    }

    fn sync(&self) -> io::Result<()> {
        add(&self.counts.syncs, 1);
        self.before(Operation::Sync, None)?;
        self.inner.sync()
    }
}

impl<S: PageStore> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore")
            .field("inner", &self.inner.describe())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
