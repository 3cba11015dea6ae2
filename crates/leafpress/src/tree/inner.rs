//! The tree's shared state, and the entry points of writes.

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
use crate::tree::hot::HotRecords;
use crate::tree::index::shard::Shard;
use crate::tree::node::decoder::{Decoder, Engines};
use crate::tree::node::fraction::Fraction;
use crate::tree::node::landing::{Change, Landing};
use crate::tree::node::large::{Large, MAX_BUFFERED_BYTES, NewLarge};
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
use leafpress_codec::{Codec, Dictionary};

/// State shared by the tree's handle and its background threads.
pub(crate) struct TreeInner {
    pub shards: Vec<Shard>,
    pub shard_by: ShardBy,
    /// The part of the keys that is distributed to shards by hash.
    pub partitioner: ShardPartitioner,
    pub settings: LiveSettings,
    /// How the lengths of frames and leaves are chosen.
    pub sizing: Sizing,
    /// Size of a landing buffer; [`None`] where it is chosen by the records.
    pub landing_bytes: Option<usize>,
    /// Minimum size of new landing buffers: see
    /// [`Tree::set_min_landing_bytes`](crate::tree::Tree::set_min_landing_bytes).
    pub least_landing_bytes: AtomicUsize,
    /// Threads that load a long run of records, including the calling one.
    pub load_threads: usize,
    pub engines: Engines,
    pub contexts: ThreadStates,
    pub admission: Admission,
    pub background: Background,
    /// Dictionaries of the warm leaves.
    pub dictionaries: Dictionaries,
    /// Present where leaves have temperatures.
    pub temperatures: Option<Temperatures>,
    /// Present where records may be hot.
    pub hot: Option<HotRecords>,
    /// Whether records have marks.
    pub marks: bool,
    /// Nodes point to it. It is an `Arc` because moving a `Box` would assert unique access to its contents.
    pub memory: Arc<NodeHeap>,
}

/// A key, its hash, and its approximate position in its leaf.
pub(crate) struct Sought<'k> {
    pub key: &'k [u8],
    pub hash: u64,
    pub share: Option<Fraction>,
}

/// What a reader of a leaf finds for a key.
pub(crate) struct Seen {
    /// Length of the value, if there is one.
    pub len: Option<usize>,
    /// Slot of the key in the leaf's frames, if known.
    pub slot: Option<u16>,
    /// Whether the landing buffer has the key.
    pub landed: bool,
}

/// The condition under which a write applies.
#[derive(Clone, Copy)]
pub(crate) enum Condition<'c> {
    Always,
    IfAbsent,
    IfPresent,
    /// If this returns true. It is called under the leaf's lock just before the write, also where the key is absent,
    /// and without the value, which need not be readable.
    Noting(&'c dyn Fn() -> bool),
    /// If this returns true for the key's current value, [`None`] where it is absent. It is called under the leaf's
    /// lock, again if the leaf changed before the write was done, and the last time just before the write.
    If(&'c dyn Fn(Option<Read<'_>>) -> Result<bool, TreeError>),
}

impl TreeInner {
    #[inline(always)]
    pub(crate) fn shard(&self, key: &[u8]) -> &Shard {
        &self.shards[self.shard_index(key)]
    }

    /// Returns the index of the shard of `key`.
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

    /// Returns the calling thread's scratchpad.
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

    /// Bounds what threads hold concurrently by the tree's memory limit: the number of writers, and the retired nodes
    /// of each before they are flushed.
    pub(crate) fn fit_threads(&self, memory_bytes: u64) {
        self.admission.fit(memory_bytes);
        self.memory.fit_batches(memory_bytes, self.admission.keepers());
    }

    /// Returns whether `key` is present.
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

    /// Returns what a reader of `leaf` finds for a key.
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

    /// Inserts `value`, or removes for `None`, and returns the previous value of `key`.
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

    /// Inserts `new`, or removes for `None`, if the value of `key` is `expected` (`None`: absent); returns whether it
    /// was.
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

    /// Inserts `value`, or removes for `None`. Returns whether the key was present before, and whether the write
    /// applied.
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
        // Inside an operation of its own, for example in the callback of a read, the thread must not wait for others.
        let _admitted = self.admission.enter(self.memory.is_inside()).ok_or(TreeError::Closed)?;
        match value {
            Some(value) => {
                context.count(Count::Puts);
                context.add(Count::PutBytes, (key.len() + value.len()) as u64);
            }
            None => context.count(Count::Removes),
        }
        // A long value is compressed before the epoch is entered: no node could be freed for milliseconds otherwise.
        let mut large = match value {
            Some(value) if value.len() > MAX_BUFFERED_BYTES => Some(self.new_large(value, context, &mut Vec::new())?),
            _ => None,
        };
        let guard = self.memory.enter()?;
        let mut tools = self.take_tools(context, &guard)?;
        let change = match (value, &large) {
            (None, _) => Ok(Change::Remove),
            (Some(_), Some(new)) => Ok(Change::PutLarge(new.large())),
            (Some(value), None) if value.len() <= self.settings.inline_value_bytes() => Ok(Change::Put(value)),
            (Some(value), None) => self
                .new_large(value, context, &mut tools.block)
                .map(|new| Change::PutLarge(large.insert(new).large())),
        };
        let result = change.and_then(|change| self.write_change(key, change, condition, context, &mut tools, &guard));
        // A large value that did not reach the tree is freed.
        if let (Some(large), Ok((_, true))) = (large, &result) {
            large.publish();
        }
        self.return_tools(context, tools, &guard);
        result
    }

    /// Compresses a large value, using `block` as a buffer.
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

    /// Acquires and releases the latch of the key's leaf: every write of the key under that latch happens either before
    /// this, and then later reads see it, or after it, and then the writer sees what the caller did before.
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
        raw: Change<'_>,
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
            // The address may be null or stale: a prefetch does not fault.
            prefetch_for_write(leaf.header().landing.load(Ordering::Relaxed));
            // The value is compressed before the latch is taken, with the dictionary that the leaf most likely has.
            let built = match raw {
                // Values that land on a cold leaf are not compressed: the next compaction makes the leaf warm.
                Change::Put(value)
                    if leaf.temperature() == Temperature::Warm && self.settings.while_writing().single() =>
                {
                    self.compress_value(leaf, key, value, context, &mut tools.buffers, &mut block)
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
                Ok(Outcome::Done {
                    present,
                    applied,
                    was_hot,
                }) => {
                    let used = was_hot.filter(|_| matches!(raw, Change::Put(_)));
                    let is_replaced = used.is_some() && leaf.header().obsolete.load(Ordering::Relaxed);
                    if let (Some(hot), Some(used), Change::Put(value), false) = (&self.hot, used, raw, is_replaced) {
                        // The latch is held, so no later write of the key was published. If there is no room the record
                        // is no longer hot.
                        let _ = hot.insert((key, value), hash, used, &self.memory, guard);
                    }
                    // The lock is released first: a background thread notified while it is held would fail to take it,
                    // and skip the leaf.
                    drop(locked);
                    if let (Some(used), true) = (used, is_replaced) {
                        work.heat_again(&sought, used, tools);
                    }
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

    /// Compresses a record as a one-record frame of `leaf`: its value, and in a keyed leaf its key behind the prefix.
    fn compress_value<'v>(
        &self,
        leaf: Leaf,
        key: &[u8],
        value: &'v [u8],
        context: &ThreadState,
        buffers: &mut Buffers,
        block: &'v mut Vec<u8>,
    ) -> Result<Change<'v>, TreeError> {
        let Buffers {
            raw, incompressible, ..
        } = buffers;
        let Some(record) = leaf.raw_record(key, value, raw)? else {
            return Ok(Change::Put(value));
        };
        let likely = self.dictionaries.current();
        self.count_compressed(record, context);
        block.clear();
        compress_block(record, &*self.engines.warm, likely, incompressible, block)?;
        let dictionary = leaf.dictionary();
        if !std::ptr::eq(
            dictionary.map_or(std::ptr::null(), std::ptr::from_ref),
            likely.map_or(std::ptr::null(), std::ptr::from_ref),
        ) {
            block.clear();
            compress_block(record, &*self.engines.warm, dictionary, incompressible, block)?;
        }
        Ok(Change::Compressed {
            block,
            raw_len: value.len(),
        })
    }

    /// Returns the compressor of builders into this tree's warm leaves.
    pub(crate) fn compression<'p, 'b>(&'p self, buffers: &'p mut Buffers, arena: &'b Bump) -> Compression<'p, 'b> {
        self.compression_for(Temperature::Warm, buffers, arena)
    }

    /// Returns the compressor of builders into leaves of a temperature. Without temperatures all leaves are warm.
    pub(crate) fn compression_for<'p, 'b>(
        &'p self,
        temperature: Temperature,
        buffers: &'p mut Buffers,
        arena: &'b Bump,
    ) -> Compression<'p, 'b> {
        let settings = self.settings.now();
        let (temperature, settings, engine, dictionary) = match (&self.temperatures, temperature) {
            (Some(temperatures), Temperature::Cold) => {
                let dictionary = temperatures.cold_dictionaries.current();
                let settings = temperatures.cold_settings(settings, dictionary);
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

    /// Returns the dictionary that a new leaf of this temperature would be compressed with.
    pub(crate) fn dictionary_for(&self, temperature: Temperature) -> Option<&Dictionary> {
        match (&self.temperatures, temperature) {
            (Some(temperatures), Temperature::Cold) => temperatures.cold_dictionaries.current(),
            _ => self.dictionaries.current(),
        }
    }
}

impl Drop for TreeInner {
    fn drop(&mut self) {
        // SAFETY: `&mut self` shows that no other thread uses the tree.
        let guard = unsafe { self.memory.enter_alone() };
        if let Some(hot) = &self.hot {
            // SAFETY: `&mut self` shows that no other thread uses the tree, and the hot records are not used
            // afterwards.
            unsafe { hot.free(&guard) };
        }
        for shard in &mut self.shards {
            let free_leaf = |leaf: Leaf<'_>| {
                let landing = leaf.landing_locked();
                // SAFETY: no thread reads the tree any more, and each node is freed once.
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
            // SAFETY: no thread reads the tree any more, and its root leads to each inner node once.
            shard.take_nodes(&guard, free_leaf, |inner| unsafe { NodeHeap::free(inner) });
        }
    }
}

/// Returns the index of the range between the boundaries, of which there are fewer than shards, that contains a key.
#[inline(never)]
fn covering(boundaries: &[Vec<u8>], key: &[u8]) -> usize {
    boundaries.partition_point(|boundary| boundary.as_slice() <= key)
}
