//! Records into frames, and frames into leaves.
//!
//! A [`Draft`] is the content of one leaf-to-be (or of several, when it has grown past a leaf): frames kept from a leaf as they
//! are, and frames pressed anew. Nothing of it is published; dropping it undoes it.

use bumpalo::Bump;

use super::Error;
use super::inner::{common_prefix, separator};
use super::large::Large;
use super::leaf::{
    FINGERPRINTS, HASHED, HEADER_BYTES, Header, Leaf, MAX_RECORDS, SINGLE, Sections, Shape, fingerprint, key_number,
    sub_page, write_length,
};
use super::memory::{Kind, Memory};
use super::packed::{self, SLOP_BYTES};
use super::sync::{AtomicBool, AtomicPtr, NodeLock};
use crate::codec::{Codec, Dictionary, Engine};

/// The settings that records are pressed with.
pub(crate) struct Settings {
    pub leaf_bytes: usize,
    pub frame_bytes: usize,
    /// Sub-pages of a hashed leaf; 0 for ordered leaves.
    pub sub_pages: usize,
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
    Large(Large),
}

impl Record<'_> {
    fn value_len(&self) -> usize {
        match self.value {
            RecordValue::Inline(value) => value.len(),
            RecordValue::Large(_) => 0,
        }
    }

    /// User bytes that its frame holds.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.key.len() + self.value_len()
    }
}

/// A frame of a draft.
enum Frame {
    /// Taken from a leaf as it is.
    Kept { leaf: Leaf, frame: usize },
    /// Pressed from the draft's records `from..to` into its blocks at `start..end`.
    Pressed {
        from: usize,
        to: usize,
        start: usize,
        end: usize,
        raw_len: usize,
    },
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
    blocks: Vec<u8>,
    raw: Vec<u8>,
    numbers: Vec<u64>,
    lens: Vec<u32>,
    larges: Vec<(u16, Large)>,
    prints: Vec<u8>,
    offsets: Vec<u16>,
}

// SAFETY: a buffer's large values are addresses that mean something only during one compaction; between compactions the
// buffers are empty.
unsafe impl Send for Buffers {}

/// The content of leaves to be.
pub(crate) struct Draft<'b> {
    pub form: Form<'b>,
    frames: Vec<Frame>,
    pub records: Vec<Record<'b>>,
    /// User bytes in the frames.
    pub inline_bytes: usize,
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

    fn prefix(&self) -> &[u8] {
        match self {
            Form::Packed { prefix, .. } | Form::Fingerprints { prefix, .. } => prefix,
        }
    }
}

impl<'b> Draft<'b> {
    pub(crate) fn new(form: Form<'b>) -> Self {
        Self {
            form,
            frames: Vec::new(),
            records: Vec::new(),
            inline_bytes: 0,
        }
    }

    /// Takes `frame` of `leaf` as it is. The caller adds its user bytes to `inline_bytes`.
    pub(crate) fn keep_frame(&mut self, leaf: Leaf, frame: usize) {
        self.frames.push(Frame::Kept { leaf, frame });
    }
}

impl<'b> Press<'_, 'b> {
    /// Cuts the draft's records from `from` on into frames and presses them.
    pub(crate) fn press_tail(&mut self, draft: &mut Draft<'b>, from: usize) -> Result<(), Error> {
        let limit = self.settings.frame_bytes;
        let total: usize = draft.records[from..].iter().map(Record::inline_bytes).sum();
        // A run up to half a frame too long stays whole; a longer one is cut into equal frames.
        let pieces = if limit <= 1 {
            usize::MAX
        } else {
            ((total + limit / 2) / limit).max(1)
        };
        let target = total.div_ceil(pieces).max(1);
        let mut start = from;
        let mut filled = 0;
        for index in from..draft.records.len() {
            filled += draft.records[index].inline_bytes();
            if filled >= target || index + 1 == draft.records.len() {
                self.press_frame(draft, start, index + 1)?;
                start = index + 1;
                filled = 0;
            }
        }
        Ok(())
    }

    /// Presses the draft's records `from..to` as one frame.
    fn press_frame(&mut self, draft: &mut Draft<'b>, from: usize, to: usize) -> Result<(), Error> {
        let records = &draft.records[from..to];
        draft.inline_bytes += records.iter().map(Record::inline_bytes).sum::<usize>();
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
        let blocks = &mut self.buffers.blocks;
        let start = blocks.len();
        blocks
            .try_reserve(raw.len() + 64)
            .map_err(|_| Error::OutOfMemory { bytes: raw.len() })?;
        let raw_len = raw.len();
        let mut stored_raw = true;
        if raw_len > 0 && self.engine.codec() != Codec::None {
            self.engine.compress(raw, self.dictionary, blocks)?;
            stored_raw = blocks.len() - start > raw_len - raw_len / 8 || blocks.len() - start == raw_len;
            if stored_raw {
                blocks.truncate(start);
            }
        }
        if stored_raw {
            blocks.extend_from_slice(raw);
        }
        let end = blocks.len();
        draft.frames.push(Frame::Pressed {
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
            self.press_tail(&mut draft, 0)?;
            return self.finish(&draft, growth);
        }
        let total: usize = records.iter().map(Record::inline_bytes).sum();
        let leaves = total
            .div_ceil(self.settings.leaf_bytes)
            .max(records.len().div_ceil(MAX_RECORDS))
            .max(1);
        let target = total.div_ceil(leaves).max(1);
        let mut pressed = Pressed {
            leaves: Vec::new(),
            separators: Vec::new(),
        };
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
        self.write(&draft, &(0..draft.frames.len()), draft.inline_bytes)
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
    pub(crate) fn finish(&mut self, draft: &Draft<'b>, growth: Growth) -> Result<Pressed, Error> {
        let records: usize = draft.frames.iter().map(|frame| slots_of(frame).len()).sum();
        let mut pressed = Pressed {
            leaves: Vec::new(),
            separators: Vec::new(),
        };
        if draft.inline_bytes <= self.settings.leaf_bytes && records <= MAX_RECORDS {
            pressed
                .leaves
                .push(self.write(draft, &(0..draft.frames.len()), draft.inline_bytes)?);
            return Ok(pressed);
        }
        let sizes = self.frame_sizes(draft)?;
        for range in groups(&sizes, &draft.frames, self.settings.leaf_bytes, growth) {
            let bytes = sizes[range.clone()].iter().sum();
            if range.start > 0 {
                pressed.separators.push(self.boundary(draft, range.start));
            }
            let leaf = self.write(draft, &range, bytes).inspect_err(|_| pressed.free())?;
            pressed.leaves.push(leaf);
        }
        Ok(pressed)
    }

    /// User bytes of each frame.
    fn frame_sizes(&mut self, draft: &Draft<'b>) -> Result<Vec<usize>, Error> {
        let mut scratch = crate::codec::Scratch::default();
        let mut key = Vec::new();
        let mut sizes = Vec::with_capacity(draft.frames.len());
        for frame in &draft.frames {
            sizes.push(match (frame, &draft.form) {
                (Frame::Pressed { from, to, .. }, _) => {
                    draft.records[*from..*to].iter().map(Record::inline_bytes).sum()
                }
                (Frame::Kept { leaf, frame }, Form::Packed { key_len, .. }) => {
                    let sections = leaf.sections();
                    leaf.raw_len(&sections, *frame) + leaf.slots(&sections, *frame).len() * key_len
                }
                (Frame::Kept { leaf, frame }, Form::Fingerprints { .. }) => {
                    let sections = leaf.sections();
                    let mut decoder = super::leaf::Decoder::new(self.engine, &mut scratch);
                    let mut bytes = 0;
                    leaf.visit_frame(&sections, *frame, &mut decoder, &mut key, |slot, key, _| {
                        bytes += key.len() + leaf.lens(&sections).get(slot) as usize;
                        Ok(())
                    })?;
                    bytes
                }
            });
        }
        Ok(sizes)
    }

    /// A separator between the draft's frames `at - 1` and `at`.
    fn boundary(&self, draft: &Draft<'b>, at: usize) -> Vec<u8> {
        let first = match &draft.frames[at] {
            Frame::Pressed { from, .. } => draft.records[*from].key.to_vec(),
            Frame::Kept { leaf, frame } => leaf.first_key(&leaf.sections(), *frame),
        };
        match &draft.frames[at - 1] {
            Frame::Pressed { to, .. } => separator(draft.records[to - 1].key, &first),
            Frame::Kept { leaf, frame } if !leaf.has(FINGERPRINTS) => {
                let sections = leaf.sections();
                let mut last = Vec::new();
                leaf.packed_key(&sections, leaf.slots(&sections, *frame).end - 1, &mut last);
                separator(&last, &first)
            }
            // The last key is inside a frame that need not be decoded for this: the next leaf's first key separates as well.
            Frame::Kept { .. } => first,
        }
    }

    /// Writes the draft's frames `range`, of `inline_bytes` user bytes, as one leaf.
    pub(crate) fn write(
        &mut self,
        draft: &Draft<'b>,
        range: &std::ops::Range<usize>,
        inline_bytes: usize,
    ) -> Result<Leaf, Error> {
        let frames = &draft.frames[range.clone()];
        let prefix = draft.form.prefix();
        let (mut flags, key_len) = match draft.form {
            Form::Packed { key_len, .. } => (0, key_len),
            Form::Fingerprints { hashed, .. } => (FINGERPRINTS | if hashed { HASHED } else { 0 }, 0),
        };
        let Buffers {
            blocks,
            numbers,
            lens,
            larges,
            prints,
            offsets,
            ..
        } = &mut *self.buffers;
        numbers.clear();
        lens.clear();
        larges.clear();
        prints.clear();
        offsets.clear();
        let mut data_bytes = 0usize;
        let mut separator_bytes = 0usize;
        let mut single = true;
        for frame in frames {
            offsets.push(data_bytes as u16);
            match frame {
                Frame::Kept { leaf, frame } => {
                    let sections = leaf.sections();
                    let slots = leaf.slots(&sections, *frame);
                    let packed_lens = leaf.lens(&sections);
                    single &= slots.len() == 1;
                    if flags & FINGERPRINTS == 0 {
                        numbers.extend(slots.clone().map(|slot| leaf.key_number(&sections, slot)));
                    } else {
                        prints.extend_from_slice(&leaf.fingerprints(&sections)[slots.clone()]);
                        if flags & HASHED == 0 {
                            separator_bytes += leaf.separator(&sections, *frame).len();
                        }
                    }
                    if leaf.header().shape.large > 0 {
                        let first = lens.len();
                        larges.extend(
                            leaf.larges(&sections)
                                .filter(|(slot, _)| slots.contains(slot))
                                .map(|(slot, large)| ((first + slot - slots.start) as u16, large)),
                        );
                    }
                    lens.extend(slots.map(|slot| packed_lens.get(slot) as u32));
                    data_bytes += leaf.block(&sections, *frame).len();
                }
                Frame::Pressed {
                    from, to, start, end, ..
                } => {
                    single &= to - from == 1;
                    for record in &draft.records[*from..*to] {
                        if flags & FINGERPRINTS == 0 {
                            numbers.push(key_number(record.key));
                        } else {
                            prints.push(fingerprint(super::hash(record.key)));
                        }
                        if let RecordValue::Large(large) = record.value {
                            larges.push((lens.len() as u16, large));
                        }
                        lens.push(record.value_len() as u32);
                    }
                    if flags & FINGERPRINTS != 0 && flags & HASHED == 0 {
                        separator_bytes += draft.records[*from].key.len() - prefix.len();
                    }
                    data_bytes += end - start;
                }
            }
        }
        offsets.push(data_bytes as u16);
        debug_assert!(data_bytes <= usize::from(u16::MAX));
        // A hashed leaf's sub-pages keep their own directory even when each happens to hold one record.
        if single && flags & HASHED == 0 {
            flags |= SINGLE;
        }
        let count = lens.len();
        let (key_base, key_bits) = span(numbers.iter().copied());
        let (len_base, len_bits) = span(lens.iter().map(|len| u64::from(*len)));
        // SAFETY: large values in the draft are live, owned by the old leaf, its landing buffer or the caller.
        let large_bytes: u64 = larges.iter().map(|(_, large)| unsafe { large.raw_len() as u64 }).sum();
        let shape = Shape {
            count: count as u16,
            frames: frames.len() as u16,
            prefix_len: prefix.len() as u16,
            large: larges.len() as u16,
            key_bits,
            len_bits,
            flags,
        };
        let sections = Sections::of(&shape);
        let data_at = sections.separators + separator_bytes;
        let bytes = data_at + data_bytes + SLOP_BYTES;
        // SAFETY: the tree keeps its memory until its last node is gone; every section below is written into the room counted
        // for it in `sections`, and the slop behind the data lets packed arrays be read and written by whole words.
        unsafe {
            let node = self.memory.allocate(bytes, Kind::Leaf)?;
            let start = node.as_ptr();
            let header = start.cast::<Header>();
            (&raw mut (*header).landing).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*header).dictionary).write(self.dictionary.map_or(std::ptr::null(), std::ptr::from_ref));
            (&raw mut (*header).key_base).write(key_base);
            (&raw mut (*header).live_user_bytes).write((inline_bytes as u64 + large_bytes).into());
            (&raw mut (*header).live).write((count as u32).into());
            (&raw mut (*header).reads).write(0.into());
            (&raw mut (*header).inline_bytes).write(inline_bytes as u32);
            (&raw mut (*header).len_base).write(len_base as u32);
            (&raw mut (*header).data_at).write(data_at as u32);
            (&raw mut (*header).key_len).write(key_len as u16);
            (&raw mut (*header).shape).write(shape);
            (&raw mut (*header).lock).write(NodeLock::new());
            (&raw mut (*header).obsolete).write(AtomicBool::new(false));
            (&raw mut (*header).queued).write(AtomicBool::new(false));
            for (index, (slot, large)) in larges.iter().enumerate() {
                start
                    .add(HEADER_BYTES)
                    .cast::<*mut u8>()
                    .add(index)
                    .write(large.as_ptr());
                start.add(sections.large_slots).cast::<u16>().add(index).write(*slot);
            }
            start
                .add(sections.offsets)
                .cast::<u16>()
                .copy_from_nonoverlapping(offsets.as_ptr(), offsets.len());
            // Packed arrays write whole words past their end: keys before lengths before everything behind them.
            if flags & FINGERPRINTS == 0 {
                packed::pack(start.add(sections.keys), numbers.iter().copied(), key_bits, key_base);
            } else {
                start
                    .add(sections.keys)
                    .copy_from_nonoverlapping(prints.as_ptr(), prints.len());
            }
            packed::pack(
                start.add(sections.lens),
                lens.iter().map(|len| u64::from(*len)),
                len_bits,
                len_base,
            );
            start
                .add(sections.prefix)
                .copy_from_nonoverlapping(prefix.as_ptr(), prefix.len());
            let mut first = 0u16;
            let mut separator_end = 0usize;
            let mut data = start.add(data_at);
            for (index, frame) in frames.iter().enumerate() {
                let slots = slots_of(frame);
                if flags & SINGLE == 0 {
                    start.add(sections.firsts).cast::<u16>().add(index).write(first);
                }
                first += slots.len() as u16;
                if flags & FINGERPRINTS != 0 && flags & SINGLE == 0 {
                    start
                        .add(sections.raws)
                        .cast::<u16>()
                        .add(index)
                        .write(raw_len_of(frame) as u16);
                }
                if flags & FINGERPRINTS != 0 && flags & HASHED == 0 {
                    let kept_sections;
                    let separator = match frame {
                        Frame::Kept { leaf, frame } => {
                            kept_sections = leaf.sections();
                            leaf.separator(&kept_sections, *frame)
                        }
                        Frame::Pressed { from, .. } => &draft.records[*from].key[prefix.len()..],
                    };
                    start
                        .add(sections.separators + separator_end)
                        .copy_from_nonoverlapping(separator.as_ptr(), separator.len());
                    separator_end += separator.len();
                    start
                        .add(sections.ends)
                        .cast::<u16>()
                        .add(index)
                        .write(separator_end as u16);
                }
                let block = match frame {
                    Frame::Kept { leaf, frame } => leaf.block(&leaf.sections(), *frame),
                    Frame::Pressed { start, end, .. } => &blocks[*start..*end],
                };
                data.copy_from_nonoverlapping(block.as_ptr(), block.len());
                data = data.add(block.len());
            }
            if flags & SINGLE == 0 {
                start.add(sections.firsts).cast::<u16>().add(frames.len()).write(first);
            }
            Ok(Leaf::from_ptr(start))
        }
    }
}

/// A frame's slots, numbered within its leaf or its draft.
fn slots_of(frame: &Frame) -> std::ops::Range<usize> {
    match frame {
        Frame::Kept { leaf, frame } => leaf.slots(&leaf.sections(), *frame),
        Frame::Pressed { from, to, .. } => *from..*to,
    }
}

fn raw_len_of(frame: &Frame) -> usize {
    match frame {
        Frame::Kept { leaf, frame } => leaf.raw_len(&leaf.sections(), *frame),
        Frame::Pressed { raw_len, .. } => *raw_len,
    }
}

/// The least of `values` and the bits that hold the others' distance from it.
fn span(values: impl Iterator<Item = u64> + Clone) -> (u64, u8) {
    let least = values.clone().min().unwrap_or(0);
    let greatest = values.max().unwrap_or(0);
    (least, packed::bits_for(greatest - least))
}

/// Shares frames of these sizes out to leaves of at most `leaf_bytes`, unless a single frame is more.
fn groups(sizes: &[usize], frames: &[Frame], leaf_bytes: usize, growth: Growth) -> Vec<std::ops::Range<usize>> {
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
        let slots = slots_of(&frames[index]).len();
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
