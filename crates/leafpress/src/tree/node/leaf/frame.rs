//! Decoding a leaf's frames: one value, or every record.

use std::cmp::Ordering;

use crate::tree::error::{MAX_KEY_BYTES, TreeError};
use crate::tree::node::decoder::{Decoder, Value, corrupt};
use crate::tree::node::frame_keys::FrameKeys;
use crate::tree::node::hash_bits::{fingerprint, sub_page};
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED, SINGLE, Sections, Temperature};
use crate::tree::node::leaf::{Leaf, RecordSlot};
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
        place: RecordSlot,
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
            self.suffix_len(sections, place.slot)
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

    /// Replaces `key` by the key in a slot of a keyed leaf, once it agrees with its fingerprint.
    pub(crate) fn keyed_key(
        &self,
        sections: &Sections,
        slot: usize,
        decoder: &mut Decoder<'_>,
        key: &mut Vec<u8>,
    ) -> Result<(), TreeError> {
        let len = self.suffix_len(sections, slot);
        let raw = self.decode(sections, slot, len, decoder)?;
        let suffix = raw.get(..len).ok_or_else(wrong_keys)?;
        self.checked_key(sections, slot, suffix, key)
    }

    /// Replaces `key` by the key in a slot of a keyed leaf, which was decoded to `suffix`, once it agrees with its
    /// fingerprint.
    pub(crate) fn checked_key(
        &self,
        sections: &Sections,
        slot: usize,
        suffix: &[u8],
        key: &mut Vec<u8>,
    ) -> Result<(), TreeError> {
        key.clear();
        key.try_append(self.prefix(sections))?;
        key.try_append(suffix)?;
        self.check_key(sections, slot, key)
    }

    /// Checks that the key in a slot of a keyed leaf, which was decoded to `suffix`, agrees with its fingerprint.
    pub(crate) fn check_suffix(&self, sections: &Sections, slot: usize, suffix: &[u8]) -> Result<(), TreeError> {
        let prefix = self.prefix(sections);
        if prefix.is_empty() {
            return self.check_key(sections, slot, suffix);
        }
        let mut short = [0; 128];
        let len = prefix.len() + suffix.len();
        match short.get_mut(..len) {
            Some(key) => {
                key[..prefix.len()].copy_from_slice(prefix);
                key[prefix.len()..].copy_from_slice(suffix);
                self.check_key(sections, slot, key)
            }
            None => self.checked_key(sections, slot, suffix, &mut Vec::new()),
        }
    }

    fn check_key(&self, sections: &Sections, slot: usize, key: &[u8]) -> Result<(), TreeError> {
        if self.fingerprints(sections)[slot] == fingerprint(crate::tree::hash::hash(key)) {
            Ok(())
        } else {
            Err(wrong_keys())
        }
    }

    /// Returns what a write of this record compresses for the leaf: the value, and in a keyed leaf the key behind the
    /// prefix before it, joined in `buffer`. Returns `None` for a key without the prefix of a keyed leaf, which the
    /// next compaction gives a shorter one.
    pub(crate) fn raw_record<'r>(
        &self,
        key: &[u8],
        value: &'r [u8],
        buffer: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, TreeError> {
        if !self.has(KEYED) {
            return Ok(Some(value));
        }
        let Some(suffix) = key.strip_prefix(self.prefix(&self.sections())) else {
            return Ok(None);
        };
        buffer.clear();
        buffer.try_append(suffix)?;
        buffer.try_append(value)?;
        Ok(Some(buffer))
    }

    /// Returns the value of an entry of the landing buffer that was compressed for this leaf, `value_len` bytes.
    #[inline]
    pub(crate) fn landed_value<'s>(
        &self,
        key: &[u8],
        block: &'s [u8],
        value_len: usize,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<&'s [u8], TreeError> {
        // An entry of a keyed leaf is compressed only if its key has the leaf's prefix.
        let before = if self.has(KEYED) {
            key.len().saturating_sub(self.header().shape.prefix_len as usize)
        } else {
            0
        };
        let raw_len = before + value_len;
        let raw = self.decode_block(block, raw_len, raw_len, decoder)?;
        raw.get(before..raw_len).ok_or_else(wrong_keys)
    }

    /// Decodes `frame` and calls `visit` with each record's slot, key and value, in slot order. When it succeeds the
    /// keys ascend, have a valid length, and are within the frame's range in an ordered leaf; the last frame's range is
    /// treated as unbounded. The keys of a keyed leaf only agree with their fingerprints: see [`Ascending`]. `visit`
    /// may be called for some records before an error.
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
        if self.has(KEYED) {
            let at = self.suffix_len(sections, frame);
            let (suffix, value) = raw.split_at_checked(at).ok_or_else(wrong_keys)?;
            self.checked_key(sections, frame, suffix, key)?;
            let large = match self.header().shape.large {
                0 => None,
                _ => self.large(sections, frame),
            };
            return visit(frame, key, large.map_or(Value::Inline(value), Value::Large));
        }
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

/// Checks that keys ascend from frame to frame where the leaf's own directory does not imply it: in a keyed leaf an
/// engine may have decoded them to anything, and what is built from a leaf's records relies on their order.
#[derive(Default)]
pub(crate) struct Ascending {
    last: Vec<u8>,
    begun: bool,
}

impl Ascending {
    /// Checks the next key of the leaf.
    #[inline]
    pub(crate) fn check(&mut self, leaf: Leaf<'_>, key: &[u8]) -> Result<(), TreeError> {
        if !leaf.has(KEYED) {
            return Ok(());
        }
        if self.begun && self.last.as_slice() >= key {
            return Err(wrong_keys());
        }
        self.begun = true;
        self.last.clear();
        Ok(self.last.try_append(key)?)
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
