//! Keys of records in a generation's tree.

use std::ops::Bound;

use arrayvec::ArrayVec;
use leafpress::TreeError;
use leafpress::tree::MAX_KEY_BYTES;

use super::MAX_FIELD_BYTES;

/// Length of a value's number before its fields.
pub const ID_BYTES: usize = 8;

/// A record's key: the value's number, and its field.
pub type RecordKey = ArrayVec<u8, MAX_KEY_BYTES>;

/// Returns the key of a field; of a string, for which it is empty.
#[inline]
pub fn record_key(id: u64, field: &[u8]) -> Result<RecordKey, TreeError> {
    let mut key = RecordKey::new();
    let fits = key
        .try_extend_from_slice(&id.to_be_bytes())
        .and_then(|()| key.try_extend_from_slice(field));
    match fits {
        Ok(()) => Ok(key),
        Err(_) => Err(TreeError::KeyTooLong {
            len: ID_BYTES.saturating_add(field.len()),
        }),
    }
}

/// Returns the field in a record's key.
#[inline]
pub fn field_of(key: &[u8]) -> &[u8] {
    key.get(ID_BYTES..).unwrap_or_default()
}

/// A range of fields.
pub type FieldRange<'f> = (Bound<&'f [u8]>, Bound<&'f [u8]>);

/// Returns the range of all records of a value, or of a range of fields.
///
/// A field that is longer than the maximum is equivalent to its prefix: no field is between the two.
pub fn bounds_of(id: u64, (from, to): FieldRange<'_>) -> Result<(Bound<RecordKey>, Bound<RecordKey>), TreeError> {
    let from = match from {
        Bound::Unbounded => Bound::Included(record_key(id, b"")?),
        Bound::Included(field) | Bound::Excluded(field) if field.len() > MAX_FIELD_BYTES => {
            Bound::Excluded(record_key(id, &field[..MAX_FIELD_BYTES])?)
        }
        Bound::Included(field) => Bound::Included(record_key(id, field)?),
        Bound::Excluded(field) => Bound::Excluded(record_key(id, field)?),
    };
    let to = match to {
        Bound::Unbounded => Bound::Excluded(record_key(id + 1, b"")?),
        Bound::Included(field) | Bound::Excluded(field) if field.len() > MAX_FIELD_BYTES => {
            Bound::Included(record_key(id, &field[..MAX_FIELD_BYTES])?)
        }
        Bound::Included(field) => Bound::Included(record_key(id, field)?),
        Bound::Excluded(field) => Bound::Excluded(record_key(id, field)?),
    };
    Ok((from, to))
}
