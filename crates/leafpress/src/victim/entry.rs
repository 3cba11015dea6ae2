//! An entry: a header, the key, and the block as it is stored.
//!
//! Whoever holds the shard's lock may find an entry, pin it, and unlink it. A pinned entry is read without the lock: its bytes do not
//! change, and it is freed by whoever takes the last pin away once it is unlinked.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use rapidhash::v3::rapidhash_v3;

use super::dictionaries::Version;

/// Marks an entry that is unlinked.
const UNLINKED: u32 = 1 << 31;
/// The place of an entry that is not listed.
const UNLISTED: u32 = u32::MAX;

/// What precedes an entry's key and block.
#[repr(C, align(16))]
pub(super) struct Header {
    /// The next entry of its bucket.
    next: AtomicPtr<Header>,
    pub(super) hash: u64,
    /// What the block was pressed with.
    pub(super) dictionary: Option<Arc<Version>>,
    /// Pins, and [`UNLINKED`].
    state: AtomicU32,
    check: u32,
    pub(super) stored_bytes: u32,
    pub(super) raw_bytes: u32,
    /// The shard's clock when it was last hit.
    touched: AtomicU32,
    /// The place in the shard's list of entries that are kept raw, or [`UNLISTED`].
    place: AtomicU32,
    pub(super) key_bytes: u16,
    pub(super) tag: u16,
    pub(super) family: u8,
    /// Whether a reader has the block and will put it in again.
    lent: AtomicBool,
    /// Whether the block is compressed by the cache's codec.
    pub(super) pressed: bool,
}

/// An entry in its shard's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(NonNull<Header>);

// SAFETY: an entry is an address; the shard's lock and pins order what is done with it.
unsafe impl Send for Entry {}

/// What an entry is made of.
pub(super) struct Parts<'p> {
    pub(super) key: &'p [u8],
    pub(super) hash: u64,
    pub(super) stored: &'p [u8],
    pub(super) raw_bytes: u32,
    pub(super) pressed: bool,
    pub(super) dictionary: Option<Arc<Version>>,
    pub(super) family: u8,
    pub(super) tag: u16,
}

impl Parts<'_> {
    /// Memory that the entry needs, in bytes.
    pub(super) fn bytes(&self) -> usize {
        entry_bytes(self.key.len(), self.stored.len())
    }
}

/// Memory of an entry, in bytes.
pub(super) fn entry_bytes(key_bytes: usize, stored_bytes: usize) -> usize {
    size_of::<Header>() + key_bytes + stored_bytes
}

/// A checksum that a block fails under another key, length or form.
fn check(stored: &[u8], hash: u64, raw_bytes: u32, pressed: bool) -> u32 {
    let sum = rapidhash_v3(stored) ^ hash.rotate_left(17) ^ (u64::from(raw_bytes) << 1 | u64::from(pressed));
    (sum ^ (sum >> 32)) as u32
}

impl Entry {
    /// Writes an entry.
    ///
    /// # Safety
    /// `room` is aligned for a header, writable for `parts.bytes()`, and nobody else's.
    pub(super) unsafe fn write(room: NonNull<u8>, parts: Parts<'_>, touched: u32) -> Self {
        let header = Header {
            next: AtomicPtr::new(std::ptr::null_mut()),
            hash: parts.hash,
            state: AtomicU32::new(0),
            check: check(parts.stored, parts.hash, parts.raw_bytes, parts.pressed),
            stored_bytes: parts.stored.len() as u32,
            raw_bytes: parts.raw_bytes,
            touched: AtomicU32::new(touched),
            place: AtomicU32::new(UNLISTED),
            key_bytes: parts.key.len() as u16,
            tag: parts.tag,
            family: parts.family,
            lent: AtomicBool::new(false),
            pressed: parts.pressed,
            dictionary: parts.dictionary,
        };
        // SAFETY: as the caller promises.
        unsafe {
            room.cast::<Header>().write(header);
            let key = room.add(size_of::<Header>());
            key.copy_from_nonoverlapping(NonNull::from(parts.key).cast(), parts.key.len());
            let block = key.add(parts.key.len());
            block.copy_from_nonoverlapping(NonNull::from(parts.stored).cast(), parts.stored.len());
        }
        Self(room.cast())
    }

    pub(super) fn address(self) -> NonNull<u8> {
        self.0.cast()
    }

    /// # Safety
    /// The entry was written and is not freed: the caller holds the shard's lock and it is linked, or a pin.
    pub(super) unsafe fn header<'e>(self) -> &'e Header {
        // SAFETY: as the caller promises; what changes in a header is atomic.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// As [`Entry::header`].
    pub(super) unsafe fn key<'e>(self) -> &'e [u8] {
        // SAFETY: the key stands behind the header, as long as this says.
        unsafe {
            let len = usize::from(self.header().key_bytes);
            std::slice::from_raw_parts(self.address().add(size_of::<Header>()).as_ptr(), len)
        }
    }

    /// The block as it is stored.
    ///
    /// # Safety
    /// As [`Entry::header`].
    pub(super) unsafe fn stored<'e>(self) -> &'e [u8] {
        // SAFETY: the block stands behind the key, as long as this says.
        unsafe {
            let header = self.header();
            let start = self.address().add(size_of::<Header>() + usize::from(header.key_bytes));
            std::slice::from_raw_parts(start.as_ptr(), header.stored_bytes as usize)
        }
    }

    /// Whether the block is what was written.
    ///
    /// # Safety
    /// As [`Entry::header`].
    pub(super) unsafe fn is_sound(self) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            let header = self.header();
            check(self.stored(), header.hash, header.raw_bytes, header.pressed) == header.check
        }
    }

    /// Memory of the entry, in bytes.
    ///
    /// # Safety
    /// As [`Entry::header`].
    pub(super) unsafe fn bytes(self) -> usize {
        // SAFETY: as the caller promises.
        let header = unsafe { self.header() };
        entry_bytes(usize::from(header.key_bytes), header.stored_bytes as usize)
    }

    /// Lets go of what the block was pressed with.
    ///
    /// # Safety
    /// The entry is unlinked, nobody has a pin, and its dictionary is not asked for again.
    pub(super) unsafe fn drop_dictionary(self) {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).dictionary) };
    }

    /// Flips a bit of the stored block.
    ///
    /// # Safety
    /// The caller holds the shard's lock, the entry is linked, and nobody has a pin.
    pub(super) unsafe fn flip(self, bit: usize) {
        // SAFETY: as the caller promises; the address lies in the block.
        unsafe {
            let len = self.stored().len();
            let key_bytes = usize::from(self.header().key_bytes);
            let byte = self
                .address()
                .add(size_of::<Header>() + key_bytes + (bit / 8) % len.max(1));
            if len > 0 {
                byte.write(byte.read() ^ (1 << (bit % 8)));
            }
        }
    }
}

impl Header {
    /// The next entry of its bucket; for the holder of the shard's lock, as all orders here that are relaxed.
    pub(super) fn next(&self) -> Option<Entry> {
        NonNull::new(self.next.load(Ordering::Relaxed)).map(Entry)
    }

    pub(super) fn set_next(&self, next: Option<Entry>) {
        let next = next.map_or(std::ptr::null_mut(), |next| next.0.as_ptr());
        self.next.store(next, Ordering::Relaxed);
    }

    pub(super) fn touched(&self) -> u32 {
        self.touched.load(Ordering::Relaxed)
    }

    pub(super) fn touch(&self, now: u32) {
        self.touched.store(now, Ordering::Relaxed);
    }

    /// The place in the list of entries that are kept raw.
    pub(super) fn place(&self) -> Option<usize> {
        let place = self.place.load(Ordering::Relaxed);
        (place != UNLISTED).then_some(place as usize)
    }

    pub(super) fn is_listed(&self) -> bool {
        self.place().is_some()
    }

    /// The list is shorter than 2³² entries.
    pub(super) fn set_place(&self, place: usize) {
        self.place.store(place as u32, Ordering::Relaxed);
    }

    pub(super) fn clear_place(&self) {
        self.place.store(UNLISTED, Ordering::Relaxed);
    }

    pub(super) fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Relaxed)
    }

    pub(super) fn set_lent(&self, lent: bool) {
        self.lent.store(lent, Ordering::Relaxed);
    }

    /// Whether the entry is in its shard's tables. For the holder of the lock.
    pub(super) fn is_linked(&self) -> bool {
        self.state.load(Ordering::Relaxed) & UNLINKED == 0
    }

    /// Keeps the entry's bytes where they are. The caller holds the shard's lock, and the entry is linked.
    pub(super) fn pin(&self) {
        self.state.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a pin away; whether the caller has to free the entry.
    pub(super) fn unpin_is_last(&self) -> bool {
        // Release: reads of the bytes come before the entry is freed. Acquire: the caller that frees it comes after all.
        self.state.fetch_sub(1, Ordering::AcqRel) == UNLINKED + 1
    }

    /// Marks the entry, which the caller has unlinked; whether nobody has a pin, so that the caller has to free it.
    pub(super) fn unlink_is_free(&self) -> bool {
        self.state.fetch_or(UNLINKED, Ordering::AcqRel) == 0
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.state.load(Ordering::Acquire) & !UNLINKED != 0
    }
}
