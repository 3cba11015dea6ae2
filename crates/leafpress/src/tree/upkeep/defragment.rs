//! Passes over all leaves: to compress them anew, and to move them together.
//!
//! A pass takes its nodes from a part of the heap that nothing else uses, so that it leaves them side by side in key order; what
//! they leave behind is whole pages, most of which go back to the system as the pass goes on.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::mem::node::Kind;
use crate::mem::room::TryGrow;
use crate::reclaim::memory::{Memory, OwnPart};
use crate::tree::compact::live_settings::LiveSettings;
use crate::tree::core::Core;
use crate::tree::error::Error;
use crate::tree::index::shard::Shard;
use crate::tree::local::Count;
use crate::tree::node::landing::NewLanding;
use crate::tree::node::large::{DeadLarge, Large, NewLarge};
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::write::{Cut, Locked, WritePath};

/// Which leaves are compacted in a pass; the others are only moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Those with a landing buffer or an older dictionary.
    Landed,
    /// Those with an older dictionary.
    Dictionary,
    /// All, and all their frames: these are to have another length.
    Anew,
    /// None.
    Defragment,
}

/// Moved bytes after which the pages left behind are returned: one part in so many of what is held, fewer where a cache has a bound to keep,
/// but at least these.
const STRIDE: (u64, u64) = (16, 1 << 20);
const BOUNDED_STRIDE: (u64, u64) = (128, 512 << 10);

impl Core {
    /// Takes each leaf's lock in turn, and compacts or moves the leaf. The error is the first of those that leaves could not be compacted
    /// for.
    pub(crate) fn sweep(&self, sweep: Sweep) -> Result<(), Error> {
        let _sweeping = self.background.sweeping.lock();
        let part = self.memory.defragmentation_part();
        let held = self.memory.held();
        // Only a cache's records have marks.
        let (part_of_stride, least) = if self.marks { BOUNDED_STRIDE } else { STRIDE };
        let stride = ((held.bytes(Kind::Leaf) + held.bytes(Kind::Large)) / part_of_stride).max(least);
        let mut moved = 0;
        let mut first_error = None;
        self.background.interpolation_renewed();
        if matches!(sweep, Sweep::Landed | Sweep::Anew) {
            self.background.short_frames.store(0, Ordering::Relaxed);
        }
        for shard in &self.shards {
            let mut key = Vec::new();
            loop {
                let guard = self.memory.enter()?;
                let work = WritePath {
                    core: self,
                    shard,
                    context: self.contexts.get()?,
                    guard: &guard,
                };
                if !matches!(sweep, Sweep::Dictionary | Sweep::Anew) && self.background.stopped.load(Ordering::Relaxed)
                {
                    return Ok(());
                }
                let (leaf, end) = shard.descend_up(&key, &guard)?;
                let locked = Locked::lock(leaf);
                if leaf.header().obsolete.load(Ordering::Relaxed) {
                    continue;
                }
                match work.sweep_locked(&locked, &key, sweep) {
                    Ok(Some(bytes)) => moved += bytes,
                    Ok(None) => continue,
                    // Without memory for the next leaf's copy nothing is gained by going on.
                    Err(error) if sweep == Sweep::Defragment => return Err(error),
                    // The leaf stays as it is; others may be compacted.
                    Err(error) => _ = first_error.get_or_insert(error),
                }
                drop(locked);
                if moved >= stride {
                    moved = 0;
                    drop(guard);
                    self.memory.reclaim_all();
                    self.memory.return_free_but_of(&part);
                }
                match end {
                    Some(end) => key = end,
                    None => break,
                }
            }
            if Memory::CAN_BE_DEFRAGMENTED || cfg!(any(shuttle, miri)) {
                self.move_inner(shard, &part);
            }
            // The table was where the nodes were. Where there is no memory for another, the way goes down from the root.
            self.renew_interpolation_of(shard);
        }
        if let Some(temperatures) = &self.temperatures {
            temperatures.hot.relocate(&self.memory, &self.memory.enter()?);
        }
        self.flush_retired();
        self.memory.return_free(&part, sweep == Sweep::Defragment);
        self.memory.make_huge_pages();
        first_error.map_or(Ok(()), Err)
    }

    /// Moves the shard's inner nodes, so that they do not keep the pages around them. What cannot be moved stays where it is.
    fn move_inner(&self, shard: &Shard, part: &OwnPart) {
        let mut key = Some(Vec::new());
        while let Some(from) = key {
            let guard = self.memory.enter();
            key = guard
                .map_err(Error::from)
                .and_then(|guard| shard.move_inner(&from, part, &self.memory, &guard))
                .unwrap_or_default();
        }
    }
}

impl<'w> WritePath<'w> {
    /// Bytes that were moved; nothing when the leaf is no longer in the tree. `key` is any key of its range.
    fn sweep_locked(&self, locked: &Locked<'w>, key: &[u8], sweep: Sweep) -> Result<Option<u64>, Error> {
        let leaf = locked.leaf;
        let temperature = leaf.temperature();
        let current = self
            .core
            .dictionary_for(temperature)
            .map_or(std::ptr::null(), std::ptr::from_ref);
        let compacts = match sweep {
            Sweep::Landed => {
                leaf.landing_locked().is_some()
                    || !std::ptr::eq(current, leaf.header().dictionary)
                    || has_short_frames(leaf, &self.core.settings)
            }
            Sweep::Dictionary => !std::ptr::eq(current, leaf.header().dictionary),
            Sweep::Anew => true,
            Sweep::Defragment => false,
        };
        if !compacts {
            return match self.move_locked(locked, key) {
                // A leaf that cannot be moved stays where it is; those to be compacted may still be.
                Err(Error::OutOfMemory { .. }) if sweep != Sweep::Defragment => Ok(Some(0)),
                moved => moved,
            };
        }
        let bytes = leaf.header().node.asked() as u64;
        let mut tools = self.core.take_tools(self.context, self.guard)?;
        let cut = if sweep == Sweep::Anew || has_short_frames(leaf, &self.core.settings) {
            Cut::Anew
        } else {
            Cut::Changed(self.core.settings.now())
        };
        let compacted = self.compact_frames_locked(locked, None, key, &[], cut, temperature, &mut tools);
        self.context.return_tools(tools, self.guard);
        Ok(compacted?.then_some(bytes))
    }

    /// Puts a copy of the leaf, its landing buffer and its large values in its place. Returns the bytes moved, nothing when the leaf is
    /// no longer in the tree. `key` is any key of its range.
    fn move_locked(&self, locked: &Locked<'w>, key: &[u8]) -> Result<Option<u64>, Error> {
        let leaf = locked.leaf;
        let mut larges = MovedLarges::default();
        // SAFETY: the caller holds the leaf's lock, and the memory outlives every node.
        let (new, landing) = unsafe { leaf.copy(&self.core.memory, &mut larges)? };
        // Dropped without being published, the copies are freed.
        if !self.shard.replace(leaf, new.leaf(), key, None, self.guard) {
            return Ok(None);
        }
        new.publish();
        landing.into_iter().for_each(NewLanding::publish);
        larges.copies.drain(..).for_each(NewLarge::publish);
        let bytes = leaf.header().node.asked() as u64 + larges.bytes;
        self.context.add(Count::CopiedBytes, bytes);
        self.retire_leaf(leaf);
        self.retire_large(&larges.left);
        Ok(Some(bytes))
    }
}

/// Whether a leaf's frames are half as long as they should be, or shorter, as writers leave them.
fn has_short_frames(leaf: Leaf<'_>, settings: &LiveSettings) -> bool {
    let now = settings.now();
    let (frames, bytes) = (leaf.frames(), leaf.header().inline_bytes as usize);
    leaf.temperature() == Temperature::Warm
        && now != settings.while_writing()
        && frames > 1
        && bytes < frames * (now.frame_bytes / 2)
}

/// Large values on their way from one place to another.
#[derive(Default)]
struct MovedLarges {
    left: Vec<DeadLarge>,
    copies: Vec<NewLarge>,
    bytes: u64,
}

impl MovedLarges {
    /// Where the value will be.
    ///
    /// # Safety
    /// `memory` outlives the copy.
    unsafe fn copy(&mut self, large: Large<'_>, memory: &Memory) -> Result<NonNull<u8>, Error> {
        // SAFETY: as the caller promises.
        let Some(copy) = (unsafe { large.copy(memory)? }) else {
            return Ok(large.node());
        };
        let node = copy.large().node();
        self.left.try_push(large.dead())?;
        self.copies.try_push(copy)?;
        self.bytes += large.raw_len() as u64;
        Ok(node)
    }
}

impl<'g> Leaf<'g> {
    /// A leaf with the same records, unlocked, with a copy of the landing buffer, and copies of the large values of both.
    ///
    /// # Safety
    /// The caller holds the leaf's lock, and `memory` outlives the copies.
    unsafe fn copy(&self, memory: &Memory, larges: &mut MovedLarges) -> Result<(NewLeaf, Option<NewLanding>), Error> {
        let header = self.header();
        let (live_user_bytes, live) = (
            header.live_user_bytes.load(Ordering::Relaxed),
            header.live.load(Ordering::Relaxed),
        );
        // SAFETY: the caller keeps `memory` alive and others from writing; the copies get large values of their own before anybody
        // sees them.
        unsafe {
            let copy = self.copy_frames(live_user_bytes, live, memory)?;
            copy.leaf()
                .header()
                .landed
                .store(header.landed.load(Ordering::Relaxed), Ordering::Relaxed);
            copy.leaf()
                .exchange_larges(|large| larges.copy(Large::from_node(large), memory))?;
            let landing = match self.landing_locked() {
                None => None,
                Some(landing) => {
                    let landing = landing.copy(memory)?;
                    landing
                        .landing()
                        .exchange_larges(|large| larges.copy(Large::from_node(large), memory))?;
                    copy.leaf()
                        .header()
                        .landing
                        .store(landing.landing().as_ptr(), Ordering::Relaxed);
                    Some(landing)
                }
            };
            Ok((copy, landing))
        }
    }
}
