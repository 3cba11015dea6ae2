//! The landing buffer: a leaf's recent writes, uncompressed.
//!
//! It is an append-only log. A writer, which holds the leaf's lock, writes an entry after the published part and then
//! publishes it by storing the new count and length in one word; readers access only the published part, so nothing
//! they read ever changes. The newest entry of a key is the valid one.
//!
//! ```text
//! header | index: a word an entry              | entries, oldest first
//!          16 bits of the key's hash,            kind, key length, stored length and slot in 40 bits, key, what is stored:
//!          16 bits of the entry's offset         the value, its compressed block after its raw length, or its address
//! ```
//! An entry's slot is the position of its key in the leaf's frames, which do not change while they have this buffer:
//! the writer had to search for it, and compaction need not search again.
//!
//! The index is in the header's cache line, so that a key without an entry is rejected after reading one line. It has
//! room for as many entries of the first one's size as the buffer holds, and a few more; smaller entries may fill it
//! early.
//!
//! Where every record is a frame of its own, values are compressed before they are appended: the buffer holds more of
//! them, and compaction only has to copy the blocks.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::tree::error::{MAX_KEY_BYTES, TreeError};
use crate::tree::node::key_order::head;
use crate::tree::node::large::{Large, MAX_INLINE_VALUE_BYTES};
use crate::tree::node::layout::MAX_RECORDS;
use crate::tree::node::unpublished::unpublished;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::node::{Kind, NodeHeader};
use leafpress_base::mem::room::short_lived_room_for;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::AtomicU32;

/// Maximum size of a landing buffer in bytes: offsets have 16 bits.
pub(crate) const MAX_LANDING_BYTES: usize = 16 << 10;

const INDEX_BYTES: usize = 4;
const RAW_LEN_BYTES: usize = 2;
/// Index entries in addition to those for entries of the first one's size.
const SPARE_SLOTS: usize = 2;
const POINTER_BYTES: usize = size_of::<*mut u8>();

/// The first bytes of an entry.
#[derive(Clone, Copy)]
struct EntryHeader(u64);

impl EntryHeader {
    const BYTES: usize = 5;
    const KIND_BITS: u32 = 2;
    const KEY_BITS: u32 = 11;
    const STORED_BITS: u32 = 12;
    const KEY_BIT: u32 = Self::KIND_BITS;
    const STORED_BIT: u32 = Self::KEY_BIT + Self::KEY_BITS;
    /// First bit of the slot plus one; 0 where the slot is unknown.
    const SLOT_BIT: u32 = Self::STORED_BIT + Self::STORED_BITS;

    fn new(kind: u8, key_len: usize, stored: usize, slot: Option<u16>) -> Self {
        const {
            assert!(MAX_KEY_BYTES < 1 << Self::KEY_BITS);
            assert!(MAX_INLINE_VALUE_BYTES + RAW_LEN_BYTES < 1 << Self::STORED_BITS);
            assert!(MAX_RECORDS < 1 << (8 * Self::BYTES as u32 - Self::SLOT_BIT));
        }
        let slot = slot.map_or(0, |slot| u64::from(slot) + 1);
        Self(
            u64::from(kind)
                | (key_len as u64) << Self::KEY_BIT
                | (stored as u64) << Self::STORED_BIT
                | slot << Self::SLOT_BIT,
        )
    }

    fn part(self, bit: u32, bits: u32) -> usize {
        (self.0 >> bit) as usize & ((1 << bits) - 1)
    }

    fn kind(self) -> u8 {
        self.part(0, Self::KIND_BITS) as u8
    }

    fn key_len(self) -> usize {
        self.part(Self::KEY_BIT, Self::KEY_BITS)
    }

    fn stored(self) -> usize {
        self.part(Self::STORED_BIT, Self::STORED_BITS)
    }

    fn slot(self) -> Option<u16> {
        ((self.0 >> Self::SLOT_BIT) as u16).checked_sub(1)
    }

    /// Writes the header.
    ///
    /// # Safety
    /// `at` points to `Self::BYTES` writable bytes.
    unsafe fn write(self, at: *mut u8) {
        // SAFETY: the caller guarantees `Self::BYTES` writable bytes.
        unsafe { at.copy_from_nonoverlapping(self.0.to_le_bytes().as_ptr(), Self::BYTES) }
    }

    /// Reads a header.
    ///
    /// # Safety
    /// An entry begins at `at`.
    unsafe fn read(at: *const u8) -> Self {
        let mut bytes = [0; 8];
        // SAFETY: the caller guarantees that an entry begins at `at`, and an entry has at least `Self::BYTES` bytes.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(at, Self::BYTES) };
        Self(u64::from_le_bytes(bytes))
    }
}

#[repr(C)]
struct LandingHeader {
    node: NodeHeader,
    /// Bytes of the index and the entries.
    capacity: u16,
    /// Capacity of the index, in entries.
    slots: u16,
    /// Number of entries in the upper half, bytes of entries in the lower.
    published: AtomicU32,
}

/// The effect of a write on its key.
#[derive(Clone, Copy)]
pub(crate) enum Change<'a> {
    Put(&'a [u8]),
    PutLarge(Large<'a>),
    /// A value compressed with its leaf's dictionary; raw when the block has the length of the value.
    Compressed {
        block: &'a [u8],
        raw_len: usize,
    },
    Remove,
}

impl Change<'_> {
    fn stored_bytes(&self) -> usize {
        match self {
            Change::Put(value) => value.len(),
            Change::PutLarge(_) => POINTER_BYTES,
            Change::Compressed { block, .. } => RAW_LEN_BYTES + block.len(),
            Change::Remove => 0,
        }
    }

    /// Returns the length of the value, `None` for a removal.
    pub(crate) fn value_len(&self) -> Option<usize> {
        match self {
            Change::Put(value) => Some(value.len()),
            Change::PutLarge(large) => Some(large.raw_len()),
            Change::Compressed { raw_len, .. } => Some(*raw_len),
            Change::Remove => None,
        }
    }
}

/// A decoded entry.
#[derive(Clone, Copy)]
pub(crate) struct LandedWrite<'a> {
    pub key: &'a [u8],
    /// The head of the key, for comparisons.
    head: u64,
    pub change: Change<'a>,
    /// Slot of the key in the frames of the leaf whose buffer holds the entry, or is about to, if known.
    pub slot: Option<u16>,
}

impl<'a> LandedWrite<'a> {
    pub(crate) fn new(key: &'a [u8], change: Change<'a>, slot: Option<u16>) -> Self {
        Self {
            key,
            head: head(key),
            change,
            slot,
        }
    }

    /// Most keys differ in their first eight bytes, or are no longer than that.
    pub(crate) fn by_key(&self, other: &Self) -> std::cmp::Ordering {
        self.head.cmp(&other.head).then_with(|| self.key.cmp(other.key))
    }
}

/// A landing buffer, live for `'g`. The leaf that points to it owns it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

unpublished!(
    /// A landing buffer that is not published yet.
    NewLanding,
    Landing,
    landing
);

impl<'g> Landing<'g> {
    /// Allocates an empty buffer of `capacity` bytes for entries like the first, of `first_bytes`, and their index.
    ///
    /// # Safety
    /// `memory` outlives the buffer.
    pub(crate) unsafe fn allocate(
        capacity: usize,
        first_bytes: usize,
        memory: &NodeHeap,
    ) -> Result<NewLanding, TreeError> {
        debug_assert!(capacity <= MAX_LANDING_BYTES);
        let slots = (capacity / first_bytes + SPARE_SLOTS).min(capacity / INDEX_BYTES);
        // SAFETY: the caller guarantees that `memory` outlives the buffer; the header is written into the room
        // allocated for it.
        unsafe {
            let node = memory.allocate(size_of::<LandingHeader>() + capacity, Kind::Landing)?;
            let header = node.cast::<LandingHeader>().as_ptr();
            (&raw mut (*header).capacity).write(capacity as u16);
            (&raw mut (*header).slots).write(slots as u16);
            (&raw mut (*header).published).write(AtomicU32::new(0));
            Ok(NewLanding::new(node))
        }
    }

    /// Returns a copy of the buffer.
    ///
    /// # Safety
    /// The caller holds the leaf's lock, and `memory` outlives the buffer.
    pub(crate) unsafe fn copy(&self, memory: &NodeHeap) -> Result<NewLanding, TreeError> {
        let header = self.header();
        let (_, bytes) = self.published();
        // SAFETY: the caller guarantees that `memory` outlives the buffer, and holds the lock, so no entry is appended;
        // index and entries have the same size in both buffers.
        unsafe {
            let node = memory.allocate(header.node.requested_bytes(), Kind::Landing)?;
            let copy = node.cast::<LandingHeader>().as_ptr();
            (&raw mut (*copy).capacity).write(header.capacity);
            (&raw mut (*copy).slots).write(header.slots);
            (&raw mut (*copy).published).write(AtomicU32::new(header.published.load(Ordering::Relaxed)));
            let (from, to) = (
                self.0.add(size_of::<LandingHeader>()),
                node.add(size_of::<LandingHeader>()),
            );
            to.copy_from_nonoverlapping(from, self.slots() * INDEX_BYTES + bytes);
            Ok(NewLanding::new(node))
        }
    }

    /// Borrows a buffer.
    ///
    /// # Safety
    /// `node` is a landing buffer that is live for `'g`.
    pub(crate) unsafe fn from_node(node: NonNull<u8>) -> Self {
        Self(node, PhantomData)
    }

    /// Borrows a buffer by its address; [`None`] for null.
    ///
    /// # Safety
    /// `pointer` came from [`Landing::as_ptr`] and the buffer is live for `'g`.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Option<Self> {
        NonNull::new(pointer).map(|node| Self(node, PhantomData))
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    fn header(&self) -> &LandingHeader {
        // SAFETY: a live buffer begins with its header.
        unsafe { self.0.cast::<LandingHeader>().as_ref() }
    }

    fn data(&self) -> *mut u8 {
        // SAFETY: the index and the entries follow the header in the same allocation.
        unsafe {
            self.0
                .as_ptr()
                .add(size_of::<LandingHeader>() + self.slots() * INDEX_BYTES)
        }
    }

    fn slots(&self) -> usize {
        self.header().slots as usize
    }

    /// Returns the number and the bytes of published entries.
    fn published(&self) -> (usize, usize) {
        let word = self.header().published.load(Ordering::Acquire);
        ((word >> 16) as usize, (word & 0xFFFF) as usize)
    }

    /// Returns where the next entry will be written.
    pub(crate) fn end(&self) -> *mut u8 {
        self.data().wrapping_add(self.published().1)
    }

    pub(crate) fn entries(&self) -> usize {
        self.published().0
    }

    pub(crate) fn capacity(&self) -> usize {
        self.header().capacity as usize
    }

    /// Returns the bytes taken by the entries and the index.
    pub(crate) fn used(&self) -> usize {
        self.published().1 + self.slots() * INDEX_BYTES
    }

    /// Returns the bytes that an entry takes, including its index word.
    pub(crate) fn entry_bytes(key: &[u8], change: &Change<'_>) -> usize {
        EntryHeader::BYTES + key.len() + change.stored_bytes() + INDEX_BYTES
    }

    fn index_at(&self, index: usize) -> *mut u32 {
        // SAFETY: callers pass an `index` below the number of slots; the header's length is a multiple of four.
        unsafe { self.0.as_ptr().add(size_of::<LandingHeader>()).cast::<u32>().add(index) }
    }

    /// Appends an entry of a key with this hash; returns false when there is no room for it.
    ///
    /// # Safety
    /// The caller holds the leaf's lock.
    pub(crate) unsafe fn append(&self, entry: &LandedWrite<'_>, hash: u64) -> bool {
        let LandedWrite { key, change, slot, .. } = *entry;
        let (count, bytes) = self.published();
        let stored = change.stored_bytes();
        let after = bytes + EntryHeader::BYTES + key.len() + stored;
        if count == self.slots() || after + self.slots() * INDEX_BYTES > self.capacity() {
            return false;
        }
        let kind = match change {
            Change::Put(_) => 0u8,
            Change::PutLarge(_) => 1,
            Change::Remove => 2,
            Change::Compressed { .. } => 3,
        };
        // SAFETY: there is room after the published part, which only the holder of the lock writes and no reader
        // accesses.
        unsafe {
            let mut at = self.data().add(bytes);
            EntryHeader::new(kind, key.len(), stored, slot).write(at);
            at = at.add(EntryHeader::BYTES);
            at.copy_from_nonoverlapping(key.as_ptr(), key.len());
            at = at.add(key.len());
            match change {
                Change::Put(value) => at.copy_from_nonoverlapping(value.as_ptr(), value.len()),
                Change::PutLarge(large) => at.cast::<*mut u8>().write_unaligned(large.as_ptr()),
                Change::Compressed { block, raw_len } => {
                    at.cast::<u16>().write_unaligned(raw_len as u16);
                    at.add(RAW_LEN_BYTES)
                        .copy_from_nonoverlapping(block.as_ptr(), block.len());
                }
                Change::Remove => {}
            }
            self.index_at(count).write(((hash >> 48) as u32) << 16 | bytes as u32);
        }
        self.header()
            .published
            .store(((count + 1) as u32) << 16 | after as u32, Ordering::Release);
        true
    }

    /// Returns the newest published entry of `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8], hash: u64) -> Option<LandedWrite<'g>> {
        let (count, _) = self.published();
        let wanted = (hash >> 48) as u32;
        for index in (0..count).rev() {
            // SAFETY: the entry is published, so its index word is initialised and immutable.
            let word = unsafe { self.index_at(index).read() };
            if word >> 16 == wanted {
                // SAFETY: the entry is published, and the buffer stays live for `'g`.
                let entry = unsafe { self.entry_at(word as usize & 0xFFFF) };
                if entry.key == key {
                    return Some(entry);
                }
            }
        }
        None
    }

    /// Decodes an entry.
    ///
    /// # Safety
    /// `offset` is that of a published entry.
    unsafe fn entry_at(&self, offset: usize) -> LandedWrite<'g> {
        // SAFETY: the caller passes the offset of a published entry, which is complete and never changes.
        unsafe {
            let mut at = self.data().add(offset);
            let header = EntryHeader::read(at);
            let stored = header.stored();
            at = at.add(EntryHeader::BYTES);
            let key = std::slice::from_raw_parts(at, header.key_len());
            at = at.add(key.len());
            let change = match header.kind() {
                0 => Change::Put(std::slice::from_raw_parts(at, stored)),
                1 => match Large::from_ptr(at.cast::<*mut u8>().read_unaligned()) {
                    Some(large) => Change::PutLarge(large),
                    None => Change::Remove,
                },
                3 => Change::Compressed {
                    block: std::slice::from_raw_parts(at.add(RAW_LEN_BYTES), stored - RAW_LEN_BYTES),
                    raw_len: at.cast::<u16>().read_unaligned() as usize,
                },
                _ => Change::Remove,
            };
            LandedWrite::new(key, change, header.slot())
        }
    }

    /// Returns the published entries, oldest first, in a vector with room for one more.
    pub(crate) fn read_all(&self) -> Result<Vec<LandedWrite<'g>>, OutOfMemory> {
        let published = self.iter();
        let mut entries = short_lived_room_for(published.len() + 1)?;
        entries.extend(published);
        Ok(entries)
    }

    /// Iterates over the published entries, oldest first.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = LandedWrite<'g>> {
        (0..self.entries()).map(move |index| {
            // SAFETY: the entry is published, and the buffer stays live for `'g`.
            unsafe { self.entry_at((self.index_at(index).read() & 0xFFFF) as usize) }
        })
    }
}

/// Up to this number, entries are sorted by insertion.
const FEW_ENTRIES: usize = 64;

/// Sorts entries by key and keeps only the newest of each. `entries` is oldest first: those of one landing buffer, and
/// possibly one more at the end. `superseded` is called with each dropped entry.
pub(crate) fn newest_by_key<'a>(entries: &mut Vec<LandedWrite<'a>>, mut superseded: impl FnMut(LandedWrite<'a>)) {
    if entries.len() > FEW_ENTRIES {
        // Entries of one key are sorted by their position in the buffer, since a stable sort would need memory; the
        // last entry, which may be from elsewhere, is put into its position below.
        let last = entries.len() - 1;
        let by_age = |entry: &LandedWrite<'_>| entry.key.as_ptr().addr();
        entries[..last].sort_unstable_by(|a, b| a.by_key(b).then_with(|| by_age(a).cmp(&by_age(b))));
    }
    let mut kept = 0;
    for index in 0..entries.len() {
        let entry = entries[index];
        let at = match entries[..kept].last() {
            Some(last) if last.by_key(&entry).is_ge() => {
                entries[..kept].partition_point(|other| other.by_key(&entry).is_lt())
            }
            _ => kept,
        };
        if at < kept && entries[at].by_key(&entry).is_eq() {
            superseded(entries[at]);
        } else {
            entries.copy_within(at..kept, at + 1);
            kept += 1;
        }
        entries[at] = entry;
    }
    entries.truncate(kept);
}
