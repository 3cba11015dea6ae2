//! The tree's parts, and how a write reaches them.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leafpress_base::reclaim::guard::Guard;

use bumpalo::Bump;

use crate::tree::ShardBy;
use crate::tree::admission::Admission;
use crate::tree::compact::compress::{Buffers, Compression, compress_block};
use crate::tree::compact::landed::owned_large;
use crate::tree::compact::live_settings::LiveSettings;
use crate::tree::error::{MAX_KEY_BYTES, MAX_VALUE_BYTES, TreeError};
use crate::tree::hash::hash;
use crate::tree::index::shard::Shard;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::fraction::Fraction;
use crate::tree::node::landing::{Change, Landing};
use crate::tree::node::large::{Large, NewLarge};
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use crate::tree::read::Read;
use crate::tree::thread_state::{Count, Scratchpad, ThreadState, ThreadStates};
use crate::tree::upkeep::scheduler::Background;
use crate::tree::upkeep::sizing::Sizing;
use crate::tree::upkeep::temperature::Temperatures;
use crate::tree::upkeep::training::Dictionaries;
use crate::tree::write::{Locked, Outcome, WritePath};
use leafpress_base::mem::prefetch::{prefetch_directory, prefetch_for_write};
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_codec::{Codec, Dictionary, InVain};

/// Everything the tree's handle and its background threads share.
pub(crate) struct TreeInner {
    pub shards: Vec<Shard>,
    pub shard_by: ShardBy,
    /// What of the keys goes to which shard, by hash.
    pub partitioner: ShardPartitioner,
    pub settings: LiveSettings,
    /// How the lengths of frames and leaves are chosen.
    pub sizing: Sizing,
    /// Room of a landing buffer; [`None`] where it follows the records.
    pub landing_bytes: Option<usize>,
    /// Least room of one that is made now: see [`Tree::set_min_landing_bytes`](crate::tree::Tree::set_min_landing_bytes).
    pub least_landing_bytes: AtomicUsize,
    /// Threads that load a long run of records, the one that has them included.
    pub load_threads: usize,
    pub engines: Engines,
    pub contexts: ThreadStates,
    pub admission: Admission,
    pub background: Background,
    /// Those of the warm leaves.
    pub dictionaries: Dictionaries,
    /// Where leaves differ in how they are compressed.
    pub temperatures: Option<Temperatures>,
    /// Whether records have marks.
    pub marks: bool,
    /// Nodes point to it: an `Arc`, which unlike a `Box` may be moved without its content being taken for untouched.
    pub memory: Arc<NodeHeap>,
}

/// A key, its hash, and about where in its leaf it is.
pub(crate) struct Sought<'k> {
    pub key: &'k [u8],
    pub hash: u64,
    pub share: Option<Fraction>,
}

/// What a reader of a leaf sees of a key.
pub(crate) struct Seen {
    /// Length of the value, if there is one.
    pub len: Option<usize>,
    /// Where the key is in the leaf's frames, if that is known.
    pub slot: Option<u16>,
    /// Whether the landing buffer has the key.
    pub landed: bool,
}

/// When a write applies.
#[derive(Clone, Copy)]
pub(crate) enum Condition<'c> {
    Always,
    IfAbsent,
    IfPresent,
    /// If this returns true. It is called under the leaf's lock just before the write, also where the key is absent, and is not shown the
    /// value, which need not be readable.
    Noting(&'c dyn Fn() -> bool),
    /// If this returns true for the value that the key has, [`None`] where it is absent. It is called under the leaf's lock, again where the
    /// leaf changed before the write was done, and the last time just before the write.
    If(&'c dyn Fn(Option<Read<'_>>) -> Result<bool, TreeError>),
}

impl TreeInner {
    #[inline(always)]
    pub(crate) fn shard(&self, key: &[u8]) -> &Shard {
        &self.shards[self.shard_index(key)]
    }

    /// Which of the shards has `key`.
    #[inline(always)]
    pub(crate) fn shard_index(&self, key: &[u8]) -> usize {
        if self.shards.len() == 1 {
            return 0;
        }
        match &self.shard_by {
            ShardBy::Hash => self.partitioner.shard(key),
            ShardBy::Range(boundaries) => covering(boundaries, key),
        }
    }

    /// The calling thread's tools.
    #[inline]
    pub(crate) fn take_tools(&self, context: &ThreadState, guard: &Guard<'_>) -> Result<Box<Scratchpad>, TreeError> {
        let (tools, is_new) = self.contexts.take_tools(context, &self.admission, guard)?;
        if is_new {
            self.background.tools_made();
        }
        Ok(tools)
    }

    #[inline]
    pub(crate) fn return_tools(&self, context: &ThreadState, tools: Box<Scratchpad>, guard: &Guard<'_>) {
        self.contexts.return_tools(context, tools, guard);
    }

    /// Sets what threads may hold at the same time by what the tree may hold: how many write, and what each retires before it is flushed.
    pub(crate) fn fit_threads(&self, memory_bytes: u64) {
        self.admission.fit(memory_bytes);
        self.memory.fit_batches(memory_bytes, self.admission.keepers());
    }

    /// Whether `key` is there.
    pub(crate) fn contains_key(&self, key: &[u8]) -> Result<bool, TreeError> {
        let hash = hash(key);
        let context = self.contexts.get()?;
        let guard = self.memory.enter()?;
        let step = self.shard(key).descend_to_read(key, &guard);
        let leaf = step.leaf();
        let mut tools = self.take_tools(context, &guard)?;
        let landing = leaf.landing_for(hash, &guard);
        let sought = Sought {
            key,
            hash,
            share: step.share,
        };
        let seen = self.seen(leaf, landing, &sought, &mut tools);
        self.return_tools(context, tools, &guard);
        Ok(seen?.len.is_some())
    }

    /// What a reader of `leaf` sees of a key.
    pub(crate) fn seen(
        &self,
        leaf: Leaf<'_>,
        landing: Option<Landing<'_>>,
        sought: &Sought<'_>,
        tools: &mut Scratchpad,
    ) -> Result<Seen, TreeError> {
        let Sought { key, hash, share } = *sought;
        if let Some(entry) = landing.and_then(|landing| landing.find(key, hash)) {
            return Ok(Seen {
                len: entry.change.value_len(),
                slot: entry.slot,
                landed: true,
            });
        }
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let sections = leaf.sections();
        let place = leaf.locate(&sections, key, hash, share, &mut decoder)?;
        Ok(Seen {
            len: place.map(|place| leaf.value_len(&sections, place.slot)),
            slot: place.map(|place| place.slot as u16),
            landed: false,
        })
    }

    /// Puts `value`, or removes for `None`, and returns the value that `key` had.
    pub(crate) fn swap(&self, key: &[u8], value: Option<&[u8]>) -> Result<Option<Vec<u8>>, TreeError> {
        let old = RefCell::new(Vec::new());
        let copy = |value: Option<Read<'_>>| {
            let mut old = old.borrow_mut();
            old.clear();
            value.map_or(Ok(()), |value| value.append_to(&mut old))?;
            Ok(true)
        };
        let (was_there, _) = self.write(key, value, Condition::If(&copy))?;
        Ok(was_there.then(|| old.into_inner()))
    }

    /// Puts `new`, or removes for `None`, if the value of `key` is `expected`, or it has none for `None`; returns whether it was so.
    pub(crate) fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, TreeError> {
        let is_expected = |found: Option<Read<'_>>| match found {
            Some(found) => found.with(|found| Some(found) == expected),
            None => Ok(false),
        };
        let condition = match (expected, new) {
            (None, None) => return Ok(!self.contains_key(key)?),
            (None, Some(_)) => Condition::IfAbsent,
            (Some(_), _) => Condition::If(&is_expected),
        };
        self.write(key, new, condition).map(|(_, applied)| applied)
    }

    /// Puts `value`, or removes for `None`. Returns whether the key was there before, and whether the write applied.
    pub(crate) fn write(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        condition: Condition<'_>,
    ) -> Result<(bool, bool), TreeError> {
        if key.len() > MAX_KEY_BYTES {
            return if value.is_some() {
                Err(TreeError::KeyTooLong { len: key.len() })
            } else {
                Ok((false, false))
            };
        }
        if let Some(value) = value
            && value.len() > MAX_VALUE_BYTES
        {
            return Err(TreeError::ValueTooLong { len: value.len() });
        }
        let context = self.contexts.get()?;
        match value {
            Some(value) => {
                context.count(Count::Puts);
                context.add(Count::PutBytes, (key.len() + value.len()) as u64);
            }
            None => context.count(Count::Removes),
        }
        // Within an operation of its own, say of a reader that writes, the thread must not wait for others.
        let _admitted = (!self.memory.is_inside()).then(|| self.admission.enter());
        let guard = self.memory.enter()?;
        let mut tools = self.take_tools(context, &guard)?;
        let mut large = None;
        let change = match value {
            None => Ok(Change::Remove),
            Some(value) if value.len() <= self.settings.inline_value_bytes() => Ok(Change::Put(value)),
            Some(value) => self
                .new_large(value, context, &mut tools.block)
                .map(|new| Change::PutLarge(large.insert(new).large())),
        };
        let result = change.and_then(|change| self.write_change(key, change, condition, context, &mut tools, &guard));
        // One that did not reach the tree is freed.
        if let (Some(large), Ok((_, true))) = (large, &result) {
            large.publish();
        }
        self.return_tools(context, tools, &guard);
        result
    }

    /// A large value, compressed by way of `block`.
    pub(crate) fn new_large(
        &self,
        value: &[u8],
        context: &ThreadState,
        block: &mut Vec<u8>,
    ) -> Result<NewLarge, TreeError> {
        // SAFETY: the memory outlives every node of the tree.
        let new = unsafe { Large::compress(value, &*self.engines.warm, &self.memory, block)? };
        context.add(Count::CopiedBytes, new.large().stored_len() as u64);
        self.count_compressed(value, context);
        Ok(new)
    }

    fn count_compressed(&self, value: &[u8], context: &ThreadState) {
        if self.engines.warm.codec() != Codec::None {
            context.add(Count::CompressedBytes, value.len() as u64);
        }
    }

    /// Takes and releases the latch of the key's leaf: every write of the key under that latch happens either before this, and then reads
    /// that follow see it, or after it, and then the writer sees what the caller did before.
    pub(crate) fn synchronize(&self, key: &[u8]) -> Result<(), TreeError> {
        let shard = self.shard(key);
        let guard = self.memory.enter()?;
        loop {
            let (step, _) = shard.descend_to_write(key, &guard);
            let leaf = step.leaf();
            let _locked = Locked::lock(leaf);
            if !leaf.header().obsolete.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn write_change(
        &self,
        key: &[u8],
        change: Change<'_>,
        condition: Condition<'_>,
        context: &ThreadState,
        tools: &mut Scratchpad,
        guard: &Guard<'_>,
    ) -> Result<(bool, bool), TreeError> {
        let hash = hash(key);
        let shard = self.shard(key);
        let mut block = std::mem::take(&mut tools.block);
        let result = loop {
            let (step, parent) = shard.descend_to_write(key, guard);
            let leaf = step.leaf();
            prefetch_for_write(leaf.as_ptr());
            prefetch_directory(leaf.as_ptr());
            // Null or out of date does no harm.
            prefetch_for_write(leaf.header().landing.load(Ordering::Relaxed));
            // Compressed before the latch is taken; with a dictionary that is most likely the leaf's.
            let built = match change {
                // What lands on a cold leaf is not compressed: with it the leaf becomes warm.
                Change::Put(value)
                    if leaf.temperature() == Temperature::Warm && self.settings.while_writing().single() =>
                {
                    self.compress_value(leaf, value, context, &mut tools.buffers.in_vain, &mut block)
                }
                change => Ok(change),
            };
            let change = match built {
                Ok(change) => change,
                Err(error) => break Err(error),
            };
            let locked = Locked::lock(leaf);
            if leaf.header().obsolete.load(Ordering::Relaxed) {
                continue;
            }
            let work = WritePath {
                core: self,
                shard,
                context,
                guard,
            };
            let sought = Sought {
                key,
                hash,
                share: step.share,
            };
            match work.write_locked(&locked, parent, &sought, change, condition, tools) {
                Ok(Outcome::Done { present, applied }) => {
                    // A background thread that is told while the lock is held comes too early, and leaves the leaf alone.
                    drop(locked);
                    self.background.offer(&work, leaf, key);
                    break Ok((present, applied));
                }
                Ok(Outcome::Restart) => {}
                Err(error) => break Err(error),
            }
        };
        tools.block = block;
        result
    }

    /// A value as a one-record frame of `leaf`.
    fn compress_value<'v>(
        &self,
        leaf: Leaf,
        value: &[u8],
        context: &ThreadState,
        in_vain: &mut InVain,
        block: &'v mut Vec<u8>,
    ) -> Result<Change<'v>, TreeError> {
        let likely = self.dictionaries.current();
        self.count_compressed(value, context);
        block.clear();
        compress_block(value, &*self.engines.warm, likely, in_vain, block)?;
        let dictionary = leaf.dictionary();
        if !std::ptr::eq(
            dictionary.map_or(std::ptr::null(), std::ptr::from_ref),
            likely.map_or(std::ptr::null(), std::ptr::from_ref),
        ) {
            block.clear();
            compress_block(value, &*self.engines.warm, dictionary, in_vain, block)?;
        }
        Ok(Change::Compressed {
            block,
            raw_len: value.len(),
        })
    }

    /// What compresses builders into this tree's warm leaves.
    pub(crate) fn compression<'p, 'b>(&'p self, buffers: &'p mut Buffers, arena: &'b Bump) -> Compression<'p, 'b> {
        self.compression_for(Temperature::Warm, buffers, arena)
    }

    /// What compresses builders into leaves of a temperature. Without a choice of them, all are warm.
    pub(crate) fn compression_for<'p, 'b>(
        &'p self,
        temperature: Temperature,
        buffers: &'p mut Buffers,
        arena: &'b Bump,
    ) -> Compression<'p, 'b> {
        let settings = self.settings.now();
        let (temperature, settings, engine, dictionary) = match (&self.temperatures, temperature) {
            (Some(temperatures), Temperature::Cold) => {
                let settings = temperatures.cold_settings(settings);
                let dictionary = temperatures.cold_dictionaries.current();
                (temperature, settings, &*self.engines.cold, dictionary)
            }
            _ => (
                Temperature::Warm,
                settings,
                &*self.engines.warm,
                self.dictionaries.current(),
            ),
        };
        Compression {
            settings,
            temperature,
            engine,
            dictionary,
            engines: &self.engines,
            reads: 0,
            marks: self.marks,
            memory: &self.memory,
            buffers,
            arena,
        }
    }

    /// The dictionary that a leaf of this temperature would be compressed with now.
    pub(crate) fn dictionary_for(&self, temperature: Temperature) -> Option<&Dictionary> {
        match (&self.temperatures, temperature) {
            (Some(temperatures), Temperature::Cold) => temperatures.cold_dictionaries.current(),
            _ => self.dictionaries.current(),
        }
    }
}

impl Drop for TreeInner {
    fn drop(&mut self) {
        // SAFETY: the tree is going: nobody else has it.
        let guard = unsafe { self.memory.enter_alone() };
        if let Some(temperatures) = &self.temperatures {
            // SAFETY: as above.
            unsafe { temperatures.hot.free(&guard) };
        }
        for shard in &mut self.shards {
            let free_leaf = |leaf: Leaf<'_>| {
                let landing = leaf.landing_locked();
                // SAFETY: the tree is going: nobody reads it any more, and each node is freed once.
                unsafe {
                    for large in owned_large(leaf) {
                        NodeHeap::free(large.node());
                    }
                    if let Some(landing) = landing {
                        NodeHeap::free(landing.node());
                    }
                    NodeHeap::free(leaf.node());
                }
            };
            // SAFETY: nobody reads the tree any more, and its root leads to each inner node once.
            shard.take_nodes(&guard, free_leaf, |inner| unsafe { NodeHeap::free(inner) });
        }
    }
}

/// Which of the ranges between the boundaries, of which there are fewer than shards, a key is in.
#[inline(never)]
fn covering(boundaries: &[Vec<u8>], key: &[u8]) -> usize {
    boundaries.partition_point(|boundary| boundary.as_slice() <= key)
}
