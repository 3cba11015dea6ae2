//! Writes under a leaf's lock: the landing buffer, and the compactions and splits that follow.

mod landing;
mod merge;

use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::compact::compress::BuiltLeaves;

use crate::tree::compact::landed::landed_changes;
use crate::tree::compact::merge::Compaction;
use crate::tree::compact::settings::Settings;
use crate::tree::error::TreeError;
use crate::tree::hot::Use;
use crate::tree::index::shard::{Shard, Splice};
use crate::tree::inner::{Condition, Seen, Sought, TreeInner};
use crate::tree::node::inner::InnerNode;
use crate::tree::node::landing::{Change, LandedWrite};
use crate::tree::node::large::{DeadLarge, MAX_INLINE_VALUE_BYTES};
use crate::tree::node::layout::{Temperature, WRITTEN};
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::read::Read;
use crate::tree::thread_state::{Count, Scratchpad, ThreadState};
use leafpress_base::mem::prefetch::prefetch_for_write;
use leafpress_base::mem::room::{TryGrow, collected};
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_base::sync::LatchGuard;

/// One in this number of replacements of large values checks whether holes are worth a defragmentation.
const EXCHANGES_PER_LOOK: u64 = 256;

/// Which of a leaf's frames a compaction cuts and recompresses.
#[derive(Clone, Copy)]
pub(crate) enum Cut {
    /// Those touched by changes, with these settings.
    Changed(Settings),
    /// All, with the settings in force.
    Anew,
}

/// The result of a write under a leaf's lock.
pub(crate) enum Outcome {
    /// The write was done, or its condition did not hold.
    Done {
        present: bool,
        applied: bool,
        /// How much the record was in use, if it was hot: it is no longer.
        was_hot: Option<Use>,
    },
    /// The leaf is no longer in the tree.
    Restart,
}

impl Outcome {
    fn done(present: bool) -> Self {
        Self::Done {
            present,
            applied: true,
            was_hot: None,
        }
    }
}

/// A leaf whose latch is held until this is dropped.
pub(crate) struct Locked<'g> {
    pub leaf: Leaf<'g>,
    _latch: LatchGuard<'g>,
}

impl<'g> Locked<'g> {
    /// Waits for the leaf's latch.
    #[inline]
    pub(crate) fn lock(leaf: Leaf<'g>) -> Self {
        let _latch = leaf.header().lock.lock();
        Self { leaf, _latch }
    }
}

/// A write or a compaction in progress on one shard, under a guard.
#[derive(Clone, Copy)]
pub(crate) struct WritePath<'w> {
    pub core: &'w TreeInner,
    pub shard: &'w Shard,
    pub context: &'w ThreadState,
    pub guard: &'w Guard<'w>,
}

impl<'w> WritePath<'w> {
    pub(crate) fn write_locked(
        &self,
        locked: &Locked<'w>,
        parent: Option<InnerNode<'w>>,
        sought: &Sought<'_>,
        change: Change<'_>,
        condition: Condition<'_>,
        tools: &mut Scratchpad,
    ) -> Result<Outcome, TreeError> {
        let leaf = locked.leaf;
        let Sought { key, hash, .. } = *sought;
        let landing = leaf.landing_locked();
        if let Some(landing) = landing {
            prefetch_for_write(landing.end());
        }
        let seen = self
            .core
            .seen(leaf, leaf.landing_for(hash, self.guard), sought, tools)?;
        let Seen {
            len: old_len,
            slot,
            landed: is_landed,
        } = seen;
        let present = old_len.is_some();
        let entry = LandedWrite::new(key, change, slot);
        let skip = match condition {
            Condition::Always => matches!(change, Change::Remove) && !present,
            Condition::IfAbsent => present,
            Condition::IfPresent => !present,
            Condition::Noting(note) => !note() || matches!(change, Change::Remove) && !present,
            Condition::If(holds) => {
                let holds = if present {
                    let holds = |found: Read<'_>| holds(Some(found));
                    self.core.value_in(leaf, sought, self.guard, tools, holds)? == Some(true)
                } else {
                    holds(None)?
                };
                if holds && matches!(change, Change::Remove) && !present {
                    return Ok(Outcome::done(present));
                }
                !holds
            }
        };
        if skip {
            return Ok(Outcome::Done {
                present,
                applied: false,
                was_hot: None,
            });
        }
        let hot = self.core.hot.as_ref();
        let was_hot = hot.and_then(|hot| hot.remove(key, hash, self.guard));
        if let (Change::PutLarge(large), Some(slot), false) = (change, slot, is_landed)
            && let Some(old) = leaf.exchange_large(&leaf.sections(), usize::from(slot), large)
        {
            self.retire_large(&[old]);
            // If all writes replace large values in place, no leaf is ever replaced, so the check is made here too.
            if self.context.so_far(Count::Puts).is_multiple_of(EXCHANGES_PER_LOOK) {
                self.core.background.defragment_if_due(self.core);
            }
            self.account(leaf, key, change, old_len);
            return Ok(Outcome::done(present));
        }
        // A superseded large value would be held until the buffer is full: it is freed at once instead.
        let frees_large = old_len.is_some_and(|len| len > MAX_INLINE_VALUE_BYTES);
        let lands = !frees_large && self.land(leaf, landing, &entry, hash)?;
        if !lands && !frees_large {
            self.context.count(Count::FgLandingFull);
        }
        if lands || !frees_large && self.thin_landing(leaf, entry)? {
            self.account(leaf, key, change, old_len);
            let live = leaf.header().live.load(Ordering::Relaxed) as usize;
            if matches!(change, Change::Remove) && live <= leaf.count() / 2 {
                // Removals free memory without waiting for the buffer to fill. If that fails, the removal is done
                // nevertheless.
                let _ = self.compact_locked(locked, parent, key, None, tools);
            }
        } else {
            self.context.count(Count::FgSyncCompactions);
            match self.compact_locked(locked, parent, key, Some(entry), tools) {
                Ok(true) => {}
                Ok(false) => return Ok(Outcome::Restart),
                Err(error) => {
                    self.context.count(Count::FgSyncCompactionErrors);
                    return Err(error);
                }
            }
        }
        match (present, matches!(change, Change::Remove)) {
            (false, false) => self.context.count(Count::Inserted),
            (true, true) => self.context.count(Count::Erased),
            _ => {}
        }
        if self.core.marks {
            match (old_len == Some(0), change.value_len() == Some(0)) {
                (false, true) => self.context.count(Count::EmptyInserted),
                (true, false) => self.context.count(Count::EmptyErased),
                _ => {}
            }
        }
        Ok(Outcome::Done {
            present,
            applied: true,
            was_hot,
        })
    }

    /// Makes a record hot again after a write that replaced its leaf. Without this, a record that is read and written
    /// often would be hot for a few reads only.
    #[cold]
    pub(crate) fn heat_again(&self, sought: &Sought<'_>, used: Use, tools: &mut Scratchpad) {
        let Some(hot) = &self.core.hot else { return };
        let (step, _) = self.shard.descend_to_write(sought.key, self.guard);
        let sought = Sought {
            share: step.share,
            ..*sought
        };
        let Some(locked) = self.try_lock(step.leaf()) else {
            return;
        };
        // A record that cannot be decoded, or for which there is no room, is not hot.
        let _ = self.core.value_in(locked.leaf, &sought, self.guard, tools, |value| {
            if let Read::Bytes(value) = value {
                hot.insert((sought.key, value), sought.hash, used, &self.core.memory, self.guard)?;
            }
            Ok(())
        });
    }

    /// Updates the leaf's live counts for a change in the landing buffer. Wrongly decoded frames may make the removed
    /// bytes exceed the total, so the subtraction saturates.
    fn account(&self, leaf: Leaf<'w>, key: &[u8], change: Change<'_>, old_len: Option<usize>) {
        let header = leaf.header();
        let (mut live, mut bytes) = (
            header.live.load(Ordering::Relaxed),
            header.live_user_bytes.load(Ordering::Relaxed),
        );
        if let Some(old_len) = old_len {
            live = live.saturating_sub(1);
            bytes = bytes.saturating_sub((key.len() + old_len) as u64);
        }
        if let Some(len) = change.value_len() {
            live += 1;
            bytes += (key.len() + len) as u64;
        }
        header.live.store(live, Ordering::Relaxed);
        header.live_user_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Compacts a leaf with its landing buffer and one more change, and publishes the result; returns false when the
    /// leaf is no longer in the tree. `key` is any key of the leaf's range.
    pub(crate) fn compact_locked(
        &self,
        locked: &Locked<'w>,
        parent: Option<InnerNode<'w>>,
        key: &[u8],
        more: Option<LandedWrite<'_>>,
        tools: &mut Scratchpad,
    ) -> Result<bool, TreeError> {
        let (cut, temperature) = match locked.leaf.temperature() {
            // A cold leaf that is written to becomes warm.
            Temperature::Cold => (Cut::Anew, Temperature::Warm),
            temperature => (Cut::Changed(self.settings_for_writing()), temperature),
        };
        self.compact_frames_locked(locked, parent, key, more.as_slice(), cut, temperature, tools)
    }

    /// Returns the settings by which a writer cuts frames, which background passes may have to cut again.
    fn settings_for_writing(&self) -> Settings {
        let settings = self.core.settings.while_writing();
        if settings != self.core.settings.now() {
            self.core.background.written_in_short_frames();
        }
        settings
    }

    /// As [`Self::compact_locked`], with frames cut according to `cut`, into leaves of a temperature.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn compact_frames_locked(
        &self,
        locked: &Locked<'w>,
        parent: Option<InnerNode<'w>>,
        key: &[u8],
        more: &[LandedWrite<'_>],
        cut: Cut,
        temperature: Temperature,
        tools: &mut Scratchpad,
    ) -> Result<bool, TreeError> {
        let leaf = locked.leaf;
        let mut dead = Vec::new();
        let changes = landed_changes(leaf, more, &mut dead)?;
        let removes = changes.iter().any(|entry| matches!(entry.change, Change::Remove));
        let result = self.compress_leaf(leaf, key, &changes, (cut, temperature), &mut dead, tools);
        tools.reset_arena();
        self.context.note_used(tools);
        let mut built = result?;
        if let [new] = built.leaves.as_slice() {
            if !self.shard.replace(leaf, new.leaf(), key, parent, self.guard) {
                return Ok(false);
            }
            let is_small = self.is_small(new.leaf());
            built.publish();
            self.retire_leaf(leaf);
            self.retire_large(&dead);
            self.note_replaced();
            if removes && is_small {
                self.merge(key, tools);
            }
            return Ok(true);
        }
        let structure = self.shard.lock_structure();
        let (path, here) = self.shard.path(key, self.guard)?;
        if here != leaf {
            return Ok(false);
        }
        let at = path.last().map_or(0, |(_, index)| *index);
        let splice = Splice {
            from: at,
            to: at + 1,
            children: collected(built.leaves.iter().map(|leaf| leaf.leaf().as_ptr()))?,
            separators: std::mem::take(&mut built.separators),
        };
        let pieces = built.leaves.len();
        self.shard
            .splice(&path, splice, &self.core.memory, self.guard, &structure)?;
        built.publish();
        drop(structure);
        self.retire_leaf(leaf);
        self.retire_large(&dead);
        self.context.count(Count::FgSplitFallbacks);
        self.context.add(Count::Splits, pieces as u64 - 1);
        self.core.background.leaves_grew(self.core, pieces - 1);
        Ok(true)
    }

    /// Checks, for one in 64 replaced leaves, whether the holes left by leaves are worth a pass of defragmentation, and
    /// whether the records have changed enough for a training.
    pub(crate) fn note_replaced(&self) {
        self.context.count(Count::Replaced);
        if self.context.so_far(Count::Replaced).is_multiple_of(64) {
            self.core.background.defragment_if_due(self.core);
            self.core.background.renew_if_due(self.core);
        }
    }

    fn compress_leaf(
        &self,
        leaf: Leaf<'w>,
        key: &[u8],
        changes: &[LandedWrite<'_>],
        (cut, temperature): (Cut, Temperature),
        dead: &mut Vec<DeadLarge>,
        tools: &mut Scratchpad,
    ) -> Result<BuiltLeaves, TreeError> {
        let Scratchpad {
            scratch,
            buffers,
            arena,
            ..
        } = tools;
        let mut compression = self.core.compression_for(temperature, buffers, arena);
        // A leaf with removals only is unlikely to be written to again soon.
        let is_written = changes.iter().any(|entry| !matches!(entry.change, Change::Remove));
        compression.reads = leaf.reads() | if is_written { WRITTEN } else { 0 };
        let anew = match cut {
            Cut::Changed(settings) if compression.temperature == Temperature::Warm => {
                compression.settings = settings;
                false
            }
            Cut::Changed(_) => false,
            Cut::Anew => true,
        };
        let mut compaction = Compaction {
            compression,
            scratch,
            dead: Vec::new(),
            // Where no key leads to the leaf, the tree was cleared, which the caller detects.
            leads_to: &|other, leaf| {
                self.shard.descend(other, self.guard).0 == *leaf || self.shard.descend(key, self.guard).0 != *leaf
            },
        };
        let built = compaction.run(&leaf, changes, anew)?;
        dead.try_extend(compaction.dead)?;
        Ok(built)
    }

    /// Returns a copy of a leaf with an empty landing buffer, which is about to replace it. The caller holds the leaf's
    /// lock.
    pub(crate) fn copy_of(&self, leaf: Leaf<'w>) -> Result<NewLeaf, TreeError> {
        let (live_user_bytes, live) = (
            leaf.header().live_user_bytes.load(Ordering::Relaxed),
            leaf.header().live.load(Ordering::Relaxed),
        );
        // SAFETY: the memory outlives every node; the leaf is retired once the copy, which then owns the large values,
        // is published.
        unsafe { leaf.copy_frames(live_user_bytes, live, &self.core.memory) }
    }

    /// Retires the leaf and its landing buffer, which are no longer in the tree.
    pub(crate) fn retire_leaf(&self, leaf: Leaf<'w>) {
        leaf.header().obsolete.store(true, Ordering::Relaxed);
        // SAFETY: the tree no longer leads to the leaf; only the holder of the lock retires it.
        unsafe {
            if let Some(landing) = leaf.landing_locked() {
                NodeHeap::retire(landing.node(), self.guard);
            }
            NodeHeap::retire(leaf.node(), self.guard);
        }
    }

    pub(crate) fn retire_large(&self, dead: &[DeadLarge]) {
        for large in dead {
            // SAFETY: the leaf that pointed to the value is retired, and its successors do not point to it.
            unsafe { NodeHeap::retire(large.node(), self.guard) };
        }
    }

    /// Locks a leaf if its latch is free and the leaf is in the tree.
    pub(crate) fn try_lock(&self, leaf: Leaf<'w>) -> Option<Locked<'w>> {
        let _latch = leaf.header().lock.try_lock()?;
        (!leaf.header().obsolete.load(Ordering::Relaxed)).then_some(Locked { leaf, _latch })
    }
}
