//! Access to a leaf's sections. `layout` defines where each section is, `hint` what is known of a leaf before it is
//! loaded, `search` finds records, `frame` decodes them, `copy` copies them to another leaf.

#[allow(unsafe_code)]
mod copy;
pub(crate) mod frame;
mod hint;
#[allow(unsafe_code)]
mod marks;
mod search;

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr as StdAtomicPtr, Ordering};

use leafpress_base::reclaim::guard::Guard;

use crate::tree::error::TreeError;
use crate::tree::node::decoder::Decoder;
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::hash_bits::landed_bit;
use crate::tree::node::key_array::KeyArray;
use crate::tree::node::landing::{Landing, NewLanding};
use crate::tree::node::large::{DeadLarge, Large};
use crate::tree::node::layout::{
    FINGERPRINTS, HEADER_BYTES, KEYED, LeafHeader, SINGLE, Sections, Temperature, WRITTEN,
};
use crate::tree::node::packed::Packed;
use crate::tree::node::unpublished::unpublished;
use leafpress_base::mem::prefetch::{LINE_BYTES, prefetch};
use leafpress_base::mem::room::{TryGrow, joined};
use leafpress_base::reclaim::load;
use leafpress_codec::Dictionary;

/// A leaf, live for `'g`: as long as the guard under which it was found, or until its maker publishes or frees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf<'g>(NonNull<u8>, PhantomData<&'g NonNull<u8>>);

unpublished!(
    /// A leaf that is not published yet.
    NewLeaf,
    Leaf,
    leaf
);

/// The position of a record.
#[derive(Clone, Copy)]
pub(crate) struct RecordSlot {
    pub slot: usize,
    pub frame: usize,
}

impl<'g> DescentStep<'g> {
    /// Returns the leaf that the step leads to.
    #[inline(always)]
    pub(crate) fn leaf(&self) -> Leaf<'g> {
        assert!(self.is_leaf(), "the step leads to a leaf");
        // SAFETY: `DescentStep::to_leaf` requires that the address of a leaf that is accessed is a live leaf's.
        unsafe { Leaf::from_ptr(self.address()) }
    }
}

impl<'g> Leaf<'g> {
    /// Borrows a leaf.
    ///
    /// # Safety
    /// `node` is a leaf that is live for `'g`.
    pub(crate) unsafe fn from_node(node: NonNull<u8>) -> Self {
        Self(node, PhantomData)
    }

    /// Borrows a leaf by its address.
    ///
    /// # Safety
    /// `pointer` is the address of a leaf that is live for `'g`.
    pub(crate) unsafe fn from_ptr(pointer: *mut u8) -> Self {
        // SAFETY: a live node's pointer is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) }, PhantomData)
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    pub(crate) fn node(self) -> NonNull<u8> {
        self.0
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &'g LeafHeader {
        // SAFETY: a live leaf begins with its header.
        unsafe { self.0.cast::<LeafHeader>().as_ref() }
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

    #[inline(always)]
    pub(crate) fn temperature(&self) -> Temperature {
        Temperature::of(self.header().shape.flags)
    }

    /// Counts a sampled read.
    #[inline(always)]
    pub(crate) fn count_read(&self) {
        // Without halving it would take months to reach the flag bit.
        let reads = &self.header().reads;
        reads.store(reads.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the number of sampled reads, aged by halving.
    pub(crate) fn reads(&self) -> u32 {
        self.header().reads.load(Ordering::Relaxed) & !WRITTEN
    }

    /// Returns whether the leaf was compacted for writes since the reads were last halved.
    pub(crate) fn is_written(&self) -> bool {
        self.header().reads.load(Ordering::Relaxed) & WRITTEN != 0
    }

    /// Halves the read counter, to age earlier reads.
    pub(crate) fn halve_reads(&self) {
        self.header().reads.store(self.reads() / 2, Ordering::Relaxed);
    }

    pub(crate) fn dictionary(&self) -> Option<&Dictionary> {
        // SAFETY: a tree keeps a dictionary as long as a leaf points to it.
        unsafe { self.header().dictionary.as_ref() }
    }

    /// Returns the current landing buffer, protected by the guard.
    #[inline(always)]
    pub(crate) fn landing<'a>(&self, guard: &'a Guard<'_>) -> Option<Landing<'a>> {
        // SAFETY: a buffer is retired after the leaf no longer points to it, so the guard protects it.
        unsafe { Landing::from_ptr(load(&self.header().landing, guard)) }
    }

    /// Returns the landing buffer, if an entry of a key with this hash may be in it. If it returns `None`, the caller
    /// sees the leaf as before any write of that key that is not yet published.
    #[inline(always)]
    pub(crate) fn landing_for<'a>(&self, hash: u64, guard: &'a Guard<'_>) -> Option<Landing<'a>> {
        if self.header().landed.load(Ordering::Acquire) & landed_bit(hash) == 0 {
            return None;
        }
        self.landing(guard)
    }

    /// Replaces the landing buffer; the caller retires the old one, and holds the lock.
    pub(crate) fn store_landing(&self, new: NewLanding) {
        self.header().landing.store(new.landing().as_ptr(), Ordering::Release);
        new.publish();
    }

    /// Sets the filter bit for a key with this hash, which is about to be appended to the landing buffer. The caller
    /// holds the lock.
    #[inline(always)]
    pub(crate) fn will_land(&self, hash: u64) {
        let landed = &self.header().landed;
        landed.store(landed.load(Ordering::Relaxed) | landed_bit(hash), Ordering::Release);
    }

    /// Returns the number of filter bits set: at most the number of keys in the landing buffer.
    pub(crate) fn landed_bits(&self) -> usize {
        self.header().landed.load(Ordering::Relaxed).count_ones() as usize
    }

    /// Returns the landing buffer, for the holder of the lock.
    pub(crate) fn landing_locked(&self) -> Option<Landing<'g>> {
        // SAFETY: a buffer that the leaf points to while the leaf is live is not freed before the leaf.
        unsafe { Landing::from_ptr(self.header().landing.load(Ordering::Acquire)) }
    }

    #[inline(always)]
    fn keys(&self, sections: &Sections) -> KeyArray {
        let header = self.header();
        // SAFETY: the section was written by `key_array::write` with these parameters, and is followed by at least
        // SLOP_BYTES.
        unsafe { KeyArray::new(self.at(sections.keys), self.count(), header.shape.keys, header.key_base) }
    }

    #[inline(always)]
    pub(crate) fn lens(&self, sections: &Sections) -> Packed {
        let header = self.header();
        // SAFETY: the section was written by `packed::pack` with these parameters, and is followed by at least
        // SLOP_BYTES.
        unsafe {
            Packed::new(
                self.at(sections.lens),
                self.count(),
                header.shape.len_bits,
                u64::from(header.len_base),
            )
        }
    }

    /// Returns the lengths of the keys behind the prefix in a keyed leaf.
    #[inline(always)]
    fn suffix_lens(&self, sections: &Sections) -> Packed {
        let header = self.header();
        // SAFETY: the section was written by `packed::pack` with these parameters, and is followed by at least
        // SLOP_BYTES.
        unsafe {
            Packed::new(
                self.at(sections.suffix_lens),
                self.count(),
                header.shape.keys.key_bits,
                u64::from(header.key_len),
            )
        }
    }

    /// Returns how many bytes of the key the block of `slot` holds before the value: all behind the prefix in a keyed
    /// leaf, otherwise none.
    #[inline(always)]
    pub(crate) fn suffix_len(&self, sections: &Sections, slot: usize) -> usize {
        if self.has(KEYED) {
            self.suffix_lens(sections).get(slot) as usize
        } else {
            0
        }
    }

    /// Returns the section of the lengths of keys in a keyed leaf.
    pub(crate) fn suffix_len_bytes(&self, sections: &Sections) -> &[u8] {
        self.bytes_at(sections.suffix_lens, sections.prefix - sections.suffix_lens)
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

    /// Returns the slots of `frame`.
    #[inline(always)]
    pub(crate) fn slots(&self, sections: &Sections, frame: usize) -> Range<usize> {
        if self.has(SINGLE) {
            frame..frame + 1
        } else {
            self.u16_at(sections.firsts, frame)..self.u16_at(sections.firsts, frame + 1)
        }
    }

    /// Returns the first key of `frame` without the prefix, in an ordered leaf of fingerprints that is not keyed.
    pub(crate) fn separator(&self, sections: &Sections, frame: usize) -> &[u8] {
        let start = if frame == 0 {
            0
        } else {
            self.u16_at(sections.ends, frame - 1)
        };
        let end = self.u16_at(sections.ends, frame);
        self.bytes_at(sections.separators + start, end - start)
    }

    /// Returns the concatenated separators of frames `from..to`.
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

    /// Returns the section of fingerprints, or of packed keys padded to an even length.
    pub(crate) fn key_bytes(&self, sections: &Sections) -> &[u8] {
        let end = if self.has(FINGERPRINTS) {
            sections.lens
        } else {
            sections.offsets
        };
        self.bytes_at(sections.keys, end - sections.keys)
    }

    /// Returns where the blocks of frames `from..to` start in the data.
    pub(crate) fn block_starts(&self, sections: &Sections, from: usize, to: usize) -> &[u16] {
        // SAFETY: the section starts at an even offset and has one more element than there are frames.
        unsafe { std::slice::from_raw_parts(self.at(sections.offsets).cast::<u16>().add(from), to - from) }
    }

    /// Returns the concatenated blocks of frames `from..to`.
    pub(crate) fn blocks(&self, sections: &Sections, from: usize, to: usize) -> &[u8] {
        let start = self.u16_at(sections.offsets, from);
        let end = self.u16_at(sections.offsets, to);
        self.bytes_at(self.header().data_at as usize + start, end - start)
    }

    /// Returns the number of the key in `slot` of a packed leaf.
    pub(crate) fn key_number(&self, sections: &Sections, slot: usize) -> u64 {
        self.keys(sections).get(slot)
    }

    /// Returns the raw length of `frame`.
    #[inline(always)]
    pub(crate) fn raw_len(&self, sections: &Sections, frame: usize) -> usize {
        if self.has(FINGERPRINTS) && !self.has(SINGLE) {
            return self.u16_at(sections.raws, frame);
        }
        let slots = self.slots(sections, frame);
        // The frames of keyed leaves are one record each.
        self.suffix_len(sections, slots.start) + self.lens(sections).sum(slots.start, slots.end) as usize
    }

    /// Returns the block of `frame`.
    #[inline(always)]
    pub(crate) fn block(&self, sections: &Sections, frame: usize) -> &[u8] {
        let start = self.u16_at(sections.offsets, frame);
        let end = self.u16_at(sections.offsets, frame + 1);
        self.bytes_at(self.header().data_at as usize + start, end - start)
    }

    /// Prefetches the block of `frame`.
    #[inline(always)]
    pub(crate) fn prefetch_block(&self, sections: &Sections, frame: usize) {
        let start = self.at(self.header().data_at as usize + self.u16_at(sections.offsets, frame));
        prefetch(start);
        prefetch(start.wrapping_add(LINE_BYTES));
    }

    /// Returns the large value in `slot`, if it has one.
    pub(crate) fn large(&self, sections: &Sections, slot: usize) -> Option<Large<'g>> {
        let index = self.large_index(sections, slot)?;
        self.large_at(index)
    }

    /// Returns the index of the address of `slot` among the large values.
    fn large_index(&self, sections: &Sections, slot: usize) -> Option<usize> {
        let index = self.larges_before(sections, slot);
        let count = self.header().shape.large as usize;
        (index < count && self.u16_at(sections.large_slots, index) == slot).then_some(index)
    }

    /// Returns how many large values are in slots before `slot`.
    fn larges_before(&self, sections: &Sections, slot: usize) -> usize {
        let shape = &self.header().shape;
        let (mut from, mut to) = (0, shape.large as usize);
        if shape.large == shape.count {
            return slot.min(to);
        }
        // A binary search: slots ascend.
        while from < to {
            let middle = from.midpoint(to);
            if self.u16_at(sections.large_slots, middle) < slot {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// Returns the large values in these slots, each with its slot, in slot order.
    pub(crate) fn larges_within(
        &self,
        sections: &Sections,
        slots: Range<usize>,
    ) -> impl Iterator<Item = (usize, Large<'g>)> {
        let indices = self.larges_before(sections, slots.start)..self.larges_before(sections, slots.end);
        let large_slots = sections.large_slots;
        indices.filter_map(move |index| Some((self.u16_at(large_slots, index), self.large_at(index)?)))
    }

    /// Replaces the large value in `slot` and returns the old one; `None` if there is none. The caller holds the lock,
    /// and retires the result.
    pub(crate) fn exchange_large(&self, sections: &Sections, slot: usize, large: Large<'_>) -> Option<DeadLarge> {
        let index = self.large_index(sections, slot)?;
        let old = self.large_at(index)?.dead();
        self.address(index).store(large.as_ptr(), Ordering::Release);
        Some(old)
    }

    /// Returns the leaf's large values with their slots, in slot order.
    pub(crate) fn larges(&self, sections: &Sections) -> impl Iterator<Item = (usize, Large<'g>)> {
        self.larges_within(sections, 0..self.header().shape.count as usize)
    }

    /// Returns all large values, without their slots.
    pub(crate) fn larges_owned(self) -> impl Iterator<Item = Large<'g>> {
        (0..self.header().shape.large as usize).filter_map(move |index| self.large_at(index))
    }

    fn large_at(&self, index: usize) -> Option<Large<'g>> {
        // SAFETY: the leaf owns the values that it points to, and a replaced one is retired: it is live as long as the
        // leaf.
        unsafe { Large::from_ptr(self.address(index).load(Ordering::Acquire)) }
    }

    /// Returns the address of a large value. Readers may load it while the holder of the lock stores another.
    fn address(&self, index: usize) -> &StdAtomicPtr<u8> {
        debug_assert!(index < self.header().shape.large as usize);
        // SAFETY: the addresses follow the header, whose length is a multiple of eight, and once the leaf is published
        // they are accessed only through this function.
        unsafe { StdAtomicPtr::from_ptr(self.at(HEADER_BYTES).cast::<*mut u8>().add(index).cast_mut()) }
    }

    /// Returns the length of the value in `slot`.
    pub(crate) fn value_len(&self, sections: &Sections, slot: usize) -> usize {
        match self.header().shape.large {
            0 => self.lens(sections).get(slot) as usize,
            _ => match self.large(sections, slot) {
                Some(large) => large.raw_len(),
                None => self.lens(sections).get(slot) as usize,
            },
        }
    }

    /// Appends the key of `slot` in a packed leaf to `out`.
    pub(crate) fn packed_key(&self, sections: &Sections, slot: usize, out: &mut Vec<u8>) -> Result<(), TreeError> {
        let header = self.header();
        out.try_grow(header.key_len as usize)?;
        out.extend_from_slice(self.prefix(sections));
        let number = self.key_number(sections, slot).to_be_bytes();
        out.extend_from_slice(&number[8 - (header.key_len - header.shape.prefix_len) as usize..]);
        Ok(())
    }

    /// Returns the first key of `frame` in an ordered leaf, including the prefix. Decodes only in keyed leaves.
    pub(crate) fn first_key(
        &self,
        sections: &Sections,
        frame: usize,
        decoder: &mut Decoder<'_>,
    ) -> Result<Vec<u8>, TreeError> {
        if self.has(KEYED) {
            let mut key = Vec::new();
            self.keyed_key(sections, frame, decoder, &mut key)?;
            return Ok(key);
        }
        if self.has(FINGERPRINTS) {
            return Ok(joined(self.prefix(sections), self.separator(sections, frame))?);
        }
        let mut key = Vec::new();
        self.packed_key(sections, self.slots(sections, frame).start, &mut key)?;
        Ok(key)
    }
}
