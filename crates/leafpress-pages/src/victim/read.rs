//! Lookups, and the measurement of their times.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rapidhash::v3::rapidhash_v3;

use super::inner::VictimInner;
use super::limits::Reading;
use super::locked_shard::Pinned;
use super::stats::Count;
use super::{FoundBlock, OnHit};
use leafpress_codec::{CodecError, Scratch};

/// A thread times one decoding in this many.
const TIMED_ONE_IN: u32 = 8;
/// Misses that follow each other faster than this belong to one batch, whose blocks are fetched together.
const BATCH_GAP: Duration = Duration::from_micros(2);

/// Nanoseconds since `start`.
pub(super) fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Lookups of a thread without a hit, with no insertion since.
#[derive(Debug, Clone, Copy)]
struct Missed {
    /// The cache, by address.
    cache: usize,
    at: Instant,
    count: u32,
}

thread_local! {
    static MISSED: Cell<Option<Missed>> = const { Cell::new(None) };
}

/// Completes a read when it has ended, including by a panic.
struct Finish<'c>(&'c VictimInner);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Returns a copy of the bytes; [`None`] if there is no memory.
pub(super) fn copy_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy)
}

impl VictimInner {
    /// Calls `read` with the block.
    pub(super) fn read<R, E>(
        &self,
        key: &[u8],
        on_hit: OnHit,
        read: impl FnOnce(FoundBlock<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        // Dropped in reverse order: the entry's pin, the mark that this thread reads, and then the work that waits for
        // both.
        let _finish = Finish(self);
        let _reading = Reading::new(&self.limits)?;
        let hash = rapidhash_v3(key);
        let shard = self.shard(hash);
        let looked = shard.0.lock().get(key, hash, on_hit);
        let raw_bytes = looked.pin.as_ref().map(|pin| pin.entry().raw_bytes);
        self.note(hash, |adaptive| {
            adaptive.looked(hash, looked.frequency, raw_bytes, on_hit)
        });
        let Some(pin) = looked.pin else {
            self.miss_begins();
            return None;
        };
        let _ = MISSED.try_with(|missed| missed.set(None));
        let pinned = Pinned::new(shard, pin);
        self.read_entry(&pinned, on_hit == OnHit::Remove, looked.is_for_raw, read)
    }

    fn read_entry<R, E>(
        &self,
        pinned: &Pinned<'_>,
        is_gone: bool,
        is_for_raw: bool,
        read: impl FnOnce(FoundBlock<'_>) -> Result<R, E>,
    ) -> Option<Result<R, E>> {
        let entry = pinned.entry();
        let mut buffers = self.buffers.borrow();
        let decoded = entry.pressed.then(|| {
            buffers.decoded = buffers.decoded.wrapping_add(1);
            buffers.decoded.is_multiple_of(TIMED_ONE_IN).then(Instant::now)
        });
        let result = self.raw_bytes(pinned, &mut buffers.scratch).ok().map(|bytes| {
            if let Some(start) = decoded.flatten() {
                self.costs.decompress(entry.raw_bytes, nanoseconds(start));
            }
            let result = read(FoundBlock {
                bytes,
                tag: entry.tag,
                family: entry.family,
            });
            if is_for_raw && result.is_ok() {
                self.restore(pinned, bytes);
            }
            result
        });
        let failure = match &result {
            None => Count::Corrupt,
            Some(Err(_)) => Count::FailedHits,
            Some(Ok(_)) => return result,
        };
        self.counts.add_shared(failure, 1);
        if !is_gone {
            pinned.home().0.lock().remove(entry.at());
        }
        result
    }

    /// Returns the block's raw bytes: in place, or decoded.
    pub(super) fn raw_bytes<'b>(
        &self,
        pinned: &'b Pinned<'_>,
        scratch: &'b mut Scratch,
    ) -> Result<&'b [u8], CodecError> {
        let entry = pinned.entry();
        if !entry.is_sound() {
            return Err(CodecError::Corrupt {
                codec: "victim",
                reason: "its checksum is wrong".into(),
            });
        }
        if !entry.pressed {
            return Ok(entry.stored());
        }
        let raw_bytes = entry.raw_bytes as usize;
        let dictionary = entry.dictionary.as_ref().map(|version| &version.dictionary);
        self.engine
            .decode(entry.stored(), dictionary, raw_bytes, raw_bytes, scratch)
    }

    /// Starts the measurement of a miss: the calling thread will fetch the block from elsewhere.
    fn miss_begins(&self) {
        let (cache, at) = (std::ptr::from_ref(self).addr(), Instant::now());
        let _ = MISSED.try_with(|missed| {
            let before = missed
                .get()
                .filter(|before| before.cache == cache && at.saturating_duration_since(before.at) < BATCH_GAP);
            let count = before.map_or(1, |before| before.count.saturating_add(1));
            missed.set(Some(Missed { cache, at, count }));
        });
    }

    /// Ends the measurement of a miss: the calling thread inserts a block, so the one that it missed has been fetched,
    /// and another was evicted for it.
    pub(super) fn miss_ends(&self, raw_bytes: u32) {
        let missed = MISSED.try_with(Cell::take).ok().flatten();
        if let Some(missed) = missed.filter(|missed| missed.cache == std::ptr::from_ref(self).addr()) {
            self.costs
                .read(raw_bytes, nanoseconds(missed.at) / u64::from(missed.count));
        }
    }
}
