//! Point reads: single ones, and batches whose cache misses overlap.
//!
//! A read of a tree far larger than the caches waits for memory at the leaf and often at the node above it. A core can
//! have a dozen cache misses in flight, of which one read causes few. So a batch of reads is interleaved: each takes
//! one step and prefetches the lines of its next, then the next read takes a step.

use std::sync::atomic::Ordering;

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::hot::Use;
use crate::tree::index::shard::descent::Descent;
use crate::tree::inner::{Sought, TreeInner};
use crate::tree::node::decoder::{Decoder, Value};
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::landing::{Change, Landing};
use crate::tree::node::large::Large;
use crate::tree::node::layout::{Sections, Temperature};
use crate::tree::node::leaf::{Leaf, RecordSlot};
use crate::tree::thread_state::{Count, Scratchpad, ThreadState};
use crate::tree::upkeep::temperature::{Answered, ReadTimer, is_counted, may_heat};
use leafpress_base::mem::node::NodeHeader;
use leafpress_base::mem::prefetch::prefetch;
use leafpress_codec::Engine;

/// Number of interleaved reads. Their leaves' lines must stay in the L1 cache until they are read.
const LANES: usize = 8;

/// A value found by a read.
pub(crate) enum Read<'a> {
    Bytes(&'a [u8]),
    Large(Large<'a>, &'a dyn Engine),
}

impl Read<'_> {
    /// Appends the value to `out`.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), TreeError> {
        match self {
            Read::Bytes(value) => {
                out.try_reserve(value.len())
                    .map_err(|_| TreeError::OutOfMemory { bytes: value.len() })?;
                out.extend_from_slice(value);
                Ok(())
            }
            Read::Large(large, engine) => large.read_into(*engine, out),
        }
    }

    /// Returns the value's length, without decoding it.
    pub(crate) fn len(&self) -> usize {
        match self {
            Read::Bytes(value) => value.len(),
            Read::Large(large, _) => large.raw_len(),
        }
    }

    /// Calls `read` with the value's bytes.
    #[inline]
    pub(crate) fn with<R>(self, read: impl FnOnce(&[u8]) -> R) -> Result<R, TreeError> {
        match self {
            Read::Bytes(value) => Ok(read(value)),
            Read::Large(large, engine) => large.with(engine, read),
        }
    }
}

/// A leaf, with the result of the search for a key before anything is decoded.
struct Looked<'g> {
    leaf: Leaf<'g>,
    landing: Option<Landing<'g>>,
    sections: Sections,
    /// The record's place; [`None`] where only decoding can determine it.
    found: Option<Option<RecordSlot>>,
}

impl Looked<'_> {
    /// Returns whether the key is known to be absent without decoding.
    #[inline(always)]
    fn is_absent(&self) -> bool {
        self.landing.is_none() && matches!(self.found, Some(None))
    }
}

/// A record that may become hot when it has been read.
struct Candidate<'g> {
    leaf: Leaf<'g>,
    /// Address of its entry in the landing buffer, if it has one.
    landed: Option<usize>,
}

/// A read in progress.
#[derive(Clone, Copy)]
struct Lane<'k, 'g> {
    key: &'k [u8],
    hash: u64,
    descent: Descent<'g>,
}

impl TreeInner {
    /// Calls `read` with the value of `key`.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(Read<'_>) -> Result<R, TreeError>,
    ) -> Result<Option<R>, TreeError> {
        let hash = hash(key);
        let context = self.contexts.get()?;
        let guard = self.memory.enter()?;
        if self.hot.is_some() {
            let (mut read, mut result) = (Some(read), None);
            self.get_with_hot((key, hash), context, &guard, &mut |value| {
                if let Some(read) = read.take() {
                    result = Some(read(value)?);
                }
                Ok(())
            })?;
            return Ok(result);
        }
        let step = self.shard(key).descend_to_read(key, &guard);
        let looked = look(&step, key, hash, context, &guard);
        if looked.is_absent() {
            return Ok(None);
        }
        let mut tools = self.take_tools(context, &guard)?;
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let result = self.answer(&looked, key, hash, context, &mut decoder, read);
        count_decoded(context, &decoder);
        self.return_tools(context, tools, &guard);
        result
    }

    /// Like [`TreeInner::get`], where records may be hot and leaves cold. It is a separate function so that reads of
    /// other trees do not pay for it.
    #[inline(never)]
    fn get_with_hot(
        &self,
        (key, hash): (&[u8], u64),
        context: &ThreadState,
        guard: &Guard<'_>,
        read: &mut dyn FnMut(Read<'_>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let timer = ReadTimer::start(context);
        if let Some(value) = self.hot_value(key, hash, context, guard) {
            context.count(Count::Gets);
            let result = read(Read::Bytes(value));
            timer.stop(context, Answered::HotRecord);
            return result;
        }
        let step = self.shard(key).descend_to_read(key, guard);
        let looked = look(&step, key, hash, context, guard);
        self.note_read(looked.leaf, context);
        if looked.is_absent() {
            return Ok(());
        }
        let mut tools = self.take_tools(context, guard)?;
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let candidate = self.candidate(&looked, key, hash, context);
        let result = self.answer(&looked, key, hash, context, &mut decoder, |value| {
            if let Some(candidate) = &candidate {
                self.heat(candidate, key, hash, &value, context, guard);
            }
            read(value)
        });
        count_decoded(context, &decoder);
        self.return_tools(context, tools, guard);
        timer.stop(
            context,
            match looked.leaf.temperature() {
                Temperature::Warm => Answered::WarmLeaf,
                Temperature::Cold => Answered::ColdLeaf,
            },
        );
        result.map(|_| ())
    }

    /// Returns the value of a key that is hot.
    #[inline(always)]
    fn hot_value<'g>(&self, key: &[u8], hash: u64, context: &ThreadState, guard: &'g Guard<'_>) -> Option<&'g [u8]> {
        let value = self.hot.as_ref()?.find(key, hash, guard)?;
        context.count(Count::GetHotHits);
        Some(value)
    }

    /// Returns the record that is about to be read as a candidate for the hot ones, for one in several reads.
    #[inline(always)]
    fn candidate<'g>(
        &self,
        looked: &Looked<'g>,
        key: &[u8],
        hash: u64,
        context: &ThreadState,
    ) -> Option<Candidate<'g>> {
        let hot = self.hot.as_ref()?;
        may_heat(context.so_far(Count::Gets), looked.leaf.temperature(), hot.is_filling()).then(|| Candidate {
            leaf: looked.leaf,
            landed: looked
                .landing
                .and_then(|landing| landing.find(key, hash))
                .map(|entry| entry.key.as_ptr().addr()),
        })
    }

    /// Makes a record hot that was read, if there is a slot for it.
    #[cold]
    fn heat(
        &self,
        candidate: &Candidate<'_>,
        key: &[u8],
        hash: u64,
        value: &Read<'_>,
        context: &ThreadState,
        guard: &Guard<'_>,
    ) {
        // A large value takes as long to copy as to decode.
        let (Some(hot), Read::Bytes(value)) = (&self.hot, value) else {
            return;
        };
        if !hot.admits(hash, &self.memory, guard) {
            return;
        }
        let leaf = candidate.leaf;
        // The holder of the latch may be about to write.
        let Some(_latch) = leaf.header().lock.try_lock() else {
            return;
        };
        // The value is the newest if nothing was published since the record became a candidate, which was before the
        // value was read: a leaf that was replaced is obsolete, and a write that landed has another address.
        let landed = leaf
            .landing_for(hash, guard)
            .and_then(|landing| landing.find(key, hash))
            .map(|entry| entry.key.as_ptr().addr());
        if leaf.header().obsolete.load(Ordering::Relaxed) || landed != candidate.landed {
            return;
        }
        if hot
            .insert((key, value), hash, Use::default(), &self.memory, guard)
            .unwrap_or(false)
        {
            context.count(Count::Heated);
        }
    }

    /// Counts one in several reads for its leaf, where compression depends on reads.
    #[inline(always)]
    fn note_read(&self, leaf: Leaf<'_>, context: &ThreadState) {
        if self.temperatures.is_some() && is_counted(context.so_far(Count::Gets)) {
            leaf.count_read();
        }
    }

    /// Calls `read` with the value of `key`, and notes nowhere that it was read.
    pub(crate) fn peek<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(Read<'_>) -> Result<R, TreeError>,
    ) -> Result<Option<R>, TreeError> {
        let context = self.contexts.get()?;
        let guard = self.memory.enter()?;
        let step = self.shard(key).descend_to_read(key, &guard);
        let mut tools = self.take_tools(context, &guard)?;
        let sought = Sought {
            key,
            hash: hash(key),
            share: step.share,
        };
        let result = self.value_in(step.leaf(), &sought, &guard, &mut tools, read);
        self.return_tools(context, tools, &guard);
        result
    }

    /// Returns the value of `key`, copied.
    pub(crate) fn get_copied(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        self.get(key, |read| {
            let mut value = Vec::new();
            read.append_to(&mut value)?;
            Ok(value)
        })
    }

    /// Replaces the contents of `value` by the value of `key`; returns whether there is one.
    pub(crate) fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, TreeError> {
        value.clear();
        Ok(self.get(key, |read| read.append_to(value))?.is_some())
    }

    /// Calls `read` with the value that `leaf` has for a key. What a writer that holds its lock sees is the newest.
    pub(crate) fn value_in<R>(
        &self,
        leaf: Leaf,
        sought: &Sought<'_>,
        guard: &Guard<'_>,
        tools: &mut Scratchpad,
        read: impl FnOnce(Read<'_>) -> Result<R, TreeError>,
    ) -> Result<Option<R>, TreeError> {
        let Sought { key, hash, share } = *sought;
        let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
        let landing = leaf.landing_for(hash, guard);
        if let Some(entry) = landing.and_then(|landing| landing.find(key, hash)) {
            return self.landed(leaf, key, entry.change, &mut decoder, read);
        }
        let sections = leaf.sections();
        let place = leaf.locate(&sections, key, hash, share, &mut decoder)?;
        self.placed(leaf, &sections, place, &mut decoder, read)
    }

    /// Calls `read` with each key's index and value, in order. A key whose value cannot be read is skipped; the first
    /// such error is returned after all keys.
    pub(crate) fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<Read<'_>>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let context = self.contexts.get()?;
        let mut result = Ok(());
        for (chunk, first) in keys.chunks(LANES).zip((0..).step_by(LANES)) {
            // A guard for each small batch, so that garbage need not wait for all of them.
            let guard = self.memory.enter()?;
            let lanes = self.lanes(chunk, &guard);
            let mut looked = [const { None::<Looked> }; LANES];
            for (looked, lane) in looked.iter_mut().zip(&lanes).take(chunk.len()) {
                *looked = Some(look(&lane.descent.step, lane.key, lane.hash, context, &guard));
            }
            let mut tools = self.take_tools(context, &guard)?;
            let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
            for ((index, lane), looked) in (first..).zip(&lanes).zip(looked.iter().flatten()) {
                let mut answer = |value: Option<Read<'_>>| read(index, value);
                let done = if let Some(value) = self.hot_value(lane.key, lane.hash, context, &guard) {
                    answer(Some(Read::Bytes(value)))
                } else if looked.is_absent() {
                    answer(None)
                } else {
                    self.note_read(looked.leaf, context);
                    match self.answer(looked, lane.key, lane.hash, context, &mut decoder, |value| {
                        answer(Some(value))
                    }) {
                        Ok(None) => answer(None),
                        Ok(Some(())) => Ok(()),
                        Err(error) => Err(error),
                    }
                };
                if result.is_ok() {
                    result = done;
                }
            }
            count_decoded(context, &decoder);
            self.return_tools(context, tools, &guard);
        }
        result
    }

    /// Descends for all keys, and prefetches what the reads need of their leaves.
    #[inline(always)]
    fn lanes<'k, 'g, K: AsRef<[u8]>>(&self, keys: &'k [K], guard: &'g Guard<'_>) -> [Lane<'k, 'g>; LANES] {
        let mut lanes = [Lane {
            key: &[],
            hash: 0,
            descent: Descent::END,
        }; LANES];
        for (lane, key) in lanes.iter_mut().zip(keys) {
            let key = key.as_ref();
            let hash = hash(key);
            self.shard(key).prefetch_interpolation(key, guard);
            *lane = Lane {
                key,
                hash,
                descent: Descent::END,
            };
        }
        for lane in &mut lanes[..keys.len()] {
            lane.descent = self.shard(lane.key).descent_to_read(lane.key, guard);
        }
        let mut on_the_way = true;
        while on_the_way {
            on_the_way = false;
            for lane in &mut lanes[..keys.len()] {
                on_the_way |= lane.descent.advance(lane.key, self.partitioner, guard);
            }
        }
        lanes
    }

    /// Calls `read` with the value of `key`, decoded.
    #[inline(always)]
    fn answer<R>(
        &self,
        looked: &Looked<'_>,
        key: &[u8],
        hash: u64,
        context: &ThreadState,
        decoder: &mut Decoder<'_>,
        read: impl FnOnce(Read<'_>) -> Result<R, TreeError>,
    ) -> Result<Option<R>, TreeError> {
        let Looked { leaf, sections, .. } = looked;
        if let Some(entry) = looked.landing.and_then(|landing| landing.find(key, hash)) {
            context.count(Count::GetLandingHits);
            if let Some(slot) = entry.slot {
                leaf.mark_read(usize::from(slot));
            }
            return self.landed(*leaf, key, entry.change, decoder, read);
        }
        let place = match looked.found {
            Some(place) => place,
            None => leaf.locate(sections, key, hash, None, decoder)?,
        };
        if let Some(place) = place {
            leaf.mark_read(place.slot);
        }
        self.placed(*leaf, sections, place, decoder, read)
    }

    /// Calls `read` with the value of an entry of the landing buffer.
    #[inline(always)]
    fn landed<R>(
        &self,
        leaf: Leaf,
        key: &[u8],
        change: Change<'_>,
        decoder: &mut Decoder<'_>,
        read: impl FnOnce(Read<'_>) -> Result<R, TreeError>,
    ) -> Result<Option<R>, TreeError> {
        match change {
            Change::Put(value) => read(Read::Bytes(value)).map(Some),
            Change::PutLarge(large) => read(Read::Large(large, &*self.engines.warm)).map(Some),
            Change::Compressed { block, raw_len } => leaf
                .landed_value(key, block, raw_len, decoder)
                .and_then(|value| read(Read::Bytes(value)))
                .map(Some),
            Change::Remove => Ok(None),
        }
    }

    /// Calls `read` with the value at a place of the leaf's frames.
    #[inline(always)]
    fn placed<R>(
        &self,
        leaf: Leaf,
        sections: &Sections,
        place: Option<RecordSlot>,
        decoder: &mut Decoder<'_>,
        read: impl FnOnce(Read<'_>) -> Result<R, TreeError>,
    ) -> Result<Option<R>, TreeError> {
        match place {
            None => Ok(None),
            Some(place) => match leaf.value(sections, place, decoder)? {
                Value::Inline(value) => read(Read::Bytes(value)).map(Some),
                Value::Large(large) => read(Read::Large(large, &*self.engines.warm)).map(Some),
            },
        }
    }
}

/// Searches the leaf for the key, and prefetches what reading it needs.
#[inline(always)]
fn look<'g>(step: &DescentStep<'g>, key: &[u8], hash: u64, context: &ThreadState, guard: &'g Guard<'_>) -> Looked<'g> {
    let leaf = step.leaf();
    context.count(Count::Gets);
    // The misses overlap: the landing buffer's line is fetched while the keys are searched, the block's while the
    // buffer is.
    let landing = leaf.landing_for(hash, guard);
    if let Some(landing) = landing {
        prefetch(landing.as_ptr().wrapping_add(size_of::<NodeHeader>()));
    }
    let sections = leaf.sections();
    let found = leaf.search_exact(&sections, key, step.share);
    if let Some(Some(place)) = found {
        leaf.prefetch_block(&sections, place.frame);
    }
    Looked {
        leaf,
        landing,
        sections,
        found,
    }
}

#[inline(always)]
fn count_decoded(context: &ThreadState, decoder: &Decoder<'_>) {
    if decoder.frames > 0 {
        context.add(Count::GetFrames, decoder.frames);
        context.add(Count::GetBytes, decoder.bytes);
    }
}
