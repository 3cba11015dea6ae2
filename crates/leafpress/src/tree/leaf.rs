//! A leaf, read: its records found, decoded and visited. `layout` says where everything in it is.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use seize::LocalGuard;

use super::Error;
use super::frame_keys::FrameKeys;
use super::landing::Landing;
use super::large::Large;
use super::layout::{FINGERPRINTS, HASHED, HEADER_BYTES, Header, SINGLE, Sections};
use super::packed::Packed;
use super::prefetch::{LINE_BYTES, prefetch};
use super::sync::load;
use crate::codec::{CodecError, Dictionary, Engine, Scratch};

/// A leaf, borrowed for as long as a guard or its lock protects it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf(NonNull<u8>);

/// Where a record is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub slot: usize,
    pub frame: usize,
}

/// A record's value.
pub(crate) enum Value<'a> {
    Inline(&'a [u8]),
    Large(Large),
}

/// Decodes frames into one buffer and counts what it did.
pub(crate) struct Decoder<'a> {
    pub engine: &'a dyn Engine,
    pub scratch: &'a mut Scratch,
    pub frames: u64,
    pub bytes: u64,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(engine: &'a dyn Engine, scratch: &'a mut Scratch) -> Self {
        Self {
            engine,
            scratch,
            frames: 0,
            bytes: 0,
        }
    }
}

fn corrupt(reason: &str) -> Error {
    Error::Codec(CodecError::Corrupt {
        codec: "leaf",
        reason: reason.to_owned(),
    })
}

/// The fingerprint of a key with this hash.
pub(crate) fn fingerprint(hash: u64) -> u8 {
    (hash >> 40) as u8
}

/// The sub-page of a key with this hash in a hashed leaf.
pub(crate) fn sub_page(hash: u64, sub_pages: usize) -> usize {
    ((hash >> 8) & 0xFFFF_FFFF) as usize % sub_pages
}

/// The last eight bytes of `key`, or all of a shorter one, as a number that orders as they do.
#[inline(always)]
pub(crate) fn key_number(key: &[u8]) -> u64 {
    if let Some(last) = key.last_chunk::<8>() {
        return u64::from_be_bytes(*last);
    }
    key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Leaf {
    /// # Safety
    /// `pointer` is a live leaf's.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Self {
        // SAFETY: a live node's pointer is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) })
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: a live leaf begins with its header.
        unsafe { self.0.cast::<Header>().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.header().shape.count as usize
    }

    #[inline(always)]
    pub(crate) fn frames(&self) -> usize {
        self.header().shape.frames as usize
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.header().shape.flags & flag != 0
    }

    #[inline(always)]
    fn at(&self, offset: usize) -> *const u8 {
        // SAFETY: callers pass offsets of sections, which lie within the allocation.
        unsafe { self.0.as_ptr().add(offset) }
    }

    #[inline(always)]
    fn u16_at(&self, section: usize, index: usize) -> usize {
        // SAFETY: sections of u16 start at even offsets and callers pass indices below their counts.
        unsafe { self.at(section).cast::<u16>().add(index).read() as usize }
    }

    fn bytes_at(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: callers pass ranges within the immutable part of the allocation.
        unsafe { std::slice::from_raw_parts(self.at(offset), len) }
    }

    pub(crate) fn dictionary(&self) -> Option<&Dictionary> {
        // SAFETY: a tree keeps a dictionary until no leaf points to it.
        unsafe { self.header().dictionary.as_ref() }
    }

    /// The landing buffer as of now, protected by the guard.
    #[inline(always)]
    pub(crate) fn landing(&self, guard: &LocalGuard<'_>) -> Option<Landing> {
        // SAFETY: a buffer is retired once the leaf no longer points to it, so that the guard protects it.
        unsafe { Landing::from_ptr(load(&self.header().landing, guard)) }
    }

    /// The landing buffer, for the holder of the lock.
    pub(crate) fn landing_locked(&self) -> Option<Landing> {
        // SAFETY: only the lock's holder replaces the buffer.
        unsafe { Landing::from_ptr(self.header().landing.load(Ordering::Acquire)) }
    }

    #[inline(always)]
    fn keys(&self, sections: &Sections) -> Packed {
        let header = self.header();
        // SAFETY: the section was written by `pack` with these parameters and is followed by at least SLOP_BYTES.
        unsafe {
            Packed::new(
                self.at(sections.keys),
                self.count(),
                header.shape.key_bits,
                header.key_base,
            )
        }
    }

    #[inline(always)]
    pub(crate) fn lens(&self, sections: &Sections) -> Packed {
        let header = self.header();
        // SAFETY: as above.
        unsafe {
            Packed::new(
                self.at(sections.lens),
                self.count(),
                header.shape.len_bits,
                u64::from(header.len_base),
            )
        }
    }

    pub(crate) fn sections(&self) -> Sections {
        Sections::of(&self.header().shape)
    }

    pub(crate) fn prefix(&self, sections: &Sections) -> &[u8] {
        self.bytes_at(sections.prefix, self.header().shape.prefix_len as usize)
    }

    pub(crate) fn fingerprints(&self, sections: &Sections) -> &[u8] {
        self.bytes_at(sections.keys, self.count())
    }

    /// Slots of `frame`.
    #[inline(always)]
    pub(crate) fn slots(&self, sections: &Sections, frame: usize) -> std::ops::Range<usize> {
        if self.has(SINGLE) {
            frame..frame + 1
        } else {
            self.u16_at(sections.firsts, frame)..self.u16_at(sections.firsts, frame + 1)
        }
    }

    #[inline(always)]
    fn frame_of(&self, sections: &Sections, slot: usize) -> usize {
        if self.has(SINGLE) {
            return slot;
        }
        let (mut low, mut size) = (0, self.frames());
        while size > 1 {
            let half = size / 2;
            low = if self.u16_at(sections.firsts, low + half) <= slot {
                low + half
            } else {
                low
            };
            size -= half;
        }
        low
    }

    /// The first key of `frame` behind the prefix, in an ordered leaf of fingerprints.
    pub(crate) fn separator(&self, sections: &Sections, frame: usize) -> &[u8] {
        let start = if frame == 0 {
            0
        } else {
            self.u16_at(sections.ends, frame - 1)
        };
        let end = self.u16_at(sections.ends, frame);
        self.bytes_at(sections.separators + start, end - start)
    }

    /// The separators of frames `from..to`, one behind the other.
    pub(crate) fn separators(&self, sections: &Sections, from: usize, to: usize) -> &[u8] {
        let end_of = |frame: usize| {
            if frame == 0 {
                0
            } else {
                self.u16_at(sections.ends, frame - 1)
            }
        };
        let start = end_of(from);
        self.bytes_at(sections.separators + start, end_of(to) - start)
    }

    /// The section of packed keys or of fingerprints.
    pub(crate) fn key_bytes(&self, sections: &Sections) -> &[u8] {
        self.bytes_at(sections.keys, sections.lens - sections.keys)
    }

    /// Where the blocks of frames `from..to` start in the data.
    pub(crate) fn block_starts(&self, sections: &Sections, from: usize, to: usize) -> &[u16] {
        // SAFETY: the section starts at an even offset and holds one more than there are frames.
        unsafe { std::slice::from_raw_parts(self.at(sections.offsets).cast::<u16>().add(from), to - from) }
    }

    /// The blocks of frames `from..to`, one behind the other.
    pub(crate) fn blocks(&self, sections: &Sections, from: usize, to: usize) -> &[u8] {
        let start = self.u16_at(sections.offsets, from);
        let end = self.u16_at(sections.offsets, to);
        self.bytes_at(self.header().data_at as usize + start, end - start)
    }

    /// The number of the key in `slot` of a packed leaf.
    pub(crate) fn key_number(&self, sections: &Sections, slot: usize) -> u64 {
        self.keys(sections).get(slot)
    }

    /// Raw length of `frame`.
    #[inline(always)]
    pub(crate) fn raw_len(&self, sections: &Sections, frame: usize) -> usize {
        if self.has(FINGERPRINTS) && !self.has(SINGLE) {
            return self.u16_at(sections.raws, frame);
        }
        let slots = self.slots(sections, frame);
        self.lens(sections).sum(slots.start, slots.end) as usize
    }

    /// The block of `frame`.
    #[inline(always)]
    pub(crate) fn block(&self, sections: &Sections, frame: usize) -> &[u8] {
        let start = self.u16_at(sections.offsets, frame);
        let end = self.u16_at(sections.offsets, frame + 1);
        self.bytes_at(self.header().data_at as usize + start, end - start)
    }

    /// At least the first `needed` raw bytes of `frame`.
    #[inline]
    pub(crate) fn decode<'s>(
        &'s self,
        sections: &Sections,
        frame: usize,
        needed: usize,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<&'s [u8], Error> {
        self.decode_block(
            self.block(sections, frame),
            self.raw_len(sections, frame),
            needed,
            decoder,
        )
    }

    /// At least the first `needed` raw bytes of a block pressed with this leaf's dictionary.
    #[inline]
    pub(crate) fn decode_block<'s>(
        &self,
        block: &'s [u8],
        raw_len: usize,
        needed: usize,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<&'s [u8], Error> {
        if block.len() == raw_len {
            return Ok(block);
        }
        decoder.frames += 1;
        let raw = decoder
            .engine
            .decode(block, self.dictionary(), raw_len, needed, decoder.scratch)?;
        decoder.bytes += raw.len() as u64;
        if raw.len() < needed || raw.len() > raw_len {
            return Err(corrupt("the engine decoded another length than was asked for"));
        }
        Ok(raw)
    }

    /// Finds `key`, of this hash. Decodes only where fingerprints are, and there only a frame whose range holds the key.
    #[inline]
    pub(crate) fn locate(
        &self,
        sections: &Sections,
        key: &[u8],
        hash: u64,
        decoder: &mut Decoder<'_>,
    ) -> Result<Option<Place>, Error> {
        if self.count() == 0 {
            return Ok(None);
        }
        match self.search_exact(sections, key) {
            Some(place) => Ok(place),
            None => self.locate_by_fingerprint(sections, key, hash, decoder),
        }
    }

    /// Finds `key` without decoding; `None` when the leaf's form does not allow it.
    #[inline]
    pub(crate) fn search_exact(&self, sections: &Sections, key: &[u8]) -> Option<Option<Place>> {
        if self.has(FINGERPRINTS) {
            return None;
        }
        let header = self.header();
        let fits = key.len() == header.key_len as usize
            && (header.shape.prefix_len == 0 || key.starts_with(self.prefix(sections)));
        if !fits {
            return Some(None);
        }
        let slot = self.keys(sections).search(key_number(key)).ok();
        Some(slot.map(|slot| Place {
            slot,
            frame: self.frame_of(sections, slot),
        }))
    }

    /// Asks for the block of `frame`.
    #[inline(always)]
    pub(crate) fn prefetch_block(&self, sections: &Sections, frame: usize) {
        let start = self.at(self.header().data_at as usize + self.u16_at(sections.offsets, frame));
        prefetch(start);
        prefetch(start.wrapping_add(LINE_BYTES));
    }

    fn locate_by_fingerprint(
        &self,
        sections: &Sections,
        key: &[u8],
        hash: u64,
        decoder: &mut Decoder<'_>,
    ) -> Result<Option<Place>, Error> {
        let Some(suffix) = key.strip_prefix(self.prefix(sections)) else {
            return Ok(None);
        };
        let hashed = self.has(HASHED);
        let (prints, offset) = if hashed {
            let slots = self.slots(sections, sub_page(hash, self.frames()));
            (&self.fingerprints(sections)[slots.clone()], slots.start)
        } else {
            (self.fingerprints(sections), 0)
        };
        for slot in memchr::memchr_iter(fingerprint(hash), prints) {
            let slot = slot + offset;
            let frame = self.frame_of(sections, slot);
            if !hashed {
                let first = self.separator(sections, frame);
                if self.slots(sections, frame).start == slot {
                    if first == suffix {
                        return Ok(Some(Place { slot, frame }));
                    }
                    continue;
                }
                let past = frame + 1 < self.frames() && self.separator(sections, frame + 1) <= suffix;
                if past || suffix < first {
                    continue;
                }
            }
            let raw_len = self.raw_len(sections, frame);
            let raw = self.decode(sections, frame, raw_len, decoder)?;
            let mut keys = FrameKeys::new(self, sections, frame, raw);
            while let Some((at, shared, rest)) = keys.next() {
                if at == slot {
                    let base = keys.base;
                    let same = shared <= base.len()
                        && suffix.len() == shared + rest.len()
                        && suffix.starts_with(&base[..shared])
                        && suffix[shared..] == *rest;
                    if same {
                        return Ok(Some(Place { slot, frame }));
                    }
                    break;
                }
            }
        }
        Ok(None)
    }

    /// The slot where `key` is (`Ok`) or would be inserted (`Err`) in a packed leaf, whose form `key` fits.
    pub(crate) fn search_packed(&self, sections: &Sections, key: &[u8]) -> Result<usize, usize> {
        self.keys(sections).search(key_number(key))
    }

    /// The frame whose range holds `key` in an ordered, non-empty leaf: the last whose first key is not above it, else the first.
    pub(crate) fn frame_for(&self, sections: &Sections, key: &[u8]) -> usize {
        if self.has(FINGERPRINTS) {
            let prefix = self.prefix(sections);
            let Some(suffix) = key.strip_prefix(prefix) else {
                return if key < prefix { 0 } else { self.frames() - 1 };
            };
            let (mut low, mut high) = (0, self.frames());
            while high - low > 1 {
                let middle = low.midpoint(high);
                if self.separator(sections, middle) <= suffix {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            return low;
        }
        let slot = self.slot_for(sections, key);
        self.frame_of(sections, slot)
    }

    /// The last slot of a packed, non-empty leaf whose key is not above `key`, else the first.
    fn slot_for(&self, sections: &Sections, key: &[u8]) -> usize {
        let header = self.header();
        let prefix = self.prefix(sections);
        let len = header.key_len as usize;
        // Keys of another length compare by their bytes: find the number whose key is the greatest not above `key`.
        let above_prefix = &key[..key.len().min(prefix.len())];
        if above_prefix != prefix {
            return if key < prefix { 0 } else { self.count() - 1 };
        }
        let number_len = len - prefix.len();
        let rest = &key[prefix.len()..];
        let number = if rest.len() >= number_len {
            key_number(&rest[..number_len])
        } else {
            // A shorter key stands before every key that extends it.
            let mut padded = [0u8; 8];
            padded[..rest.len()].copy_from_slice(rest);
            match key_number(&padded[..number_len]).checked_sub(1) {
                Some(number) => number,
                None => return 0,
            }
        };
        match self.keys(sections).search(number) {
            Ok(slot) => slot,
            Err(slot) => slot.saturating_sub(1),
        }
    }

    /// The large value in `slot`, if its value is one.
    pub(crate) fn large(&self, sections: &Sections, slot: usize) -> Option<Large> {
        let count = self.header().shape.large as usize;
        (0..count)
            .find(|index| self.u16_at(sections.large_slots, *index) == slot)
            .and_then(|index| self.large_at(index))
    }

    /// The leaf's large values with their slots, in slot order.
    pub(crate) fn larges(&self, sections: &Sections) -> impl Iterator<Item = (usize, Large)> {
        let slots = sections.large_slots;
        (0..self.header().shape.large as usize)
            .filter_map(move |index| self.large_at(index).map(|large| (self.u16_at(slots, index), large)))
    }

    fn large_at(&self, index: usize) -> Option<Large> {
        // SAFETY: the addresses follow the header, and the leaf owns the values.
        unsafe { Large::from_ptr(self.at(HEADER_BYTES).cast::<*mut u8>().add(index).read()) }
    }

    /// Length of the value in `slot`.
    pub(crate) fn value_len(&self, sections: &Sections, slot: usize) -> usize {
        match self.header().shape.large {
            0 => self.lens(sections).get(slot) as usize,
            _ => match self.large(sections, slot) {
                // SAFETY: the leaf owns the value.
                Some(large) => unsafe { large.raw_len() },
                None => self.lens(sections).get(slot) as usize,
            },
        }
    }

    /// The value at `place`.
    #[inline]
    pub(crate) fn value<'s>(
        &'s self,
        sections: &Sections,
        place: Place,
        decoder: &'s mut Decoder<'_>,
    ) -> Result<Value<'s>, Error> {
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

    /// Writes the key of `slot` in a packed leaf behind `out`.
    pub(crate) fn packed_key(&self, sections: &Sections, slot: usize, out: &mut Vec<u8>) {
        let header = self.header();
        out.extend_from_slice(self.prefix(sections));
        let number = self.key_number(sections, slot).to_be_bytes();
        out.extend_from_slice(&number[8 - (header.key_len - header.shape.prefix_len) as usize..]);
    }

    /// Decodes `frame` and gives `visit` each record's slot, key and value, in slot order.
    pub(crate) fn visit_frame(
        &self,
        sections: &Sections,
        frame: usize,
        decoder: &mut Decoder<'_>,
        key: &mut Vec<u8>,
        mut visit: impl FnMut(usize, &[u8], Value<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
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
        let mut keys = FrameKeys::new(self, sections, frame, raw);
        for slot in slots {
            key.clear();
            if prints {
                let (_, shared, rest) = keys.next().ok_or_else(|| corrupt("a frame's keys"))?;
                key.extend_from_slice(self.prefix(sections));
                key.extend_from_slice(keys.base.get(..shared).ok_or_else(|| corrupt("a frame's keys"))?);
                key.extend_from_slice(rest);
            } else {
                self.packed_key(sections, slot, key);
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
        Ok(())
    }

    /// First key of `frame` in an ordered leaf, whole.
    pub(crate) fn first_key(&self, sections: &Sections, frame: usize) -> Vec<u8> {
        if self.has(FINGERPRINTS) {
            return [self.prefix(sections), self.separator(sections, frame)].concat();
        }
        let mut key = Vec::with_capacity(self.header().key_len as usize);
        self.packed_key(sections, self.slots(sections, frame).start, &mut key);
        key
    }
}
