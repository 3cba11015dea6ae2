//! The header of a record's value: a byte of flags, and the expiry if the record expires.
//!
//! ```text
//! flags u8   expiry u48 (if bit 0 of the flags is set)   idle u48 (if bit 3 is set)   period u48 (if bit 5 is set)
//! tags (if bit 4 is set)   value
//!
//! tags: stamp u48   count u8   each: identity u48
//! ```
//!
//! Integers are little-endian. `idle` is the deadline at which the record expires unless it is read. Reads extend it
//! occasionally, by the record's own time to idle, the `period` in milliseconds, or by the cache's if it has none. For
//! the stamp and the identities see `tags`.
//!
//! A *clean* record is on disk as well. A *tombstone* marks a removed key, whatever older record may be on disk. It is
//! empty, which no record is, so that the tree can count tombstones by the lengths of its values; readers treat it as
//! an expired record.

use std::time::Duration;

use super::expiry::Expiry;
use super::record_tags::{ID_BYTES, MAX_TAGS, Tags};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;
use leafpress_base::mem::transient::Transient;

const EXPIRES: u8 = 1;
const CLEAN: u8 = 2;
const IDLES: u8 = 8;
const TAGGED: u8 = 16;
/// Only with [`IDLES`].
const HAS_PERIOD: u8 = 32;
/// The maximum length of a value, in bytes. A value that exceeds an eighth of the memory budget is accepted and not
/// kept.
pub const MAX_VALUE_BYTES: usize = crate::tree::MAX_VALUE_BYTES - MAX_HEADER_BYTES;
/// Maximum length of the header.
const MAX_HEADER_BYTES: usize = 1 + 3 * TIME_BYTES + MAX_TAGS_BYTES;
const MAX_TAGS_BYTES: usize = ID_BYTES + 1 + MAX_TAGS * ID_BYTES;
const TIME_BYTES: usize = Expiry::BYTES;
/// The complete encoding of a tombstone.
pub(super) const TOMBSTONE: &[u8] = &[];

/// What a record has besides its value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes {
    pub expiry: Option<Expiry>,
    pub tags: Option<Tags>,
    /// The record's own time to idle.
    pub to_idle: Option<Duration>,
}

impl Attributes {
    /// Calls `put` with the parts of a header.
    fn put_header(&self, idle: Option<Expiry>, mut put: impl FnMut(&[u8])) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let times = flag(self.expiry.is_some(), EXPIRES) | flag(idle.is_some(), IDLES);
        let period = self.period(idle);
        put(&[times | flag(self.tags.is_some(), TAGGED) | flag(period.is_some(), HAS_PERIOD)]);
        for time in [self.expiry, idle, period].into_iter().flatten() {
            put(&time.to_bytes());
        }
        if let Some(tags) = &self.tags {
            put(&tags.stamp().to_le_bytes()[..ID_BYTES]);
            put(&[tags.ids().len() as u8]);
            tags.ids().iter().for_each(|id| put(&id.to_le_bytes()[..ID_BYTES]));
        }
    }

    /// Returns the record's own time to idle as it is encoded, if the record has an idle deadline.
    fn period(&self, idle: Option<Expiry>) -> Option<Expiry> {
        idle.and(self.to_idle)
            .map(|period| Expiry::after(Duration::ZERO, period))
    }

    /// Returns the length of the header.
    fn header_bytes(&self, idle: Option<Expiry>) -> usize {
        let times = [self.expiry, idle, self.period(idle)].into_iter().flatten().count();
        let tags = |tags: &Tags| ID_BYTES + 1 + tags.ids().len() * ID_BYTES;
        1 + times * TIME_BYTES + self.tags.as_ref().map_or(0, tags)
    }
}

/// Replaces the content of `out` by a record's header and value.
pub(super) fn write(
    value: &[u8],
    attributes: &Attributes,
    idle: Option<Expiry>,
    out: &mut Vec<u8>,
) -> Result<(), OutOfMemory> {
    out.clear();
    out.try_grow(attributes.header_bytes(idle) + value.len())?;
    attributes.put_header(idle, |bytes| out.extend_from_slice(bytes));
    out.extend_from_slice(value);
    Ok(())
}

/// Encodes a record with a long value in memory that returns to the system when it is dropped.
pub(super) fn write_long(
    value: &[u8],
    attributes: &Attributes,
    idle: Option<Expiry>,
) -> Result<Transient, OutOfMemory> {
    let bytes = attributes.header_bytes(idle) + value.len();
    let mut out = Transient::with_capacity(bytes).ok_or(OutOfMemory { bytes })?;
    attributes.put_header(idle, |bytes| _ = out.push(bytes));
    out.push(value);
    Ok(out)
}

/// Reads a number of 48 bits.
fn read_u48(bytes: &[u8]) -> u64 {
    let mut wide = [0; size_of::<u64>()];
    wide[..ID_BYTES].copy_from_slice(&bytes[..ID_BYTES]);
    u64::from_le_bytes(wide)
}

/// Returns the value and the record's expiry, by time to live or idleness. A tombstone has always expired.
#[inline]
pub(super) fn read(stored: &[u8]) -> (&[u8], Option<Expiry>) {
    match stored.split_first() {
        Some((flags, value)) if flags & (EXPIRES | IDLES | TAGGED) == 0 => (value, None),
        Some((flags, rest)) => {
            let (rest, expiry) = read_times(*flags, rest);
            let value = if flags & TAGGED != 0 { split_tags(rest).1 } else { rest };
            (value, expiry)
        }
        None => (stored, Some(Expiry::PAST)),
    }
}

fn read_times(flags: u8, mut rest: &[u8]) -> (&[u8], Option<Expiry>) {
    let mut expiry = None;
    for flag in [EXPIRES, IDLES] {
        if flags & flag != 0
            && let Some((ticks, behind)) = rest.split_first_chunk()
        {
            let time = Expiry::from_bytes(*ticks);
            expiry = Some(expiry.map_or(time, |expiry: Expiry| expiry.min(time)));
            rest = behind;
        }
    }
    if flags & HAS_PERIOD != 0 {
        rest = rest.get(TIME_BYTES..).unwrap_or(rest);
    }
    (rest, expiry)
}

/// Splits encoded tags, without their stamp and number, from the value behind them.
fn split_tags(rest: &[u8]) -> (Option<(u64, &[u8])>, &[u8]) {
    let split = || {
        let count = usize::from(*rest.get(ID_BYTES)?);
        let (ids, value) = rest[ID_BYTES + 1..].split_at_checked(count * ID_BYTES)?;
        Some((Some((read_u48(rest), ids)), value))
    };
    split().unwrap_or((None, rest))
}

/// Returns a record's tags with another stamp, if it has any.
pub(super) fn tags_with_stamp(stored: &[u8], stamp: u64) -> Option<Tags> {
    let (_, ids) = tags(stored)?;
    Tags::of_ids(ids, stamp)
}

/// Returns the stamp and the identities of a record's tags, if it has any.
pub(super) fn tags(stored: &[u8]) -> Option<(u64, impl Iterator<Item = u64>)> {
    let (flags, rest) = stored.split_first().filter(|(flags, _)| *flags & TAGGED != 0)?;
    let (stamp, ids) = split_tags(read_times(*flags, rest).0).0?;
    Some((stamp, ids.chunks_exact(ID_BYTES).map(read_u48)))
}

#[inline]
pub(super) fn is_tagged(stored: &[u8]) -> bool {
    has(stored, TAGGED)
}

/// Returns the expiry by time to live.
pub(super) fn expiry(stored: &[u8]) -> Option<Expiry> {
    let (flags, rest) = stored.split_first()?;
    read_times(flags & EXPIRES, rest).1
}

/// Returns the offset of the idle deadline.
fn idle_at(stored: &[u8]) -> Option<usize> {
    let flags = *stored.first()?;
    let at = 1 + if flags & EXPIRES != 0 { TIME_BYTES } else { 0 };
    (flags & IDLES != 0 && stored.len() >= at + TIME_BYTES).then_some(at)
}

/// Returns the idle deadline.
pub(super) fn idle(stored: &[u8]) -> Option<Expiry> {
    let ticks = stored[idle_at(stored)?..].first_chunk()?;
    Some(Expiry::from_bytes(*ticks))
}

/// Returns the record's own time to idle.
pub(super) fn idle_period(stored: &[u8]) -> Option<Duration> {
    let at = idle_at(stored).filter(|_| has(stored, HAS_PERIOD))? + TIME_BYTES;
    let ms = stored.get(at..)?.first_chunk()?;
    Some(Duration::from_millis(Expiry::from_bytes(*ms).0))
}

/// Sets the idle deadline of a record that has one. The record then differs from its copy on disk.
pub(super) fn set_idle(stored: &mut [u8], idle: Expiry) {
    if let Some(at) = idle_at(stored) {
        stored[at..at + TIME_BYTES].copy_from_slice(&idle.to_bytes());
        stored[0] &= !CLEAN;
    }
}

fn has(stored: &[u8], flag: u8) -> bool {
    stored.first().is_some_and(|flags| flags & flag != 0)
}

pub(super) fn is_tombstone(stored: &[u8]) -> bool {
    stored.is_empty()
}

pub(super) fn is_clean(stored: &[u8]) -> bool {
    has(stored, CLEAN)
}

/// Marks a record as being on disk as well.
pub(super) fn make_clean(stored: &mut [u8]) {
    if let Some(flags) = stored.first_mut() {
        *flags |= CLEAN;
    }
}

/// Returns true if a record has expired. The clock is only read if the record expires.
#[inline]
pub(super) fn is_expired(expiry: Option<Expiry>, now: impl FnOnce() -> Duration) -> bool {
    expiry.is_some_and(|expiry| expiry.is_expired(now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut stored = vec![9; 100];
        let times = [None, Some(Expiry::PAST), Some(Expiry(7)), Some(Expiry::NEVER)];
        let tagged = |count: usize| {
            let mut tags = Tags::default();
            (0..count).for_each(|n| tags.add(&[n as u8]));
            tags.stamped(77 << 40)
        };
        let cases = times.into_iter().flat_map(|expiry| times.map(|idle| (expiry, idle)));
        let cases = cases.flat_map(|(expiry, idle)| [0, 1, MAX_TAGS].map(|count| (expiry, idle, tagged(count))));
        for (expiry, until, own) in cases {
            let values = [&b""[..], b"x", &[1; 5000]];
            let periods = [None, Some(Duration::from_millis(1500)), Some(Duration::MAX)];
            for (value, to_idle) in values
                .into_iter()
                .flat_map(|value| periods.map(|period| (value, period)))
            {
                let attributes = Attributes {
                    expiry,
                    tags: own,
                    to_idle,
                };
                write(value, &attributes, until, &mut stored).unwrap();
                let first = [expiry, until].into_iter().flatten().min();
                assert_eq!(read(&stored), (value, first));
                assert_eq!((super::expiry(&stored), idle(&stored)), (expiry, until));
                assert_eq!(write_long(value, &attributes, until).unwrap().bytes(), stored);
                assert!(stored.len() <= value.len() + MAX_HEADER_BYTES);
                let longest = Duration::from_millis(Expiry::NEVER.0);
                let period = until.and(to_idle).map(|period| period.min(longest));
                assert_eq!(idle_period(&stored), period);
                assert_eq!(is_tagged(&stored), own.is_some());
                assert_eq!(tags_with_stamp(&stored, 77 << 40), own);
                assert_eq!(tags(&stored).map(|(stamp, _)| stamp), own.map(|own| own.stamp()));
                make_clean(&mut stored);
                set_idle(&mut stored, Expiry(9));
                assert_eq!(idle(&stored), until.map(|_| Expiry(9)));
                assert_eq!(is_clean(&stored), until.is_none());
                let first = [expiry, idle(&stored)].into_iter().flatten().min();
                assert_eq!(read(&stored), (value, first));
            }
        }
        let never = Attributes {
            expiry: Some(Expiry::NEVER),
            ..Attributes::default()
        };
        write(&[1; 5000], &never, None, &mut stored).unwrap();
        assert!(is_expired(read(TOMBSTONE).1, || Duration::ZERO));
        assert!(is_tombstone(TOMBSTONE) && !is_clean(TOMBSTONE) && !is_tombstone(&stored));
        make_clean(&mut stored);
        assert_eq!(read(&stored), (&[1; 5000][..], Some(Expiry::NEVER)));
        assert!(is_clean(&stored));
        // No valid record looks like these, and none makes a reader fail.
        assert_eq!(read(b""), (&b""[..], Some(Expiry::PAST)));
        assert_eq!(read(&[1, 2, 3]), (&[2, 3][..], None));
        assert_eq!(read(&[9, 0, 0, 0, 0, 0, 0, 3]), (&[3][..], Some(Expiry::PAST)));
        assert_eq!((idle_period(&[IDLES | HAS_PERIOD; 9]), idle_period(b"")), (None, None));
        assert_eq!((idle(&[8, 1]), idle(b"")), (None, None));
        for len in 0..20 {
            let mut damaged = vec![0xff; len];
            damaged.insert(0, TAGGED);
            assert!(tags(&damaged).is_none() && read(&damaged).0.len() == len);
        }
    }
}
