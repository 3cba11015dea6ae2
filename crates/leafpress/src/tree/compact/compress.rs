//! Compression of records into frames, and of frames into leaves.

use bumpalo::Bump;

use crate::tree::compact::builder::{Form, LeafBuilder, Part, Record, RecordValue, form_for};
use crate::tree::compact::settings::Settings;
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Engines, corrupt};
use crate::tree::node::frame_keys::{MAX_LENGTH_BYTES, write_length};
use crate::tree::node::hash_bits::sub_page;
use crate::tree::node::key_order::{common_prefix, separator};
use crate::tree::node::layout::{MAX_RECORDS, Temperature};
use crate::tree::node::leaf::NewLeaf;
use leafpress_base::mem::room::{TryGrow, room_for};
use leafpress_base::reclaim::node_heap::NodeHeap;
use leafpress_codec::{Codec, Dictionary, Engine, IncompressibleDetector, saves_enough};

/// Maximum number of records in an ordered leaf's frame: an oversized leaf can then be split between frames, and a
/// frame's raw length, in which each key takes up to four bytes more than counted, stays within 16 bits.
const MAX_FRAME_RECORDS: usize = MAX_RECORDS / 4;

/// Compresses `raw` and appends it to `out`, or copies it when it does not shrink by an eighth, or most likely would
/// not. Returns the block's length.
pub(crate) fn compress_block(
    raw: &[u8],
    engine: &dyn Engine,
    dictionary: Option<&Dictionary>,
    incompressible: &mut IncompressibleDetector,
    out: &mut Vec<u8>,
) -> Result<usize, TreeError> {
    out.try_reserve(raw.len() + 64)
        .map_err(|_| TreeError::OutOfMemory { bytes: raw.len() })?;
    let start = out.len();
    if !raw.is_empty() && engine.codec() != Codec::None && !incompressible.should_skip(raw) {
        engine.compress(raw, dictionary, out)?;
        let stored = out.len() - start;
        let shrank = saves_enough(stored, raw.len());
        incompressible.record(shrank);
        if shrank {
            return Ok(stored);
        }
        out.truncate(start);
    }
    out.extend_from_slice(raw);
    Ok(raw.len())
}

/// Buffers that a thread reuses from one compaction to the next.
#[derive(Default)]
pub(crate) struct Buffers {
    pub blocks: Vec<u8>,
    pub raw: Vec<u8>,
    pub numbers: Vec<u64>,
    pub lens: Vec<u32>,
    pub suffix_lens: Vec<u16>,
    pub prints: Vec<u8>,
    pub marks: Vec<u8>,
    pub incompressible: IncompressibleDetector,
    /// Slots whose blocks are overwritten.
    pub overwritten: Vec<u16>,
    /// Bytes of leaves written, and raw bytes compressed for them, since the counters were last updated.
    pub copied_bytes: u64,
    pub compressed_bytes: u64,
}

impl Buffers {
    pub(crate) fn held_bytes(&self) -> usize {
        self.blocks.capacity()
            + self.raw.capacity()
            + self.numbers.capacity() * size_of::<u64>()
            + self.lens.capacity() * size_of::<u32>()
            + self.suffix_lens.capacity() * size_of::<u16>()
            + self.prints.capacity()
            + self.marks.capacity()
            + self.overwritten.capacity() * size_of::<u16>()
    }
}

/// Compresses builders into leaves.
pub(crate) struct Compression<'p, 'b> {
    pub settings: Settings,
    /// Temperature of the new leaves; engine and dictionary are chosen by it.
    pub temperature: Temperature,
    pub engine: &'p dyn Engine,
    pub dictionary: Option<&'p Dictionary>,
    /// Engines that decode the source leaves.
    pub engines: &'p Engines,
    /// Initial read count of the new leaves.
    pub reads: u32,
    /// Whether the leaves have a mark for each record.
    pub marks: bool,
    pub memory: &'p NodeHeap,
    pub buffers: &'p mut Buffers,
    pub arena: &'b Bump,
}

/// New leaves and the separators between them; unpublished leaves are freed when dropped.
#[derive(Default)]
pub(crate) struct BuiltLeaves {
    pub leaves: Vec<NewLeaf>,
    pub separators: Vec<Vec<u8>>,
}

impl<'b> Compression<'_, 'b> {
    /// Cuts the builder's records from `from` on into frames and compresses them. A sequence of up to one and a half
    /// frames stays whole; a longer one is cut into equal frames, or, where more records follow, into full ones, the
    /// last of which will be cut again.
    pub(crate) fn compress_tail(
        &mut self,
        builder: &mut LeafBuilder<'b>,
        from: usize,
        split_hint: SplitHint,
    ) -> Result<(), TreeError> {
        let limit = self.settings.frame_bytes;
        let mut left: usize = builder.records[from..]
            .iter()
            .map(|record| builder.form.raw_bytes(record))
            .sum();
        let pieces = if limit <= 1 {
            usize::MAX
        } else {
            ((left + limit / 2) / limit).max(1)
        };
        let records = builder.records.len() - from;
        builder.parts.try_room(pieces.min(records))?;
        let fills = split_hint == SplitHint::AtEnd && pieces > 1;
        let target = if fills { limit } else { left.div_ceil(pieces) }.max(1);
        let mut start = from;
        let mut filled = 0;
        for index in from..builder.records.len() {
            filled += builder.form.raw_bytes(&builder.records[index]);
            let rest_fits = fills && left - filled < limit / 2 && left <= limit + limit / 2;
            let is_full = limit <= 1 || (filled >= target && !rest_fits);
            if is_full || index + 1 - start >= MAX_FRAME_RECORDS || index + 1 == builder.records.len() {
                self.compress_frame(builder, start, index + 1)?;
                start = index + 1;
                left -= filled;
                filled = 0;
            }
        }
        Ok(())
    }

    /// Compresses the builder's records `from..to` as one frame.
    pub(crate) fn compress_frame(
        &mut self,
        builder: &mut LeafBuilder<'b>,
        from: usize,
        to: usize,
    ) -> Result<(), TreeError> {
        let records = &builder.records[from..to];
        let inline_bytes: usize = records.iter().map(Record::inline_bytes).sum();
        builder.inline_bytes += inline_bytes;
        // Two lengths are written after each key.
        let raw_bound = inline_bytes + records.len() * 2 * MAX_LENGTH_BYTES;
        if let [
            Record {
                value: RecordValue::Compressed { block, raw_len },
                ..
            },
        ] = *records
        {
            let start = self.buffers.blocks.len();
            self.buffers.blocks.try_append(block)?;
            let end = self.buffers.blocks.len();
            builder.parts.try_push(Part::Compressed {
                from,
                to,
                start,
                end,
                raw_len,
            })?;
            return Ok(());
        }
        let raw: &[u8] = match (records, &builder.form) {
            (
                [record],
                Form::Fingerprints {
                    prefix, keyed: true, ..
                },
            ) => {
                let raw = &mut self.buffers.raw;
                raw.clear();
                raw.try_append(&record.key[prefix.len()..])?;
                if let RecordValue::Inline(value) = record.value {
                    raw.try_append(value)?;
                }
                raw
            }
            (
                [
                    Record {
                        value: RecordValue::Inline(value),
                        ..
                    },
                ],
                form,
            ) if !matches!(form, Form::Fingerprints { hashed: true, .. }) => value,
            _ => {
                self.buffers.raw.clear();
                self.buffers.raw.try_grow(raw_bound)?;
                if let Form::Fingerprints { prefix, hashed, .. } = builder.form {
                    let base = if hashed { &[] } else { &records[0].key[prefix.len()..] };
                    for record in &records[usize::from(!hashed)..] {
                        let suffix = &record.key[prefix.len()..];
                        let shared = common_prefix(base, suffix);
                        write_length(shared, &mut self.buffers.raw);
                        write_length(suffix.len() - shared, &mut self.buffers.raw);
                        self.buffers.raw.extend_from_slice(&suffix[shared..]);
                    }
                }
                for record in records {
                    match record.value {
                        RecordValue::Inline(value) => self.buffers.raw.extend_from_slice(value),
                        RecordValue::Large(_) => {}
                        RecordValue::Compressed { .. } => return Err(corrupt("a compressed value among others")),
                    }
                }
                &self.buffers.raw
            }
        };
        let start = self.buffers.blocks.len();
        let raw_len = raw.len();
        // Offsets have 16 bits, as in `write`.
        if raw_len > usize::from(u16::MAX) {
            return Err(corrupt("more bytes than a frame can hold"));
        }
        let end = start
            + compress_block(
                raw,
                self.engine,
                self.dictionary,
                &mut self.buffers.incompressible,
                &mut self.buffers.blocks,
            )?;
        if self.engine.codec() != Codec::None {
            self.buffers.compressed_bytes += raw_len as u64;
        }
        builder.parts.try_push(Part::Compressed {
            from,
            to,
            start,
            end,
            raw_len,
        })?;
        Ok(())
    }

    /// Compresses all of `records` (in key order) from scratch, in the form that suits them.
    pub(crate) fn compress_all(
        &mut self,
        records: Vec<Record<'b>>,
        split_hint: SplitHint,
    ) -> Result<BuiltLeaves, TreeError> {
        if self.settings.sub_pages == 0 {
            let mut builder = LeafBuilder::new(form_for(&records, &self.settings));
            builder.records = records;
            self.compress_tail(&mut builder, 0, split_hint)?;
            return self.finish(&mut builder, split_hint);
        }
        let total: usize = records.iter().map(Record::inline_bytes).sum();
        let leaves = total
            .div_ceil(self.settings.leaf_bytes)
            .max(records.len().div_ceil(MAX_RECORDS))
            .max(1);
        let target = total.div_ceil(leaves).max(1);
        let mut built = BuiltLeaves::default();
        let mut start = 0;
        let mut filled = 0;
        for index in 0..=records.len() {
            let last = index == records.len();
            if last && start == index && index > 0 {
                break;
            }
            if !last {
                filled += records[index].inline_bytes();
            }
            let full = last || filled >= target || index + 1 - start >= MAX_RECORDS;
            if full {
                let end = if last { index } else { index + 1 };
                built.leaves.try_room(1)?;
                let leaf = self.compress_hashed(&records[start..end])?;
                if start > 0 {
                    let between = separator(records[start - 1].key, records[start].key)?;
                    built.separators.try_push(between)?;
                }
                built.leaves.push(leaf);
                start = end;
                filled = 0;
            }
            if last {
                break;
            }
        }
        Ok(built)
    }

    /// Compresses `records` (in key order) into one hashed leaf.
    fn compress_hashed(&mut self, records: &[Record<'b>]) -> Result<NewLeaf, TreeError> {
        let sub_pages = self.settings.sub_pages;
        let mut builder = LeafBuilder::new(form_for(records, &self.settings));
        for page in 0..sub_pages {
            self.compress_sub_page(
                &mut builder,
                records
                    .iter()
                    .copied()
                    .filter(|record| sub_page(crate::tree::hash::hash(record.key), sub_pages) == page),
            )?;
        }
        self.write(&builder, &builder.parts, builder.inline_bytes)
    }

    /// Compresses the records of one sub-page, which may be empty, after the builder's frames.
    pub(crate) fn compress_sub_page(
        &mut self,
        builder: &mut LeafBuilder<'b>,
        records: impl Iterator<Item = Record<'b>>,
    ) -> Result<(), TreeError> {
        let from = builder.records.len();
        builder.records.try_extend(records)?;
        self.compress_frame(builder, from, builder.records.len())
    }

    /// Clears the buffers for a new builder.
    pub(crate) fn begin(&mut self) {
        self.buffers.blocks.clear();
    }
}

impl BuiltLeaves {
    /// Returns the single leaf made by `write`; room for it in the list is reserved before it is made.
    pub(crate) fn one(write: impl FnOnce() -> Result<NewLeaf, TreeError>) -> Result<Self, TreeError> {
        let mut leaves = room_for(1)?;
        leaves.push(write()?);
        Ok(Self {
            leaves,
            separators: Vec::new(),
        })
    }

    /// Marks the leaves as published.
    pub(crate) fn publish(self) {
        self.leaves.into_iter().for_each(NewLeaf::publish);
    }
}
