//! Reading records by their keys.

use crate::tree::{Tree, TreeError};
use leafpress_base::mem::room::room_for;

impl Tree {
    /// The key's value, copied; `None` when absent.
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

    /// Replaces the content of `value` by the key's value and returns true; leaves `value` empty and returns false when absent.
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

    /// Calls `read` with the key's value and returns what it returns; `None` when absent. The bytes are the tree's own (raw records) or
    /// the decode buffer's; memory is not reclaimed while `read` runs.
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

    /// The keys' values, copied, in the order of the keys; [`None`] for those that are absent.
    ///
    /// It takes less time than as many [`Tree::get`]s, much less where the tree is larger than the caches: the reads wait for memory
    /// together. Each record is as some write left it, but they need not be of one moment.
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
    /// As [`Tree::get`], if any of the values cannot be read. [`Tree::get_many_with`] gives the others.
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

    /// Calls `read` with the index in `keys` and the value of each key, in order; [`None`] where absent. What is said of
    /// [`Tree::get_many`] and [`Tree::get_with`] holds.
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
    /// As [`Tree::get`]: the first, when all keys have had their turn. `read` is not called for a key whose value cannot be read.
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

    /// Whether the key is there. Decodes nothing but, at most, the frame that would hold the key.
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
