//! Access to one leaf by its accessors.

use std::ops::Range;

use crate::tree::error::TreeError;
use crate::tree::node::decoder::{Decoder, Engines, Value};
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED, SINGLE, Sections};
use crate::tree::node::leaf::{Leaf, RecordSlot};
use leafpress_codec::Scratch;

/// One of [`Leaves`](crate::tree::fuzz::Leaves).
pub struct LeafView<'l> {
    leaf: Leaf<'l>,
    sections: Sections,
    engines: &'l Engines,
}

impl<'l> LeafView<'l> {
    pub(crate) fn new(leaf: Leaf<'l>, engines: &'l Engines) -> Self {
        Self {
            leaf,
            sections: leaf.sections(),
            engines,
        }
    }

    fn a_frame(&self, frame: usize) -> Option<usize> {
        (frame < self.leaf.frames()).then_some(frame)
    }

    fn a_slot(&self, slot: usize) -> Option<usize> {
        (slot < self.leaf.count()).then_some(slot)
    }

    fn frame_range(&self, frames: &Range<usize>) -> Option<(usize, usize)> {
        (frames.start < frames.end && frames.end <= self.leaf.frames()).then_some((frames.start, frames.end))
    }

    /// Returns the number of records.
    pub fn count(&self) -> usize {
        self.leaf.count()
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> usize {
        self.leaf.frames()
    }

    /// Returns whether keys are packed numbers; otherwise they are fingerprints.
    pub fn is_packed(&self) -> bool {
        !self.leaf.has(FINGERPRINTS)
    }

    /// Returns whether frames are sub-pages by key hash.
    pub fn is_hashed(&self) -> bool {
        self.leaf.has(HASHED)
    }

    /// Returns whether every frame is known to be one record.
    pub fn is_single(&self) -> bool {
        self.leaf.has(SINGLE)
    }

    /// Returns whether blocks hold the keys.
    pub fn is_keyed(&self) -> bool {
        self.leaf.has(KEYED)
    }

    /// Returns the user bytes of the leaf's frames, as stored in its header.
    pub fn inline_bytes(&self) -> usize {
        self.leaf.header().inline_bytes as usize
    }

    /// Returns the common prefix of all keys.
    pub fn prefix(&self) -> &[u8] {
        self.leaf.prefix(&self.sections)
    }

    /// Returns the frame's slots.
    pub fn slots(&self, frame: usize) -> Option<Range<usize>> {
        self.a_frame(frame).map(|frame| self.leaf.slots(&self.sections, frame))
    }

    /// Returns the key in a slot of packed keys.
    pub fn packed_key(&self, slot: usize) -> Option<Vec<u8>> {
        let slot = self.a_slot(slot).filter(|_| self.is_packed())?;
        let mut key = Vec::new();
        self.leaf.packed_key(&self.sections, slot, &mut key).ok()?;
        Some(key)
    }

    /// Returns the fingerprint in a slot.
    pub fn fingerprint(&self, slot: usize) -> Option<u8> {
        let slot = self.a_slot(slot).filter(|_| !self.is_packed())?;
        Some(self.leaf.fingerprints(&self.sections)[slot])
    }

    /// Returns the first key of an ordered leaf's frame.
    pub fn first_key(&self, frame: usize) -> Option<Vec<u8>> {
        let frame = self.a_frame(frame).filter(|_| !self.is_hashed())?;
        let mut scratch = Scratch::default();
        let mut decoder = Decoder::new(self.engines, &mut scratch);
        self.leaf.first_key(&self.sections, frame, &mut decoder).ok()
    }

    /// Returns the concatenated separators of these frames, in an ordered leaf of fingerprints that is not keyed.
    pub fn separators(&self, frames: Range<usize>) -> Option<&[u8]> {
        let (from, to) = self
            .frame_range(&frames)
            .filter(|_| !self.is_packed() && !self.is_hashed() && !self.is_keyed())?;
        Some(self.leaf.separators(&self.sections, from, to))
    }

    /// Returns the concatenated blocks of these frames, and the start of each, relative to an arbitrary origin.
    pub fn blocks(&self, frames: Range<usize>) -> Option<(&[u8], &[u16])> {
        let (from, to) = self.frame_range(&frames)?;
        let starts = self.leaf.block_starts(&self.sections, from, to);
        Some((self.leaf.blocks(&self.sections, from, to), starts))
    }

    /// Returns the frame's block.
    pub fn block(&self, frame: usize) -> Option<&[u8]> {
        self.a_frame(frame).map(|frame| self.leaf.block(&self.sections, frame))
    }

    /// Returns the length of the decoded frame.
    pub fn raw_len(&self, frame: usize) -> Option<usize> {
        self.a_frame(frame)
            .map(|frame| self.leaf.raw_len(&self.sections, frame))
    }

    /// Returns the length of the value in a slot.
    pub fn value_len(&self, slot: usize) -> Option<usize> {
        self.a_slot(slot).map(|slot| self.leaf.value_len(&self.sections, slot))
    }

    /// Returns whether the value in a slot is stored outside the leaf.
    pub fn is_large(&self, slot: usize) -> bool {
        self.leaf.large(&self.sections, slot).is_some()
    }

    /// Returns the slots whose values are stored outside the leaf.
    pub fn large_slots(&self) -> Vec<usize> {
        self.leaf.larges(&self.sections).map(|(slot, _)| slot).collect()
    }

    /// Returns the slot and the frame of `key`, found without decoding; `None` where the leaf's form does not allow
    /// that.
    pub fn search_exact(&self, key: &[u8]) -> Option<Option<(usize, usize)>> {
        if self.leaf.count() == 0 {
            return Some(None);
        }
        let found = self.leaf.search_exact(&self.sections, key, None)?;
        Some(found.map(|place| (place.slot, place.frame)))
    }

    /// Returns the slot where `key` is or would be inserted, in a leaf of packed keys of its length and with its
    /// prefix.
    pub fn search_packed(&self, key: &[u8]) -> Option<Result<usize, usize>> {
        let fits = self.is_packed()
            && self.leaf.count() > 0
            && key.len() == self.leaf.header().key_len as usize
            && key.starts_with(self.prefix());
        fits.then(|| self.leaf.search_packed(&self.sections, key))
    }

    /// Returns the frame whose range holds `key` in an ordered leaf that is not empty.
    pub fn frame_for(&self, key: &[u8]) -> Option<usize> {
        let ordered = self.leaf.count() > 0 && !self.is_hashed();
        let mut scratch = Scratch::default();
        let mut decoder = Decoder::new(self.engines, &mut scratch);
        ordered.then(|| self.leaf.frame_for(&self.sections, key, &mut decoder).ok())?
    }

    /// Returns the slot and the frame of `key`.
    ///
    /// # Errors
    /// [`TreeError::Codec`] when a frame that may hold it cannot be decoded.
    pub fn locate(&self, key: &[u8], scratch: &mut Scratch) -> Result<Option<(usize, usize)>, TreeError> {
        let mut decoder = Decoder::new(self.engines, scratch);
        let hash = crate::tree::hash::hash(key);
        let place = self.leaf.locate(&self.sections, key, hash, None, &mut decoder)?;
        Ok(place.map(|place| (place.slot, place.frame)))
    }

    /// Returns the first raw bytes of a frame: at least `needed` of them, or all where there are fewer.
    ///
    /// # Errors
    /// As for [`LeafView::locate`].
    pub fn decode<'s>(
        &'s self,
        frame: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Option<Result<Vec<u8>, TreeError>> {
        let needed = needed.min(self.raw_len(frame)?);
        let mut decoder = Decoder::new(self.engines, scratch);
        let raw = self.leaf.decode(&self.sections, frame, needed, &mut decoder);
        Some(raw.map(<[u8]>::to_vec))
    }

    /// Returns the value in a slot.
    ///
    /// # Errors
    /// As for [`LeafView::locate`].
    pub fn value(&self, slot: usize, scratch: &mut Scratch) -> Option<Result<Vec<u8>, TreeError>> {
        let slot = self.a_slot(slot)?;
        let frame = if self.is_single() {
            slot
        } else {
            (0..self.leaf.frames()).find(|frame| self.leaf.slots(&self.sections, *frame).contains(&slot))?
        };
        let mut decoder = Decoder::new(self.engines, scratch);
        let value = self
            .leaf
            .value(&self.sections, RecordSlot { slot, frame }, &mut decoder)
            .and_then(|value| self.read(value));
        Some(value)
    }

    /// Calls `visit` with the slot, key and value of each record of a frame; of some before an error.
    ///
    /// # Errors
    /// As for [`LeafView::locate`].
    pub fn visit_frame(
        &self,
        frame: usize,
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, &[u8], &[u8]),
    ) -> Option<Result<(), TreeError>> {
        let frame = self.a_frame(frame)?;
        let mut decoder = Decoder::new(self.engines, scratch);
        let mut buffer = Vec::new();
        let visited = self
            .leaf
            .visit_frame(&self.sections, frame, &mut decoder, &mut buffer, |slot, key, value| {
                match value {
                    Value::Inline(value) => visit(slot, key, value),
                    large => visit(slot, key, &self.read(large)?),
                }
                Ok(())
            });
        Some(visited)
    }

    fn read(&self, value: Value<'_, '_>) -> Result<Vec<u8>, TreeError> {
        let mut bytes = Vec::new();
        match value {
            Value::Inline(value) => bytes.extend_from_slice(value),
            Value::Large(large) => large.read_into(&*self.engines.warm, &mut bytes)?,
        }
        Ok(bytes)
    }
}
