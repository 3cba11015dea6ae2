//! Ordered scans of both tiers.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use super::disk::{Course, FoundRecord, Part, Walked};
use super::error::CacheError;
use super::inner::{CacheInner, Seen};
use super::record;
use super::{Cache, disk};
use crate::tree::{Bounds, KeyRange, Record, is_empty};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::copied;

/// Read-ahead of a scan, in bytes.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// An iterator over the records of a range of keys in memory and on disk, in key order; from [`Cache::scan`].
pub struct CacheScan<'c> {
    cache: &'c Cache,
    position: ScanPosition,
}

impl fmt::Debug for CacheScan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheScan")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// The position of a [`CacheScan`]: see [`CacheScan::into_position`].
pub struct ScanPosition {
    cache: Weak<CacheInner>,
    course: Course,
    part: VecDeque<FoundRecord>,
    /// The disk walk that read the current part.
    walked: Option<Walked>,
    /// The range after the current part.
    rest: Option<Bounds>,
    /// The error of an invalid range.
    refused: Option<CacheError>,
}

impl fmt::Debug for ScanPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanPosition")
            .field("records_read_ahead", &self.part.len())
            .field("is_last_part", &self.rest.is_none())
            .finish_non_exhaustive()
    }
}

impl Cache {
    /// Returns an iterator over the records whose keys are in `range`, in memory and on disk, in key order. The records
    /// do not count as read, and none is promoted to memory.
    ///
    /// A key that is present from the start of the scan to its end is seen exactly once, even if its record moves
    /// between memory and disk; one that is inserted or removed meanwhile may or may not be. Each value is the key's at
    /// the moment when it is returned. A record on disk that cannot be read counts as absent.
    ///
    /// The scan reads everything on disk that the range covers, in parts: each part is read at once and takes up to 4
    /// MiB of memory beyond the cache's budget, and nothing is written to the disk tier during the read.
    /// [`Cache::range`] scans memory only.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// for record in cache.scan("user:43"..) {
    ///     let (key, value) = record?;
    ///     assert!(key == b"user:43" && value == b"Grace");
    /// }
    /// // How many there are, in both tiers.
    /// assert_eq!(cache.scan(..).keys_only().count(), 2);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    pub fn scan(&self, range: impl KeyRange) -> CacheScan<'_> {
        let (rest, refused) = match range.into_bounds() {
            Ok(bounds) => (Some(bounds), None),
            Err(error) => (None, Some(error.into())),
        };
        let course = Course {
            is_backwards: false,
            keys_only: false,
            forgets_unreadable: false,
            most_bytes: MAX_BYTES,
        };
        let position = ScanPosition {
            cache: Arc::downgrade(&self.core),
            course,
            part: VecDeque::new(),
            walked: None,
            rest,
            refused,
        };
        CacheScan { cache: self, position }
    }

    /// Resumes a scan of this cache from its position.
    ///
    /// # Errors
    /// Returns [`CacheError::Option`] if the position belongs to another cache.
    pub fn resume_scan(&self, position: ScanPosition) -> Result<CacheScan<'_>, CacheError> {
        if position.cache.as_ptr() != Arc::as_ptr(&self.core) {
            return Err(CacheError::Option {
                option: "position",
                reason: "the position belongs to a scan of another cache".to_owned(),
            });
        }
        Ok(CacheScan { cache: self, position })
    }
}

impl CacheScan<'_> {
    /// Reverses the order: from the last key to the first. To be called before the first record is taken.
    #[must_use]
    pub fn backwards(mut self) -> Self {
        self.position.course.is_backwards = true;
        self
    }

    /// Returns keys only: values are empty, and more keys are read at once.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.position.course.keys_only = true;
        self
    }

    /// Returns the position of the scan, which does not borrow the cache: bindings to other languages keep it between
    /// calls. [`Cache::resume_scan`] continues from it.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # cache.insert("user:43", "Grace")?;
    /// let mut scan = cache.scan(..);
    /// assert!(scan.next().is_some());
    /// let position = scan.into_position();
    /// assert_eq!(cache.resume_scan(position)?.count(), 1);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn into_position(self) -> ScanPosition {
        self.position
    }
}

impl Iterator for CacheScan<'_> {
    type Item = Result<Record, CacheError>;

    fn next(&mut self) -> Option<Self::Item> {
        let position = &mut self.position;
        if let Some(refused) = position.refused.take() {
            return Some(Err(refused));
        }
        let next = position.advance(&self.cache.core);
        if next.is_err() {
            position.part.clear();
            position.rest = None;
        }
        next.transpose()
    }
}

impl ScanPosition {
    fn advance(&mut self, core: &CacheInner) -> Result<Option<Record>, CacheError> {
        loop {
            while let Some(found) = self.part.pop_front() {
                if let Some(record) = core.open_found(found, self.walked.as_ref(), self.course.keys_only)? {
                    return Ok(Some(record));
                }
            }
            match self.rest.take() {
                Some(bounds) if !is_empty(&bounds.0, &bounds.1) => {
                    let mut walked = core.walk(self.course, &bounds)?;
                    self.rest = walked.rest.take();
                    self.part = std::mem::take(&mut walked.found).into();
                    self.walked = Some(walked);
                }
                _ => return Ok(None),
            }
        }
    }
}

impl CacheInner {
    /// Reads the first part of a range.
    pub(super) fn walk(&self, course: Course, bounds: &Bounds) -> Result<Walked, CacheError> {
        self.check_open()?;
        // Otherwise records with queued reads would be skipped as expired.
        self.apply_queued_reads();
        let in_memory = |part: &mut Part| self.add_keys(course, part);
        match &self.disk {
            Some(disk) => disk.walk(course, bounds, in_memory),
            None => disk::walk_memory(course, bounds, in_memory),
        }
    }

    /// Adds the keys in memory to a part, in the order of the scan.
    fn add_keys(&self, course: Course, part: &mut Part) -> Result<(), CacheError> {
        let (low, high) = part.copied_bounds()?;
        if is_empty(&low, &high) {
            return Ok(());
        }
        let mut records = self.tree.range((low, high));
        loop {
            let add = |key: &[u8], stored: &[u8]| {
                // The end of the part has moved closer.
                if part.excludes(key) {
                    return Ok(false);
                }
                if !record::is_tombstone(stored) {
                    part.push_key(key)?;
                }
                Ok(true)
            };
            let added: Option<Result<Result<bool, OutOfMemory>, _>> = if course.is_backwards {
                records.next_back_with(add)
            } else {
                records.next_with(add)
            };
            let Some(added) = added else { return Ok(()) };
            if !added?? {
                return Ok(());
            }
        }
    }

    /// Returns the current record of a key that a scan has reached.
    pub(super) fn open_found(
        &self,
        found: FoundRecord,
        walked: Option<&Walked>,
        keys_only: bool,
    ) -> Result<Option<Record>, CacheError> {
        let FoundRecord { key, stored, .. } = found;
        let read = |value: &[u8]| if keys_only { Ok(Vec::new()) } else { copied(value) };
        let mut reads = Some(read);
        let value = match self.peek_in_memory(&key, |stored| reads.take().map(|read| read(record::read(stored).0))) {
            Ok(Some(in_memory)) => in_memory.flatten(),
            Err(error) => self.damaged(&key, error)?,
            Ok(None) => match (&self.disk, stored, walked) {
                // The tree had no record just before, and nothing has left it since the disk was read: this is the
                // newest record.
                (Some(disk), Some(mut stored), Some(walked)) if walked.is_newest(disk, disk.hash(&key)) => {
                    let (value, expiry) = self.read(&stored);
                    let header = stored.len() - value.len();
                    if record::is_expired(expiry, || self.clock.now()) {
                        return Ok(None);
                    }
                    stored.drain(..header);
                    return Ok(Some((key, stored)));
                }
                (Some(_), ..) => {
                    let mut seen = Seen {
                        is_going: true,
                        ..Seen::default()
                    };
                    self.find(&key, read, &mut seen)?
                }
                (None, ..) => self.absent()?,
            },
        };
        Ok(value.transpose()?.map(|value| (key, value)))
    }
}
