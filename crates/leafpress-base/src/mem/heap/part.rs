//! A part of a heap: its regions with their free blocks, and when pages of them go back to the system.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

// Not the tree's swapped primitives: no step that the model checker orders lies inside.
use crate::sync::plain::{Mutex, MutexGuard};

use crate::mem::heap::block::{Blocks, LEFT_OUT_BYTES, held_bytes, layout};
use crate::mem::region::Region;
use crate::mem::remote_free::RemoteFrees;

/// The first regions; from then on each is as large as all before it.
const MIN_REGION_BYTES: usize = 256 << 10;
const MAX_REGION_BYTES: usize = 64 << 20;
/// A part that others allocate from returns pages when it uses less than one part in so many of its peak.
const PEAK_FOR_USED: usize = 8;
/// Or when it stayed below half of its peak while so many times the peak was allocated: what writers replace comes and goes by the
/// hundred leaves, and a page that they are about to use again would be zeroed for them, after an interrupt of every thread.
const PEAKS_ALLOCATED: u64 = 2;

/// A part of a heap, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Part {
    room: Mutex<Room>,
    /// Blocks that threads freed which allocate from other parts.
    pub(super) remote_frees: RemoteFrees,
    /// Bytes that blocks used before and do not now. Stored under the lock.
    pub(super) room_bytes: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Room {
    /// The lists of free blocks, once there is a region: some kilobytes, which a part that was emptied need not hold. A vector, for
    /// their allocation to be able to fail.
    blocks: Vec<Blocks>,
    regions: Vec<Region>,
    /// Bytes of all regions.
    mapped: usize,
    /// Bytes of blocks in use.
    pub(super) used: usize,
    /// The most that was in use since pages were last returned.
    pub(super) peak: usize,
    /// Before more than this is used, room is looked for in other parts.
    pub(super) limit: usize,
    /// Bytes of all blocks there ever were.
    pub(super) allocated: u64,
    /// The same, when half of the peak was last in use.
    allocated_at_half: u64,
    #[cfg(leafpress_asan)]
    quarantine: crate::mem::poison::Quarantine,
}

impl Part {
    /// The part's room, with what others have left behind freed.
    pub(super) fn lock(&self) -> Locked<'_> {
        let mut room = self.room.lock();
        for (block, asked) in self.remote_frees.take() {
            // SAFETY: whoever left the block behind had it to free.
            unsafe { room.free(block, asked) };
        }
        Locked { part: self, room }
    }

    /// One region at a time, for others to get at the lock in between.
    pub(super) fn return_pages(&self) {
        let mut next = 0;
        loop {
            let mut room = self.lock();
            if next == 0 {
                room.peak = room.used;
                // What has gone back is not taken again while others have room.
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
            // SAFETY: the region was handed over to `blocks` but for the same bytes, and the lock keeps its blocks as they are.
            for block in unsafe { blocks.iter_blocks(region.behind(LEFT_OUT_BYTES)) } {
                if !block.is_occupied() {
                    // SAFETY: nobody uses a free block but the heap, which keeps its links in the first bytes.
                    unsafe { region.return_pages(block.as_ptr(), rlsf::GRANULARITY) };
                }
            }
            next += 1;
        }
    }

    /// One at a time, for others to get at the lock in between.
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

    /// Bytes of the lists of free blocks.
    pub(super) fn tables_bytes(&self) -> usize {
        self.lock().blocks.len() * size_of::<Blocks>()
    }

    /// Resident bytes that no block uses. One region at a time, as above.
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

/// A part's room under its lock.
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
    pub(super) fn allocate(&mut self, asked: usize) -> Option<NonNull<u8>> {
        let layout = layout(asked)?;
        let free = self.blocks.first_mut().and_then(|blocks| blocks.allocate(layout));
        let block = match free {
            Some(block) => block,
            None => {
                self.grow(asked)?;
                self.blocks.first_mut()?.allocate(layout)?
            }
        };
        self.used += held_bytes(asked);
        self.allocated += held_bytes(asked) as u64;
        self.peak = self.peak.max(self.used);
        if self.used >= self.peak / 2 {
            self.allocated_at_half = self.allocated;
        }
        Some(block)
    }

    /// Whether pages that were in use at the peak are not likely to be needed again soon.
    pub(super) fn has_left_its_peak(&self) -> bool {
        let allocated_since = self.allocated - self.allocated_at_half;
        self.used < self.peak / PEAK_FOR_USED
            || self.used < self.peak / 2 && allocated_since >= PEAKS_ALLOCATED * self.peak as u64
    }

    /// # Safety
    /// `block` came from `allocate` of this room, for so many bytes, and is not used again.
    pub(super) unsafe fn free(&mut self, block: NonNull<u8>, asked: usize) {
        self.used -= held_bytes(asked);
        #[cfg(not(leafpress_asan))]
        // SAFETY: as the caller promises.
        unsafe {
            self.take_back(block, asked);
        }
        #[cfg(leafpress_asan)]
        {
            self.quarantine.add(block, asked);
            while let Some((block, asked)) = self.quarantine.overflow() {
                // SAFETY: it was freed, as its caller promised, and only the quarantine had it since.
                unsafe { self.take_back(block, asked) };
            }
        }
    }

    /// # Safety
    /// As of `free`.
    unsafe fn take_back(&mut self, block: NonNull<u8>, asked: usize) {
        if let (Some(blocks), Some(layout)) = (self.blocks.first_mut(), layout(asked)) {
            // SAFETY: as the caller promises.
            unsafe { blocks.deallocate(block, layout.align()) };
        }
    }

    fn grow(&mut self, asked: usize) -> Option<()> {
        self.regions.try_reserve(1).ok()?;
        if self.blocks.is_empty() {
            self.blocks.try_reserve_exact(1).ok()?;
            self.blocks.push(Blocks::new());
        }
        let bytes = self.mapped.clamp(MIN_REGION_BYTES, MAX_REGION_BYTES);
        debug_assert!(2 * asked <= bytes, "a list of sizes may be passed over");
        let region = Region::map(bytes)?;
        // SAFETY: the region is ours, unused, and unmapped only after the blocks are gone.
        unsafe {
            self.blocks
                .first_mut()?
                .insert_free_block_ptr(region.behind(LEFT_OUT_BYTES))
        }?;
        self.mapped += bytes;
        self.regions.push(region);
        Some(())
    }
}
