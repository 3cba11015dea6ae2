//! The tree's parts, and its point operations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use seize::{Collector, LocalGuard};

use super::background::Background;
use super::compact::Compaction;
use super::context::{Context, Contexts, Count, Tools};
use super::dictionary::Dictionaries;
use super::inner::Inner;
use super::landing::{Change, Entry, Landing, newest_by_key};
use super::large::{Large, MAX_INLINE_VALUE_BYTES};
use super::leaf::{Decoder, Leaf, Value};
use super::memory::Memory;
use super::prefetch::{prefetch, prefetch_directory, prefetch_for_write};
use super::press::{Press, Pressed, Settings, press_block};
use super::shard::{Shard, Splice};
use super::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, ShardBy, hash};
use crate::codec::Engine;

/// Everything the tree's handle and its background threads share.
pub(crate) struct Core {
    pub shards: Vec<Shard>,
    pub shard_by: ShardBy,
    pub settings: Settings,
    pub landing_bytes: usize,
    pub engine: Arc<dyn Engine>,
    pub contexts: Contexts,
    pub background: Background,
    // Dropped in this order: what is retired is reclaimed with the collector, and counted in the memory.
    pub collector: Collector,
    pub dictionaries: Dictionaries,
    /// Nodes point to it: an `Arc`, which unlike a `Box` may be moved without its content being taken for untouched.
    pub memory: Arc<Memory>,
}

/// When a write applies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    IfAbsent,
    IfPresent,
}

/// How a write under a leaf's lock ended.
pub(crate) enum Outcome {
    /// It is done, or its condition did not hold.
    Done { present: bool, applied: bool },
    /// The leaf is no longer in the tree.
    Restart,
}

/// Holds a leaf's lock.
pub(crate) struct Locked(pub Leaf);

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: whoever made this holds the lock.
        unsafe { self.0.header().lock.unlock() }
    }
}

/// One in so many reads of a thread is counted for its leaf's temperature.
const READ_SAMPLE: u64 = 64;

impl Core {
    #[inline]
    pub(crate) fn shard(&self, key: &[u8], hash: u64) -> &Shard {
        if self.shards.len() == 1 {
            return &self.shards[0];
        }
        match &self.shard_by {
            // The low half of the hash, scaled; fingerprints and sub-pages use other bits.
            ShardBy::Hash => &self.shards[(((hash & 0xFFFF_FFFF) * self.shards.len() as u64) >> 32) as usize],
            ShardBy::Range(boundaries) => {
                &self.shards[boundaries.partition_point(|boundary| boundary.as_slice() <= key)]
            }
        }
    }

    /// Calls `read` with the value of `key`.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(Read<'_>) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let hash = hash(key);
        let context = self.contexts.get();
        let guard = self.collector.enter();
        let (leaf, _) = self.shard(key, hash).descend(key, &guard);
        prefetch_directory(leaf.as_ptr());
        context.count(Count::Gets);
        if context.so_far(Count::Gets).is_multiple_of(READ_SAMPLE) {
            leaf.header().reads.fetch_add(1, Ordering::Relaxed);
        }
        // Misses overlap: the landing buffer's line is on its way while the keys are searched, the block's while the buffer is.
        let landing = leaf.landing(&guard);
        if let Some(landing) = landing {
            prefetch(landing.as_ptr());
        }
        let sections = leaf.sections();
        let found = leaf.search_exact(&sections, key);
        if let Some(Some(place)) = found {
            leaf.prefetch_block(&sections, place.frame);
        }
        // SAFETY: the guard protects the buffer and the large values it points to.
        let landed = landing.and_then(|landing| unsafe { landing.find(key, hash) });
        if landed.is_none() && matches!(found, Some(None)) {
            return Ok(None);
        }
        let mut tools = context.take_tools();
        let mut decoder = Decoder::new(&*self.engine, &mut tools.scratch);
        let result = match landed {
            Some(change) => {
                context.count(Count::GetLandingHits);
                match change {
                    Change::Put(value) => read(Read::Bytes(value)).map(Some),
                    Change::PutLarge(large) => read(Read::Large(large, &*self.engine)).map(Some),
                    Change::Pressed { block, raw_len } => leaf
                        .decode_block(block, raw_len, raw_len, &mut decoder)
                        .and_then(|value| read(Read::Bytes(value)))
                        .map(Some),
                    Change::Remove => Ok(None),
                }
            }
            None => {
                let place = match found {
                    Some(place) => Ok(place),
                    None => leaf.locate(&sections, key, hash, &mut decoder),
                };
                place.and_then(|place| match place {
                    None => Ok(None),
                    Some(place) => match leaf.value(&sections, place, &mut decoder)? {
                        Value::Inline(value) => read(Read::Bytes(value)).map(Some),
                        Value::Large(large) => read(Read::Large(large, &*self.engine)).map(Some),
                    },
                })
            }
        };
        if decoder.frames > 0 {
            context.add(Count::GetFrames, decoder.frames);
            context.add(Count::GetBytes, decoder.bytes);
        }
        context.return_tools(tools);
        result
    }

    /// Whether `key` is there.
    pub(crate) fn contains_key(&self, key: &[u8]) -> Result<bool, Error> {
        let hash = hash(key);
        let context = self.contexts.get();
        let guard = self.collector.enter();
        let (leaf, _) = self.shard(key, hash).descend(key, &guard);
        let mut tools = context.take_tools();
        let landing = leaf.landing(&guard);
        let found = self.live_value_len(leaf, landing, key, hash, &mut tools);
        context.return_tools(tools);
        Ok(found?.is_some())
    }

    /// Length of the value a reader of `leaf` sees for `key`.
    fn live_value_len(
        &self,
        leaf: Leaf,
        landing: Option<Landing>,
        key: &[u8],
        hash: u64,
        tools: &mut Tools,
    ) -> Result<Option<usize>, Error> {
        // SAFETY: the caller's guard protects the buffer and the large values it points to.
        if let Some(change) = landing.and_then(|landing| unsafe { landing.find(key, hash) }) {
            // SAFETY: as above.
            return Ok(unsafe { change.value_len() });
        }
        let mut decoder = Decoder::new(&*self.engine, &mut tools.scratch);
        let sections = leaf.sections();
        let place = leaf.locate(&sections, key, hash, &mut decoder)?;
        Ok(place.map(|place| leaf.value_len(&sections, place.slot)))
    }

    /// Puts `value`, or removes for `None`. Returns whether the key was there before, and whether the write applied.
    pub(crate) fn write(&self, key: &[u8], value: Option<&[u8]>, condition: Condition) -> Result<(bool, bool), Error> {
        if key.len() > MAX_KEY_BYTES {
            return if value.is_some() {
                Err(Error::KeyTooLong { len: key.len() })
            } else {
                Ok((false, false))
            };
        }
        if let Some(value) = value
            && value.len() > MAX_VALUE_BYTES
        {
            return Err(Error::ValueTooLong { len: value.len() });
        }
        let context = self.contexts.get();
        context.count(if value.is_some() { Count::Puts } else { Count::Removes });
        let guard = self.collector.enter();
        let mut tools = context.take_tools();
        let change = match value {
            None => Ok(Change::Remove),
            Some(value) if value.len() <= MAX_INLINE_VALUE_BYTES => Ok(Change::Put(value)),
            // SAFETY: the memory outlives every node of the tree.
            Some(value) => {
                unsafe { Large::new(value, &*self.engine, &self.memory, &mut tools.block) }.map(Change::PutLarge)
            }
        };
        let result = change.and_then(|change| {
            let result = self.write_change(key, change, condition, context, &mut tools, &guard);
            if let (Change::PutLarge(large), Err(_) | Ok((_, false))) = (change, &result) {
                // SAFETY: the value did not reach the tree.
                unsafe { Memory::free(large.node()) };
            }
            result
        });
        if tools.block.capacity() > 1 << 20 {
            tools.block = Vec::new();
        }
        context.return_tools(tools);
        result
    }

    fn write_change(
        &self,
        key: &[u8],
        change: Change<'_>,
        condition: Condition,
        context: &Context,
        tools: &mut Tools,
        guard: &LocalGuard<'_>,
    ) -> Result<(bool, bool), Error> {
        let hash = hash(key);
        let shard = self.shard(key, hash);
        let mut block = std::mem::take(&mut tools.block);
        let result = loop {
            let (leaf, parent) = shard.descend(key, guard);
            prefetch_for_write(leaf.as_ptr());
            prefetch_directory(leaf.as_ptr());
            // Pressed before the lock is taken; with a dictionary that is most likely the leaf's.
            let pressed = match change {
                Change::Put(value) if self.settings.single() => self.press_value(leaf, value, &mut block),
                change => Ok(change),
            };
            let change = match pressed {
                Ok(change) => change,
                Err(error) => break Err(error),
            };
            if let Some(landing) = leaf.landing(guard) {
                prefetch_for_write(landing.as_ptr());
            }
            leaf.header().lock.lock();
            let locked = Locked(leaf);
            if leaf.header().obsolete.load(Ordering::Relaxed) {
                continue;
            }
            let work = Work {
                core: self,
                shard,
                context,
                guard,
            };
            match work.write_locked(&locked, parent, key, hash, change, condition, tools) {
                Ok(Outcome::Done { present, applied }) => break Ok((present, applied)),
                Ok(Outcome::Restart) => {}
                Err(error) => break Err(error),
            }
        };
        tools.block = block;
        result
    }

    /// A value as a one-record frame of `leaf`.
    fn press_value<'v>(&self, leaf: Leaf, value: &[u8], block: &'v mut Vec<u8>) -> Result<Change<'v>, Error> {
        let likely = self.dictionaries.current();
        block.clear();
        press_block(value, &*self.engine, likely, block)?;
        let dictionary = leaf.dictionary();
        if !std::ptr::eq(
            dictionary.map_or(std::ptr::null(), std::ptr::from_ref),
            likely.map_or(std::ptr::null(), std::ptr::from_ref),
        ) {
            block.clear();
            press_block(value, &*self.engine, dictionary, block)?;
        }
        Ok(Change::Pressed {
            block,
            raw_len: value.len(),
        })
    }

    /// A presser of drafts into this tree's leaves.
    pub(crate) fn press<'p, 'b>(
        &'p self,
        buffers: &'p mut super::press::Buffers,
        arena: &'b bumpalo::Bump,
    ) -> Press<'p, 'b> {
        Press {
            settings: &self.settings,
            engine: &*self.engine,
            dictionary: self.dictionaries.current(),
            memory: &self.memory,
            buffers,
            arena,
        }
    }
}

/// A value as [`Core::get`] finds it.
pub(crate) enum Read<'a> {
    Bytes(&'a [u8]),
    Large(Large, &'a dyn Engine),
}

impl Read<'_> {
    /// Appends the value to `out`.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Read::Bytes(value) => {
                out.try_reserve(value.len())
                    .map_err(|_| Error::OutOfMemory { bytes: value.len() })?;
                out.extend_from_slice(value);
                Ok(())
            }
            // SAFETY: the guard of `Core::get` protects the value.
            Read::Large(large, engine) => unsafe { large.read_into(*engine, out) },
        }
    }
}

/// A write or a compaction at work on one shard, under a guard.
#[derive(Clone, Copy)]
pub(crate) struct Work<'w> {
    pub core: &'w Core,
    pub shard: &'w Shard,
    pub context: &'w Context,
    pub guard: &'w LocalGuard<'w>,
}

impl Work<'_> {
    #[allow(clippy::too_many_arguments)]
    fn write_locked(
        &self,
        locked: &Locked,
        parent: Option<Inner>,
        key: &[u8],
        hash: u64,
        change: Change<'_>,
        condition: Condition,
        tools: &mut Tools,
    ) -> Result<Outcome, Error> {
        let leaf = locked.0;
        let landing = leaf.landing_locked();
        if let Some(landing) = landing {
            prefetch_for_write(landing.end());
        }
        let old_len = self.core.live_value_len(leaf, landing, key, hash, tools)?;
        let present = old_len.is_some();
        let skip = match condition {
            Condition::Always => matches!(change, Change::Remove) && !present,
            Condition::IfAbsent => present,
            Condition::IfPresent => !present,
        };
        if skip {
            return Ok(Outcome::Done {
                present,
                applied: false,
            });
        }
        // A large value that is superseded would be held until the buffer is full: it goes at once.
        let frees_large = old_len.is_some_and(|len| len > MAX_INLINE_VALUE_BYTES);
        let landed = !frees_large && self.land(leaf, landing, key, hash, change)?;
        if landed {
            self.account(leaf, key, change, old_len);
            let live = leaf.header().live.load(Ordering::Relaxed) as usize;
            if matches!(change, Change::Remove) && live <= leaf.count() / 2 {
                // Removals give memory back without waiting for the buffer to fill. Should that fail, the removal stands all the
                // same.
                let _ = self.compact_locked(locked, parent, key, None, tools);
            } else {
                self.core.background.offer(self, leaf, key);
            }
        } else {
            if !frees_large {
                self.context.count(Count::FgLandingFull);
            }
            if frees_large || !self.thin_landing(leaf, key, change)? {
                self.context.count(Count::FgSyncCompactions);
                match self.compact_locked(locked, parent, key, Some(Entry::new(key, change)), tools) {
                    Ok(true) => {}
                    Ok(false) => return Ok(Outcome::Restart),
                    Err(error) => {
                        self.context.count(Count::FgSyncCompactionErrors);
                        return Err(error);
                    }
                }
            } else {
                self.account(leaf, key, change, old_len);
            }
        }
        match (present, matches!(change, Change::Remove)) {
            (false, false) => self.context.count(Count::Inserted),
            (true, true) => self.context.count(Count::Erased),
            _ => {}
        }
        Ok(Outcome::Done { present, applied: true })
    }

    /// Appends the change to the landing buffer, which is allocated for it if there is none; false when it has no room.
    fn land(
        &self,
        leaf: Leaf,
        landing: Option<Landing>,
        key: &[u8],
        hash: u64,
        change: Change<'_>,
    ) -> Result<bool, Error> {
        if let Some(landing) = landing {
            // SAFETY: the caller holds the leaf's lock.
            return Ok(unsafe { landing.append(key, hash, change) });
        }
        let bytes = Landing::entry_bytes(key, &change);
        if bytes > self.core.landing_bytes {
            return Ok(false);
        }
        // SAFETY: the memory outlives every node; nobody else sees the buffer before it is stored.
        unsafe {
            let landing = Landing::new(self.core.landing_bytes, bytes, &self.core.memory)?;
            if !landing.append(key, hash, change) {
                Memory::free(landing.node());
                return Ok(false);
            }
            leaf.header().landing.store(landing.as_ptr(), Ordering::Release);
        }
        Ok(true)
    }

    /// Makes room in a landing buffer that is full of superseded entries, and appends the change; false when that would not
    /// free half of it.
    fn thin_landing(&self, leaf: Leaf, key: &[u8], change: Change<'_>) -> Result<bool, Error> {
        let Some(old) = leaf.landing_locked() else {
            return Ok(false);
        };
        let mut entries = Vec::with_capacity(old.entries() + 1);
        // SAFETY: the caller holds the leaf's lock, so that the buffer stays.
        unsafe { old.read_all(&mut entries) };
        entries.push(Entry::new(key, change));
        let mut dead = Vec::new();
        newest_by_key(&mut entries, |entry| dead.push(entry));
        let bytes: usize = entries
            .iter()
            .map(|entry| Landing::entry_bytes(entry.key, &entry.change))
            .sum();
        if dead.is_empty() || bytes > self.core.landing_bytes / 2 {
            return Ok(false);
        }
        // SAFETY: the memory outlives every node; nobody else sees the new buffer before it is stored; the old one, and the
        // large values only it points to, are retired after that.
        unsafe {
            let new = Landing::new(self.core.landing_bytes, bytes / entries.len(), &self.core.memory)?;
            let fits = entries
                .iter()
                .all(|entry| new.append(entry.key, super::hash(entry.key), entry.change));
            if !fits {
                Memory::free(new.node());
                return Ok(false);
            }
            leaf.header().landing.store(new.as_ptr(), Ordering::Release);
            Memory::retire(old.node(), self.guard);
            for entry in dead {
                if let Change::PutLarge(large) = entry.change {
                    Memory::retire(large.node(), self.guard);
                }
            }
        }
        Ok(true)
    }

    /// Brings the leaf's live counts up to date with a change that landed.
    fn account(&self, leaf: Leaf, key: &[u8], change: Change<'_>, old_len: Option<usize>) {
        let header = leaf.header();
        let (mut live, mut bytes) = (
            header.live.load(Ordering::Relaxed),
            header.live_user_bytes.load(Ordering::Relaxed),
        );
        if let Some(old_len) = old_len {
            live -= 1;
            bytes -= (key.len() + old_len) as u64;
        }
        // SAFETY: a large value that has just landed is live.
        if let Some(len) = unsafe { change.value_len() } {
            live += 1;
            bytes += (key.len() + len) as u64;
        }
        header.live.store(live, Ordering::Relaxed);
        header.live_user_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Compacts a leaf with its landing buffer and one more change, and publishes the result; false when the leaf is no
    /// longer in the tree. `key` is any key of the leaf's range.
    pub(crate) fn compact_locked(
        &self,
        locked: &Locked,
        parent: Option<Inner>,
        key: &[u8],
        more: Option<Entry<'_>>,
        tools: &mut Tools,
    ) -> Result<bool, Error> {
        let leaf = locked.0;
        let mut dead = Vec::new();
        let changes = landed_changes(leaf, more, &mut dead);
        let removes = changes.iter().any(|entry| matches!(entry.change, Change::Remove));
        let result = self.press_leaf(leaf, &changes, &mut dead, tools);
        tools.reset_arena();
        let mut pressed = result?;
        if let [new] = *pressed.leaves.as_slice() {
            new.header()
                .reads
                .store(leaf.header().reads.load(Ordering::Relaxed), Ordering::Relaxed);
            if !self.shard.replace(leaf, new, key, parent, self.guard) {
                pressed.free();
                return Ok(false);
            }
            self.retire_leaf(leaf);
            self.retire_large(&dead);
            if removes && self.is_small(new) {
                self.merge(key, tools);
            }
            return Ok(true);
        }
        let structure = self.shard.lock_structure();
        let (path, here) = self.shard.path(key, self.guard);
        if here != leaf {
            pressed.free();
            return Ok(false);
        }
        let at = path.last().map_or(0, |(_, index)| *index);
        let splice = Splice {
            from: at,
            to: at + 1,
            children: pressed.leaves.iter().map(|leaf| leaf.as_ptr()).collect(),
            separators: std::mem::take(&mut pressed.separators),
        };
        let pieces = pressed.leaves.len();
        if let Err(error) = self
            .shard
            .splice(&path, splice, &self.core.memory, self.guard, &structure)
        {
            pressed.free();
            return Err(error);
        }
        drop(structure);
        self.retire_leaf(leaf);
        self.retire_large(&dead);
        self.context.count(Count::FgSplitFallbacks);
        self.context.add(Count::Splits, pieces as u64 - 1);
        self.core.background.leaves_grew(self.core, pieces - 1);
        Ok(true)
    }

    fn press_leaf(
        &self,
        leaf: Leaf,
        changes: &[Entry<'_>],
        dead: &mut Vec<Large>,
        tools: &mut Tools,
    ) -> Result<Pressed, Error> {
        let Tools {
            scratch,
            buffers,
            arena,
            ..
        } = tools;
        let press = self.core.press(buffers, arena);
        let mut compaction = Compaction {
            press,
            scratch,
            dead: Vec::new(),
        };
        let pressed = compaction.run(&leaf, changes, false)?;
        dead.append(&mut compaction.dead);
        Ok(pressed)
    }

    /// The leaf and its landing buffer are no longer in the tree.
    fn retire_leaf(&self, leaf: Leaf) {
        leaf.header().obsolete.store(true, Ordering::Relaxed);
        // SAFETY: the tree no longer leads to the leaf; the lock's holder is the only one to get here.
        unsafe {
            if let Some(landing) = leaf.landing_locked() {
                Memory::retire(landing.node(), self.guard);
            }
            Memory::retire(leaf.node(), self.guard);
        }
    }

    fn retire_large(&self, dead: &[Large]) {
        for large in dead {
            // SAFETY: the leaf that pointed to the value is retired, and its successors do not point to it.
            unsafe { Memory::retire(large.node(), self.guard) };
        }
    }

    fn is_small(&self, leaf: Leaf) -> bool {
        (leaf.header().inline_bytes as usize) < self.core.settings.leaf_bytes / 4
    }

    /// Joins the small leaf that holds `key` to a neighbour, or drops it when it is empty. What stands in the way (a neighbour
    /// at work, a codec's error) leaves the leaf small, which is no fault.
    fn merge(&self, key: &[u8], tools: &mut Tools) {
        let structure = self.shard.lock_structure();
        let (path, leaf) = self.shard.path(key, self.guard);
        let Some(&(parent, index)) = path.last() else {
            return;
        };
        if parent.children() < 2 {
            return;
        }
        let Some(locked) = self.try_lock(leaf) else {
            return;
        };
        let memory = &self.core.memory;
        if leaf.count() == 0 && leaf.landing_locked().is_none() {
            let splice = Splice {
                from: index,
                to: index + 1,
                children: Vec::new(),
                separators: Vec::new(),
            };
            if self.shard.splice(&path, splice, memory, self.guard, &structure).is_ok() {
                self.retire_leaf(leaf);
                self.context.count(Count::Merges);
            }
            return;
        }
        let left = if index + 1 < parent.children() {
            index
        } else {
            index - 1
        };
        let beside = if left == index { index + 1 } else { left };
        // SAFETY: the guard protects what the parent leads to, and its children are leaves.
        let sibling = unsafe { Leaf::from_ptr(super::sync::load(parent.child(beside), self.guard)) };
        let Some(sibling_locked) = self.try_lock(sibling) else {
            return;
        };
        let together = leaf.header().live_user_bytes.load(Ordering::Relaxed)
            + sibling.header().live_user_bytes.load(Ordering::Relaxed);
        if together > self.core.settings.leaf_bytes as u64 * 3 / 4 {
            return;
        }
        let (first, second) = if left == index {
            (leaf, sibling)
        } else {
            (sibling, leaf)
        };
        let mut dead = Vec::new();
        let joined = self.press_joined(first, second, &mut dead, tools);
        tools.reset_arena();
        let Ok(mut joined) = joined else {
            return;
        };
        let children: Vec<_> = joined.leaves.iter().map(|leaf| leaf.as_ptr()).collect();
        let splice = Splice {
            from: left,
            to: left + 2,
            children,
            separators: std::mem::take(&mut joined.separators),
        };
        if self
            .shard
            .splice(&path, splice, memory, self.guard, &structure)
            .is_err()
        {
            joined.free();
            return;
        }
        self.retire_leaf(leaf);
        self.retire_leaf(sibling);
        self.retire_large(&dead);
        self.context.count(Count::Merges);
        drop((locked, sibling_locked));
    }

    fn press_joined(
        &self,
        first: Leaf,
        second: Leaf,
        dead: &mut Vec<Large>,
        tools: &mut Tools,
    ) -> Result<Pressed, Error> {
        let changes = [landed_changes(first, None, dead), landed_changes(second, None, dead)];
        let Tools {
            scratch,
            buffers,
            arena,
            ..
        } = tools;
        let mut compaction = Compaction {
            press: self.core.press(buffers, arena),
            scratch,
            dead: Vec::new(),
        };
        compaction.press.begin();
        let mut records = compaction.merge_all(&first, &first.sections(), &changes[0])?;
        records.extend(compaction.merge_all(&second, &second.sections(), &changes[1])?);
        let pressed = compaction.press.press_all(records, super::press::Growth::Within)?;
        dead.append(&mut compaction.dead);
        Ok(pressed)
    }

    /// Locks a leaf that is free and in the tree.
    pub(crate) fn try_lock(&self, leaf: Leaf) -> Option<Locked> {
        if !leaf.header().lock.try_lock() {
            return None;
        }
        let locked = Locked(leaf);
        (!leaf.header().obsolete.load(Ordering::Relaxed)).then_some(locked)
    }
}

/// The changes in the leaf's landing buffer and one more, newest of each key, in key order. Large values that were superseded
/// are dead.
pub(crate) fn landed_changes<'a>(leaf: Leaf, more: Option<Entry<'a>>, dead: &mut Vec<Large>) -> Vec<Entry<'a>> {
    let landing = leaf.landing_locked();
    let mut entries = Vec::with_capacity(landing.map_or(0, |landing| landing.entries()) + 1);
    if let Some(landing) = landing {
        // SAFETY: the caller holds the leaf's lock and a guard.
        unsafe { landing.read_all(&mut entries) };
    }
    entries.extend(more);
    newest_by_key(&mut entries, |entry| {
        if let Change::PutLarge(large) = entry.change {
            dead.push(large);
        }
    });
    entries
}

impl Drop for Core {
    fn drop(&mut self) {
        for shard in &mut self.shards {
            let (inners, leaves) = shard.take_nodes();
            for leaf in leaves {
                for large in owned_large(leaf) {
                    // SAFETY: the tree is going: nobody reads it any more.
                    unsafe { Memory::free(large.node()) };
                }
                // SAFETY: as above.
                unsafe {
                    if let Some(landing) = leaf.landing_locked() {
                        Memory::free(landing.node());
                    }
                    Memory::free(leaf.node());
                }
            }
            for inner in inners {
                // SAFETY: as above.
                unsafe { Memory::free(inner) };
            }
        }
    }
}

/// The large values that a leaf and its landing buffer own.
pub(crate) fn owned_large(leaf: Leaf) -> Vec<Large> {
    let mut large: Vec<Large> = leaf.larges(&leaf.sections()).map(|(_, large)| large).collect();
    if let Some(landing) = leaf.landing_locked() {
        let mut entries = Vec::new();
        // SAFETY: the caller is the only one at the leaf.
        unsafe { landing.read_all(&mut entries) };
        large.extend(entries.iter().filter_map(|entry| match entry.change {
            Change::PutLarge(large) => Some(large),
            _ => None,
        }));
    }
    large
}
