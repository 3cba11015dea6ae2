//! Records into frames, and frames into leaves.
//!
//! A [`Draft`] is the content of one leaf-to-be (or of several, when it has grown past a leaf): frames kept from a leaf as they
//! are, and frames pressed anew. Nothing of it is published; dropping it undoes it.

use std::ops::Range;

use bumpalo::Bump;

use super::Error;
use super::frame_keys::write_length;
use super::inner::{common_prefix, separator};
use super::large::Large;
use super::layout::{FINGERPRINTS, MAX_RECORDS, SINGLE};
use super::leaf::{Decoder, Leaf, corrupt, sub_page};
use super::memory::Memory;
use crate::codec::{Codec, Dictionary, Engine, Scratch};

/// The settings that records are pressed with.
pub(crate) struct Settings {
    pub leaf_bytes: usize,
    pub frame_bytes: usize,
    /// Sub-pages of a hashed leaf; 0 for ordered leaves.
    pub sub_pages: usize,
}

impl Settings {
    /// Whether every record is a frame of its own.
    pub(crate) fn single(&self) -> bool {
        self.frame_bytes <= 1 && self.sub_pages == 0
    }
}

/// Most records of an ordered leaf's frame: a leaf that has too many can be split between frames, and a frame's raw length, in
/// which each key has up to four bytes more than are counted, stays within 16 bits.
const MAX_FRAME_RECORDS: usize = MAX_RECORDS / 4;

/// Compresses `raw` behind `out`, or copies it when it does not shrink by an eighth. Returns the block's length.
pub(crate) fn press_block(
    raw: &[u8],
    engine: &dyn Engine,
    dictionary: Option<&Dictionary>,
    out: &mut Vec<u8>,
) -> Result<usize, Error> {
    out.try_reserve(raw.len() + 64)
        .map_err(|_| Error::OutOfMemory { bytes: raw.len() })?;
    let start = out.len();
    if !raw.is_empty() && engine.codec() != Codec::None {
        engine.compress(raw, dictionary, out)?;
        let pressed = out.len() - start;
        if pressed <= raw.len() - raw.len() / 8 && pressed < raw.len() {
            return Ok(pressed);
        }
        out.truncate(start);
    }
    out.extend_from_slice(raw);
    Ok(raw.len())
}

/// A record to be pressed.
#[derive(Clone, Copy)]
pub(crate) struct Record<'b> {
    pub key: &'b [u8],
    pub value: RecordValue<'b>,
}

/// Its value.
#[derive(Clone, Copy)]
pub(crate) enum RecordValue<'b> {
    Inline(&'b [u8]),
    /// A block that is the record's frame already; only in drafts of one-record frames.
    Pressed {
        block: &'b [u8],
        raw_len: usize,
    },
    Large(Large),
}

impl Record<'_> {
    pub(crate) fn value_len(&self) -> usize {
        match self.value {
            RecordValue::Inline(value) => value.len(),
            RecordValue::Pressed { raw_len, .. } => raw_len,
            RecordValue::Large(_) => 0,
        }
    }

    /// User bytes that its frame holds.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.key.len() + self.value_len()
    }
}

/// A part of a draft: one frame, or a run of them.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Frames `from..to` of a leaf, as they are.
    Kept { leaf: Leaf, from: usize, to: usize },
    /// One frame, pressed from the draft's records `from..to` into its blocks at `start..end`.
    Pressed {
        from: usize,
        to: usize,
        start: usize,
        end: usize,
        raw_len: usize,
    },
}

impl Part {
    /// The part's records, numbered within its leaf or its draft.
    pub(crate) fn slots(&self) -> Range<usize> {
        match self {
            Part::Kept { leaf, from, to } if leaf.has(SINGLE) => *from..*to,
            Part::Kept { leaf, from, to } => {
                let sections = leaf.sections();
                leaf.slots(&sections, *from).start..leaf.slots(&sections, to - 1).end
            }
            Part::Pressed { from, to, .. } => *from..*to,
        }
    }

    /// Its frames, each a part.
    fn single_frames(self) -> impl Iterator<Item = Part> {
        let frames = match self {
            Part::Kept { from, to, .. } => from..to,
            Part::Pressed { .. } => 0..1,
        };
        frames.map(move |frame| match self {
            Part::Kept { leaf, .. } => Part::Kept {
                leaf,
                from: frame,
                to: frame + 1,
            },
            pressed => pressed,
        })
    }
}

/// How a draft's keys are kept.
#[derive(Clone)]
pub(crate) enum Form<'b> {
    Packed { key_len: usize, prefix: &'b [u8] },
    Fingerprints { prefix: &'b [u8], hashed: bool },
}

/// Buffers a thread reuses from one compaction to the next.
#[derive(Default)]
pub(crate) struct Buffers {
    pub blocks: Vec<u8>,
    pub raw: Vec<u8>,
    pub numbers: Vec<u64>,
    pub lens: Vec<u32>,
    pub larges: Vec<(u16, Large)>,
    pub prints: Vec<u8>,
}

// SAFETY: a buffer's large values are addresses that mean something only during one compaction; between compactions the
// buffers are empty.
unsafe impl Send for Buffers {}

/// The content of leaves to be.
pub(crate) struct Draft<'b> {
    pub form: Form<'b>,
    pub parts: Vec<Part>,
    pub records: Vec<Record<'b>>,
    /// User bytes in the frames.
    pub inline_bytes: usize,
    /// The leaf whose keys these are, one for one, when no key came or went.
    pub same_keys: Option<Leaf>,
}

/// Presses drafts into leaves.
pub(crate) struct Press<'p, 'b> {
    pub settings: &'p Settings,
    pub engine: &'p dyn Engine,
    pub dictionary: Option<&'p Dictionary>,
    pub memory: &'p Memory,
    pub buffers: &'p mut Buffers,
    pub arena: &'b Bump,
}

/// New leaves and the separators between them.
#[derive(Default)]
pub(crate) struct Pressed {
    pub leaves: Vec<Leaf>,
    pub separators: Vec<Vec<u8>>,
}

/// Which side of a split is filled, because the records came at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    AtEnd,
    AtStart,
    Within,
}

/// `bytes` copied into the arena.
pub(crate) fn keep<'b>(arena: &'b Bump, bytes: &[u8]) -> Result<&'b [u8], Error> {
    arena
        .try_alloc_slice_copy(bytes)
        .map(|copy| &*copy)
        .map_err(|_| Error::OutOfMemory { bytes: bytes.len() })
}

/// The form that ordered `records` get.
pub(crate) fn form_for<'b>(records: &[Record<'b>], sub_pages: usize) -> Form<'b> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return if sub_pages > 0 {
            Form::Fingerprints {
                prefix: &[],
                hashed: true,
            }
        } else {
            Form::Packed {
                key_len: 0,
                prefix: &[],
            }
        };
    };
    let common = common_prefix(first.key, last.key);
    let key_len = first.key.len();
    let prefix_len = key_len.saturating_sub(8);
    // Records are in key order: what the first and the last share, all share.
    let packed = sub_pages == 0 && common >= prefix_len && records.iter().all(|record| record.key.len() == key_len);
    if packed {
        Form::Packed {
            key_len,
            prefix: &first.key[..prefix_len],
        }
    } else {
        Form::Fingerprints {
            prefix: &first.key[..common],
            hashed: sub_pages > 0,
        }
    }
}

impl Form<'_> {
    /// Whether a key can join frames of this form without changing them.
    pub(crate) fn fits(&self, key: &[u8]) -> bool {
        match self {
            Form::Packed { key_len, prefix } => key.len() == *key_len && key.starts_with(prefix),
            Form::Fingerprints { prefix, .. } => key.starts_with(prefix),
        }
    }

    /// Bytes that a record takes in its frame, about; 1 at least, so that a frame's records are bounded.
    pub(crate) fn raw_bytes(&self, record: &Record<'_>) -> usize {
        match self {
            Form::Packed { .. } => record.value_len().max(1),
            Form::Fingerprints { .. } => record.inline_bytes(),
        }
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        match self {
            Form::Packed { prefix, .. } | Form::Fingerprints { prefix, .. } => prefix,
        }
    }
}

impl<'b> Draft<'b> {
    pub(crate) fn new(form: Form<'b>) -> Self {
        Self {
            form,
            parts: Vec::new(),
            records: Vec::new(),
            inline_bytes: 0,
            same_keys: None,
        }
    }

    /// A draft with room for this many changes.
    pub(crate) fn with_room(form: Form<'b>, changes: usize) -> Self {
        Self {
            parts: Vec::with_capacity(changes * 2 + 1),
            records: Vec::with_capacity(changes),
            ..Self::new(form)
        }
    }

    /// Takes frames `from..to` of `leaf` as they are. The caller adds their user bytes to `inline_bytes`.
    pub(crate) fn keep(&mut self, leaf: Leaf, from: usize, to: usize) {
        if from < to {
            self.parts.push(Part::Kept { leaf, from, to });
        }
    }
}

impl<'b> Press<'_, 'b> {
    /// Cuts the draft's records from `from` on into frames and presses them. A run up to half a frame too long stays whole; a longer
    /// one is cut into equal frames, but where more is to come behind it into full ones, of which the last will be cut again.
    pub(crate) fn press_tail(&mut self, draft: &mut Draft<'b>, from: usize, growth: Growth) -> Result<(), Error> {
        let limit = self.settings.frame_bytes;
        let mut left: usize = draft.records[from..]
            .iter()
            .map(|record| draft.form.raw_bytes(record))
            .sum();
        let pieces = if limit <= 1 {
            usize::MAX
        } else {
            ((left + limit / 2) / limit).max(1)
        };
        let fills = growth == Growth::AtEnd && pieces > 1;
        let target = if fills { limit } else { left.div_ceil(pieces) }.max(1);
        let mut start = from;
        let mut filled = 0;
        for index in from..draft.records.len() {
            filled += draft.form.raw_bytes(&draft.records[index]);
            let is_full = filled >= target && !(fills && left - filled < limit / 2 && left <= limit + limit / 2);
            if is_full || index + 1 - start >= MAX_FRAME_RECORDS || index + 1 == draft.records.len() {
                self.press_frame(draft, start, index + 1)?;
                start = index + 1;
                left -= filled;
                filled = 0;
            }
        }
        Ok(())
    }

    /// Presses the draft's records `from..to` as one frame.
    pub(crate) fn press_frame(&mut self, draft: &mut Draft<'b>, from: usize, to: usize) -> Result<(), Error> {
        let records = &draft.records[from..to];
        draft.inline_bytes += records.iter().map(Record::inline_bytes).sum::<usize>();
        if let [
            Record {
                value: RecordValue::Pressed { block, raw_len },
                ..
            },
        ] = *records
        {
            let start = self.buffers.blocks.len();
            self.buffers.blocks.extend_from_slice(block);
            let end = self.buffers.blocks.len();
            draft.parts.push(Part::Pressed {
                from,
                to,
                start,
                end,
                raw_len,
            });
            return Ok(());
        }
        let raw: &[u8] = match (records, &draft.form) {
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
                if let Form::Fingerprints { prefix, hashed } = draft.form {
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
                    if let RecordValue::Inline(value) = record.value {
                        self.buffers.raw.extend_from_slice(value);
                    }
                }
                &self.buffers.raw
            }
        };
        let start = self.buffers.blocks.len();
        let raw_len = raw.len();
        // As for the offsets in `write`.
        if raw_len > usize::from(u16::MAX) {
            return Err(corrupt("more bytes than a frame can hold"));
        }
        let end = start + press_block(raw, self.engine, self.dictionary, &mut self.buffers.blocks)?;
        draft.parts.push(Part::Pressed {
            from,
            to,
            start,
            end,
            raw_len,
        });
        Ok(())
    }

    /// Presses all of `records` (in key order) anew, in the form that suits them.
    pub(crate) fn press_all(&mut self, records: Vec<Record<'b>>, growth: Growth) -> Result<Pressed, Error> {
        let sub_pages = self.settings.sub_pages;
        if sub_pages == 0 {
            let mut draft = Draft::new(form_for(&records, 0));
            draft.records = records;
            self.press_tail(&mut draft, 0, growth)?;
            return self.finish(&mut draft, growth);
        }
        let total: usize = records.iter().map(Record::inline_bytes).sum();
        let leaves = total
            .div_ceil(self.settings.leaf_bytes)
            .max(records.len().div_ceil(MAX_RECORDS))
            .max(1);
        let target = total.div_ceil(leaves).max(1);
        let mut pressed = Pressed::default();
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
                let leaf = self
                    .press_hashed(&records[start..end])
                    .inspect_err(|_| pressed.free())?;
                if start > 0 {
                    pressed
                        .separators
                        .push(separator(records[start - 1].key, records[start].key));
                }
                pressed.leaves.push(leaf);
                start = end;
                filled = 0;
            }
            if last {
                break;
            }
        }
        Ok(pressed)
    }

    /// Presses `records` (in key order) into one hashed leaf.
    fn press_hashed(&mut self, records: &[Record<'b>]) -> Result<Leaf, Error> {
        let sub_pages = self.settings.sub_pages;
        let mut draft = Draft::new(form_for(records, sub_pages));
        for page in 0..sub_pages {
            self.press_sub_page(
                &mut draft,
                records
                    .iter()
                    .copied()
                    .filter(|record| sub_page(super::hash(record.key), sub_pages) == page),
            )?;
        }
        self.write(&draft, &draft.parts, draft.inline_bytes)
    }

    /// Presses the records of one sub-page, which may be none, behind the draft's frames.
    pub(crate) fn press_sub_page(
        &mut self,
        draft: &mut Draft<'b>,
        records: impl Iterator<Item = Record<'b>>,
    ) -> Result<(), Error> {
        let from = draft.records.len();
        draft.records.extend(records);
        self.press_frame(draft, from, draft.records.len())
    }

    /// Clears the buffers for a new draft.
    pub(crate) fn begin(&mut self) {
        self.buffers.blocks.clear();
    }

    /// Writes an ordered draft as one leaf, or as several when it holds more than a leaf.
    pub(crate) fn finish(&mut self, draft: &mut Draft<'b>, growth: Growth) -> Result<Pressed, Error> {
        let records: usize = draft.parts.iter().map(|part| part.slots().len()).sum();
        let mut pressed = Pressed::default();
        if draft.inline_bytes <= self.settings.leaf_bytes && records <= MAX_RECORDS {
            pressed
                .leaves
                .push(self.write(draft, &draft.parts, draft.inline_bytes)?);
            return Ok(pressed);
        }
        draft.same_keys = None;
        let frames: Vec<Part> = draft.parts.iter().flat_map(|part| part.single_frames()).collect();
        let sizes = self.frame_sizes(draft, &frames)?;
        for range in groups(&sizes, &frames, self.settings.leaf_bytes, growth) {
            let bytes = sizes[range.clone()].iter().sum();
            if range.start > 0 {
                pressed
                    .separators
                    .push(boundary(draft, &frames[range.start - 1], &frames[range.start]));
            }
            let leaf = self
                .write(draft, &frames[range], bytes)
                .inspect_err(|_| pressed.free())?;
            pressed.leaves.push(leaf);
        }
        Ok(pressed)
    }

    /// User bytes of each frame.
    fn frame_sizes(&mut self, draft: &Draft<'b>, frames: &[Part]) -> Result<Vec<usize>, Error> {
        let mut scratch = Scratch::default();
        let mut key = Vec::new();
        let mut sizes = Vec::with_capacity(frames.len());
        for frame in frames {
            sizes.push(match (frame, &draft.form) {
                (Part::Pressed { from, to, .. }, _) => draft.records[*from..*to].iter().map(Record::inline_bytes).sum(),
                (Part::Kept { leaf, from, .. }, Form::Packed { key_len, .. }) => {
                    leaf.raw_len(&leaf.sections(), *from) + frame.slots().len() * key_len
                }
                (Part::Kept { leaf, from, .. }, Form::Fingerprints { .. }) => {
                    let sections = leaf.sections();
                    let mut decoder = Decoder::new(self.engine, &mut scratch);
                    let mut bytes = 0;
                    leaf.visit_frame(&sections, *from, &mut decoder, &mut key, |slot, key, _| {
                        bytes += key.len() + leaf.lens(&sections).get(slot) as usize;
                        Ok(())
                    })?;
                    bytes
                }
            });
        }
        Ok(sizes)
    }
}

/// A separator between two neighbouring frames of a draft.
fn boundary(draft: &Draft<'_>, left: &Part, right: &Part) -> Vec<u8> {
    let first = match right {
        Part::Pressed { from, .. } => draft.records[*from].key.to_vec(),
        Part::Kept { leaf, from, .. } => leaf.first_key(&leaf.sections(), *from),
    };
    match left {
        Part::Pressed { to, .. } => separator(draft.records[to - 1].key, &first),
        Part::Kept { leaf, .. } if !leaf.has(FINGERPRINTS) => {
            let mut last = Vec::new();
            leaf.packed_key(&leaf.sections(), left.slots().end - 1, &mut last);
            separator(&last, &first)
        }
        // The last key is inside a frame that need not be decoded for this: the next leaf's first key separates as well.
        Part::Kept { .. } => first,
    }
}

/// Shares frames of these sizes out to leaves of at most `leaf_bytes`, unless a single frame is more.
fn groups(sizes: &[usize], frames: &[Part], leaf_bytes: usize, growth: Growth) -> Vec<Range<usize>> {
    let total: usize = sizes.iter().sum();
    let target = match growth {
        Growth::Within => total.div_ceil(total.div_ceil(leaf_bytes).max(2)),
        Growth::AtEnd | Growth::AtStart => leaf_bytes,
    };
    let backwards = growth == Growth::AtStart;
    let mut groups = Vec::new();
    let (mut bytes, mut records, mut held) = (0, 0, 0);
    for step in 0..sizes.len() {
        let index = if backwards { sizes.len() - 1 - step } else { step };
        let slots = frames[index].slots().len();
        let fits = bytes + sizes[index] <= leaf_bytes && records + slots <= MAX_RECORDS && bytes < target;
        if held > 0 && !fits {
            groups.push(if backwards {
                index + 1..index + 1 + held
            } else {
                index - held..index
            });
            (bytes, records, held) = (0, 0, 0);
        }
        bytes += sizes[index];
        records += slots;
        held += 1;
    }
    groups.push(if backwards {
        0..held
    } else {
        sizes.len() - held..sizes.len()
    });
    if backwards {
        groups.reverse();
    }
    groups
}

impl Pressed {
    /// Frees leaves that were not published.
    pub(crate) fn free(&mut self) {
        for leaf in self.leaves.drain(..) {
            // SAFETY: the leaf was never published.
            unsafe { Memory::free(leaf.node()) }
        }
    }
}
