//! Point reads.

use crate::tree::{Tree, TreeError};
use leafpress_base::mem::room::room_for;

impl Tree {
    /// Returns the key's value, copied; `None` when absent.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// tree.insert("apple", "red")?;
    /// assert_eq!(tree.get("apple")?.as_deref(), Some(b"red".as_slice()));
    /// assert_eq!(tree.get("cherry")?, None);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Codec`] when its frame cannot be decoded, [`TreeError::OutOfMemory`].
    pub fn get(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, TreeError> {
        self.core.get_copied(key.as_ref())
    }

    /// Replaces the contents of `value` by the key's value and returns true; clears `value` and returns false when the
    /// key is absent.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// let mut value = Vec::new();
    /// // One buffer for many reads.
    /// assert!(tree.get_into("apple", &mut value)? && value == b"red");
    /// assert!(!tree.get_into("cherry", &mut value)? && value.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`]; `value` is then empty.
    pub fn get_into(&self, key: &(impl AsRef<[u8]> + ?Sized), value: &mut Vec<u8>) -> Result<bool, TreeError> {
        self.core.get_into(key.as_ref(), value)
    }

    /// Calls `read` with the key's value and returns its result; `None` when absent. The slice borrows the tree's
    /// memory (uncompressed records) or the decode buffer; no memory is reclaimed while `read` runs.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// assert_eq!(tree.get_with("apple", |value| value.len())?, Some(3));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`].
    #[inline]
    pub fn get_with<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, TreeError> {
        self.core.get(key.as_ref(), |found| found.with(read))
    }

    /// Returns the keys' values, copied, in the order of the keys; [`None`] for absent ones.
    ///
    /// Faster than the same number of calls of [`Tree::get`], and much faster where the tree exceeds the processor's
    /// caches: the cache misses of the reads overlap. Each record is read atomically, but the records need not be of
    /// the same moment.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// let values = tree.get_many(&["apple", "cherry"])?;
    /// assert_eq!(values, [Some(b"red".to_vec()), None]);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`], if any of the values cannot be read. [`Tree::get_many_with`] returns the others.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, TreeError> {
        let mut values = room_for(keys.len())?;
        self.core.get_many(keys, |_, found| {
            let value = found.map(|read| {
                let mut value = Vec::new();
                read.append_to(&mut value).map(|()| value)
            });
            values.push(value.transpose()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `read` with the index in `keys` and the value of each key, in order; [`None`] when absent. The guarantees
    /// of [`Tree::get_many`] and [`Tree::get_with`] apply.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// let mut found = 0;
    /// tree.get_many_with(&["apple", "cherry"], |_, value| found += usize::from(value.is_some()))?;
    /// assert_eq!(found, 1);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::get`]: the first error, after all keys were processed. `read` is not called for a key whose value
    /// cannot be read.
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<(), TreeError> {
        self.core.get_many(keys, |index, found| match found {
            Some(found) => found.with(|value| read(index, Some(value))),
            None => {
                read(index, None);
                Ok(())
            }
        })
    }

    /// Returns the length of the key's value; [`None`] when absent. Decodes at most the frame that holds the key, and
    /// no long value: those are stored outside of frames.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// assert_eq!(tree.value_len("apple")?, Some(3));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::contains_key`].
    pub fn value_len(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<usize>, TreeError> {
        self.core.get(key.as_ref(), |found| Ok(found.len()))
    }

    /// Returns whether the key is present. Decodes at most the frame that would hold the key.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// assert!(tree.contains_key("apple")? && !tree.contains_key("cherry")?);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::Codec`] when that frame cannot be decoded.
    pub fn contains_key(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, TreeError> {
        self.core.contains_key(key.as_ref())
    }
}
