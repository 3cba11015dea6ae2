//! Ordered scans.

use std::ops::Bound;

use crate::tree::key_range::prefixed;
use crate::tree::scan::End;
use crate::tree::{KeyRange, Range, Tree, TreeError};
use leafpress_base::mem::room::copied;

impl Tree {
    /// Returns an iterator over the records whose keys are in `range`, in key order, from either end (`.rev()`).
    ///
    /// A key that is present from the scan's start to its end is returned exactly once; one that is inserted or removed
    /// meanwhile may or may not be. Each record is read atomically.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// for record in tree.range("b"..) {
    ///     let (key, value) = record?;
    ///     assert!(key.starts_with(b"b") || key.starts_with(b"c"));
    ///     println!("{} bytes", value.len());
    /// }
    /// let last = tree.range("a".."c").next_back().transpose()?;
    /// assert_eq!(last.map(|(key, _)| key), Some(b"banana".to_vec()));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn range(&self, range: impl KeyRange) -> Range<'_> {
        Range::new(&self.core, range.into_bounds(), None)
    }

    /// Returns an iterator over all records, in key order, from either end. Its guarantees are those of
    /// [`Tree::range`].
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let keys = tree.iter().map(|record| record.map(|(key, _)| key));
    /// assert_eq!(keys.collect::<Result<Vec<_>, _>>()?.len(), 3);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn iter(&self) -> Range<'_> {
        self.range(..)
    }

    /// Returns an iterator over the records whose keys begin with `prefix`, in key order, from either end. Its
    /// guarantees are those of [`Tree::range`].
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// assert_eq!(tree.prefix("ban").count(), 1);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    pub fn prefix(&self, prefix: &(impl AsRef<[u8]> + ?Sized)) -> Range<'_> {
        Range::new(&self.core, prefixed(prefix.as_ref()), None)
    }

    /// Calls `visit` with up to `limit` records from `start` on, in key order; returns their number. The guarantees are
    /// those of [`Tree::range`], but no memory is allocated per record, and no more records are read than requested:
    /// the preferred way to do a short scan.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let mut bytes = 0;
    /// let visited = tree.scan("b", 10, |key, value| bytes += key.len() + value.len())?;
    /// assert_eq!((visited, bytes), (2, 21));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Codec`] when a frame cannot be decoded, [`TreeError::OutOfMemory`]; the records before it have been
    /// visited.
    pub fn scan(
        &self,
        start: &(impl AsRef<[u8]> + ?Sized),
        limit: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, TreeError> {
        let start = Bound::Included(copied(start.as_ref())?);
        let mut range = Range::new(&self.core, Ok((start, Bound::Unbounded)), Some(limit));
        let mut visited = 0;
        while let Some(step) = range.step(End::Front, &mut visit) {
            step?;
            visited += 1;
        }
        Ok(visited)
    }
}
