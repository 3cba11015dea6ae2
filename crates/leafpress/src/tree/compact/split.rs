//! A draft shared out to leaves, where it is too much for one.

use std::ops::Range;

use crate::codec::Scratch;
use crate::tree::compact::builder::{Draft, Form, Part, Record};
use crate::tree::compact::compress::{Press, Pressed};
use crate::tree::error::Error;
use crate::tree::node::inner::separator;
use crate::tree::node::layout::{FINGERPRINTS, MAX_RECORDS};
use crate::tree::node::leaf::Decoder;

/// Which side of a split is filled, because the records came at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    AtEnd,
    AtStart,
    Within,
}

impl<'b> Press<'_, 'b> {
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
