//! A page in a caller's hands.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::counts::Count;
use super::counts::HoldSlot;

/// A pinned page: its bytes neither move nor change nor go while this lives. An update meanwhile is seen by those who get the page
/// afterwards.
pub struct PageGuard<'p> {
    core: &'p Core,
    held: Held<'p>,
}

enum Held<'p> {
    /// A raw page: the slot that holds it, and where its bytes are.
    Slot {
        slot: &'p HoldSlot,
        start: *const u8,
        len: usize,
    },
    /// The same, where the thread had no slot left: the entry that is pinned, and where its bytes are.
    Entry { number: u32, start: *const u8, len: usize },
    /// A compressed page's decoded copy.
    Copy(Vec<u8>),
}

// SAFETY: the bytes do not change while the entry is pinned, and the pin may be taken away by any thread.
unsafe impl Send for PageGuard<'_> {}
// SAFETY: as above.
unsafe impl Sync for PageGuard<'_> {}

impl<'p> PageGuard<'p> {
    /// A raw page's guard.
    ///
    /// # Safety
    /// The slot has held the entry since before it was seen to be raw and not marked, and is handed over.
    #[inline]
    pub(super) unsafe fn of_slot(core: &'p Core, number: u32, slot: &'p HoldSlot) -> Self {
        let entry = core.entries.at(number);
        let held = Held::Slot {
            slot,
            start: entry.place(),
            len: entry.len(),
        };
        Self { core, held }
    }

    /// A raw page's guard.
    ///
    /// # Safety
    /// The caller has pinned the entry, which is raw, and hands the pin over.
    #[inline]
    pub(super) unsafe fn of_entry(core: &'p Core, number: u32) -> Self {
        let entry = core.entries.at(number);
        core.counts.add(Count::PinsHandedOut, 1);
        let held = Held::Entry {
            number,
            start: entry.place(),
            len: entry.len(),
        };
        Self { core, held }
    }

    pub(super) fn of_copy(core: &'p Core, bytes: Vec<u8>) -> Self {
        core.copy_bytes.fetch_add(bytes.capacity(), Relaxed);
        Self {
            core,
            held: Held::Copy(bytes),
        }
    }
}

impl Deref for PageGuard<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.held {
            // SAFETY: while the entry is pinned or held its frame holds the page, and nobody writes it.
            Held::Entry { start, len, .. } | Held::Slot { start, len, .. } => unsafe {
                std::slice::from_raw_parts(*start, *len)
            },
            Held::Copy(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for PageGuard<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PageGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match &self.held {
            Held::Entry { .. } | Held::Slot { .. } => "raw",
            Held::Copy(_) => "copy",
        };
        f.debug_struct("PageGuard")
            .field("len", &self.len())
            .field("held", &held)
            .finish_non_exhaustive()
    }
}

impl Drop for PageGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        match &self.held {
            Held::Slot { slot, .. } => slot.release(),
            Held::Entry { number, .. } => {
                self.core.unpin(*number);
                self.core.counts.pin_handed_back();
            }
            Held::Copy(bytes) => {
                self.core.copy_bytes.fetch_sub(bytes.capacity(), Relaxed);
            }
        }
    }
}
