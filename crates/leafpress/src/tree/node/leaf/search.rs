//! Searching keys in a leaf.

use crate::tree::error::TreeError;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::fraction::Fraction;
use crate::tree::node::frame_keys::FrameKeys;
use crate::tree::node::hash_bits::{fingerprint, sub_page};
use crate::tree::node::key_order::key_number;
use crate::tree::node::layout::{FINGERPRINTS, HASHED, KEYED, SINGLE, Sections};
use crate::tree::node::leaf::{Leaf, RecordSlot};

impl<'g> Leaf<'g> {
    /// Returns the frame that contains `slot`.
    #[inline(always)]
    pub(crate) fn frame_of(&self, sections: &Sections, slot: usize) -> usize {
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

    /// Finds `key`, which has this hash and is predicted at relative position `share`. Decodes only in leaves of
    /// fingerprints, and there only a frame whose range holds the key.
    #[inline]
    pub(crate) fn locate(
        &self,
        sections: &Sections,
        key: &[u8],
        hash: u64,
        share: Option<Fraction>,
        decoder: &mut Decoder<'_>,
    ) -> Result<Option<RecordSlot>, TreeError> {
        if self.count() == 0 {
            return Ok(None);
        }
        match self.search_exact(sections, key, share) {
            Some(place) => Ok(place),
            None => self.locate_by_fingerprint(sections, key, hash, decoder),
        }
    }

    /// Finds `key` without decoding; `None` when the leaf's form does not allow it.
    #[inline(always)]
    pub(crate) fn search_exact(
        &self,
        sections: &Sections,
        key: &[u8],
        share: Option<Fraction>,
    ) -> Option<Option<RecordSlot>> {
        if self.has(FINGERPRINTS) {
            return None;
        }
        let header = self.header();
        let fits = key.len() == header.key_len as usize
            && (header.shape.prefix_len == 0 || key.starts_with(self.prefix(sections)));
        if !fits {
            return Some(None);
        }
        let keys = self.keys(sections);
        let slot = match share {
            Some(share) => keys.search_about(key_number(key), share),
            None => keys.search(key_number(key)),
        };
        let slot = slot.ok();
        Some(slot.map(|slot| RecordSlot {
            slot,
            frame: self.frame_of(sections, slot),
        }))
    }

    fn locate_by_fingerprint(
        &self,
        sections: &Sections,
        key: &[u8],
        hash: u64,
        decoder: &mut Decoder<'_>,
    ) -> Result<Option<RecordSlot>, TreeError> {
        let Some(suffix) = key.strip_prefix(self.prefix(sections)) else {
            return Ok(None);
        };
        if self.has(KEYED) {
            return self.locate_keyed(sections, suffix, hash, decoder);
        }
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
                        return Ok(Some(RecordSlot { slot, frame }));
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
            let (raw_at, decoded_len) = (raw.as_ptr(), raw.len());
            let mut keys = FrameKeys::new(self, sections, frame, raw);
            while let Some((at, shared, rest)) = keys.next() {
                if at == slot {
                    let base = keys.base;
                    let same = shared <= base.len()
                        && suffix.len() == shared + rest.len()
                        && suffix.starts_with(&base[..shared])
                        && suffix[shared..] == *rest;
                    if same {
                        if decoded_len == raw_len {
                            decoder.note_whole(self.block(sections, frame), raw_at, raw_len);
                        }
                        return Ok(Some(RecordSlot { slot, frame }));
                    }
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Finds the key with this suffix in a keyed leaf, and decodes the records whose fingerprint and length agree. A
    /// record that is decoded wrongly may be the one sought: that is an error unless another one is.
    #[inline]
    fn locate_keyed(
        &self,
        sections: &Sections,
        suffix: &[u8],
        hash: u64,
        decoder: &mut Decoder<'_>,
    ) -> Result<Option<RecordSlot>, TreeError> {
        let mut doubt = Ok(());
        for slot in memchr::memchr_iter(fingerprint(hash), self.fingerprints(sections)) {
            if self.suffix_len(sections, slot) != suffix.len() {
                continue;
            }
            // The value is decoded as well: most records found are the key's, and are read next.
            let raw_len = self.raw_len(sections, slot);
            match self.decode(sections, slot, raw_len, decoder) {
                Ok(raw) if raw.starts_with(suffix) => {
                    let (raw_at, decoded_len) = (raw.as_ptr(), raw.len());
                    if decoded_len == raw_len {
                        decoder.note_whole(self.block(sections, slot), raw_at, raw_len);
                    }
                    return Ok(Some(RecordSlot { slot, frame: slot }));
                }
                Ok(raw) => {
                    let other = raw.get(..suffix.len()).unwrap_or_default();
                    doubt = doubt.and(self.check_suffix(sections, slot, other));
                }
                Err(error) => doubt = Err(error),
            }
        }
        doubt.map(|()| None)
    }

    /// Returns the slot where `key` is (`Ok`) or would be inserted (`Err`) in a packed leaf, whose form `key` fits.
    pub(crate) fn search_packed(&self, sections: &Sections, key: &[u8]) -> Result<usize, usize> {
        self.keys(sections).search(key_number(key))
    }

    /// Returns the frame whose range holds `key` in an ordered, non-empty leaf: the last whose first key is not above
    /// it, else the first. Decodes only in keyed leaves.
    pub(crate) fn frame_for(
        &self,
        sections: &Sections,
        key: &[u8],
        decoder: &mut Decoder<'_>,
    ) -> Result<usize, TreeError> {
        if self.has(FINGERPRINTS) {
            let prefix = self.prefix(sections);
            let Some(suffix) = key.strip_prefix(prefix) else {
                return Ok(if key < prefix { 0 } else { self.frames() - 1 });
            };
            let mut at = Vec::new();
            let (mut low, mut high) = (0, self.frames());
            while high - low > 1 {
                let middle = low.midpoint(high);
                let is_at_most = if self.has(KEYED) {
                    self.keyed_key(sections, middle, decoder, &mut at)?;
                    at.as_slice() <= key
                } else {
                    self.separator(sections, middle) <= suffix
                };
                if is_at_most {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            return Ok(low);
        }
        let slot = self.slot_for(sections, key);
        Ok(self.frame_of(sections, slot))
    }

    /// Returns the last slot of a packed, non-empty leaf whose key is not above `key`, else the first.
    fn slot_for(&self, sections: &Sections, key: &[u8]) -> usize {
        let header = self.header();
        let prefix = self.prefix(sections);
        let len = header.key_len as usize;
        // Keys of another length are compared by their bytes: find the number whose key is the greatest not above
        // `key`.
        let above_prefix = &key[..key.len().min(prefix.len())];
        if above_prefix != prefix {
            return if key < prefix { 0 } else { self.count() - 1 };
        }
        let number_len = len - prefix.len();
        let rest = &key[prefix.len()..];
        let number = if rest.len() >= number_len {
            key_number(&rest[..number_len])
        } else {
            // A shorter key sorts before every key that extends it.
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
}
