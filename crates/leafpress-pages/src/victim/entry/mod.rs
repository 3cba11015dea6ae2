//! An entry: a header, the key, and the block as it is stored.
//!
//! Whoever holds the shard's lock may find an entry in its table, pin it, and unlink it. A pinned entry is read without the lock: its bytes
//! do not change, and it is freed by whoever gives the last pin back once it is unlinked. So there are three ways to have one: an [`BlockRef`]
//! borrows the table or a pin, a [`Pin`] holds it, and an [`Owned`] is nobody else's.

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
pub(super) use table::{Table, Unlinked};

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

/// Where an entry is. To read it takes an [`BlockRef`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link(NonNull<Header>);

// SAFETY: a link is an address; what it leads to is read through an [`BlockRef`] only, and what changes there is atomic.
unsafe impl Send for Link {}

/// An entry that is neither written nor freed as long as this lives: its table is borrowed, or a pin.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRef<'e> {
    link: Link,
    held: PhantomData<&'e Header>,
}

/// Which entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    link: Link,
    pub(super) hash: u64,
}

/// Keeps an entry where it is, whether it stays in its table or not. One that is dropped, and not given back, keeps it for ever.
#[derive(Debug)]
pub(super) struct Pin(Link);

/// An entry that is in no table and that nobody has a pin on. One that is dropped takes memory for ever.
#[derive(Debug)]
pub(super) struct Owned(Link);

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

/// Where entries are freed.
pub(super) trait Home {
    /// Frees an entry, whose last reader the caller was.
    fn free(&self, entry: Owned);
}

/// A pin that is given back when this is dropped.
pub(super) struct Pinned<'h, H: Home> {
    home: &'h H,
    pin: ManuallyDrop<Pin>,
}

impl Owned {
    /// Writes an entry; [`None`] where the room was made for another.
    pub(super) fn write(room: Room, parts: Parts<'_>, touched: u32) -> Option<Self> {
        if room.bytes() != parts.bytes() || parts.key.len() > usize::from(u16::MAX) {
            debug_assert!(false, "room for an entry is made for that entry");
            return None;
        }
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
        let start = room.into_start();
        // SAFETY: the room was its owner's alone, is aligned for a header, and as long as all three together.
        unsafe {
            start.cast::<Header>().write(header);
            let key = start.add(size_of::<Header>());
            key.copy_from_nonoverlapping(NonNull::from(parts.key).cast(), parts.key.len());
            let block = key.add(parts.key.len());
            block.copy_from_nonoverlapping(NonNull::from(parts.stored).cast(), parts.stored.len());
        }
        Some(Self(Link(start.cast())))
    }

    /// For the table that takes the entry over.
    fn into_link(self) -> Link {
        self.0
    }

    pub(super) fn address(&self) -> NonNull<u8> {
        self.0.0.cast()
    }

    /// Lets go of what the block was pressed with, and makes room of the entry.
    pub(super) fn into_room(self) -> Room {
        // SAFETY: the entry is this owner's alone, was written into room of so many bytes, and is not looked at again.
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

    /// Gives the pin back; the entry, where that was the last and it is unlinked.
    pub(super) fn unpin(self) -> Option<Owned> {
        // Release: reads of the bytes come before the entry is freed. Acquire: the caller that frees it comes after all.
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
        // SAFETY: it is taken here only.
        let pin = unsafe { ManuallyDrop::take(&mut self.pin) };
        if let Some(entry) = pin.unpin() {
            self.home.free(entry);
        }
    }
}

impl Link {
    /// # Safety
    /// The entry is neither freed nor flipped during `'e`: it is in a table that is borrowed so long, or there is a pin that stays.
    #[inline]
    unsafe fn entry<'e>(self) -> BlockRef<'e> {
        BlockRef {
            link: self,
            held: PhantomData,
        }
    }

    /// Marks an entry as unlinked; the entry, where nobody has a pin. Otherwise the last reader gets it.
    ///
    /// # Safety
    /// The caller has just taken it out of its table, and does not use the link again.
    unsafe fn unlinked(self) -> Option<Owned> {
        // SAFETY: it is not freed before it is marked.
        let header = unsafe { self.0.as_ref() };
        (header.state.fetch_or(UNLINKED, Ordering::AcqRel) == 0).then_some(Owned(self))
    }

    /// Flips a bit of the stored block.
    ///
    /// # Safety
    /// Nobody but the caller has an [`BlockRef`] of it or a pin.
    #[cfg(feature = "testing")]
    unsafe fn flip(self, bit: usize) {
        // SAFETY: as the caller promises; the address lies in the block.
        unsafe {
            let entry = self.entry();
            let (len, key_bytes) = (entry.stored_bytes as usize, usize::from(entry.key_bytes));
            let at = size_of::<Header>() + key_bytes + (bit / 8) % len.max(1);
            let byte = self.0.cast::<u8>().add(at);
            if len > 0 {
                byte.write(byte.read() ^ (1 << (bit % 8)));
            }
        }
    }
}

impl Deref for BlockRef<'_> {
    type Target = Header;

    #[inline]
    fn deref(&self) -> &Header {
        // SAFETY: the entry is not freed as long as this lives; what changes in a header is atomic.
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

    /// The block as it is stored.
    #[inline]
    pub(super) fn stored(self) -> &'e [u8] {
        self.bytes_at(usize::from(self.key_bytes), self.stored_bytes as usize)
    }

    /// What stands `from` bytes behind the header; key and block are there, as long as the header says.
    #[inline]
    fn bytes_at(self, from: usize, len: usize) -> &'e [u8] {
        debug_assert!(from + len <= usize::from(self.key_bytes) + self.stored_bytes as usize);
        // SAFETY: both callers stay within the key and the block, which do not change while the entry is held.
        unsafe {
            let start = self.address().add(size_of::<Header>() + from);
            std::slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    /// Whether the block is what was written.
    pub(super) fn is_sound(self) -> bool {
        check(self.stored(), self.hash, self.raw_bytes, self.pressed) == self.check
    }

    /// Memory of the entry, in bytes.
    pub(super) fn bytes(self) -> usize {
        entry_bytes(usize::from(self.key_bytes), self.stored_bytes as usize)
    }

    /// Keeps the entry where it is.
    pub(super) fn pin(self) -> Pin {
        self.state.fetch_add(1, Ordering::Relaxed);
        Pin(self.link)
    }
}

impl Header {
    /// The next entry of its bucket; for the holder of the shard's lock, as all orders here that are relaxed.
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

    /// The place in the list of entries that are kept raw.
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

    pub(super) fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Relaxed)
    }

    pub(super) fn set_lent(&self, lent: bool) {
        self.lent.store(lent, Ordering::Relaxed);
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.state.load(Ordering::Acquire) & !UNLINKED != 0
    }
}
