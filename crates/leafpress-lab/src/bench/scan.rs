//! Checks the results of scans.

use super::keys::readable;
use super::{KeyOrder, Options, ScanErrors};

/// Checks the scans of one thread, under each order that keys may have.
#[derive(Debug, Clone)]
pub(super) struct ScanCheck {
    /// Lengths of a key and of a record in bytes; where they differ, each record has its own in front.
    fixed: Option<(usize, usize)>,
    by_bytes: ScanErrors,
    /// `None` when keys are ordered by their bytes for certain.
    by_integers: Option<ScanErrors>,
}

impl ScanCheck {
    pub(super) fn new(options: &Options, order: KeyOrder) -> Self {
        Self {
            fixed: options.fixed_lengths().map(|(key, value)| (key, key + value)),
            by_bytes: ScanErrors::default(),
            by_integers: (order == KeyOrder::BytesOrIntegers).then(ScanErrors::default),
        }
    }

    /// Checks a scan of `requested` records from `start` that returned `scanned`, stored in `records`.
    pub(super) fn check(&mut self, start: &[u8], requested: usize, scanned: usize, records: &[u8]) {
        let right_length = match self.fixed {
            Some((_, record)) => scanned.checked_mul(record) == Some(records.len()),
            None => self.keys(records).count() == scanned,
        };
        let too_many = scanned > requested || !right_length;
        let found = self.keys(records);
        let keys = || found.clone().take(requested);
        let order = |below: fn(&[u8], &[u8]) -> bool| {
            let mut keys = keys();
            let Some(mut last) = keys.next() else {
                return (false, false);
            };
            let before_start = below(last, start);
            let not_ascending = keys.any(|key| !below(std::mem::replace(&mut last, key), key));
            (before_start, not_ascending)
        };
        let describe = || {
            let first = keys().next().map_or_else(|| "none".into(), readable);
            format!(
                "a scan of {requested} records from key {} returned {scanned}, the first with key {first}",
                readable(start)
            )
        };
        let found = order(below_as_bytes);
        self.by_bytes.count(too_many, found, describe);
        if let Some(errors) = &mut self.by_integers {
            errors.count(too_many, order(below_as_integers), describe);
        }
    }

    fn keys<'r>(&self, records: &'r [u8]) -> Keys<'r> {
        Keys {
            fixed: self.fixed,
            rest: records,
        }
    }

    /// Adds another thread's.
    pub(super) fn add(&mut self, other: &Self) {
        self.by_bytes.add(&other.by_bytes);
        if let (Some(mine), Some(theirs)) = (&mut self.by_integers, &other.by_integers) {
            mine.add(theirs);
        }
    }

    /// The errors under the order that explains the scans best.
    pub(super) fn finish(self) -> ScanErrors {
        match self.by_integers {
            Some(by_integers) if by_integers.scans < self.by_bytes.scans => by_integers,
            _ => self.by_bytes,
        }
    }
}

/// The keys of a scan's records; ends where they are cut off.
#[derive(Debug, Clone)]
struct Keys<'r> {
    fixed: Option<(usize, usize)>,
    rest: &'r [u8],
}

impl<'r> Iterator for Keys<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<&'r [u8]> {
        let (key, record) = match self.fixed {
            Some(lengths) => lengths,
            None => {
                let (key, rest) = self.rest.split_first_chunk()?;
                let (value, rest) = rest.split_first_chunk()?;
                self.rest = rest;
                let key = u32::from_le_bytes(*key) as usize;
                (key, key.checked_add(u32::from_le_bytes(*value) as usize)?)
            }
        };
        let (found, rest) = self.rest.split_at_checked(record)?;
        if record == 0 {
            return None;
        }
        self.rest = rest;
        found.get(..key)
    }
}

impl ScanErrors {
    fn count(&mut self, too_many: bool, (before_start, not_ascending): (bool, bool), describe: impl Fn() -> String) {
        if too_many || before_start || not_ascending {
            self.scans += 1;
            self.too_many += u64::from(too_many);
            self.before_start += u64::from(before_start);
            self.not_ascending += u64::from(not_ascending);
            self.example.get_or_insert_with(describe);
        }
    }

    fn add(&mut self, other: &Self) {
        self.scans += other.scans;
        self.too_many += other.too_many;
        self.before_start += other.before_start;
        self.not_ascending += other.not_ascending;
        if self.example.is_none() {
            self.example.clone_from(&other.example);
        }
    }
}

#[inline]
fn below_as_bytes(a: &[u8], b: &[u8]) -> bool {
    if let (Ok(a), Ok(b)) = (a.try_into(), b.try_into()) {
        return u64::from_be_bytes(a) < u64::from_be_bytes(b);
    }
    a < b
}

#[inline]
fn below_as_integers(a: &[u8], b: &[u8]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(order: KeyOrder, start: u8, requested: usize, scanned: usize, keys: &[u16]) -> ScanErrors {
        let mut options = Options::new("dummy".parse().unwrap());
        (options.key_size, options.value_size) = (2, 1);
        let mut check = ScanCheck::new(&options, order);
        let records: Vec<u8> = keys
            .iter()
            .flat_map(|key| [key.to_be_bytes()[0], key.to_be_bytes()[1], 9])
            .collect();
        check.check(&[0, start], requested, scanned, &records);
        check.finish()
    }

    #[test]
    fn right_scans_pass() {
        for (requested, keys) in [(3, [5_u16, 6, 7].as_slice()), (9, &[5, 300]), (3, &[])] {
            assert_eq!(
                check(KeyOrder::Bytes, 5, requested, keys.len(), keys),
                ScanErrors::default()
            );
        }
    }

    #[test]
    fn each_mistake_is_counted() {
        let errors = check(KeyOrder::Bytes, 5, 2, 3, &[5, 6, 7]);
        assert_eq!((errors.scans, errors.too_many, errors.not_ascending), (1, 1, 0));
        assert_eq!(
            check(KeyOrder::Bytes, 5, 9, 9, &[5, 6]).too_many,
            1,
            "fewer bytes than said"
        );
        assert_eq!(check(KeyOrder::Bytes, 5, 9, usize::MAX, &[5]).too_many, 1);
        let errors = check(KeyOrder::Bytes, 5, 9, 3, &[5, 7, 6]);
        assert_eq!((errors.scans, errors.not_ascending, errors.before_start), (1, 1, 0));
        assert_eq!(check(KeyOrder::Bytes, 5, 9, 2, &[5, 5]).not_ascending, 1, "a key twice");
        let errors = check(KeyOrder::Bytes, 5, 9, 2, &[4, 6]);
        assert_eq!((errors.before_start, errors.not_ascending), (1, 0));
        let example = errors.example.unwrap();
        assert!(example.contains("0x0005") && example.contains("0x0004"), "{example}");
    }

    #[test]
    fn separates_records_of_several_lengths() {
        let mut options = Options::new("dummy".parse().unwrap());
        options.set_key_shape(crate::core::keys::KeyShape::Text);
        let framed = |keys: &[&str]| -> Vec<u8> {
            let record = |key: &&str| {
                let mut record = (key.len() as u32).to_le_bytes().to_vec();
                record.extend_from_slice(&3_u32.to_le_bytes());
                record.extend_from_slice(key.as_bytes());
                record.extend_from_slice(b"val");
                record
            };
            keys.iter().flat_map(record).collect()
        };
        let errors = |keys: &[&str], scanned: usize, cut: usize| {
            let mut check = ScanCheck::new(&options, KeyOrder::Bytes);
            let records = framed(keys);
            check.check(b"b", 3, scanned, &records[..records.len() - cut]);
            check.finish()
        };
        assert_eq!(errors(&["b", "bcd", "c"], 3, 0), ScanErrors::default());
        assert_eq!(errors(&["b", "bcd", "c"], 2, 0).too_many, 1);
        assert_eq!(
            errors(&["b", "bcd", "c"], 3, 1).too_many,
            1,
            "the last record is cut off"
        );
        assert_eq!(errors(&["b", "bcd", "bc"], 3, 0).not_ascending, 1);
        assert_eq!(errors(&["a", "bcd"], 2, 0).before_start, 1);
    }

    /// Keys 0x0100, 0x0001 are 1 and 256 as little-endian integers.
    #[test]
    fn wrappers_may_order_keys_as_integers() {
        let keys = [0x0100, 0x0001, 0x0002];
        assert_eq!(check(KeyOrder::BytesOrIntegers, 0, 9, 3, &keys).scans, 0);
        assert_eq!(check(KeyOrder::Bytes, 0, 9, 3, &keys).scans, 1);
        assert_eq!(check(KeyOrder::BytesOrIntegers, 0, 9, 3, &[2, 1, 0x0200]).scans, 1);
    }
}
