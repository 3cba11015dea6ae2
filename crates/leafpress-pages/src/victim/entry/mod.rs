//! An entry: a header, the key, and the stored block.
//!
//! The holder of the shard's lock may find an entry in its table, pin it, and unlink it. A pinned entry is read without
//! the lock: its bytes do not change, and once it is unlinked it is freed by the thread that removes the last pin. So
//! there are three kinds of references: a [`BlockRef`] borrows the table or a pin, a [`Pin`] keeps the entry alive, and
//! an [`Owned`] is exclusive.

mod region;
mod table;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use rapidhash::v3::rapidhash_v3;

use super::dictionaries::Version;

pub(super) use region::{MAX_REGION_BYTES, MIN_REGION_BYTES, Region, Room, block_bytes};
pub(super) use table::{EntryTable, Unlinked};

/// Flag of an entry that is unlinked.
const UNLINKED: u32 = 1 << 31;
/// The list index of an entry that is not listed.
const UNLISTED: u32 = u32::MAX;

/// What precedes an entry's key and block.
#[repr(C, align(16))]
pub(super) struct EntryHeader {
    /// The next entry of its bucket.
    next: AtomicPtr<EntryHeader>,
    pub(super) hash: u64,
    /// The dictionary with which the block was compressed.
    pub(super) dictionary: Option<Arc<Version>>,
    /// Number of pins, and [`UNLINKED`].
    state: AtomicU32,
    check: u32,
    pub(super) stored_bytes: u32,
    pub(super) raw_bytes: u32,
    /// The shard's clock at its last hit.
    touched: AtomicU32,
    /// The index in the shard's list of entries that are kept raw, or [`UNLISTED`].
    place: AtomicU32,
    pub(super) key_bytes: u16,
    pub(super) tag: u16,
    pub(super) family: u8,
    /// Whether a reader holds the block and will insert it again.
    promoted: AtomicBool,
    /// Whether the block is compressed by the cache's codec.
    pub(super) pressed: bool,
}

/// The address of an entry. It is read through a [`BlockRef`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(NonNull<EntryHeader>);

// SAFETY: a link is an address; its target is read through a [`BlockRef`] only, and its mutable fields are atomic.
unsafe impl Send for Link {}

/// A reference to an entry that is neither written nor freed while this lives: it borrows the entry's table, or a pin.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRef<'e> {
    link: Link,
    held: PhantomData<&'e EntryHeader>,
}

/// The identity of an entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    link: Link,
    pub(super) hash: u64,
}

/// Keeps an entry alive, whether it stays in its table or not. If it is dropped instead of being returned, the entry is
/// leaked.
#[derive(Debug)]
pub(super) struct Pin(Link);

/// An entry that is in no table and has no pins. If it is dropped, its memory is leaked.
#[derive(Debug)]
pub(super) struct Owned(Link);

/// The contents of an entry.
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
    /// Memory of the entry, in bytes.
    pub(super) fn bytes(&self) -> usize {
        entry_bytes(self.key.len(), self.stored.len())
    }
}

/// Memory of an entry, in bytes.
pub(super) fn entry_bytes(key_bytes: usize, stored_bytes: usize) -> usize {
    size_of::<EntryHeader>() + key_bytes + stored_bytes
}

/// A checksum that detects another key, length or form of a block, too.
fn check(stored: &[u8], hash: u64, raw_bytes: u32, pressed: bool) -> u32 {
    let sum = rapidhash_v3(stored) ^ hash.rotate_left(17) ^ (u64::from(raw_bytes) << 1 | u64::from(pressed));
    (sum ^ (sum >> 32)) as u32
}

/// The owner of entries, which frees them.
pub(super) trait Home {
    /// Frees an entry whose last reader was the caller.
    fn free(&self, entry: Owned);
}

/// A pin that is removed when this is dropped.
pub(super) struct Pinned<'h, H: Home> {
    home: &'h H,
    pin: ManuallyDrop<Pin>,
}

impl Owned {
    /// Writes an entry; [`None`] if the room has another size.
    pub(super) fn write(room: Room, parts: Parts<'_>, touched: u32) -> Option<Self> {
        if room.bytes() != parts.bytes() || parts.key.len() > usize::from(u16::MAX) {
            debug_assert!(false, "room for an entry is made for that entry");
            return None;
        }
        let header = EntryHeader {
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
            promoted: AtomicBool::new(false),
            pressed: parts.pressed,
            dictionary: parts.dictionary,
        };
        let start = room.into_start();
        // SAFETY: the room is exclusively owned, is aligned for a header, and as long as header, key and block
        // together.
        unsafe {
            start.cast::<EntryHeader>().write(header);
            let key = start.add(size_of::<EntryHeader>());
            key.copy_from_nonoverlapping(NonNull::from(parts.key).cast(), parts.key.len());
            let block = key.add(parts.key.len());
            block.copy_from_nonoverlapping(NonNull::from(parts.stored).cast(), parts.stored.len());
        }
        Some(Self(Link(start.cast())))
    }

    /// Releases ownership to a table.
    fn into_link(self) -> Link {
        self.0
    }

    pub(super) fn address(&self) -> NonNull<u8> {
        self.0.0.cast()
    }

    /// Drops the reference to the dictionary, and turns the entry into room.
    pub(super) fn into_room(self) -> Room {
        // SAFETY: the entry is exclusively owned, was written into room of this many bytes, and is not accessed again.
        unsafe {
            let bytes = self.0.entry().bytes();
            std::ptr::drop_in_place(&raw mut (*self.0.0.as_ptr()).dictionary);
            Room::new(self.0.0.cast(), bytes)
        }
    }
}

impl Pin {
    pub(super) fn entry(&self) -> BlockRef<'_> {
        // SAFETY: an entry with a pin is not freed, and its bytes do not change.
        unsafe { self.0.entry() }
    }

    /// Removes the pin; returns the entry if that was the last pin and it is unlinked.
    pub(super) fn unpin(self) -> Option<Owned> {
        // Release: reads of the bytes happen before the entry is freed. Acquire: the caller that frees it does so after
        // all reads.
        let before = self.entry().state.fetch_sub(1, Ordering::AcqRel);
        (before == UNLINKED + 1).then_some(Owned(self.0))
    }
}

impl<'h, H: Home> Pinned<'h, H> {
    /// Takes over a pin on an entry of this home.
    pub(super) fn new(home: &'h H, pin: Pin) -> Self {
        Self {
            home,
            pin: ManuallyDrop::new(pin),
        }
    }

    pub(super) fn home(&self) -> &'h H {
        self.home
    }

    pub(super) fn entry(&self) -> BlockRef<'_> {
        self.pin.entry()
    }
}

impl<H: Home> Drop for Pinned<'_, H> {
    fn drop(&mut self) {
        // SAFETY: the pin is taken here only, and `drop` runs once.
        let pin = unsafe { ManuallyDrop::take(&mut self.pin) };
        if let Some(entry) = pin.unpin() {
            self.home.free(entry);
        }
    }
}

impl Link {
    /// # Safety
    /// The entry must be neither freed nor flipped during `'e`: it is in a table that is borrowed for that long, or is
    /// pinned for that long.
    #[inline]
    unsafe fn entry<'e>(self) -> BlockRef<'e> {
        BlockRef {
            link: self,
            held: PhantomData,
        }
    }

    /// Marks an entry as unlinked; returns the entry if it has no pins. Otherwise its last reader gets it.
    ///
    /// # Safety
    /// The caller must just have removed it from its table, and must not use the link again.
    unsafe fn unlinked(self) -> Option<Owned> {
        // SAFETY: an entry is not freed before it is marked.
        let header = unsafe { self.0.as_ref() };
        (header.state.fetch_or(UNLINKED, Ordering::AcqRel) == 0).then_some(Owned(self))
    }

    /// Flips a bit of the stored block.
    ///
    /// # Safety
    /// There must be no other [`BlockRef`] of it and no pin.
    #[cfg(feature = "testing")]
    unsafe fn flip(self, bit: usize) {
        // SAFETY: the caller guarantees exclusive access; the address is within the block.
        unsafe {
            let entry = self.entry();
            let (len, key_bytes) = (entry.stored_bytes as usize, usize::from(entry.key_bytes));
            let at = size_of::<EntryHeader>() + key_bytes + (bit / 8) % len.max(1);
            let byte = self.0.cast::<u8>().add(at);
            if len > 0 {
                byte.write(byte.read() ^ (1 << (bit % 8)));
            }
        }
    }
}

impl Deref for BlockRef<'_> {
    type Target = EntryHeader;

    #[inline]
    fn deref(&self) -> &EntryHeader {
        // SAFETY: the entry is not freed while this lives; the mutable fields of a header are atomic.
        unsafe { self.link.0.as_ref() }
    }
}

impl<'e> BlockRef<'e> {
    pub(super) fn at(self) -> At {
        At {
            link: self.link,
            hash: self.hash,
        }
    }

    pub(super) fn address(self) -> NonNull<u8> {
        self.link.0.cast()
    }

    #[inline]
    pub(super) fn key(self) -> &'e [u8] {
        self.bytes_at(0, usize::from(self.key_bytes))
    }

    /// The stored block.
    #[inline]
    pub(super) fn stored(self) -> &'e [u8] {
        self.bytes_at(usize::from(self.key_bytes), self.stored_bytes as usize)
    }

    /// Returns the bytes from the offset `from` after the header; key and block have the lengths in the header.
    #[inline]
    fn bytes_at(self, from: usize, len: usize) -> &'e [u8] {
        debug_assert!(from + len <= usize::from(self.key_bytes) + self.stored_bytes as usize);
        // SAFETY: both callers stay within the key and the block, which do not change while the entry is borrowed.
        unsafe {
            let start = self.address().add(size_of::<EntryHeader>() + from);
            std::slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    /// Returns true if the checksum of the block is right.
    pub(super) fn is_sound(self) -> bool {
        check(self.stored(), self.hash, self.raw_bytes, self.pressed) == self.check
    }

    /// Memory of the entry, in bytes.
    pub(super) fn bytes(self) -> usize {
        entry_bytes(usize::from(self.key_bytes), self.stored_bytes as usize)
    }

    /// Pins the entry.
    pub(super) fn pin(self) -> Pin {
        self.state.fetch_add(1, Ordering::Relaxed);
        Pin(self.link)
    }
}

impl EntryHeader {
    /// Returns the next entry of its bucket. The shard's lock must be held, as for all relaxed operations here.
    #[inline]
    fn next(&self) -> Option<Link> {
        NonNull::new(self.next.load(Ordering::Relaxed)).map(Link)
    }

    fn set_next(&self, next: Option<Link>) {
        let next = next.map_or(std::ptr::null_mut(), |next| next.0.as_ptr());
        self.next.store(next, Ordering::Relaxed);
    }

    pub(super) fn touched(&self) -> u32 {
        self.touched.load(Ordering::Relaxed)
    }

    pub(super) fn touch(&self, now: u32) {
        self.touched.store(now, Ordering::Relaxed);
    }

    /// The index in the list of entries that are kept raw.
    fn place(&self) -> Option<usize> {
        let place = self.place.load(Ordering::Relaxed);
        (place != UNLISTED).then_some(place as usize)
    }

    pub(super) fn is_listed(&self) -> bool {
        self.place().is_some()
    }

    /// The list is shorter than 2³² entries.
    fn set_place(&self, place: usize) {
        self.place.store(place as u32, Ordering::Relaxed);
    }

    fn clear_place(&self) {
        self.place.store(UNLISTED, Ordering::Relaxed);
    }

    pub(super) fn is_promoted(&self) -> bool {
        self.promoted.load(Ordering::Relaxed)
    }

    pub(super) fn set_promoted(&self, promoted: bool) {
        self.promoted.store(promoted, Ordering::Relaxed);
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.state.load(Ordering::Acquire) & !UNLINKED != 0
    }
}
