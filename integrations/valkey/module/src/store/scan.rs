//! Scans in steps, without state between the steps.
//!
//! A scan visits a map's fields in their order. What a step leaves for the next one is all fields from a boundary on,
//! and the cursor describes the boundary in 63 bits. A field is up to 1,016 bytes long, and the first of these may be
//! equal in a million fields, so the bits cannot hold the boundary itself. They hold what finds it in the map:
//!
//! - The boundary is the shortest prefix of the step's next field that is greater than the field before it.
//! - The cursor consists of the boundary's length, its hash, and its position in the map. A field near the position
//!   with a prefix of this length and hash has the boundary as its prefix.
//!
//! Any field with the boundary as its prefix will do: a step may be longer than requested, and ends where the
//! boundary is short, so that many fields have it. Writes in the meantime change the position, but not by much, and
//! fields of whole neighbourhoods are rarely removed at once. If no such field is found, the scan begins again: then
//! fields are returned twice, and none is left out. So a cursor needs no state in the server, is valid after a restart
//! and on a replica, and of another map it says nothing but a hash.
//!
//! A wrong field has the right hash with a probability of 2^-37. If the cursor's map is not written, its position leads
//! to the leaf with the boundary.

use std::ops::Bound;

use leafpress::{Record, TreeError};
use rapidhash::v3::rapidhash_v3;

use super::map::Map;

/// The bits of a cursor, from the highest: a zero, since some clients read cursors as signed numbers, the boundary's
/// length, position and hash.
const POSITION_BITS: u32 = 16;
const HASH_BITS: u32 = 37;
const LEN_SHIFT: u32 = POSITION_BITS + HASH_BITS;
const LENGTHS: u64 = 1 << 10;
const _: () = assert!(super::MAX_FIELD_BYTES < LENGTHS as usize && LEN_SHIFT + 10 == 63);

/// A boundary is searched among this part of the map's fields on either side of its position; the part is bounded by
/// these numbers of fields.
const SEARCHED_PART: u64 = 16;
const MIN_SEARCHED: u64 = 16 << 10;
const MAX_SEARCHED: u64 = 32 << 10;
/// Approximate maximum of the bytes of fields and values that a step reads, whatever its count: a reply of a scan is in
/// memory at once.
const MAX_STEP_BYTES: usize = 16 << 20;

/// What a step has found.
#[derive(Debug)]
pub struct Step {
    /// The cursor of the next step; 0 after the last one.
    pub next: u64,
    /// Fields that are wanted, and their values.
    pub records: Vec<Record>,
}

/// A cursor other than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    len: usize,
    position: u64,
    hash: u64,
}

/// Returns the hash of a boundary. It is the same in all servers and versions.
fn hash(boundary: &[u8]) -> u64 {
    rapidhash_v3(boundary) >> (u64::BITS - HASH_BITS)
}

impl Cursor {
    fn new(boundary: &[u8], position: f64) -> Self {
        let positions = 1_u64 << POSITION_BITS;
        Self {
            len: boundary.len(),
            position: ((position * positions as f64).round() as u64).min(positions - 1),
            hash: hash(boundary),
        }
    }

    fn from_number(number: u64) -> Option<Self> {
        let len = number >> LEN_SHIFT;
        (1..LENGTHS).contains(&len).then_some(Self {
            len: len as usize,
            position: number >> HASH_BITS & ((1 << POSITION_BITS) - 1),
            hash: number & ((1 << HASH_BITS) - 1),
        })
    }

    fn number(self) -> u64 {
        (self.len as u64) << LEN_SHIFT | self.position << HASH_BITS | self.hash
    }

    /// Returns the boundary, if it is found.
    fn boundary(self, map: &Map) -> Result<Option<Vec<u8>>, TreeError> {
        let position = self.position as f64 / (1_u64 << POSITION_BITS) as f64;
        let searched = (map.len() / SEARCHED_PART).clamp(MIN_SEARCHED, MAX_SEARCHED) * 2;
        let found = map.find_near(position, searched as usize, |field| {
            field.get(..self.len).is_some_and(|prefix| hash(prefix) == self.hash)
        })?;
        Ok(found.map(|mut field| {
            field.truncate(self.len);
            field
        }))
    }
}

/// The end of a step.
struct End {
    /// The first field of the next step.
    field: Vec<u8>,
    boundary_len: usize,
    /// Number of records before it that are wanted.
    found: usize,
}

/// Does a step of a scan of `count` fields, or up to half as many more. Returns those that are wanted.
pub fn step(map: &Map, cursor: u64, count: usize, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Step, TreeError> {
    let from = match Cursor::from_number(cursor) {
        Some(cursor) => cursor.boundary(map)?.unwrap_or_default(),
        None => Vec::new(),
    };
    // Records are read in batches, so that the bytes are bounded by the number too, where their lengths are average.
    let average = map.user_bytes() / map.len().max(1) + 1;
    let most = map.len().min(MAX_STEP_BYTES as u64 / average + 1).max(1);
    let count = count.clamp(1, usize::try_from(most).unwrap_or(usize::MAX));
    let limit = count + count / 2 + 1;
    let mut records: Vec<Record> = Vec::new();
    let mut end: Option<End> = None;
    let (mut visited, mut bytes) = (0, 0);
    let mut last: Vec<u8> = Vec::new();
    let mut is_all = true;
    map.visit((Bound::Included(&from), Bound::Unbounded), limit, |field, value| {
        let is_long = bytes >= MAX_STEP_BYTES;
        if visited >= count || is_long {
            let equal = field.iter().zip(&last).take_while(|(a, b)| a == b).count();
            if end.as_ref().is_none_or(|end| equal + 1 < end.boundary_len) {
                end = Some(End {
                    field: field.to_vec(),
                    boundary_len: equal + 1,
                    found: records.len(),
                });
            }
            if is_long || visited + 1 == limit {
                is_all = false;
                return false;
            }
        }
        if is_wanted(field) {
            records.push((field.to_vec(), value.to_vec()));
        }
        last.clear();
        last.extend_from_slice(field);
        visited += 1;
        bytes += field.len() + value.len();
        true
    })?;
    let next = match end {
        Some(end) if !is_all => {
            records.truncate(end.found);
            let boundary = end.field.get(..end.boundary_len).unwrap_or(&end.field);
            Cursor::new(boundary, map.position_of(&end.field)?).number()
        }
        _ => 0,
    };
    Ok(Step { next, records })
}

#[cfg(test)]
mod tests;
