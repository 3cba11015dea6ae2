//! Selection of a leaf's records by a range of keys.

use std::ops::Bound;

use bumpalo::Bump;

use crate::tree::compact::builder::keep;
use crate::tree::error::TreeError;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::landing::LandedWrite;
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED, SINGLE, Sections};
use crate::tree::node::leaf::Leaf;
use crate::tree::node::leaf::frame::Ascending;
use crate::tree::scan::{Bounds, not_above, not_below};
use leafpress_base::mem::room::{TryGrow, collected, copied};

/// A record that is in the range.
pub(super) struct InRange<'r> {
    pub key: &'r [u8],
    pub value_len: usize,
}

/// Returns the records that a reader finds in a leaf for a range, in key order: all of them, or `most + 1`. `landed`
/// are the changes in the leaf's landing buffer, the newest of each key, in key order.
pub(super) fn records_in<'r>(
    leaf: Leaf<'_>,
    landed: &[LandedWrite<'_>],
    bounds: &Bounds,
    most: usize,
    arena: &'r Bump,
    decoder: &mut Decoder<'_>,
) -> Result<Vec<InRange<'r>>, TreeError> {
    let sections = leaf.sections();
    let in_bounds = |key: &[u8]| not_below(&bounds.0, key) && not_above(&bounds.1, key);
    let mut landed = landed.iter().filter(|entry| in_bounds(entry.key)).peekable();
    let mut records = Vec::new();
    let push = |records: &mut Vec<InRange<'r>>, key: &[u8], value_len: Option<usize>| -> Result<(), TreeError> {
        if let Some(value_len) = value_len {
            records.try_push(InRange {
                key: keep(arena, key)?,
                value_len,
            })?;
        }
        Ok(())
    };
    let is_hashed = leaf.has(HASHED);
    let mut slots: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut key_buffer = Vec::new();
    let mut ascending = Ascending::default();
    for frame in frames_of(leaf, &sections, bounds, decoder)? {
        if !is_hashed && records.len() > most {
            return Ok(records);
        }
        slots.clear();
        keys_of(leaf, &sections, frame, decoder, &mut key_buffer, |slot, key| {
            ascending.check(leaf, key)?;
            if in_bounds(key) {
                slots.try_push((copied(key)?, leaf.value_len(&sections, slot)))?;
            }
            Ok(())
        })?;
        for (key, value_len) in &slots {
            // In a hashed leaf keys are not in order.
            if !is_hashed {
                while let Some(entry) = landed.next_if(|entry| entry.key < key.as_slice()) {
                    push(&mut records, entry.key, entry.change.value_len())?;
                }
                if let Some(entry) = landed.next_if(|entry| entry.key == key.as_slice()) {
                    push(&mut records, entry.key, entry.change.value_len())?;
                    continue;
                }
            }
            push(&mut records, key, Some(*value_len))?;
        }
    }
    if !is_hashed {
        for entry in landed {
            push(&mut records, entry.key, entry.change.value_len())?;
        }
        return Ok(records);
    }
    let landed: Vec<&LandedWrite<'_>> = collected(landed)?;
    records.retain(|record| landed.binary_search_by(|entry| entry.key.cmp(record.key)).is_err());
    for entry in landed {
        push(&mut records, entry.key, entry.change.value_len())?;
    }
    records.sort_unstable_by(|a, b| a.key.cmp(b.key));
    Ok(records)
}

/// Returns the frames that may have keys of a range.
fn frames_of(
    leaf: Leaf<'_>,
    sections: &Sections,
    (start, end): &Bounds,
    decoder: &mut Decoder<'_>,
) -> Result<std::ops::Range<usize>, TreeError> {
    let frames = leaf.frames();
    if leaf.has(HASHED) || leaf.count() == 0 {
        return Ok(0..frames);
    }
    let first = match start {
        Bound::Included(key) | Bound::Excluded(key) => leaf.frame_for(sections, key, decoder)?,
        Bound::Unbounded => 0,
    };
    let last = match end {
        Bound::Included(key) | Bound::Excluded(key) => leaf.frame_for(sections, key, decoder)?,
        Bound::Unbounded => frames - 1,
    };
    Ok(first..last + 1)
}

/// Calls `visit` with the slots of a frame and their keys; values are decoded only if that is unavoidable.
pub(super) fn keys_of(
    leaf: Leaf<'_>,
    sections: &Sections,
    frame: usize,
    decoder: &mut Decoder<'_>,
    key: &mut Vec<u8>,
    mut visit: impl FnMut(usize, &[u8]) -> Result<(), TreeError>,
) -> Result<(), TreeError> {
    let slots = leaf.slots(sections, frame);
    if leaf.has(FINGERPRINTS) && !leaf.has(SINGLE) {
        return leaf.visit_frame(sections, frame, decoder, key, |slot, key, _| visit(slot, key));
    }
    if leaf.has(KEYED) {
        leaf.keyed_key(sections, frame, decoder, key)?;
        return visit(frame, key);
    }
    // Other keys of one-record frames, and packed ones, are stored outside of the frames.
    if leaf.has(FINGERPRINTS) {
        return visit(slots.start, &leaf.first_key(sections, frame, decoder)?);
    }
    for slot in slots {
        key.clear();
        leaf.packed_key(sections, slot, key)?;
        visit(slot, key)?;
    }
    Ok(())
}
