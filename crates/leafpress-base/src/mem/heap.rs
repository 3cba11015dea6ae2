//! A tree's own heap for its nodes.
//!
//! Leaves have any size, and the size classes of the usual allocators, 25% apart, would waste a ninth of them. Here a block is
//! rounded up to a cache line and freed neighbours join (TLSF: Masmano, Ripoll, Crespo, Real, ECRTS 2004; the `rlsf` crate). All blocks in its regions
//! begin at the same place of a line, 16 bytes before its end, so that behind a node's header of 16 bytes a line begins. The heap
//! is the tree's, so that dropping the tree gives everything back, and it has several parts, each with its own lock, that threads
//! share out among them. Its memory comes from the system in regions that double in size; they ask for huge pages where
//! these cost no memory, since a read of a large tree otherwise misses the TLB at every step.
//!
//! Leaves are replaced by others of another size all the time, which leaves holes, a tenth or more of the heap. When they have
//! become too many, leaves are moved together (see `defragment.rs`), and the whole pages among the free blocks go back to the system.

mod block;
mod part;

use std::alloc::{GlobalAlloc, System};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

// Not the tree's swapped primitives: no step that the model checker orders lies inside.
use crate::sync::plain::Mutex;

use self::block::{SYSTEM_BYTES, layout, mapped_bytes};
use self::part::Part;
use super::mapping::{map, unmap};

pub use self::block::{can_be_moved, held_bytes};

/// Parts of a heap that threads share out among them.
const PARTS: usize = 8;
/// Two more, that leaves are moved to in turn when the heap is defragmented.
const ALL_PARTS: usize = PARTS + 2;
/// Stands for mappings of their own among the parts: large blocks. The C library would leave holes between those of all lengths, and keep what
/// was freed.
const MAPPED: u8 = u8::MAX;
/// Stands for the C library, where the system gives no more mappings.
const SYSTEM: u8 = u8::MAX - 1;

/// A part grows by this much before its allocators look for room elsewhere again.
const GROW_BYTES: usize = 64 << 10;
/// Room that a part has touched and does not use is worth going there from this much on.
const MIN_ROOM_BYTES: usize = 64 << 10;
/// A part does not return pages by itself before it has used this much.
const MIN_RETURN_BYTES: usize = 1 << 20;
/// The same for a part that leaves are moved to: what they leave is not filled by others before the next time.
const MIN_RETURN_MOVED_BYTES: usize = 64 << 10;
/// A heap with less room that has become free than this is in good order.
const TIDY_FREE_BYTES: usize = 32 << 10;
/// The same for a caller who has the time: a page or two of a few regions' ends.
const SETTLED_FREE_BYTES: usize = 16 << 10;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static PART: Cell<u8> = Cell::new((THREADS.fetch_add(1, Ordering::Relaxed) % PARTS) as u8);
}

/// The calling thread allocates from this part from now on. Returns the one it allocated from so far.
pub fn allocate_from(part: u8) -> u8 {
    // A thread that is being torn down has lost its number.
    PART.try_with(|own| own.replace(part)).unwrap_or_default()
}

/// A heap. What is allocated from it is gone when it is dropped, blocks of the system's excepted.
#[derive(Default)]
pub struct Heap {
    parts: [OnceLock<Vec<Part>>; ALL_PARTS],
    /// Where the threads of each part allocate now: one more than the part's number, or 0 for their own.
    moved_out: [AtomicU8; PARTS],
    /// The part that leaves are moved to next, or now, which nobody else is to allocate from: one more than its number, or 0 for the first.
    reserved: AtomicU8,
    /// Resident bytes that no block used, and bytes that blocks used, when pages were last returned, if all was in good order then; else nothing.
    left: Mutex<(usize, usize)>,
    /// Once nodes were moved together: bytes of all blocks there had ever been then, or when this was last looked at.
    moved: Mutex<Option<u64>>,
}

impl Heap {
    /// Makes the part on first use; a vector, for its allocation to be able to fail.
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

    /// A block and the part it is from.
    pub fn allocate(&self, bytes: usize) -> Option<(NonNull<u8>, u8)> {
        if bytes >= SYSTEM_BYTES {
            return match map(mapped_bytes(bytes)) {
                Some(block) => Some((block.cast(), MAPPED)),
                // SAFETY: a node is never empty.
                None => NonNull::new(unsafe { System.alloc(layout(bytes)?) }).map(|block| (block, SYSTEM)),
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

    /// The part that the calling thread allocates from.
    fn own_part(&self) -> u8 {
        let part = PART.try_with(Cell::get).unwrap_or_default();
        match self.moved_out.get(usize::from(part)) {
            Some(moved_out) => moved_out.load(Ordering::Relaxed).checked_sub(1).unwrap_or(part),
            None => part,
        }
    }

    /// Has the calling thread allocate from the part with the most room from now on, in place of `part`, which would have to grow; returns
    /// that part. Else each part would hold what it used at most, while blocks wander from part to part with those who replace them.
    #[cold]
    fn move_out(&self, part: u8) -> Option<u8> {
        let home = PART.try_with(Cell::get).unwrap_or_default();
        // Whoever moves leaves together stays where they are to be.
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

    /// Keeps a part for leaves that are moved together.
    fn reserve(&self, part: u8) {
        self.reserved.store(part + 1, Ordering::Relaxed);
        for moved_out in &self.moved_out {
            let _ = moved_out.compare_exchange(part + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// # Safety
    /// `block` came from `allocate(asked)` of this heap with this part, and is not used again.
    pub unsafe fn free(&self, block: NonNull<u8>, asked: usize, part: u8) {
        let Some(layout) = layout(asked) else { return };
        match part {
            // SAFETY: as the caller promises; the length is the one it was mapped with.
            MAPPED => return unsafe { unmap(block, mapped_bytes(asked)) },
            // SAFETY: as the caller promises; the layout is the one it was allocated with.
            SYSTEM => return unsafe { System.dealloc(block.as_ptr(), layout) },
            _ => {}
        }
        let is_own = self.own_part() == part;
        let Some(made) = self.part(part) else { return };
        // SAFETY: as the caller promises.
        if !is_own && !unsafe { made.remote_frees.add(block, asked) } {
            return;
        }
        let mut room = made.lock();
        if is_own {
            // SAFETY: as above.
            unsafe { room.free(block, asked) };
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

    /// The part to move leaves to: of two, the one that holds less.
    pub fn defragmentation_part(&self) -> u8 {
        let defragmented = PARTS as u8..ALL_PARTS as u8;
        let part = defragmented
            .min_by_key(|&part| self.used_of(part))
            .unwrap_or(PARTS as u8);
        self.reserve(part);
        part
    }

    /// Whether the holes between nodes have become worth the work of moving leaves together: a sixteenth of what is used, by what
    /// has been freed since that was last done.
    pub fn is_fragmented(&self) -> bool {
        let (mut used, mut freed) = (0, 0);
        for part in self.made_parts() {
            let room = part.lock();
            used += room.used;
            freed += room.peak - room.used;
        }
        freed > TIDY_FREE_BYTES.max(used / 16)
    }

    /// The same for a caller who has the time: a sixty-fourth, by what is resident, which the system knows, and more than the last
    /// time left.
    pub fn can_be_defragmented(&self) -> bool {
        let (used, holes) = self.used_and_holes();
        holes > SETTLED_FREE_BYTES.max(used / 64)
    }

    /// Whether what is resident and not used has become a sixteenth of what is used: slower than [`Heap::is_fragmented`], and sees the
    /// holes that blocks of other lengths come and go between.
    pub fn has_holes(&self) -> bool {
        let (used, holes) = self.used_and_holes();
        holes > TIDY_FREE_BYTES.max(used / 16)
    }

    /// Bytes that are used, and those of holes that were not there after all leaves were last moved together.
    fn used_and_holes(&self) -> (usize, usize) {
        let (mut used, mut free) = (0, 0);
        for part in self.made_parts() {
            used += part.lock().used;
            free += part.free_bytes();
        }
        let (left, used_then) = *self.left.lock();
        // As large a share of what is used now is taken to be out of reach.
        let left = (left as u128 * used as u128 / used_then.max(1) as u128).min(left as u128) as usize;
        (used, free.saturating_sub(left))
    }

    /// Nodes have just been moved to `part`. What others leave there is theirs to fill.
    pub fn moved_to(&self, part: u8) {
        let others = (PARTS as u8..ALL_PARTS as u8).filter(|&other| other != part);
        others.for_each(|other| self.reserve(other));
        *self.moved.lock() = Some(self.allocated());
    }

    /// Whether nodes are replaced so fast that to move them together would soon be undone: since this was last asked, or they were last
    /// moved, as much was allocated as is used.
    pub fn is_rewritten(&self) -> bool {
        let mut moved = self.moved.lock();
        let Some(allocated_before) = &mut *moved else {
            return false;
        };
        let used: usize = self.made_parts().map(|part| part.lock().used).sum();
        let allocated = self.allocated();
        allocated - std::mem::replace(allocated_before, allocated) >= used as u64
    }

    /// Bytes that blocks of the part use.
    fn used_of(&self, part: u8) -> usize {
        let made = self.parts.get(usize::from(part)).and_then(OnceLock::get);
        made.map_or(0, |made| made.iter().map(|part| part.lock().used).sum())
    }

    /// Bytes of all blocks there ever were.
    pub fn allocated(&self) -> u64 {
        self.made_parts().map(|part| part.lock().allocated).sum()
    }

    /// Bytes of all blocks that ever came from other parts than this.
    pub fn allocated_but_from(&self, part: u8) -> u64 {
        self.made_parts_but(part).map(|part| part.lock().allocated).sum()
    }

    /// Gives the whole pages among the free blocks of all parts but one back to the system.
    pub fn return_pages_but_of(&self, part: u8) {
        self.made_parts_but(part).for_each(Part::return_pages);
    }

    /// Gives the whole pages among all free blocks back to the system. If all nodes have just been moved, what stays cannot be helped,
    /// and is remembered.
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

    /// Makes huge pages of small ones where all of these are resident: what was touched page by page, because pages next to it had
    /// gone back to the system before. A read of a large tree touches a page or two that no other has touched lately.
    pub fn make_huge_pages(&self) {
        self.made_parts().for_each(Part::make_huge_pages);
    }

    /// Memory that no block uses: pages that are not the system's again, and the heap's own tables.
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
