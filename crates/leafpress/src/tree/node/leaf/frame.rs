//! Decoding a leaf's frames: one value, or every record.

use std::cmp::Ordering;

use crate::tree::error::{MAX_KEY_BYTES, TreeError};
use crate::tree::node::decoder::{Decoder, Value, corrupt};
use crate::tree::node::frame_keys::FrameKeys;
use crate::tree::node::hash_bits::{fingerprint, sub_page};
use crate::tree::node::layout::{FINGERPRINTS, HASHED, SINGLE, Sections, Temperature};
use crate::tree::node::leaf::{Leaf, Place};
use leafpress_base::mem::room::TryGrow;

impl<'g> Leaf<'g> {
    /// Returns at least the first `needed` raw bytes of `frame`.
    #[inline(always)]
    pub(crate) fn decode<'s>(
        &'s self,
        sections: &Sections,
        frame: usize,
        needed: usize,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<&'s [u8], TreeError> {
        self.decode_block(
            self.block(sections, frame),
            self.raw_len(sections, frame),
            needed,
            decoder,
        )
    }

    /// Returns at least the first `needed` raw bytes of a block compressed with this leaf's dictionary.
    #[inline(always)]
    pub(crate) fn decode_block<'s>(
        &self,
        block: &'s [u8],
        raw_len: usize,
        needed: usize,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<&'s [u8], TreeError> {
        if block.len() == raw_len {
            return Ok(block);
        }
        self.decode_compressed(block, raw_len, needed, decoder)
    }

    /// Like [`Leaf::decode_block`], for a block that is not stored raw.
    #[inline(never)]
    fn decode_compressed<'s>(
        &self,
        block: &[u8],
        raw_len: usize,
        needed: usize,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<&'s [u8], TreeError> {
        if block.as_ptr().addr() == decoder.whole {
            return Ok(decoder.scratch.last(raw_len));
        }
        decoder.whole = 0;
        decoder.frames += 1;
        let engine = match self.temperature() {
            Temperature::Cold => &decoder.engines.cold,
            Temperature::Warm => &decoder.engines.warm,
        };
        let raw = engine.decode(block, self.dictionary(), raw_len, needed, decoder.scratch)?;
        decoder.bytes += raw.len() as u64;
        if raw.len() < needed || raw.len() > raw_len {
            return Err(corrupt("the engine decoded another length than requested"));
        }
        Ok(raw)
    }

    /// Returns the value at `place`.
    #[inline]
    pub(crate) fn value<'s>(
        &'s self,
        sections: &Sections,
        place: Place,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<Value<'s, 'g>, TreeError> {
        if self.header().shape.large > 0
            && let Some(large) = self.large(sections, place.slot)
        {
            return Ok(Value::Large(large));
        }
        let lens = self.lens(sections);
        let len = lens.get(place.slot) as usize;
        let start = if self.has(SINGLE) {
            0
        } else {
            let slots = self.slots(sections, place.frame);
            if self.has(FINGERPRINTS) {
                let behind = lens.sum(place.slot, slots.end) as usize;
                self.raw_len(sections, place.frame)
                    .checked_sub(behind)
                    .ok_or_else(|| corrupt("a frame's lengths"))?
            } else {
                lens.sum(slots.start, place.slot) as usize
            }
        };
        let raw = self.decode(sections, place.frame, start + len, decoder)?;
        raw.get(start..start + len)
            .map(Value::Inline)
            .ok_or_else(|| corrupt("a frame's lengths"))
    }

    /// Decodes `frame` and calls `visit` with each record's slot, key and value, in slot order. When it succeeds the
    /// keys ascend, have a valid length, and are within the frame's range in an ordered leaf; the last frame's range is
    /// treated as unbounded. `visit` may be called for some records before an error.
    pub(crate) fn visit_frame(
        &self,
        sections: &Sections,
        frame: usize,
        decoder: &mut Decoder<'_>,
        key: &mut Vec<u8>,
        mut visit: impl FnMut(usize, &[u8], Value<'_, 'g>) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let raw_len = self.raw_len(sections, frame);
        let raw = self.decode(sections, frame, raw_len, decoder)?;
        let slots = self.slots(sections, frame);
        let lens = self.lens(sections);
        let values = lens.sum(slots.start, slots.end) as usize;
        let mut at = raw
            .len()
            .checked_sub(values)
            .ok_or_else(|| corrupt("a frame's lengths"))?;
        let prints = self.has(FINGERPRINTS);
        let mut keys = FrameKeys::new(self, sections, frame, &raw[..at]);
        key.clear();
        for slot in slots {
            if prints {
                self.next_key(sections, frame, &mut keys, key)?;
            } else {
                key.clear();
                self.packed_key(sections, slot, key)?;
            }
            let len = lens.get(slot) as usize;
            let value = match self.header().shape.large {
                0 => None,
                _ => self.large(sections, slot),
            };
            match value {
                Some(large) => visit(slot, key, Value::Large(large))?,
                None => visit(slot, key, Value::Inline(&raw[at..at + len]))?,
            }
            at += len;
        }
        if prints {
            self.check_end(sections, frame, &keys, key)?;
        }
        Ok(())
    }

    /// Replaces `key`, which is the frame's previous one, by the next.
    ///
    /// The engine may have decoded to anything. Structures built from a frame's keys rely on their order and their
    /// lengths, so these are checked, and a key is also compared with its fingerprint and its sub-page.
    fn next_key(
        &self,
        sections: &Sections,
        frame: usize,
        keys: &mut FrameKeys<'_>,
        key: &mut Vec<u8>,
    ) -> Result<(), TreeError> {
        let prefix = self.prefix(sections);
        let first = self.slots(sections, frame).start;
        let Some((slot, shared, rest)) = keys.next() else {
            return Err(wrong_keys());
        };
        let Some(base) = keys.base.get(..shared) else {
            return Err(wrong_keys());
        };
        if prefix.len() + base.len() + rest.len() > MAX_KEY_BYTES {
            return Err(wrong_keys());
        }
        if slot == first {
            key.try_append(prefix)?;
        } else if !ascends(&key[prefix.len()..], base, rest) {
            return Err(wrong_keys());
        }
        key.truncate(prefix.len());
        key.try_append(base)?;
        key.try_append(rest)?;
        let hashed = self.has(HASHED);
        // An ordered frame's first key is its separator, which was not decoded.
        if hashed || slot != first {
            let hash = crate::tree::hash::hash(key);
            let right = self.fingerprints(sections)[slot] == fingerprint(hash)
                && (!hashed || sub_page(hash, self.frames()) == frame);
            if !right {
                return Err(wrong_keys());
            }
        }
        Ok(())
    }

    /// Checks that the keys fill the room before the values, and that the last one is below the next frame.
    fn check_end(&self, sections: &Sections, frame: usize, keys: &FrameKeys<'_>, last: &[u8]) -> Result<(), TreeError> {
        let next = frame + 1;
        let below = self.has(HASHED)
            || next == self.frames()
            || last[self.header().shape.prefix_len as usize..] < *self.separator(sections, next);
        if keys.is_done() && below {
            Ok(())
        } else {
            Err(wrong_keys())
        }
    }
}

#[cold]
fn wrong_keys() -> TreeError {
    corrupt("a frame's keys")
}

/// Returns whether the concatenation of `base` and `rest` is above `previous`.
fn ascends(previous: &[u8], base: &[u8], rest: &[u8]) -> bool {
    let (start, end) = previous.split_at(previous.len().min(base.len()));
    match start.cmp(base) {
        Ordering::Less => true,
        Ordering::Equal => end < rest,
        Ordering::Greater => false,
    }
}
