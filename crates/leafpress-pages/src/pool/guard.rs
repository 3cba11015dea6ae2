//! Guards: a caller's [`PageGuard`], and the pool's own [`Pinned`] entries.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::counts::{Count, HoldSlot, ThreadCounts};
use super::entry::{PIN, PageSlot, PageState};
use super::frames::Frame;
use super::inner::PoolInner;
use crate::store::PageId;

/// A pinned page: its bytes are neither moved, changed nor freed while this lives. A concurrent update is visible to
/// later `get`s only.
pub struct PageGuard<'p> {
    core: &'p PoolInner,
    held: Held,
}

/// A pinned page like a [`PageGuard`] that borrows nothing: for tasks, and for other `'static` owners.
///
/// The pool's memory is freed with the last of these, even if the pool is dropped before.
pub struct OwnedPageGuard {
    // An `Arc`, whose content has a stable address: `held` points into it.
    core: Arc<PoolInner>,
    held: Held,
}

/// A hold of a page in a core, which has to outlive it. It must be released once, and not used afterwards.
enum Held {
    /// A raw page: the core's hazard slot that holds it, and the address of its bytes.
    Slot {
        slot: NonNull<HoldSlot>,
        start: *const u8,
        len: usize,
    },
    /// A raw page if the thread had no free slot: the pinned entry, and the address of its bytes.
    Entry { number: u32, start: *const u8, len: usize },
    /// A compressed page's decoded copy.
    Copy(Vec<u8>),
}

// SAFETY: the bytes do not change while the entry is pinned or held, and any thread may remove the pin or clear the
// slot.
unsafe impl Send for Held {}
// SAFETY: shared access only reads the bytes, which do not change while the entry is pinned or held.
unsafe impl Sync for Held {}

impl Held {
    /// Returns the page's bytes.
    ///
    /// # Safety
    /// The core must still exist, and this must not have been released.
    #[inline]
    unsafe fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: while the entry is pinned or held, its frame in the core contains the page, and no thread writes
            // it.
            Held::Entry { start, len, .. } | Held::Slot { start, len, .. } => unsafe {
                std::slice::from_raw_parts(*start, *len)
            },
            Held::Copy(bytes) => bytes,
        }
    }

    /// Releases the page.
    ///
    /// # Safety
    /// It must be of this core, and must not have been released.
    #[inline]
    unsafe fn release(&self, core: &PoolInner) {
        match self {
            // SAFETY: the slot belongs to the core, and lives as long as it.
            Held::Slot { slot, .. } => unsafe { slot.as_ref() }.release(),
            Held::Entry { number, .. } => {
                core.unpin(*number);
                core.counts.pin_handed_back();
            }
            Held::Copy(bytes) => {
                core.copy_bytes.fetch_sub(bytes.capacity(), Relaxed);
            }
        }
    }

    fn fmt_as(&self, name: &str, len: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match self {
            Held::Entry { .. } | Held::Slot { .. } => "raw",
            Held::Copy(_) => "copy",
        };
        f.debug_struct(name)
            .field("len", &len)
            .field("held", &held)
            .finish_non_exhaustive()
    }
}

/// A raw page held by a hazard slot. If dropped without a release, it is held for ever.
pub(super) struct HeldRaw<'p> {
    slot: &'p HoldSlot,
    entry: &'p PageSlot,
}

/// A pin on an entry, removed on drop. The page is neither moved nor replaced, as long as the owner of this does not
/// mark the entry for that.
pub(super) struct Pinned<'c> {
    core: &'c PoolInner,
    number: u32,
    /// The entry's state when it was pinned.
    pub(super) state: PageState,
}

impl<'c> Pinned<'c> {
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn entry(&self) -> &'c PageSlot {
        self.core.entries.at(self.number)
    }

    /// The page's stored bytes, raw or compressed.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the entry is pinned as long as these are borrowed.
        unsafe { self.entry().bytes() }
    }

    /// Converts the pin of a raw page into a guard.
    #[inline]
    pub(super) fn into_guard(self) -> PageGuard<'c> {
        self.core.counts.add(Count::PinsHandedOut, 1);
        let bytes = self.bytes();
        let held = Held::Entry {
            number: self.number,
            start: bytes.as_ptr(),
            len: bytes.len(),
        };
        let core = self.core;
        std::mem::forget(self);
        PageGuard { core, held }
    }
}

impl Drop for Pinned<'_> {
    #[inline]
    fn drop(&mut self) {
        self.core.unpin(self.number);
    }
}

impl PoolInner {
    /// Pins an entry if it has a page that can be pinned, and counts `hits`, 0 or 1.
    #[inline]
    pub(super) fn pin(&self, number: u32, hits: u64) -> Option<Pinned<'_>> {
        let state = self.entries.at(number).pin(hits)?;
        Some(Pinned {
            core: self,
            number,
            state,
        })
    }

    /// Stores a page in an entry that was loading or is new, and to which the caller has exclusive access; it is pinned
    /// in this state.
    pub(super) fn begin_raw(&self, number: u32, frame: Frame<'_>, state: PageState) -> Pinned<'_> {
        let entry = self.entries.at(number);
        self.free_kept(entry.put_frame(frame));
        let state = PageState(state.0 + PIN);
        entry.change(|_| state);
        Pinned {
            core: self,
            number,
            state,
        }
    }

    /// Adds a pin to an entry that is pinned already, even if it is detached; [`None`] if it is not pinned.
    pub(super) fn pin_again(&self, number: u32) -> Option<Pinned<'_>> {
        let state = self.entries.at(number).pin_again()?;
        Some(Pinned {
            core: self,
            number,
            state,
        })
    }

    /// Holds an entry's page by a hazard slot, if it is this page, raw, and not marked, and the thread has a free slot.
    #[inline]
    pub(super) fn hold_raw<'p>(&'p self, mine: &'p ThreadCounts, number: u32, page: PageId) -> Option<HeldRaw<'p>> {
        let entry = self.entries.at(number);
        let slot = mine.hold(number)?;
        // The hold was published before the check: so the entry does not change.
        if entry.is_held_raw(page) {
            return Some(HeldRaw { slot, entry });
        }
        slot.release();
        None
    }
}

impl<'p> PageGuard<'p> {
    /// Returns the guard of a raw page.
    #[inline]
    pub(super) fn of_held(core: &'p PoolInner, held: HeldRaw<'p>) -> Self {
        let held = Held::Slot {
            slot: NonNull::from(held.slot),
            start: held.entry.place(),
            len: held.entry.len(),
        };
        Self { core, held }
    }

    pub(super) fn of_copy(core: &'p PoolInner, bytes: Vec<u8>) -> Self {
        core.copy_bytes.fetch_add(bytes.capacity(), Relaxed);
        Self {
            core,
            held: Held::Copy(bytes),
        }
    }

    /// Converts this into a guard that keeps `inner`, to which this one belongs, alive.
    pub(super) fn into_owned(mut self, core: &Arc<PoolInner>) -> OwnedPageGuard {
        debug_assert!(std::ptr::eq(self.core, Arc::as_ptr(core)), "another core's guard");
        // The replacement needs no release.
        let held = std::mem::replace(&mut self.held, Held::Copy(Vec::new()));
        OwnedPageGuard {
            core: Arc::clone(core),
            held,
        }
    }
}

/// Common implementation of both guards.
macro_rules! guard {
    ($guard:ty, $name:literal) => {
        impl Deref for $guard {
            type Target = [u8];

            #[inline]
            fn deref(&self) -> &[u8] {
                // SAFETY: the guard borrows or owns the core, and releases its hold only when it is dropped.
                unsafe { self.held.bytes() }
            }
        }

        impl AsRef<[u8]> for $guard {
            fn as_ref(&self) -> &[u8] {
                self
            }
        }

        impl fmt::Debug for $guard {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.held.fmt_as($name, self.len(), f)
            }
        }

        impl Drop for $guard {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the hold is of the guard's core, and a guard is dropped once.
                unsafe { self.held.release(&self.core) };
            }
        }
    };
}

guard!(PageGuard<'_>, "PageGuard");
guard!(OwnedPageGuard, "OwnedPageGuard");
