//! Passes over all leaves, which recompress them or move them together.
//!
//! A pass allocates its nodes from a part of the heap that nothing else uses, so that they are contiguous in key order;
//! the old nodes leave whole free pages, most of which are returned to the system during the pass.

use std::sync::atomic::Ordering;

use crate::tree::compact::live_settings::LiveSettings;
use crate::tree::error::TreeError;
use crate::tree::index::shard::Shard;
use crate::tree::inner::TreeInner;
use crate::tree::node::landing::NewLanding;
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::Leaf;
use crate::tree::thread_state::Count;
use crate::tree::write::{Cut, Locked, WritePath};
use leafpress_base::mem::node::Kind;
use leafpress_base::reclaim::node_heap::{NodeHeap, OwnPart, PartName};

/// The kind of a pass: which leaves it compacts; the others are only moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassKind {
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
    kind: PassKind,
    part: PartName,
    /// Whether interpolation indexes are rebuilt after each shard, since they were allocated among the nodes.
    renews: bool,
    shard: usize,
    at: At,
    stride: u64,
    moved: u64,
    /// Bytes of large values that are still to be moved, lest a pass follow writers for ever.
    larges: u64,
    first_error: Option<TreeError>,
}

/// The next item of a shard.
enum At {
    /// The leaf with this key, after its large values.
    Leaf(Vec<u8>),
    /// The inner nodes above this key.
    Inner(Vec<u8>),
    Interpolation,
}

/// What a pass did with a leaf.
enum Swept {
    /// The leaf is no longer in the tree: it was replaced by another.
    Gone,
    /// Some of the leaf's large values are done.
    InPart,
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
    pub(crate) fn sweep(&self, kind: PassKind) -> Result<(), TreeError> {
        let _sweeping = self.background.sweeping.lock();
        let mut pass = Pass::begin(self, kind, true);
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
    pub(crate) fn begin(core: &TreeInner, kind: PassKind, is_of_one_go: bool) -> Self {
        let part = core.memory.defragmentation_part();
        let held = core.memory.held();
        // Only a cache's records have marks.
        let (part_of_stride, least) = if core.marks { BOUNDED_STRIDE } else { STRIDE };
        let renews = is_of_one_go || NodeHeap::CAN_BE_DEFRAGMENTED;
        if renews {
            core.background.interpolation_renewed();
        }
        if matches!(kind, PassKind::Landed | PassKind::Anew) {
            core.background.short_frames.store(0, Ordering::Relaxed);
        }
        Self {
            kind,
            part,
            renews,
            shard: 0,
            at: At::Leaf(Vec::new()),
            stride: ((held.bytes(Kind::Leaf) + held.bytes(Kind::Large)) / part_of_stride).max(least),
            moved: 0,
            larges: held.bytes(Kind::Large),
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
                if !matches!(self.kind, PassKind::Dictionary | PassKind::Anew)
                    && core.background.stopped.load(Ordering::Relaxed)
                {
                    return Ok(Step::Stopped);
                }
                match self.sweep_leaf(core, shard, &key, part)? {
                    Swept::Gone | Swept::InPart => self.at = At::Leaf(key),
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

    /// Moves large values of the leaf that holds `key`; once none are left, compacts or moves the leaf itself.
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
        let compacts = work.compacts(leaf, self.kind);
        let larges = if compacts {
            0
        } else {
            let most = self.stride.saturating_sub(self.moved).min(self.larges);
            match work.move_larges(&locked, part, most) {
                Err(error) if self.kind == PassKind::Defragment => return Err(error),
                // The leaf may still be moved.
                moved => moved.unwrap_or_default(),
            }
        };
        self.moved += larges;
        self.larges = self.larges.saturating_sub(larges);
        let swept = if larges > 0 {
            Swept::InPart
        } else {
            match work.sweep_locked(&locked, key, self.kind, compacts) {
                Ok(Some(bytes)) => self.moved += bytes,
                Ok(None) => return Ok(Swept::Gone),
                // If there is no memory for the next leaf's copy, continuing gains nothing.
                Err(error) if self.kind == PassKind::Defragment => return Err(error),
                // This leaf stays unchanged; others may be compacted.
                Err(error) => _ = self.first_error.get_or_insert(error),
            }
            Swept::Before(end)
        };
        drop(locked);
        if self.moved >= self.stride {
            self.moved = 0;
            drop(guard);
            core.memory.reclaim_all();
            core.memory.return_free_but_of(part);
        }
        Ok(swept)
    }

    /// Ends the pass after all shards. Returns the first error of a failed compaction.
    fn end(self, core: &TreeInner, part: &OwnPart) -> Result<(), TreeError> {
        if let Some(hot) = &core.hot {
            hot.relocate(&core.memory, &core.memory.enter()?);
        }
        core.flush_retired();
        core.memory.return_free(part, self.kind == PassKind::Defragment);
        core.memory.make_huge_pages();
        self.first_error.map_or(Ok(()), Err)
    }
}

impl<'w> WritePath<'w> {
    /// Returns whether a pass of this kind compacts the leaf; other leaves are moved.
    fn compacts(&self, leaf: Leaf<'_>, kind: PassKind) -> bool {
        let current = self
            .core
            .dictionary_for(leaf.temperature())
            .map_or(std::ptr::null(), std::ptr::from_ref);
        match kind {
            PassKind::Landed => {
                leaf.landing_locked().is_some()
                    || !std::ptr::eq(current, leaf.header().dictionary)
                    || has_short_frames(leaf, &self.core.settings)
            }
            PassKind::Dictionary => !std::ptr::eq(current, leaf.header().dictionary),
            PassKind::Anew => true,
            PassKind::Defragment => false,
        }
    }

    /// Compacts or moves the leaf, and returns the bytes moved; `None` when the leaf is no longer in the tree. `key` is
    /// any key of its range.
    fn sweep_locked(
        &self,
        locked: &Locked<'w>,
        key: &[u8],
        kind: PassKind,
        compacts: bool,
    ) -> Result<Option<u64>, TreeError> {
        let leaf = locked.leaf;
        let temperature = leaf.temperature();
        if !compacts {
            return match self.move_locked(locked, key) {
                // A leaf that cannot be moved stays where it is; those to be compacted may still be.
                Err(TreeError::OutOfMemory { .. }) if kind != PassKind::Defragment => Ok(Some(0)),
                moved => moved,
            };
        }
        let bytes = leaf.header().node.requested_bytes() as u64;
        let mut tools = self.core.take_tools(self.context, self.guard)?;
        let cut = if kind == PassKind::Anew || has_short_frames(leaf, &self.core.settings) {
            Cut::Anew
        } else {
            Cut::Changed(self.core.settings.now())
        };
        let compacted = self.compact_frames_locked(locked, None, key, &[], cut, temperature, &mut tools);
        self.core.return_tools(self.context, tools, self.guard);
        Ok(compacted?.then_some(bytes))
    }

    /// Replaces the leaf's large values by copies in the part, except those that are there. A leaf may have any number
    /// of them, together most of the tree's memory: so this ends when `most` bytes were copied, for the caller to leave
    /// the guard, and the old values to be freed. Returns the bytes moved.
    fn move_larges(&self, locked: &Locked<'w>, part: &OwnPart, most: u64) -> Result<u64, TreeError> {
        let leaf = locked.leaf;
        let sections = leaf.sections();
        let mut moved = 0;
        for (slot, large) in leaf.larges(&sections) {
            if moved >= most {
                break;
            }
            // SAFETY: the value is the leaf's, which is in the tree, and the memory outlives every node.
            let copy = unsafe {
                if part.has(large.node()) {
                    continue;
                }
                large.copy(&self.core.memory)?
            };
            if let Some(copy) = copy
                && let Some(old) = leaf.exchange_large(&sections, slot, copy.large())
            {
                copy.publish();
                self.retire_large(&[old]);
                moved += large.stored_len() as u64;
            }
        }
        self.context.add(Count::CopiedBytes, moved);
        Ok(moved)
    }

    /// Replaces the leaf and its landing buffer by copies, which own the large values then. Returns the bytes moved,
    /// `None` when the leaf is no longer in the tree. `key` is any key of its range.
    fn move_locked(&self, locked: &Locked<'w>, key: &[u8]) -> Result<Option<u64>, TreeError> {
        let leaf = locked.leaf;
        let new = self.copy_of(leaf)?;
        let header = new.leaf().header();
        header
            .landed
            .store(leaf.header().landed.load(Ordering::Relaxed), Ordering::Relaxed);
        let landing = match leaf.landing_locked() {
            None => None,
            Some(landing) => {
                // SAFETY: the caller holds the leaf's lock, so the buffer does not change, and the memory outlives
                // every node.
                let landing = unsafe { landing.copy(&self.core.memory)? };
                header.landing.store(landing.landing().as_ptr(), Ordering::Relaxed);
                Some(landing)
            }
        };
        // The copies are freed when dropped without being published.
        if !self.shard.replace(leaf, new.leaf(), key, None, self.guard) {
            return Ok(None);
        }
        new.publish();
        landing.into_iter().for_each(NewLanding::publish);
        let bytes = leaf.header().node.requested_bytes() as u64;
        self.context.add(Count::CopiedBytes, bytes);
        self.retire_leaf(leaf);
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
