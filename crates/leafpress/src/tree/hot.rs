//! Hot records: copies of those that are read most, in a table beside the tree.
//!
//! What is read most lies scattered over the leaves, a record here and one there. A copy that is not compressed costs its own bytes, where a
//! leaf that is not compressed costs those of all its neighbours.
//!
//! The table has sets of eight places, one cache line each; a key's set and its mark follow from its hash. Readers take no lock: a guard
//! keeps what they find. A record is put in by a reader that holds its leaf's latch, with the value that it has under it, and a writer takes it
//! out under the same latch before its write can be seen. So nobody finds a copy of an older value once he may have seen a newer one.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use leafpress_base::mem::node::{Kind, NodeHeader};
use leafpress_base::mem::{OutOfMemory, tagged_ptr};
use leafpress_base::reclaim::guard::Guard;
use leafpress_base::reclaim::load;
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::{AtomicPtr, Mutex};

/// Places of a set: a cache line.
const WAYS: usize = 8;
/// A record that was read so often since it was last looked at stays for as many looks.
const MAX_USES: u32 = 3;
/// Most sets of a table: four million places, in a node of a length that nodes may have.
const MAX_SETS: usize = 1 << 19;
/// Places for each record: some sets are fuller than others.
const ROOM: f64 = 1.5;
/// Records nearly hold what they may when less than one part in so many is left.
const NEARLY_FULL: u64 = 64;
/// The table is made anew when it should be so many times as large, or as small.
const RESIZED_AT: usize = 2;

#[repr(C)]
struct EntryHeader {
    node: NodeHeader,
    key_len: u32,
    value_len: u32,
    /// Reads since it was last looked at, as far as they are counted.
    uses: AtomicU32,
}

/// A copy of a record, live for `'g`.
#[derive(Clone, Copy)]
struct HotRecord<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

impl<'g> HotRecord<'g> {
    /// # Safety
    /// `node` is an entry that is live for `'g`.
    unsafe fn from_node(node: NonNull<u8>) -> Self {
        Self(node, PhantomData)
    }

    fn header(self) -> &'g EntryHeader {
        // SAFETY: an entry begins with its header.
        unsafe { self.0.cast::<EntryHeader>().as_ref() }
    }

    fn bytes(self, from: usize, len: usize) -> &'g [u8] {
        // SAFETY: key and value stand behind the header, and never change.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(size_of::<EntryHeader>() + from), len) }
    }

    fn key(self) -> &'g [u8] {
        self.bytes(0, self.header().key_len as usize)
    }

    fn value(self) -> &'g [u8] {
        self.bytes(self.header().key_len as usize, self.header().value_len as usize)
    }

    fn uses(self) -> u32 {
        self.header().uses.load(Ordering::Relaxed)
    }

    fn set_uses(self, uses: u32) {
        self.header().uses.store(uses, Ordering::Relaxed);
    }
}

/// The table of a guard's time.
#[derive(Clone, Copy)]
struct Table<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

impl<'g> Table<'g> {
    fn places(self) -> &'g [AtomicPtr<u8>] {
        // SAFETY: a table begins with its node's header; the places stand behind it, and were all written before the table was published.
        unsafe {
            let bytes = self.0.cast::<NodeHeader>().as_ref().asked() - size_of::<NodeHeader>();
            let first = self.0.as_ptr().add(size_of::<NodeHeader>()).cast();
            std::slice::from_raw_parts(first, bytes / size_of::<AtomicPtr<u8>>())
        }
    }

    /// Where a key with this hash can be.
    fn set(self, hash: u64) -> &'g [AtomicPtr<u8>] {
        let places = self.places();
        let sets = (places.len() / WAYS) as u64;
        let set = (((hash & 0xFFFF_FFFF) * sets) >> 32) as usize;
        &places[set * WAYS..(set + 1) * WAYS]
    }
}

/// What marks the place of a key with this hash, where addresses have room for it.
fn mark(hash: u64) -> tagged_ptr::Hint {
    (hash >> (u64::BITS - tagged_ptr::HINT_BITS)) as tagged_ptr::Hint
}

fn with_mark(node: *mut u8, hash: u64) -> *mut u8 {
    tagged_ptr::with_hint(node, mark(hash))
}

/// The hot records of a tree.
pub(crate) struct HotRecords {
    /// Null where there are none.
    table: AtomicPtr<u8>,
    /// Taken by whoever puts a record in or changes the table, and what records may hold.
    budget_bytes: Mutex<u64>,
}

impl Default for HotRecords {
    fn default() -> Self {
        Self {
            table: AtomicPtr::new(std::ptr::null_mut()),
            budget_bytes: Mutex::new(0),
        }
    }
}

impl HotRecords {
    /// What a record holds beside its key and its value.
    pub(crate) const RECORD_BYTES: u64 = size_of::<EntryHeader>() as u64;

    fn table<'g>(&self, guard: &'g Guard<'_>) -> Option<Table<'g>> {
        // A table is retired once nothing leads to it, and the guard keeps it.
        NonNull::new(load(&self.table, guard)).map(|node| Table(node, PhantomData))
    }

    /// Whether there may be hot records.
    pub(crate) fn has_table(&self, guard: &Guard<'_>) -> bool {
        self.table(guard).is_some()
    }

    /// The value of a key, if it is hot.
    #[inline]
    pub(crate) fn find<'g>(&self, key: &[u8], hash: u64, guard: &'g Guard<'_>) -> Option<&'g [u8]> {
        let (_, _, entry) = place_of(self.table(guard)?, key, hash, guard)?;
        let uses = entry.uses();
        // A line that all readers write to would go from core to core.
        if uses < MAX_USES {
            entry.set_uses(uses + 1);
        }
        Some(entry.value())
    }

    /// Whether a key is hot, which is not counted as a read.
    pub(crate) fn contains(&self, key: &[u8], hash: u64, guard: &Guard<'_>) -> bool {
        let table = self.table(guard);
        table.is_some_and(|table| place_of(table, key, hash, guard).is_some())
    }

    /// Whether a record with this hash would be put in now. Where it would not, those in its way count for less from now on.
    pub(crate) fn admits(&self, hash: u64, memory: &NodeHeap, guard: &Guard<'_>) -> bool {
        let Some(table) = self.table(guard) else {
            return false;
        };
        let entries = || table.set(hash).iter().map(|place| entry_at(place, guard));
        let is_unused = |entry: Option<HotRecord<'_>>| entry.is_some_and(|entry| entry.uses() == 0);
        if entries().any(is_unused) || (entries().any(|entry| entry.is_none()) && !self.is_full(memory)) {
            return true;
        }
        entries()
            .flatten()
            .for_each(|entry| entry.set_uses(entry.uses().saturating_sub(1)));
        false
    }

    /// Whether the records hold nearly all that they may; so it is while another thread is at the table.
    fn is_full(&self, memory: &NodeHeap) -> bool {
        let held = memory.live_of(Kind::Hot).1.max(0).cast_unsigned();
        self.budget_bytes
            .try_lock()
            .is_none_or(|budget_bytes| held + *budget_bytes / NEARLY_FULL >= *budget_bytes)
    }

    /// Puts a record in, if there is a place for it; returns whether it did. The caller holds the latch of the key's leaf, which has this value.
    ///
    /// # Errors
    /// [`OutOfMemory`]: it is not in then.
    pub(crate) fn insert(
        &self,
        key: &[u8],
        value: &[u8],
        hash: u64,
        memory: &NodeHeap,
        guard: &Guard<'_>,
    ) -> Result<bool, OutOfMemory> {
        let (Some(budget_bytes), Some(table)) = (self.budget_bytes.try_lock(), self.table(guard)) else {
            return Ok(false);
        };
        if place_of(table, key, hash, guard).is_some() {
            return Ok(false);
        }
        let set = table.set(hash);
        let empty = set.iter().find(|place| load(place, guard).is_null());
        let unused = || {
            let mut places = set.iter();
            places.find(|place| entry_at(place, guard).is_some_and(|entry| entry.uses() == 0))
        };
        let bytes = size_of::<EntryHeader>() + key.len() + value.len();
        let held = || memory.live_of(Kind::Hot).1.max(0).cast_unsigned();
        let has_room = |held: u64| held + bytes as u64 <= *budget_bytes;
        let place = match empty {
            Some(place) if has_room(held()) => place,
            _ => match unused() {
                Some(place) => {
                    take_out(place, guard);
                    // Two short ones may have to go for a long one: the other another time.
                    if !has_room(held()) {
                        return Ok(false);
                    }
                    place
                }
                None => return Ok(false),
            },
        };
        let node = new_entry(key, value, 0, memory)?;
        place.store(with_mark(node.as_ptr(), hash), Ordering::Release);
        Ok(true)
    }

    /// Takes a key out. The caller holds the latch of its leaf, and what he writes is not to be seen yet.
    pub(crate) fn remove(&self, key: &[u8], hash: u64, guard: &Guard<'_>) {
        let Some(table) = self.table(guard) else { return };
        // It may just be moved.
        while let Some((place, word, _)) = place_of(table, key, hash, guard) {
            let null = std::ptr::null_mut();
            if place
                .compare_exchange(word, null, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                retire(word, guard);
            }
        }
    }

    /// Takes all out.
    pub(crate) fn clear(&self, guard: &Guard<'_>) {
        let _budget = self.budget_bytes.lock();
        let places = self.table(guard).map_or(&[][..], Table::places);
        places.iter().for_each(|place| take_out(place, guard));
    }

    /// Lets records be forgotten that were not read since the last time. Returns whether there are some left.
    pub(crate) fn age(&self, guard: &Guard<'_>) -> bool {
        let _budget = self.budget_bytes.lock();
        let mut is_left = false;
        for place in self.table(guard).map_or(&[][..], Table::places) {
            match entry_at(place, guard) {
                Some(entry) if entry.uses() == 0 => take_out(place, guard),
                Some(entry) => {
                    entry.set_uses(entry.uses() - 1);
                    is_left = true;
                }
                None => {}
            }
        }
        is_left
    }

    /// Lets records hold so many bytes, in a table with places for so many records. The table is made anew where it is much too small or too
    /// large for them, which forgets what is in it.
    ///
    /// # Errors
    /// [`OutOfMemory`]: the old one stays.
    pub(crate) fn set_budget(
        &self,
        bytes: u64,
        records: u64,
        memory: &NodeHeap,
        guard: &Guard<'_>,
    ) -> Result<(), OutOfMemory> {
        let mut budget_bytes = self.budget_bytes.lock();
        *budget_bytes = bytes;
        let sets = ((records as f64 * ROOM) as usize).div_ceil(WAYS).min(MAX_SETS);
        let old = self.table(guard);
        let now = old.map_or(0, |table| table.places().len() / WAYS);
        if sets <= now * RESIZED_AT && now <= sets * RESIZED_AT {
            return Ok(());
        }
        let new = match sets {
            0 => std::ptr::null_mut(),
            sets => new_table(sets, memory)?.as_ptr(),
        };
        // A writer that finds the old one leaves nothing in the new one: what is put there is put under the latch that he has.
        self.table.store(new, Ordering::Release);
        if let Some(old) = old {
            old.places().iter().for_each(|place| take_out(place, guard));
            retire(old.0.as_ptr(), guard);
        }
        Ok(())
    }

    /// Moves records to where the heap has room for them now. What there is no memory for stays.
    pub(crate) fn relocate(&self, memory: &NodeHeap, guard: &Guard<'_>) {
        let _budget = self.budget_bytes.lock();
        let Some(table) = self.table(guard) else { return };
        for place in table.places() {
            let word = load(place, guard);
            let Some(entry) = entry_at(place, guard) else { continue };
            let Ok(copy) = new_entry(entry.key(), entry.value(), entry.uses(), memory) else {
                return;
            };
            let marked = tagged_ptr::with_hint(copy.as_ptr(), tagged_ptr::split(word).1);
            match place.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => retire(word, guard),
                // SAFETY: nobody else has the copy of what was taken out meanwhile.
                Err(_) => unsafe { NodeHeap::free(copy) },
            }
        }
    }

    /// How many there are.
    pub(crate) fn count(&self, memory: &NodeHeap) -> u64 {
        let table = u64::from(!self.table.load(Ordering::Relaxed).is_null());
        memory.live_of(Kind::Hot).0.max(0).cast_unsigned().saturating_sub(table)
    }

    /// Frees all.
    ///
    /// # Safety
    /// Nobody else uses the tree, or will.
    pub(crate) unsafe fn free(&self, guard: &Guard<'_>) {
        let Some(table) = self.table(guard) else { return };
        for place in table.places() {
            let node = tagged_ptr::address(place.swap(std::ptr::null_mut(), Ordering::AcqRel));
            if let Some(node) = NonNull::new(node) {
                // SAFETY: as the caller promises; the place led to the entry alone.
                unsafe { NodeHeap::free(node) };
            }
        }
        if let Some(node) = NonNull::new(self.table.swap(std::ptr::null_mut(), Ordering::AcqRel)) {
            // SAFETY: as the caller promises.
            unsafe { NodeHeap::free(node) };
        }
    }
}

/// A copy of a record that nothing leads to yet.
fn new_entry(key: &[u8], value: &[u8], uses: u32, memory: &NodeHeap) -> Result<NonNull<u8>, OutOfMemory> {
    let bytes = size_of::<EntryHeader>() + key.len() + value.len();
    // SAFETY: the tree's memory outlives what is in its table; header, key and value are written into the room asked for.
    unsafe {
        let node = memory.allocate(bytes, Kind::Hot)?;
        let header = node.cast::<EntryHeader>().as_ptr();
        (&raw mut (*header).key_len).write(key.len() as u32);
        (&raw mut (*header).value_len).write(value.len() as u32);
        (&raw mut (*header).uses).write(AtomicU32::new(uses));
        let behind = node.as_ptr().add(size_of::<EntryHeader>());
        behind.copy_from_nonoverlapping(key.as_ptr(), key.len());
        behind
            .add(key.len())
            .copy_from_nonoverlapping(value.as_ptr(), value.len());
        Ok(node)
    }
}

fn new_table(sets: usize, memory: &NodeHeap) -> Result<NonNull<u8>, OutOfMemory> {
    let places = sets * WAYS;
    let bytes = size_of::<NodeHeader>() + places * size_of::<AtomicPtr<u8>>();
    // SAFETY: the tree's memory outlives its table; each place is written into the room asked for.
    unsafe {
        let node = memory.allocate(bytes, Kind::Hot)?;
        let first = node.add(size_of::<NodeHeader>()).cast::<AtomicPtr<u8>>();
        for index in 0..places {
            first.add(index).write(AtomicPtr::new(std::ptr::null_mut()));
        }
        Ok(node)
    }
}

/// What is at a place.
fn entry_at<'g>(place: &AtomicPtr<u8>, guard: &'g Guard<'_>) -> Option<HotRecord<'g>> {
    let node = NonNull::new(tagged_ptr::address(load(place, guard)))?;
    // SAFETY: an entry is retired once no place leads to it, and the guard keeps it.
    Some(unsafe { HotRecord::from_node(node) })
}

/// Where a key is, what leads to it, and the entry.
#[inline]
fn place_of<'g>(
    table: Table<'g>,
    key: &[u8],
    hash: u64,
    guard: &'g Guard<'_>,
) -> Option<(&'g AtomicPtr<u8>, *mut u8, HotRecord<'g>)> {
    table.set(hash).iter().find_map(|place| {
        let word = load(place, guard);
        let node = NonNull::new(tagged_ptr::address(word))?;
        if with_mark(node.as_ptr(), hash) != word {
            return None;
        }
        // SAFETY: as in `entry_at`.
        let entry = unsafe { HotRecord::from_node(node) };
        (entry.key() == key).then_some((place, word, entry))
    })
}

fn take_out(place: &AtomicPtr<u8>, guard: &Guard<'_>) {
    retire(place.swap(std::ptr::null_mut(), Ordering::AcqRel), guard);
}

/// Retires what a place led to, which whoever took it from there does once.
fn retire(word: *mut u8, guard: &Guard<'_>) {
    if let Some(node) = NonNull::new(tagged_ptr::address(word)) {
        // SAFETY: nothing leads to the node any more.
        unsafe { NodeHeap::retire(node, guard) };
    }
}

#[cfg(test)]
mod tests;
