//! A part of a heap: its regions with their free blocks, and the return of pages to the system.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

// Uses the unchecked mutex: the model checker orders no step inside a part.
use crate::sync::plain::{Mutex, MutexGuard};

use crate::mem::heap::block::{Blocks, LEFT_OUT_BYTES, held_bytes, layout};
use crate::mem::region::Region;
use crate::mem::remote_free::RemoteFrees;

/// Size of the first regions; later ones are as large as all earlier ones together.
const MIN_REGION_BYTES: usize = 256 << 10;
const MAX_REGION_BYTES: usize = 64 << 20;
/// A part that threads allocate from returns pages when it uses less than `1 / PEAK_FOR_USED` of its peak.
const PEAK_FOR_USED: usize = 8;
/// It also does when its use stayed below half of its peak while `PEAKS_ALLOCATED` times the peak was allocated:
/// writers free and allocate hundreds of leaves at a time, and a page returned too early would be zeroed again, after
/// an interrupt of every thread.
const PEAKS_ALLOCATED: u64 = 2;

/// A part of a heap, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Part {
    room: Mutex<Room>,
    /// Blocks freed by threads that allocate from other parts.
    pub(super) remote_frees: RemoteFrees,
    /// Bytes that blocks used before and do not use now. Stored under the lock.
    pub(super) room_bytes: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Room {
    /// The free lists, once there is a region: some kilobytes, which an emptied part need not hold. They are in a
    /// vector because their allocation must be able to fail.
    blocks: Vec<Blocks>,
    regions: Vec<Region>,
    /// Bytes of all regions.
    mapped: usize,
    /// Bytes of blocks in use.
    pub(super) used: usize,
    /// Maximum of `used` since pages were last returned.
    pub(super) peak: usize,
    /// Before `used` exceeds this, threads look for room in other parts.
    pub(super) limit: usize,
    /// Cumulative bytes of all allocations.
    pub(super) allocated: u64,
    /// Value of `allocated` when half of the peak was last in use.
    allocated_at_half: u64,
    #[cfg(leafpress_asan)]
    quarantine: crate::mem::poison::Quarantine,
}

impl Part {
    /// Locks the part, and frees the blocks that other threads left on the list of remote frees.
    pub(super) fn lock(&self) -> Locked<'_> {
        let mut room = self.room.lock();
        for (block, requested_bytes) in self.remote_frees.take() {
            // SAFETY: the thread that put the block on the list owned it and gave it up.
            unsafe { room.free(block, requested_bytes) };
        }
        Locked { part: self, room }
    }

    /// Returns pages of one region at a time, so that other threads can take the lock in between.
    pub(super) fn return_pages(&self) {
        let mut next = 0;
        loop {
            let mut room = self.lock();
            if next == 0 {
                room.peak = room.used;
                // Threads prefer other parts to growing this one into returned pages again.
                room.limit = room.used;
                room.allocated_at_half = room.allocated;
            }
            if room.used == 0 {
                *room = Room {
                    allocated: room.allocated,
                    allocated_at_half: room.allocated,
                    ..Room::default()
                };
            }
            let (Some(region), Some(blocks)) = (room.regions.get(next), room.blocks.first()) else {
                return;
            };
            // SAFETY: the region was added to `blocks` without the same bytes at its start, and the lock prevents
            // changes of its blocks.
            for unused in unsafe { blocks.unused_in(region.behind(LEFT_OUT_BYTES)) } {
                // SAFETY: the bytes lie in the region, and nothing uses them.
                unsafe { region.return_pages(unused) };
            }
            next += 1;
        }
    }

    /// Handles one region at a time, so that other threads can take the lock in between.
    pub(super) fn make_huge_pages(&self) {
        let mut next = 0;
        loop {
            let room = self.lock();
            match room.regions.get(next) {
                Some(region) if region.make_huge_page() => {}
                Some(_) => next += 1,
                None => return,
            }
        }
    }

    /// Returns the bytes of the free lists.
    pub(super) fn tables_bytes(&self) -> usize {
        self.lock().blocks.len() * size_of::<Blocks>()
    }

    /// Returns the resident bytes that no block uses; locks for one region at a time.
    pub(super) fn free_bytes(&self) -> usize {
        let (mut resident, mut next) = (0, 0);
        loop {
            let room = self.lock();
            let Some(region) = room.regions.get(next) else {
                return usize::saturating_sub(resident, room.used);
            };
            resident += region.resident_bytes();
            next += 1;
        }
    }
}

/// A part's regions and blocks under its lock.
pub(super) struct Locked<'p> {
    part: &'p Part,
    room: MutexGuard<'p, Room>,
}

impl Deref for Locked<'_> {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Room {
        &mut self.room
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let room_bytes = self.room.peak - self.room.used;
        self.part.room_bytes.store(room_bytes, Ordering::Relaxed);
    }
}

impl Room {
    pub(super) fn allocate(&mut self, requested_bytes: usize) -> Option<NonNull<u8>> {
        let layout = layout(requested_bytes)?;
        let free = self
            .blocks
            .first_mut()
            .and_then(|blocks| blocks.allocate(layout.size()));
        let block = match free {
            Some(block) => block,
            None => {
                self.grow(requested_bytes)?;
                self.blocks.first_mut()?.allocate(layout.size())?
            }
        };
        self.used += held_bytes(requested_bytes);
        self.allocated += held_bytes(requested_bytes) as u64;
        self.peak = self.peak.max(self.used);
        if self.used >= self.peak / 2 {
            self.allocated_at_half = self.allocated;
        }
        Some(block)
    }

    /// Returns whether the pages in use at the peak are unlikely to be needed again soon.
    pub(super) fn has_left_its_peak(&self) -> bool {
        let allocated_since = self.allocated - self.allocated_at_half;
        self.used < self.peak / PEAK_FOR_USED
            || self.used < self.peak / 2 && allocated_since >= PEAKS_ALLOCATED * self.peak as u64
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` came from `allocate` of this part, for `requested_bytes` bytes, and is not used again.
    pub(super) unsafe fn free(&mut self, block: NonNull<u8>, requested_bytes: usize) {
        self.used -= held_bytes(requested_bytes);
        #[cfg(not(leafpress_asan))]
        // SAFETY: the caller does not use the block again.
        unsafe {
            self.take_back(block);
        }
        #[cfg(leafpress_asan)]
        {
            self.quarantine.add(block, requested_bytes);
            while let Some(block) = self.quarantine.overflow() {
                // SAFETY: the block was freed by its owner, and has been in the quarantine since.
                unsafe { self.take_back(block) };
            }
        }
    }

    /// Returns a block to the free lists.
    ///
    /// # Safety
    /// `block` came from `allocate` of this part, and is not used again.
    unsafe fn take_back(&mut self, block: NonNull<u8>) {
        if let Some(blocks) = self.blocks.first_mut() {
            // SAFETY: the block came from `blocks`, and the caller does not use it again.
            unsafe { blocks.free(block) };
        }
    }

    fn grow(&mut self, requested_bytes: usize) -> Option<()> {
        self.regions.try_reserve(1).ok()?;
        if self.blocks.is_empty() {
            self.blocks.try_reserve_exact(1).ok()?;
            self.blocks.push(Blocks::default());
        }
        let bytes = self.mapped.clamp(MIN_REGION_BYTES, MAX_REGION_BYTES);
        debug_assert!(2 * requested_bytes <= bytes, "a size class could be skipped");
        let region = Region::map(bytes)?;
        // SAFETY: the region is owned by this part, unused, and unmapped only after the blocks are dropped.
        unsafe { self.blocks.first_mut()?.add_region(region.behind(LEFT_OUT_BYTES)) }?;
        self.mapped += bytes;
        self.regions.push(region);
        Some(())
    }
}
