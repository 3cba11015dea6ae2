//! Encoding of a builder's parts as a leaf.

use crate::tree::compact::builder::{Form, LeafBuilder, Part, RecordValue};
use crate::tree::compact::compress::{Buffers, Compression};
use crate::tree::error::TreeError;
use crate::tree::node::decoder::corrupt;
use crate::tree::node::hash_bits::fingerprint;
use crate::tree::node::key_array;
use crate::tree::node::key_array::Widths;
use crate::tree::node::key_order::key_number;
use crate::tree::node::large::Large;
use crate::tree::node::layout::{
    FINGERPRINTS, HASHED, HEADER_BYTES, KEYED, LeafHeader, MARKED, SINGLE, Sections, Shape,
};
use crate::tree::node::leaf::{Leaf, NewLeaf};
use crate::tree::node::packed;
use crate::tree::node::packed::SLOP_BYTES;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::node::Kind;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::sync::{AtomicBool, AtomicPtr, AtomicU64, Latch};

/// The minimum and maximum of some numbers.
#[derive(Clone, Copy)]
struct Span {
    least: u64,
    greatest: u64,
}

impl Span {
    const NONE: Self = Self {
        least: u64::MAX,
        greatest: 0,
    };

    fn add(&mut self, value: u64) {
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    fn or_zero(self) -> Self {
        if self.least > self.greatest {
            Self { least: 0, greatest: 0 }
        } else {
            self
        }
    }

    fn bits(self) -> u8 {
        packed::bits_for(self.greatest - self.least)
    }
}

/// The totals of the parts.
struct Totals {
    frames: usize,
    data_bytes: usize,
    separator_bytes: usize,
    /// Whether every frame is one record.
    single: bool,
    lens: Span,
    /// Lengths of the keys behind the prefix, in a keyed leaf.
    suffix_lens: Span,
}

impl<'b> Compression<'_, 'b> {
    /// Encodes `parts` of the builder, with `inline_bytes` user bytes, as one leaf. When `builder.same_keys` is set,
    /// they are all of its parts.
    pub(crate) fn write(
        &mut self,
        builder: &LeafBuilder<'b>,
        parts: &[Part<'b>],
        inline_bytes: usize,
    ) -> Result<NewLeaf, TreeError> {
        let prefix = builder.form.prefix();
        let (mut flags, mut key_len) = match builder.form {
            Form::Packed { key_len, .. } => (0, key_len),
            Form::Fingerprints { hashed: true, .. } => (FINGERPRINTS | HASHED, 0),
            Form::Fingerprints { keyed: true, .. } => (FINGERPRINTS | KEYED, 0),
            Form::Fingerprints { .. } => (FINGERPRINTS, 0),
        };
        let mut larges = Vec::new();
        let totals = gather(self.buffers, &mut larges, builder, parts, flags)?;
        // A hashed leaf's sub-pages keep their own directory even if each happens to hold one record.
        if totals.single && flags & HASHED == 0 {
            flags |= SINGLE;
        } else if flags & KEYED != 0 {
            return Err(corrupt("a frame of several records in a keyed leaf"));
        }
        // Offsets have 16 bits. Leaves are cut by their count of user bytes, which wrongly decoded frames may have
        // falsified.
        if totals.data_bytes.max(totals.separator_bytes) > usize::from(u16::MAX) {
            return Err(corrupt("more bytes than a leaf can hold"));
        }
        let Buffers { numbers, lens, .. } = &*self.buffers;
        let count = lens.len();
        let len_span = totals.lens.or_zero();
        let (key_base, mut keys) = match builder.same_keys {
            Some(leaf) => (leaf.header().key_base, leaf.header().shape.keys),
            // Packed keys ascend; a leaf of fingerprints has no numbers.
            None => (numbers.first().copied().unwrap_or(0), Widths::of(numbers)),
        };
        if let Some(leaf) = builder.same_keys.filter(|_| flags & KEYED != 0) {
            key_len = usize::from(leaf.header().key_len);
        } else if flags & KEYED != 0 {
            let span = totals.suffix_lens.or_zero();
            key_len = span.least as usize;
            keys.key_bits = span.bits();
        }
        let large_bytes: u64 = larges.iter().map(|(_, large)| large.raw_len() as u64).sum();
        let marks = if self.marks { count } else { 0 };
        if self.marks {
            flags |= MARKED;
            gather_marks(&mut self.buffers.marks, builder, parts)?;
        }
        let shape = Shape {
            count: count as u16,
            frames: totals.frames as u16,
            prefix_len: prefix.len() as u16,
            large: larges.len() as u16,
            keys,
            len_bits: len_span.bits(),
            flags: flags | self.temperature.flag(),
        };
        let sections = Sections::of(&shape);
        let data_at = sections.separators + totals.separator_bytes;
        // SAFETY: the tree's memory outlives its nodes; every field and section is written into the room counted for
        // it, and the slop after the data lets packed arrays be read and written by whole words.
        unsafe {
            let node = self
                .memory
                .allocate(data_at + totals.data_bytes + SLOP_BYTES + marks, Kind::Leaf)?;
            // Packed arrays are read by whole words, which may reach into the slop: it has to be initialised.
            node.as_ptr()
                .add(data_at + totals.data_bytes)
                .cast::<[u8; SLOP_BYTES]>()
                .write([0; SLOP_BYTES]);
            let header = node.cast::<LeafHeader>().as_ptr();
            (&raw mut (*header).landing).write(AtomicPtr::new(std::ptr::null_mut()));
            (&raw mut (*header).landed).write(AtomicU64::new(0));
            (&raw mut (*header).dictionary).write(self.dictionary.map_or(std::ptr::null(), std::ptr::from_ref));
            (&raw mut (*header).key_base).write(key_base);
            (&raw mut (*header).live_user_bytes).write((inline_bytes as u64 + large_bytes).into());
            (&raw mut (*header).live).write((count as u32).into());
            (&raw mut (*header).inline_bytes).write(inline_bytes as u32);
            (&raw mut (*header).reads).write(self.reads.into());
            (&raw mut (*header).len_base).write(len_span.least as u32);
            (&raw mut (*header).data_at).write(data_at as u32);
            (&raw mut (*header).key_len).write(key_len as u16);
            (&raw mut (*header).shape).write(shape);
            (&raw mut (*header).lock).write(Latch::new());
            (&raw mut (*header).obsolete).write(AtomicBool::new(false));
            (&raw mut (*header).queued).write(AtomicBool::new(false));
            let leaf = NewLeaf::new(node);
            let mut writer = Writer {
                start: node.as_ptr(),
                sections,
                shape,
                builder,
                buffers: self.buffers,
                larges: &larges,
            };
            // Packed arrays are written by whole words past their end, so the following sections are written later.
            writer.large_values();
            writer.keys_and_lens(len_span.least, key_len as u64);
            writer.prefix_and_frames(parts, data_at);
            writer.marks(data_at + totals.data_bytes + SLOP_BYTES);
            self.buffers.copied_bytes += leaf.leaf().header().node.requested_bytes() as u64;
            Ok(leaf)
        }
    }
}

/// Returns a leaf's sections, from the last call if it was for the same leaf.
fn sections_of<'g>(leaf: &Leaf<'g>, known: &mut Option<(Leaf<'g>, Sections)>) -> Sections {
    match known {
        Some((last, sections)) if last == leaf => *sections,
        _ => known.insert((*leaf, leaf.sections())).1,
    }
}

/// Collects the parts' marks in the buffer.
fn gather_marks(marks: &mut Vec<u8>, builder: &LeafBuilder<'_>, parts: &[Part<'_>]) -> Result<(), OutOfMemory> {
    marks.clear();
    for part in parts {
        let slots = part.slots();
        match part {
            Part::Kept { leaf, .. } => marks.try_extend(slots.map(|slot| leaf.mark(slot)))?,
            Part::Compressed { .. } => marks.try_extend(builder.records[slots].iter().map(|record| record.mark))?,
        }
    }
    Ok(())
}

/// Collects the kinds and lengths of the parts' records in the buffers, and which of their values are large.
fn gather<'b>(
    buffers: &mut Buffers,
    larges: &mut Vec<(u16, Large<'b>)>,
    builder: &LeafBuilder<'b>,
    parts: &[Part<'b>],
    flags: u8,
) -> Result<Totals, OutOfMemory> {
    let Buffers {
        numbers,
        lens,
        suffix_lens,
        prints,
        ..
    } = buffers;
    numbers.clear();
    lens.clear();
    suffix_lens.clear();
    prints.clear();
    let prefix_len = builder.form.prefix().len();
    let mut totals = Totals {
        frames: 0,
        data_bytes: 0,
        separator_bytes: 0,
        single: true,
        lens: Span::NONE,
        suffix_lens: Span::NONE,
    };
    let fingerprints = flags & FINGERPRINTS != 0;
    let keyed = flags & KEYED != 0;
    let separated = fingerprints && !keyed && flags & HASHED == 0;
    let new_keys = builder.same_keys.is_none();
    if let Some(leaf) = builder.same_keys
        && separated
    {
        totals.separator_bytes = leaf.separators(&leaf.sections(), 0, leaf.frames()).len();
    }
    let mut known = None;
    for part in parts {
        let slots = part.slots();
        lens.try_grow(slots.len())?;
        if keyed && new_keys {
            suffix_lens.try_grow(slots.len())?;
        }
        match new_keys {
            true if fingerprints => prints.try_grow(slots.len())?,
            true => numbers.try_grow(slots.len())?,
            false => {}
        }
        match part {
            Part::Kept { leaf, from, to } => {
                let sections = &sections_of(leaf, &mut known);
                totals.frames += to - from;
                totals.single &= slots.len() == to - from && (flags & HASHED == 0);
                if !fingerprints && new_keys {
                    numbers.extend(slots.clone().map(|slot| leaf.key_number(sections, slot)));
                } else if new_keys {
                    prints.extend_from_slice(&leaf.fingerprints(sections)[slots.clone()]);
                    if separated {
                        totals.separator_bytes += leaf.separators(sections, *from, *to).len();
                    }
                }
                if keyed && new_keys {
                    suffix_lens.extend(slots.clone().map(|slot| {
                        let len = leaf.suffix_len(sections, slot);
                        totals.suffix_lens.add(len as u64);
                        len as u16
                    }));
                }
                if leaf.header().shape.large > 0 {
                    let before = lens.len();
                    let within = leaf.larges_within(sections, slots.clone());
                    larges.try_extend(within.map(|(slot, large)| ((before + slot - slots.start) as u16, large)))?;
                }
                let packed = leaf.lens(sections);
                if leaf.header().shape.len_bits == 0 {
                    totals.lens.add(u64::from(leaf.header().len_base));
                    lens.extend(std::iter::repeat_n(leaf.header().len_base, slots.len()));
                } else {
                    lens.extend(slots.map(|slot| {
                        let len = packed.get(slot);
                        totals.lens.add(len);
                        len as u32
                    }));
                }
                totals.data_bytes += leaf.blocks(sections, *from, *to).len();
            }
            Part::Compressed { start, end, .. } => {
                totals.frames += 1;
                totals.single &= slots.len() == 1;
                let records = &builder.records[slots];
                if separated && new_keys {
                    totals.separator_bytes += records[0].key.len() - prefix_len;
                }
                for record in records {
                    if !fingerprints && new_keys {
                        numbers.push(key_number(record.key));
                    } else if new_keys {
                        prints.push(fingerprint(crate::tree::hash::hash(record.key)));
                    }
                    if let RecordValue::Large(large) = record.value {
                        larges.try_push((lens.len() as u16, large))?;
                    }
                    if keyed && new_keys {
                        let len = record.key.len() - prefix_len;
                        totals.suffix_lens.add(len as u64);
                        suffix_lens.push(len as u16);
                    }
                    totals.lens.add(record.value_len() as u64);
                    lens.push(record.value_len() as u32);
                }
                totals.data_bytes += end - start;
            }
        }
    }
    Ok(totals)
}

/// Writes a leaf's sections. The node has room for all of them, and is not published yet.
struct Writer<'w, 'b> {
    start: *mut u8,
    sections: Sections,
    shape: Shape,
    builder: &'w LeafBuilder<'b>,
    buffers: &'w Buffers,
    larges: &'w [(u16, Large<'b>)],
}

impl Writer<'_, '_> {
    fn has(&self, flag: u8) -> bool {
        self.shape.flags & flag != 0
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        // SAFETY: callers pass an offset and length within the node.
        unsafe { self.start.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    fn put_u16(&mut self, section: usize, index: usize, value: usize) {
        debug_assert!(value <= usize::from(u16::MAX));
        // SAFETY: callers pass an index within a section of u16, which starts at an even offset.
        unsafe { self.start.add(section).cast::<u16>().add(index).write(value as u16) }
    }

    /// Writes values that are all shifted by the same distance, modulo 2^16.
    fn put_shifted(&mut self, section: usize, index: usize, values: &[u16], shift: u16) {
        // SAFETY: callers pass a range within a section of u16, which starts at an even offset; the values belong to
        // another node.
        let target = unsafe {
            let start = self.start.add(section).cast::<std::mem::MaybeUninit<u16>>().add(index);
            std::slice::from_raw_parts_mut(start, values.len())
        };
        for (target, value) in target.iter_mut().zip(values) {
            target.write(value.wrapping_add(shift));
        }
    }

    fn marks(&mut self, at: usize) {
        if self.has(MARKED) {
            self.put(at, &self.buffers.marks);
        }
    }

    fn large_values(&mut self) {
        for (index, (slot, large)) in self.larges.iter().enumerate() {
            // SAFETY: the section of addresses follows the header, whose length is a multiple of eight.
            unsafe {
                self.start
                    .add(HEADER_BYTES)
                    .cast::<*mut u8>()
                    .add(index)
                    .write(large.as_ptr())
            };
            self.put_u16(self.sections.large_slots, index, usize::from(*slot));
        }
    }

    fn keys_and_lens(&mut self, len_base: u64, suffix_len_base: u64) {
        let Buffers {
            numbers,
            lens,
            suffix_lens,
            prints,
            ..
        } = self.buffers;
        if let Some(leaf) = self.builder.same_keys {
            self.put(self.sections.keys, leaf.key_bytes(&leaf.sections()));
        } else if self.has(FINGERPRINTS) {
            self.put(self.sections.keys, prints);
        } else {
            // SAFETY: the section has the packed numbers' length, and the slop follows the sections.
            unsafe { key_array::write(self.start.add(self.sections.keys), numbers, self.shape.keys) };
            // The section's padding is copied with it.
            let end = self.sections.keys + self.shape.keys.bytes(numbers.len());
            self.put(end, &[0][..self.sections.offsets - end]);
        }
        let lens = lens.iter().map(|len| u64::from(*len));
        // SAFETY: the section has the packed lengths' size, and the slop follows the sections.
        unsafe { packed::pack(self.start.add(self.sections.lens), lens, self.shape.len_bits, len_base) };
        if !self.has(KEYED) {
            return;
        }
        if let Some(leaf) = self.builder.same_keys {
            self.put(self.sections.suffix_lens, leaf.suffix_len_bytes(&leaf.sections()));
        } else {
            let lens = suffix_lens.iter().map(|len| u64::from(*len));
            let (start, bits) = (self.sections.suffix_lens, self.shape.keys.key_bits);
            // SAFETY: the section has the packed lengths' size, and the slop follows the sections.
            unsafe { packed::pack(self.start.add(start), lens, bits, suffix_len_base) };
        }
    }

    fn prefix_and_frames(&mut self, parts: &[Part], data_at: usize) {
        let prefix = self.builder.form.prefix();
        self.put(self.sections.prefix, prefix);
        let separated = self.has(FINGERPRINTS) && !self.has(HASHED) && !self.has(KEYED);
        let (mut frame, mut first, mut data, mut separators) = (0, 0, 0, 0);
        let mut known = None;
        for part in parts {
            let slots = part.slots();
            match part {
                Part::Kept { leaf, from, to } => {
                    let sections = &sections_of(leaf, &mut known);
                    let frames = to - from;
                    let blocks = leaf.blocks(sections, *from, *to);
                    self.put(data_at + data, blocks);
                    let shift = data.wrapping_sub(leaf.block_starts(sections, *from, *to)[0] as usize);
                    self.put_shifted(
                        self.sections.offsets,
                        frame,
                        leaf.block_starts(sections, *from, *to),
                        shift as u16,
                    );
                    if !self.has(SINGLE) {
                        for index in 0..frames {
                            let start = leaf.slots(sections, from + index).start - slots.start + first;
                            self.put_u16(self.sections.firsts, frame + index, start);
                        }
                    }
                    if self.has(FINGERPRINTS) && !self.has(SINGLE) {
                        for index in 0..frames {
                            self.put_u16(self.sections.raws, frame + index, leaf.raw_len(sections, from + index));
                        }
                    }
                    if separated {
                        let bytes = leaf.separators(sections, *from, *to);
                        self.put(self.sections.separators + separators, bytes);
                        for index in 0..frames {
                            separators += leaf.separator(sections, from + index).len();
                            self.put_u16(self.sections.ends, frame + index, separators);
                        }
                    }
                    frame += frames;
                    data += blocks.len();
                }
                Part::Compressed {
                    from,
                    start,
                    end,
                    raw_len,
                    ..
                } => {
                    let block = &self.buffers.blocks[*start..*end];
                    self.put(data_at + data, block);
                    self.put_u16(self.sections.offsets, frame, data);
                    if !self.has(SINGLE) {
                        self.put_u16(self.sections.firsts, frame, first);
                    }
                    if self.has(FINGERPRINTS) && !self.has(SINGLE) {
                        self.put_u16(self.sections.raws, frame, *raw_len);
                    }
                    if separated {
                        let separator = &self.builder.records[*from].key[prefix.len()..];
                        self.put(self.sections.separators + separators, separator);
                        separators += separator.len();
                        self.put_u16(self.sections.ends, frame, separators);
                    }
                    frame += 1;
                    data += block.len();
                }
            }
            first += slots.len();
        }
        self.put_u16(self.sections.offsets, frame, data);
        if !self.has(SINGLE) {
            self.put_u16(self.sections.firsts, frame, first);
        }
    }
}
