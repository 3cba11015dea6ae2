//! Queue of reads of records that have a time to idle.
//!
//! Applying a read means rewriting the record under its leaf's latch. A read that finds its key in memory waits for no
//! lock, so it only queues the key and the time. Upkeep applies the queue to the records, and so does a thread that is
//! about to treat a record as expired or to evict it: until the queue is applied, no time to idle has ended.
//!
//! A cache in which no record has a time to idle has no queue: the first read to be noted makes it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;

use crate::tree::hash::hash;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{collected, copied, room_for};
use leafpress_base::sync::Mutex;

/// Maximum length of the queue. A read that finds it full is not recorded; a later read of the record is.
pub(super) const MAX_WAITING: usize = 1024;

pub(super) struct QueuedRead {
    pub key: Vec<u8>,
    pub read_at: Duration,
}

/// Queued reads.
pub(super) struct ReadQueue {
    pub queue: ArrayQueue<QueuedRead>,
    /// Hashes of queued keys, in the slot given by the hash: repeated reads of a record are queued once.
    waiting: Vec<AtomicU64>,
}

/// The queue, or none as long as no read had to be noted.
#[derive(Default)]
pub(super) struct LazyReadQueue {
    queue: OnceLock<ReadQueue>,
    /// Held while the queue is applied, so that other threads that need it applied wait for the end; and by a
    /// thread that validates the records.
    pub applying: Mutex<()>,
}

impl LazyReadQueue {
    #[inline]
    pub(super) fn get(&self) -> Option<&ReadQueue> {
        self.queue.get()
    }

    pub(super) fn or_make(&self) -> Result<&ReadQueue, OutOfMemory> {
        match self.queue.get() {
            Some(queue) => Ok(queue),
            None => {
                let made = ReadQueue::new()?;
                Ok(self.queue.get_or_init(|| made))
            }
        }
    }
}

impl ReadQueue {
    fn new() -> Result<Self, OutOfMemory> {
        // The queue allocates infallibly, so its memory is tried for before.
        drop(room_for::<[u64; 8]>(MAX_WAITING)?);
        Ok(Self {
            queue: ArrayQueue::new(MAX_WAITING),
            waiting: collected((0..MAX_WAITING).map(|_| AtomicU64::new(0)))?,
        })
    }

    fn slot_of(&self, hash: u64) -> &AtomicU64 {
        &self.waiting[hash as usize % MAX_WAITING]
    }

    pub(super) fn push(&self, key: &[u8], read_at: Duration) {
        let hash = hash(key);
        if self.slot_of(hash).swap(hash, Ordering::Relaxed) == hash {
            return;
        }
        let pushed = copied(key).is_ok_and(|key| self.queue.push(QueuedRead { key, read_at }).is_ok());
        if !pushed {
            self.slot_of(hash).store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn pop(&self) -> Option<QueuedRead> {
        let read = self.queue.pop()?;
        // Cleared before the record is rewritten: a read from here on is queued separately.
        self.slot_of(hash(&read.key)).store(0, Ordering::Relaxed);
        Some(read)
    }

    pub(super) fn held_bytes(&self) -> u64 {
        (MAX_WAITING * (size_of::<QueuedRead>() + 2 * size_of::<u64>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Cache;
    use crate::cache::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_read_waits_for_no_lock_and_is_applied_before_a_record_expires() {
        let clock = Arc::new(ManualClock::new(1000 * SECOND));
        let builder = Cache::builder().memory(4 << 20).clock(clock.clone());
        let cache = builder.time_to_idle(80 * SECOND).build().unwrap();
        cache.insert("read", "1").unwrap();
        cache.insert("unread", "2").unwrap();
        let core = cache.core();
        let queued_reads = core.queued_reads.or_make().unwrap();
        clock.advance(60 * SECOND);
        let noting = core.queued_reads.applying.lock();
        let puts = core.tree.stats().puts;
        // With this lock held, a read that waited for it would not return.
        for _ in 0..100 {
            assert!(cache.get("read").unwrap().is_some());
        }
        assert_eq!(queued_reads.queue.len(), 1, "the key is queued once");
        assert_eq!(core.tree.stats().puts, puts, "a read writes nothing");
        drop(noting);
        clock.advance(60 * SECOND);
        assert!(cache.get("read").unwrap().is_some());
        assert!(cache.get("unread").unwrap().is_none());
        clock.advance(80 * SECOND);
        assert!(cache.get("read").unwrap().is_none());
    }
}
