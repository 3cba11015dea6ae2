//! Iteration over records without copying each.

use crate::tree::error::TreeError;
use crate::tree::scan::Range;
use crate::tree::scan::batch::End;

impl Range<'_> {
    /// Ends the iterator after `records` more. Unlike [`Iterator::take`] it reads no more than that ahead, apart from
    /// the rest of a compressed frame.
    #[must_use]
    pub fn limit(mut self, records: usize) -> Self {
        self.left = Some(self.left.map_or(records, |left| left.min(records)));
        self
    }

    /// Calls `visit` with each record from the front, and returns their number. Unlike [`Iterator::for_each`] it
    /// allocates no key and value.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::TreeError> {
    /// let tree = leafpress::Tree::from_sorted([("a", "1"), ("b", "22"), ("c", "333"), ("d", "4444")])?;
    /// let mut value_bytes = 0;
    /// let visited = tree.range("b"..).limit(2).visit(|_, value| value_bytes += value.len())?;
    /// assert_eq!((visited, value_bytes), (2, 5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Codec`] when a frame cannot be decoded, [`TreeError::OutOfMemory`]; the records before it have been
    /// visited.
    pub fn visit(mut self, mut visit: impl FnMut(&[u8], &[u8])) -> Result<usize, TreeError> {
        let mut visited = 0;
        while let Some(step) = self.step(End::Front, &mut visit) {
            step?;
            visited += 1;
        }
        Ok(visited)
    }

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
