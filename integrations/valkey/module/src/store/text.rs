//! Strings: no more than a pointer in addition to the record, or to the records of a long string.

use std::num::NonZeroU64;
use std::ops::{Bound, Range};
use std::sync::atomic::Ordering;

use leafpress::TreeError;

use super::chunks::{CHUNK, Chunks};
use super::faults::{self, Step};
use super::generation::{Generation, Hold};
use super::record_key::{bounds_of, record_key};
use super::{MAX_BYTES, removal};

/// The layout of the bits: a tag that a pointer to a map never has, the generation, the length, the number.
const TAG: u64 = 1;
const SLOT_SHIFT: u32 = 1;
const LEN_SHIFT: u32 = 12;
const ID_SHIFT: u32 = 28;
/// The length of strings in chunks; their first record has the exact one.
const LONG: u64 = (1 << 16) - 1;
const _: () = assert!((CHUNK as u64) < LONG);

/// A string: its generation's slot, number and length, packed.
pub struct Text(NonZeroU64);

impl Text {
    /// Inserts a string in a place for a new value.
    pub fn new((generation, id): (Hold, u64), value: &[u8]) -> Result<Self, TreeError> {
        check(value.len())?;
        insert(&generation, id, value)?;
        let counts = &generation.counts().texts;
        counts.keys.fetch_add(1, Ordering::Relaxed);
        counts.add(1, value.len() as u64);
        Ok(Self(packed(generation.into_slot(), id, value.len())))
    }

    /// Returns whether `bits` are a string's, and not those of a pointer.
    pub fn is_one(bits: u64) -> bool {
        bits & TAG != 0
    }

    /// # Safety
    /// `bits` are those of [`Text::into_bits`], which gives the string's hold on its generation back at most once.
    pub unsafe fn from_bits(bits: NonZeroU64) -> Self {
        Self(bits)
    }

    /// Returns the string in the server's form.
    pub fn into_bits(self) -> NonZeroU64 {
        std::mem::ManuallyDrop::new(self).0
    }

    /// Returns the string in the server's form.
    pub fn bits(&self) -> NonZeroU64 {
        self.0
    }

    fn id(&self) -> u64 {
        self.0.get() >> ID_SHIFT
    }

    fn slot(&self) -> u16 {
        ((self.0.get() >> SLOT_SHIFT) & 0x7ff) as u16
    }

    /// Returns its generation.
    #[inline]
    pub fn generation(&self) -> std::mem::ManuallyDrop<Hold> {
        // SAFETY: the string has a hold, which this borrows.
        std::mem::ManuallyDrop::new(unsafe { Hold::from_slot(self.slot()) })
    }

    /// Calls `read` with its bytes; `None` if its record is missing, which is a bug.
    #[inline]
    pub fn get_with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, TreeError> {
        faults::point(Step::Read)?;
        match self.is_long() {
            true => self.long_with(0..self.length()?, read),
            false => self.short_with(read),
        }
    }

    /// Calls `read` with a part of its bytes: of a long string, other parts are not read. The range is below its
    /// length.
    pub fn part_with<R>(&self, range: Range<usize>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, TreeError> {
        match self.is_long() {
            true => self.long_with(range, read),
            false => self.short_with(|value| read(value.get(range).unwrap_or_default())),
        }
    }

    #[inline]
    fn short_with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, TreeError> {
        self.generation().tree().get_with(&record_key(self.id(), b"")?, read)
    }

    #[inline(never)]
    fn long_with<R>(&self, range: Range<usize>, read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, TreeError> {
        let bytes = Chunks::of(self.generation().tree(), self.id()).read(range)?;
        Ok(bytes.as_deref().map(read))
    }

    /// Returns its bytes, copied.
    pub fn to_vec(&self) -> Result<Vec<u8>, TreeError> {
        Ok(self.get_with(<[u8]>::to_vec)?.unwrap_or_default())
    }

    /// Returns whether it is stored in chunks.
    #[inline]
    pub fn is_long(&self) -> bool {
        (self.0.get() >> LEN_SHIFT) & LONG == LONG
    }

    /// Returns its length.
    pub fn length(&self) -> Result<usize, TreeError> {
        match (self.0.get() >> LEN_SHIFT) & LONG {
            LONG => Chunks::of(self.generation().tree(), self.id()).length(),
            len => Ok(len as usize),
        }
    }

    /// Replaces its bytes, if neither it nor they are long. Otherwise returns false: a new string is made then, so that
    /// a failure leaves the old one unchanged.
    pub fn set(&mut self, value: &[u8]) -> Result<bool, TreeError> {
        if self.is_long() || value.len() > CHUNK {
            return Ok(false);
        }
        let old = self.length()?;
        let generation = self.generation();
        generation.tree().insert(&record_key(self.id(), b"")?, value)?;
        let counts = &generation.counts().texts;
        counts.add(0, value.len() as u64);
        counts.subtract(0, old as u64);
        self.0 = packed(self.slot(), self.id(), value.len());
        Ok(true)
    }

    /// Writes bytes from `at` on, of a long string only its chunks there; zeros fill a part between its end and `at`.
    /// Returns false if it is not long. After an error, its part in the first `done` of the bytes is written.
    pub fn write_long(&self, at: usize, bytes: &[u8], done: &mut usize) -> Result<bool, TreeError> {
        if !self.is_long() {
            return Ok(false);
        }
        check(at.saturating_add(bytes.len()))?;
        let len = self.length()?;
        let generation = self.generation();
        Chunks::of(generation.tree(), self.id()).write(len, at, bytes, done)?;
        generation
            .counts()
            .texts
            .add(0, (at + bytes.len()).saturating_sub(len) as u64);
        Ok(true)
    }

    /// Copies it to a place for a new value.
    pub fn copy_to(&self, place: (Hold, u64)) -> Result<Self, TreeError> {
        Self::new(place, &self.to_vec()?)
    }
}

/// Inserts the records of a new string, or none of them.
fn insert(generation: &Generation, id: u64, value: &[u8]) -> Result<(), TreeError> {
    let tree = generation.tree();
    if value.len() <= CHUNK {
        return tree.insert(&record_key(id, b"")?, value).map(|_| ());
    }
    Chunks::of(tree, id).write(0, 0, value, &mut 0).inspect_err(|_| {
        // What cannot be removed either is dropped with the generation.
        if let Ok(bounds) = bounds_of(id, (Bound::Unbounded, Bound::Unbounded)) {
            let _ = tree.remove_range(bounds, usize::MAX);
        }
    })
}

fn packed(slot: u16, id: u64, len: usize) -> NonZeroU64 {
    let len = if len > CHUNK { LONG } else { len as u64 };
    let rest = u64::from(slot) << SLOT_SHIFT | len << LEN_SHIFT | id << ID_SHIFT;
    NonZeroU64::new(rest | TAG).unwrap_or(NonZeroU64::MIN)
}

fn check(len: usize) -> Result<(), TreeError> {
    match len > MAX_BYTES {
        true => Err(TreeError::ValueTooLong { len }),
        false => Ok(()),
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: the string's own hold, given back here only.
        let generation = unsafe { Hold::from_slot(self.slot()) };
        let counts = &generation.counts().texts;
        counts.keys.fetch_sub(1, Ordering::Relaxed);
        // A closed generation is not read, and not counted any more.
        let len = if generation.is_closed() {
            0
        } else {
            self.length().unwrap_or_default()
        };
        counts.subtract(1, len as u64);
        removal::remove(&generation, self.id(), 1, len as u64);
    }
}
