//! Iteration over records without copying each.

use crate::tree::error::TreeError;
use crate::tree::scan::Range;
use crate::tree::scan::batch::End;

impl Range<'_> {
    /// Calls `read` with the next record from the front and returns its result; [`None`] at the end. Unlike the
    /// iterator's `next` it allocates no key and value.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::TreeError> {
    /// let tree = leafpress::Tree::from_sorted([("a", "1"), ("b", "22")])?;
    /// let (mut records, mut value_bytes) = (tree.iter(), 0);
    /// while let Some(read) = records.next_with(|_, value| value_bytes += value.len()) {
    ///     read?;
    /// }
    /// assert_eq!(value_bytes, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_with<R>(&mut self, read: impl FnOnce(&[u8], &[u8]) -> R) -> Option<Result<R, TreeError>> {
        self.step(End::Front, read)
    }

    /// Calls `read` with the next record from the back: see [`Range::next_with`].
    pub fn next_back_with<R>(&mut self, read: impl FnOnce(&[u8], &[u8]) -> R) -> Option<Result<R, TreeError>> {
        self.step(End::Back, read)
    }
}
