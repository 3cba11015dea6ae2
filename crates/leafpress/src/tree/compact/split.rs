//! Splitting a builder's records into several leaves.

use std::ops::Range;

use crate::tree::compact::builder::{Form, LeafBuilder, Part, Record};
use crate::tree::compact::compress::{BuiltLeaves, Compression};
use crate::tree::compact::split_hint::SplitHint;
use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, corrupt};
use crate::tree::node::key_order::separator;
use crate::tree::node::layout::{FINGERPRINTS, MAX_RECORDS};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::{TryGrow, collected, copied, room_for};
use leafpress_codec::Scratch;

impl<'b> Compression<'_, 'b> {
    /// Encodes an ordered builder as one leaf, or as several when it holds more than a leaf.
    pub(crate) fn finish(
        &mut self,
        builder: &mut LeafBuilder<'b>,
        split_hint: SplitHint,
    ) -> Result<BuiltLeaves, TreeError> {
        let records: usize = builder.parts.iter().map(|part| part.slots().len()).sum();
        if builder.inline_bytes <= self.settings.leaf_bytes && records <= MAX_RECORDS {
            return BuiltLeaves::one(|| self.write(builder, &builder.parts, builder.inline_bytes));
        }
        builder.same_keys = None;
        let frames: Vec<Part> = collected(builder.parts.iter().flat_map(|part| part.single_frames()))?;
        self.check_order(builder, &frames)?;
        let sizes = self.frame_sizes(builder, &frames)?;
        let groups = groups(&sizes, &frames, self.settings.leaf_bytes, split_hint)?;
        let mut built = BuiltLeaves {
            leaves: room_for(groups.len())?,
            separators: room_for(groups.len() - 1)?,
        };
        for range in groups {
            let bytes = sizes[range.clone()].iter().sum();
            if range.start > 0 {
                let between = self.boundary(builder, &frames[range.start - 1], &frames[range.start])?;
                built.separators.push(between);
            }
            let leaf = self.write(builder, &frames[range], bytes)?;
            built.leaves.push(leaf);
        }
        Ok(built)
    }

    /// Checks that the keys of kept frames and of new ones between them ascend, where a frame's key is in its block.
    /// Any order serves a keyed leaf, which is searched by fingerprints; but no separator of an unordered one leads to
    /// all records.
    fn check_order(&self, builder: &LeafBuilder<'_>, frames: &[Part]) -> Result<(), TreeError> {
        if !matches!(builder.form, Form::Fingerprints { keyed: true, .. }) {
            return Ok(());
        }
        let (mut scratch, mut last, mut key) = (Scratch::default(), Vec::new(), Vec::new());
        for (index, frame) in frames.iter().enumerate() {
            match frame {
                Part::Compressed { from, .. } => {
                    key.clear();
                    key.try_append(builder.records[*from].key)?;
                }
                Part::Kept { leaf, from, .. } => {
                    let mut decoder = Decoder::new(self.engines, &mut scratch);
                    leaf.keyed_key(&leaf.sections(), *from, &mut decoder, &mut key)?;
                }
            }
            if index > 0 && last >= key {
                return Err(corrupt("a leaf's keys"));
            }
            std::mem::swap(&mut last, &mut key);
        }
        Ok(())
    }

    /// Returns the user bytes of each frame.
    fn frame_sizes(&mut self, builder: &LeafBuilder<'b>, frames: &[Part<'b>]) -> Result<Vec<usize>, TreeError> {
        let mut scratch = Scratch::default();
        let mut key = Vec::new();
        let mut sizes = room_for(frames.len())?;
        for frame in frames {
            sizes.push(match (frame, &builder.form) {
                (Part::Compressed { from, to, .. }, _) => {
                    builder.records[*from..*to].iter().map(Record::inline_bytes).sum()
                }
                (Part::Kept { leaf, from, .. }, Form::Packed { key_len, .. }) => {
                    leaf.raw_len(&leaf.sections(), *from) + frame.slots().len() * key_len
                }
                (
                    Part::Kept { leaf, from, .. },
                    Form::Fingerprints {
                        prefix, keyed: true, ..
                    },
                ) => prefix.len() + leaf.raw_len(&leaf.sections(), *from),
                (Part::Kept { leaf, from, .. }, Form::Fingerprints { .. }) => {
                    let sections = leaf.sections();
                    let mut decoder = Decoder::new(self.engines, &mut scratch);
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

    /// Returns a separator between two neighbouring frames of a leaf builder.
    fn boundary(&self, builder: &LeafBuilder<'_>, left: &Part, right: &Part) -> Result<Vec<u8>, TreeError> {
        let mut scratch = Scratch::default();
        let first = match right {
            Part::Compressed { from, .. } => copied(builder.records[*from].key)?,
            Part::Kept { leaf, from, .. } => {
                let mut decoder = Decoder::new(self.engines, &mut scratch);
                leaf.first_key(&leaf.sections(), *from, &mut decoder)?
            }
        };
        match left {
            Part::Compressed { to, .. } => Ok(separator(builder.records[to - 1].key, &first)?),
            Part::Kept { leaf, .. } if !leaf.has(FINGERPRINTS) => {
                let mut last = Vec::new();
                leaf.packed_key(&leaf.sections(), left.slots().end - 1, &mut last)?;
                Ok(separator(&last, &first)?)
            }
            // The last key is inside a frame that need not be decoded for this: the next leaf's first key separates as
            // well.
            Part::Kept { .. } => Ok(first),
        }
    }
}

/// Groups frames of these sizes into leaves of at most `leaf_bytes`, unless a single frame is larger.
fn groups(
    sizes: &[usize],
    frames: &[Part],
    leaf_bytes: usize,
    split_hint: SplitHint,
) -> Result<Vec<Range<usize>>, OutOfMemory> {
    let total: usize = sizes.iter().sum();
    let target = match split_hint {
        SplitHint::Within => total.div_ceil(total.div_ceil(leaf_bytes).max(2)),
        SplitHint::AtEnd | SplitHint::AtStart => leaf_bytes,
    };
    let backwards = split_hint == SplitHint::AtStart;
    let mut groups = Vec::new();
    let (mut bytes, mut records, mut held) = (0, 0, 0);
    for step in 0..sizes.len() {
        let index = if backwards { sizes.len() - 1 - step } else { step };
        let slots = frames[index].slots().len();
        let fits = bytes + sizes[index] <= leaf_bytes && records + slots <= MAX_RECORDS && bytes < target;
        if held > 0 && !fits {
            groups.try_push(if backwards {
                index + 1..index + 1 + held
            } else {
                index - held..index
            })?;
            (bytes, records, held) = (0, 0, 0);
        }
        bytes += sizes[index];
        records += slots;
        held += 1;
    }
    groups.try_push(if backwards {
        0..held
    } else {
        sizes.len() - held..sizes.len()
    })?;
    if backwards {
        groups.reverse();
    }
    Ok(groups)
}
