//! Blocks of a part of the heap that were freed by threads which allocate from another.
//!
//! Of what writers replace, others made half. To free it where it came from takes the lock that its makers need for their next node, and
//! cache lines that they will fetch back. Instead it is put on a list, and whoever takes the lock next frees it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes on the list at which whoever adds to it is to take the lock: those who allocate from the part may be idle.
const MUCH_BYTES: usize = 64 << 10;

/// Stands at the start of a block on the list.
struct Link {
    next: *mut Link,
    asked: usize,
}

/// The list. Blocks are added one by one, and all are taken at once: no link is read that another thread may have taken.
#[derive(Default)]
pub struct RemoteFrees {
    newest: AtomicPtr<Link>,
    /// About what the blocks hold.
    bytes: AtomicUsize,
}

impl RemoteFrees {
    /// Adds a block of `asked` bytes; true when there are many.
    ///
    /// # Safety
    /// The block is a node's, which begins with 16 bytes of header, and the caller's to free.
    pub unsafe fn add(&self, block: NonNull<u8>, asked: usize) -> bool {
        let bytes = self.bytes.fetch_add(asked, Ordering::Relaxed) + asked;
        let link = block.cast::<Link>();
        // The link may be touched, until the block is taken.
        #[cfg(leafpress_asan)]
        // SAFETY: a node is longer than a link.
        crate::mem::poison::poison(unsafe { block.add(size_of::<Link>()) }, asked - size_of::<Link>());
        let mut next = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: a node is long enough and aligned for a link, and nobody else looks at it before it is on the list.
            unsafe { link.write(Link { next, asked }) };
            let added = self
                .newest
                .compare_exchange_weak(next, link.as_ptr(), Ordering::Release, Ordering::Relaxed);
            match added {
                Ok(_) => return bytes >= MUCH_BYTES,
                Err(newest) => next = newest,
            }
        }
    }

    /// About what the blocks on the list hold.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes all blocks, each with the bytes that were asked for.
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
        // SAFETY: the taker is the only one at the links, each of which was written before it was put on the list.
        let Link { next, asked } = unsafe { link.read() };
        self.0 = NonNull::new(next);
        Some((link.cast(), asked))
    }
}
