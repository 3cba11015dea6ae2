//! Ordered scans.

use crate::tree::key_range::prefixed;
use crate::tree::{KeyRange, Range, Tree};

impl Tree {
    /// Returns an iterator over the records whose keys are in `range`, in key order, from either end (`.rev()`).
    ///
    /// A key that is present from the scan's start to its end is returned exactly once; one that is inserted or removed
    /// meanwhile may or may not be. Each record is read atomically.
    ///
    /// For a short scan set a [`Range::limit`]; [`Range::visit`] copies no record.
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
        Range::new(&self.core, range.into_bounds())
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
        Range::new(&self.core, prefixed(prefix.as_ref()))
    }
}
