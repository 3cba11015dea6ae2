//! Buffers that calls borrow from the cache: for raw bytes, for compressed bytes, and for decoding.
//!
//! They belong to the cache instead of threads: an idle thread holds none. Those kept between calls are part of the
//! cache's memory budget, and accounted for.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use leafpress_base::sync::plain::Mutex;

use leafpress_codec::Scratch;

/// Maximum number of kept buffers; a power of two. If more threads than this are active, some allocate their own.
const SLOTS: usize = 32;
/// Number of slots that a call tries.
const TRIED: usize = 4;

/// The buffers of a call.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) raw: Vec<u8>,
    pub(super) pressed: Vec<u8>,
    pub(super) scratch: Scratch,
    /// Number of blocks decoded with these.
    pub(super) decoded: u32,
    /// Their memory as accounted for when they were last kept, in bytes.
    counted_bytes: usize,
}

impl Buffers {
    fn held_bytes(&self) -> usize {
        self.raw.capacity() + self.pressed.capacity() + self.scratch.held_bytes()
    }
}

/// A slot for buffers on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct BufferSlot(Mutex<Option<Buffers>>);

/// A cache's buffers.
#[derive(Default)]
pub(super) struct BufferPool {
    slots: [BufferSlot; SLOTS],
    /// Bytes of all kept buffers, and of borrowed ones as accounted for when they were kept.
    held_bytes: AtomicUsize,
    limit_bytes: AtomicUsize,
}

thread_local! {
    /// The first slot that this thread tries. It has no destructor, and so is valid until the thread's very end.
    static FIRST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns a slot for each thread, round-robin.
fn first_place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let first = FIRST.get();
    if first != usize::MAX {
        return first;
    }
    let next = NEXT.fetch_add(1, Relaxed) % SLOTS;
    FIRST.set(next);
    next
}

impl BufferPool {
    /// Memory of buffers, in bytes, without their growth in calls in progress.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// Sets the maximum of kept memory, in bytes, and frees the excess.
    pub(super) fn set_limit(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_bytes, Relaxed);
        for slot in &self.slots {
            if self.held_bytes() <= limit_bytes {
                return;
            }
            let kept = slot.0.lock().take();
            self.held_bytes
                .fetch_sub(kept.map_or(0, |kept| kept.counted_bytes), Relaxed);
        }
    }

    /// Returns buffers for a call.
    #[inline]
    pub(super) fn borrow(&self) -> Borrowed<'_> {
        let first = first_place();
        let mut tried = (0..TRIED).map(|n| &self.slots[(first + n) % SLOTS].0);
        let buffers = tried.find_map(|slot| slot.try_lock()?.take());
        Borrowed {
            pool: self,
            buffers: buffers.unwrap_or_default(),
        }
    }

    /// Keeps buffers for the next call, if there is a slot within the limit.
    fn keep(&self, mut buffers: Buffers) {
        let (held, counted) = (buffers.held_bytes(), buffers.counted_bytes);
        if held != counted {
            // Wrapping addition also handles a decrease.
            self.held_bytes.fetch_add(held.wrapping_sub(counted), Relaxed);
            buffers.counted_bytes = held;
        }
        if self.held_bytes() <= self.limit_bytes.load(Relaxed) {
            let first = first_place();
            for slot in (0..TRIED).map(|n| &self.slots[(first + n) % SLOTS].0) {
                if let Some(mut slot) = slot.try_lock().filter(|slot| slot.is_none()) {
                    *slot = Some(buffers);
                    return;
                }
            }
        }
        self.held_bytes.fetch_sub(held, Relaxed);
    }
}

/// Buffers in use by a call.
pub(super) struct Borrowed<'p> {
    pool: &'p BufferPool,
    buffers: Buffers,
}

impl Deref for Borrowed<'_> {
    type Target = Buffers;

    fn deref(&self) -> &Buffers {
        &self.buffers
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.pool.keep(std::mem::take(&mut self.buffers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_and_bounded() {
        let pool = BufferPool::default();
        pool.set_limit(100_000);
        {
            let mut one = pool.borrow();
            one.raw.reserve_exact(40_000);
            let mut nested = pool.borrow();
            assert_eq!(nested.raw.capacity(), 0, "not the same");
            nested.raw.reserve_exact(50_000);
        }
        assert_eq!(pool.held_bytes(), 90_000);
        drop((pool.borrow(), pool.borrow()));
        assert_eq!(pool.held_bytes(), 90_000);
        pool.borrow().raw.reserve_exact(200_000);
        assert!(pool.held_bytes() <= 100_000, "{}", pool.held_bytes());
        let borrowed = pool.borrow();
        pool.set_limit(0);
        drop(borrowed);
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn threads_that_wait_hold_nothing() {
        let pool = BufferPool::default();
        pool.set_limit(10_000);
        let barrier = std::sync::Barrier::new(65);
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    pool.borrow().raw.reserve_exact(1000);
                    barrier.wait();
                    barrier.wait();
                });
            }
            barrier.wait();
            assert!(pool.held_bytes() <= 10_000, "{}", pool.held_bytes());
            barrier.wait();
        });
    }
}
