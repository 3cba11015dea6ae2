//! Eviction of records from the tree, a leaf at a time, for a cache on top of the tree.
//!
//! A clock hand moves over the leaves in key order. At each leaf the evictor sees all records and chooses which to
//! evict; removing them is one compaction, which copies the blocks of the others where every record is a frame of its
//! own.

use bumpalo::Bump;

use crate::tree::Tree;
use crate::tree::compact::builder::keep;
use crate::tree::compact::landed::landed_changes;
use crate::tree::error::TreeError;
use crate::tree::hash::hash;
use crate::tree::hot::Survey;
use crate::tree::in_range::keys_of;
use crate::tree::inner::{Condition, Sought, TreeInner};
use crate::tree::node::decoder::{Decoder, Value};
use crate::tree::node::landing::{Change, LandedWrite};
pub(crate) use crate::tree::node::layout::READ;
use crate::tree::node::layout::Temperature;
use crate::tree::node::leaf::Leaf;
use crate::tree::node::leaf::frame::Ascending;
use crate::tree::read::Read;
use crate::tree::thread_state::Count;
pub(crate) use crate::tree::upkeep::sizing::MemoryWorth;
use crate::tree::upkeep::temperature::Answered;
use crate::tree::write::{Cut, WritePath};
use leafpress_base::mem::room::{TryGrow, short_lived_room_for};

/// The position of the clock hand: the leaf of a shard that holds a key.
#[derive(Debug, Default)]
pub(crate) struct Hand {
    shard: usize,
    key: Vec<u8>,
    /// Number of completed rounds.
    pub rounds: u64,
}

/// A record that is presented to the evictor.
pub(crate) struct Shown<'r> {
    pub key: &'r [u8],
    pub hash: u64,
    /// The value, where values were requested.
    value: Option<Read<'r>>,
    /// Slot of its mark; `None` for a record in the landing buffer that has none.
    slot: Option<usize>,
    /// The record's mark, which the evictor may change: see [`READ`].
    pub mark: u8,
    /// Set by the evictor: the record is to be evicted.
    pub goes: bool,
    /// Set by the evictor: the value to keep instead of the record's own, if it is evicted.
    pub stays_as: Option<&'static [u8]>,
    /// Scratch byte for the evictor.
    pub tag: u8,
}

impl Shown<'_> {
    /// Returns whether a change of the mark persists: a record in the landing buffer has no mark of its own yet.
    pub(crate) fn keeps_mark(&self) -> bool {
        self.slot.is_some()
    }

    /// Returns the value, where values were requested and it is stored inline; large values are not decoded for this.
    pub(crate) fn short_value(&self) -> Option<&[u8]> {
        match self.value.as_ref()? {
            Read::Bytes(value) => Some(value),
            Read::Large(..) => None,
        }
    }

    /// Calls `read` with the value, where values were requested and it is readable.
    pub(crate) fn with_value<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self.value.as_ref()? {
            Read::Bytes(value) => Some(read(value)),
            Read::Large(large, engine) => large.with(*engine, read).ok(),
        }
    }
}

/// An eviction policy.
pub(crate) trait Evictor {
    /// Returns whether the values are needed, which costs the time to decode them.
    fn wants_values(&self) -> bool;
    /// Marks the records to evict among a leaf's records, which are in key order.
    fn choose(&mut self, records: &mut [Shown<'_>]);
    /// Called for a record that was removed from the tree. No lock is held.
    fn gone(&mut self, record: &Shown<'_>);
}

/// The result of a visit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visit {
    /// Records in the leaf.
    pub records: usize,
    /// Records that were evicted.
    pub gone: usize,
}

impl TreeInner {
    /// Presents the leaf at the hand to `evictor`, evicts the chosen records, and advances the hand. A leaf that is
    /// latched by a writer is skipped.
    ///
    /// # Errors
    /// Those of a compaction, or of decoding; nothing was evicted then, and the hand has advanced.
    fn evict_at(&self, hand: &mut Hand, arena: &mut Bump, evictor: &mut dyn Evictor) -> Result<Visit, TreeError> {
        arena.reset();
        let context = self.contexts.get()?;
        let guard = self.memory.enter()?;
        let shard = &self.shards[hand.shard.min(self.shards.len() - 1)];
        let key = keep(arena, &hand.key)?;
        let (_, end) = shard.descend_up(key, &guard)?;
        match end {
            Some(end) => hand.key = end,
            None => {
                hand.key.clear();
                hand.shard += 1;
                if hand.shard >= self.shards.len() {
                    hand.shard = 0;
                    hand.rounds += 1;
                }
            }
        }
        let work = WritePath {
            core: self,
            shard,
            context,
            guard: &guard,
        };
        let (leaf, parent) = shard.descend(key, &guard);
        let Some(locked) = work.try_lock(leaf) else {
            return Ok(Visit::default());
        };
        let mut tools = self.take_tools(context, &guard)?;
        let result = (|| -> Result<_, TreeError> {
            let mut decoder = Decoder::new(&self.engines, &mut tools.scratch);
            let mut records = self.records_of(leaf, evictor.wants_values(), arena, &mut decoder)?;
            if let Some(hot) = &self.hot {
                // Reads of hot records do not reach their leaf, so their marks are not set there.
                let is_hot = |record: &&mut Shown<'_>| hot.contains(record.key, record.hash, &guard);
                records.iter_mut().filter(is_hot).for_each(|record| record.mark |= READ);
            }
            evictor.choose(&mut records);
            for record in &records {
                if let Some(slot) = record.slot {
                    leaf.set_mark(slot, record.mark);
                }
            }
            let removals = || {
                let going = records.iter().filter(|record| record.goes);
                going.map(|record| {
                    let change = record.stays_as.map_or(Change::Remove, Change::Put);
                    LandedWrite::new(record.key, change, None)
                })
            };
            let mut changes = short_lived_room_for(removals().count())?;
            changes.extend(removals());
            let visit = Visit {
                records: records.len(),
                gone: changes.len(),
            };
            let stay = records.iter().filter(|record| record.goes && record.stays_as.is_some());
            let erased = (changes.len() - stay.count()) as u64;
            if changes.is_empty() {
                return Ok((records, visit));
            }
            if let Some(hot) = &self.hot {
                for record in records.iter().filter(|record| record.goes) {
                    let _ = hot.remove(record.key, record.hash, &guard);
                }
            }
            let temperature = leaf.temperature();
            let settings = match temperature {
                Temperature::Warm => self.settings.while_writing(),
                Temperature::Cold => self.settings.now(),
            };
            let cut = Cut::Changed(settings);
            if !work.compact_frames_locked(&locked, parent, key, &changes, cut, temperature, &mut tools)? {
                return Ok((records, Visit { gone: 0, ..visit }));
            }
            context.add(Count::Erased, erased);
            let was_empty = |record: &Shown<'_>| record.short_value().is_some_and(<[u8]>::is_empty);
            for record in records.iter().filter(|record| record.goes) {
                match (was_empty(record), record.stays_as.is_some_and(<[u8]>::is_empty)) {
                    (false, true) => context.count(Count::EmptyInserted),
                    (true, false) => context.count(Count::EmptyErased),
                    _ => {}
                }
            }
            Ok((records, visit))
        })();
        drop(locked);
        self.return_tools(context, tools, &guard);
        let (records, visit) = result?;
        if visit.gone > 0 {
            records
                .iter()
                .filter(|record| record.goes)
                .for_each(|record| evictor.gone(record));
        }
        Ok(visit)
    }

    /// Returns the records that a reader finds in a leaf, in key order. The caller holds its latch.
    fn records_of<'r>(
        &'r self,
        leaf: Leaf<'r>,
        with_values: bool,
        arena: &'r Bump,
        decoder: &mut Decoder<'_>,
    ) -> Result<Vec<Shown<'r>>, TreeError> {
        let sections = leaf.sections();
        let landed = landed_changes(leaf, &[], &mut Vec::new())?;
        let mut records = short_lived_room_for(leaf.count() + landed.len())?;
        let mut landed = landed.iter().peekable();
        let place =
            |records: &mut Vec<Shown<'r>>, key: &'r [u8], value: Option<Read<'r>>, slot: Option<usize>, landed| {
                records.try_push(Shown {
                    key,
                    hash: hash(key),
                    value,
                    slot,
                    // A record that was overwritten recently counts as used.
                    mark: slot.map_or(0, |slot| leaf.mark(slot)) | if landed && slot.is_some() { READ } else { 0 },
                    goes: false,
                    stays_as: None,
                    tag: 0,
                })
            };
        let landed_value =
            |entry: &LandedWrite<'r>, decoder: &mut Decoder<'_>| -> Result<Option<Read<'r>>, TreeError> {
                Ok(match entry.change {
                    Change::Put(value) => Some(Read::Bytes(value)),
                    Change::PutLarge(large) => Some(Read::Large(large, &*self.engines.warm)),
                    Change::Compressed { block, raw_len } if with_values => Some(Read::Bytes(keep(
                        arena,
                        leaf.landed_value(entry.key, block, raw_len, decoder)?,
                    )?)),
                    Change::Compressed { .. } | Change::Remove => None,
                })
            };
        let mut key = Vec::new();
        let mut in_frame = Vec::<(&'r [u8], Option<Read<'r>>)>::new();
        let mut ascending = Ascending::default();
        for frame in 0..leaf.frames() {
            let slots = leaf.slots(&sections, frame);
            if with_values {
                leaf.visit_frame(&sections, frame, decoder, &mut key, |_, key, value| {
                    let value = match value {
                        Value::Inline(value) => Some(Read::Bytes(keep(arena, value)?)),
                        Value::Large(large) => Some(Read::Large(large, &*self.engines.warm)),
                    };
                    in_frame.try_push((keep(arena, key)?, value))?;
                    Ok(())
                })?;
            } else {
                keys_of(leaf, &sections, frame, decoder, &mut key, |_, key| {
                    in_frame.try_push((keep(arena, key)?, None))?;
                    Ok(())
                })?;
            }
            for (slot, (key, value)) in slots.zip(in_frame.drain(..)) {
                ascending.check(leaf, key)?;
                while let Some(entry) = landed.next_if(|entry| entry.key < key) {
                    if entry.change.value_len().is_some() {
                        place(&mut records, entry.key, landed_value(entry, decoder)?, None, true)?;
                    }
                }
                match landed.next_if(|entry| entry.key == key) {
                    Some(entry) => {
                        if entry.change.value_len().is_some() {
                            place(&mut records, key, landed_value(entry, decoder)?, Some(slot), true)?;
                        }
                    }
                    None => place(&mut records, key, value, Some(slot), false)?,
                }
            }
        }
        for entry in landed {
            if entry.change.value_len().is_some() {
                place(&mut records, entry.key, landed_value(entry, decoder)?, None, true)?;
            }
        }
        Ok(records)
    }
}

/// The interface of the tree for the cache, beyond the public one of [`Tree`].
impl Tree {
    /// See `TreeInner::evict_at`.
    pub(crate) fn evict_at(
        &self,
        hand: &mut Hand,
        arena: &mut Bump,
        evictor: &mut dyn Evictor,
    ) -> Result<Visit, TreeError> {
        self.core.evict_at(hand, arena, evictor)
    }

    /// Returns how many records have an empty value, where records have marks.
    pub(crate) fn empty_values(&self) -> usize {
        // The sums are read in this order for the reason given in `TreeInner::len`.
        let erased = self.core.contexts.sum(Count::EmptyErased);
        self.core.contexts.sum(Count::EmptyInserted).saturating_sub(erased) as usize
    }

    /// Returns the bytes of the nodes in use.
    pub(crate) fn node_bytes(&self) -> u64 {
        self.core.memory.live_bytes().max(0).cast_unsigned()
    }

    /// Sets what memory and writes are worth to the choice of the codec, if the tree chooses it for the least memory.
    pub(crate) fn set_worth(&self, worth: MemoryWorth) {
        self.core.sizing.set_worth(worth);
    }

    /// Sets the memory for hot records, and their expected number.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; the budget is set, and the table stays as it was.
    pub(crate) fn set_hot_budget(&self, bytes: u64, records: u64) -> Result<(), TreeError> {
        let (core, Some(hot)) = (&*self.core, &self.core.hot) else {
            return Ok(());
        };
        let guard = core.memory.enter()?;
        let were_hot = hot.set_budget(bytes, records, &core.memory, &guard)?;
        drop(guard);
        for (key, used) in were_hot {
            let (context, guard) = (core.contexts.get()?, core.memory.enter()?);
            let work = WritePath {
                core,
                shard: core.shard(&key),
                context,
                guard: &guard,
            };
            let sought = Sought {
                key: &key,
                hash: hash(&key),
                share: None,
            };
            let mut tools = core.take_tools(context, &guard)?;
            work.heat_again(&sought, used, &mut tools);
            core.return_tools(context, tools, &guard);
        }
        Ok(())
    }

    /// Returns what the hot records were read since the last survey, and ages them.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub(crate) fn survey_hot(&self) -> Result<Survey, TreeError> {
        let Some(hot) = &self.core.hot else {
            return Ok(Survey::default());
        };
        let memory = &self.core.memory;
        Ok(hot.survey(memory, &memory.enter()?)?)
    }

    /// Returns the number of hot records.
    pub(crate) fn hot_records(&self) -> u64 {
        self.core.hot.as_ref().map_or(0, |hot| hot.count(&self.core.memory))
    }

    /// Returns the number of reads that a hot record answered.
    pub(crate) fn hot_hits(&self) -> u64 {
        self.core.contexts.sum(Count::GetHotHits)
    }

    /// Returns the number and the total nanoseconds of the timed reads that hot records answered, and of those that
    /// leaves answered.
    pub(crate) fn read_times(&self) -> [[u64; 2]; 2] {
        let [hot, warm, cold] =
            Answered::ALL.map(|answered| answered.counts().map(|count| self.core.contexts.sum(count)));
        [hot, [warm[0] + cold[0], warm[1] + cold[1]]]
    }

    /// Bounds what threads hold concurrently by the tree's memory limit.
    pub(crate) fn fit_threads(&self, memory_bytes: u64) {
        self.core.fit_threads(memory_bytes);
    }

    /// Flushes the nodes that the calling thread has retired.
    pub(crate) fn flush_own_retired(&self) {
        if let Ok(local) = self.core.memory.local() {
            self.core.memory.flush(local);
        }
    }

    /// Returns free memory to the system.
    pub(crate) fn trim(&self) {
        self.core.flush_retired();
        self.core.memory.return_all_free();
    }

    /// Inserts or replaces, or removes for [`None`], if `note` returns true; returns whether the key was present.
    /// `note` is called under the latch of the key's leaf, just before the write, also where there is nothing to
    /// remove. It is called again if the leaf had no room.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub(crate) fn write_noting(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        note: &dyn Fn() -> bool,
    ) -> Result<bool, TreeError> {
        self.core
            .write(key, value, Condition::Noting(note))
            .map(|(was_there, _)| was_there)
    }

    /// Inserts or replaces, or removes for [`None`], if `holds` returns true for the key's current value, [`None`]
    /// where it is absent; returns its result. `holds` is called under the latch of the key's leaf, again if the leaf
    /// changed meanwhile, and the last time just before the write.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub(crate) fn write_if(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        holds: &dyn Fn(Option<&[u8]>) -> bool,
    ) -> Result<bool, TreeError> {
        let holds = |found: Option<Read<'_>>| match found {
            Some(found) => found.with(|found| holds(Some(found))),
            None => Ok(holds(None)),
        };
        self.core
            .write(key, value, Condition::If(&holds))
            .map(|(_, applied)| applied)
    }

    /// Refuses writes of records from now on, with [`TreeError::Closed`], and waits for those under way. Eviction is
    /// not a write. The calling thread must not be inside another operation of the tree.
    pub(crate) fn refuse_writes(&self) {
        self.core.admission.close();
    }

    /// Calls `read` with the key's value, [`None`] where it is absent, without an effect on marks, hot records and
    /// counts.
    ///
    /// # Errors
    /// As [`Tree::get`].
    pub(crate) fn peek_with<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, TreeError> {
        self.core.peek(key, |found| found.with(read))
    }

    /// Waits for a concurrent write of the key: see `TreeInner::synchronize`.
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`].
    pub(crate) fn synchronize(&self, key: &[u8]) -> Result<(), TreeError> {
        self.core.synchronize(key)
    }
}
