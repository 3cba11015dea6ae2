//! The records with the least and the greatest key.

use crate::tree::scan::End;
use crate::tree::{Record, Tree, TreeError};

impl Tree {
    /// Returns the record with the least key, copied; `None` when the tree is empty.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// let (key, value) = tree.first()?.expect("there are records");
    /// assert_eq!((key.as_slice(), value.as_slice()), (b"apple".as_slice(), b"red".as_slice()));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Codec`] when a frame cannot be decoded, [`TreeError::OutOfMemory`].
    pub fn first(&self) -> Result<Option<Record>, TreeError> {
        self.at_end(End::Front)
    }

    /// Returns the record with the greatest key, copied; `None` when the tree is empty.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// assert_eq!(tree.last()?.map(|(key, _)| key), Some(b"cherry".to_vec()));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::first`].
    pub fn last(&self) -> Result<Option<Record>, TreeError> {
        self.at_end(End::Back)
    }

    /// Removes the record with the least key and returns it; `None` when the tree is empty.
    ///
    /// Atomic for the key: no other call gets the same record, and the returned value is the one that was removed. The
    /// key was the least during the search; a lesser one that is inserted before this returns stays.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// // A queue: each record goes to one of the threads that do so.
    /// while let Some((key, value)) = tree.pop_first()? {
    ///     println!("{} bytes", key.len() + value.len());
    /// }
    /// assert!(tree.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::first`] and [`Tree::take`]; the record is then still present.
    pub fn pop_first(&self) -> Result<Option<Record>, TreeError> {
        self.pop(End::Front)
    }

    /// Removes the record with the greatest key and returns it; `None` when the tree is empty. Its guarantees are those
    /// of [`Tree::pop_first`].
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.extend([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
    /// assert_eq!(tree.pop_last()?.map(|(key, _)| key), Some(b"cherry".to_vec()));
    /// assert_eq!(tree.len(), 2);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::pop_first`].
    pub fn pop_last(&self) -> Result<Option<Record>, TreeError> {
        self.pop(End::Back)
    }

    fn at_end(&self, end: End) -> Result<Option<Record>, TreeError> {
        self.iter().limit(1).record(end).transpose()
    }

    fn pop(&self, end: End) -> Result<Option<Record>, TreeError> {
        while let Some((key, _)) = self.at_end(end)? {
            // `None` if another thread removed it first.
            if let Some(value) = self.take(&key)? {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }
}
