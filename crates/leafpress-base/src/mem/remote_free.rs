//! Blocks of a part of the heap that were freed by threads which allocate from another part.
//!
//! About half of the nodes that a writer replaces were allocated by other threads. Freeing such a block directly would
//! take the lock that its allocating threads need for their next node, and cache lines that they will fetch back.
//! Instead the block is pushed on a list that the next holder of the lock frees.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes on the list at which the freeing thread takes the lock itself: the part's own threads may be idle.
const MUCH_BYTES: usize = 64 << 10;

/// Header written at the start of a block on the list.
struct Link {
    next: *mut Link,
    requested_bytes: usize,
}

/// The list. Blocks are pushed one by one and taken all at once, so there is no ABA problem: no link is read that
/// another thread may have taken.
#[derive(Default)]
pub struct RemoteFrees {
    newest: AtomicPtr<Link>,
    /// Approximate bytes of the blocks.
    bytes: AtomicUsize,
}

impl RemoteFrees {
    /// Adds a block of `requested_bytes` bytes; returns true when the list has reached `MUCH_BYTES`.
    ///
    /// # Safety
    /// The block is a node's, begins with 16 bytes of header, and is owned by the caller.
    pub unsafe fn add(&self, block: NonNull<u8>, requested_bytes: usize) -> bool {
        let bytes = self.bytes.fetch_add(requested_bytes, Ordering::Relaxed) + requested_bytes;
        let link = block.cast::<Link>();
        // The link stays accessible until the block is taken.
        #[cfg(leafpress_asan)]
        // SAFETY: a node is longer than a link.
        crate::mem::poison::poison(
            unsafe { block.add(size_of::<Link>()) },
            requested_bytes - size_of::<Link>(),
        );
        let mut next = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: a node is long enough and aligned for a link, and the caller owns it until it is on the list.
            unsafe { link.write(Link { next, requested_bytes }) };
            let added = self
                .newest
                .compare_exchange_weak(next, link.as_ptr(), Ordering::Release, Ordering::Relaxed);
            match added {
                Ok(_) => return bytes >= MUCH_BYTES,
                Err(newest) => next = newest,
            }
        }
    }

    /// Returns the approximate bytes of the blocks on the list.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes all blocks, each with its requested bytes.
    #[inline]
    pub fn take(&self) -> Taken {
        if self.newest.load(Ordering::Relaxed).is_null() {
            return Taken(None);
        }
        self.bytes.store(0, Ordering::Relaxed);
        Taken(NonNull::new(self.newest.swap(std::ptr::null_mut(), Ordering::Acquire)))
    }
}

/// Blocks that were taken off the list.
pub struct Taken(Option<NonNull<Link>>);

impl Iterator for Taken {
    type Item = (NonNull<u8>, usize);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let link = self.0?;
        // SAFETY: taking the list made this the only owner of its links, each of which was written before it was
        // pushed.
        let Link { next, requested_bytes } = unsafe { link.read() };
        self.0 = NonNull::new(next);
        Some((link.cast(), requested_bytes))
    }
}
