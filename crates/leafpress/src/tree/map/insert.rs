//! Unconditional insertion and removal of records.

use crate::tree::inner::Condition;
use crate::tree::{Tree, TreeError};

impl Tree {
    /// Inserts or replaces a record; returns whether the key was new.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// assert!(tree.insert("apple", "green")?);
    /// assert!(!tree.insert("apple", "red")?, "it was there, and is replaced");
    /// // Keys and values are whatever has bytes.
    /// tree.insert(&42_u64.to_be_bytes(), &vec![1, 2, 3])?;
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::KeyTooLong`], [`TreeError::ValueTooLong`], [`TreeError::OutOfMemory`], or [`TreeError::Codec`] when
    /// compressing or decompressing a frame fails. The key's old record is then unchanged.
    pub fn insert(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<bool, TreeError> {
        self.core
            .write(key.as_ref(), Some(value.as_ref()), Condition::Always)
            .map(|(present, _)| !present)
    }

    /// Inserts a record unless the key is present; returns whether it was inserted.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// assert!(tree.insert_if_absent("apple", "green")?);
    /// assert!(!tree.insert_if_absent("apple", "red")?);
    /// assert_eq!(tree.get("apple")?.as_deref(), Some(b"green".as_slice()));
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn insert_if_absent(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<bool, TreeError> {
        self.core
            .write(key.as_ref(), Some(value.as_ref()), Condition::IfAbsent)
            .map(|(_, applied)| applied)
    }

    /// Replaces the value if the key is present; returns whether it was.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// assert!(!tree.replace("apple", "red")?);
    /// assert!(tree.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn replace(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        value: &(impl AsRef<[u8]> + ?Sized),
    ) -> Result<bool, TreeError> {
        self.core
            .write(key.as_ref(), Some(value.as_ref()), Condition::IfPresent)
            .map(|(_, applied)| applied)
    }

    /// Removes the key; returns whether it was present.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// assert!(tree.remove("apple")?);
    /// assert!(!tree.remove("apple")?);
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`] or [`TreeError::Codec`]; the record is then unchanged.
    pub fn remove(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<bool, TreeError> {
        self.core
            .write(key.as_ref(), None, Condition::Always)
            .map(|(present, _)| present)
    }

    /// Removes every record and frees its memory, once no reader uses it. The dictionary and the chosen frame length
    /// are kept.
    ///
    /// ```
    /// # let tree = leafpress::Tree::builder().build()?;
    /// # tree.insert("apple", "red")?;
    /// tree.clear()?;
    /// assert!(tree.is_empty());
    /// # Ok::<(), leafpress::TreeError>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::OutOfMemory`]; shards cleared so far stay cleared.
    pub fn clear(&self) -> Result<(), TreeError> {
        self.core.clear()
    }
}
