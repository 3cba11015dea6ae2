//! Ranges of keys as arguments.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::tree::error::TreeError;
use leafpress_base::mem::room::copied;

/// The bounds of a range, with owned keys.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range of keys for [`Tree::range`](crate::Tree::range): any of the standard library's ranges over types that are
/// byte strings, or a pair of [`Bound`]s.
///
/// It is a separate trait because [`RangeBounds`](std::ops::RangeBounds) does not determine the key types of `"a".."b"`
/// and of `..`.
pub trait KeyRange: sealed::Sealed {
    /// Returns the bounds of the range.
    #[doc(hidden)]
    fn into_bounds(self) -> Result<Bounds, TreeError>;
}

mod sealed {
    pub trait Sealed {}
}

fn owned(key: impl AsRef<[u8]>) -> Result<Vec<u8>, TreeError> {
    Ok(copied(key.as_ref())?)
}

fn owned_bound(bound: Bound<impl AsRef<[u8]>>) -> Result<Bound<Vec<u8>>, TreeError> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(owned(key)?),
        Bound::Excluded(key) => Bound::Excluded(owned(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

macro_rules! key_ranges {
    ($($range:ident, $self:ident => $start:expr, $end:expr;)*) => {$(
        impl<K: AsRef<[u8]>> sealed::Sealed for $range<K> {}
        impl<K: AsRef<[u8]>> KeyRange for $range<K> {
            fn into_bounds($self) -> Result<Bounds, TreeError> {
                Ok(($start, $end))
            }
        }
    )*};
}

key_ranges! {
    Range, self => Bound::Included(owned(self.start)?), Bound::Excluded(owned(self.end)?);
    RangeFrom, self => Bound::Included(owned(self.start)?), Bound::Unbounded;
    RangeInclusive, self => Bound::Included(owned(self.start())?), Bound::Included(owned(self.end())?);
    RangeTo, self => Bound::Unbounded, Bound::Excluded(owned(self.end)?);
    RangeToInclusive, self => Bound::Unbounded, Bound::Included(owned(self.end)?);
}

impl sealed::Sealed for RangeFull {}
impl KeyRange for RangeFull {
    fn into_bounds(self) -> Result<Bounds, TreeError> {
        Ok((Bound::Unbounded, Bound::Unbounded))
    }
}

impl<K: AsRef<[u8]>> sealed::Sealed for (Bound<K>, Bound<K>) {}
impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn into_bounds(self) -> Result<Bounds, TreeError> {
        Ok((owned_bound(self.0)?, owned_bound(self.1)?))
    }
}

/// Returns the bounds of all keys that begin with `prefix`.
pub(crate) fn prefixed(prefix: &[u8]) -> Result<Bounds, TreeError> {
    // The upper bound is the prefix without trailing 255s, with its last byte incremented.
    let mut above = copied(prefix)?;
    while above.last() == Some(&u8::MAX) {
        above.pop();
    }
    let end = match above.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(above)
        }
        None => Bound::Unbounded,
    };
    Ok((Bound::Included(copied(prefix)?), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next() {
        for (prefix, end) in [
            (&b""[..], Bound::Unbounded),
            (b"ab", Bound::Excluded(b"ac".to_vec())),
            (b"a\xff", Bound::Excluded(b"b".to_vec())),
            (b"\xff\xff", Bound::Unbounded),
        ] {
            assert_eq!(prefixed(prefix).unwrap(), (Bound::Included(prefix.to_vec()), end));
        }
    }
}
