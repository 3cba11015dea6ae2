//! A page in hand: in a caller's as a [`PageGuard`], in the pool's own as a [`Pinned`] entry.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::counts::{Count, HoldSlot, ThreadCounts};
use super::entry::{PIN, PageSlot, State};
use super::frames::Frame;
use super::inner::PoolInner;
use crate::store::PageId;

/// A pinned page: its bytes neither move nor change nor go while this lives. An update meanwhile is seen by those who get the page
/// afterwards.
pub struct PageGuard<'p> {
    core: &'p PoolInner,
    held: Held,
}

/// A pinned page as a [`PageGuard`] is one, which borrows nothing: for tasks, and for whatever has to be `'static`.
///
/// The pool's memory is there until the last of these is gone, also if the pool is dropped before.
pub struct OwnedPageGuard {
    // An `Arc`, whose content stays where it is: what is held points into it.
    core: Arc<PoolInner>,
    held: Held,
}

/// What is held of a page in a core, which has to outlive it. It is to be released once, and not used afterwards.
enum Held {
    /// A raw page: the core's slot that holds it, and where its bytes are.
    Slot {
        slot: NonNull<HoldSlot>,
        start: *const u8,
        len: usize,
    },
    /// The same, where the thread had no slot left: the entry that is pinned, and where its bytes are.
    Entry { number: u32, start: *const u8, len: usize },
    /// A compressed page's decoded copy.
    Copy(Vec<u8>),
}

// SAFETY: the bytes do not change while the entry is pinned or held, and any thread may take the pin away or empty the slot.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Held {
    /// The page's bytes.
    ///
    /// # Safety
    /// The core is still there, and this was not released.
    #[inline]
    unsafe fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: while the entry is pinned or held its frame, which is the core's, holds the page, and nobody writes it.
            Held::Entry { start, len, .. } | Held::Slot { start, len, .. } => unsafe {
                std::slice::from_raw_parts(*start, *len)
            },
            Held::Copy(bytes) => bytes,
        }
    }

    /// Lets go of the page.
    ///
    /// # Safety
    /// It is of this core, and was not released before.
    #[inline]
    unsafe fn release(&self, core: &PoolInner) {
        match self {
            // SAFETY: the slot is one of the core's, which are there as long as it is.
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

/// A raw page that a thread's slot holds. Dropped, it is held for ever.
pub(super) struct HeldRaw<'p> {
    slot: &'p HoldSlot,
    entry: &'p PageSlot,
}

/// A pin on an entry, given back when this is dropped. Its page stays what and where it is, as long as whoever has this does not mark the
/// entry to change that.
pub(super) struct Pinned<'c> {
    core: &'c PoolInner,
    number: u32,
    /// What the entry was when it was pinned.
    pub(super) state: State,
}

impl<'c> Pinned<'c> {
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn entry(&self) -> &'c PageSlot {
        self.core.entries.at(self.number)
    }

    /// The page's bytes as they are kept, raw or compressed.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the entry is pinned as long as these are borrowed.
        unsafe { self.entry().bytes() }
    }

    /// The guard of a raw page, which has the pin then.
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
    /// Pins an entry if a page is there that can be pinned, and counts `hits`, 0 or 1.
    #[inline]
    pub(super) fn pin(&self, number: u32, hits: u64) -> Option<Pinned<'_>> {
        let state = self.entries.at(number).pin(hits)?;
        Some(Pinned {
            core: self,
            number,
            state,
        })
    }

    /// Keeps a page in an entry that was loading, or is new, and that only the caller has; it is pinned in this state.
    pub(super) fn begin_raw(&self, number: u32, frame: Frame<'_>, state: State) -> Pinned<'_> {
        let entry = self.entries.at(number);
        self.free_kept(entry.put_frame(frame));
        let state = State(state.0 + PIN);
        entry.change(|_| state);
        Pinned {
            core: self,
            number,
            state,
        }
    }

    /// Pins an entry once more that is pinned already, whatever becomes of it; [`None`] if it is not pinned.
    pub(super) fn pin_again(&self, number: u32) -> Option<Pinned<'_>> {
        let state = self.entries.at(number).pin_again()?;
        Some(Pinned {
            core: self,
            number,
            state,
        })
    }

    /// Holds an entry's page, if it is this one, raw, and not marked, and the thread has a slot left.
    #[inline]
    pub(super) fn hold_raw<'p>(&'p self, mine: &'p ThreadCounts, number: u32, page: PageId) -> Option<HeldRaw<'p>> {
        let entry = self.entries.at(number);
        let slot = mine.hold(number)?;
        // It was held before it was looked at: so it stays what it is.
        if entry.is_held_raw(page) {
            return Some(HeldRaw { slot, entry });
        }
        slot.release();
        None
    }
}

impl<'p> PageGuard<'p> {
    /// A raw page's guard.
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

    /// The same page in a guard that keeps `inner` alive, which this one is of.
    pub(super) fn into_owned(mut self, core: &Arc<PoolInner>) -> OwnedPageGuard {
        debug_assert!(std::ptr::eq(self.core, Arc::as_ptr(core)), "another core's guard");
        // What stays here is nothing that would have to be let go.
        let held = std::mem::replace(&mut self.held, Held::Copy(Vec::new()));
        OwnedPageGuard {
            core: Arc::clone(core),
            held,
        }
    }
}

/// What both guards are.
macro_rules! guard {
    ($guard:ty, $name:literal) => {
        impl Deref for $guard {
            type Target = [u8];

            #[inline]
            fn deref(&self) -> &[u8] {
                // SAFETY: the guard has the core, and releases what it holds when it is dropped.
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
                // SAFETY: what the guard holds is of its core, and a guard is dropped once.
                unsafe { self.held.release(&self.core) };
            }
        }
    };
}

guard!(PageGuard<'_>, "PageGuard");
guard!(OwnedPageGuard, "OwnedPageGuard");
