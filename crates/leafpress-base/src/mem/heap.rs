//! A tree's own heap for its nodes.
//!
//! Leaves have any size, and the size classes of general-purpose allocators, 25% apart, would waste a ninth of the
//! memory. Here a block is rounded up to a cache line and free neighbours are merged (see `tlsf.rs`). All blocks start
//! 16 bytes before the end of a cache line, so that a node's payload, after its header of 16 bytes, starts on a line.
//! The heap belongs to the tree, so that dropping the tree frees everything. It consists of several parts, each with
//! its own lock, among which threads are distributed. Its memory is mapped in regions that double in size; they request
//! huge pages where these cost no memory, since a read of a large tree otherwise misses the TLB at every step.
//!
//! Leaves are constantly replaced by others of another size, which leaves holes, a tenth of the heap or more. When
//! there are too many, leaves are moved together (see `defragment.rs`), and whole free pages are returned to the
//! system.

mod block;
mod part;

use std::alloc::{GlobalAlloc, System};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

// Uses the unchecked mutex: the model checker orders no step inside the heap.
use crate::sync::plain::Mutex;

use self::block::{SYSTEM_BYTES, layout, mapped_bytes};
use self::part::Part;
use super::mapping::{map, unmap};

pub use self::block::{can_be_moved, held_bytes};

/// Number of parts among which threads are distributed.
const PARTS: usize = 8;
/// All parts: two more, used alternately as the destination of leaves when the heap is defragmented.
const ALL_PARTS: usize = PARTS + 2;
/// Pseudo part of large blocks, which have a mapping of their own. The C library would leave holes between blocks of
/// different lengths, and keep freed ones.
const MAPPED: u8 = u8::MAX;
/// Pseudo part of blocks from the C library, used when the system refuses further mappings.
const SYSTEM: u8 = u8::MAX - 1;

/// A part grows by this many bytes before its threads look for room in other parts again.
const GROW_BYTES: usize = 64 << 10;
/// Minimum unused resident room that makes another part worth switching to.
const MIN_ROOM_BYTES: usize = 64 << 10;
/// Minimum of used bytes before a part returns pages by itself.
const MIN_RETURN_BYTES: usize = 1 << 20;
/// Like [`MIN_RETURN_BYTES`], for a destination part of defragmentation: holes there are not refilled before the next
/// pass.
const MIN_RETURN_MOVED_BYTES: usize = 64 << 10;
/// A heap with less newly freed room than this is not defragmented.
const TIDY_FREE_BYTES: usize = 32 << 10;
/// Like [`TIDY_FREE_BYTES`], for a caller that has time: a page or two at the ends of a few regions.
const SETTLED_FREE_BYTES: usize = 16 << 10;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PART: Cell<u8> = Cell::new((THREADS.fetch_add(1, Ordering::Relaxed) % PARTS) as u8);
}

/// Makes the calling thread allocate from this part from now on. Returns its previous part.
pub fn allocate_from(part: u8) -> u8 {
    // Thread-local storage may be gone in a thread that is ending.
    PART.try_with(|own| own.replace(part)).unwrap_or_default()
}

/// A heap. Dropping it frees everything that was allocated from it, except blocks of the C library.
#[derive(Default)]
pub struct Heap {
    parts: [OnceLock<Vec<Part>>; ALL_PARTS],
    /// Where the threads of each part allocate now: the part's number plus one, or 0 for their own part.
    moved_out: [AtomicU8; PARTS],
    /// The current or next destination part of defragmentation, from which no other thread should allocate: its number
    /// plus one, or 0 for the first.
    reserved: AtomicU8,
    /// Unused resident bytes and used bytes when pages were last returned after a complete defragmentation; else zeros.
    left: Mutex<(usize, usize)>,
    /// After a defragmentation: cumulative bytes allocated when it ended or when this was last checked.
    moved: Mutex<Option<u64>>,
}

impl Heap {
    /// Returns the part, created on first use. It is kept in a vector because its allocation must be able to fail.
    fn part(&self, part: u8) -> Option<&Part> {
        let cell = self.parts.get(usize::from(part))?;
        match cell.get() {
            Some(made) => made.first(),
            None => {
                let mut made = Vec::new();
                made.try_reserve_exact(1).ok()?;
                made.push(Part::default());
                cell.get_or_init(|| made).first()
            }
        }
    }

    /// Allocates a block; returns it and its part.
    pub fn allocate(&self, bytes: usize) -> Option<(NonNull<u8>, u8)> {
        if bytes >= SYSTEM_BYTES {
            return match map(mapped_bytes(bytes)) {
                Some(block) => Some((block.cast(), MAPPED)),
                // SAFETY: the layout is not empty, since a node is never empty.
                None => NonNull::new(unsafe { System.alloc_zeroed(layout(bytes)?) }).map(|block| (block, SYSTEM)),
            };
        }
        let part = self.own_part();
        let made = self.part(part)?;
        let mut room = made.lock();
        if room.used + held_bytes(bytes) > room.limit {
            drop(room);
            if let Some(other) = self.move_out(part) {
                let block = self.part(other)?.lock().allocate(bytes)?;
                return Some((block, other));
            }
            room = made.lock();
            room.limit = room.peak.max(room.used + held_bytes(bytes)) + GROW_BYTES;
        }
        Some((room.allocate(bytes)?, part))
    }

    /// Shortens a block in place, if it is a mapping of its own and stays one; returns whether it did.
    ///
    /// # Safety
    /// `block` came from `allocate(requested_bytes)` of this heap with this part, and what is behind its first
    /// `shorter` bytes is not used again.
    pub unsafe fn shorten(&self, block: NonNull<u8>, requested_bytes: usize, shorter: usize, part: u8) -> bool {
        if part != MAPPED || shorter < SYSTEM_BYTES {
            return false;
        }
        let (kept, all) = (mapped_bytes(shorter), mapped_bytes(requested_bytes));
        // SAFETY: the caller gives up what is behind `shorter` bytes of the mapping, and both lengths are whole pages.
        unsafe { unmap(block.add(kept), all - kept) };
        true
    }

    /// Returns the part that the calling thread allocates from.
    fn own_part(&self) -> u8 {
        let part = PART.try_with(Cell::get).unwrap_or_default();
        match self.moved_out.get(usize::from(part)) {
            Some(moved_out) => moved_out.load(Ordering::Relaxed).checked_sub(1).unwrap_or(part),
            None => part,
        }
    }

    /// Makes the calling thread allocate from the part with the most room instead of `part`, which would have to grow;
    /// returns that part. Otherwise each part would keep its own maximum, while blocks migrate between parts with the
    /// threads that replace them.
    #[cold]
    fn move_out(&self, part: u8) -> Option<u8> {
        let home = PART.try_with(Cell::get).unwrap_or_default();
        // A thread that defragments keeps allocating from the destination part.
        let moved_out = self.moved_out.get(usize::from(home))?;
        let reserved = self.reserved();
        let rooms = (0..).zip(&self.parts).filter_map(|(other, cell)| {
            let made = cell.get()?.first()?;
            Some((
                made.room_bytes.load(Ordering::Relaxed) + made.remote_frees.bytes(),
                other,
            ))
        });
        let (room, other) = rooms.filter(|&(_, other)| other != part && other != reserved).max()?;
        if room < MIN_ROOM_BYTES {
            return None;
        }
        moved_out.store(other + 1, Ordering::Relaxed);
        Some(other)
    }

    fn reserved(&self) -> u8 {
        let first = PARTS as u8;
        self.reserved.load(Ordering::Relaxed).checked_sub(1).unwrap_or(first)
    }

    /// Reserves a part as the destination of defragmentation.
    fn reserve(&self, part: u8) {
        self.reserved.store(part + 1, Ordering::Relaxed);
        for moved_out in &self.moved_out {
            let _ = moved_out.compare_exchange(part + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` came from `allocate(requested_bytes)` of this heap with this part, and is not used again.
    pub unsafe fn free(&self, block: NonNull<u8>, requested_bytes: usize, part: u8) {
        let Some(layout) = layout(requested_bytes) else { return };
        match part {
            // SAFETY: the caller gives up the block, which is a mapping of this length.
            MAPPED => return unsafe { unmap(block, mapped_bytes(requested_bytes)) },
            // SAFETY: the caller gives up the block, which the system allocator returned for this layout.
            SYSTEM => return unsafe { System.dealloc(block.as_ptr(), layout) },
            _ => {}
        }
        let is_own = self.own_part() == part;
        let Some(made) = self.part(part) else { return };
        // SAFETY: the caller gives up the block, which is a node's and therefore begins with a header.
        if !is_own && !unsafe { made.remote_frees.add(block, requested_bytes) } {
            return;
        }
        let mut room = made.lock();
        if is_own {
            // SAFETY: the block came from this part (`part` is the caller's promise) and is not used again.
            unsafe { room.free(block, requested_bytes) };
        }
        let has_too_much = if usize::from(part) < PARTS {
            room.peak >= MIN_RETURN_BYTES && room.has_left_its_peak()
        } else {
            room.peak >= MIN_RETURN_MOVED_BYTES && room.used < room.peak / 2
        };
        if has_too_much {
            drop(room);
            made.return_pages();
        }
    }

    /// Returns the destination part for defragmentation: of the two, the one that holds less.
    pub fn defragmentation_part(&self) -> u8 {
        let defragmented = PARTS as u8..ALL_PARTS as u8;
        let part = defragmented
            .min_by_key(|&part| self.used_of(part))
            .unwrap_or(PARTS as u8);
        self.reserve(part);
        part
    }

    /// Returns whether the holes between nodes are worth a defragmentation: a sixteenth of the used bytes, estimated
    /// from what was freed since the last one.
    pub fn is_fragmented(&self) -> bool {
        let (mut used, mut freed) = (0, 0);
        for part in self.made_parts() {
            let room = part.lock();
            used += room.used;
            freed += room.peak - room.used;
        }
        freed > TIDY_FREE_BYTES.max(used / 16)
    }

    /// Returns whether a caller that has time should defragment. As [`Heap::is_fragmented`], but the threshold is a
    /// sixty-fourth, measured by the resident memory reported by the system, and more than the last defragmentation
    /// left.
    pub fn can_be_defragmented(&self) -> bool {
        let (used, holes) = self.used_and_holes();
        holes > SETTLED_FREE_BYTES.max(used / 64)
    }

    /// Returns whether unused resident memory has reached a sixteenth of what is used: slower than
    /// [`Heap::is_fragmented`], and detects holes between which blocks of other lengths come and go.
    pub fn has_holes(&self) -> bool {
        let (used, holes) = self.used_and_holes();
        holes > TIDY_FREE_BYTES.max(used / 16)
    }

    /// Returns the used bytes, and the bytes of holes beyond those that the last complete defragmentation left.
    fn used_and_holes(&self) -> (usize, usize) {
        let (mut used, mut free) = (0, 0);
        for part in self.made_parts() {
            used += part.lock().used;
            free += part.free_bytes();
        }
        let (left, used_then) = *self.left.lock();
        // The unreclaimable share is assumed to scale with the used bytes.
        let left = (left as u128 * used as u128 / used_then.max(1) as u128).min(left as u128) as usize;
        (used, free.saturating_sub(left))
    }

    /// Records that nodes were moved to `part`. Holes in other parts are left for their threads to fill.
    pub fn moved_to(&self, part: u8) {
        let others = (PARTS as u8..ALL_PARTS as u8).filter(|&other| other != part);
        others.for_each(|other| self.reserve(other));
        *self.moved.lock() = Some(self.allocated());
    }

    /// Returns whether nodes are replaced so fast that a defragmentation would soon be undone: since the last call, or
    /// the last move, as much was allocated as is used.
    pub fn is_rewritten(&self) -> bool {
        let mut moved = self.moved.lock();
        let Some(allocated_before) = &mut *moved else {
            return false;
        };
        let used: usize = self.made_parts().map(|part| part.lock().used).sum();
        let allocated = self.allocated();
        allocated - std::mem::replace(allocated_before, allocated) >= used as u64
    }

    /// Returns the bytes that blocks of the part use.
    fn used_of(&self, part: u8) -> usize {
        let made = self.parts.get(usize::from(part)).and_then(OnceLock::get);
        made.map_or(0, |made| made.iter().map(|part| part.lock().used).sum())
    }

    /// Returns the cumulative bytes of all allocations.
    pub fn allocated(&self) -> u64 {
        self.made_parts().map(|part| part.lock().allocated).sum()
    }

    /// Returns the cumulative bytes of allocations from all parts but this.
    pub fn allocated_but_from(&self, part: u8) -> u64 {
        self.made_parts_but(part).map(|part| part.lock().allocated).sum()
    }

    /// Returns whole free pages of all parts but one to the system.
    pub fn return_pages_but_of(&self, part: u8) {
        self.made_parts_but(part).for_each(Part::return_pages);
    }

    /// Returns whole free pages to the system. If all nodes have just been moved, the remaining unused memory is
    /// recorded as unreclaimable.
    pub fn return_pages(&self, defragmented: bool) {
        self.made_parts().for_each(Part::return_pages);
        *self.left.lock() = if defragmented {
            let left = self.made_parts().map(Part::free_bytes).sum();
            let used = self.made_parts().map(|part| part.lock().used).sum();
            (left, used)
        } else {
            (0, 0)
        };
    }

    /// Collapses small pages into huge pages where all of them are resident: memory that was touched page by page
    /// because neighbouring pages had been returned to the system. A read of a large tree touches a page or two that no
    /// other read has touched lately, so huge pages save TLB misses.
    pub fn make_huge_pages(&self) {
        self.made_parts().for_each(Part::make_huge_pages);
    }

    /// Returns the bytes of memory that no block uses: resident free pages and the heap's own tables.
    pub fn free_bytes(&self) -> u64 {
        self.made_parts()
            .map(|part| (size_of::<Part>() + part.tables_bytes() + part.free_bytes()) as u64)
            .sum()
    }

    fn made_parts_but(&self, part: u8) -> impl Iterator<Item = &Part> {
        let others = (0..).zip(&self.parts).filter(move |&(other, _)| other != part);
        others.filter_map(|(_, cell)| cell.get()?.first())
    }

    fn made_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter_map(|cell| cell.get()?.first())
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(unsafe_code)]
mod tests;
