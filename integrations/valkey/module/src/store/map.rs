//! Ordered maps.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use leafpress::tree::Range;
use leafpress::{Record, TreeError};

use super::faults::{self, Step};
use super::generation::{Hold, IDS};
use super::record_key::{FieldRange, ID_BYTES, bounds_of, field_of, record_key};
use super::removal;
use super::{MAX_BYTES, MAX_FIELD_BYTES};

/// A map: what the server's pointer points to. Its records are in its generation's tree.
pub struct Map {
    generation: Hold,
    id: Id,
    fields: u64,
    user_bytes: u64,
}

/// A map's number in six bytes, so that a map is three words and not four: there are many small ones.
#[derive(Clone, Copy)]
struct Id([u16; 3]);

const _: () = assert!(IDS <= 1 << 48 && size_of::<Map>() == 24);

impl Id {
    fn new(id: u64) -> Self {
        Self([(id >> 32) as u16, (id >> 16) as u16, id as u16])
    }

    #[inline]
    fn get(self) -> u64 {
        let Self([high, middle, low]) = self;
        u64::from(high) << 32 | u64::from(middle) << 16 | u64::from(low)
    }
}

/// The effect of a write on a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// The field is new.
    Added,
    /// The field had a value.
    Replaced,
}

impl Map {
    /// Makes an empty map in a place for a new value.
    pub fn new((generation, id): (Hold, u64)) -> Self {
        generation.counts().maps.keys.fetch_add(1, Ordering::Relaxed);
        Self {
            generation,
            id: Id::new(id),
            fields: 0,
            user_bytes: 0,
        }
    }

    /// Returns how many fields it has.
    pub fn len(&self) -> u64 {
        self.fields
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.fields == 0
    }

    /// Bytes of its fields and values.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Returns its generation.
    pub fn generation(&self) -> &Hold {
        &self.generation
    }

    /// Calls `read` with a field's value; `None` if there is no such field.
    #[inline]
    pub fn get_with<R>(&self, field: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, TreeError> {
        if field.len() > MAX_FIELD_BYTES {
            return Ok(None);
        }
        self.generation
            .tree()
            .get_with(&record_key(self.id.get(), field)?, read)
    }

    /// Returns the length of a field's value.
    pub fn len_of(&self, field: &[u8]) -> Result<Option<usize>, TreeError> {
        if field.len() > MAX_FIELD_BYTES {
            return Ok(None);
        }
        self.generation.tree().value_len(&record_key(self.id.get(), field)?)
    }

    /// Returns whether there is such a field.
    pub fn contains(&self, field: &[u8]) -> Result<bool, TreeError> {
        if field.len() > MAX_FIELD_BYTES {
            return Ok(false);
        }
        self.generation.tree().contains_key(&record_key(self.id.get(), field)?)
    }

    /// Sets a field.
    pub fn set(&mut self, field: &[u8], value: &[u8]) -> Result<Write, TreeError> {
        check(field, value)?;
        faults::point(Step::Write)?;
        let old = self.len_of(field)?;
        self.generation
            .tree()
            .insert(&record_key(self.id.get(), field)?, value)?;
        let counts = &self.generation.counts().maps;
        match old {
            // Unchanged values are not written: while a child saves, each page that is written is copied.
            Some(old) if old == value.len() => Ok(Write::Replaced),
            Some(old) => {
                counts.add(0, value.len() as u64);
                counts.subtract(0, old as u64);
                self.user_bytes = self.user_bytes + value.len() as u64 - old as u64;
                Ok(Write::Replaced)
            }
            None => {
                let bytes = (field.len() + value.len()) as u64;
                counts.add(1, bytes);
                self.fields += 1;
                self.user_bytes += bytes;
                Ok(Write::Added)
            }
        }
    }

    /// Adds fields that ascend and are above all that the map has.
    pub fn extend(&mut self, records: &[(&[u8], &[u8])]) -> Result<(), TreeError> {
        for (field, value) in records {
            check(field, value)?;
            if self
                .generation
                .tree()
                .insert(&record_key(self.id.get(), field)?, *value)?
            {
                let bytes = (field.len() + value.len()) as u64;
                self.generation.counts().maps.add(1, bytes);
                self.fields += 1;
                self.user_bytes += bytes;
            }
        }
        Ok(())
    }

    /// Removes a field; returns whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> Result<bool, TreeError> {
        let Some(value_len) = self.len_of(field)? else {
            return Ok(false);
        };
        faults::point(Step::Write)?;
        self.generation.tree().remove(&record_key(self.id.get(), field)?)?;
        self.uncount(1, (field.len() + value_len) as u64);
        Ok(true)
    }

    /// Removes the fields of a range; returns how many there were. It may fail after it has removed some: calls
    /// `on_part` after each part with the field below which none of the range is left, or with `None` if none is.
    pub fn remove_range(
        &mut self,
        range: FieldRange<'_>,
        mut on_part: impl FnMut(Option<&[u8]>),
    ) -> Result<u64, TreeError> {
        let bounds = bounds_of(self.id.get(), range)?;
        let before = self.fields;
        let generation = self.generation.clone();
        generation.tree().remove_range_with(bounds, |part| {
            let user_bytes = part.key_and_value_bytes - part.records * ID_BYTES as u64;
            self.uncount(part.records, user_bytes);
            // A key of a later value is above all fields of this one.
            let number = self.id.get().to_be_bytes();
            on_part(part.up_to.and_then(|key| key.strip_prefix(&number)));
            faults::point(Step::Write)
        })?;
        Ok(before - self.fields)
    }

    fn uncount(&mut self, records: u64, user_bytes: u64) {
        self.generation.counts().maps.subtract(records, user_bytes);
        self.fields -= records;
        self.user_bytes -= user_bytes;
    }

    /// Returns how many fields a range has.
    pub fn count(&self, range: FieldRange<'_>) -> Result<u64, TreeError> {
        self.generation.tree().count(bounds_of(self.id.get(), range)?)
    }

    /// Calls `visit` with all fields and values, in order of the fields.
    pub fn each(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        self.visit((Bound::Unbounded, Bound::Unbounded), usize::MAX, |field, value| {
            visit(field, value);
            true
        })
    }

    /// Calls `visit` with up to `limit` fields and values of a range, until it returns false.
    pub fn visit(
        &self,
        range: FieldRange<'_>,
        limit: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TreeError> {
        let mut records = self.limited(range, limit)?;
        while let Some(goes_on) = records.next_with(|key, value| visit(field_of(key), value)) {
            faults::point(Step::Read)?;
            if !goes_on? {
                break;
            }
        }
        Ok(())
    }

    /// As [`Map::visit`], from the end of the range.
    pub fn visit_back(
        &self,
        range: FieldRange<'_>,
        limit: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), TreeError> {
        let mut records = self.limited(range, limit)?;
        while let Some(goes_on) = records.next_back_with(|key, value| visit(field_of(key), value)) {
            if !goes_on? {
                break;
            }
        }
        Ok(())
    }

    fn limited(&self, range: FieldRange<'_>, limit: usize) -> Result<Range<'_>, TreeError> {
        let bounds = bounds_of(self.id.get(), range)?;
        let limit = limit.min(usize::try_from(self.fields).unwrap_or(usize::MAX));
        Ok(self.generation.tree().range(bounds).limit(limit))
    }

    /// Returns the approximate position of a field in the map, from 0.0 to 1.0.
    pub fn position_of(&self, field: &[u8]) -> Result<f64, TreeError> {
        let bounds = bounds_of(self.id.get(), (Bound::Unbounded, Bound::Unbounded))?;
        self.generation
            .tree()
            .position_of(bounds, record_key(self.id.get(), field)?)
    }

    /// Returns a field near a position for which `is_sought` returns true, if about `limit` fields around the position
    /// have one.
    pub fn find_near(
        &self,
        position: f64,
        limit: usize,
        mut is_sought: impl FnMut(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        let bounds = bounds_of(self.id.get(), (Bound::Unbounded, Bound::Unbounded))?;
        let found = self
            .generation
            .tree()
            .find_near(bounds, position, limit, |key| is_sought(field_of(key)))?;
        Ok(found.map(|key| field_of(&key).to_vec()))
    }

    /// Returns the records of a range of fields, from either end.
    pub fn range(
        &self,
        range: FieldRange<'_>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<Record, TreeError>> + '_, TreeError> {
        let records = self.generation.tree().range(bounds_of(self.id.get(), range)?);
        Ok(records.map(|record| {
            record.map(|(mut field, value)| {
                field.drain(..ID_BYTES.min(field.len()));
                (field, value)
            })
        }))
    }

    /// Returns up to `count` of its records, each drawn independently; `seed` determines which.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<Record>, TreeError> {
        let bounds = bounds_of(self.id.get(), (Bound::Unbounded, Bound::Unbounded))?;
        let mut records = self.generation.tree().sample_range(bounds, count, seed)?;
        for (field, _) in &mut records {
            field.drain(..ID_BYTES.min(field.len()));
        }
        Ok(records)
    }

    /// Copies it to a place for a new value.
    pub fn copy_to(&self, place: (Hold, u64)) -> Result<Self, TreeError> {
        let mut copy = Self::new(place);
        for record in self.range((Bound::Unbounded, Bound::Unbounded))? {
            let (field, value) = record?;
            copy.extend(&[(field.as_slice(), value.as_slice())])?;
        }
        Ok(copy)
    }
}

/// Returns an error if a field or its value is too long.
pub fn check(field: &[u8], value: &[u8]) -> Result<(), TreeError> {
    if field.len() > MAX_FIELD_BYTES {
        return Err(TreeError::KeyTooLong {
            len: field.len() + ID_BYTES,
        });
    }
    if value.len() > MAX_BYTES {
        return Err(TreeError::ValueTooLong { len: value.len() });
    }
    Ok(())
}

impl Drop for Map {
    fn drop(&mut self) {
        let counts = &self.generation.counts().maps;
        counts.keys.fetch_sub(1, Ordering::Relaxed);
        counts.subtract(self.fields, self.user_bytes);
        removal::remove(&self.generation, self.id.get(), self.fields, self.user_bytes);
    }
}
