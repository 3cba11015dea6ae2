//! Passes over all leaves, which recompress them or move them together.
//!
//! A pass allocates its nodes from a part of the heap that nothing else uses, so that they are contiguous in key order;
//! the old nodes leave whole free pages, most of which are returned to the system during the pass.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::tree::compact::live_settings::LiveSettings;
use crate::tree::error::TreeError;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::node::landing::NewLanding;
use crate::tree::node::large::{DeadLarge, Large, NewLarge};
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::thread_state::Count;
use crate::tree::write::{Cut, Locked, WritePath};
use leafpress_base::mem::node::Kind;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::reclaim::node_heap::{NodeHeap, OwnPart, PartName};

/// Which leaves a pass compacts; the others are only moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Those with a landing buffer or an older dictionary.
    Landed,
    /// Those with an older dictionary.
    Dictionary,
    /// All of them, and all their frames, since the frame length has changed.
    Anew,
    /// None.
    Defragment,
}

/// The pages left behind are returned after a fraction of the held bytes was moved, at least the second number; the
/// fraction is smaller where a cache has a memory limit.
const STRIDE: (u64, u64) = (16, 1 << 20);
const BOUNDED_STRIDE: (u64, u64) = (128, 512 << 10);

/// A pass and its progress.
pub(crate) struct Pass {
    sweep: Sweep,
    part: PartName,
    /// Whether interpolation indexes are rebuilt after each shard, since they were allocated among the nodes.
    renews: bool,
    shard: usize,
    at: At,
    stride: u64,
    moved: u64,
    first_error: Option<TreeError>,
}

/// The next item of a shard.
enum At {
    /// The leaf with this key.
    Leaf(Vec<u8>),
    /// The inner nodes above this key.
    Inner(Vec<u8>),
    Interpolation,
}

/// What a pass did with a leaf.
enum Swept {
    /// The leaf is no longer in the tree: it was replaced by another.
    Gone,
    /// The leaf is done; its range ends before this key, if it has an end.
    Before(Option<Vec<u8>>),
}

/// What follows a step of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// All items are done; only the end of the pass is left.
    Last,
    /// The tree is being dropped.
    Stopped,
}

impl TreeInner {
    /// Takes each leaf's lock in turn, and compacts or moves the leaf. Returns the first error of a failed compaction.
    pub(crate) fn sweep(&self, sweep: Sweep) -> Result<(), TreeError> {
        let _sweeping = self.background.sweeping.lock();
        let mut pass = Pass::begin(self, sweep, true);
        let part = pass.part.enter();
        loop {
            match pass.step(self, &part)? {
                Step::More => {}
                Step::Last => return pass.end(self, &part),
                Step::Stopped => return Ok(()),
            }
        }
    }
}

impl Pass {
    /// Creates a pass. One that is run in one go rebuilds the interpolation indexes itself.
    pub(crate) fn begin(core: &TreeInner, sweep: Sweep, is_of_one_go: bool) -> Self {
        let part = core.memory.defragmentation_part();
        let held = core.memory.held();
        // Only a cache's records have marks.
        let (part_of_stride, least) = if core.marks { BOUNDED_STRIDE } else { STRIDE };
        let renews = is_of_one_go || NodeHeap::CAN_BE_DEFRAGMENTED;
        if renews {
            core.background.interpolation_renewed();
        }
        if matches!(sweep, Sweep::Landed | Sweep::Anew) {
            core.background.short_frames.store(0, Ordering::Relaxed);
        }
        Self {
            sweep,
            part,
            renews,
            shard: 0,
            at: At::Leaf(Vec::new()),
            stride: ((held.bytes(Kind::Leaf) + held.bytes(Kind::Large)) / part_of_stride).max(least),
            moved: 0,
            first_error: None,
        }
    }

    /// Processes the next leaf, inner nodes or table as a separate step.
    pub(crate) fn step_alone(&mut self, core: &TreeInner) -> Result<Step, TreeError> {
        let _sweeping = core.background.sweeping.lock();
        self.step(core, &self.part.enter())
    }

    /// Ends the pass as a separate step.
    pub(crate) fn end_alone(self, core: &TreeInner) -> Result<(), TreeError> {
        let _sweeping = core.background.sweeping.lock();
        let part = self.part.enter();
        self.end(core, &part)
    }

    fn step(&mut self, core: &TreeInner, part: &OwnPart) -> Result<Step, TreeError> {
        let Some(shard) = core.shards.get(self.shard) else {
            return Ok(Step::Last);
        };
        match std::mem::replace(&mut self.at, At::Interpolation) {
            At::Leaf(key) => {
                if !matches!(self.sweep, Sweep::Dictionary | Sweep::Anew)
                    && core.background.stopped.load(Ordering::Relaxed)
                {
                    return Ok(Step::Stopped);
                }
                match self.sweep_leaf(core, shard, &key, part)? {
                    Swept::Gone => self.at = At::Leaf(key),
                    Swept::Before(Some(end)) => self.at = At::Leaf(end),
                    Swept::Before(None) if NodeHeap::CAN_BE_DEFRAGMENTED || cfg!(any(shuttle, miri)) => {
                        self.at = At::Inner(Vec::new());
                    }
                    Swept::Before(None) => {}
                }
            }
            At::Inner(key) => {
                // Inner nodes are moved too, so that they do not keep their pages resident. Those that cannot be moved
                // stay.
                let guard = core.memory.enter();
                let next = guard
                    .map_err(TreeError::from)
                    .and_then(|guard| shard.move_inner(&key, part, &core.memory, &guard))
                    .unwrap_or_default();
                if let Some(next) = next {
                    self.at = At::Inner(next);
                }
            }
            At::Interpolation => {
                // If there is no memory for another table, searches descend from the root.
                if self.renews {
                    core.renew_interpolation_of(shard);
                }
                self.shard += 1;
                self.at = At::Leaf(Vec::new());
            }
        }
        Ok(Step::More)
    }

    /// Compacts or moves the leaf that holds `key`.
    fn sweep_leaf(&mut self, core: &TreeInner, shard: &Shard, key: &[u8], part: &OwnPart) -> Result<Swept, TreeError> {
        let guard = core.memory.enter()?;
        let work = WritePath {
            core,
            shard,
            context: core.contexts.get()?,
            guard: &guard,
        };
        let (leaf, end) = shard.descend_up(key, &guard)?;
        let locked = Locked::lock(leaf);
        if leaf.header().obsolete.load(Ordering::Relaxed) {
            return Ok(Swept::Gone);
        }
        match work.sweep_locked(&locked, key, self.sweep) {
            Ok(Some(bytes)) => self.moved += bytes,
            Ok(None) => return Ok(Swept::Gone),
            // If there is no memory for the next leaf's copy, continuing gains nothing.
            Err(error) if self.sweep == Sweep::Defragment => return Err(error),
            // This leaf stays unchanged; others may be compacted.
            Err(error) => _ = self.first_error.get_or_insert(error),
        }
        drop(locked);
        if self.moved >= self.stride {
            self.moved = 0;
            drop(guard);
            core.memory.reclaim_all();
            core.memory.return_free_but_of(part);
        }
        Ok(Swept::Before(end))
    }

    /// Ends the pass after all shards. Returns the first error of a failed compaction.
    fn end(self, core: &TreeInner, part: &OwnPart) -> Result<(), TreeError> {
        if let Some(temperatures) = &core.temperatures {
            temperatures.hot.relocate(&core.memory, &core.memory.enter()?);
        }
        core.flush_retired();
        core.memory.return_free(part, self.sweep == Sweep::Defragment);
        core.memory.make_huge_pages();
        self.first_error.map_or(Ok(()), Err)
    }
}

impl<'w> WritePath<'w> {
    /// Compacts or moves the leaf, and returns the bytes moved; `None` when the leaf is no longer in the tree. `key` is
    /// any key of its range.
    fn sweep_locked(&self, locked: &Locked<'w>, key: &[u8], sweep: Sweep) -> Result<Option<u64>, TreeError> {
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
                Err(TreeError::OutOfMemory { .. }) if sweep != Sweep::Defragment => Ok(Some(0)),
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
        self.core.return_tools(self.context, tools, self.guard);
        Ok(compacted?.then_some(bytes))
    }

    /// Replaces the leaf, its landing buffer and its large values by copies. Returns the bytes moved, `None` when the
    /// leaf is no longer in the tree. `key` is any key of its range.
    fn move_locked(&self, locked: &Locked<'w>, key: &[u8]) -> Result<Option<u64>, TreeError> {
        let leaf = locked.leaf;
        let mut larges = MovedLarges::default();
        // SAFETY: the caller holds the leaf's lock, and the memory outlives every node.
        let (new, landing) = unsafe { leaf.copy(&self.core.memory, &mut larges)? };
        // The copies are freed when dropped without being published.
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

/// Returns whether a leaf's frames have at most half of the target length, as writers leave them.
fn has_short_frames(leaf: Leaf<'_>, settings: &LiveSettings) -> bool {
    let now = settings.now();
    let (frames, bytes) = (leaf.frames(), leaf.header().inline_bytes as usize);
    leaf.temperature() == Temperature::Warm
        && now != settings.while_writing()
        && frames > 1
        && bytes < frames * (now.frame_bytes / 2)
}

/// The copies of large values during a move.
#[derive(Default)]
struct MovedLarges {
    left: Vec<DeadLarge>,
    copies: Vec<NewLarge>,
    bytes: u64,
}

impl MovedLarges {
    /// Copies the value, and returns the address to store.
    ///
    /// # Safety
    /// `memory` outlives the copy.
    unsafe fn copy(&mut self, large: Large<'_>, memory: &NodeHeap) -> Result<NonNull<u8>, TreeError> {
        // SAFETY: the caller guarantees that `memory` outlives the copy.
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
    /// Returns a leaf with the same records, unlocked, with copies of the landing buffer and of the large values of
    /// both.
    ///
    /// # Safety
    /// The caller holds the leaf's lock, and `memory` outlives the copies.
    unsafe fn copy(
        &self,
        memory: &NodeHeap,
        larges: &mut MovedLarges,
    ) -> Result<(NewLeaf, Option<NewLanding>), TreeError> {
        let header = self.header();
        let (live_user_bytes, live) = (
            header.live_user_bytes.load(Ordering::Relaxed),
            header.live.load(Ordering::Relaxed),
        );
        // SAFETY: the caller guarantees that `memory` outlives the copies, and holds the lock, so the leaf does not
        // change; the copies get their own large values before they are published.
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
